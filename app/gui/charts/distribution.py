"""How latencies are distributed, or, where no verdict can be given, how the speed-up itself is."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen

from app.core.catalog import is_hidden
from app.core.curves import Density, density, drawable, log_density
from app.core.results import Entry, pairs_of
from app.core.statistics import SpeedUp
from app.core.text import number, percent, times
from app.core.ticks import between, logarithmic, tick_label, value_label
from app.gui.charts.painted import PaintedChart
from app.gui.charts.painting import CENTRE, LEFT, RIGHT, dashed, width_of, write
from app.gui.charts.style import faded, style_of
from app.gui.parts.look import Look
from app.gui.snapshot import Snapshot

Array = npt.NDArray[np.float64]
Place = Callable[[float], float]

US = 1e6
MAX_SAMPLES = 4_000
"""More would change no pixel: a long series is thinned evenly."""

_AXIS = 22
_LABEL_ROW = 14
_REACH = 2
"""How far the axis of a difference goes beyond interval and noise floor, in their width."""


@dataclass(frozen=True)
class Hump:
    """One contender's density over log10 of µs, and its p99 in µs."""

    name: str
    density: Density
    p99: float | None
    centre: float


@dataclass(frozen=True)
class Humps:
    low: float
    high: float
    humps: tuple[Hump, ...]
    outside: int
    hidden: int


@dataclass(frozen=True)
class Difference:
    """The speed-up of one contender in each paired round, with its interval and the noise floor."""

    name: str
    baseline: str
    speed: SpeedUp
    x: Array
    height: Array
    low: float
    high: float
    beyond: float
    """Share of the rounds that lie beyond `low` and `high`."""


def humps_of(snapshot: Snapshot) -> Humps | None:
    """Densities of all undisturbed samples on one log axis; None where there is nothing to draw."""
    values: dict[str, Array] = {}
    hidden = 0
    for entry in snapshot.entries:
        series = snapshot.record.series.get(entry.implementation) if snapshot.record else None
        if series is None or is_hidden(entry.implementation):
            continue
        good = series.seconds[series.undisturbed] * US
        keep = drawable(good)
        hidden += int(keep.size - keep.sum())
        good = good[keep][:: max(1, good.size // MAX_SAMPLES)]
        if good.size:
            values[entry.implementation] = good
    if not values:
        return None
    p99 = {
        e.implementation: e.latency.p99_s * US
        for e in snapshot.entries
        if e.latency is not None and e.latency.p99_s is not None and e.implementation in values
    }
    low = min(float(np.percentile(v, 0.5)) for v in values.values())
    high = max(max(float(np.percentile(v, 98)) for v in values.values()), max(p99.values(), default=0.0))
    room = max((high / low) ** 0.06, 1.03)
    low, high = low / room, high * room
    humps, outside = [], 0
    for name, good in values.items():
        found = log_density(good, low, high)
        if found is not None:
            humps.append(Hump(name, found, p99.get(name), float(np.median(good))))
            outside += found.outside
    return Humps(low, high, tuple(humps), outside, hidden) if humps else None


def difference_of(snapshot: Snapshot) -> Difference | None:
    """The challenger's paired ratios where its verdict is unsure for want of evidence, otherwise None."""
    entry = snapshot.entry(snapshot.challenger)
    if entry is None or entry.verdict != "unsure" or entry.speed_up is None or snapshot.record is None:
        return None
    found = pairs_of(snapshot.record, entry.implementation, snapshot.baseline)
    if found is None:
        return None
    ratios = found.first / found.second
    ratios = ratios[drawable(ratios)][-MAX_SAMPLES:]
    if ratios.size < 5:
        return None
    speed = entry.speed_up
    floor = speed.noise_floor or 0.0
    least, most = min(1 - floor, speed.low or 1.0), max(1 + floor, speed.high or 1.0)
    # A busy machine makes ratios of a hundred: beside them interval and floor would be a single line.
    reach = max(_REACH * (most - least), 0.05)
    low = min(max(float(np.percentile(ratios, 1)), least - reach), least)
    high = max(min(float(np.percentile(ratios, 99)), most + reach), most)
    room = max(0.06 * (high - low), 0.01)
    low, high = max(0.0, low - room), high + room
    drawn = density(ratios, low, high)
    if drawn is None:
        return None
    beyond = int(((ratios < low) | (ratios > high)).sum()) / ratios.size
    return Difference(entry.implementation, snapshot.baseline, speed, *drawn, low, high, beyond)


class DistributionChart(PaintedChart):
    """Densities with pins at p99; for an unsure verdict the difference to the baseline."""

    def __init__(self, look: Look) -> None:
        super().__init__(look, "Latency distribution")
        self._humps: Humps | None = None
        self._difference: Difference | None = None
        self._frozen = False

    def show_snapshot(self, snapshot: Snapshot) -> None:
        self._frozen = snapshot.dimmed
        self._difference = difference_of(snapshot)
        if self._difference is not None:
            one = self._difference
            base = style_of(one.baseline, self.look.theme).short
            self._humps = None
            self.title = f"Difference to {base}"
            ratio = f"{base} ÷ {style_of(one.name, self.look.theme).short}"
            self.caption = f"{ratio}, per paired round"
            if one.beyond > 0.03:
                self.caption = f"{ratio} · {percent(one.beyond)} of rounds beyond"
        else:
            self._humps = humps_of(snapshot)
            self.title = "Latency distribution"
            self.caption = "µs, log scale · equal heights · pin = p99"
            left_out = (self._humps.outside + self._humps.hidden) if self._humps else 0
            if self._humps and left_out > 0.03 * sum(len(s) for s in _all_series(snapshot.entries, snapshot)):
                self.caption = f"µs, log scale · equal heights · {number(left_out)} beyond"
        self.setAccessibleName(self.title)
        self.setAccessibleDescription(self._sentence())
        self.update()

    def _sentence(self) -> str:
        if self._difference is not None:
            speed = self._difference.speed
            return f"{self.caption}: {times(speed.median)}, {_interval(speed)}"
        if self._humps is None:
            return "no samples"
        return ", ".join(
            f"{style_of(h.name, self.look.theme).short} p99 {value_label(h.p99)} µs"
            for h in self._humps.humps
            if h.p99 is not None
        )

    def paint_chart(self, painter: QPainter, area: QRectF) -> None:
        area = area.adjusted(0, 2, 0, -4)
        if self._difference is not None:
            self._paint_difference(painter, area, self._difference)
        elif self._humps is not None:
            self._paint_humps(painter, area, self._humps)
        else:
            text = "Appears with the first undisturbed samples"
            write(painter, area, text, self.look.font(13), self.look.colour("text_secondary"), LEFT)

    # ---- densities ----------------------------------------------------------------------------------

    def _paint_humps(self, painter: QPainter, area: QRectF, drawn: Humps) -> None:
        low, high = math.log10(drawn.low), math.log10(drawn.high)
        base = area.bottom() - _AXIS

        def x(us: float) -> float:
            return area.left() + (math.log10(us) - low) / (high - low) * area.width()

        labels = self._label_places(drawn, area, x)
        rows = 1 + max((row for _, row, _ in labels), default=0)
        top = area.top() + rows * _LABEL_ROW + 4
        painter.setPen(QPen(self.look.colour("strong_line"), 1))
        painter.drawLine(QPointF(area.left(), base + 0.5), QPointF(area.right(), base + 0.5))
        self._log_axis(painter, area, drawn, x)
        for hump in drawn.humps:
            self._paint_hump(painter, hump, area, top, base, low, high)
        for hump in drawn.humps:
            if hump.p99 is not None and drawn.low <= hump.p99 <= drawn.high:
                self._pin(painter, hump, x(hump.p99), base, base - top)
        font = self.look.font(11, 500)
        for hump, row, left in labels:
            name = style_of(hump.name, self.look.theme).short
            place = QRectF(left, top - 4 - (row + 1) * _LABEL_ROW, width_of(name, font) + 1, _LABEL_ROW)
            write(painter, place, name, font, self.look.colour("text_secondary"))

    def _label_places(self, drawn: Humps, area: QRectF, x: Place) -> list[tuple[Hump, int, float]]:
        """Names above their peaks; what would overlap goes a row up."""
        font = self.look.font(11, 500)
        placed: list[tuple[Hump, int, float]] = []
        ends: list[float] = []
        for hump in sorted(drawn.humps, key=lambda h: h.centre):
            width = width_of(style_of(hump.name, self.look.theme).short, font)
            left = min(max(x(hump.centre) - width / 2, area.left()), area.right() - width)
            row = next((r for r, end in enumerate(ends) if left > end + 6), len(ends))
            if row == len(ends):
                ends.append(0.0)
            ends[row] = left + width
            placed.append((hump, row, left))
        return placed

    def _paint_hump(
        self, painter: QPainter, hump: Hump, area: QRectF, top: float, base: float, low: float, high: float
    ) -> None:
        colour = self._own(hump.name)
        xs = area.left() + (hump.density.log_x - low) / (high - low) * area.width()
        ys = base - hump.density.height * (base - top)
        shown = hump.density.height > 0.004
        if not shown.any():
            return
        first, last = int(np.argmax(shown)), int(shown.size - np.argmax(shown[::-1]))
        line = QPainterPath(QPointF(float(xs[first]), base))
        for i in range(first, last):
            line.lineTo(float(xs[i]), float(ys[i]))
        line.lineTo(float(xs[last - 1]), base)
        painter.fillPath(line, faded(colour, 0.30 if self.look.theme.name == "dark" else 0.22))
        painter.setPen(QPen(colour, 1.4))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawPath(line)

    def _pin(self, painter: QPainter, hump: Hump, x: float, base: float, height: float) -> None:
        colour = self._own(hump.name)
        top = base - min(14.0, max(8.0, height * 0.25))
        painter.setPen(QPen(colour, 1.2))
        painter.drawLine(QPointF(x, base), QPointF(x, top))
        style_of(hump.name, self.look.theme).mark(painter, QPointF(x, top), 7, colour)

    def _log_axis(self, painter: QPainter, area: QRectF, drawn: Humps, x: Place) -> None:
        font = self.look.font(11)
        ticks = logarithmic(drawn.low, drawn.high, max(3, int(area.width() // 46)))
        step = min((b - a for a, b in pairwise(ticks)), default=1.0)
        end = -math.inf
        for tick in ticks:
            word = tick_label(tick, step)
            width = width_of(word, font)
            left = min(max(x(tick) - width / 2, area.left()), area.right() - width)
            if left > end + 8:
                place = QRectF(left, area.bottom() - _AXIS + 5, width + 1, 16)
                write(painter, place, word, font, self.look.colour("text_tertiary"))
                end = left + width

    # ---- the difference -----------------------------------------------------------------------------

    def _paint_difference(self, painter: QPainter, area: QRectF, one: Difference) -> None:
        look = self.look
        base, top = area.bottom() - _AXIS, area.top() + 26

        def x(ratio: float) -> float:
            return area.left() + (ratio - one.low) / (one.high - one.low) * area.width()

        floor = one.speed.noise_floor
        if floor is not None:
            band = QRectF(x(1 - floor), area.top(), x(1 + floor) - x(1 - floor), base - area.top())
            painter.fillRect(band, faded(look.colour("unsure"), 0.12))
            painter.setPen(dashed(look.colour("text_tertiary")))
            for edge in (band.left(), band.right()):
                painter.drawLine(QPointF(edge, area.top()), QPointF(edge, base))
        colour = self._own(one.name)
        line = QPainterPath(QPointF(x(float(one.x[0])), base))
        for ratio, height in zip(one.x.tolist(), one.height.tolist(), strict=True):
            line.lineTo(x(ratio), base - height * (base - top - 4))
        line.lineTo(x(float(one.x[-1])), base)
        painter.fillPath(line, faded(colour, 0.26))
        painter.setPen(QPen(colour, 1.6))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawPath(line)
        painter.setPen(QPen(look.colour("text_secondary"), 1))
        painter.drawLine(QPointF(x(1.0), top - 8), QPointF(x(1.0), base))
        painter.setPen(QPen(look.colour("strong_line"), 1))
        painter.drawLine(QPointF(area.left(), base + 0.5), QPointF(area.right(), base + 0.5))
        self._interval(painter, area, one, x)
        ticks = between(one.low, one.high, max(3, int(area.width() // 60)))
        step = ticks[1] - ticks[0] if len(ticks) > 1 else 0.1
        font = self.look.font(11)
        for tick in ticks:
            place = QRectF(x(tick) - 30, base + 5, 60, 16)
            if place.left() >= area.left() - 16 and place.right() <= area.right() + 16:
                word = f"{tick_label(tick, min(step, 0.05))}×"
                write(painter, place, word, font, look.colour("text_tertiary"), CENTRE)

    def _interval(self, painter: QPainter, area: QRectF, one: Difference, x: Place) -> None:
        look, speed = self.look, one.speed
        y = area.top() + 10
        left, right = x(speed.low or speed.median), x(speed.high or speed.median)
        painter.setPen(QPen(look.colour("text"), 2))
        painter.drawLine(QPointF(left, y), QPointF(right, y))
        for end in (left, right):
            painter.drawLine(QPointF(end, y - 3), QPointF(end, y + 3))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(look.colour("text"))
        painter.drawEllipse(QPointF(x(speed.median), y), 4, 4)
        word = f"{times(speed.median)} ({_interval(speed)})"
        font, quiet = self.look.font(12, 600), self.look.font(12)
        floor = speed.noise_floor or 0.0
        after = max(right, x(1 + floor)) + 10
        before = min(left, x(1 - floor)) - 8
        width, needed = area.right() - after, width_of(word, font)
        if width >= needed:
            write(painter, QRectF(after, y - 9, width, 18), word, font, look.colour("text"), LEFT)
            if before - area.left() > width_of("noise floor", quiet):
                place = QRectF(area.left(), y - 9, before - area.left(), 18)
                write(painter, place, "noise floor", quiet, look.colour("text_secondary"), RIGHT)
        elif before - area.left() >= needed:
            place = QRectF(area.left(), y - 9, before - area.left(), 18)
            write(painter, place, word, font, look.colour("text"), RIGHT)
        else:
            # The interval fills the axis: the figure goes under it.
            place = QRectF(area.left(), y + 5, area.width(), 16)
            write(painter, place, word, font, look.colour("text"), CENTRE)

    def _own(self, name: str) -> QColor:
        if self._frozen:
            return self.look.colour("text_secondary")
        return style_of(name, self.look.theme).colour


def _interval(speed: SpeedUp) -> str:
    if speed.low is None or speed.high is None:
        return "no interval yet"
    decimals = 2 if speed.high - speed.low >= 0.02 else 3
    return f"{number(speed.low, decimals)}–{number(speed.high, decimals)}"


def _all_series(entries: tuple[Entry, ...], snapshot: Snapshot) -> list[Array]:
    record = snapshot.record
    if record is None:
        return []
    return [record.series[e.implementation].seconds for e in entries if e.implementation in record.series]
