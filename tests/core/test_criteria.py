"""Warm-up and stopping are decided by numbers alone."""

from __future__ import annotations

import numpy as np
import pytest

from app.core.criteria import WARM_UP_LIMIT, moved, standing, warm_up_of
from app.core.statistics import SpeedUp


def level(n: int, median: float = 1.0, noise: float = 0.005, seed: int = 1) -> np.ndarray:
    return median * np.exp(np.random.default_rng(seed).normal(0, noise, n))


def known(precision: float) -> SpeedUp:
    return SpeedUp(2.0, 2.0 * (1 - precision), 2.0 * (1 + precision), 0.95, None, 100)


def test_a_level_that_is_steady_at_once_has_no_warm_up() -> None:
    found = warm_up_of(level(200))
    assert (found.samples, found.steady) == (0, True)


def test_a_slow_head_is_the_warm_up_and_nothing_else_is() -> None:
    head = np.linspace(2.0, 1.0, 40)
    found = warm_up_of(np.concatenate([head, level(100)]))
    assert found.steady
    assert 28 <= found.samples <= 44


def test_noise_without_trend_is_no_warm_up() -> None:
    lengths = [warm_up_of(level(300, noise=0.3, seed=seed)).samples for seed in range(200)]
    assert np.mean(np.array(lengths) > 0) <= 0.15
    assert max(lengths) <= 16


def test_a_level_that_never_settles_is_not_thrown_away() -> None:
    found = warm_up_of(np.geomspace(1, 1000, 400))
    assert (found.samples, found.steady) == (0, False)
    assert WARM_UP_LIMIT < 400


@pytest.mark.parametrize("n", [0, 1, 15])
def test_too_few_samples_are_not_called_steady(n: int) -> None:
    assert not warm_up_of(level(n)).steady


def test_measuring_stops_when_the_widest_interval_is_narrow_enough() -> None:
    speeds = [known(0.004), known(0.02)]
    assert standing(speeds, 0.01, 1.0, 5.0, True, False).stop is None
    assert standing(speeds, 0.021, 1.0, 5.0, True, False).stop == "target_ci"
    assert standing([known(0.004), None], 0.021, 1.0, 5.0, True, False).stop is None
    assert standing(speeds, 0.021, 1.0, 5.0, False, False).stop is None


def test_time_ends_it_whatever_is_known() -> None:
    assert standing([None], 0.01, 5.0, 5.0, False, False).stop == "max_seconds"


def test_a_speed_up_that_moves_ends_it_half_way() -> None:
    assert standing([known(0.1)], 0.01, 1.0, 5.0, True, True).stop is None
    assert standing([known(0.1)], 0.01, 2.5, 5.0, True, True).stop == "drift"


def test_the_way_behind_is_by_time_or_by_evidence() -> None:
    assert standing([known(0.04)], 0.01, 0.0, 5.0, True, False).share == pytest.approx(1 / 16)
    assert standing([known(0.04)], 0.01, 4.0, 5.0, True, False).share == pytest.approx(0.8)
    assert standing([None], 0.01, 0.0, 5.0, True, False).share == 0
    assert standing([], 0.01, 6.0, 5.0, True, False).share == 1


def test_a_step_of_the_speed_up_has_moved_it() -> None:
    early, late = moved(np.concatenate([level(100), level(100, 1.2)])) or (0.0, 0.0)
    assert early == pytest.approx(1.0, abs=0.01)
    assert late == pytest.approx(1.2, abs=0.01)


def test_noise_and_small_steps_have_not_moved_it() -> None:
    assert sum(moved(level(200, noise=0.1, seed=seed)) is not None for seed in range(200)) <= 4
    assert moved(np.concatenate([level(100, noise=0.001), level(100, 1.01, noise=0.001)])) is None
    assert moved(np.concatenate([level(10), level(10, 2.0)])) is None
