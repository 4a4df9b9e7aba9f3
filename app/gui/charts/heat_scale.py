"""Colours of a heat map: diverging about 1 for ratios, sequential for amounts; log scales both."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from PySide6.QtGui import QColor

from app.gui.theme import Theme, contrast

LEAST_LOSS, LEAST_GAIN = 0.8, 4.6
"""The ends of the scale where the data stay within: a difference of 2 % must not look like one of 80 %."""


@dataclass(frozen=True)
class HeatScale:
    """`low` and `high` are its ends; `neutral` is the value without colour, `low` for amounts."""

    low: float
    high: float
    neutral: float

    @classmethod
    def of_ratios(cls, values: Iterable[float]) -> HeatScale:
        known = [value for value in values if value > 0 and math.isfinite(value)]
        return cls(min([LEAST_LOSS, *known]), max([LEAST_GAIN, *known]), 1.0)

    @classmethod
    def of_amounts(cls, values: Iterable[float]) -> HeatScale:
        known = [value for value in values if value > 0 and math.isfinite(value)]
        low, high = min(known, default=1.0), max(known, default=2.0)
        return cls(low, max(high, low * 1.001), low)

    def share(self, value: float) -> float:
        """Where a value lies: −1 at the largest loss, 0 at neutral, 1 at the top."""
        if not value > 0 or not math.isfinite(value):
            return 0.0
        end = self.high if value >= self.neutral else self.low
        if end == self.neutral:
            return 0.0
        share = math.log(value / self.neutral) / math.log(end / self.neutral)
        return min(share, 1.0) if value >= self.neutral else -min(share, 1.0)

    def colour(self, value: float, theme: Theme) -> QColor:
        share = self.share(value)
        if share < 0:
            return _mixed((theme.heat[0], theme.heat_slow), -share)
        return _mixed(theme.heat, share)

    def ticks(self) -> tuple[float, ...]:
        """Values to name beside the scale: 1 and the doublings from it for ratios, the ends for amounts."""
        if self.neutral == self.low:
            return (self.low, self.high)
        ticks = [self.low, 1.0]
        step = 2.0
        while step ** (len(ticks) - 1) <= self.high and len(ticks) < 5:
            ticks.append(step ** (len(ticks) - 1))
            if len(ticks) == 3 and self.high >= 32:
                step = 4.0
        return tuple(ticks)


def ink_on(fill: QColor) -> QColor:
    """Pure black or white: the better of the two is never below 4.5:1, whatever the fill."""
    black, white = QColor("#000000"), QColor("#FFFFFF")
    return black if contrast(black, fill) >= contrast(white, fill) else white


def _mixed(stops: tuple[str, ...], share: float) -> QColor:
    """A colour between even stops, mixed channel by channel."""
    place = min(max(share, 0.0), 1.0) * (len(stops) - 1)
    index = min(int(place), len(stops) - 2)
    first, second, part = QColor(stops[index]), QColor(stops[index + 1]), place - index
    return QColor.fromRgbF(
        *(
            a + (b - a) * part
            for a, b in (
                (first.redF(), second.redF()),
                (first.greenF(), second.greenF()),
                (first.blueF(), second.blueF()),
            )
        )
    )
