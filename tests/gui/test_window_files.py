"""What is opened, saved and exported from the window."""

from __future__ import annotations

import gzip
import json
from datetime import datetime
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QApplication, QFileDialog
from pytestqt.qtbot import QtBot

from app.core import files
from app.gui.journals import Found
from tests import factories
from tests.gui.conftest import Maker
from tests.gui.fakes import FakeSession, calls
from tests.gui.states import in_state

pytestmark = pytest.mark.gui


def answer(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *a, **k: (str(path), ""))
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *a, **k: (str(path), ""))


def test_a_recording_is_saved_and_opened_again(
    qtbot: QtBot, make: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = make()
    path = tmp_path / "mine.json"
    answer(monkeypatch, path)
    qtbot.keyClick(window, Qt.Key.Key_S, Qt.KeyboardModifier.ControlModifier)
    qtbot.waitUntil(lambda: path.exists(), timeout=10_000)
    assert files.load(path).sample_count == window.session.recording.sample_count
    assert window.preferences.export_folder == str(tmp_path)
    qtbot.keyClick(window, Qt.Key.Key_O, Qt.KeyboardModifier.ControlModifier)
    assert window.session.viewing == path
    assert window.windowTitle() == "mine.json · AttnScope"
    assert window.run_bar.run.text() == "Run"
    assert window.verdict.sentence.text().startswith("Recorded")


def test_the_export_menu_writes_each_format(
    qtbot: QtBot, make: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = in_state("faster")
    record = session.recording.current
    assert record is not None
    event = {"ph": "X", "name": "aten::mm", "ts": 1.0, "dur": 2.0, "pid": 1, "tid": 1}
    for name in record.traces_gz:
        record.traces_gz[name] = gzip.compress(json.dumps({"traceEvents": [event]}).encode())
    window = make(session)
    menu = window.commands.open_export_menu()
    offered = [row.item.id for row in menu.rows if row.isEnabled()]
    assert "trace:extension-aten" in offered
    endings = {"recording": "json", "report": "html", "samples": "csv", "window": "png"}
    charts = [choice for choice in offered if choice.startswith("picture:")]
    assert len(charts) >= 3
    for choice in [c for c in offered if c != "command"]:
        for ending in ("png", "svg") if choice in charts else (endings.get(choice, "json.gz"),):
            path = tmp_path / f"{choice.replace(':', '-')}.{ending}"
            answer(monkeypatch, path)
            window.commands.export(choice)
            # Samples are written in slices, so that the window goes on.
            qtbot.waitUntil(lambda path=path: path.is_file() and path.stat().st_size > 0)
    trace = json.loads(gzip.decompress((tmp_path / "trace-native.json.gz").read_bytes()))
    assert "traceEvents" in trace
    assert (tmp_path / f"{charts[0].replace(':', '-')}.svg").read_text().startswith("<?xml")
    assert window.banners.banners()[-1].text.startswith("Written: ")


def test_a_name_without_ending_gets_one(
    qtbot: QtBot, make: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = make()
    answer(monkeypatch, tmp_path / "samples")
    window.commands.export("samples")
    qtbot.waitUntil((tmp_path / "samples.csv").is_file)


def test_a_file_that_cannot_be_written_is_a_line_in_the_window(
    make: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = make()
    (tmp_path / "file").write_text("")
    answer(monkeypatch, tmp_path / "file" / "report.html")
    window.commands.export("report")
    banner = window.banners.banners()[-1]
    assert banner.level == "error"
    assert "was not written" in banner.text


def test_before_anything_is_measured_exports_say_why_not(make: Maker) -> None:
    window = make(in_state("starting"))
    menu = window.commands.open_export_menu()
    assert not menu.row("recording").isEnabled()
    assert menu.row("recording").item.detail == "nothing is measured yet"
    assert not menu.row("no-traces").isEnabled()


def test_the_command_that_does_the_same_is_copied(make: Maker) -> None:
    window = make()
    window.commands.export("command")
    text = QApplication.clipboard().text()
    assert text.startswith("attnscope run quick --set implementations=native,mha,sdpa,extension-aten")
    assert "--set workload.mode=forward_backward" in text


@pytest.mark.parametrize("name", ["broken.json", "broken.toml", "missing.json"])
def test_a_file_that_cannot_be_opened_is_a_sentence(make: Maker, tmp_path: Path, name: str) -> None:
    window = make()
    path = tmp_path / name
    if name.startswith("broken"):
        path.write_text("{not anything")
    window.commands.open_path(path)
    banner = window.banners.banners()[-1]
    assert banner.level == "error"
    assert name in banner.text
    assert calls(window, "set_workload") == []


def test_a_profile_sets_workload_contenders_and_baseline(make: Maker, tmp_path: Path) -> None:
    window = make()
    path = tmp_path / "mine.toml"
    path.write_text(
        'title = "Mine"\nbaseline = "sdpa"\nimplementations = ["native", "sdpa"]\n[workload]\nbatch = 3\n'
    )
    window.commands.open_path(path)
    session = window.session
    assert (session.enabled, session.baseline, session.workload.batch) == (("native", "sdpa"), "sdpa", 3)
    assert session.workload.device == "cpu"
    assert session.profile == str(path)
    assert window.form.profile.text() == "Mine"


def test_a_dropped_recording_is_opened(qtbot: QtBot, make: Maker, tmp_path: Path) -> None:
    window = make()
    path = tmp_path / "dropped.json"
    files.save(window.session.recording, path)
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    event = QDropEvent(
        QPointF(10, 10),
        Qt.DropAction.CopyAction,
        data,
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )
    window.dropEvent(event)
    assert window.session.viewing == path


def test_an_unsaved_recording_is_offered_and_discarded(make: Maker, tmp_path: Path) -> None:
    window = make()
    found = Found(tmp_path / "20261201-140200-1.jsonl", datetime(2026, 12, 1, 14, 2), 3_000_000)
    window.session.recovered_available.emit([found])
    banner = window.banners.banners()[-1]
    assert banner.text.startswith("An unsaved recording of 14:02 on 1 December (2.9")
    assert [button.text() for button in banner.buttons] == ["Open", "Discard"]
    banner.buttons[1].click()
    assert calls(window, "discard_journal") == [(found,)]


def test_notices_of_the_session_are_lines_that_can_be_put_away(qtbot: QtBot, make: Maker) -> None:
    window = make()
    window.session.notice.emit("warning", "the worker was killed; it was restarted")
    (banner,) = window.banners.banners()
    assert banner.text == "The worker was killed; it was restarted"
    banner.dismiss.click()
    qtbot.waitUntil(lambda: not window.banners.banners())


def test_hours_of_samples_are_exported_while_the_window_goes_on(
    qtbot: QtBot, make: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = make(FakeSession(factories.recording(rounds=4_000)))
    path = tmp_path / "all.csv"
    answer(monkeypatch, path)
    window.commands.export("samples")
    assert window.banners.banners()[-1].text == f"Writing {path}"
    assert not path.exists()
    qtbot.waitUntil(lambda: window.banners.banners()[-1].text == f"Written: {path}", timeout=20_000)
    assert len(path.read_text().splitlines()) == window.session.recording.sample_count + 1


def test_a_long_recording_is_saved_while_the_window_goes_on(
    qtbot: QtBot, make: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.gui.gradual_file.AT_ONCE_S", 1e-4)
    window = make(FakeSession(factories.recording(rounds=400)))
    path = tmp_path / "r.json"
    answer(monkeypatch, path)
    window.commands.save()
    assert window.banners.banners()[-1].text == f"Writing {path}"
    assert not path.exists()
    assert not calls(window, "recording_saved")
    qtbot.waitUntil(lambda: window.banners.banners()[-1].text == f"Written: {path}", timeout=20_000)
    count = window.session.recording.sample_count
    assert calls(window, "recording_saved") == [(count,)]
    assert files.load(path).sample_count == count


def test_an_export_under_way_leaves_nothing_when_the_window_closes(
    make: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = make(FakeSession(factories.recording(rounds=4_000)))
    answer(monkeypatch, tmp_path / "all.csv")
    window.commands.export("samples")
    window.close()
    assert list(tmp_path.iterdir()) == []


def test_samples_that_cannot_be_written_are_a_line_in_the_window(
    make: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = make()
    (tmp_path / "file").write_text("")
    answer(monkeypatch, tmp_path / "file" / "all.csv")
    window.commands.export("samples")
    assert "was not written" in window.banners.banners()[-1].text
