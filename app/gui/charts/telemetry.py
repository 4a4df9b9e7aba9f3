"""A minute of one reading of the machine: small, one neutral colour, limits and events dashed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPainterPath, QPen

from app.core.text import MINUS, THIN, number
from app.core.ticks import between, nice_step, tick_label
from app.gui.charts.painted import PaintedChart
from app.gui.charts.painting import LEFT, RIGHT, dashed, width_of, write
from app.gui.charts.style import faded
from app.gui.parts.look import Look

Place = Callable[[float], float]

NOT_OFFERED = "not offered by this machine"
SPAN_S = 60.0
_TITLE, _AXIS = 20, 18


@dataclass(frozen=True)
class Trend:
    """Readings over time: seconds before now (negative) and values, None where one is missing.

    `limit` is a value that matters and its word; `events` are seconds before now and words.
    """

    points: tuple[tuple[float, float | None], ...]
    unit: str
    decimals: int = 0
    floor: float | None = 0.0
    least_top: float = 1.0
    limit: tuple[float, str] | None = None
    events: tuple[tuple[float, str], ...] = ()

    @property
    def values(self) -> list[float]:
        return [value for _, value in self.points if value is not None]

    @property
    def last(self) -> float | None:
        return self.points[-1][1] if self.points else None


class TrendChart(PaintedChart):
    """Title at the left, the newest value at the right, the last minute below."""

    def __init__(self, look: Look, title: str) -> None:
        super().__init__(look, title)
        self._trend: Trend | None = None
        self.setAccessibleDescription(self._why_empty())

    def show_trend(self, trend: Trend | None) -> None:
        """None: nothing has been read yet."""
        if trend != self._trend:
            self._trend = trend
            self.setAccessibleDescription(self._value() or self._why_empty())
            self.update()

    def sizeHint(self) -> QSize:
        return QSize(190, 128)

    def minimumSizeHint(self) -> QSize:
        return QSize(120, 92)

    def _value(self) -> str:
        trend = self._trend
        if trend is None or trend.last is None:
            return ""
        unit = "%" if trend.unit == "%" else trend.unit
        return f"{number(trend.last, trend.decimals)}{THIN}{unit}"

    def _why_empty(self) -> str:
        if self._trend is None or not self._trend.points:
            return "no reading yet"
        return NOT_OFFERED

    def paint_chart(self, painter: QPainter, area: QRectF) -> None:
        look, trend = self.look, self._trend
        value, bold = self._value(), look.font(13, 600)
        head = QRectF(area.left(), area.top(), area.width(), _TITLE)
        room = width_of(value, bold) + 8 if value else 0
        title = head.adjusted(0, 0, -room, 0)
        name = self.title
        if look.small:
            # The value beside it carries the unit.
            name = name.partition(",")[0].removeprefix("CPU ").capitalize()
        write(painter, title, name, look.font(12), look.colour("text_secondary"), LEFT, may_elide=True)
        write(painter, head, value, bold, look.colour("text"), RIGHT)
        plot = area.adjusted(0, _TITLE + 6, -1, -_AXIS)
        if trend is None or not trend.values:
            place = QRectF(area.left(), plot.top(), area.width(), 20)
            write(painter, place, self._why_empty(), look.font(12), look.colour("text_tertiary"), LEFT, True)
            return
        low, ticks = self._scale(trend)
        top = ticks[-1]
        font = look.font(11)
        step = ticks[1] - ticks[0]
        plot.setLeft(area.left() + max(width_of(tick_label(t, step), font) for t in ticks) + 8)

        def x(seconds: float) -> float:
            return plot.right() + max(seconds, -SPAN_S) / SPAN_S * plot.width()

        def y(reading: float) -> float:
            share = (min(max(reading, low), top) - low) / (top - low)
            return plot.bottom() - share * plot.height()

        for tick in ticks:
            level = round(y(tick)) + 0.5
            painter.setPen(QPen(look.colour("strong_line" if tick == ticks[0] else "grid"), 1))
            painter.drawLine(QPointF(plot.left(), level), QPointF(plot.right(), level))
            place = QRectF(area.left(), level - 8, plot.left() - area.left() - 6, 16)
            write(painter, place, tick_label(tick, step), font, look.colour("text_tertiary"), RIGHT)
        self._line(painter, trend, plot, x, y)
        self._limits(painter, trend, plot, x, y)
        below = QRectF(plot.left(), plot.bottom() + 3, plot.width(), 15)
        write(painter, below, f"{MINUS}60{THIN}s", font, look.colour("text_tertiary"), LEFT)
        write(painter, below, "now", font, look.colour("text_tertiary"), RIGHT)

    def _scale(self, trend: Trend) -> tuple[float, list[float]]:
        """Three or four ticks over the readings and the limit."""
        values = trend.values + ([trend.limit[0]] if trend.limit is not None else [])
        low = min(values) if trend.floor is None else trend.floor
        top = max(*values, low + trend.least_top) if trend.floor is not None else max(values)
        step = nice_step(max(top - low, trend.least_top), 2)
        first = step * int(low // step)
        count = 2
        while first + count * step < top:
            count += 1
        ticks = between(first, first + count * step, count)
        return ticks[0], ticks

    def _line(self, painter: QPainter, trend: Trend, plot: QRectF, x: Place, y: Place) -> None:
        colour = self.look.colour("text_secondary")
        for run in _runs(trend.points):
            if len(run) == 1:
                painter.setPen(QPen(colour, 3, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
                painter.drawPoint(QPointF(x(run[0][0]), y(run[0][1])))
                continue
            line = QPainterPath(QPointF(x(run[0][0]), y(run[0][1])))
            for seconds, value in run[1:]:
                line.lineTo(x(seconds), y(value))
            under = QPainterPath(line)
            under.lineTo(x(run[-1][0]), plot.bottom())
            under.lineTo(x(run[0][0]), plot.bottom())
            under.closeSubpath()
            painter.fillPath(under, faded(colour, 0.16))
            painter.setPen(QPen(colour, 1.4))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawPath(line)

    def _limits(self, painter: QPainter, trend: Trend, plot: QRectF, x: Place, y: Place) -> None:
        look, font = self.look, self.look.font(11)
        if trend.limit is not None:
            level = y(trend.limit[0])
            painter.setPen(dashed(look.colour("text_tertiary")))
            painter.drawLine(QPointF(plot.left(), level), QPointF(plot.right(), level))
            place = QRectF(plot.left(), level - 16, plot.width(), 15)
            write(painter, place, trend.limit[1], font, look.colour("text_secondary"), RIGHT, may_elide=True)
        for seconds, word in trend.events:
            if seconds < -SPAN_S:
                continue
            at = x(seconds)
            painter.setPen(dashed(look.colour("warning")))
            painter.drawLine(QPointF(at, plot.top() - 4), QPointF(at, plot.bottom()))
            width = width_of(word, font)
            left = at + 4 if at + 4 + width <= plot.right() else at - 4 - width
            write(
                painter, QRectF(left, plot.bottom() - 17, width + 1, 15), word, font, look.colour("warning")
            )


def _runs(points: Sequence[tuple[float, float | None]]) -> list[list[tuple[float, float]]]:
    """Readings without the missing ones, cut where one is missing."""
    runs: list[list[tuple[float, float]]] = [[]]
    for seconds, value in points:
        if value is None:
            runs.append([])
        elif seconds >= -SPAN_S:
            runs[-1].append((seconds, value))
    return [run for run in runs if run]
