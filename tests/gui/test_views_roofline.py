"""The roofline view: measured ceilings or a sentence, points in words, asked for once."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.core import messages as m
from app.core.files import document_of, parse
from app.core.plan import Plan
from app.core.recording import Recording
from app.core.roofline_axes import axes_of
from app.core.workload import Workload
from app.gui.charts.export import export_widget
from app.gui.parts.text import recorded_overflows
from app.gui.theme import DARK, LIGHT, Theme, Type
from app.gui.views.roofline import RooflineView
from app.gui.views.share_table import columns_of
from tests import factories
from tests.core.test_work import peaks
from tests.gui import scenes

pytestmark = pytest.mark.gui
FAST = peaks(compute=2e12, memory=60e9)


@pytest.fixture
def view(qtbot: QtBot, qapp: QApplication) -> RooflineView:
    made = RooflineView(DARK, Type())
    qtbot.addWidget(made)
    return made


def known(workload: Workload | None = None, ceilings: object = FAST) -> Recording:
    made = factories.recording(workload)
    made.apply(m.PeaksMeasured(ceilings))  # type: ignore[arg-type]
    return made


def both() -> Recording:
    """A training step and, of the same shape, forward alone."""
    made = known()
    step = made.records[0].workload
    forward = msgspec.structs.replace(step, mode="forward")
    names = scenes.FOUR
    made.begin(m.Start(2, Plan((forward,), names), live=True))
    factories.measure(made, names, "native", 40, 20.0, dict.fromkeys((*names, "@twin"), 0.33), 3)
    made.begin(m.Start(1, Plan((step,), names), live=True))
    for name in names:
        made.apply(m.ContenderState(1, 0, name, "ready"))
    return made


def own() -> Recording:
    made = scenes.eight()
    made.apply(m.PeaksMeasured(FAST))
    return made


MAKERS = {
    "step": known,
    "forward": lambda: known(Workload(device="cpu")),
    "both": both,
    "above the roof": lambda: known(ceilings=peaks(compute=1e9, memory=1e9)),
    "far below": lambda: known(ceilings=peaks(compute=1e15, memory=1e14)),
    "no ceilings": factories.recording,
    "first build": scenes.first_build,
    "not begun": scenes.begun,
    "eight": own,
    "on a GPU": scenes.on_gpu,
}


@pytest.mark.parametrize("theme", [DARK, LIGHT], ids=["dark", "light"])
@pytest.mark.parametrize(("width", "height", "small"), [(1128, 624, False), (744, 460, True)])
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_every_state_is_drawn_whole(view: RooflineView, make, width, height, small, theme: Theme) -> None:  # type: ignore[no-untyped-def]
    view.set_theme(theme)
    view.set_small(small)
    view.show_snapshot(scenes.snapshot(make()))
    with recorded_overflows() as cut:
        image = scenes.drawn(view, width, height)
    assert cut == []
    assert scenes.colours(image) > 4
    assert view._scroll.widget().width() <= view._scroll.viewport().width()


def test_ceilings_are_asked_for_once_and_again_by_hand(view: RooflineView, qtbot: QtBot) -> None:
    asked: list[bool] = []
    view.peaks_requested.connect(asked.append)
    made = factories.recording()
    for _ in range(3):
        view.show_snapshot(scenes.snapshot(made))
        scenes.drawn(view, 1128, 624)
        view._draw(scenes.snapshot(made))
    assert asked == [False]
    assert "three seconds" in view.chart.message
    made.apply(m.PeaksMeasured(FAST))
    view._draw(scenes.snapshot(made))
    qtbot.mouseClick(view.again, Qt.MouseButton.LeftButton)
    assert asked == [False, True]


def test_known_ceilings_are_not_asked_for(view: RooflineView) -> None:
    asked: list[bool] = []
    view.peaks_requested.connect(asked.append)
    view.show_snapshot(scenes.snapshot(known()))
    scenes.drawn(view, 1128, 624)
    assert asked == []
    facts = {fact.label: fact.value for fact in view.ceilings.facts}
    assert facts["Compute"] == "2,000\u202fGFLOP/s"
    assert facts["Memory"] == "60.0\u202fGB/s"


def test_a_recording_shows_its_own_ceilings_and_measures_none(view: RooflineView) -> None:
    asked: list[bool] = []
    view.peaks_requested.connect(asked.append)
    opened = parse(m.encoded(document_of(both())), "elsewhere.json")
    view.show_snapshot(scenes.snapshot(opened, recorded=True, running=False))
    scenes.drawn(view, 1128, 624)
    assert view.chart.roofline is not None
    assert len(view.chart.roofline.points) == 8
    assert view.again.isHidden()
    without = parse(m.encoded(document_of(factories.recording())), "elsewhere.json")
    view._draw(scenes.snapshot(without, recorded=True, running=False))
    assert "has no ceilings" in view.chart.message
    assert asked == []


def test_while_it_is_measured_and_where_it_is_refused_that_is_said(view: RooflineView) -> None:
    made = factories.recording()
    made.apply(m.PeaksStarted("cpu", "float32"))
    view.show_snapshot(scenes.snapshot(made))
    scenes.drawn(view, 1128, 624)
    assert {fact.value for fact in view.ceilings.facts} == {"measuring"}
    assert not view.again.isEnabled()
    made.apply(m.PeaksRefused("cpu", "float32", "the peaks cannot be measured: no memory"))
    view._draw(scenes.snapshot(made))
    assert view.chart.message == "the peaks cannot be measured: no memory"
    assert view.again.isEnabled()


def test_a_build_is_waited_for_and_said(view: RooflineView) -> None:
    view.show_snapshot(scenes.snapshot(scenes.first_build()))
    scenes.drawn(view, 1128, 624)
    assert "when the build is done" in view.chart.message


def test_shares_stand_beside_each_contender_by_phase(view: RooflineView) -> None:
    view.show_snapshot(scenes.snapshot(both()))
    scenes.drawn(view, 1128, 624)
    roofline = view.chart.roofline
    assert roofline is not None
    assert columns_of(roofline) == ("forward", "backward", "decode")
    point = roofline.point("sdpa", "backward")
    assert point is not None
    assert view.shares.cell("sdpa", "backward") == point.share_text
    assert view.shares.cell("mha", "decode") == "no cache"
    assert view.shares.cell("sdpa", "decode") == "–"
    assert "roof" in view.shares.accessibleDescription()
    assert columns_of(roofline, narrow=True) == ("forward", "backward")


def test_a_step_stands_where_its_backward_pass_cannot_be_told_apart(view: RooflineView) -> None:
    view.show_snapshot(scenes.snapshot(known()))
    scenes.drawn(view, 1128, 624)
    assert columns_of(view.chart.roofline) == ("forward", "step", "decode")
    assert "Measure forward of this shape" in view.remarks[0]


def test_a_point_is_where_its_numbers_are_and_says_them(view: RooflineView) -> None:
    view.show_snapshot(scenes.snapshot(known()))
    scenes.drawn(view, 1128, 624)
    chart = view.chart
    assert chart.roofline is not None
    axes = axes_of(chart.roofline)
    assert axes is not None
    plot = chart._plot(QRectF(chart.rect()))
    for point in chart.roofline.points:
        spot = chart._spot(plot, axes, point)
        assert plot.contains(spot)
        assert point.words in chart.tip_at(spot)
    assert chart.tip_at(QPointF(plot.right() - 5, plot.bottom() - 5)) == ""
    assert all(point.words in chart.accessibleDescription() for point in chart.roofline.points)


def test_labels_never_lie_on_one_another_or_on_points(view: RooflineView) -> None:
    view.show_snapshot(scenes.snapshot(both()))
    scenes.drawn(view, 1128, 624)
    chart = view.chart
    placed: list[QRectF] = []
    free = chart._free

    def noted(*arguments: object) -> QRectF | None:
        found = free(*arguments)  # type: ignore[arg-type]
        taken = arguments[3]
        if found is not None:
            assert not any(found.intersects(other) for other in taken)  # type: ignore[attr-defined]
            placed.append(found)
        return found

    chart._free = noted  # type: ignore[method-assign]
    chart.grab()
    assert len(placed) >= 2


def test_the_chart_is_written_as_a_picture(view: RooflineView, tmp_path: Path) -> None:
    view.show_snapshot(scenes.snapshot(both()))
    scenes.drawn(view, 1128, 624)
    for suffix in (".svg", ".png"):
        path = tmp_path / f"roofline{suffix}"
        export_widget(view.chart, path)
        assert path.stat().st_size > 5000
    assert "memory bound" in (tmp_path / "roofline.svg").read_text()


def test_points_are_not_worked_out_anew_with_every_frame(
    view: RooflineView, monkeypatch: pytest.MonkeyPatch
) -> None:
    from app.gui.views import roofline as module

    made = both()
    view.show_snapshot(scenes.snapshot(made))
    scenes.drawn(view, 1128, 624)
    calls: list[int] = []
    real = module.roofline_of
    monkeypatch.setattr(module, "roofline_of", lambda *a: calls.append(1) or real(*a))
    monkeypatch.setattr(module, "_EVERY_S", 1000.0)
    for _ in range(5):
        view._draw(scenes.snapshot(made))
    assert calls == []
    made.apply(m.PeaksMeasured(peaks(compute=3e12, measured_at_s=FAST.measured_at_s + 1)))
    view._draw(scenes.snapshot(made))
    assert calls == [1]
