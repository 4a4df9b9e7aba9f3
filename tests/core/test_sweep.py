"""The grid of a sweep: axes from a plan, cells in a useful order, and what stands in each."""

from __future__ import annotations

import itertools

import pytest

from app.core import messages as m
from app.core.fields import FieldError
from app.core.plan import Plan, Skipped, plan_from
from app.core.recording import Recording
from app.core.results import entries_of
from app.core.sweep import (
    Cell,
    Grid,
    axes_of,
    described,
    finished_cells,
    grid_of,
    refinement,
    result_of,
    shown,
    sweep_plan,
)
from app.core.time_left import CellClock, left_words, time_left
from app.core.workload import Workload
from tests import factories

BASE = Workload(device="cpu")
NAMES = ("native", "sdpa")


def grid(plan: Plan) -> Grid:
    made = grid_of(plan)
    assert made is not None
    return made


def cell_at(made: Grid, **values: object) -> Cell:
    found = made.at(values)
    assert found is not None
    return found


def test_axes_are_crossed_and_drawn_widest_first() -> None:
    plan = sweep_plan(BASE, {"embed_dim": [64, 128], "seq_len": [64, 16, 32]}, NAMES, "native")
    made = grid(plan)
    assert [(a.field, a.values) for a in made.axes] == [("seq_len", (16, 32, 64)), ("embed_dim", (64, 128))]
    assert len(made) == made.measurable == 6
    assert cell_at(made, seq_len=16, embed_dim=128).workload == Workload(
        seq_len=16, embed_dim=128, device="cpu"
    )
    assert made.at({"seq_len": 16}) is None


def test_a_profile_read_from_toml_has_the_same_grid() -> None:
    document = {"sweep": {"mode": ["forward", "forward_backward"], "seq_len": [16, 64, 256]}}
    made = grid(plan_from(document))
    assert [a.field for a in made.axes] == ["seq_len", "mode"]
    assert shown("mode", "forward_backward") == "forward + backward"


def test_a_plan_of_one_workload_is_no_sweep() -> None:
    assert grid_of(Plan((BASE,))) is None
    assert grid_of(None) is None
    assert grid_of(sweep_plan(BASE, {"seq_len": [16]}, NAMES, "native")) is None


def test_a_combination_that_cannot_run_keeps_its_place_with_the_reason() -> None:
    plan = sweep_plan(BASE, {"embed_dim": [64, 96], "num_heads": [4, 5, 8]}, NAMES, "native")
    made = grid(plan)
    assert len(made) == 6
    assert made.measurable == 4
    impossible = cell_at(made, embed_dim=96, num_heads=5)
    assert impossible.workload is None
    result = result_of(impossible, "sdpa", None, None)
    assert (result.state, result.reason) == ("impossible", "96 does not divide by 5")


def test_heads_that_follow_the_embedding_are_no_axis_of_their_own() -> None:
    cells = tuple(
        Workload(seq_len=s, embed_dim=e, num_heads=e // 32, device="cpu") for s in (16, 32) for e in (64, 128)
    )
    assert {a.field for a in axes_of(Plan(cells))} == {"seq_len", "embed_dim"}


def test_every_cell_comes_once_corners_first_then_ever_finer() -> None:
    axes = {"seq_len": [2**k for k in range(6)], "embed_dim": [2**k for k in range(4, 10)]}
    plan = sweep_plan(BASE, axes, NAMES, "native")
    assert len(set(plan.workloads)) == 36
    corners = {(w.seq_len, w.embed_dim) for w in plan.workloads[:4]}
    assert corners == set(itertools.product((1, 32), (16, 512)))
    assert plan.workloads[0] == Workload(seq_len=1, embed_dim=16, device="cpu")
    levels = [
        max(
            refinement(axes["seq_len"].index(w.seq_len), 6),
            refinement(axes["embed_dim"].index(w.embed_dim), 6),
        )
        for w in plan.workloads
    ]
    assert levels == sorted(levels)


def test_a_third_axis_is_measured_slice_after_slice() -> None:
    axes = {"seq_len": [1, 2, 4], "embed_dim": [64, 128, 256], "mode": ["forward", "forward_backward"]}
    plan = sweep_plan(BASE, axes, NAMES, "native")
    modes = [w.mode for w in plan.workloads]
    assert modes == ["forward"] * 9 + ["forward_backward"] * 9


@pytest.mark.parametrize(
    ("size", "levels"), [(1, [0]), (2, [0, 0]), (3, [0, 1, 0]), (5, [0, 2, 1, 2, 0]), (6, [0, 2, 1, 2, 3, 0])]
)
def test_refinement_halves(size: int, levels: list[int]) -> None:
    assert [refinement(place, size) for place in range(size)] == levels


def test_what_is_asked_for_wrongly_is_named() -> None:
    with pytest.raises(FieldError, match="seq_len"):
        sweep_plan(BASE, {"seq_len": [0]}, NAMES, "native")
    many = {"seq_len": list(range(1, 200)), "embed_dim": list(range(1, 200))}
    with pytest.raises(FieldError, match="at most 10,000"):
        sweep_plan(BASE, many, NAMES, "native")
    with pytest.raises(FieldError, match="does not divide"):
        sweep_plan(BASE, {"num_heads": [5, 7]}, NAMES, "native")


def measured(plan: Plan, upto: int, scale: float = 1.0, wrong: str | None = None) -> Recording:
    """A run of the plan of which `upto` cells are done and one more is begun."""
    made = Recording()
    made.apply(m.Ready(factories.environment(), factories.START_S))
    made.begin(m.Start(1, plan))
    for index in range(min(upto + 1, len(plan.workloads))):
        for name in plan.implementations:
            made.apply(m.ContenderState(1, index, name, "ready"))
        made.apply(m.Active(1, index, "native", "sample"))
        if index == upto:
            break
        samples = []
        for number in range(60):
            for place, name in enumerate((*plan.implementations, "@twin")):
                seconds = 1e-3 * (1 + 0.002 * ((number * 3 + place) % 5))
                seconds /= scale if name == "sdpa" else 1.0
                samples.append(m.Sample(number, place, factories.START_S + index + number / 100, seconds, 2))
        made.apply(m.Samples(1, index, 7, (*plan.implementations, "@twin"), tuple(samples)))
        if wrong:
            made.apply(m.Checked(1, index, "sdpa", factories.accuracy(wrong, backward=False)))
        made.apply(m.WorkloadDone(1, index, "target_ci"))
    return made


def state(plan: Plan, made: Recording, index: int, name: str = "sdpa", active: Workload | None = None) -> str:
    workload = plan.workloads[index]
    record = made.record_for(workload)
    entry = entries_of(record, "native", (name,))[0] if record is not None else None
    cell = grid(plan).cell_of(workload)
    assert cell is not None
    return result_of(cell, name, record, entry, active).state


def test_a_cell_is_waiting_then_measuring_then_decided() -> None:
    plan = sweep_plan(BASE, {"seq_len": [16, 32, 64]}, NAMES, "native")
    made = measured(plan, 1, scale=2.0)
    assert state(plan, made, 0) == "faster"
    assert state(plan, made, 1, active=plan.workloads[1]) == "measuring"
    assert state(plan, made, 2) == "waiting"
    assert state(plan, made, 0, "native") == "measured"
    assert finished_cells(plan, made) == 1
    assert state(plan, measured(plan, 1, scale=0.5), 0) == "slower"
    assert state(plan, measured(plan, 1, scale=1.0), 0) == "same"


def test_a_wrong_result_shows_no_speed_up() -> None:
    plan = sweep_plan(BASE, {"seq_len": [16, 32]}, NAMES, "native")
    made = measured(plan, 2, scale=2.0, wrong="output")
    assert state(plan, made, 0) == "wrong"


def test_a_cell_of_which_a_little_is_known_is_not_undecided_before_its_end() -> None:
    plan = sweep_plan(BASE, {"seq_len": [16, 32]}, NAMES, "native")
    made = measured(plan, 1)
    record = made.record_for(plan.workloads[0])
    assert record is not None
    record.series.pop("@twin:native")
    record.version += 1
    assert state(plan, made, 0) == "unsure"
    record.stopped_because = None
    assert state(plan, made, 0) == "waiting"


def test_a_contender_that_fails_or_is_not_supported_says_why() -> None:
    plan = sweep_plan(BASE, {"seq_len": [16, 32]}, NAMES, "native")
    made = measured(plan, 2)
    made.apply(m.ContenderState(1, 1, "sdpa", "failed", "out of memory"))
    cell = grid(plan).cell_of(plan.workloads[1])
    assert cell is not None
    record = made.record_for(plan.workloads[1])
    entry = entries_of(record, "native", NAMES)[1]  # type: ignore[arg-type]
    result = result_of(cell, "sdpa", record, entry)
    assert (result.state, result.reason) == ("failed", "out of memory")


def test_without_its_baseline_a_cell_is_unsure_and_says_so() -> None:
    plan = sweep_plan(BASE, {"seq_len": [16, 32]}, ("sdpa", "native"), "native")
    made = measured(plan, 1)
    record = made.record_for(plan.workloads[0])
    assert record is not None
    del record.series["native"]
    entry = entries_of(record, "native", ("sdpa",))[0]
    result = result_of(grid(plan).cells[0], "sdpa", record, entry)
    assert result.state == "unsure"
    assert "baseline" in result.reason


def test_a_line_runs_along_one_axis_and_a_cell_is_named() -> None:
    plan = sweep_plan(BASE, {"seq_len": [16, 32, 64], "embed_dim": [64, 128]}, NAMES, "native")
    made = grid(plan)
    cell = cell_at(made, seq_len=32, embed_dim=128)
    assert [c.values for c in made.line("seq_len", cell)] == [(16, 128), (32, 128), (64, 128)]
    assert made.line("batch", cell) == ()
    assert described(made, cell) == "sequence 32 · embedding 128"


def test_skipped_cells_of_an_older_profile_lie_in_the_grid_too() -> None:
    cells = tuple(Workload(seq_len=s, embed_dim=96, num_heads=4) for s in (16, 32))
    skipped = tuple(Skipped({"seq_len": s, "embed_dim": 97}, "97 does not divide by 4") for s in (16, 32))
    made = grid(Plan(cells, skipped=skipped))
    assert len(made) == 4
    assert made.measurable == 2


def test_time_left_follows_cells_of_similar_work() -> None:
    plan = sweep_plan(BASE, {"seq_len": [1, 16, 1024]}, NAMES, "native")
    small, middle, large = sorted(plan.workloads, key=lambda w: w.flops)
    took = [(small, 2.0), (large, 10.0)]
    assert 2.0 < time_left(took, [middle], plan.measure) < 6.0
    assert time_left([], [small, large], plan.measure) == pytest.approx(2 * (plan.measure.max_seconds + 2.0))
    assert time_left(took, [], plan.measure) == 0.0


def test_the_clock_of_the_cells_leaves_pauses_out() -> None:
    plan = sweep_plan(BASE, {"seq_len": [16, 32, 64]}, NAMES, "native")
    clock = CellClock(plan)
    clock.begin(0, 100.0)
    clock.pause(101.0)
    clock.resume(500.0)
    clock.finish(0, 503.0)
    assert clock.took == [(plan.workloads[0], 4.0)]
    assert clock.left_s(503.0) == pytest.approx(8.0)
    assert clock.left_s(505.0) == pytest.approx(6.0)
    clock.finish(1, 507.0)
    clock.finish(2, 511.0)
    assert clock.left_s(511.0) == 0.0


def test_an_estimate_is_as_coarse_as_it_is_uncertain() -> None:
    assert left_words(2) == "a few seconds left"
    assert left_words(38.0) == "about 40 s left"
    assert left_words(170.0) == "about 3 min left"
    assert left_words(9000.0) == "about 2.5 h left"
