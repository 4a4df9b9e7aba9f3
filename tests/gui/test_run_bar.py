"""The toolbar: words give way before anything is cut, readings that are missing are not zero."""

from __future__ import annotations

import itertools

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.core import messages as m
from app.core.build import BuildState
from app.core.environment import Environment
from app.core.recording import Recording
from app.gui.controls.build_chip import words_of
from app.gui.controls.run_bar import RunBar
from app.gui.controls.telemetry_line import readings_of
from app.gui.parts.look import Look
from app.gui.parts.text import recorded_overflows
from app.gui.theme import SMALL
from tests import factories
from tests.gui.conftest import WideType
from tests.gui.states import in_state

pytestmark = pytest.mark.gui


@pytest.fixture
def bar(qtbot: QtBot, look: Look) -> RunBar:
    made = RunBar(look)
    qtbot.addWidget(made)
    made.resize(1440, 56)
    made.show()
    return made


def show(bar: RunBar, recording: Recording, stopped: bool = False) -> None:
    bar.show_state(recording, stopped, True, True)


def test_run_is_primary_only_while_nothing_runs(bar: RunBar) -> None:
    recording = factories.recording(rounds=5)
    show(bar, recording)
    assert (bar.run.text(), bar.run.kind) == ("Pause", "raised")
    show(bar, recording, stopped=True)
    assert (bar.run.text(), bar.run.kind) == ("Run", "primary")


def test_each_button_tells_its_wish(qtbot: QtBot, bar: RunBar) -> None:
    for button, signal in (
        (bar.menu, bar.menu_requested),
        (bar.run, bar.run_toggled),
        (bar.restart, bar.restart_requested),
        (bar.profile, bar.profile_requested),
        (bar.chip, bar.build_requested),
        (bar.export, bar.export_requested),
    ):
        button.setEnabled(True)
        with qtbot.waitSignal(signal):
            qtbot.mouseClick(button, Qt.MouseButton.LeftButton)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("state", ["faster", "building", "build-failed"])
@pytest.mark.parametrize("width", [1440, 1250, 1024, 900])
def test_nothing_is_cut_and_nothing_overlaps(
    qtbot: QtBot, look: Look, wide: bool, state: str, width: int
) -> None:
    used = Look(look.theme, WideType() if wide else look.type, motion=False)
    bar = RunBar(used.with_sizes(SMALL) if width < 1200 else used)
    qtbot.addWidget(bar)
    bar.resize(width, 56)
    bar.show()
    recording = in_state(state).recording
    factories.telemetry(recording, 60)
    show(bar, recording)
    qtbot.wait(1)
    with recorded_overflows() as found:
        bar.grab()
    assert found == []
    parts = [bar.menu, bar.logo, bar.run, bar.restart, bar.profile, bar.chip, bar.export, bar.telemetry]
    for left, right in itertools.pairwise(parts):
        assert left.geometry().right() < right.geometry().left()
    assert bar.telemetry.geometry().right() <= width


def test_a_button_that_lost_its_word_is_still_named(bar: RunBar) -> None:
    bar.set_look(bar.look.with_sizes(SMALL))
    show(bar, factories.recording(rounds=5))
    assert bar.restart.text() == ""
    assert bar.restart.accessibleName() == "Measure this workload anew (Ctrl+R)"


# ---- the build chip ------------------------------------------------------------------------------------


def test_the_chip_tells_where_the_build_stands() -> None:
    build = BuildState()
    assert words_of(build).long == "Extension not built"
    build.apply(m.BuildStep("check", "started"))
    assert words_of(build).long == "Checking the compiler"
    build.apply(m.BuildStep("compile", "started"))
    build.apply(m.BuildProgress(1, 3, 2.0))
    assert words_of(build).long == "Extension compiling 1/3"
    assert words_of(build).share == pytest.approx(1 / 3)
    build.apply(m.BuildFailed("compile", "no"))
    assert words_of(build).long == "Build failed · show"
    build.apply(m.BuildFinished("x.so", "key", True, 0.2))
    assert words_of(build).long == "Extension built · cached · 0.2 s"
    assert words_of(build).short == "built · 0.2 s"
    build.apply(m.BuildFinished("x.so", "key", True, 0.004))
    assert (words_of(build).long, words_of(build).short) == ("Extension built · cached", "built · cached")


# ---- readings ------------------------------------------------------------------------------------------


def test_what_the_machine_does_not_offer_is_left_out() -> None:
    readings = readings_of(m.Telemetry(1.0, others_percent=None, clock_hz=None, on_mains=None), None)
    assert readings == ()


def test_readings_say_other_load_clock_and_no_gpu() -> None:
    only_cpu = Environment(devices=(factories.environment().devices[0],))
    readings = readings_of(m.Telemetry(1.0, others_percent=4.0, clock_hz=2.0e9, on_mains=True), only_cpu)
    assert [(r.name, r.value.replace("\u202f", " ").replace("\u2009", " "), r.level) for r in readings] == [
        ("Other load", "4 %", ""),
        ("Clock", "2.0 GHz", ""),
        ("", "no GPU", ""),
    ]


def test_a_greyed_gpu_has_no_readings_and_is_not_called_absent() -> None:
    assert readings_of(None, factories.environment()) == ()


def test_warnings_become_pills() -> None:
    reading = m.Telemetry(
        1.0, others_percent=40.0, on_mains=False, gpu_temperature_c=88.0, gpu_throttled="thermal"
    )
    readings = readings_of(reading, None)
    assert [(r.icon, r.level) for r in readings] == [
        ("cpu", "warning"),
        ("gpu", ""),
        ("warning", "error"),
        ("battery", "warning"),
    ]
    assert readings[2].value == "GPU throttled: 88 °C"
