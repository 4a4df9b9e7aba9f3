"""Live in every state: nothing warns, nothing is cut, nothing claims what was not measured."""

from __future__ import annotations

import re

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from app.core import messages as m
from app.gui.parts.text import recorded_overflows
from app.gui.theme import DARK, LIGHT, Theme, Type
from app.gui.views.live import LiveView
from app.gui.views.rows import ON_GPU, as_markdown, columns_of, rows_of
from tests import factories
from tests.gui import scenes

pytestmark = pytest.mark.gui


@pytest.fixture
def live(qtbot) -> LiveView:  # type: ignore[no-untyped-def]
    view = LiveView(DARK, Type())
    qtbot.addWidget(view)
    return view


def words_of(view: QWidget) -> str:
    """Every word that is on a widget of the view, or told to assistive technology."""
    found = []
    for widget in (view, *view.findChildren(QWidget)):
        if widget.isVisibleTo(view):
            text = getattr(widget, "text", None)
            if callable(text) and isinstance(text(), str):
                found.append(text())
            found += [widget.accessibleName(), widget.accessibleDescription(), widget.toolTip()]
    return " ".join(found)


@pytest.mark.parametrize("theme", [DARK, LIGHT], ids=["dark", "light"])
@pytest.mark.parametrize(("width", "height", "small"), [(1128, 624, False), (744, 460, True)])
@pytest.mark.parametrize("scene", scenes.SCENES)
def test_every_state_is_drawn_whole(
    live: LiveView, scene: str, width: int, height: int, small: bool, theme: Theme
) -> None:
    live.set_theme(theme)
    live.set_small(small)
    live.show_snapshot(scenes.SCENES[scene]())
    with recorded_overflows() as cut:
        image = scenes.drawn(live, width, height)
    assert cut == []
    assert scenes.colours(image) > 8


@pytest.mark.parametrize("scene", scenes.ON_CPU)
def test_on_a_cpu_no_word_speaks_of_launches(live: LiveView, scene: str) -> None:
    live.show_snapshot(scenes.SCENES[scene]())
    scenes.drawn(live, 1128, 624)
    assert "launch" not in words_of(live).lower()
    columns = live.table.results.columns
    heads = [live.table.results.headerData(i, Qt.Orientation.Horizontal) for i in range(len(columns))]
    assert "launch" not in " ".join(map(str, heads)).lower()


def test_on_a_gpu_launches_are_the_counts(live: LiveView) -> None:
    live.show_snapshot(scenes.SCENES["on a GPU"]())
    scenes.drawn(live, 1128, 624)
    assert live.counts.title == "Kernel launches"
    assert live.table.results.columns == ON_GPU


def test_cards_do_not_overlap_and_stay_inside(live: LiveView) -> None:
    for scene in scenes.SCENES:
        for width, height, small in ((1128, 624, False), (744, 460, True), (1600, 1000, False)):
            live.set_small(small)
            live.show_snapshot(scenes.SCENES[scene]())
            scenes.drawn(live, width, height)
            shown = [card.geometry() for card in live._cards if card.isVisible()]
            for i, one in enumerate(shown):
                assert live.rect().contains(one), scene
                assert not any(one.intersects(other) for other in shown[i + 1 :]), scene


def test_the_order_of_rows_stays_whatever_is_measured(live: LiveView) -> None:
    made = scenes.begun()
    scenes.drawn(live, 1128, 624)
    for step in range(4):
        factories.measure(
            made, scenes.FOUR, "native", 20, 20.0, {"sdpa": 1 + step}, step, first_round=20 * step
        )
        live.show_snapshot(scenes.snapshot(made))
        assert [row.name for row in live.table.results.rows] == list(scenes.FOUR)


def test_a_wrong_result_withholds_its_speed_up_and_says_so() -> None:
    rows = rows_of(scenes.SCENES["wrong result"]())
    wrong = next(row for row in rows if row.name == "extension-aten")
    assert wrong.cells["speed_up"] == "withheld"
    assert wrong.cells["verdict"] == "WRONG"
    assert wrong.speed is None
    assert wrong.accurate is False
    assert "grad_x" in wrong.tip("accuracy")
    assert not re.search(r"\d×", " ".join(wrong.cells.values()))


def test_what_does_not_run_says_why() -> None:
    rows = {row.name: row for row in rows_of(scenes.SCENES["some do not run"]())}
    assert rows["mha"].sentence.startswith("Not run: this PyTorch")
    assert rows["mha"].detail.startswith("install another PyTorch; before that ")
    assert rows["sdpa"].sentence.startswith("Failed: RuntimeError")
    building = {row.name: row for row in rows_of(scenes.SCENES["first build"]())}
    assert building["extension-aten"].kind == "spinner"
    native = building["native"]
    assert (native.kind, native.disturbed) == ("figures", True)
    assert (native.cells["median"][:1], native.cells["speed_up"]) == ("8", "1.00×")
    assert building["sdpa"].cells["speed_up"] == "–"
    assert "no speed-up" in building["sdpa"].tip("median")
    failed = {row.name: row for row in rows_of(scenes.SCENES["failed build"]())}
    assert failed["extension-aten"].kind == "error"


def test_a_table_says_null_as_a_dash_and_never_as_zero() -> None:
    rows = rows_of(scenes.snapshot(factories.recording(counts=False)))
    for row in rows:
        assert (row.cells["operators"], row.cells["python"], row.cells["peak"]) == ("–", "–", "–")


def test_the_small_layout_names_how_many_columns_it_hides(live: LiveView) -> None:
    live.set_small(True)
    live.show_snapshot(scenes.SCENES["on a GPU"]())
    scenes.drawn(live, 744, 460)
    assert columns_of(scenes.SCENES["on a GPU"](), True)[1] == (
        "device", "kernels", "iqr", "python", "operators", "peak", "profiled",
    )  # fmt: skip
    assert "7 columns hidden" in words_of(live)
    assert not live._distribution_card.isVisible()
    live.show_snapshot(scenes.SCENES["running"]())
    assert "operators" in live.table.results.columns


def test_an_unsure_verdict_turns_the_distribution_into_a_difference(live: LiveView) -> None:
    live.show_snapshot(scenes.SCENES["unsure"]())
    scenes.drawn(live, 1128, 624)
    assert live.distribution.title == "Difference to Native"
    assert list(live.chart_widgets()) == ["Latency per call", "Calls per call", "Difference to Native"]
    live.show_snapshot(scenes.SCENES["running"]())
    assert live.distribution.title == "Latency distribution"


def test_a_first_build_takes_the_place_of_the_distribution(live: LiveView) -> None:
    live.show_snapshot(scenes.SCENES["first build"]())
    scenes.drawn(live, 1128, 624)
    assert live._build_card.isVisible()
    assert not live._distribution_card.isVisible()
    live.show_snapshot(scenes.SCENES["running"]())
    assert not live._build_card.isVisible()


def test_a_click_on_a_row_tells_which(live: LiveView, qtbot) -> None:  # type: ignore[no-untyped-def]
    live.show_snapshot(scenes.SCENES["running"]())
    scenes.drawn(live, 1128, 624)
    place = live.table.visualRect(live.table.results.index(2, 1)).center()
    with qtbot.waitSignal(live.implementation_selected) as signal:
        qtbot.mouseClick(live.table.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(place.x(), place.y()))
    assert signal.args == ["sdpa"]


def test_keys_move_choose_and_copy(live: LiveView, qtbot) -> None:  # type: ignore[no-untyped-def]
    live.show_snapshot(scenes.SCENES["running"]())
    scenes.drawn(live, 1128, 624)
    live.table.setFocus(Qt.FocusReason.TabFocusReason)
    qtbot.keyClick(live.table, Qt.Key.Key_Down)
    with qtbot.waitSignal(live.implementation_selected) as signal:
        qtbot.keyClick(live.table, Qt.Key.Key_Return)
    assert signal.args == ["mha"]
    qtbot.keyClick(live.table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    lines = QGuiApplication.clipboard().text().split("\n")
    assert len(lines) == 5
    assert {line.count("\t") for line in lines} == {10}
    assert lines[1].startswith("Native (step by step)\t")


def test_markdown_holds_every_row_and_escapes_bars() -> None:
    made = scenes.not_running()
    made.apply(m.ContenderState(1, 0, "mha", "unavailable", "a | b\nc"))
    shown = scenes.snapshot(made)
    lines = as_markdown(rows_of(shown), columns_of(shown, False)[0]).split("\n")
    assert len(lines) == 6
    assert "a \\| b c" in lines[3]
    assert {line.replace("\\|", "").count("|") for line in lines} == {12}


def test_the_last_snapshot_is_drawn_even_when_it_comes_too_soon(live: LiveView, qtbot) -> None:  # type: ignore[no-untyped-def]
    made = factories.recording(rounds=20)
    live.show_snapshot(scenes.snapshot(made))
    scenes.drawn(live, 1128, 624)
    before = live.table.results.rows[0].cells["median"]
    factories.measure(
        made, scenes.FOUR, "native", 200, 20.0, dict.fromkeys(scenes.FOUR, 3.0), 2, first_round=20
    )
    live.show_snapshot(scenes.snapshot(made))
    qtbot.waitUntil(lambda: live.table.results.rows[0].cells["median"] != before, timeout=2000)


def test_a_hidden_view_draws_when_it_comes_into_sight(live: LiveView) -> None:
    live.show_snapshot(scenes.SCENES["running"]())
    assert live.table.results.rows == ()
    scenes.drawn(live, 1128, 624)
    assert len(live.table.results.rows) == 4


def test_figures_of_rows_are_announced_with_their_meaning(live: LiveView) -> None:
    live.show_snapshot(scenes.SCENES["running"]())
    scenes.drawn(live, 1128, 624)
    model = live.table.results
    column = model.columns.index("p99")
    tip = model.headerData(column, Qt.Orientation.Horizontal, Qt.ItemDataRole.ToolTipRole)
    assert "ninety-nine samples in a hundred" in str(tip)
    assert model.index(0, 0).data() == "Native (step by step)"
