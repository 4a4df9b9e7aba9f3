"""System: devices with the way out, the doctor's list, readings that are there and that are not."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from app.core import messages as m
from app.core.recording import Recording
from app.gui.charts.telemetry import NOT_OFFERED
from app.gui.parts.text import recorded_overflows
from app.gui.theme import DARK, LIGHT, Theme, Type
from app.gui.views.system import SystemView, facts_of
from app.gui.views.system_cards import pieces
from tests import factories
from tests.gui import scenes
from tests.gui.test_views_live import words_of

pytestmark = pytest.mark.gui


def full() -> Recording:
    made = factories.recording(rounds=20)
    factories.telemetry(made)
    return made


def bare() -> Recording:
    """A machine that offers next to nothing."""
    made = scenes.with_environment(
        factories.recording(rounds=20), devices=factories.environment().devices[:1]
    )
    for second in range(5):
        made.apply(m.Telemetry(at_s=factories.START_S + second))
    return made


def unknown() -> Recording:
    made = scenes.begun()
    made.environment = None
    return made


@pytest.fixture
def view(qtbot) -> SystemView:  # type: ignore[no-untyped-def]
    shown = SystemView(DARK, Type())
    qtbot.addWidget(shown)
    return shown


@pytest.mark.parametrize("theme", [DARK, LIGHT], ids=["dark", "light"])
@pytest.mark.parametrize(("width", "height", "small"), [(1128, 624, False), (744, 460, True)])
@pytest.mark.parametrize("make", [full, bare, unknown])
def test_every_state_is_drawn_whole(view: SystemView, make, width, height, small, theme: Theme) -> None:  # type: ignore[no-untyped-def]
    view.set_theme(theme)
    view.set_small(small)
    view.show_snapshot(scenes.snapshot(make()))
    with recorded_overflows() as cut:
        image = scenes.drawn(view, width, height)
    assert cut == []
    assert scenes.colours(image) > 6
    assert view._scroll.widget().width() <= view._scroll.viewport().width()


def test_a_device_in_use_and_one_that_cannot_be_used(view: SystemView, qtbot) -> None:  # type: ignore[no-untyped-def]
    view.show_snapshot(scenes.snapshot(full()))
    scenes.drawn(view, 1128, 624)
    assert [row.word for row in view.devices] == ["IN USE", "NOT USABLE"]
    box = view.devices[1].box
    assert box is not None
    assert box.copy.kind == "primary"
    qtbot.mouseClick(box.copy, Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text() == factories.environment().devices[1].command
    assert "Keep the driver" in words_of(view)


def test_a_command_is_broken_where_a_shell_reads_on(view: SystemView) -> None:
    view.show_snapshot(scenes.snapshot(full()))
    scenes.drawn(view, 1128, 624)
    box = view.devices[1].box
    assert box is not None
    for width in (300, 500, 2000):
        lines = box.lines(width)
        assert " ".join(line.removesuffix("\\").strip() for line in lines) == box.command
        assert all(line.endswith("\\") for line in lines[:-1])
        assert not lines[-1].endswith("\\")
    assert pieces("pip install x --index-url https://a") == ["pip", "install", "x", "--index-url https://a"]


def test_a_machine_without_gpu_hears_no_word_of_launches(view: SystemView) -> None:
    for make in (bare, unknown):
        view.show_snapshot(scenes.snapshot(make()))
        scenes.drawn(view, 1128, 624)
        assert "launch" not in words_of(view).lower()
        assert "launch" not in view.report_text().lower()


def test_readings_that_are_not_offered_say_so(view: SystemView) -> None:
    view.show_snapshot(scenes.snapshot(bare()))
    scenes.drawn(view, 1128, 624)
    assert [trend.accessibleDescription() for trend in view.trends.values()] == [NOT_OFFERED] * 4
    view.show_snapshot(scenes.snapshot(full()))
    view._draw(scenes.snapshot(full()))
    assert not any(trend.accessibleDescription() == NOT_OFFERED for trend in view.trends.values())


def test_the_doctor_lists_failures_first_and_counts_all(view: SystemView) -> None:
    view.show_snapshot(scenes.snapshot(full()))
    scenes.drawn(view, 1128, 624)
    levels = [row.check.level for row in view.check_rows]
    assert levels == sorted(levels, key=["fail", "warning", "ok", "optional"].index)
    assert view.counts.accessibleName() == "0 failed, 2 warnings, 7 ok, 2 optional"


def test_check_again_is_asked_of_the_worker(view: SystemView, qtbot) -> None:  # type: ignore[no-untyped-def]
    view.show_snapshot(scenes.snapshot(full()))
    scenes.drawn(view, 1128, 624)
    with qtbot.waitSignal(view.check_again_requested):
        qtbot.mouseClick(view.again, Qt.MouseButton.LeftButton)


def test_the_report_holds_environment_and_checks(view: SystemView, qtbot) -> None:  # type: ignore[no-untyped-def]
    view.show_snapshot(scenes.snapshot(full()))
    scenes.drawn(view, 1128, 624)
    qtbot.mouseClick(view.report, Qt.MouseButton.LeftButton)
    text = QGuiApplication.clipboard().text()
    assert "PyTorch: 2.13.0+cpu no sm_61" in text
    assert "[warning] Power: on battery" in text


def test_what_a_machine_does_not_offer_is_left_out() -> None:
    labels = [fact.label for fact in facts_of(factories.environment())]
    assert "Driver" not in labels
    assert labels[-1] == "Window"
    assert [fact.label for fact in facts_of(None)] == ["Window"]


def test_rows_are_not_made_anew_while_nothing_changes(view: SystemView) -> None:
    made = full()
    view.show_snapshot(scenes.snapshot(made))
    scenes.drawn(view, 1128, 624)
    widgets = len(view.findChildren(QWidget))
    rows = view.check_rows
    for step in range(50):
        view._draw(scenes.snapshot(made, now_s=factories.START_S + 60 + step))
    assert view.check_rows is rows
    assert len(view.findChildren(QWidget)) == widgets


def test_lines_of_the_doctor_stand_apart(view: SystemView) -> None:
    view.resize(1128, 624)
    view.show_snapshot(scenes.snapshot(full()))
    view.show()
    view.grab()
    assert min(row.height() for row in view.check_rows) >= 30
