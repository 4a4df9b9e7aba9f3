"""Errors per tensor: figures, and between them a strip on one log axis with bound, native and ours."""

from __future__ import annotations

import math
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, QSize
from PySide6.QtGui import QColor, QPainter, QPen

from app.gui.accuracy_data import TensorRow, decades, zero_note
from app.gui.charts.painted import PaintedChart
from app.gui.charts.painting import CENTRE, LEFT, RIGHT, hatched, width_of, write
from app.gui.charts.style import style_of
from app.gui.icons import draw_icon
from app.gui.parts.look import Look

_HEAD, _FOOT = 30, 24
_LEAST_ROW, _LEAST_SMALL, _MOST_ROW = 23, 19, 36
_TAIL = 26
_COLUMNS = ("ours", "native", "bound", "used", "rel_l2", "one_minus_cosine", "bias")
_TITLES = {
    "ours": "Ours",
    "native": "Native",
    "bound": "Bound",
    "used": "Used",
    "rel_l2": "Rel. L2",
    "one_minus_cosine": "1 − cosine",
    "bias": "Bias",
}
_KEY = ("ours", "used")


@dataclass(frozen=True)
class _Places:
    """Where columns end, px from the left; `strip` begins and ends."""

    name: float
    shape: float
    rights: dict[str, float]
    strip: tuple[float, float]


class TensorChart(PaintedChart):
    """Shows one contender's rows. The failing ones alone are red."""

    def __init__(self, look: Look) -> None:
        super().__init__(look, "Error per tensor")
        self.rows: tuple[TensorRow, ...] = ()
        self.message = ""
        self._name = "native"
        self._frozen = False
        self.setMouseTracking(True)

    def show_rows(self, name: str, rows: tuple[TensorRow, ...], message: str, frozen: bool) -> None:
        """`message` stands where there are no rows."""
        given = (name, rows, message, frozen)
        if given == (self._name, self.rows, self.message, self._frozen):
            return
        self._name, self.rows, self.message, self._frozen = given
        self.setAccessibleDescription("; ".join(row.sentence for row in rows) or message)
        self.updateGeometry()
        self.update()

    def _heights(self) -> tuple[int, int]:
        """Of the heads and of the line below the rows."""
        return (26, 20) if self.look.small else (_HEAD, _FOOT)

    def minimumSizeHint(self) -> QSize:
        row = _LEAST_SMALL if self.look.small else _LEAST_ROW
        return QSize(560, sum(self._heights()) + row * max(len(self.rows), 4))

    def sizeHint(self) -> QSize:
        # No more than is needed: the layout gives it what the cards below leave.
        return QSize(900, self.minimumSizeHint().height())

    @property
    def _by_contender(self) -> bool:
        """Whether rows are contenders, with a mark each, rather than tensors of one."""
        return len({row.implementation for row in self.rows}) > 1

    @property
    def natural_height(self) -> int:
        """In which rows stand at full height: more would be left empty."""
        return sum(self._heights()) + _MOST_ROW * max(len(self.rows), 4)

    # ---- places ----------------------------------------------------------------------------------------

    def _pitch(self, area: QRectF) -> float:
        count = max(len(self.rows), 1)
        return min((area.height() - sum(self._heights())) / count, float(_MOST_ROW))

    def _places(self, area: QRectF) -> _Places:
        look = self.look
        gap = 9 if look.small else 18
        bold, plain = look.font(13, 600), look.font(13)
        names = max((width_of(row.name, bold) for row in self.rows), default=80.0) + 10
        names += 18 if self._by_contender else 0
        shapes = (
            0.0 if look.small else max((width_of(r.shape, look.font(12)) for r in self.rows), default=0.0)
        )
        widths = {}
        for column in _COLUMNS:
            font = bold if column in _KEY else plain
            cells = [width_of(self._cell(row, column), font) for row in self.rows]
            widths[column] = max([*cells, width_of(self._title(column), look.font(12, 500))]) + gap
        if not look.small:
            widths["bound"] += width_of("3 ×", look.font(12)) + 8
        edge = look.sizes.card_padding
        left = area.left() + edge
        rights, x = {}, left + names + (shapes + 12 if shapes else 0)
        for column in ("ours", "native", "bound"):
            x += widths[column]
            rights[column] = x
        end = area.right() - edge - _TAIL
        after = end
        for column in ("bias", "one_minus_cosine", "rel_l2", "used"):
            rights[column] = after
            after -= widths[column]
        return _Places(left, left + names, rights, (x + gap + 4, max(after - 4, x + gap + 44)))

    def _title(self, column: str) -> str:
        return "1 − cos" if self.look.small and column == "one_minus_cosine" else _TITLES[column]

    def _cell(self, row: TensorRow, column: str) -> str:
        return str(getattr(row, column))

    # ---- drawing ---------------------------------------------------------------------------------------

    def paint_chart(self, painter: QPainter, area: QRectF) -> None:
        look = self.look
        if not self.rows:
            write(painter, area, self.message, look.font(13), look.colour("text_secondary"), CENTRE, True)
            return
        places, pitch = self._places(area), self._pitch(area)
        self._head(painter, area, places)
        axis = decades(self.rows)
        head, foot = self._heights()
        top = area.top() + head
        bottom = top + pitch * len(self.rows)
        self._grid(painter, places, axis, top, bottom)
        for index, row in enumerate(self.rows):
            rect = QRectF(area.left(), top + index * pitch, area.width(), pitch)
            self._row(painter, rect, row, places, axis)
        self._foot(painter, QRectF(area.left(), bottom, area.width(), foot), places, axis)

    def _head(self, painter: QPainter, area: QRectF, places: _Places) -> None:
        look = self.look
        head = self._heights()[0]
        font, colour = look.font(12, 500), look.colour("text_secondary")
        title = "Implementation" if self._by_contender else "Tensor" if look.small else "Tensor and shape"
        write(painter, QRectF(places.name, area.top(), 200, head), title, font, colour, LEFT)
        for column, right in places.rights.items():
            place = QRectF(right - 160, area.top(), 160, head)
            write(painter, place, self._title(column), font, colour, RIGHT)
        self._key(painter, places, area.top() + head / 2)
        painter.setPen(QPen(look.colour("hairline"), 1))
        y = area.top() + head - 0.5
        painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y))

    def _key(self, painter: QPainter, places: _Places, middle: float) -> None:
        """What the marks in the strip are, as far as there is room for it."""
        look = self.look
        font, colour = look.font(12), look.colour("text_secondary")
        x, end = places.strip
        for word, kind in (
            ("ours", "ours"),
            ("native", "native"),
            ("bound", "bound"),
            ("too large", "beyond"),
        ):
            width = 16 + width_of(word, font) + 12
            if x + width - 12 > end:
                return
            spot = QPointF(x + 5, middle)
            if kind == "bound":
                painter.fillRect(QRectF(x + 4, middle - 7, 2, 14), look.colour("text"))
            elif kind == "beyond":
                self._beyond(painter, QRectF(x - 1, middle - 5, 12, 10), False)
            else:
                style_of(self._name if kind == "ours" else "native", look.theme).mark(painter, spot, 9)
            write(painter, QRectF(x + 16, middle - 9, width - 26, 18), word, font, colour, LEFT)
            x += width

    def _x(self, value: float, places: _Places, axis: tuple[int, int]) -> float:

        left, right = places.strip
        low, high = axis
        at = (math.log10(value) - low) / (high - low) if value > 0 else 0.0
        return left + min(max(at, 0.0), 1.0) * (right - left)

    def _grid(
        self, painter: QPainter, places: _Places, axis: tuple[int, int], top: float, bottom: float
    ) -> None:
        painter.setPen(QPen(self.look.colour("grid"), 1))
        for power in self._powers(places, axis):
            x = round(self._x(10.0**power, places, axis)) + 0.5
            painter.drawLine(QPointF(x, top), QPointF(x, bottom))

    def _powers(self, places: _Places, axis: tuple[int, int]) -> list[int]:
        low, high = axis
        room = (places.strip[1] - places.strip[0]) / (width_of("1e-09", self.look.font(11)) + 14)
        stride = max(1, -(-(high - low) // max(int(room), 1)))
        return list(range(low, high + 1, stride))

    def _row(
        self, painter: QPainter, rect: QRectF, row: TensorRow, places: _Places, axis: tuple[int, int]
    ) -> None:
        look = self.look
        if not row.ok:
            painter.fillRect(rect, look.fill("error"))
            painter.fillRect(QRectF(rect.left(), rect.top(), 3, rect.height()), look.colour("error"))
        main = look.colour("text_secondary" if self._frozen else "text")
        soft = look.colour("text_secondary")
        left = places.name
        if self._by_contender:
            style_of(row.implementation, look.theme).mark(painter, QPointF(left + 5, rect.center().y()), 9)
            left += 18
        write(painter, _at(rect, left, 220), row.name, look.font(13, 600), main, LEFT)
        if not look.small:
            write(
                painter, _at(rect, places.shape, 160), row.shape, look.font(12), look.colour("text_tertiary")
            )
        for column, right in places.rights.items():
            bad = not row.ok and column in _KEY
            colour = look.colour("error") if bad else main if column in _KEY else soft
            font = look.font(13, 600 if column in _KEY else 400)
            write(painter, _at(rect, right - 160, 160), self._cell(row, column), font, colour, RIGHT)
        if look.small:
            self._tail(painter, rect, row, places, axis)
            return
        factor = places.rights["bound"] - width_of(row.bound, look.font(13)) - 8
        write(
            painter,
            _at(rect, factor - 60, 60),
            row.factor,
            look.font(12),
            look.colour("text_tertiary"),
            RIGHT,
        )
        self._tail(painter, rect, row, places, axis)

    def _tail(
        self, painter: QPainter, rect: QRectF, row: TensorRow, places: _Places, axis: tuple[int, int]
    ) -> None:
        """The strip, the glyph, and the line below."""
        look = self.look
        self._strip(painter, rect, row, places, axis)
        glyph = QRectF(rect.right() - look.sizes.card_padding - 15, rect.center().y() - 7.5, 15, 15)
        draw_icon(painter, "tick" if row.ok else "error", glyph, look.colour("ok" if row.ok else "error"))
        painter.setPen(QPen(look.colour("hairline"), 1))
        y = rect.bottom() - 0.5
        edge = look.sizes.card_padding
        painter.drawLine(QPointF(rect.left() + edge, y), QPointF(places.strip[0] - 12, y))
        painter.drawLine(QPointF(places.strip[1] + 12, y), QPointF(rect.right() - edge, y))

    def _strip(
        self, painter: QPainter, rect: QRectF, row: TensorRow, places: _Places, axis: tuple[int, int]
    ) -> None:
        look, error = self.look, row.error
        left, right = places.strip
        middle = rect.center().y()
        upper, lower = middle - 4.0, middle + 4.5
        bound = self._x(error.bound, places, axis)
        half = min(9.0, rect.height() / 2 - 2)
        self._beyond(painter, QRectF(bound, middle - half, right - bound, 2 * half), not row.ok)
        native, own = style_of("native", look.theme), style_of(row.implementation, look.theme)
        soft = look.colour("text_secondary")
        for value, y, style, bad in (
            (error.native_max_abs, upper, native, False),
            (error.max_abs, lower, own, not row.ok),
        ):
            x = self._x(value, places, axis)
            colour = soft if self._frozen else style.colour
            line = QColor(colour)
            line.setAlphaF(0.75)
            painter.setPen(QPen(line, 1))
            painter.drawLine(QPointF(left, y), QPointF(min(x, bound) if bad else x, y))
            if bad:
                painter.setPen(QPen(look.colour("error"), 2))
                painter.drawLine(QPointF(bound, y), QPointF(x, y))
            style.mark(painter, QPointF(x, y), 8, colour)
        painter.fillRect(QRectF(round(bound) - 1, middle - half - 1, 2, 2 * half + 2), look.colour("text"))

    def _beyond(self, painter: QPainter, area: QRectF, bad: bool) -> None:
        if area.width() <= 0:
            return
        colour = self.look.colour("error" if bad else "strong_line")
        colour.setAlphaF(0.45 if bad else 0.9)
        hatched(painter, area, colour, 5.0)

    def _foot(self, painter: QPainter, rect: QRectF, places: _Places, axis: tuple[int, int]) -> None:
        look = self.look
        font, colour = look.font(11), look.colour("text_tertiary")
        taken = places.strip[0] - 24
        legend = "Used: ours ÷ bound. Bias: mean signed error."
        room = taken - places.name
        write(painter, _at(rect, places.name, room), legend, font, colour, LEFT, may_elide=True)
        for power in self._powers(places, axis):
            x = self._x(10.0**power, places, axis)
            write(painter, _at(rect, x - 30, 60), f"1e{power:+03d}", font, colour, CENTRE)
        note = zero_note(self.rows)
        start = places.strip[1] + 28
        room = rect.right() - look.sizes.card_padding - start
        write(painter, _at(rect, start, room), note, font, colour, RIGHT, may_elide=True)

    def tip_at(self, place: QPointF) -> str:
        area = QRectF(self.rect())
        pitch = self._pitch(area)
        head = self._heights()[0]
        index = int((place.y() - head) // pitch) if pitch > 0 and place.y() >= head else -1
        return self.rows[index].sentence if 0 <= index < len(self.rows) else ""


def _at(rect: QRectF, left: float, width: float) -> QRectF:
    return QRectF(left, rect.top(), max(width, 0.0), rect.height())
