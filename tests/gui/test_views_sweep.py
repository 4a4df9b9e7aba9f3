"""The Sweep tab: what is drawn in every state, what is claimed, and what hands can do."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.core.sweep import sweep_plan
from app.core.workload import Workload
from app.exports import csv_sweep
from app.gui.charts.export import export_widget
from app.gui.charts.heat_scale import HeatScale, ink_on
from app.gui.charts.sweep_curves import time_label
from app.gui.parts.text import recorded_overflows
from app.gui.sweep_run import SweepStatus
from app.gui.theme import DARK, LIGHT, Theme, Type, contrast
from app.gui.views.sweep import SweepView
from app.gui.views.sweep_progress import progress_words
from app.gui.window import MainWindow
from tests.gui import scenes, sweeps
from tests.gui.conftest import WideType
from tests.gui.fakes import FakeSession, calls

pytestmark = pytest.mark.gui

HERE = Workload(device="cpu", batch=1, seq_len=64, embed_dim=128)
SCENES: dict[str, Callable[[], FakeSession]] = {
    "done": lambda: sweeps.session(selected=HERE),
    "running": lambda: sweeps.session("running", 14),
    "just begun": lambda: sweeps.session("running", 0),
    "paused": lambda: sweeps.session("paused", 9),
    "stopped": lambda: sweeps.session("stopped", 9),
    "from a file": lambda: sweeps.session("recorded", 9),
    "from another machine": lambda: sweeps.elsewhere(sweeps.session("recorded", 9)),
    "three axes": lambda: sweeps.session(axes=sweeps.THREE),
    "one axis": lambda: sweeps.session(axes={"seq_len": [16, 64, 256]}),
    "no axis of numbers": lambda: sweeps.session(
        axes={"mode": ["forward", "forward_backward"], "causal": [True, False]}
    ),
    "no fit": lambda: sweeps.session(axes={"embed_dim": [64, 96, 128], "num_heads": [4, 5, 8]}),
    "thirteen across": lambda: sweeps.session(
        axes={"seq_len": [2**k for k in range(13)], "embed_dim": [16, 64, 256]}
    ),
}  # fmt: skip


@pytest.fixture
def view(qtbot: QtBot) -> SweepView:
    made = SweepView(DARK, Type())
    qtbot.addWidget(made)
    return made


def shown(view: SweepView, session: FakeSession, width: int = 1128, height: int = 624) -> SweepView:
    view.show_snapshot(session.snapshot(None))
    scenes.drawn(view, width, height)
    view.show_snapshot(session.snapshot(None))
    QApplication.processEvents()
    return view


@pytest.mark.parametrize("theme", [DARK, LIGHT], ids=["dark", "light"])
@pytest.mark.parametrize(("width", "height", "small"), [(1128, 624, False), (744, 460, True)])
@pytest.mark.parametrize("scene", SCENES)
def test_every_state_is_drawn_whole(
    view: SweepView, scene: str, width: int, height: int, small: bool, theme: Theme
) -> None:
    view.set_theme(theme)
    view.set_small(small)
    session = SCENES[scene]()
    shown(view, session, width, height)
    with recorded_overflows() as cut:
        image = scenes.drawn(view, width, height)
    assert cut == []
    assert scenes.colours(image) > 6
    geometries = [card.geometry() for card in view._cards if card.isVisible()]
    for index, one in enumerate(geometries):
        assert view.rect().contains(one), scene
        assert not any(one.intersects(other) for other in geometries[index + 1 :])


@pytest.mark.parametrize(("width", "height", "small"), [(1128, 624, False), (744, 460, True)])
def test_the_form_of_a_new_sweep_is_drawn_whole_in_a_wide_font(
    qtbot: QtBot, width: int, height: int, small: bool
) -> None:
    view = SweepView(LIGHT, WideType())
    qtbot.addWidget(view)
    view.set_small(small)
    session = FakeSession(sweeps.measured(sweeps.plan_of(sweeps.THREE)))
    session.sweep = None
    shown(view, session, width, height)
    assert view.setup.isVisible()
    view.setup.rows[2].set_field("mode")
    view.setup.rows[2].changed.emit()
    with recorded_overflows() as cut:
        scenes.drawn(view, width, height)
    assert cut == []


def test_the_numbers_are_those_of_the_results_and_nothing_else_has_one(view: SweepView) -> None:
    session = sweeps.session(selected=HERE)
    shown(view, session)
    cells = dict(view.map.picture.cells)
    grid = view.results.grid
    assert grid is not None
    assert len(cells) == 48
    states = set()
    for result in view.results.results("extension-fused"):
        place = (
            grid.axes[0].values.index(result.cell.values[0]),
            grid.axes[1].values.index(result.cell.values[1]),
        )
        cell = cells[place]
        states.add(cell.state)
        if result.state in ("faster", "slower", "same", "unsure"):
            assert cell.text == f"{result.ratio:.2f}"
        else:
            assert cell.value is None
            assert cell.words
            assert result.reason in cell.tip
    assert {"faster", "slower", "wrong", "failed", "unavailable"} <= states


def test_a_wrong_result_shows_no_number_in_map_curve_or_card(view: SweepView) -> None:
    wrong = Workload(device="cpu", batch=1, seq_len=512, embed_dim=1024)
    shown(view, sweeps.session(selected=wrong))
    assert view.cell_card.chip.text() == "wrong"
    assert not view.cell_card.figure.isVisible()
    fused = next(line for line in view.curves.picture.lines if line.name == "extension-fused")
    assert 512 not in [point.at for point in fused.points]
    assert 256 in [point.at for point in fused.points]


def test_an_undecided_cell_is_hatched_and_offered_again(view: SweepView, qtbot: QtBot) -> None:
    session = sweeps.session(axes={"seq_len": [16, 64, 256]}, selected=HERE)
    for record in session.recording.records:
        if record.workload.seq_len == 64:
            record.series.pop("@twin:native")
            record.version += 1
    shown(view, session)
    states = {cell.state for _, cell in view.map.picture.cells}
    assert "unsure" in states
    row = view.unclaimed.rows[0]
    assert row.name.text() == "1 UNSURE"
    with qtbot.waitSignal(view.longer_requested) as asked:
        row.button.click()
    assert [w.seq_len for w in asked.args[0]] == [64]


def test_the_crossover_is_marked_with_its_bounds_and_told_in_words(view: SweepView) -> None:
    shown(view, sweeps.session(selected=HERE))
    mark = view.curves.picture.mark
    assert mark is not None
    assert mark.low is not None
    assert mark.high is not None
    # 430 + f/40e9 meets 170 + f/28.5e9, in µs, at 25.8 MFLOP.
    truth = next(
        s for s in range(1, 4096)
        if sweeps.seconds_of("extension-fused", Workload(device="cpu", batch=1, seq_len=s))
        > sweeps.seconds_of("sdpa", Workload(device="cpu", batch=1, seq_len=s))
    )  # fmt: skip
    assert mark.low - 1 <= truth <= mark.high + 1
    assert "SDPA" in view.crossing.text()
    assert re.search(r"at sequence \d+ \(\d+–\d+\)", view.crossing.text())


def test_where_nobody_overtakes_the_words_say_so(view: SweepView) -> None:
    shown(view, sweeps.session(axes={"seq_len": [16, 32, 64]}, selected=HERE))
    assert view.curves.picture.mark is None
    assert "No crossover" in view.crossing.text()
    assert "faster than Native all along" in view.crossing.text()


def test_arrows_move_the_cell_and_enter_opens_it(view: SweepView, qtbot: QtBot) -> None:
    shown(view, sweeps.session(selected=HERE))
    view.map.setFocus()
    assert view.selected is not None
    assert view.selected.values == (64, 128)
    qtbot.keyClick(view.map, Qt.Key.Key_Right)
    qtbot.keyClick(view.map, Qt.Key.Key_Down)
    assert view.selected.values == (128, 256)
    assert "sequence 128 · embedding 256" in view.cell_card.subtitle.text()
    for _ in range(20):
        qtbot.keyClick(view.map, Qt.Key.Key_Left)
    assert view.selected.values == (16, 256)
    with qtbot.waitSignal(view.cell_opened) as opened:
        qtbot.keyClick(view.map, Qt.Key.Key_Return)
    assert (opened.args[0].seq_len, opened.args[0].embed_dim) == (16, 256)


def test_a_click_on_a_cell_asks_for_its_workload_one_that_cannot_run_only_for_its_reason(
    view: SweepView, qtbot: QtBot
) -> None:
    session = sweeps.session(axes={"embed_dim": [64, 96, 128], "num_heads": [4, 5, 8]})
    shown(view, session)
    asked: list[Workload] = []
    view.cell_chosen.connect(asked.append)
    grid = view.results.grid
    assert grid is not None
    axes = [axis.field for axis in grid.axes]
    for values in ({"embed_dim": 128, "num_heads": 8}, {"embed_dim": 96, "num_heads": 5}):
        column = grid.axes[0].values.index(values[axes[0]])
        row = grid.axes[1].values.index(values[axes[1]])
        spot = view.map.cell_rect((column, row)).center().toPoint()
        qtbot.mouseClick(view.map, Qt.MouseButton.LeftButton, pos=spot)
    assert [(w.embed_dim, w.num_heads) for w in asked] == [(128, 8)]
    assert "96 does not divide by 5" in view.cell_card.reason.text()
    assert not view.cell_card.open.isEnabled()
    assert "96 does not divide by 5" in view.map.tip_at(QPointF(view.map.cell_rect((column, row)).center()))


def test_a_third_axis_is_chosen_beside_the_map(view: SweepView) -> None:
    shown(view, sweeps.session(axes=sweeps.THREE))
    (choice,) = view.map_card.choices
    assert choice.value() == "0"
    before = view.map.picture
    choice.segment("1").click()
    assert view.selected is not None
    assert view.selected.values[2] == "forward_backward"
    assert view.map.picture.cells != before.cells
    assert view.map.picture.scale == before.scale


def test_the_map_shows_other_figures_too(view: SweepView) -> None:
    shown(view, sweeps.session(selected=HERE))
    for kind, title in (("latency", "Latency map"), ("calls", "Operator calls"), ("memory", "Memory map")):
        view.metric_choice.segment(kind).click()
        assert view.map.title == title
        assert any(cell.value is not None for _, cell in view.map.picture.cells)
    assert "launch" not in " ".join(cell.tip for _, cell in view.map.picture.cells).lower()


def test_curves_show_time_or_speed_up_against_any_axis_of_numbers(view: SweepView) -> None:
    shown(view, sweeps.session(selected=HERE))
    assert view.curves.title == "Latency against sequence"
    assert {line.name for line in view.curves.picture.lines} == set(sweeps.NAMES)
    view.choose_curves("ratio")
    assert view.curves.title == "Speed-up against sequence"
    assert {line.name for line in view.curves.picture.lines} == set(sweeps.NAMES) - {"native"}
    view.choose_curves("embed_dim")
    assert view.curves.title == "Speed-up against embedding"
    assert view.curves.picture.ticks == (64, 128, 256, 512, 1024, 2048)


def test_the_cell_in_hand_is_shown_as_such_and_has_no_number(view: SweepView) -> None:
    session = sweeps.session("running", 14)
    shown(view, session)
    measuring = [cell for _, cell in view.map.picture.cells if cell.state == "measuring"]
    assert len(measuring) == 1
    assert measuring[0].value is None
    assert sum(cell.state == "waiting" for _, cell in view.map.picture.cells) == 48 - 15
    progress = view.map_card.progress
    assert progress.words.text() == "14 of 48 cells · about 3 min left"
    assert progress.pause.isVisible()
    assert progress.cancel.isVisible()
    assert not progress.resume.isVisible()


@pytest.mark.parametrize(
    ("state", "done", "words"),
    [
        ("running", 14, "14 of 48 cells"),
        ("paused", 9, "9 of 48 cells · paused"),
        ("stopped", 9, "9 of 48 cells · stopped"),
        ("recorded", 9, "9 of 48 cells · not finished"),
        ("done", 48, "48 of 48 cells"),
    ],
)
def test_how_far_it_is_is_told_in_words(state: str, done: int, words: str) -> None:
    assert progress_words(SweepStatus(sweeps.plan_of(), state, done)) == words  # type: ignore[arg-type]


def test_a_sweep_of_another_machine_needs_a_second_word(view: SweepView) -> None:
    shown(view, SCENES["from another machine"]())
    progress = view.map_card.progress
    assert progress.resume.text() == "Resume all the same"
    assert "cpu is A now, was B" in progress.resume.toolTip()


def test_the_form_makes_the_plan_it_shows_and_refuses_what_is_none(view: SweepView, qtbot: QtBot) -> None:
    session = FakeSession(sweeps.measured(sweeps.plan_of(sweeps.THREE)))
    session.sweep = None
    shown(view, session)
    setup = view.setup
    assert setup.summary.text().startswith("6 × 6 = 36 cells")
    for chip in setup.rows[0].chips:
        chip.setChecked(chip.value in (8, 16))
    assert setup.summary.text().startswith("2 × 6 = 12 cells")
    setup.rows[1].set_field("num_heads")
    for chip in setup.rows[1].chips:
        chip.setChecked(chip.value in (2, 4))
    with qtbot.waitSignal(view.start_requested) as asked:
        setup.start.click()
    plan = asked.args[0]
    assert {(w.seq_len, w.num_heads) for w in plan.workloads} == {(8, 2), (8, 4), (16, 2), (16, 4)}
    assert plan.implementations == sweeps.NAMES
    view.set_up(True)
    for chip in setup.rows[0].chips:
        chip.setChecked(False)
    assert not setup.start.isEnabled()
    assert "At least one value" in setup.summary.text()


def test_a_field_cannot_be_two_axes(view: SweepView) -> None:
    items = {item.id: item for item in view.setup.rows[1].picker.items()}
    assert not items["seq_len"].enabled
    assert items["num_heads"].enabled
    assert "device" not in items


def test_numbers_on_colours_can_be_read() -> None:
    for theme in (DARK, LIGHT):
        scale = HeatScale.of_ratios([0.3, 12.0])
        for step in range(200):
            fill = scale.colour(0.3 * 40 ** (step / 199), theme)
            assert contrast(ink_on(fill), fill) >= 4.5
        assert scale.colour(1.0, theme) == QColor(theme.heat[0])
        assert scale.colour(0.3, theme) == QColor(theme.heat_slow)
        assert scale.colour(12.0, theme) == QColor(theme.heat[-1])


def test_a_small_difference_is_not_drawn_as_a_large_one() -> None:
    assert HeatScale.of_ratios([1.02]).high == pytest.approx(4.6)
    assert HeatScale.of_ratios([]).share(1.02) < 0.02
    assert HeatScale.of_amounts([2.0, 8.0]).share(4.0) == pytest.approx(0.5)


def test_ticks_of_a_time_axis_have_units() -> None:
    assert [time_label(s).replace("\u202f", " ") for s in (2.0, 5e-2, 1e-3, 2e-4, 1.5e-6)] == [
        "2 s", "50 ms", "1 ms", "200 µs", "1.5 µs",
    ]  # fmt: skip


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_map_and_curves_are_exported_as_pictures(view: SweepView, tmp_path: Path, suffix: str) -> None:
    shown(view, sweeps.session(selected=HERE))
    charts = view.chart_widgets()
    assert list(charts) == ["Speed-up map", "Latency against sequence"]
    for name, chart in charts.items():
        path = tmp_path / f"{name}{suffix}"
        export_widget(chart, path)
        assert path.stat().st_size > 4000
    if suffix == ".svg":
        text = (tmp_path / "Speed-up map.svg").read_text()
        assert "batch 1, heads 4" in text
        assert "sequence 64" not in text


def test_the_csv_has_a_row_for_every_cell_and_contender() -> None:
    recording = sweeps.session().recording
    rows = list(csv.DictReader(io.StringIO(csv_sweep.render(recording).decode())))
    assert len(rows) == 48 * 5
    by_place = {(r["seq_len"], r["embed_dim"], r["implementation"]): r for r in rows}
    assert by_place["16", "64", "extension-fused"]["state"] == "faster"
    assert float(by_place["16", "64", "extension-fused"]["speed_up_median"]) > 3
    wrong = by_place["512", "1024", "extension-fused"]
    assert (wrong["state"], wrong["speed_up_median"]) == ("wrong", "")
    impossible = sweep_plan(
        Workload(device="cpu"), {"embed_dim": [64, 96], "num_heads": [4, 5]}, ("native",), "native"
    )
    recording.sweep = impossible
    rows = list(csv.DictReader(io.StringIO(csv_sweep.render(recording).decode())))
    assert [r["state"] for r in rows].count("impossible") == 2


# ---- in the window -------------------------------------------------------------------------------------


def test_the_window_passes_wishes_on(make: Callable[..., MainWindow], qtbot: QtBot) -> None:
    window = make(sweeps.session("running", 14))
    window.open_sweep()
    QApplication.processEvents()
    view = window.sweep
    assert window.tabs.current is view
    assert view.metric_choice.isVisible()
    view.map_card.progress.pause.click()
    view.map_card.progress.cancel.click()
    view.cell_chosen.emit(HERE)
    view.cell_opened.emit(HERE)
    assert calls(window, "pause")
    assert calls(window, "cancel_sweep")
    assert calls(window, "show_cell") == [(HERE,)]
    assert calls(window, "set_workload")[-1] == (HERE,)
    assert window.tabs.current is window.live
    assert not view.metric_choice.isVisible()


def test_the_status_bar_says_how_far_the_sweep_is(make: Callable[..., MainWindow]) -> None:
    window = make(sweeps.session("running", 14))
    assert "Sweep 14 of 48" in window.status.text()


def test_ctrl_shift_s_opens_the_sweep(make: Callable[..., MainWindow], qtbot: QtBot) -> None:
    window = make(sweeps.session())
    modifiers = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
    qtbot.keyClick(window, Qt.Key.Key_S, modifiers)
    assert window.tabs.current is window.sweep


def test_cells_measured_longer_come_last_and_four_times_as_long(make: Callable[..., MainWindow]) -> None:
    window = make(sweeps.session())
    window.sweep_wishes.measure_longer([HERE])
    ((plan, first),) = calls(window, "start_sweep")
    assert plan.workloads[first:] == (HERE,)
    assert first == 47
    assert plan.measure.max_seconds == pytest.approx(10.0)


def test_a_hidden_map_costs_nothing_while_samples_come(make: Callable[..., MainWindow]) -> None:
    session = sweeps.session("running", 14)
    window = make(session)
    view = window.sweep
    drawn: list[int] = []
    view._take = lambda snapshot: drawn.append(1)  # type: ignore[method-assign]
    for _ in range(5):
        window.refresh()
    assert drawn == []
    assert view.map.mapToGlobal(QPoint(0, 0)) is not None
