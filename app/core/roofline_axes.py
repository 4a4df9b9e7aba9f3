"""The two logarithmic axes of a roofline, for the window and for reports alike."""

from __future__ import annotations

import math

import msgspec

from app.core.roofline import Roofline
from app.core.text import number

_STEPS = (1, 2, 5)
_ROOM = 1.6


class Axes(msgspec.Struct, frozen=True):
    """FLOP per byte to the right, FLOP/s up; all four bounds above zero."""

    x_low: float
    x_high: float
    y_low: float
    y_high: float

    def x(self, intensity: float) -> float:
        """0 at the left edge, 1 at the right."""
        return _share(intensity, self.x_low, self.x_high)

    def y(self, flops_per_s: float) -> float:
        """0 at the bottom, 1 at the top."""
        return _share(flops_per_s, self.y_low, self.y_high)


def axes_of(roofline: Roofline) -> Axes | None:
    """Wide enough for every point, the ridge and some roof on both sides of it; None without peaks."""
    peaks = roofline.peaks
    if peaks is None:
        return None
    intensities = [point.work.intensity for point in roofline.points]
    achieved = [point.achieved for point in roofline.points]
    x_low = min([*intensities, peaks.ridge / 8]) / _ROOM
    x_high = max([*intensities, peaks.ridge * 4]) * _ROOM
    top = max([*achieved, peaks.compute])
    y_low = min([*achieved, peaks.compute / 30]) / _ROOM
    return Axes(x_low, x_high, y_low, top * _ROOM)


def ticks(low: float, high: float, at_most: int = 9) -> list[float]:
    """1, 2 and 5 times powers of ten within low…high, or powers alone where those are too many."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    found: list[float] = []
    for steps in (_STEPS, (1,)):
        found = [s * 10.0**k for k in range(first, last + 1) for s in steps if low <= s * 10.0**k <= high]
        if len(found) <= at_most:
            return found
    stride = -(-len(found) // at_most)
    return found[::stride]


def label(value: float) -> str:
    """A tick's number: `0.5`, `20`, `2,000`."""
    return number(value, 0 if value >= 1 else min(6, -math.floor(math.log10(value) + 1e-9)))


def _share(value: float, low: float, high: float) -> float:
    return (math.log10(max(value, 1e-300)) - math.log10(low)) / (math.log10(high) - math.log10(low))
