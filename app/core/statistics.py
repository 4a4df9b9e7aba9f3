"""Summaries, intervals and verdicts. Fed numbers, tested without hardware or clock.

The speed-up is the median over rounds of baseline time over contender time in the same round. Its interval
is distribution-free: order statistics of the sign test (Conover, Practical Nonparametric Statistics, 3rd
ed., 3.2). Neighbouring rounds resemble each other and must not pass for independent evidence: the ranks are those of
a sample as large as the rounds are worth, their number over the autocorrelation time of their ranks (Geyer,
Practical Markov Chain Monte Carlo, Statistical Science 7, 1992, 3.3; Kendall's correction for short series).
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

CONFIDENCE = 0.95
MIN_SPREAD = 5
"""Below this many numbers a spread or an interval would be a guess."""

MIN_INDEPENDENT = 6
"""Fewer independent numbers cannot bound their median at 95 %: all six fall on one side once in 32."""

EXACT_RANKS = 1000
"""Above this many numbers the binomial tails are those of a normal distribution, to less than one rank."""

CORRELATION_WINDOW = 16_384
"""The newest numbers from which the correlation of neighbours is estimated: it is a property of the machine now."""

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
    """A median and its confidence interval; the bounds are null where there is too little evidence for any."""

    median: float
    low: float | None
    high: float | None
    n: int
    independent: int | None = None


class SpeedUp(msgspec.Struct, frozen=True):
    """Baseline time over contender time: above 1 the contender is faster."""

    median: float
    low: float | None
    high: float | None
    confidence: float
    noise_floor: float | None
    rounds: int
    independent_rounds: int | None = None


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


@lru_cache(maxsize=4096)
def sign_test_ranks(n: int, confidence: float) -> tuple[int, int]:
    """0-based ranks (low, high) of the order statistics that bound the median of `n` numbers.

    The narrowest symmetric pair of ranks that covers at least `confidence`, up to one rank wider where `n` is
    large; the extremes where even they cover less (n < 6 at 95 %).
    """
    tail = (1 - confidence) / 2
    if n > EXACT_RANKS:
        rank = max(int((n - NormalDist().inv_cdf(1 - tail) * math.sqrt(n)) / 2), 1)
        return rank - 1, n - rank
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
    """Median of numbers in the order they were measured, with a distribution-free interval.

    The bounds are null where the numbers are worth fewer than six independent ones.
    """
    n = int(values.size)
    if n == 0:
        return None
    median = float(np.median(values))
    if n < MIN_SPREAD:
        return Interval(median, None, None, n)
    independent = int(independent_count(values))
    if independent < MIN_INDEPENDENT:
        return Interval(median, None, None, n, independent)
    rank, _ = sign_test_ranks(independent, confidence)
    # The bound's place in a sample of `independent` numbers, moved outward to a place in this one.
    low = rank if independent == n else int((rank + 0.5) / independent * n - 0.5)
    ordered = np.partition(values, (low, n - 1 - low))
    return Interval(median, float(ordered[low]), float(ordered[n - 1 - low]), n, independent)


def independent_count(values: Array) -> float:
    """How many independent numbers tell as much of the median as these, given in the order they were measured.

    At most their number; less by the autocorrelation time of their ranks, the longer of two estimates: the sum
    of autocorrelations up to where they vanish, and that of a first-order process with the same neighbours.
    """
    n = int(values.size)
    recent = values[-CORRELATION_WINDOW:]
    m = int(recent.size)
    if m < MIN_SPREAD:
        return float(n)
    _, ranks = np.unique(recent, return_inverse=True)
    centred = ranks - ranks.mean()
    spectrum = np.fft.rfft(centred, 1 << (2 * m - 1).bit_length())
    covariance = np.fft.irfft(np.abs(spectrum) ** 2)[:m]
    if covariance[0] <= 0:
        return float(n)
    correlation = covariance / covariance[0]
    pairs = correlation[0 : m - m % 2 : 2] + correlation[1:m:2]
    vanished = np.flatnonzero(pairs <= 0)
    initial = np.minimum.accumulate(pairs[: vanished[0]] if vanished.size else pairs)
    summed = 2 * float(initial.sum()) - 1
    neighbour = min((m * float(correlation[1]) + 1) / (m - 3), 0.999)
    return n / max(1.0, summed, (1 + neighbour) / (1 - neighbour))


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
    return SpeedUp(
        interval.median, interval.low, interval.high, CONFIDENCE, floor, interval.n, interval.independent
    )


def verdict(speed: SpeedUp, margin: float = SAME_MARGIN) -> Verdict:
    """FASTER, SLOWER or SAME only where the whole interval says so; otherwise UNSURE and what to do."""
    low, high, floor = speed.low, speed.high, speed.noise_floor
    if low is None or high is None or floor is None:
        return Verdict("unsure", _too_little(speed), ("measure longer",))
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


def half_width(speed: SpeedUp | None) -> float | None:
    """Half the interval's width as a share of the speed-up; None where there is no interval."""
    if speed is None or speed.low is None or speed.high is None:
        return None
    return (speed.high - speed.low) / 2 / speed.median


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


def _too_little(speed: SpeedUp) -> str:
    if speed.independent_rounds is None or speed.independent_rounds >= MIN_INDEPENDENT:
        return f"only {speed.rounds} undisturbed rounds"
    return (
        f"{speed.rounds} rounds that resemble each other tell no more than {speed.independent_rounds} would"
    )


def _span(low: float, high: float) -> str:
    return f"{low:.2f}–{high:.2f}"
