"""A roofline worked out of a recording: which points it has, and what it says of them."""

from __future__ import annotations

import msgspec

from app.core import messages as m
from app.core.files import document_of, parse
from app.core.plan import Measure, Plan
from app.core.recording import Recording
from app.core.roofline import roofline_of
from app.core.roofline_axes import axes_of, label, ticks
from app.core.workload import Workload
from tests import factories
from tests.core.test_work import peaks

FORWARD = Workload(mode="forward", device="cpu")
STEP = msgspec.structs.replace(FORWARD, mode="forward_backward")
NAMES = ("native", "sdpa")


def recorded(*workloads: Workload, with_peaks: bool = True, cold: Workload | None = None) -> Recording:
    made = Recording()
    made.apply(m.Ready(factories.environment(), factories.START_S))
    if with_peaks:
        made.apply(m.PeaksMeasured(peaks(compute=200e9)))
    for generation, workload in enumerate(workloads, 1):
        measure = Measure(cache="cold" if workload is cold else "warm")
        made.begin(m.Start(generation, Plan((workload,), NAMES, measure=measure), live=True))
        factor = 3.0 if workload.backward else 1.0
        factories.measure(made, NAMES, "native", 20, 20.0, dict.fromkeys(NAMES, factor), generation)
    return made


def test_without_peaks_nothing_is_placed_and_nothing_made_up() -> None:
    made = recorded(FORWARD, with_peaks=False)
    found = roofline_of(made, made.records[0])
    assert found.peaks is None
    assert found.points == ()
    assert axes_of(found) is None


def test_peaks_of_another_thread_count_are_not_taken() -> None:
    made = recorded(FORWARD, with_peaks=False)
    made.apply(m.PeaksMeasured(peaks(threads=1)))
    assert roofline_of(made, made.records[0]).peaks is None


def test_achieved_is_flop_over_the_measured_median() -> None:
    made = recorded(FORWARD)
    found = roofline_of(made, made.records[0], NAMES)
    point = found.point("native", "forward")
    assert point is not None
    series = made.records[0].series["native"].seconds
    assert point.seconds == sorted(series)[9:11][0] / 2 + sorted(series)[9:11][1] / 2
    assert point.achieved == FORWARD.flops / point.seconds
    assert found.phases == ("forward",)
    assert "forward + backward" in found.missing


def test_a_step_alone_is_placed_as_a_step() -> None:
    made = recorded(STEP)
    found = roofline_of(made, made.records[0], NAMES)
    assert found.phases == ("step",)
    assert found.point("native", "step").work.flops == STEP.flops  # type: ignore[union-attr]


def test_backward_is_the_step_less_its_forward_pass_where_both_are_known() -> None:
    made = recorded(FORWARD, STEP)
    for record in made.records:
        found = roofline_of(made, record, NAMES)
        assert found.phases == ("forward", "backward")
        forward, backward = found.point("sdpa", "forward"), found.point("sdpa", "backward")
        assert forward is not None
        assert backward is not None
        assert 1.5 < backward.seconds / forward.seconds < 2.5
        assert found.missing == ""


def test_decode_of_the_same_shape_has_a_point_of_its_own() -> None:
    decode = msgspec.structs.replace(FORWARD, mode="decode")
    made = recorded(FORWARD, STEP, decode)
    for record in made.records:
        found = roofline_of(made, record, NAMES)
        assert found.phases == ("forward", "backward", "decode")
        point = found.point("sdpa", "decode")
        assert point is not None
        assert point.work.flops == decode.flops
        assert point.memory_bound
    titles = [one.title for one in roofline_of(made, made.records[2], NAMES).formulas]
    assert titles[0] == "FLOP decode"
    assert titles[-1] == "Roof"
    assert roofline_of(made, made.records[2], NAMES).formulas[-1].numbers.startswith("B 8 · T 64")


def test_cold_and_warm_are_not_mixed() -> None:
    made = recorded(FORWARD, STEP, cold=STEP)
    assert roofline_of(made, made.records[0], NAMES).phases == ("forward",)
    assert roofline_of(made, made.records[1], NAMES).phases == ("step",)


def test_formulas_are_printed_with_the_numbers_of_the_workload() -> None:
    made = recorded(FORWARD)
    found = {one.title: one for one in roofline_of(made, made.records[0], NAMES).formulas}
    assert found["FLOP forward"].formula == "8·B·S·E² + 2·B·S·(S+1)·E"
    assert found["FLOP forward"].numbers == "= 67.1\u202fM + 8.52\u202fM = 75.6\u202fM"
    assert found["Bytes SDPA"].formula == "4 × (10·B·S·E + 4·E²)"
    assert "200\u202fGFLOP/s" in found["Roof"].formula
    full = recorded(msgspec.structs.replace(FORWARD, causal=False))
    assert roofline_of(full, full.records[0]).formulas[0].formula == "8·B·S·E² + 4·B·S²·E"


def test_points_above_the_roof_are_explained_not_hidden() -> None:
    made = recorded(FORWARD, with_peaks=False)
    made.apply(m.PeaksMeasured(peaks(compute=1e9, memory=1e12)))
    found = roofline_of(made, made.records[0], NAMES)
    assert all(point.share > 1 for point in found.points)
    assert any(remark.startswith("Above the roof") for remark in found.remarks)


def test_a_file_carries_its_peaks_to_another_machine() -> None:
    made = recorded(FORWARD, STEP)
    opened = parse(m.encoded(document_of(made)), "there.json")
    before, after = (roofline_of(one, one.records[0], NAMES) for one in (made, opened))
    assert after.points == before.points
    assert after.peaks == before.peaks


def test_peaks_stay_over_a_new_start() -> None:
    made = recorded(FORWARD)
    made.begin(m.Start(9, Plan((STEP,), NAMES), live=True))
    assert made.environment is not None
    assert len(made.environment.peaks) == 1


def test_axes_hold_every_point_and_the_ridge() -> None:
    made = recorded(FORWARD, STEP)
    found = roofline_of(made, made.records[0], NAMES)
    axes = axes_of(found)
    assert axes is not None
    assert found.peaks is not None
    assert 0 < axes.x(found.peaks.ridge) < 1
    for point in found.points:
        assert 0 < axes.x(point.work.intensity) < 1
        assert 0 < axes.y(point.achieved) < 1
    assert ticks(0.3, 60) == [0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0]
    assert len(ticks(1e-6, 1e12)) <= 9
    assert [label(value) for value in (0.05, 0.5, 20, 2000)] == ["0.05", "0.5", "20", "2,000"]
