"""A card: a frame with a head of a title, what it is per, and room for actions at the right."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.gui.parts.look import Look, Part
from app.gui.parts.text import Label
from app.gui.theme import CARD_RADIUS


def draw_card(painter: QPainter, look: Look, rect: QRectF) -> None:
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(look.colour("hairline"), 1))
    painter.setBrush(look.colour("card"))
    painter.drawRoundedRect(rect.adjusted(0.5, 0.5, -0.5, -0.5), CARD_RADIUS, CARD_RADIUS)
    painter.restore()


class Card(QWidget, Part):
    """`body` is where the content goes, `tools` the row at the right of the head."""

    def __init__(self, look: Look, title: str, subtitle: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.look = look
        self._outer = QVBoxLayout(self)
        self._outer.setSpacing(0)
        self._head = QHBoxLayout()
        self._head.setSpacing(8)
        self.title = Label(look, title, 13, 600)
        self.subtitle = Label(look, subtitle, 12, 400, "text_tertiary", may_elide=True)
        self.tools = QHBoxLayout()
        self.tools.setSpacing(8)
        self._head.addWidget(self.title, 0, Qt.AlignmentFlag.AlignVCenter)
        self._head.addWidget(self.subtitle, 1, Qt.AlignmentFlag.AlignVCenter)
        self._head.addLayout(self.tools)
        # Heads stay level whether or not they hold a button.
        self._head.addStrut(24)
        self.body = QVBoxLayout()
        self._outer.addLayout(self._head)
        self._outer.addLayout(self.body, 1)
        self.restyle()

    def restyle(self) -> None:
        sizes = self.look.sizes
        self._outer.setContentsMargins(sizes.card_padding, 0, sizes.card_padding, sizes.card_padding)
        self._head.setContentsMargins(0, (sizes.card_head - 24) // 2, 0, (sizes.card_head - 24) // 2)

    def paintEvent(self, event: QPaintEvent) -> None:
        draw_card(QPainter(self), self.look, QRectF(self.rect()))
