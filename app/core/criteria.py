"""When a warm-up is over and when measuring may stop: decided by what was measured, with the reason."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np

from app.core.measurements import Standing, StoppedBecause
from app.core.statistics import Array, SpeedUp, half_width, median_interval

REASONS: dict[str, str] = {
    "target_ci": "every speed-up is known as well as was asked",
    "max_seconds": "the time is up",
    "drift": "a speed-up itself moved, and measuring longer would not settle it",
    "no_contender": "nothing was left to measure",
}

WINDOW = 8
STEADY = 0.03
WARM_UP_LIMIT = 160
"""Samples after which a level that is still restless is taken for what it is: noise, not warming up."""

MOVED = 0.02
MOVED_ROUNDS = 60


class WarmUp(msgspec.Struct, frozen=True):
    """How many samples at the head of a series belong to the warm-up, and whether the level was steady then."""

    samples: int
    steady: bool


def warm_up_of(seconds: Array) -> WarmUp:
    """The warm-up of latencies in the order they were taken.

    It ends with the first window of eight whose median the next eight repeat, within 3 % or within what their own
    spread lets the medians of two equal windows differ. A level that is restless throughout has no warm-up.
    """
    n = int(seconds.size)
    for begin in range(0, min(n - 2 * WINDOW, WARM_UP_LIMIT) + 1, WINDOW // 2):
        first, second = seconds[begin : begin + WINDOW], seconds[begin + WINDOW : begin + 2 * WINDOW]
        one, two = float(np.median(first)), float(np.median(second))
        # Two medians of eight normal numbers differ by less than 1.25 of their deviation in 19 cases of 20.
        noise = 1.25 * (_deviation(first) + _deviation(second)) / 2
        if abs(one - two) <= max(STEADY * two, noise):
            return WarmUp(begin, True)
    return WarmUp(0, False)


def _deviation(values: Array) -> float:
    low, high = np.percentile(values, (25, 75))
    return float(high - low) / 1.349


def moved(ratios: Array) -> tuple[float, float] | None:
    """The speed-up of the first half and of the second, where they certainly differ by more than 2 %.

    `ratios`: baseline time over contender time, [rounds]. A speed-up that moves has no value to be known better.
    """
    if ratios.size < MOVED_ROUNDS:
        return None
    half = ratios.size // 2
    early, late = median_interval(ratios[:half]), median_interval(ratios[half:])
    if early is None or late is None or None in (early.low, early.high, late.low, late.high):
        return None
    apart = early.high < late.low or late.high < early.low  # type: ignore[operator]
    if not apart or abs(late.median - early.median) <= MOVED * early.median:
        return None
    return early.median, late.median


def standing(
    speeds: Iterable[SpeedUp | None],
    target: float,
    spent_s: float,
    limit_s: float,
    may_stop: bool,
    has_moved: bool,
) -> Standing:
    """Judge the speed-ups of all contenders. `may_stop`: the least number of rounds is made and warm-up is over."""
    widths = [half_width(speed) for speed in speeds]
    precision = None if not widths or None in widths else max(width for width in widths if width is not None)
    stop: StoppedBecause | None = None
    if spent_s >= limit_s:
        stop = "max_seconds"
    elif may_stop and precision is not None and precision <= target:
        stop = "target_ci"
    elif may_stop and has_moved and spent_s >= limit_s / 2:
        stop = "drift"
    return Standing(stop, precision, target, spent_s, limit_s)
