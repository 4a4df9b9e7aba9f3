"""Chips: a state as a glyph and a word in its colours. And what turns or fills while something goes on."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, QTimer
from PySide6.QtGui import QBrush, QColor, QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.gui.icons import draw_icon
from app.gui.parts.look import Look, Part
from app.gui.parts.text import draw_text, width_of
from app.gui.theme import CHIP_HEIGHT

STATE_GLYPHS = {
    "faster": "arrow-up",
    "slower": "arrow-down",
    "same": "equals",
    "unsure": "",
    "ok": "tick",
    "warning": "warning",
    "error": "error",
}
_PADDING, _GLYPH, _GAP = 8, 12, 4


def chip_width(look: Look, text: str, glyph: str) -> float:
    """Pixels that `draw_chip` takes."""
    width = 2 * _PADDING + width_of(text.upper(), look.font(11, 600))
    return width + (_GLYPH + _GAP if glyph else 0)


def draw_chip(painter: QPainter, look: Look, rect: QRectF, text: str, state: str, glyph: str) -> None:
    """A filled chip, 20 px high. UNSURE is hatched, because its colours alone say nothing."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    radius = rect.height() / 2
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(look.fill(state))
    painter.drawRoundedRect(rect, radius, radius)
    if state == "unsure":
        shape = QPainterPath()
        shape.addRoundedRect(rect, radius, radius)
        hatch(painter, shape, look.colour("strong_line"), spacing=5)
    ink = look.colour(state)
    painter.setFont(look.font(11, 600))
    inner = rect.adjusted(_PADDING, 0, -_PADDING, 0)
    if glyph:
        box = QRectF(inner.left(), inner.center().y() - _GLYPH / 2, _GLYPH, _GLYPH)
        draw_icon(painter, glyph, box, ink)
        inner.setLeft(inner.left() + _GLYPH + _GAP)
    painter.setPen(ink)
    draw_text(painter, inner, text.upper())
    painter.restore()


def hatch(
    painter: QPainter, shape: QPainterPath, colour: QColor, spacing: float = 4, width: float = 1
) -> None:
    """Diagonal lines inside `shape`, at the same places whatever the device pixel ratio."""
    painter.save()
    painter.setClipPath(shape, Qt.ClipOperation.IntersectClip)
    painter.setPen(QPen(colour, width))
    box = shape.boundingRect()
    start = box.left() - box.height()
    start -= start % spacing
    while start < box.right():
        painter.drawLine(QPointF(start, box.bottom()), QPointF(start + box.height(), box.top()))
        start += spacing
    painter.restore()


class Chip(QWidget, Part):
    """A chip as a widget of its own."""

    def __init__(
        self, look: Look, text: str, state: str, glyph: str | None = None, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._text, self._state = text, state
        self._glyph = STATE_GLYPHS.get(state, "") if glyph is None else glyph
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(text)
        self.set_look(look)

    def text(self) -> str:
        return self._text

    def sizeHint(self) -> QSize:
        return QSize(int(chip_width(self.look, self._text, self._glyph) + 1), CHIP_HEIGHT)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        draw_chip(painter, self.look, QRectF(self.rect()), self._text, self._state, self._glyph)


class Spinner(QWidget, Part):
    """The only endless motion: a ring that turns, or stands where motion is not wanted."""

    def __init__(self, look: Look, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._angle = 0
        self._timer = QTimer(self)
        self._timer.setInterval(80)
        self._timer.timeout.connect(self._turn)
        self.setFixedSize(14, 14)
        self.set_look(look)

    def showEvent(self, event: object) -> None:
        if self.look.motion:
            self._timer.start()

    def hideEvent(self, event: object) -> None:
        self._timer.stop()

    def _turn(self) -> None:
        self._angle = (self._angle - 30) % 360
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        draw_ring(QPainter(self), self.look, QRectF(self.rect()), self._angle)


def draw_ring(painter: QPainter, look: Look, rect: QRectF, angle: int) -> None:
    """A ring of which a quarter is lit, starting at `angle` degrees."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    side = min(rect.width(), rect.height()) - 3
    ring = QRectF(rect.center().x() - side / 2, rect.center().y() - side / 2, side, side)
    painter.setPen(QPen(look.colour("strong_line"), 1.5))
    painter.drawEllipse(ring)
    pen = QPen(look.colour("text"), 1.5)
    pen.setCapStyle(Qt.PenCapStyle.RoundCap)
    painter.setPen(pen)
    painter.drawArc(ring, angle * 16, 110 * 16)
    painter.restore()


def draw_progress(painter: QPainter, look: Look, rect: QRectF, share: float) -> None:
    """A bar filled from the left by `share` of one."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    radius = rect.height() / 2
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(look.colour("strong_line"))
    painter.drawRoundedRect(rect, radius, radius)
    share = min(max(share, 0.0), 1.0)
    if share:
        filled = QRectF(rect)
        filled.setWidth(max(rect.width() * share, rect.height()))
        painter.setBrush(QBrush(look.colour("text")))
        painter.drawRoundedRect(filled, radius, radius)
    painter.restore()


class ProgressBar(QWidget, Part):
    """How much of something is done."""

    def __init__(self, look: Look, height: int = 8, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._share = 0.0
        self.setFixedHeight(height)
        self.set_look(look)

    def set_share(self, share: float) -> None:
        if share != self._share:
            self._share = share
            self.update()

    @property
    def share(self) -> float:
        return self._share

    def paintEvent(self, event: QPaintEvent) -> None:
        draw_progress(QPainter(self), self.look, QRectF(self.rect()), self._share)
