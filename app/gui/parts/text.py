"""Text that is cut with an ellipsis where it must be, and that says so to whoever listens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from app.gui.parts.look import Look, Part

LEFT = Qt.AlignmentFlag.AlignLeft
RIGHT = Qt.AlignmentFlag.AlignRight
CENTRE = Qt.AlignmentFlag.AlignHCenter

_listeners: list[list[Overflow]] = []


@dataclass(frozen=True)
class Overflow:
    """A text that did not fit: how many pixels it needed, how many there were."""

    text: str
    needed: float
    given: float


@contextmanager
def recorded_overflows() -> Iterator[list[Overflow]]:
    """Collects every text that is drawn cut inside the block."""
    found: list[Overflow] = []
    _listeners.append(found)
    try:
        yield found
    finally:
        # By identity: two listeners may hold equal lists.
        _listeners[:] = [listener for listener in _listeners if listener is not found]


def record_overflow(text: str, needed: float, given: float) -> None:
    for listener in _listeners:
        listener.append(Overflow(text, needed, given))


def width_of(text: str, font: QFont) -> float:
    return QFontMetricsF(font).horizontalAdvance(text)


def draw_text(
    painter: QPainter,
    rect: QRectF,
    text: str,
    align: Qt.AlignmentFlag = LEFT,
    may_elide: bool = False,
) -> None:
    """Draw one line, vertically centred, with the painter's font and pen.

    `may_elide` is for texts of unbounded length, such as paths; any other that does not fit is recorded.
    """
    metrics = QFontMetricsF(painter.font())
    needed = metrics.horizontalAdvance(text)
    if needed > rect.width() + 0.5:
        if not may_elide:
            record_overflow(text, needed, rect.width())
        text = metrics.elidedText(text, Qt.TextElideMode.ElideRight, rect.width())
    painter.drawText(rect, int(align | Qt.AlignmentFlag.AlignVCenter), text)


class Label(QLabel, Part):
    """One line of text in a role's colour. Cut, it shows the whole in its tooltip."""

    def __init__(
        self,
        look: Look,
        text: str = "",
        size: int = 13,
        weight: int = 400,
        role: str = "text",
        align: Qt.AlignmentFlag = LEFT,
        mono: bool = False,
        may_elide: bool = False,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(text, parent)
        self._size, self._weight, self._mono = size, weight, mono
        self._role, self._align, self._may_elide = role, align, may_elide
        self._own_tip = False
        self.setTextFormat(Qt.TextFormat.PlainText)
        horizontal = QSizePolicy.Policy.Preferred if may_elide else QSizePolicy.Policy.Minimum
        self.setSizePolicy(horizontal, QSizePolicy.Policy.Fixed)
        self.set_look(look)

    def restyle(self) -> None:
        self.setFont(self.look.font(self._size, self._weight, self._mono))

    def set_role(self, role: str) -> None:
        if role != self._role:
            self._role = role
            self.update()

    def setText(self, text: str) -> None:
        if text != self.text():
            super().setText(text)
            self.updateGeometry()

    def sizeHint(self) -> QSize:
        metrics = QFontMetricsF(self.font())
        return QSize(int(metrics.horizontalAdvance(self.text())) + 1, int(metrics.height()) + 1)

    def minimumSizeHint(self) -> QSize:
        hint = self.sizeHint()
        return QSize(0, hint.height()) if self._may_elide else hint

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setPen(self.look.colour(self._role if self.isEnabled() else "disabled"))
        painter.setFont(self.font())
        draw_text(painter, QRectF(self.rect()), self.text(), self._align, self._may_elide)
        cut = self._may_elide and width_of(self.text(), self.font()) > self.width()
        if cut != self._own_tip:
            self._own_tip = cut
            self.setToolTip(self.text() if cut else "")


class Paragraph(QLabel, Part):
    """Text of several lines, broken where its width says."""

    def __init__(
        self,
        look: Look,
        text: str = "",
        size: int = 12,
        weight: int = 400,
        role: str = "text_secondary",
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(text, parent)
        self._size, self._weight, self._role = size, weight, role
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setWordWrap(True)
        self.set_look(look)

    def restyle(self) -> None:
        self.setFont(self.look.font(self._size, self._weight))
        palette = self.palette()
        palette.setColor(self.foregroundRole(), self.look.colour(self._role))
        self.setPalette(palette)
