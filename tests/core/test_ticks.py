"""Ticks of axes."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.text import THIN
from app.core.ticks import ago_ticks, between, from_zero, logarithmic, tick_label, value_label


@given(st.floats(1e-9, 1e12), st.integers(1, 9))
def test_ticks_from_zero_cover_the_top_and_are_few(top: float, at_most: int) -> None:
    ticks = from_zero(top, at_most)
    assert ticks[0] == 0
    assert ticks[-1] >= top * (1 - 1e-9)
    assert len(ticks) <= at_most + 2


@pytest.mark.parametrize("top", [0.0, -1.0, math.nan, math.inf])
def test_an_axis_of_nothing_has_two_ticks(top: float) -> None:
    assert from_zero(top) == [0.0, 1.0]


@given(st.floats(1e-6, 1e6), st.floats(1.01, 1e6))
def test_log_ticks_lie_on_the_axis_and_tell_at_least_two_values(low: float, factor: float) -> None:
    ticks = logarithmic(low, low * factor, 8)
    assert all(low * (1 - 1e-9) <= tick <= low * factor * (1 + 1e-9) for tick in ticks)
    assert 2 <= len(ticks) <= 9
    assert ticks == sorted(ticks)


@pytest.mark.parametrize(("low", "high"), [(0, 10), (-1, 10), (10, 1), (math.nan, 1)])
def test_a_log_axis_without_range_has_no_tick(low: float, high: float) -> None:
    assert logarithmic(low, high) == []


def test_labels_have_the_decimals_of_their_step() -> None:
    assert [tick_label(v, 0.05) for v in (0.95, 1.0)] == ["0.95", "1.00"]
    assert tick_label(1200, 400) == "1,200"
    assert tick_label(2.5, 2.5) == "2.5"
    assert [tick_label(tick, 0.5) for tick in between(0, 1, 2)] == ["0.0", "0.5", "1.0"]


def test_figures_have_three_digits() -> None:
    assert [value_label(v) for v in (812.4, 96.43, 4.5, 0.0321, 0.0)] == [
        "812",
        "96.4",
        "4.50",
        "0.0321",
        "0.00",
    ]
    assert value_label(12_345.6) == "12,346"
    assert value_label(99.97) == "100"


@given(st.floats(1, 1e7), st.integers(2, 9))
def test_time_runs_to_now_in_even_steps(span: float, at_most: int) -> None:
    ticks = ago_ticks(span, at_most)
    assert ticks[-1] == (0.0, "now")
    assert len(ticks) <= at_most + 1
    assert all(-span - 1e-6 <= at <= 0 for at, _ in ticks)


def test_a_minute_is_told_in_seconds_and_an_hour_in_minutes() -> None:
    assert ago_ticks(60)[0] == (-60, f"−60{THIN}s")
    assert ago_ticks(3600)[0][1].endswith("min")
