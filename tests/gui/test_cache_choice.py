"""Warm or cold beside the workload: declared once, told once, shown in every label."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.core import messages as m
from app.core.fields import fields_of
from app.core.plan import Measure, Plan, copy_as_command, plan_from
from app.core.workload import Workload
from app.exports.formats import FORMATS
from app.gui.charts.host import environment_line
from app.gui.controls.cache_choice import CacheChoice
from app.gui.status_bar import left_level
from tests import factories
from tests.gui import scenes
from tests.gui.conftest import Maker
from tests.gui.fakes import calls

pytestmark = pytest.mark.gui


def cold() -> object:
    workload = Workload(device="cpu")
    names = ("native", "sdpa")
    made = factories.recording(workload, names, rounds=20)
    made.begin(m.Start(2, Plan((workload,), names, measure=Measure(cache="cold")), live=True))
    factories.measure(made, names, "native", 20, 20.0, {}, 2)
    return made


def test_it_is_what_the_field_declares(qtbot: QtBot, qapp: QApplication) -> None:
    choice = CacheChoice(scenes.look_of())
    qtbot.addWidget(choice)
    field = fields_of(Measure)["cache"]
    assert choice.label.text() == field.title
    assert choice.segments.toolTip() == field.help
    assert [choice.segments.segment(c).text() for c in field.choices] == ["Warm", "Cold"]


def test_a_choice_is_told_and_what_is_shown_is_not(qtbot: QtBot, qapp: QApplication) -> None:
    choice = CacheChoice(scenes.look_of())
    qtbot.addWidget(choice)
    choice.show_cache("warm")
    told: list[str] = []
    choice.chosen.connect(told.append)
    choice.show_cache("cold")
    assert told == []
    choice.show()
    qtbot.mouseClick(choice.segments.segment("warm"), Qt.MouseButton.LeftButton)
    assert told == ["warm"]


def test_the_window_measures_as_it_was_chosen(qtbot: QtBot, make: Maker) -> None:
    window = make()
    qtbot.mouseClick(window.cache.segments.segment("cold"), Qt.MouseButton.LeftButton)
    assert calls(window, "set_cache") == [("cold",)]


def test_cold_stands_in_every_label() -> None:
    made = cold()
    snapshot = scenes.snapshot(made, "sdpa")  # type: ignore[arg-type]
    assert snapshot.record is not None
    assert snapshot.record.cache == "cold"
    assert "cold cache" in environment_line(snapshot)
    assert any("cache cold" in getattr(piece, "text", "") for piece in left_level(snapshot))
    for form in ("md", "html"):
        text = FORMATS[form](made).decode()  # type: ignore[arg-type]
        assert f"{snapshot.record.workload.label}, cold cache, cpu" in text
    assert ",cold," in FORMATS["csv"](made).decode()  # type: ignore[arg-type]
    assert '"cache": "cold"' in FORMATS["json"](made).decode()  # type: ignore[arg-type]


def test_a_profile_and_a_flag_choose_it_and_the_command_says_so() -> None:
    assert plan_from({"measure": {"cache": "cold"}}).measure.cache == "cold"
    with pytest.raises(ValueError, match="one of warm, cold"):
        plan_from({"measure": {"cache": "lukewarm"}})
    command = copy_as_command(Workload(), ("native",), "native", "quick", "cold")
    assert "--set measure.cache=cold" in command
    assert "measure.cache" not in copy_as_command(Workload(), ("native",), "native", "quick")
