"""Fractional scaling and other fonts: no text is cut, and a picture is as sharp as the screen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtGui import QFont, QFontDatabase

from app.gui.parts.text import recorded_overflows
from app.gui.theme import DARK, Type
from app.gui.views.build import BuildView
from app.gui.views.frame import View
from app.gui.views.live import LiveView
from app.gui.views.system import SystemView
from tests import factories
from tests.gui import scenes

pytestmark = pytest.mark.gui

ROOT = Path(__file__).resolve().parents[2]
SIZES = ((1128, 624, False), (744, 460, True))

SCALED = """
import json, sys
from PySide6.QtWidgets import QApplication
application = QApplication([])
from tests.gui.test_views_scaling import every_view
image, cut = every_view()
print(json.dumps({"cut": cut, "ratio": image.devicePixelRatio(), "width": image.width()}))
"""


def shown() -> tuple[tuple[View, str], ...]:
    type_ = Type()
    return tuple((make(DARK, type_), make.__name__) for make in (LiveView, BuildView, SystemView))


def every_view():  # type: ignore[no-untyped-def]
    """Draw all three views in both sizes; the last picture of Live, and every text that was cut."""
    made = factories.recording()
    factories.telemetry(made)
    image, cut = None, []
    for width, height, small in SIZES:
        for view, name in shown():
            view.set_small(small)
            view.show_snapshot(scenes.snapshot(made))
            with recorded_overflows() as found:
                drawn = scenes.drawn(view, width, height)
            cut += [[name, width, one.text, one.needed, one.given] for one in found]
            if name == "LiveView":
                image = drawn
            view.hide()
    return image, cut


@pytest.mark.parametrize("factor", ["1", "1.25", "2"])
def test_nothing_is_cut_at_any_scale(factor: str) -> None:
    environment = {
        **os.environ,
        "QT_SCALE_FACTOR": factor,
        "QT_QPA_PLATFORM": "offscreen",
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(
        [sys.executable, "-c", SCALED], env=environment, cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["cut"] == []
    assert told["ratio"] == pytest.approx(float(factor))
    assert told["width"] == pytest.approx(744 * float(factor), abs=2)


def test_a_wide_system_font_is_set_smaller_and_cuts_nothing(qtbot, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    """Inter drawn 14 % wider stands for the fonts of systems that have none of ours."""
    plain = Type.font

    def wide(self: Type, size: int, weight: int = 400, mono: bool = False) -> QFont:
        font = plain(self, size, weight, mono)
        font.setStretch(114)
        return font

    monkeypatch.setattr(Type, "font", wide)
    _, cut = every_view()
    assert cut == []


@pytest.mark.parametrize("family", ["DejaVu Sans", "Droid Sans Fallback"])
def test_fonts_of_other_systems_cut_nothing(qtbot, monkeypatch: pytest.MonkeyPatch, family: str) -> None:  # type: ignore[no-untyped-def]
    if family not in QFontDatabase.families():
        pytest.skip(f"{family} is not installed")
    begin = Type.__init__

    def other(self: Type) -> None:
        begin(self)
        self.family = family
        self._smaller = 1 if family == "DejaVu Sans" else self._smaller

    monkeypatch.setattr(Type, "__init__", other)
    _, cut = every_view()
    assert cut == []
