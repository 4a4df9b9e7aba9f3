"""Statistics are fed numbers: no hardware, no clock."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from app.core.statistics import (
    SpeedUp,
    half_width,
    has_drifted,
    independent_count,
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


def test_five_rounds_bound_no_median_and_six_do() -> None:
    for n, bounded in ((5, False), (6, True)):
        interval = median_interval(np.array([3.0, 1.0, 4.0, 2.0, 6.0, 0.5])[:n])
        assert interval is not None
        assert (interval.low is not None) == bounded


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


def test_ranks_of_many_numbers_are_at_most_one_wider_than_the_exact_ones() -> None:
    for n in (1001, 1500, 4001, 16_384):
        tails = np.cumsum([math.comb(n, k) / 2**n if n < 1020 else _binomial(n, k) for k in range(n // 2)])
        exact = int(np.searchsorted(tails, 0.025, side="right"))
        low, high = sign_test_ranks(n, 0.95)
        assert exact - 2 <= low <= exact - 1
        assert high == n - 1 - low


def _binomial(n: int, k: int) -> float:
    return math.exp(math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) - n * math.log(2))


TRUE_RATIO = 1.3
Pair = tuple[np.ndarray, np.ndarray]


def first_order(rng: np.random.Generator, n: int, neighbour: float, scale: float) -> np.ndarray:
    """Stationary noise in which each number keeps `neighbour` of the one before."""
    noise = rng.normal(0, scale, n)
    noise[1:] *= math.sqrt(1 - neighbour**2)
    for i in range(1, n):
        noise[i] += neighbour * noise[i - 1]
    return noise


def normal(rng: np.random.Generator, n: int) -> Pair:
    return 1 + rng.normal(0, 0.05, n), 1 + rng.normal(0, 0.05, n)


def heavy_tailed(rng: np.random.Generator, n: int) -> Pair:
    draw = lambda: np.exp(0.03 * rng.standard_t(1.5, n).clip(-100, 100))  # noqa: E731
    return draw(), draw()


def skewed(rng: np.random.Generator, n: int) -> Pair:
    return 1 + 0.1 * rng.exponential(1, n) ** 2, 1 + 0.1 * rng.exponential(1, n) ** 2


def bimodal(rng: np.random.Generator, n: int) -> Pair:
    draw = lambda: (1 + 0.5 * (rng.random(n) < 0.4)) * np.exp(rng.normal(0, 0.02, n))  # noqa: E731
    return draw(), draw()


def bimodal_in_runs(rng: np.random.Generator, n: int) -> Pair:
    def draw() -> np.ndarray:
        state = (np.cumsum(rng.random(n) < 0.1) + rng.integers(2)) % 2
        return (1 + 0.3 * state) * np.exp(rng.normal(0, 0.02, n))

    return draw(), draw()


def drifting(rng: np.random.Generator, n: int) -> Pair:
    """The machine slows down by half, unevenly, under both."""
    level = np.exp(np.linspace(0, 0.5, n) + first_order(rng, n, 0.99, 0.1))
    return level * np.exp(rng.normal(0, 0.03, n)), level * np.exp(rng.normal(0, 0.03, n))


def autocorrelated(rng: np.random.Generator, n: int) -> Pair:
    return np.exp(first_order(rng, n, 0.8, 0.05)), np.exp(first_order(rng, n, 0.8, 0.05))


def strongly_autocorrelated(rng: np.random.Generator, n: int) -> Pair:
    return np.exp(first_order(rng, n, 0.95, 0.05)), np.exp(first_order(rng, n, 0.95, 0.05))


KINDS = (
    normal,
    heavy_tailed,
    skewed,
    bimodal,
    bimodal_in_runs,
    drifting,
    autocorrelated,
    strongly_autocorrelated,
)


@pytest.mark.parametrize("rounds", [40, 300, 1500])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_the_interval_covers_the_true_ratio(
    kind: Callable[[np.random.Generator, int], Pair], rounds: int
) -> None:
    """In 1,000 trials each. No interval is an honest answer too, but must not be the usual one with many rounds."""
    rng = np.random.default_rng(7)
    covered = bounded = 0
    trials = 1000
    for _ in range(trials):
        baseline, contender = kind(rng, rounds)
        speed = speed_up(baseline, contender / TRUE_RATIO, 0.01)
        assert speed is not None
        if speed.low is None or speed.high is None:
            covered += 1
            continue
        bounded += 1
        covered += speed.low <= TRUE_RATIO <= speed.high
    assert covered >= 0.93 * trials
    assert bounded >= 0.9 * trials or rounds < 1500


def test_rounds_that_resemble_each_other_count_for_less() -> None:
    rng = np.random.default_rng(5)
    independent = independent_count(rng.normal(size=2000))
    resembling = independent_count(first_order(rng, 2000, 0.9, 1.0))
    assert 1500 < independent <= 2000
    assert 50 < resembling < 200  # 2000 (1 - 0.9) / (1 + 0.9) = 105
    assert independent_count(np.full(50, 3.0)) == 50
    speed = speed_up(np.linspace(1, 2, 30), np.ones(30), 0.01)
    assert speed is not None
    assert speed.low is None
    assert "resemble each other" in verdict(speed).reason


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
    assert half_width(made(1.98, 2.02)) == pytest.approx(0.01)
    assert half_width(made(1.9, 2.1)) == pytest.approx(0.05)
    assert half_width(None) is None


def test_a_step_of_the_level_is_drift_and_noise_is_not() -> None:
    rng = np.random.default_rng(1)
    level = np.exp(rng.normal(0, 0.1, 200))
    assert not has_drifted(level)
    assert has_drifted(np.concatenate([level[:100], level[100:] * 1.5]))
