"""The accuracy view: every figure of every tensor, what is wrong in red, why there is none where there is none."""

from __future__ import annotations

import msgspec
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.core import messages as m
from app.core.measurements import BEYOND
from app.core.recording import Recording
from app.core.workload import Workload
from app.gui.accuracy_data import decades, rows_of, standings_of, subject_of, zero_note
from app.gui.parts.text import recorded_overflows
from app.gui.theme import DARK, LIGHT, Theme, Type
from app.gui.views.accuracy import AccuracyView
from tests import factories
from tests.gui import scenes

pytestmark = pytest.mark.gui


@pytest.fixture
def view(qtbot: QtBot, qapp: QApplication) -> AccuracyView:
    made = AccuracyView(DARK, Type())
    qtbot.addWidget(made)
    return made


def in_part() -> Recording:
    made = factories.recording()
    accuracy = msgspec.structs.replace(factories.accuracy(), checked_batch=2)
    made.apply(m.Checked(1, 0, "extension-aten", accuracy))
    return made


def no_number() -> Recording:
    made = factories.recording()
    accuracy = factories.accuracy("output")
    worst = msgspec.structs.replace(accuracy.tensors["output"], max_abs=BEYOND, rel_l2=None, bias=None)
    tensors = {**accuracy.tensors, "output": worst}
    made.apply(m.Checked(1, 0, "extension-aten", msgspec.structs.replace(accuracy, tensors=tensors)))
    return made


MAKERS = {
    "right": factories.recording,
    "wrong": lambda: factories.recording(wrong="grad_v_weight"),
    "forward": lambda: factories.recording(Workload(device="cpu")),
    "in part": in_part,
    "no number": no_number,
    "not begun": scenes.begun,
    "eight": scenes.eight,
    "not running": scenes.not_running,
}


@pytest.mark.parametrize("theme", [DARK, LIGHT], ids=["dark", "light"])
@pytest.mark.parametrize(("width", "height", "small"), [(1128, 624, False), (744, 460, True)])
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_every_state_is_drawn_whole(view: AccuracyView, make, width, height, small, theme: Theme) -> None:  # type: ignore[no-untyped-def]
    view.set_theme(theme)
    view.set_small(small)
    view.show_snapshot(scenes.snapshot(make()))
    with recorded_overflows() as cut:
        image = scenes.drawn(view, width, height)
    assert cut == []
    assert scenes.colours(image) > 6
    assert view._scroll.widget().width() <= view._scroll.viewport().width()


def test_ten_tensors_fit_a_window_of_the_smallest_size_the_design_knows(view: AccuracyView) -> None:
    view.set_small(True)
    view.show_snapshot(scenes.snapshot(factories.recording(wrong="grad_x")))
    scenes.drawn(view, 744, 460)
    assert view._scroll.verticalScrollBar().maximum() == 0


def test_a_row_has_every_figure_beside_the_bound() -> None:
    entry = scenes.snapshot(factories.recording()).entry("sdpa")
    rows = {row.name: row for row in rows_of(entry)}
    assert list(rows)[:2] == ["output", "grad x"]
    output = rows["output"]
    assert (output.ours, output.native, output.factor, output.bound) == (
        "3.0e-07",
        "2.9e-07",
        "2 ×",
        "6.0e-07",
    )
    assert output.used == "50\u202f%"
    assert (output.rel_l2, output.one_minus_cosine, output.bias) == ("1.0e-07", "1.0e-12", "−1.0e-09")
    assert rows["grad x"].factor == "3 ×"
    assert rows["grad k_bias"].rel_l2 == rows["grad k_bias"].one_minus_cosine == "–"
    assert zero_note(rows_of(entry)) == "k_bias: the true gradient is 0, no rel. L2 or cosine"
    assert "within its bound" in output.sentence


def test_only_what_is_wrong_is_red_and_says_how_far(view: AccuracyView) -> None:
    view.show_snapshot(scenes.snapshot(factories.recording(wrong="grad_v_weight")))
    scenes.drawn(view, 1128, 624)
    wrong = [row for row in view.tensors.rows if not row.ok]
    assert [row.name for row in wrong] == ["grad v_weight"]
    assert wrong[0].used == "68,333×"
    assert "1 of 10 exceeds its bound" in view.card.subtitle.text()
    assert "beyond its bound" in view.tensors.tip_at(_middle(view, 6))


def _middle(view: AccuracyView, index: int):  # type: ignore[no-untyped-def]
    from PySide6.QtCore import QPointF

    chart = view.tensors
    head = chart._heights()[0]
    pitch = (chart.height() - sum(chart._heights())) / len(chart.rows)
    return QPointF(200, head + min(pitch, 36.0) * (index + 0.5))


def test_the_first_that_is_wrong_is_shown_unless_another_is_asked_for() -> None:
    made = factories.recording()
    made.apply(m.Checked(1, 0, "mha", factories.accuracy("output")))
    snapshot = scenes.snapshot(made, "extension-aten")
    assert subject_of(snapshot, None).implementation == "mha"  # type: ignore[union-attr]
    assert subject_of(snapshot, "sdpa").implementation == "sdpa"  # type: ignore[union-attr]
    right = scenes.snapshot(factories.recording(), "sdpa")
    assert subject_of(right, None).implementation == "sdpa"  # type: ignore[union-attr]


def test_forward_alone_shows_the_output_of_every_contender(view: AccuracyView) -> None:
    view.show_snapshot(scenes.snapshot(factories.recording(Workload(device="cpu"))))
    scenes.drawn(view, 1128, 624)
    assert [row.implementation for row in view.tensors.rows] == ["native", "mha", "sdpa", "extension-aten"]
    assert "nine gradients" in view.card.subtitle.text()


def test_a_line_of_every_implementation_shows_its_tensors(view: AccuracyView, qtbot: QtBot) -> None:
    view.show_snapshot(scenes.snapshot(factories.recording(wrong="grad_x")))
    scenes.drawn(view, 1128, 624)
    assert [(s.name, s.word, s.tensor) for s in view.standings.rows] == [
        ("native", "sets the bound", ""),
        ("mha", "", "output"),
        ("sdpa", "", "output"),
        ("extension-aten", "", "grad x"),
    ]
    with qtbot.waitSignal(view.implementation_selected) as signal:
        qtbot.mouseClick(view.standings, Qt.MouseButton.LeftButton, pos=QPoint(30, 2 * 27 + 10))
    assert signal.args == ["sdpa"]
    assert "SDPA" in view.card.title.text()
    with qtbot.waitSignal(view.implementation_selected) as signal:
        qtbot.keyClick(view.standings, Qt.Key.Key_Down)
    assert signal.args == ["extension-aten"]
    assert "Extension (ATen)" in view.card.title.text()


def test_a_wrong_baseline_does_not_set_the_bound_in_words() -> None:
    made = factories.recording()
    made.apply(m.Checked(1, 0, "native", factories.accuracy("output")))
    first = standings_of(scenes.snapshot(made))[0]
    assert (first.word, first.ok, first.tensor) == ("", False, "output")


def test_a_part_of_the_batch_is_said(view: AccuracyView) -> None:
    view.show_snapshot(scenes.snapshot(in_part()))
    scenes.drawn(view, 1128, 624)
    facts = {fact.label: fact.value for fact in view._inputs.facts}
    assert facts["Checked"] == "2 of 8 sequences"


def test_why_nothing_is_checked_is_said(view: AccuracyView) -> None:
    view.show_snapshot(scenes.snapshot(scenes.begun()))
    scenes.drawn(view, 1128, 624)
    assert "not checked yet" in view.tensors.message
    made = factories.recording(counts=False)
    made.records[0].accuracy.clear()
    made.apply(
        m.Notice("warning", "accuracy is not checked at 8×64×128: its reference would take too much", 1.0)
    )
    view._draw(scenes.snapshot(made))
    assert "take too much" in view.tensors.message


def test_the_axis_is_whole_decades_about_every_mark() -> None:
    entry = scenes.snapshot(factories.recording(wrong="grad_x")).entry("extension-aten")
    assert decades(rows_of(entry)) == (-7, -1)
    assert decades(()) == (-9, -5)
    beyond = scenes.snapshot(no_number()).entry("extension-aten")
    low, high = decades(rows_of(beyond))
    assert -8 <= low < high <= 0


def test_the_report_holds_workload_and_every_figure(view: AccuracyView, qtbot: QtBot) -> None:
    view.show_snapshot(scenes.snapshot(in_part()))
    scenes.drawn(view, 1128, 624)
    qtbot.mouseClick(view.copy, Qt.MouseButton.LeftButton)
    text = QGuiApplication.clipboard().text()
    assert "seq_len = 64" in text
    assert "SDPA\tgrad_x\t3.0e-07\t2.9e-07\t6.0e-07" in text
    assert "Checked on 2 of 8 sequences alone" in text


def test_reproduction_is_asked_of_the_window(view: AccuracyView, qtbot: QtBot) -> None:
    view.show_snapshot(scenes.snapshot(factories.recording()))
    scenes.drawn(view, 1128, 624)
    with qtbot.waitSignal(view.command_requested):
        qtbot.mouseClick(view.reproduce, Qt.MouseButton.LeftButton)
