"""What the latency chart draws in pixels around and over its curves: one item behind, one in front."""

from __future__ import annotations

from dataclasses import dataclass, field

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPen
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget

from app.core.catalog import CONTENDERS
from app.core.curves import pushed_apart
from app.core.text import THIN, number
from app.core.ticks import ago_ticks, from_zero, tick_label, value_label
from app.gui.charts.latency_data import Picture, Reading
from app.gui.charts.painting import CENTRE, LEFT, RIGHT, dashed, hatched, width_of, write
from app.gui.charts.style import faded, style_of
from app.gui.parts.look import Look

LABEL_GAP = 16
_MARK = 9
_LEADER = 20
_EVENT_ROW = 16
_EVENT_ROWS = 3
_WORDS = 3


@dataclass
class Scene:
    """What both items draw from; the chart sets it, the items read it."""

    look: Look
    picture: Picture
    y_ticks: list[float] = field(default_factory=lambda: [0.0, 1.0])
    plot: QRectF = field(default_factory=QRectF)
    right: float = 0.0
    empty: str = ""
    hover: Reading | None = None

    def x(self, seconds: float) -> float:
        """Pixel of a time before now."""
        return self.plot.right() + seconds / self.picture.span_s * self.plot.width()

    def y(self, us: float) -> float:
        """Pixel of a latency in µs."""
        return self.plot.bottom() - us / self.y_ticks[-1] * self.plot.height()

    def label_width(self) -> float:
        """Room that the widest label at the end of a line takes."""
        name, value = self.look.font(12, 500), self.look.font(12, 700)
        widths = [
            width_of(style_of(c.name, self.look.theme).short, name)
            + 7
            + width_of(value_label(c.value), value)
            for c in self.picture.curves
        ]
        return _LEADER + max(widths, default=100.0) + 4

    def axis_width(self) -> float:
        """Room that the widest tick label at the left takes."""
        step = self.y_ticks[1]
        font = self.look.font(11)
        return max(width_of(tick_label(tick, step), font) for tick in self.y_ticks) + 10


def y_ticks_for(top_us: float, before: list[float], height: float) -> list[float]:
    """Ticks from zero over `top_us`, kept from the last frame while they still serve."""
    end = before[-1]
    if top_us <= end and top_us > 0.55 * end and end > 1.0:
        return before
    return from_zero(top_us * 1.06, max(2, min(6, int(height // 36))))


class _Pixels(QGraphicsItem):
    """An item that covers the chart and draws in its pixels."""

    def __init__(self, scene: Scene, z: float) -> None:
        super().__init__()
        self.drawn = scene
        self._rect = QRectF()
        self.setZValue(z)
        self.setAcceptedMouseButtons(Qt.MouseButton.NoButton)

    def cover(self, rect: QRectF) -> None:
        if rect != self._rect:
            self.prepareGeometryChange()
            self._rect = rect

    def boundingRect(self) -> QRectF:
        return self._rect


class Frame(_Pixels):
    """Behind the curves: grid, axes and the stretches in which something else ran."""

    def paint(
        self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None
    ) -> None:
        s = self.drawn
        look, plot = s.look, s.plot
        for stretch in s.picture.stretches:
            left, right = max(s.x(stretch.start), plot.left()), min(s.x(stretch.end), plot.right())
            if right > left:
                area = QRectF(left, plot.top(), right - left, plot.height())
                painter.fillRect(area, faded(look.colour("unsure"), 0.05))
                hatched(painter, area, faded(look.colour("unsure"), 0.14), 6)
        font = s.look.font(11)
        step = s.y_ticks[1]
        for tick in s.y_ticks:
            y = round(s.y(tick)) + 0.5
            painter.setPen(QPen(look.colour("strong_line" if tick == 0 else "grid"), 1))
            painter.drawLine(QPointF(plot.left(), y), QPointF(s.right, y))
            place = QRectF(0, y - 8, plot.left() - 8, 16)
            write(painter, place, tick_label(tick, step), font, look.colour("text_tertiary"), RIGHT)
        words = ago_ticks(s.picture.span_s, max(2, int(plot.width() // 74)))
        for seconds, word in words:
            if s.picture.frozen and seconds == 0:
                word = "last"
            place = QRectF(s.x(seconds) - 40, plot.bottom() + 6, 80, 16)
            write(painter, place, word, font, look.colour("text_tertiary"), CENTRE)


class Overlay(_Pixels):
    """In front of the curves: events, labels at the ends of lines, crosshair and its readings."""

    def paint(
        self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None
    ) -> None:
        s = self.drawn
        if s.empty:
            area = QRectF(s.plot.left(), s.plot.top(), s.right - s.plot.left(), s.plot.height())
            write(painter, area, s.empty, s.look.font(13), s.look.colour("text_secondary"), CENTRE, True)
        self._events(painter)
        self._ends(painter)
        if s.hover is not None:
            self._crosshair(painter, s.hover)

    def _events(self, painter: QPainter) -> None:
        """Dashed lines with a word or two; words that would overlap go a row lower, or are left out."""
        s = self.drawn
        font = s.look.font(11, 600)
        taken: list[tuple[int, float, float]] = []
        notes = [(seconds, short_event(event.text), event.level, True) for seconds, event in s.picture.events]
        notes += [
            (max(part.start, -s.picture.span_s), short_event(part.what), "info", False)
            for part in s.picture.stretches
            if part.end > -s.picture.span_s
        ]
        for seconds, word, level, line in sorted(notes):
            x = round(s.x(seconds)) + 0.5
            role = {"warning": "warning", "error": "error"}.get(level, "text_secondary")
            colour = s.look.colour(role)
            if line:
                painter.setPen(dashed(faded(colour, 0.85)))
                painter.drawLine(QPointF(x, s.plot.top() - 8), QPointF(x, s.plot.bottom()))
            width = width_of(word, font)
            left = x + 6 if x + 6 + width < s.right else x - 6 - width
            rows = (r for r in range(_EVENT_ROWS) if _is_free(taken, r, left, left + width))
            row = next(rows, None)
            if row is not None:
                taken.append((row, left, left + width))
                place = QRectF(left, s.plot.top() - 2 + row * _EVENT_ROW, width + 1, _EVENT_ROW)
                write(painter, place, word, font, colour, LEFT)

    def _ends(self, painter: QPainter) -> None:
        s = self.drawn
        curves = [c for c in s.picture.curves if c.x.size]
        name_font, value_font = s.look.font(12, 500), s.look.font(12, 700)
        wanted = [s.y(c.last[1]) for c in curves]
        places = pushed_apart(wanted, LABEL_GAP, s.plot.top() - 2, s.plot.bottom() - 4)
        text = s.look.colour("text_secondary" if s.picture.dimmed else "text")
        for curve, y, place in zip(curves, wanted, places, strict=True):
            style = style_of(curve.name, s.look.theme)
            colour = s.look.colour("text_secondary") if s.picture.dimmed else style.colour
            # A line that is still measured ends at now; half a bucket of jitter would only tremble.
            x = s.plot.right() if curve.live else s.x(curve.last[0])
            start = s.plot.right() + _LEADER
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(colour, 1))
            painter.drawLine(QPointF(x + _MARK / 2, y), QPointF(start - 10, place))
            painter.drawLine(QPointF(start - 10, place), QPointF(start - 3, place))
            style.mark(painter, QPointF(x, y), _MARK, colour)
            value = value_label(curve.value)
            name_width = width_of(style.short, name_font)
            write(
                painter,
                QRectF(start, place - 8, min(name_width, s.right - start) + 1, 16),
                style.short,
                name_font,
                text,
                LEFT,
            )
            left = start + name_width + 7
            write(painter, QRectF(left, place - 8, s.right - left + 4, 16), value, value_font, text, LEFT)

    def _crosshair(self, painter: QPainter, hover: Reading) -> None:
        s = self.drawn
        x = round(s.x(hover.x)) + 0.5
        painter.setPen(QPen(s.look.colour("control_outline"), 1))
        painter.drawLine(QPointF(x, s.plot.top()), QPointF(x, s.plot.bottom()))
        for name, median, _, _ in hover.rows:
            style = style_of(name, s.look.theme)
            style.mark(painter, QPointF(x, s.y(median)), 8, style.colour)
        body, bold, small = s.look.font(12), s.look.font(12, 600), s.look.font(11)
        rows = [
            (style_of(name, s.look.theme), f"{number(median, 1)}{THIN}µs", f"IQR {iqr(q1, q3)}")
            for name, median, q1, q3 in hover.rows
        ]
        head = f"{number(hover.x, 1)}{THIN}s"
        if hover.round is not None:
            head += f" · round {number(hover.round)}"
        event = short_event(hover.event.text) if hover.event else ""
        names = max((width_of(r[0].short, body) for r in rows), default=0)
        values = max((width_of(r[1], bold) for r in rows), default=0)
        spreads = max((width_of(r[2], small) for r in rows), default=0)
        width = max(
            24 + names + 20 + values + 16 + spreads, width_of(head, bold) + 20 + width_of(event, small)
        )
        width += 28
        height = 32 + 20 * len(rows) + 6
        left = x + 14 if x + 14 + width < s.plot.right() else max(4.0, x - 14 - width)
        top = max(0.0, min(s.plot.center().y() - height / 2, self._rect.bottom() - height))
        box = QRectF(round(left) + 0.5, round(top) + 0.5, width, height)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(s.look.colour("strong_line"), 1))
        painter.setBrush(s.look.colour("raised"))
        painter.drawRoundedRect(box, 6, 6)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        inner = box.adjusted(14, 0, -14, 0)
        line = QRectF(inner.left(), box.top() + 6, inner.width(), 20)
        write(painter, line, head, bold, s.look.colour("text"), LEFT)
        if event:
            write(painter, line, event, small, s.look.colour("warning"), RIGHT)
        for index, (style, value, spread) in enumerate(rows):
            line = QRectF(inner.left(), box.top() + 30 + 20 * index, inner.width(), 20)
            style.mark(painter, QPointF(line.left() + 5, line.center().y()), 8)
            write(painter, line.adjusted(20, 0, 0, 0), style.short, body, s.look.colour("text"), LEFT)
            write(painter, line.adjusted(0, 0, -spreads - 16, 0), value, bold, s.look.colour("text"), RIGHT)
            write(painter, line, spread, small, s.look.colour("text_secondary"), RIGHT)


def iqr(q1: float, q3: float) -> str:
    """Two quartiles in µs, as `803–824`."""
    decimals = 0 if q3 >= 100 else 1 if q3 >= 10 else 2
    return f"{number(q1, decimals)}–{number(q3, decimals)}"


def short_event(text: str) -> str:
    """An event's first words: a contender's id reads as its name."""
    words = [CONTENDERS[word].short if word in CONTENDERS else word for word in text.split()]
    return " ".join(words[:_WORDS]).rstrip(",;:(") + ("…" if len(words) > _WORDS else "")


def _is_free(taken: list[tuple[int, float, float]], row: int, left: float, right: float) -> bool:
    return all(r != row or right + 8 < start or left > end + 8 for r, start, end in taken)
