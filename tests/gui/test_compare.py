"""Two recordings in the window: which is which, what changed, and the way back."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QApplication, QFileDialog, QWidget
from pytestqt.qtbot import QtBot

from app.core import files
from app.core.comparison import compare
from app.core.recording import Recording
from app.gui.compare import words
from app.gui.compare.opener import Side
from app.gui.compare.screen import CompareScreen
from app.gui.parts.look import Look, dress
from app.gui.parts.text import recorded_overflows
from app.gui.theme import DARK, LIGHT, NORMAL, SMALL, Theme, Type
from app.gui.window import MainWindow
from tests import factories
from tests.gui.conftest import Maker, WideType
from tests.gui.fakes import FakeSession, calls
from tests.two_recordings import WORKLOADS, recording

pytestmark = pytest.mark.gui

FUSED = "extension-aten"
EARLIER = factories.START_S - 7 * 86_400


@pytest.fixture
def last_week(tmp_path: Path) -> Path:
    path = tmp_path / "last-week.json"
    files.save(recording(seed=1, at_s=EARLIER, noise=0.004), path)
    return path


def today() -> Recording:
    made = recording(
        {FUSED: 0.8}, everything=1.05, seed=2, noise=0.004, names=("native", "mha", "sdpa", FUSED)
    )
    slow = next(r for r in made.records if r.workload == WORKLOADS[3])
    slow.series[FUSED].seconds[:] *= 1.5
    assert made.environment is not None
    made.environment = msgspec.structs.replace(made.environment, torch="2.14.1")
    return made


@pytest.fixture
def window(make: Maker) -> MainWindow:
    return make(FakeSession(today()))


def compared(qtbot: QtBot, window: MainWindow, path: Path) -> CompareScreen:
    window.commands.comparing.compare_with(path)
    qtbot.waitUntil(window.compare.isVisible, timeout=10_000)
    return window.compare


def answer(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *a, **k: (str(path), ""))
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *a, **k: (str(path), ""))


def test_a_second_recording_opens_beside_the_one_shown_and_nothing_runs(
    qtbot: QtBot, window: MainWindow, last_week: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(monkeypatch, last_week)
    qtbot.keyClick(window, Qt.Key.Key_D, Qt.KeyboardModifier.ControlModifier)
    qtbot.waitUntil(window.compare.isVisible, timeout=10_000)
    screen = window.compare
    assert screen.comparer.a is not None
    assert screen.comparer.b is not None
    assert (screen.comparer.a.name, screen.comparer.b.name) == ("last-week", "This session")
    assert calls(window, "pause") == [()]
    assert not window.body.isVisible()
    text = screen.verdict.text()
    assert "Extension (ATen) got faster in 11 and slower in 1 of 12 workloads" in text
    assert "net of Native" in text
    assert "the machines differ in PyTorch" in text
    assert "Native moved +5" in text
    qtbot.keyClick(window, Qt.Key.Key_Escape)
    assert not screen.isVisible()
    assert window.body.isVisible()
    assert calls(window, "resume") == [()]


def test_what_was_paused_before_stays_paused_after(qtbot: QtBot, window: MainWindow, last_week: Path) -> None:
    window.session.pause()
    screen = compared(qtbot, window, last_week)
    screen.back.click()
    assert window.session.paused
    assert calls(window, "resume") == []


def test_the_table_has_every_workload_with_the_largest_change_first(
    qtbot: QtBot, window: MainWindow, last_week: Path
) -> None:
    model = compared(qtbot, window, last_week).table.changes
    assert model.rowCount() == 12
    nets = [row.change.net.median for row in model.rows if row.change.net is not None]
    sizes = [abs(math.log(net)) for net in nets]
    assert len(sizes) == 12
    assert sizes == sorted(sizes, reverse=True)
    columns = list(model.columns)
    for row in range(12):
        shown = {c: model.data(model.index(row, i)) for i, c in enumerate(columns)}
        change = model.rows[row].change
        assert change.latency is not None
        assert change.baseline_latency is not None
        assert change.net is not None
        net = (1 + change.latency.change) / (1 + change.baseline_latency.change)
        assert change.net.median == pytest.approx(net, rel=0.01)
        assert shown["verdict"] in ("FASTER", "SLOWER")
        assert shown["workload"].startswith("Sequence ")
    tip = model.data(model.index(0, 0), Qt.ItemDataRole.ToolTipRole)
    assert "lies beyond" in str(tip)


def test_what_is_shown_can_be_chosen(qtbot: QtBot, window: MainWindow, last_week: Path) -> None:
    screen = compared(qtbot, window, last_week)
    screen.panel.filter.segment("unsure").click()
    assert screen.table.changes.rowCount() == 0
    screen.panel.filter.segment("changed").click()
    assert screen.table.changes.rowCount() == 12
    next(row for row in screen.panel.rows if row.name == "sdpa").click()
    assert screen.table.changes.rowCount() == 0
    screen.panel.filter.segment("all").click()
    assert screen.table.changes.rowCount() == 12
    assert "SDPA is the same in 12 of 12 workloads" in screen.verdict.text()
    screen.basis.segment("latency").click()
    assert "latency" not in screen.table.changes.columns
    assert "latency alone" in screen.verdict.text()
    next(row for row in screen.panel.rows if row.name == "native").click()
    assert not screen.basis.segment("net").isEnabled()
    screen.sort.chosen.emit("workload")
    assert [row.change.workload for row in screen.table.changes.rows] == list(WORKLOADS)


def test_the_sides_can_be_swapped_and_each_be_another(
    qtbot: QtBot, window: MainWindow, last_week: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = compared(qtbot, window, last_week)
    screen.panel.swap.click()
    qtbot.waitUntil(lambda: "slower in 11" in screen.verdict.text(), timeout=10_000)
    other = tmp_path / "baseline" / "recording.json"
    files.save(recording(seed=8, names=("native", "mha", FUSED), workloads=WORKLOADS[:3]), other)
    answer(monkeypatch, other)
    screen.panel.b.click()
    qtbot.waitUntil(
        lambda: screen.comparer.b is not None and screen.comparer.b.name == "baseline", timeout=10_000
    )
    qtbot.waitUntil(lambda: screen.table.changes.rowCount() == 3, timeout=10_000)
    missing = {row.name: row.accessibleName() for row in screen.panel.rows if not row.isEnabled()}
    assert missing == {"sdpa": "SDPA not in B"}
    assert screen.panel.only_a.value.text() == "9"


def test_a_file_that_cannot_be_compared_with_is_a_line_and_measuring_goes_on(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    empty = tmp_path / "empty.json"
    files.save(Recording(), empty)
    (tmp_path / "bad.json").write_text("{}")
    for name, words_ in (("bad", "no recording"), ("empty", "no measurement"), ("none", "cannot be read")):
        window.commands.comparing.compare_with(tmp_path / f"{name}.json")
        assert words_ in window.banners.banners()[-1].text
    assert not window.compare.isVisible()
    assert calls(window, "pause") == []


def test_what_of_a_file_is_missing_is_said(qtbot: QtBot, window: MainWindow, last_week: Path) -> None:
    last_week.write_bytes(last_week.read_bytes()[:-2000])
    compared(qtbot, window, last_week)
    said = [banner.text for banner in (*window.banners.banners(), *window.compare.banners.banners())]
    assert any("its end is missing" in text for text in said)


def test_long_recordings_are_compared_while_the_window_goes_on(
    qtbot: QtBot, window: MainWindow, last_week: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.gui.compare.opener.SLICE_S", 0.0)
    monkeypatch.setattr("app.gui.recording_reader.SLICE_S", 0.0)
    window.commands.comparing.compare_with(last_week)
    assert not window.compare.isVisible()
    qtbot.waitUntil(window.compare.isVisible, timeout=20_000)
    assert window.compare.comparison == compare(files.load(last_week), window.session.recording)


def test_the_comparison_is_written_in_each_format(
    qtbot: QtBot, window: MainWindow, last_week: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = compared(qtbot, window, last_week)
    for kind in ("html", "md", "csv", "json", "picture"):
        path = tmp_path / f"out.{'png' if kind == 'picture' else kind}"
        answer(monkeypatch, path)
        window.commands.comparing.export(kind)
        assert path.stat().st_size > 1000
        assert screen.banners.banners()[-1].text == f"Written: {path}"
    assert len(list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text())))) == 48
    assert json.loads((tmp_path / "out.json").read_text())["basis"] == "net"
    menu = window.commands.comparing.open_menu()
    assert [row.item.id for row in menu.rows] == ["html", "md", "csv", "json", "picture", "command"]


def test_the_command_compares_the_same_files(
    qtbot: QtBot, make: Maker, last_week: Path, tmp_path: Path
) -> None:
    now = tmp_path / "to day.json"
    files.save(today(), now)
    window = make()
    window.commands.open_paths([now, last_week])
    qtbot.waitUntil(window.compare.isVisible, timeout=10_000)
    window.compare.basis.segment("latency").click()
    window.compare.command.click()
    expected = f"python main.py report '{now}' --against {last_week} --by latency --format md"
    assert QApplication.clipboard().text() == expected


def test_a_session_that_is_no_file_has_no_command_yet(
    qtbot: QtBot, window: MainWindow, last_week: Path
) -> None:
    screen = compared(qtbot, window, last_week)
    screen.command.click()
    assert "Save this session first" in screen.banners.banners()[-1].text


def test_keys_of_what_is_out_of_sight_do_nothing(qtbot: QtBot, window: MainWindow, last_week: Path) -> None:
    compared(qtbot, window, last_week)
    for key in (Qt.Key.Key_1, Qt.Key.Key_B, Qt.Key.Key_P):
        qtbot.keyClick(window, key)
    qtbot.keyClick(window, Qt.Key.Key_R, Qt.KeyboardModifier.ControlModifier)
    for name in ("set_enabled", "set_baseline", "profile_now", "restart"):
        assert calls(window, name) == []
    qtbot.keyClick(window, Qt.Key.Key_Space)
    assert not window.compare.isVisible()


def test_two_files_that_are_dropped_are_compared_and_a_third_takes_the_place_of_a(
    qtbot: QtBot, make: Maker, last_week: Path, tmp_path: Path
) -> None:
    now, third = tmp_path / "now.json", tmp_path / "third.json"
    files.save(today(), now)
    files.save(recording(seed=5, at_s=EARLIER), third)
    window = make()

    def drop(*paths: Path) -> None:
        data = QMimeData()
        data.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
        buttons, keys = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
        window.dropEvent(QDropEvent(QPointF(9, 9), Qt.DropAction.CopyAction, data, buttons, keys))

    drop(last_week, now)
    qtbot.waitUntil(window.compare.isVisible, timeout=10_000)
    comparer = window.compare.comparer
    assert comparer.a is not None
    assert comparer.b is not None
    assert (comparer.a.name, comparer.b.name) == ("last-week", "now")
    drop(third)
    qtbot.waitUntil(lambda: comparer.a is not None and comparer.a.name == "third", timeout=10_000)


def test_copying_the_table_gives_a_spreadsheet(qtbot: QtBot, window: MainWindow, last_week: Path) -> None:
    screen = compared(qtbot, window, last_week)
    screen.table.setFocus()
    qtbot.keyClick(screen.table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    lines = QApplication.clipboard().text().splitlines()
    assert len(lines) == 13
    assert {len(line.split("\t")) for line in lines} == {len(screen.table.changes.columns)}


def test_a_recording_with_nothing_in_common_says_so(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    foreign = msgspec.structs.replace(WORKLOADS[0], batch=3)
    files.save(recording(workloads=(foreign,), at_s=EARLIER), other)
    screen = compared(qtbot, window, other)
    assert "is not in both recordings" in screen.verdict.text()
    assert screen.panel.only_a.value.text() == "1"
    assert screen.panel.only_b.value.text() == "12"
    assert screen.table.changes.rowCount() == 0


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("size", [(1440, 900), (1024, 700)])
@pytest.mark.parametrize("theme", [DARK, LIGHT])
def test_no_text_is_cut_that_has_a_length_of_ours(
    qtbot: QtBot, qapp: QApplication, last_week: Path, theme: Theme, size: tuple[int, int], wide: bool
) -> None:
    kind = WideType() if wide else Type()
    look = Look(theme, kind, SMALL if size[0] < 1200 else NORMAL, motion=False)
    top = QWidget()
    qtbot.addWidget(top)
    top.resize(*size)
    screen = CompareScreen(look, top)
    screen.setGeometry(0, 0, *size)
    top.show()
    screen.compare(Side("Today", today()), last_week)
    qtbot.waitUntil(screen.isVisible, timeout=10_000)
    dress(screen, look)
    qapp.processEvents()
    with recorded_overflows() as cut:
        top.grab()
    assert cut == []
    assert "net" in screen.table.changes.columns
    assert "verdict" in screen.table.changes.columns
    room = sum(screen.table.columnWidth(i) for i in range(len(screen.table.changes.columns)))
    assert room <= screen.table.viewport().width()


def test_titles_tell_workloads_apart_by_what_differs() -> None:
    titles = words.titles_of(WORKLOADS)
    assert len(set(titles.values())) == len(WORKLOADS)
    assert titles[WORKLOADS[0]] == ("Sequence 16", "Forward · batch 8")
    more = (*WORKLOADS, msgspec.structs.replace(WORKLOADS[0], embed_dim=1024))
    assert words.titles_of(more)[more[-1]] == ("Sequence 16, embedding 1,024", "Forward · batch 8")


def test_advice_follows_from_what_was_found() -> None:
    alike = compare(recording(seed=1, noise=0.004), recording(seed=2, noise=0.004))
    assert words.advice(alike, words.first_choice(alike)).startswith("Nothing stands against")
    unlike = compare(recording(seed=1), today())
    assert "read Latency on one machine" in words.advice(unlike, words.first_choice(unlike))
