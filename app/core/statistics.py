"""Summaries, intervals and verdicts. Fed numbers, tested without hardware or clock.

The speed-up is the median over rounds of baseline time over contender time in the same round. Its interval
is distribution-free: order statistics of the sign test (Conover, Practical Nonparametric Statistics, 3rd
ed., 3.2), taken over medians of consecutive blocks so that neighbouring rounds, which resemble each other,
do not pass for independent evidence.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

CONFIDENCE = 0.95
MIN_SPREAD = 5
"""Below this many numbers a spread or an interval would be a guess."""

MAX_BLOCKS = 48
SAME_MARGIN = 0.01
USABLE_FLOOR = 0.05
"""A noise floor above this says more about the machine than about the contenders."""

VerdictWord = Literal["faster", "same", "slower", "unsure"]


class Statistic(msgspec.Struct, frozen=True):
    """A figure shown in tables: declared once, titled everywhere alike."""

    id: str
    title: str
    unit: str
    description: str


STATISTICS: dict[str, Statistic] = {
    s.id: s
    for s in (
        Statistic("median_s", "Median", "s", "half of all samples took less, half more"),
        Statistic("q1_s", "First quartile", "s", "a quarter of all samples took less"),
        Statistic("q3_s", "Third quartile", "s", "three quarters of all samples took less"),
        Statistic("p90_s", "p90", "s", "nine samples in ten took less"),
        Statistic("p99_s", "p99", "s", "ninety-nine samples in a hundred took less"),
        Statistic("min_s", "Minimum", "s", "the shortest sample"),
        Statistic("n", "Samples", "", "undisturbed samples, none left out"),
        Statistic(
            "speed_up",
            "Speed-up",
            "×",
            "median over rounds of baseline time over contender time in the same round, with its interval",
        ),
        Statistic(
            "noise_floor",
            "Noise floor",
            "",
            "how far from 1 the same figure gets for the baseline against itself; no claim below it",
        ),
    )
}


class Summary(msgspec.Struct, frozen=True):
    """Latency per call, seconds. Quartiles and tails are null below five samples."""

    median_s: float
    q1_s: float | None
    q3_s: float | None
    p90_s: float | None
    p99_s: float | None
    min_s: float
    n: int


class Interval(msgspec.Struct, frozen=True):
    """A median and its confidence interval; the bounds are null below five numbers."""

    median: float
    low: float | None
    high: float | None
    n: int


class SpeedUp(msgspec.Struct, frozen=True):
    """Baseline time over contender time: above 1 the contender is faster."""

    median: float
    low: float | None
    high: float | None
    confidence: float
    noise_floor: float | None
    rounds: int


class Verdict(msgspec.Struct, frozen=True):
    word: VerdictWord
    reason: str
    next_steps: tuple[str, ...] = ()


def summarise(seconds: Array) -> Summary | None:
    """Summary of latencies in seconds; None for no samples. Non-finite numbers are a programming error."""
    n = int(seconds.size)
    if n == 0:
        return None
    if n < MIN_SPREAD:
        return Summary(float(np.median(seconds)), None, None, None, None, float(seconds.min()), n)
    low, q1, median, q3, p90, p99 = (
        float(value) for value in np.percentile(seconds, (0, 25, 50, 75, 90, 99))
    )
    return Summary(median, q1, q3, p90, p99, low, n)


@cache
def sign_test_ranks(n: int, confidence: float) -> tuple[int, int]:
    """0-based ranks (low, high) of the order statistics that bound the median of `n` numbers.

    The narrowest symmetric pair of ranks that covers at least `confidence`; the extremes where even they
    cover less (n < 6 at 95 %).
    """
    tail = (1 - confidence) / 2
    cumulative = 0.0
    rank = 0
    for k in range(n // 2 + 1):
        cumulative += math.exp(
            math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) - n * math.log(2)
        )
        if cumulative > tail:
            break
        rank = k + 1
    rank = max(rank, 1)
    return rank - 1, n - rank


def median_interval(values: Array, confidence: float = CONFIDENCE) -> Interval | None:
    """Median of numbers in the order they were measured, with a distribution-free interval."""
    n = int(values.size)
    if n == 0:
        return None
    median = float(np.median(values))
    if n < MIN_SPREAD:
        return Interval(median, None, None, n)
    blocks = block_medians(values)
    low, high = sign_test_ranks(int(blocks.size), confidence)
    ordered = np.sort(blocks)
    return Interval(median, min(float(ordered[low]), median), max(float(ordered[high]), median), n)


def block_medians(values: Array, blocks: int = MAX_BLOCKS) -> Array:
    """Medians of at most `blocks` consecutive runs of equal length; the oldest remainder is left out."""
    n = int(values.size)
    length = n // blocks
    if length < 2:
        return values
    return np.median(values[n - length * blocks :].reshape(blocks, length), axis=1)


def noise_floor(baseline: Array, twin: Array) -> float | None:
    """How far from 1 the interval of the baseline against itself reaches; None below five rounds."""
    interval = median_interval(baseline / twin)
    if interval is None or interval.low is None or interval.high is None:
        return None
    return max(abs(interval.low - 1), abs(interval.high - 1))


def speed_up(baseline: Array, contender: Array, floor: float | None) -> SpeedUp | None:
    """Speed-up from times of the same rounds, [rounds] seconds each; None for no round."""
    interval = median_interval(baseline / contender)
    if interval is None:
        return None
    return SpeedUp(interval.median, interval.low, interval.high, CONFIDENCE, floor, interval.n)


def verdict(speed: SpeedUp, margin: float = SAME_MARGIN) -> Verdict:
    """FASTER, SLOWER or SAME only where the whole interval says so; otherwise UNSURE and what to do."""
    low, high, floor = speed.low, speed.high, speed.noise_floor
    if low is None or high is None or floor is None:
        return Verdict("unsure", f"only {speed.rounds} undisturbed rounds", ("measure longer",))
    if low > 1 + floor:
        return Verdict("faster", f"the interval {_span(low, high)} lies above the noise floor ±{floor:.1%}")
    if high < 1 / (1 + floor):
        return Verdict("slower", f"the interval {_span(low, high)} lies below the noise floor ±{floor:.1%}")
    if floor > USABLE_FLOOR:
        return Verdict(
            "unsure", f"the noise floor is ±{floor:.1%}", ("close other programs", "measure longer")
        )
    margin = max(margin, floor)
    if low >= 1 - margin and high <= 1 + margin:
        return Verdict("same", f"the interval {_span(low, high)} lies within ±{margin:.1%}")
    return Verdict(
        "unsure",
        f"the interval {_span(low, high)} reaches into the noise floor ±{floor:.1%}",
        ("measure longer", "larger sequence"),
    )


def is_precise(speed: SpeedUp | None, target: float) -> bool:
    """Whether half the interval's width, relative to the speed-up, is at most `target`."""
    if speed is None or speed.low is None or speed.high is None:
        return False
    return (speed.high - speed.low) / 2 <= target * speed.median


def has_drifted(values: Array, tolerance: float = 0.2) -> bool:
    """Whether the level of the second half differs from the first's by more than `tolerance`.

    A suspend, a governor or a thermal limit moves the level of every contender; a comparison across the
    step is still paired, but says little of either side.
    """
    if values.size < 2 * MIN_SPREAD:
        return False
    half = values.size // 2
    first, second = float(np.median(values[:half])), float(np.median(values[half:]))
    return abs(second - first) > tolerance * first


def _span(low: float, high: float) -> str:
    return f"{low:.2f}–{high:.2f}"
