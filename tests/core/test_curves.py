"""Buckets, densities and places that do not overlap: pure functions, no Qt."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.curves import (
    MAX_BUCKETS,
    RollingBuckets,
    bucket_width,
    bucketise,
    density,
    growing_span,
    log_density,
    pushed_apart,
    runs,
)

ODD = np.array([1.0, 0.0, -1.0, np.nan, np.inf])


def good(n: int) -> np.ndarray:
    return np.zeros(n, bool)


def test_a_bucket_holds_the_quartiles_that_numpy_finds() -> None:
    at = np.linspace(0, 9.99, 500)
    seconds = np.random.default_rng(1).lognormal(size=500)
    buckets = bucketise(at, seconds, good(500), 2.0)
    for i in range(5):
        inside = seconds[(at >= 2 * i) & (at < 2 * i + 2)]
        expected = np.percentile(inside, (25, 50, 75))
        np.testing.assert_allclose((buckets.q1[i], buckets.median[i], buckets.q3[i]), expected)
    assert len(buckets) == 5


def test_what_no_axis_can_show_is_left_out_and_counted() -> None:
    buckets = bucketise(np.arange(5.0), ODD, good(5), 100.0)
    assert buckets.hidden == 4
    assert buckets.median.tolist() == [1.0]


def test_nothing_and_nothing_drawable_give_no_bucket() -> None:
    assert len(bucketise(np.empty(0), np.empty(0), good(0), 1.0)) == 0
    nothing = bucketise(np.arange(3.0), np.array([0.0, -1.0, np.nan]), good(3), 1.0)
    assert (len(nothing), nothing.hidden) == (0, 3)


def test_disturbed_samples_count_only_where_a_bucket_has_no_other() -> None:
    at = np.array([0.1, 0.2, 0.3, 1.1, 1.2])
    seconds = np.array([1.0, 1.0, 9.0, 5.0, 7.0])
    disturbed = np.array([False, False, True, True, True])
    buckets = bucketise(at, seconds, disturbed, 1.0)
    assert buckets.median.tolist() == [1.0, 6.0]
    assert buckets.disturbed.tolist() == [False, True]


@given(
    st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=200),
    st.integers(1, 60),
    st.floats(0.05, 3.0),
)
def test_growing_series_gives_the_buckets_of_the_whole_one(
    values: list[float], step: int, width: float
) -> None:
    seconds = np.array(values)
    at = 1.7e9 + np.cumsum(np.full(seconds.size, 0.1))
    disturbed = np.arange(seconds.size) % 7 == 0
    rolling = RollingBuckets()
    for stop in [*range(step, seconds.size, step), seconds.size]:
        buckets = rolling.update(at[:stop], seconds[:stop], disturbed[:stop], width, -np.inf)
    whole = bucketise(at, seconds, disturbed, width)
    np.testing.assert_allclose(buckets.median, whole.median)
    np.testing.assert_array_equal(buckets.index, whole.index)
    np.testing.assert_array_equal(buckets.disturbed, whole.disturbed)


def test_a_window_that_moves_drops_what_left_it() -> None:
    at = np.arange(0.0, 100.0, 0.1)
    rolling = RollingBuckets()
    for now in range(10, 100):
        stop = now * 10
        buckets = rolling.update(at[:stop], np.ones(stop), good(stop), 0.5, now - 10.0)
        assert buckets.at_s[0] >= now - 10.5
        assert len(buckets) <= 21
    wider = rolling.update(at, np.ones(at.size), good(at.size), 0.5, 0.0)
    assert len(wider) == 200


def test_a_clock_set_back_breaks_nothing() -> None:
    at = np.array([10.0, 11.0, 12.0, 5.0, 6.0, 7.0])
    rolling = RollingBuckets()
    rolling.update(at[:3], np.ones(3), good(3), 0.5, -np.inf)
    buckets = rolling.update(at, np.ones(6), good(6), 0.5, -np.inf)
    assert len(buckets) == 6
    assert (np.diff(buckets.index) > 0).all()


@given(st.floats(1.0, 1e6), st.integers(0, 10**7))
def test_buckets_are_never_more_than_fit(span: float, samples: int) -> None:
    width = bucket_width(span, samples)
    assert span / width <= MAX_BUCKETS + 1e-6
    assert width <= span / MAX_BUCKETS * 8 + 1e-9


def test_the_width_stays_while_the_rate_wavers() -> None:
    width = bucket_width(60, 1200)
    widths = {bucket_width(60, samples, width) for samples in (1100, 1200, 1300, 1150)}
    assert widths == {width}
    assert bucket_width(60, 60, width) > width


def test_the_span_of_everything_grows_by_doubling() -> None:
    assert [growing_span(age) for age in (0, 59, 61, 130)] == [60, 60, 120, 240]


def test_runs_are_half_open() -> None:
    assert runs(np.array([True, True, False, True])) == [(0, 2), (3, 4)]
    assert runs(np.zeros(3, bool)) == []


def test_a_density_peaks_where_the_values_lie_and_is_one_high() -> None:
    values = np.random.default_rng(2).lognormal(np.log(500), 0.05, 4000)
    found = log_density(values, 100, 2000)
    assert found is not None
    assert found.height.max() == pytest.approx(1.0)
    assert 10 ** found.log_x[int(found.height.argmax())] == pytest.approx(500, rel=0.04)


def test_a_density_counts_what_it_leaves_out() -> None:
    found = log_density(np.r_[ODD, 10.0, 10.5, 9.5, 1e6], 1.0, 100.0)
    assert found is not None
    assert (found.hidden, found.outside) == (4, 1)


@pytest.mark.parametrize("values", [np.empty(0), np.array([np.nan]), np.array([0.0, -3.0])])
def test_a_density_of_nothing_is_none(values: np.ndarray) -> None:
    assert log_density(values, 1, 10) is None


def test_a_density_of_one_value_and_of_equal_values_is_a_peak() -> None:
    for values in (np.array([5.0]), np.full(100, 5.0)):
        found = log_density(values, 1, 10)
        assert found is not None
        assert np.isfinite(found.height).all()
        linear = density(values, 0, 10)
        assert linear is not None
        assert np.isfinite(linear[1]).all()


def test_a_density_outside_its_axis_is_none() -> None:
    assert density(np.array([5.0]), 10, 20) is None
    assert density(np.array([np.nan]), 0, 1) is None


@given(st.lists(st.floats(0, 300), min_size=1, max_size=8), st.floats(1, 30))
def test_labels_keep_their_distance_their_order_and_the_frame(wanted: list[float], gap: float) -> None:
    places = pushed_apart(wanted, gap, 0, 300)
    order = sorted(range(len(wanted)), key=lambda i: (wanted[i], i))
    ordered = [places[i] for i in order]
    assert all(b - a >= gap - 1e-6 for a, b in pairwise(ordered))
    assert all(-1e-6 <= place <= 300 + 1e-6 for place in places)


def test_labels_that_are_apart_stay_where_they_are() -> None:
    assert pushed_apart([10, 200, 100], 16, 0, 300) == [10, 200, 100]
