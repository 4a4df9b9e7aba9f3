"""The roofline: two ceilings on log axes, every contender's phases under them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QLineF, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QPainter, QPainterPath, QPen, QPolygonF

from app.core.peaks import bandwidth, rate
from app.core.roofline import Roofline, intensity
from app.core.roofline_axes import Axes, axes_of, label, ticks
from app.core.work import PHASES, Phase, Point
from app.gui.charts.painted import PaintedChart
from app.gui.charts.painting import CENTRE, LEFT, RIGHT, dashed, width_of, write
from app.gui.charts.style import faded, style_of
from app.gui.marks import mark_path
from app.gui.parts.look import Look

_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 14, 8, 42
_MARK, _RING = 11.0, 9.5
_NEAR = 12.0


@dataclass(frozen=True)
class _Label:
    """Words beside a point; `soft` for its second line."""

    point: Point
    words: str
    soft: str


class RooflineChart(PaintedChart):
    def __init__(self, look: Look) -> None:
        super().__init__(look, "Roofline")
        self.roofline: Roofline | None = None
        self.message = ""
        self._named: tuple[str, ...] = ()

    def show_roofline(self, roofline: Roofline | None, named: Sequence[str], message: str) -> None:
        """`named`: contenders whose points are labelled. `message` stands where there are no ceilings."""
        given = (roofline, tuple(named), message)
        if given == (self.roofline, self._named, self.message):
            return
        self.roofline, self._named, self.message = given
        self.caption = "GFLOP/s, host wall time · log–log"
        points = () if roofline is None else roofline.points
        self.setAccessibleDescription("; ".join(self._sentence(point) for point in points) or message)
        self.update()

    def minimumSizeHint(self) -> QSize:
        return QSize(320, 200)

    # ---- legend ----------------------------------------------------------------------------------------

    def _phases(self) -> tuple[Phase, ...]:
        return () if self.roofline is None else self.roofline.phases

    def legend_width(self) -> float:
        font = self.look.font(12)
        return sum(width_of(PHASES[phase], font) + 34 for phase in self._phases())

    def paint_legend(self, painter: QPainter, right: float, middle: float) -> None:
        look, font = self.look, self.look.font(12)
        colour = look.colour("text_secondary")
        for phase in reversed(self._phases()):
            width = width_of(PHASES[phase], font)
            write(painter, QRectF(right - width, middle - 9, width + 1, 18), PHASES[phase], font, colour)
            self._mark(painter, QPointF(right - width - 13, middle), "circle", phase, colour)
            right -= width + 34

    # ---- drawing ---------------------------------------------------------------------------------------

    def _plot(self, area: QRectF) -> QRectF:
        return area.adjusted(_LEFT, _TOP, -_RIGHT, -_BOTTOM)

    def paint_chart(self, painter: QPainter, area: QRectF) -> None:
        roofline = self.roofline
        axes = axes_of(roofline) if roofline is not None else None
        look = self.look
        if roofline is None or axes is None:
            write(painter, area, self.message, look.font(13), look.colour("text_secondary"), CENTRE, True)
            return
        plot = self._plot(area)
        self._grid(painter, plot, axes)
        taken = self._roof(painter, plot, axes, roofline)
        self._joins(painter, plot, axes, roofline)
        taken += [self._box(plot, axes, point) for point in roofline.points]
        self._drops(painter, plot, axes, roofline)
        for point in roofline.points:
            style = style_of(point.implementation, look.theme)
            self._mark(painter, self._spot(plot, axes, point), style.shape, point.work.phase, style.colour)
        self._labels(painter, plot, axes, roofline, taken)

    def _spot(self, plot: QRectF, axes: Axes, point: Point) -> QPointF:
        return self._at(plot, axes, point.work.intensity, point.achieved)

    def _at(self, plot: QRectF, axes: Axes, x: float, y: float) -> QPointF:
        return QPointF(plot.left() + axes.x(x) * plot.width(), plot.bottom() - axes.y(y) * plot.height())

    def _box(self, plot: QRectF, axes: Axes, point: Point) -> QRectF:
        spot = self._spot(plot, axes, point)
        return QRectF(spot.x() - 8, spot.y() - 8, 16, 16)

    def _grid(self, painter: QPainter, plot: QRectF, axes: Axes) -> None:
        look = self.look
        font, colour = look.font(11), look.colour("text_tertiary")
        grid = QPen(look.colour("grid"), 1)
        for value in ticks(axes.x_low, axes.x_high, max(4, int(plot.width() / 56))):
            x = round(plot.left() + axes.x(value) * plot.width()) + 0.5
            painter.setPen(grid)
            painter.drawLine(QPointF(x, plot.top()), QPointF(x, plot.bottom()))
            write(painter, QRectF(x - 30, plot.bottom() + 4, 60, 16), label(value), font, colour, CENTRE)
        for value in ticks(axes.y_low / 1e9, axes.y_high / 1e9, max(4, int(plot.height() / 26))):
            y = round(plot.bottom() - axes.y(value * 1e9) * plot.height()) + 0.5
            painter.setPen(grid)
            painter.drawLine(QPointF(plot.left(), y), QPointF(plot.right(), y))
            write(painter, QRectF(plot.left() - 64, y - 8, 56, 16), label(value), font, colour, RIGHT)
        painter.setPen(QPen(look.colour("strong_line"), 1))
        painter.drawLine(plot.bottomLeft(), plot.bottomRight())
        title = QRectF(plot.left(), plot.bottom() + 22, plot.width(), 18)
        secondary = look.colour("text_secondary")
        write(painter, title, "Arithmetic intensity, FLOP per byte", look.font(12, 500), secondary, CENTRE)

    def _roof(self, painter: QPainter, plot: QRectF, axes: Axes, roofline: Roofline) -> list[QRectF]:
        """Draw the ceilings; where their labels stand."""
        look, peaks = self.look, roofline.peaks
        assert peaks is not None
        # Where the memory roof would leave the plot at the bottom, it begins at its edge.
        first = max(axes.x_low, axes.y_low / peaks.memory)
        start = self._at(plot, axes, first, peaks.roof(first))
        ridge = self._at(plot, axes, peaks.ridge, peaks.compute)
        end = QPointF(plot.right(), ridge.y())
        above = QPainterPath()
        above.addPolygon(
            QPolygonF([plot.topLeft(), QPointF(plot.left(), start.y()), start, ridge, end, plot.topRight()])
        )
        above.closeSubpath()
        self._hatch(painter, plot, above)
        painter.setPen(dashed(look.colour("text_tertiary")))
        painter.drawLine(ridge, QPointF(ridge.x(), plot.bottom()))
        painter.setPen(QPen(look.colour("text"), 2.2, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
        painter.drawPolyline(QPolygonF([start, ridge, end]))
        taken = [self._compute_label(painter, ridge, end, rate(peaks.compute))]
        taken.append(self._memory_label(painter, start, ridge, bandwidth(peaks.memory)))
        taken += self._ridge_labels(painter, plot, ridge, peaks.ridge)
        # The slope itself, in pieces, so that no label crosses it.
        steps = 24
        for k in range(steps):
            share = (k + 0.5) / steps
            spot = start + (ridge - start) * share
            taken.append(QRectF(spot.x() - 6, spot.y() - 6, 12, 12))
        taken.append(QRectF(ridge.x(), ridge.y() - 3, end.x() - ridge.x(), 6))
        return taken

    def _hatch(self, painter: QPainter, plot: QRectF, region: QPainterPath) -> None:
        """Diagonals over a region, cut by geometry: a clip would be lost in SVG."""
        stripes = QPainterPath()
        x = plot.left() - plot.height()
        while x < plot.right():
            stripes.addPolygon(
                QPolygonF(
                    [
                        QPointF(x, plot.bottom()),
                        QPointF(x + 1.0, plot.bottom()),
                        QPointF(x + plot.height() + 1.0, plot.top()),
                        QPointF(x + plot.height(), plot.top()),
                    ]
                )
            )
            stripes.closeSubpath()
            x += 8
        painter.fillPath(region.intersected(stripes), self.look.colour("hairline"))

    def _compute_label(self, painter: QPainter, ridge: QPointF, end: QPointF, words: str) -> QRectF:
        font = self.look.font(12, 600)
        words = f"compute {words}"
        width = width_of(words, font)
        place = QRectF(end.x() - width - 8, ridge.y() - 21, width + 8, 18)
        painter.fillRect(place, self.look.colour("card"))
        write(painter, place, words, font, self.look.colour("text"), CENTRE)
        return place

    def _memory_label(self, painter: QPainter, start: QPointF, ridge: QPointF, words: str) -> QRectF:
        """On the slope, along it."""
        font = self.look.font(12, 600)
        words = f"memory {words}"
        width = width_of(words, font)
        line = QLineF(start, ridge)
        if line.length() < width + 40:
            return QRectF()
        middle = line.pointAt(0.45)
        painter.save()
        painter.translate(middle)
        painter.rotate(-line.angle())
        place = QRectF(-width / 2 - 4, -20, width + 8, 17)
        painter.fillRect(place, self.look.colour("card"))
        write(painter, place, words, font, self.look.colour("text"), CENTRE)
        painter.restore()
        return QRectF(middle.x() - width / 2, middle.y() - 44, width, 40)

    def _ridge_labels(self, painter: QPainter, plot: QRectF, ridge: QPointF, value: float) -> list[QRectF]:
        look, font = self.look, self.look.font(11, 500)
        colour = look.colour("text_secondary")
        y = plot.bottom() - 38
        found = []
        for words, right in (("memory bound", True), ("compute bound", False)):
            width = width_of(words, font) + 4
            left = ridge.x() - 8 - width if right else ridge.x() + 8
            place = QRectF(left, y, width, 16)
            if place.left() > plot.left() and place.right() < plot.right():
                write(painter, place, words, font, colour, RIGHT if right else LEFT)
                found.append(place)
        words = f"ridge {intensity(value)}"
        place = QRectF(ridge.x() + 8, y + 16, width_of(words, font) + 4, 16)
        if place.right() < plot.right():
            write(painter, place, words, look.font(11), look.colour("text_tertiary"), LEFT)
            found.append(place)
        return found

    def _joins(self, painter: QPainter, plot: QRectF, axes: Axes, roofline: Roofline) -> None:
        """A thin line between the forward and the backward pass of one contender."""
        for name in roofline.implementations:
            forward, backward = roofline.point(name, "forward"), roofline.point(name, "backward")
            if forward is None or backward is None:
                continue
            painter.setPen(QPen(faded(style_of(name, self.look.theme).colour, 0.6), 1))
            painter.drawLine(self._spot(plot, axes, forward), self._spot(plot, axes, backward))

    def _drops(self, painter: QPainter, plot: QRectF, axes: Axes, roofline: Roofline) -> None:
        """One line to the roof per phase, of the first contender that is named."""
        for phase in roofline.phases:
            name = next((n for n in self._named if roofline.point(n, phase) is not None), None)
            point = roofline.point(name, phase) if name is not None else None
            if point is None or point.share >= 1:
                continue
            pen = QPen(style_of(point.implementation, self.look.theme).colour, 1.2)
            pen.setDashPattern([2.0, 2.0])
            painter.setPen(pen)
            top = self._at(plot, axes, point.work.intensity, point.roof)
            painter.drawLine(self._spot(plot, axes, point) - QPointF(0, 7), top + QPointF(0, 2))

    def _mark(self, painter: QPainter, spot: QPointF, shape: str, phase: Phase, colour: QColor) -> None:
        """Filled: forward. Hatched: backward, or the step that it is part of. Ringed: decode."""
        path = mark_path(shape, _MARK).translated(spot)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if phase in ("backward", "step"):
            painter.setPen(QPen(colour, 1.5))
            painter.setBrush(self.look.colour("card"))
            painter.drawPath(path)
            stripes = QPainterPath()
            for k in range(-3, 4):
                x = spot.x() + 3.4 * k
                stripes.addPolygon(
                    QPolygonF([QPointF(x - 7, spot.y() + 7), QPointF(x - 5.6, spot.y() + 7),
                               QPointF(x + 8.4, spot.y() - 7), QPointF(x + 7, spot.y() - 7)])
                )  # fmt: skip
                stripes.closeSubpath()
            stripes.setFillRule(Qt.FillRule.WindingFill)
            painter.fillPath(path.intersected(stripes), colour)
        else:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(colour)
            painter.drawPath(path)
            if phase == "decode":
                painter.setPen(QPen(colour, 1.5))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.drawEllipse(spot, _RING, _RING)
        painter.restore()

    # ---- labels ----------------------------------------------------------------------------------------

    def _labels(
        self, painter: QPainter, plot: QRectF, axes: Axes, roofline: Roofline, taken: list[QRectF]
    ) -> None:
        """Beside the points of named contenders, wherever there is room; a point without one has its tooltip."""
        bold, plain = self.look.font(12, 600), self.look.font(12)
        for one in self._wanted(roofline):
            spot = self._spot(plot, axes, one.point)
            place = self._free(plot, spot, one, taken, bold, plain)
            if place is None and one.soft:
                # The short form may fit where both lines do not.
                one = _Label(one.point, f"{one.words}, {one.point.share_text}", "")
                place = self._free(plot, spot, one, taken, bold, plain)
            if place is None:
                continue
            taken.append(place)
            top = QRectF(place.left(), place.top(), place.width(), 17)
            write(painter, top, one.words, bold, self.look.colour("text"), LEFT)
            if one.soft:
                write(
                    painter, top.translated(0, 16), one.soft, plain, self.look.colour("text_secondary"), LEFT
                )

    def _wanted(self, roofline: Roofline) -> list[_Label]:
        found = []
        for name in self._named:
            for phase in roofline.phases:
                point = roofline.point(name, phase)
                if point is None:
                    continue
                short = style_of(name, self.look.theme).short
                words = f"{short} {PHASES[phase]}"
                if name == self._named[0] and phase != "backward":
                    roof = "memory" if point.memory_bound else "compute"
                    soft = f"{rate(point.achieved)}, {point.share_text} of the {roof} roof"
                    found.append(_Label(point, words, soft))
                else:
                    found.append(_Label(point, f"{words}, {point.share_text}", ""))
        return found

    @staticmethod
    def _free(
        plot: QRectF, spot: QPointF, one: _Label, taken: list[QRectF], bold: QFont, plain: QFont
    ) -> QRectF | None:
        width = max(width_of(one.words, bold), width_of(one.soft, plain)) + 2
        height = 34.0 if one.soft else 18.0
        x, y = spot.x(), spot.y()
        for left, top in (
            (x + 13, y - 9),
            (x - 13 - width, y - 9),
            (x + 13, y + 8),
            (x - 13 - width, y + 8),
            (x - width / 2, y + 14),
            (x - width / 2, y - 14 - height),
            (x + 13, y - 8 - height),
            (x - 13 - width, y - 8 - height),
            (x - width / 2, y + 34),
        ):
            place = QRectF(left, top, width, height)
            if plot.contains(place) and not any(place.intersects(other) for other in taken):
                return place
        return None

    def _sentence(self, point: Point) -> str:
        title = style_of(point.implementation, self.look.theme).title
        least = "at most " if point.work.is_least else ""
        return (
            f"{title}, {PHASES[point.work.phase]}: {rate(point.achieved)} at {least}"
            f"{intensity(point.work.intensity)} FLOP per byte, {point.words}"
        )

    def tip_at(self, place: QPointF) -> str:
        roofline = self.roofline
        axes = axes_of(roofline) if roofline is not None else None
        if roofline is None or axes is None:
            return ""
        plot = self._plot(QRectF(self.rect()))
        near = [
            point
            for point in roofline.points
            if QLineF(self._spot(plot, axes, point), place).length() <= _NEAR
        ]
        return "\n".join(self._sentence(point) for point in near)
