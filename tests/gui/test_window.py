"""The window as a whole: sizes, keys, files, themes; what it asks of its session, what it shows of it."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QApplication, QFileDialog, QLineEdit, QWidget
from pytestqt.qtbot import QtBot

from app.core import files
from app.core.workload import Workload
from app.gui.journals import Found
from app.gui.parts.overlay import Overlay
from app.gui.parts.text import recorded_overflows
from app.gui.preferences import Preferences
from app.gui.tab_area import BUILD, LIVE, SYSTEM
from app.gui.theme import DARK, LIGHT, SMALL
from app.gui.window import MainWindow
from tests import factories
from tests.gui.conftest import WideType
from tests.gui.fakes import FakeSession
from tests.gui.states import STATES, in_state

pytestmark = pytest.mark.gui

Maker = Callable[..., MainWindow]


@pytest.fixture
def make(qtbot: QtBot) -> Maker:
    def _make(session: FakeSession | None = None, **options: object) -> MainWindow:
        preferences = Preferences(theme="dark", motion=False)
        for name, value in options.items():
            setattr(preferences, name, value)
        window = MainWindow(session or in_state("faster"), preferences, native_dialogs=False)  # type: ignore[arg-type]
        qtbot.addWidget(window)
        window.show()
        window.activateWindow()
        qtbot.waitUntil(lambda: window.isActiveWindow())
        return window

    return _make


def calls(window: MainWindow, name: str) -> list[tuple[object, ...]]:
    session = window.session
    assert isinstance(session, FakeSession)
    return [call[1:] for call in session.calls if call[0] == name]


# ---- sizes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("size", [(1440, 900), (1024, 700), (900, 600)])
@pytest.mark.parametrize("wide", [False, True])
def test_no_text_of_the_shell_is_cut(
    qtbot: QtBot, make: Maker, monkeypatch: pytest.MonkeyPatch, state: str, size: tuple[int, int], wide: bool
) -> None:
    if wide:
        monkeypatch.setattr("app.gui.window.Type", WideType)
    session = in_state(state)
    factories.telemetry(session.recording, 60)
    window = make(session)
    window.resize(*size)
    window.refresh()
    QApplication.processEvents()
    with recorded_overflows() as found:
        for part in (window.run_bar, window.panel, window.verdict, window.tabs.tabs, window.status):
            part.grab()
    assert found == []


def test_below_1200_everything_is_smaller_and_below_1024_the_panel_is_a_strip(make: Maker) -> None:
    window = make()
    window.resize(1440, 900)
    assert (window.run_bar.height(), window.verdict.height(), window.panel.width()) == (56, 96, 280)
    window.resize(1100, 700)
    assert window.look.sizes is SMALL
    assert (window.run_bar.height(), window.verdict.height(), window.panel.width()) == (48, 80, 256)
    assert window.panel.isVisible()
    window.resize(1000, 700)
    assert not window.panel.isVisible()
    assert window.body.strip.isVisible()
    window.body.strip.open_button.click()
    assert window.panel.isVisible()
    window.body.strip.open_button.click()
    assert not window.panel.isVisible()
    window.resize(1440, 900)
    assert window.panel.isVisible()


def test_the_window_is_never_smaller_than_900_by_600(make: Maker) -> None:
    window = make()
    window.resize(300, 200)
    assert (window.width(), window.height()) == (900, 600)
    hint = window.minimumSizeHint()
    assert hint.width() <= 900
    assert hint.height() <= 600


def test_the_panel_scrolls_before_anything_overlaps(make: Maker) -> None:
    window = make()
    window.resize(1024, 600)
    window.form.row("num_heads").field.setValue(12)
    QApplication.processEvents()
    assert window.panel.scroll_area.verticalScrollBar().maximum() > 0
    assert window.form.geometry().bottom() < window.contenders.geometry().top()


# ---- keys ----------------------------------------------------------------------------------------------


def test_space_runs_and_pauses(qtbot: QtBot, make: Maker) -> None:
    window = make()
    qtbot.keyClick(window, Qt.Key.Key_Space)
    assert calls(window, "pause") == [()]
    assert window.verdict.verdict is not None
    assert window.verdict.verdict.dimmed
    qtbot.keyClick(window, Qt.Key.Key_Space)
    assert calls(window, "resume") == [()]


@pytest.mark.parametrize(
    ("key", "modifier", "call"),
    [
        (Qt.Key.Key_R, Qt.KeyboardModifier.ControlModifier, ("restart",)),
        (Qt.Key.Key_P, Qt.KeyboardModifier.NoModifier, ("profile_now",)),
        (Qt.Key.Key_B, Qt.KeyboardModifier.ControlModifier, ("build", False)),
        (Qt.Key.Key_B, Qt.KeyboardModifier.NoModifier, ("set_baseline", "mha")),
        (Qt.Key.Key_3, Qt.KeyboardModifier.NoModifier, ("set_enabled", ("native", "mha", "extension-aten"))),
        (Qt.Key.Key_3, Qt.KeyboardModifier.ShiftModifier, ("set_baseline", "sdpa")),
    ],
)
def test_each_key_does_what_the_map_says(
    qtbot: QtBot, make: Maker, key: Qt.Key, modifier: Qt.KeyboardModifier, call: tuple[object, ...]
) -> None:
    window = make()
    qtbot.keyClick(window, key, modifier)
    assert call in window.session.calls  # type: ignore[attr-defined]


def test_the_other_keys_open_what_they_name(qtbot: QtBot, make: Maker) -> None:
    window = make()
    control = Qt.KeyboardModifier.ControlModifier
    for number, index in ((Qt.Key.Key_2, BUILD), (Qt.Key.Key_3, SYSTEM), (Qt.Key.Key_1, LIVE)):
        qtbot.keyClick(window, number, control)
        assert window.tabs.tabs.currentIndex() == index
    qtbot.keyClick(window, Qt.Key.Key_L, control)
    assert not window.panel.isVisible()
    for key, modifier in ((Qt.Key.Key_F1, Qt.KeyboardModifier.NoModifier), (Qt.Key.Key_E, control)):
        qtbot.keyClick(window, key, modifier)
        layer = window.findChildren(Overlay)[-1]
        assert layer.isVisible()
        layer.close_layer()


def test_single_letters_are_off_while_a_field_has_the_focus(qtbot: QtBot, make: Maker) -> None:
    window = make()
    field = window.form.row("batch").field
    field.setFocus()
    editor = field.findChild(QLineEdit)
    assert editor is not None
    for key in (Qt.Key.Key_P, Qt.Key.Key_B, Qt.Key.Key_3, Qt.Key.Key_Space):
        qtbot.keyClick(field, key)
    assert window.session.calls == []  # type: ignore[attr-defined]
    qtbot.keyClick(field, Qt.Key.Key_Escape)
    assert not field.hasFocus()
    qtbot.keyClick(window, Qt.Key.Key_P)
    assert calls(window, "profile_now") == [()]


def test_single_letters_are_off_while_a_menu_is_open(qtbot: QtBot, make: Maker) -> None:
    window = make()
    window.commands.open_export_menu()
    focus = QApplication.focusWidget()
    assert focus is not None
    qtbot.keyClick(focus, Qt.Key.Key_P)
    assert calls(window, "profile_now") == []


def test_space_presses_the_button_that_has_the_focus(qtbot: QtBot, make: Maker) -> None:
    window = make()
    window.run_bar.restart.setFocus(Qt.FocusReason.TabFocusReason)
    qtbot.keyClick(window.run_bar.restart, Qt.Key.Key_Space)
    assert calls(window, "restart") == [()]
    assert calls(window, "pause") == []


def test_esc_closes_the_drawer(qtbot: QtBot, make: Maker) -> None:
    window = make()
    window.resize(900, 600)
    window.commands.run("panel")
    assert window.panel.isVisible()
    qtbot.keyClick(window, Qt.Key.Key_Escape)
    assert not window.panel.isVisible()


def test_everything_is_reached_by_tab_and_shows_its_ring(qtbot: QtBot, make: Maker) -> None:
    window = make()
    seen: list[QWidget] = []
    window.run_bar.menu.setFocus(Qt.FocusReason.TabFocusReason)
    for _ in range(80):
        widget = QApplication.focusWidget()
        assert widget is not None
        if widget in seen:
            break
        seen.append(widget)
        window.focusNextChild()
    for wanted in (
        window.run_bar.run,
        window.run_bar.export,
        window.form.profile,
        window.form.row("num_heads").field,
        window.form.switch("causal"),
        window.contenders.row("sdpa"),
        window.verdict.challenger,
        window.tabs.tabs,
        window.tabs.camera,
    ):
        assert wanted in seen, wanted
        wanted.setFocus(Qt.FocusReason.TabFocusReason)
        assert window.ring.target is wanted


# ---- showing -------------------------------------------------------------------------------------------


def test_a_changed_control_reaches_the_session_and_is_not_undone_by_it(qtbot: QtBot, make: Maker) -> None:
    window = make()
    for value in (3, 5, 9):
        window.form.row("batch").field.setValue(value)
        window.session.changed.emit()
        window.refresh()
        assert window.form.row("batch").number() == value
    qtbot.waitUntil(lambda: window.session.workload.batch == 9)


def test_what_the_session_changes_is_shown_in_the_form(make: Maker) -> None:
    window = make()
    window.session.workload = Workload(batch=16, device="cpu")
    window.refresh()
    assert window.form.row("batch").number() == 16


def test_an_impossible_draft_stays_while_samples_come(make: Maker) -> None:
    window = make()
    window.form.row("num_heads").field.setValue(12)
    window.session.changed.emit()
    window.refresh()
    assert window.form.explanation.isVisible()
    assert calls(window, "set_workload") == []


def test_a_flood_of_changes_is_drawn_at_most_ten_times_a_second(qtbot: QtBot, make: Maker) -> None:
    window = make()
    drawn = {"plot": 0, "figures": 0}
    view, figures = window.live.show_snapshot, window._show_figures

    def count_plot(snapshot: object) -> None:
        drawn["plot"] += 1
        view(snapshot)  # type: ignore[arg-type]

    def count_figures(snapshot: object) -> None:
        drawn["figures"] += 1
        figures(snapshot)  # type: ignore[arg-type]

    window.live.show_snapshot = count_plot  # type: ignore[method-assign, assignment]
    window._show_figures = count_figures  # type: ignore[method-assign, assignment]
    began = time.monotonic()
    while time.monotonic() - began < 1.5:
        window.session.changed.emit()
        qtbot.wait(5)
    elapsed = time.monotonic() - began
    assert 1 <= drawn["plot"] <= 10 * elapsed + 1
    assert 1 <= drawn["figures"] <= 4 * elapsed + 1


def test_only_the_tab_in_sight_is_drawn(qtbot: QtBot, make: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    window = make()
    window.tabs.go_to(SYSTEM)
    drawn: list[str] = []
    monkeypatch.setattr(window.live, "show_snapshot", lambda s: drawn.append("live"))
    monkeypatch.setattr(window.system, "show_snapshot", lambda s: drawn.append("system"))
    window.session.changed.emit()
    qtbot.waitUntil(lambda: bool(drawn), timeout=2000)
    assert set(drawn) == {"system"}


def test_figures_left_out_by_the_limit_are_drawn_soon_after(qtbot: QtBot, make: Maker) -> None:
    window = make()
    window.session.changed.emit()
    qtbot.wait(150)
    window.session.challenger = "sdpa"
    window.session.changed.emit()
    qtbot.waitUntil(lambda: window.verdict.challenger.text() == "SDPA", timeout=1000)


def test_the_theme_is_switched_and_kept(make: Maker) -> None:
    window = make()
    assert window.look.theme is DARK
    window.commands.open_main_menu().choose("theme:light")
    assert window.look.theme is LIGHT
    assert window.preferences.kept_theme == "light"
    parts = (window.run_bar, window.form, window.verdict, window.tabs.tabs, window.status, window.ring)
    assert {part.look.theme.name for part in parts} == {"light"}
    assert {view.look.theme.name for view in (window.live, window.build, window.system)} == {"light"}


def test_like_the_system_follows_the_system(make: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    window = make()
    schemes = {"light": Qt.ColorScheme.Light, "dark": Qt.ColorScheme.Dark}

    class Hints:
        scheme = schemes["light"]

        def colorScheme(self) -> Qt.ColorScheme:
            return self.scheme

    monkeypatch.setattr("app.gui.window.QGuiApplication.styleHints", lambda: Hints())
    window.set_theme("system")
    assert window.look.theme is LIGHT
    Hints.scheme = schemes["dark"]
    window._system_theme_changed()
    assert window.look.theme is DARK


def test_the_build_tab_carries_the_builds_news(make: Maker) -> None:
    window = make(in_state("build-failed"))
    assert window.tabs.tabs.news(BUILD) == "error"
    window = make(in_state("building"))
    assert window.tabs.tabs.news(BUILD) == "busy"


def test_verdict_actions_act(qtbot: QtBot, make: Maker) -> None:
    window = make()
    for action, call in (
        ("measure-again", ("restart",)),
        ("restart-worker", ("restart_worker",)),
        ("retry-build", ("build", False)),
        ("cancel-build", ("cancel_build",)),
        ("larger-sequence", ("set_workload", Workload(seq_len=128, mode="forward_backward", device="cpu"))),
    ):
        window.verdict.acted.emit(action)
        assert call in window.session.calls  # type: ignore[attr-defined]
    window.verdict.acted.emit("open-system")
    assert window.tabs.tabs.currentIndex() == SYSTEM
    window.verdict.acted.emit("copy-log")
    assert "[0.2 s] ready" in QApplication.clipboard().text()


def test_waiting_for_a_silent_worker_lasts_until_it_answers(make: Maker) -> None:
    session = in_state("stale")
    window = make(session)
    window.verdict.acted.emit("wait")
    window.refresh()
    assert "asks again in" in window.verdict.evidence.text()
    session.stale_s = None
    window.refresh()
    session.stale_s = 5.0
    window.refresh()
    assert "asks again in" not in window.verdict.evidence.text()


# ---- files ---------------------------------------------------------------------------------------------


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
            assert path.stat().st_size > 0, choice
    trace = json.loads(gzip.decompress((tmp_path / "trace-native.json.gz").read_bytes()))
    assert "traceEvents" in trace
    assert (tmp_path / f"{charts[0].replace(':', '-')}.svg").read_text().startswith("<?xml")
    assert window.banners.banners()[-1].text.startswith("Written: ")


def test_a_name_without_ending_gets_one(make: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    window = make()
    answer(monkeypatch, tmp_path / "samples")
    window.commands.export("samples")
    assert (tmp_path / "samples.csv").is_file()


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


# ---- closing and coming back ---------------------------------------------------------------------------


def test_closing_ends_the_session_once_and_remembers(make: Maker) -> None:
    window = make()
    window.resize(1100, 720)
    window.tabs.go_to(BUILD)
    window.tabs.span.chosen.emit("300")
    window.session.set_baseline("sdpa")
    window.close()
    window.close()
    assert calls(window, "close") == [()]
    again = Preferences.load()
    assert (again.tab, again.window_span, again.baseline) == (BUILD, "300", "sdpa")
    assert again.geometry is not None
    assert again.geometry[2:] == (1100, 720)
    kept = window.session.workload
    assert again.workload == Workload(mode=kept.mode, device="auto"), "the CPU is what auto chooses here"


def test_a_window_that_was_on_a_screen_that_is_gone_is_still_seen(make: Maker) -> None:
    window = make(geometry=(40_000, 40_000, 1000, 700))
    screens = [screen.availableGeometry() for screen in QApplication.screens()]
    assert any(screen.intersects(window.geometry()) for screen in screens)


def test_what_was_wrong_with_the_preferences_is_said(make: Maker) -> None:
    window = make(notice="Preferences were not used (broken)")
    assert window.banners.banners()[0].text == "Preferences were not used (broken)"


def test_a_window_from_a_recording_does_not_remember_its_workload(make: Maker) -> None:
    session = in_state("recorded")
    session.workload = Workload(batch=99)
    window = make(session)
    window.close()
    assert Preferences.load().workload == Workload()


def test_a_click_beside_everything_leaves_a_field(qtbot: QtBot, make: Maker) -> None:
    window = make()
    field = window.form.row("batch").field
    field.setFocus()
    qtbot.mouseClick(window.status, Qt.MouseButton.LeftButton, pos=QPoint(600, 10))
    assert not field.hasFocus()


def test_an_hour_of_refreshing_leaves_no_objects_behind(qtbot: QtBot, make: Maker) -> None:
    from PySide6.QtCore import QEvent, QObject

    session = in_state("faster")
    window = make(session)

    def churn(times: int) -> int:
        for number in range(times):
            session.paused = number % 2 == 0
            session.stale_s = 4.0 if number % 5 == 0 else None
            window.refresh()
            window.commands.open_export_menu().choose("none")
            window.notify("info", f"news {number}")
        QApplication.processEvents()
        QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        return len(window.findChildren(QObject))

    before = churn(20)
    assert churn(60) <= before + 5
