"""Statistics are fed numbers: no hardware, no clock."""

from __future__ import annotations

import math

import numpy as np
import pytest

from app.core.statistics import (
    SpeedUp,
    block_medians,
    has_drifted,
    is_precise,
    median_interval,
    noise_floor,
    sign_test_ranks,
    speed_up,
    summarise,
    verdict,
)


def test_summary_of_known_numbers() -> None:
    summary = summarise(np.arange(1.0, 102.0))
    assert summary is not None
    assert (summary.median_s, summary.q1_s, summary.q3_s, summary.p90_s, summary.p99_s) == (
        51,
        26,
        76,
        91,
        100,
    )
    assert (summary.min_s, summary.n) == (1, 101)


@pytest.mark.parametrize("n", [1, 2, 4])
def test_below_five_samples_there_is_no_spread_and_no_claim(n: int) -> None:
    values = np.full(n, 2.0)
    summary = summarise(values)
    assert summary is not None
    assert summary.median_s == 2.0
    assert summary.q1_s is summary.q3_s is summary.p90_s is summary.p99_s is None
    interval = median_interval(values)
    assert interval is not None
    assert interval.low is interval.high is None
    speed = speed_up(values, values / 3, 0.01)
    assert speed is not None
    assert verdict(speed).word == "unsure"


def test_five_samples_have_a_spread() -> None:
    summary = summarise(np.array([1.0, 2, 3, 4, 5]))
    assert summary is not None
    assert (summary.q1_s, summary.q3_s) == (2, 4)


def test_no_samples_summarise_to_nothing() -> None:
    assert summarise(np.array([])) is None
    assert median_interval(np.array([])) is None
    assert speed_up(np.array([]), np.array([]), 0.0) is None


@pytest.mark.parametrize(("n", "ranks"), [(6, (0, 5)), (10, (1, 8)), (20, (5, 14)), (48, (16, 31))])
def test_ranks_of_the_sign_test(n: int, ranks: tuple[int, int]) -> None:
    """Against binomial tails worked out with exact integers."""
    assert sign_test_ranks(n, 0.95) == ranks
    low, high = ranks
    inside = sum(math.comb(n, k) for k in range(low + 1, high + 1)) / 2**n
    assert inside >= 0.95
    narrower = sum(math.comb(n, k) for k in range(low + 2, high)) / 2**n
    assert narrower < 0.95


def test_blocks_keep_the_newest_and_are_of_equal_length() -> None:
    values = np.arange(101.0)
    blocks = block_medians(values, 10)
    assert blocks.size == 10
    assert blocks[-1] == np.median(values[-10:])


def coverage(make: object, trials: int = 400) -> float:
    rng = np.random.default_rng(7)
    hits = 0
    for _ in range(trials):
        interval = median_interval(make(rng))  # type: ignore[operator]
        assert interval is not None
        assert interval.low is not None
        assert interval.high is not None
        hits += interval.low <= 1.0 <= interval.high
    return hits / trials


def test_the_interval_covers_the_true_median_of_independent_noise() -> None:
    assert coverage(lambda rng: np.exp(rng.normal(0, 0.05, 300))) >= 0.93


def test_the_interval_covers_under_heavy_tails() -> None:
    assert coverage(lambda rng: np.exp(0.02 * rng.standard_t(1.5, 300))) >= 0.93


def test_blocking_keeps_the_interval_honest_where_neighbours_resemble_each_other() -> None:
    def correlated(rng: np.random.Generator) -> np.ndarray:
        noise = rng.normal(0, 0.05, 2400)
        for i in range(1, noise.size):
            noise[i] += 0.6 * noise[i - 1]
        return np.exp(noise)

    assert coverage(correlated, 150) >= 0.90


def test_the_noise_floor_grows_with_the_noise() -> None:
    rng = np.random.default_rng(3)
    base = np.ones(200)
    quiet = noise_floor(base, np.exp(rng.normal(0, 0.01, 200)))
    loud = noise_floor(base, np.exp(rng.normal(0, 0.2, 200)))
    assert quiet is not None
    assert loud is not None
    assert 0 < quiet < 0.01 < loud


def made(low: float, high: float, floor: float | None = 0.01) -> SpeedUp:
    return SpeedUp((low + high) / 2, low, high, 0.95, floor, 500)


@pytest.mark.parametrize(
    ("speed", "word"),
    [
        (made(1.05, 1.10), "faster"),
        (made(0.90, 0.95), "slower"),
        (made(0.995, 1.005), "same"),
        (made(0.98, 1.03), "unsure"),
        (made(1.005, 1.02), "unsure"),
        (made(1.02, 1.04, floor=0.03), "unsure"),
        (made(0.99, 1.01, floor=0.2), "unsure"),
        (made(1.5, 1.6, floor=0.2), "faster"),
        (made(1.05, 1.10, floor=None), "unsure"),
    ],
)
def test_a_verdict_needs_the_whole_interval_outside_the_floor(speed: SpeedUp, word: str) -> None:
    found = verdict(speed)
    assert found.word == word
    assert found.reason
    assert bool(found.next_steps) == (word == "unsure")


def test_precision_is_half_the_width_relative_to_the_speed_up() -> None:
    assert is_precise(made(1.98, 2.02), 0.011)
    assert not is_precise(made(1.9, 2.1), 0.011)
    assert not is_precise(None, 0.5)


def test_a_step_of_the_level_is_drift_and_noise_is_not() -> None:
    rng = np.random.default_rng(1)
    level = np.exp(rng.normal(0, 0.1, 200))
    assert not has_drifted(level)
    assert has_drifted(np.concatenate([level[:100], level[100:] * 1.5]))
