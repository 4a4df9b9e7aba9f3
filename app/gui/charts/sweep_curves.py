"""Along one axis: each contender's time, or its speed-up, on log scales with bands, and the crossover."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFont, QMouseEvent, QPainter, QPainterPath, QPen

from app.core.curves import pushed_apart
from app.core.text import THIN, number, times
from app.core.ticks import logarithmic, value_label
from app.gui.charts.painted import PaintedChart
from app.gui.charts.painting import CENTRE, LEFT, RIGHT, dashed, width_of, write
from app.gui.charts.style import faded, style_of
from app.gui.parts.look import Look

_LEFT, _BOTTOM, _TOP = 50, 24, 10
_LABEL = 15
_NEAR = 12.0


@dataclass(frozen=True)
class CurvePoint:
    """`low` and `high` bound the band; equal to `value` where there is none. `solid` False: undecided."""

    at: float
    value: float
    low: float
    high: float
    solid: bool = True


@dataclass(frozen=True)
class CurveLine:
    name: str
    points: tuple[CurvePoint, ...]


@dataclass(frozen=True)
class CurveMark:
    """A crossover on the line of `name`; `low` and `high` None: beyond the axis."""

    name: str
    at: float
    low: float | None
    high: float | None
    words: tuple[str, ...]


@dataclass(frozen=True)
class CurvePicture:
    """`ticks`: the values of the axis. `selected`: the place of the cell that is ringed."""

    lines: tuple[CurveLine, ...] = ()
    ticks: tuple[float, ...] = ()
    is_ratio: bool = False
    mark: CurveMark | None = None
    selected: float | None = None
    highlighted: str = ""
    empty: str = "Nothing measured along this axis yet"
    spoken: str = ""


class SweepCurves(PaintedChart):
    """A click on a point of the axis chooses the cell there."""

    chosen = Signal(float)

    def __init__(self, look: Look) -> None:
        super().__init__(look, "Latency")
        self._picture = CurvePicture()

    @property
    def picture(self) -> CurvePicture:
        return self._picture

    def show_picture(self, picture: CurvePicture) -> None:
        if picture == self._picture:
            return
        self._picture = picture
        self.setAccessibleName(self.title)
        self.setAccessibleDescription(picture.spoken)
        self.update()

    def minimumSizeHint(self) -> QSize:
        return QSize(200, 120)

    # ---- scales ----------------------------------------------------------------------------------------

    def _plot(self, area: QRectF) -> QRectF:
        font = self._name_font()
        names = [style_of(line.name, self.look.theme).short for line in self._picture.lines if line.points]
        right = max((width_of(name, font) for name in names), default=0) + 30
        return area.adjusted(_LEFT, _TOP, -right, -_BOTTOM)

    def _name_font(self) -> QFont:
        return self.look.font(11 if self.look.small else 12, 600)

    def _x(self, at: float, plot: QRectF) -> float:
        ticks = self._picture.ticks
        low, high = math.log(ticks[0]), math.log(ticks[-1])
        share = (math.log(at) - low) / (high - low) if high > low else 0.5
        return plot.left() + min(max(share, 0.0), 1.0) * plot.width()

    def _span(self) -> tuple[float, float]:
        values = [
            v for line in self._picture.lines for p in line.points for v in (p.low, p.high, p.value) if v > 0
        ]
        if self._picture.is_ratio:
            values.append(1.0)
        low, high = min(values), max(values)
        # Room for labels above and below, and a scale that does not blow a per cent up to a mountain.
        middle = math.sqrt(low * high)
        return min(low * 0.8, middle / 1.3), max(high * 1.25, middle * 1.3)

    def _y(self, value: float, plot: QRectF) -> float:
        low, high = self._span()
        return plot.bottom() - math.log(value / low) / math.log(high / low) * plot.height()

    # ---- drawing ---------------------------------------------------------------------------------------

    def paint_chart(self, painter: QPainter, area: QRectF) -> None:
        picture, look = self._picture, self.look
        if not any(line.points for line in picture.lines) or not picture.ticks:
            write(painter, area, picture.empty, look.font(13), look.colour("text_secondary"), CENTRE, True)
            return
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        plot = self._plot(area)
        self._grid(painter, plot)
        order = sorted(picture.lines, key=lambda line: line.name == picture.highlighted)
        for line in order:
            self._band(painter, plot, line)
        for line in order:
            self._line(painter, plot, line)
        self._selection(painter, plot)
        self._names(painter, plot)
        if picture.mark is not None:
            self._mark(painter, plot, picture.mark)

    def _grid(self, painter: QPainter, plot: QRectF) -> None:
        picture, look = self._picture, self.look
        font = look.font(11)
        low, high = self._span()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        for tick in logarithmic(low, high, max(3, int(plot.height() // 34))):
            y = round(self._y(tick, plot)) + 0.5
            is_one = picture.is_ratio and abs(tick - 1) < 1e-9
            painter.setPen(QPen(look.colour("strong_line" if is_one else "grid"), 1))
            painter.drawLine(QPointF(plot.left(), y), QPointF(plot.right(), y))
            word = f"{value_label(tick)}×" if picture.is_ratio else time_label(tick)
            place = QRectF(plot.left() - _LEFT, y - 8, _LEFT - 8, 16)
            write(painter, place, word, font, look.colour("text_tertiary"), RIGHT)
        taken: list[QRectF] = []
        # The ends of the axis are named first, then whatever finds room between them.
        ends = (picture.ticks[0], picture.ticks[-1], picture.selected)
        for tick in sorted(picture.ticks, key=lambda value: value not in ends):
            x = round(self._x(tick, plot)) + 0.5
            painter.setPen(QPen(look.colour("grid"), 1))
            painter.drawLine(QPointF(x, plot.top()), QPointF(x, plot.bottom()))
            word = number(tick)
            here = picture.selected == tick
            used = look.font(11, 700) if here else font
            half = width_of(word, used) / 2 + 1
            place = QRectF(x - half, plot.bottom() + 5, 2 * half, 16)
            if any(place.adjusted(-3, 0, 3, 0).intersects(other) for other in taken):
                continue
            taken.append(place)
            role = "text" if here else "text_tertiary"
            write(painter, place, word, used, look.colour(role), CENTRE, may_elide=True)
        painter.setPen(QPen(look.colour("strong_line"), 1))
        y = round(plot.bottom()) + 0.5
        painter.drawLine(QPointF(plot.left(), y), QPointF(plot.right(), y))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)

    def _band(self, painter: QPainter, plot: QRectF, line: CurveLine) -> None:
        if len(line.points) < 2:
            return
        path = QPainterPath()
        for index, point in enumerate(line.points):
            spot = QPointF(self._x(point.at, plot), self._y(point.high, plot))
            path.moveTo(spot) if index == 0 else path.lineTo(spot)
        for point in reversed(line.points):
            path.lineTo(QPointF(self._x(point.at, plot), self._y(point.low, plot)))
        path.closeSubpath()
        colour = style_of(line.name, self.look.theme).colour
        painter.fillPath(path, faded(colour, self.look.theme.band_opacity))

    def _line(self, painter: QPainter, plot: QRectF, line: CurveLine) -> None:
        style = style_of(line.name, self.look.theme)
        spots = [QPointF(self._x(p.at, plot), self._y(p.value, plot)) for p in line.points]
        painter.setPen(QPen(style.colour, 2))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawPolyline(spots)
        for point, spot in zip(line.points, spots, strict=True):
            if point.high > point.low and len(line.points) == 1:
                painter.setPen(QPen(style.colour, 1.5))
                x = spot.x()
                painter.drawLine(QPointF(x, self._y(point.high, plot)), QPointF(x, self._y(point.low, plot)))
            if not point.solid:
                # A hollow mark over the line needs the card behind it.
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(self.look.colour("card"))
                painter.drawEllipse(spot, 4.5, 4.5)
            style.mark(painter, spot, 9, hollow=not point.solid)

    def _selection(self, painter: QPainter, plot: QRectF) -> None:
        picture = self._picture
        for line in picture.lines:
            for point in line.points:
                if point.at == picture.selected and line.name == picture.highlighted:
                    painter.setPen(QPen(self.look.colour("text_secondary"), 1.2))
                    painter.setBrush(Qt.BrushStyle.NoBrush)
                    painter.drawEllipse(QPointF(self._x(point.at, plot), self._y(point.value, plot)), 9, 9)

    def _names(self, painter: QPainter, plot: QRectF) -> None:
        """Each line's name beside its end, joined to it; pushed apart where lines end together."""
        lines = [line for line in self._picture.lines if line.points]
        font = self._name_font()
        ends = [
            QPointF(self._x(line.points[-1].at, plot), self._y(line.points[-1].value, plot)) for line in lines
        ]
        places = pushed_apart([end.y() for end in ends], _LABEL, plot.top() + 6, plot.bottom() - 6)
        for line, end, y in zip(lines, ends, places, strict=True):
            style = style_of(line.name, self.look.theme)
            x = plot.right() + 18
            painter.setPen(QPen(faded(style.colour, 0.6), 1))
            painter.drawLine(QPointF(end.x() + 6, end.y()), QPointF(x - 8, y))
            style.mark(painter, QPointF(x - 2, y), 7)
            place = QRectF(x + 6, y - 8, width_of(style.short, font) + 2, 16)
            strong = line.name == self._picture.highlighted
            colour = self.look.colour("text" if strong else "text_secondary")
            write(painter, place, style.short, font, colour, LEFT)

    def _mark(self, painter: QPainter, plot: QRectF, mark: CurveMark) -> None:
        """A ring where it crosses, a dashed line to the axis, and on the axis how well that is known."""
        look = self.look
        line = next((line for line in self._picture.lines if line.name == mark.name), None)
        value = interpolated(line, mark.at) if line is not None else None
        if value is None:
            return
        spot = QPointF(self._x(mark.at, plot), self._y(value, plot))
        low = self._x(mark.low, plot) if mark.low is not None else plot.left()
        high = self._x(mark.high, plot) if mark.high is not None else plot.right()
        strip = QRectF(low, plot.top(), max(high - low, 1.0), plot.height())
        painter.fillRect(strip, faded(look.colour("text"), 0.07))
        painter.setPen(dashed(look.colour("text_secondary")))
        painter.drawLine(QPointF(spot.x(), spot.y() + 8), QPointF(spot.x(), plot.bottom()))
        painter.setPen(QPen(look.colour("text"), 3))
        y = plot.bottom()
        painter.drawLine(QPointF(low, y), QPointF(high, y))
        for x, known in ((low, mark.low), (high, mark.high)):
            if known is not None:
                painter.drawLine(QPointF(x, y - 3), QPointF(x, y + 3))
        painter.setPen(QPen(look.colour("text"), 2))
        painter.setBrush(faded(look.colour("card"), 0.5))
        painter.drawEllipse(spot, 7, 7)
        self._mark_words(painter, plot, mark, spot)

    def _mark_words(self, painter: QPainter, plot: QRectF, mark: CurveMark, spot: QPointF) -> None:
        """Where the words cover the least of the curves; inside of the plot, beside the dashed line."""
        font, look = self.look.font(11, 600), self.look
        width = max(width_of(word, font) for word in mark.words) + 2
        height = 14.0 * len(mark.words)
        rows = (plot.bottom() - height - 8, plot.center().y() - height / 2, plot.top() + 2)
        furthest = max(plot.right() - width - 4, plot.left() + 4)
        columns = (spot.x() + 10, spot.x() - 10 - width, plot.left() + 6, furthest)
        tries = [
            QRectF(min(max(x, plot.left() + 4), furthest), y, width, height) for x in columns for y in rows
        ]
        drawn = [spot for line in self._picture.lines for spot in self._along(line, plot)] + [spot] * 3

        below = [QPointF(spot.x(), y) for y in range(int(spot.y()), int(plot.bottom()), 6)]

        def cost(place: QRectF) -> float:
            room = place.adjusted(-4, -4, 4, 4)
            away = abs(place.center().x() - spot.x()) / 1000
            return sum(room.contains(point) for point in (*drawn, *below)) + away

        place = min(tries, key=cost)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(faded(look.colour("card"), 0.82))
        painter.drawRoundedRect(place.adjusted(-3, 0, 3, 0), 3, 3)
        align = RIGHT if place.right() < spot.x() else LEFT
        for index, word in enumerate(mark.words):
            row = QRectF(place.left(), place.top() + 14 * index, width, 14)
            write(painter, row, word, font, look.colour("text"), align, may_elide=True)

    def _along(self, line: CurveLine, plot: QRectF) -> list[QPointF]:
        """Places on a line, close enough together that nothing of it is missed."""
        spots = [QPointF(self._x(p.at, plot), self._y(p.value, plot)) for p in line.points]
        found = spots[:1]
        for first, second in pairwise(spots):
            count = max(int((second.x() - first.x()) / 6), 1)
            found += [first + (second - first) * ((k + 1) / count) for k in range(count)]
        return found

    # ---- hands -----------------------------------------------------------------------------------------

    def _nearest(self, place: QPointF) -> float | None:
        picture = self._picture
        if not picture.ticks or not picture.lines:
            return None
        plot = self._plot(QRectF(self.rect()))
        nearest = min(picture.ticks, key=lambda tick: abs(self._x(tick, plot) - place.x()))
        return nearest if abs(self._x(nearest, plot) - place.x()) <= _NEAR else None

    def tip_at(self, place: QPointF) -> str:
        at = self._nearest(place)
        if at is None:
            return self._picture.spoken
        rows = []
        for line in self._picture.lines:
            for point in line.points:
                if point.at == at:
                    rows.append(f"{style_of(line.name, self.look.theme).short}: {self._told(point)}")
        return "\n".join([number(at), *rows]) if rows else ""

    def _told(self, point: CurvePoint) -> str:
        if self._picture.is_ratio:
            said = f"{times(point.value)}, 95{THIN}% interval {point.low:.2f}–{point.high:.2f}"
            return said if point.solid else f"{said}, undecided"
        return f"{time_label(point.value)}, IQR {time_label(point.low)}–{time_label(point.high)}"

    def mousePressEvent(self, event: QMouseEvent) -> None:
        at = self._nearest(event.position())
        if event.button() == Qt.MouseButton.LeftButton and at is not None:
            self.chosen.emit(at)


def interpolated(line: CurveLine, at: float) -> float | None:
    """The line's value at a place between its points, on log scales; None outside of them."""
    points = line.points
    for first, second in pairwise(points):
        if first.at <= at <= second.at:
            share = math.log(at / first.at) / math.log(second.at / first.at)
            return float(first.value * (second.value / first.value) ** share)
    return None


def time_label(seconds: float) -> str:
    """A tick of a time axis, with its unit: `50 ms`, `0.5 ms`, `20 µs`."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= 0.9995 * scale:
            return f"{_short(seconds / scale)}{THIN}{unit}"
    return f"{_short(seconds / 1e-6)}{THIN}µs"


def _short(value: float) -> str:
    digits = value_label(value)
    return digits.rstrip("0").rstrip(".") if "." in digits else digits
