"""Which samples enter a figure, and that the rest is counted."""

from __future__ import annotations

import numpy as np
import pytest

from app.core.disturbance import OTHERS_BUSY, Strain, strain_of, strained
from app.core.evidence import kept, pairs
from app.core.messages import Sample, Telemetry
from app.core.recording import Recording
from app.core.results import entries_of
from app.core.series import Series
from tests import factories


def series_of(seconds: list[float], at_s: list[float] | None = None, disturbed: str = "") -> Series:
    series = Series()
    for number, value in enumerate(seconds):
        at = at_s[number] if at_s is not None else float(number)
        series.append(Sample(number, 0, at, value, 1, disturbed), number)
    return series


def reading(at_s: float, others: float | None = 0.0, throttled: str = "") -> Telemetry:
    return Telemetry(at_s, others_percent=others, gpu_throttled=throttled)


@pytest.mark.parametrize(
    ("now", "what"),
    [
        (reading(11.0), None),
        (reading(11.0, None), None),
        (reading(11.0, OTHERS_BUSY), None),
        (reading(11.0, OTHERS_BUSY + 1), "other programs used the processor"),
        (reading(11.0, 0.0, "temperature"), "the GPU was throttled (temperature)"),
    ],
)
def test_a_reading_tells_of_the_second_before_it(now: Telemetry, what: str | None) -> None:
    found = strain_of(now, reading(10.0))
    assert found == (None if what is None else Strain(10.0, 11.0, what))


def test_a_reading_says_nothing_of_the_time_before_a_sleep_or_the_first_one() -> None:
    assert strain_of(reading(100.0, 90.0), reading(10.0)) is None
    assert strain_of(reading(100.0, 90.0), None) is None
    assert strain_of(reading(9.0, 90.0), reading(10.0)) is None


def test_moments_are_marked_from_the_begin_to_before_the_end() -> None:
    marks = strained(np.array([0.5, 1.0, 1.9, 2.0, 5.0, 5.5]), [Strain(1, 2, ""), Strain(5, 6, "")])
    assert marks.tolist() == [False, True, True, False, True, True]


def test_strained_rounds_are_left_out_where_they_are_few() -> None:
    first, second = series_of([1.0] * 40), series_of([0.5] * 40)
    few = pairs(first, second, [Strain(20, 30, "")])
    assert (few.first.size, few.strained, few.left_out) == (30, 10, True)
    _, count, left_out = kept(first, [Strain(20, 30, "")])
    assert (count, left_out) == (10, True)


def test_where_most_rounds_are_strained_they_are_kept_and_counted() -> None:
    first, second = series_of([1.0] * 40), series_of([0.5] * 40)
    most = pairs(first, second, [Strain(0, 30, "")])
    assert (most.first.size, most.strained, most.left_out) == (40, 30, False)


def test_a_round_is_left_out_only_where_both_sides_are_strained() -> None:
    first = series_of([1.0] * 40, at_s=[float(i) for i in range(40)])
    second = series_of([0.5] * 40, at_s=[i + 0.6 for i in range(40)])
    found = pairs(first, second, [Strain(20.5, 21.5, "")])  # holds first's round 21 and second's round 20
    assert (found.first.size, found.strained) == (40, 0)
    found = pairs(first, second, [Strain(20.5, 22.0, "")])  # holds first's 21, second's 20 and 21
    assert (found.first.size, found.strained) == (39, 1)


def test_a_warm_up_is_left_out_of_its_own_series_and_of_every_pair_with_it() -> None:
    slow_start = series_of([2.0 - 0.025 * i for i in range(40)] + [1.0] * 100)
    steady = series_of([1.0] * 140)
    assert kept(steady, ())[0].sum() == 140
    remaining = int(kept(slow_start, ())[0].sum())
    assert 96 <= remaining <= 112
    assert pairs(steady, slow_start, ()).first.size == remaining


def test_rounds_that_only_one_has_are_in_no_pair() -> None:
    first = series_of([1.0] * 40)
    second = Series()
    for number in range(10, 60):
        second.append(Sample(number, 0, float(number), 0.5, 1, ""), number)
    assert pairs(first, second, ()).first.size == 30
    assert pairs(first, Series(), ()).first.size == 0
    assert pairs(Series(), first, ()).first.size == 0


def test_readings_of_a_run_mark_its_rounds_in_every_export_of_it() -> None:
    made: Recording = factories.recording(rounds=600)
    record = made.current
    assert record is not None
    begin, end = float(record.series["native"].at_s[100]), float(record.series["native"].at_s[200])
    made.apply(reading(begin))
    made.apply(reading(min(end, begin + 4), 80.0))
    assert made.plan is not None
    native, *others = entries_of(record, "native", made.plan.implementations)
    assert native.strained > 0
    assert native.strained_left_out
    for entry in others:
        assert entry.speed_up is not None
        assert entry.speed_up.rounds == 600 - entry.strained
