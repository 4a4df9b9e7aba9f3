"""Draws every cell of the results table: marks, figures, intervals, chips, and sentences across a line."""

from __future__ import annotations

import math

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QPointF, QRectF, QSize
from PySide6.QtGui import QColor, QPainter, QPen
from PySide6.QtWidgets import QStyledItemDelegate, QStyleOptionViewItem

from app.gui.charts.painting import LEFT, RIGHT, width_of, write
from app.gui.charts.style import style_of
from app.gui.icons import draw_icon
from app.gui.parts.chips import chip_width, draw_chip, draw_ring
from app.gui.parts.look import Look
from app.gui.theme import CHIP_HEIGHT
from app.gui.views.results_model import COLUMN_ROLE, ROW_ROLE
from app.gui.views.rows import COLUMNS, Row, title_of

PADDING = 12
MARK_ROOM = 20
EDGE = 16
WHISKER = 92
WHISKER_GAP = 14
_GLYPHS = {"faster": "arrow-up", "slower": "arrow-down", "same": "equals", "wrong": "error"}
_TIMES = ("median", "device", "kernels", "iqr", "p99", "profiled")
_STATES = {"wrong": "error", "baseline": "same"}


class ResultsDelegate(QStyledItemDelegate):
    """`range` is the interval of speed-ups that all whiskers share, `angle` where spinners stand."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self.look = look
        self.frozen = False
        self.angle = 0
        self.range = (0.5, 2.0)
        self.hovered = -1
        self.focused = -1
        self.speed_room = 48.0

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        return QSize(40, self.look.sizes.row)

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        row: Row = index.data(ROW_ROLE)
        column: str = index.data(COLUMN_ROLE)
        rect = QRectF(option.rect)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._ground(painter, rect, row, index.row(), column)
        if column == "name":
            self._name(painter, rect, row)
        elif row.kind != "figures":
            self._sentence(painter, rect, row)
        elif column == "speed_up":
            self._speed(painter, rect, row)
        elif column == "verdict":
            self._verdict(painter, rect, row)
        elif column == "accuracy":
            self._accuracy(painter, rect, row)
        else:
            self._figure(painter, rect, row, column)
        painter.restore()

    def _ground(self, painter: QPainter, rect: QRectF, row: Row, number: int, column: str) -> None:
        look = self.look
        if row.is_challenger:
            painter.fillRect(rect, look.colour("row_selected"))
        elif number == self.hovered:
            painter.fillRect(rect, look.colour("row_hover"))
        if number == self.focused:
            painter.setPen(QPen(look.colour("focus"), 2))
            for y in (rect.top() + 1, rect.bottom() - 1.5):
                painter.drawLine(QPointF(rect.left(), y), QPointF(rect.right(), y))
            return
        painter.setPen(QPen(look.colour("hairline"), 1))
        left = rect.left() + (EDGE if column == "name" else 0)
        painter.drawLine(QPointF(left, rect.bottom() - 0.5), QPointF(rect.right(), rect.bottom() - 0.5))
        if row.is_challenger and column == "name":
            painter.fillRect(QRectF(rect.left(), rect.top(), 3, rect.height()), self._own(row))

    def _own(self, row: Row) -> QColor:
        if self.frozen:
            return self.look.colour("text_secondary")
        return style_of(row.name, self.look.theme).colour

    def _ink(self, strong: bool = True) -> QColor:
        return self.look.colour("text" if strong and not self.frozen else "text_secondary")

    def _name(self, painter: QPainter, rect: QRectF, row: Row) -> None:
        look = self.look
        running = row.kind == "figures"
        style = style_of(row.name, look.theme)
        # A contender that cannot run loses its colour; one that is about to keeps it, hollow.
        own = look.colour("disabled") if row.kind in ("reason", "error") else self._own(row)
        style.mark(painter, QPointF(rect.left() + EDGE + 5, rect.center().y()), 10, own, hollow=not running)
        font = look.font(13, 600 if row.is_challenger else 400)
        colour = self._ink() if running else look.colour("text_secondary")
        place = rect.adjusted(EDGE + MARK_ROOM, 0, -PADDING / 2, 0)
        write(painter, place, title_of(row.name), font, colour, LEFT, may_elide=True)

    def _sentence(self, painter: QPainter, rect: QRectF, row: Row) -> None:
        look = self.look
        place = rect.adjusted(PADDING, 0, -EDGE, 0)
        if row.kind == "spinner":
            ring = QRectF(place.left(), place.center().y() - 7, 14, 14)
            draw_ring(painter, look, ring, self.angle)
            place.setLeft(ring.right() + 8)
        elif row.kind == "error":
            draw_icon(
                painter, "error", QRectF(place.left(), place.center().y() - 7, 14, 14), look.colour("error")
            )
            place.setLeft(place.left() + 22)
        font = look.font(12)
        colour = look.colour("error" if row.kind == "error" else "text_secondary")
        write(painter, place, row.sentence, font, colour, LEFT, may_elide=True)
        used = width_of(row.sentence, font) + 12
        if row.detail and place.width() - used > width_of(row.detail, font):
            rest = place.adjusted(used, 0, 0, 0)
            write(painter, rest, row.detail, font, look.colour("text_tertiary"), LEFT)

    def _figure(self, painter: QPainter, rect: QRectF, row: Row, column: str) -> None:
        key = COLUMNS[column].key and not (row.disturbed and column == "median")
        font = self.look.font(13, 600 if key else 400)
        place = rect.adjusted(0, 0, -PADDING, 0)
        ink = self.look.colour("text_tertiary") if row.disturbed and column in _TIMES else self._ink(key)
        write(painter, place, row.cells[column], font, ink, RIGHT)

    def _speed(self, painter: QPainter, rect: QRectF, row: Row) -> None:
        look = self.look
        place = rect.adjusted(PADDING, 0, -PADDING, 0)
        word = row.cells["speed_up"]
        if row.is_baseline or row.speed is None:
            write(painter, place, word, look.font(13), look.colour("text_tertiary"), LEFT)
            return
        figures = QRectF(place.left(), place.top(), self.speed_room, place.height())
        write(painter, figures, word, look.font(13, 600), self._ink(), LEFT)
        left = figures.right() + WHISKER_GAP
        width = min(place.right() - left, 1.6 * WHISKER)
        if width < 40 or row.speed.low is None or row.speed.high is None:
            return
        self._whisker(painter, QRectF(left, place.top(), width, place.height()), row)

    def _whisker(self, painter: QPainter, place: QRectF, row: Row) -> None:
        look, speed = self.look, row.speed
        assert speed is not None
        assert speed.low is not None
        assert speed.high is not None
        low, high = (math.log(value) for value in self.range)

        def x(ratio: float) -> float:
            at = (math.log(max(ratio, 1e-9)) - low) / max(high - low, 1e-9)
            return place.left() + min(max(at, 0.0), 1.0) * place.width()

        y = place.center().y()
        floor = speed.noise_floor
        if floor:
            band = QRectF(x(1 / (1 + floor)), y - 7, 0, 14)
            band.setRight(max(x(1 + floor), band.left() + 1))
            painter.fillRect(band, look.colour("strong_line"))
        painter.setPen(QPen(look.colour("strong_line"), 1))
        painter.drawLine(QPointF(place.left(), y), QPointF(place.right(), y))
        painter.setPen(QPen(look.colour("text_tertiary"), 1))
        painter.drawLine(QPointF(x(1.0), y - 7), QPointF(x(1.0), y + 7))
        own = self._own(row)
        painter.setPen(QPen(own, 2))
        painter.drawLine(QPointF(x(speed.low), y), QPointF(x(speed.high), y))
        style_of(row.name, look.theme).mark(painter, QPointF(x(speed.median), y), 8, own)

    def _verdict(self, painter: QPainter, rect: QRectF, row: Row) -> None:
        look, word = self.look, row.cells["verdict"]
        place = rect.adjusted(PADDING, 0, 0, 0)
        if not row.verdict:
            write(painter, place, word, look.font(13), look.colour("text_tertiary"), LEFT)
            return
        glyph = _GLYPHS.get(row.verdict, "")
        state = "same" if self.frozen else _STATES.get(row.verdict, row.verdict)
        width = chip_width(look, word, glyph)
        chip = QRectF(place.left(), place.center().y() - CHIP_HEIGHT / 2, width, CHIP_HEIGHT)
        draw_chip(painter, look, chip, word, state, glyph)

    def _accuracy(self, painter: QPainter, rect: QRectF, row: Row) -> None:
        look = self.look
        place = rect.adjusted(PADDING, 0, -EDGE, 0)
        word = row.cells["accuracy"]
        if row.accurate is None:
            write(painter, place, word, look.font(12), look.colour("text_tertiary"), LEFT)
            return
        state = "ok" if row.accurate else "error"
        glyph = QRectF(place.left(), place.center().y() - 7, 14, 14)
        draw_icon(painter, "tick" if row.accurate else "error", glyph, look.colour(state))
        colour = self._ink(False) if row.accurate else look.colour("error")
        weight = 400 if row.accurate else 600
        write(painter, place.adjusted(18, 0, 0, 0), word, look.font(12, weight), colour, LEFT)

    def natural_width(self, column: str, rows: tuple[Row, ...], head: float) -> float:
        """Pixels that a column needs so that nothing in it is cut."""
        look = self.look
        if column == "name":
            widest = max((width_of(title_of(r.name), look.font(13, 600)) for r in rows), default=0.0)
            return max(EDGE + MARK_ROOM + widest + PADDING / 2, EDGE + head)
        cells = [(row, row.cells[column]) for row in rows if row.kind == "figures"]
        if column == "speed_up":
            self.speed_room = max((width_of(c, look.font(13, 600)) for _, c in cells), default=40.0) + 1
            return max(self.speed_room, head) + 2 * PADDING
        if column == "verdict":
            widths = [chip_width(look, cell, _GLYPHS.get(row.verdict, "")) for row, cell in cells]
            return max([*widths, head, chip_width(look, "BASELINE", "")]) + PADDING + 4
        if column == "accuracy":
            widths = [18 + width_of(cell, look.font(12, 600)) for _, cell in cells]
            return max([*widths, head]) + PADDING + EDGE
        widths = [width_of(cell, look.font(13, 600)) for _, cell in cells]
        return max([*widths, head]) + 1.5 * PADDING
