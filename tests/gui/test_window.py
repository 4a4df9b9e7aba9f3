"""The window as a whole: sizes, themes, how often it draws, what it remembers."""

from __future__ import annotations

import time

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.core.workload import Workload
from app.gui.parts.text import recorded_overflows
from app.gui.preferences import Preferences
from app.gui.tab_area import BUILD, SYSTEM
from app.gui.theme import DARK, LIGHT, SMALL
from tests import factories
from tests.gui.conftest import Maker, WideType
from tests.gui.fakes import calls
from tests.gui.states import STATES, in_state

pytestmark = pytest.mark.gui


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
