"""A layer over the window: what lies on it is closed by Esc, or by a click beside it.

Menus lie inside the window rather than in windows of their own: their round corners and shadows then do
not depend on a compositor, and they are part of every picture taken of the window.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QApplication, QWidget
from shiboken6 import isValid

from app.gui.parts.look import Look, Part
from app.gui.theme import CARD_RADIUS

_SHADOW = 10


class Overlay(QWidget, Part):
    """Covers `window` and gives the focus back when it closes."""

    closed = Signal()

    def __init__(self, window: QWidget, look: Look, dims: bool = False) -> None:
        super().__init__(window)
        self._window = window
        self._dims = dims
        self._before = QApplication.focusWidget()
        self._content: QWidget | None = None
        self.look = look
        self.setGeometry(window.rect())
        window.installEventFilter(self)

    def set_content(self, content: QWidget) -> None:
        """What the layer carries; a click on it does not close."""
        content.setParent(self)
        self._content = content

    def close_layer(self) -> None:
        if self.isHidden():
            return
        self._window.removeEventFilter(self)
        self.hide()
        before = self._before
        if before is not None and isValid(before) and before.isVisible():
            before.setFocus(Qt.FocusReason.PopupFocusReason)
        else:
            self._window.setFocus()
        self.closed.emit()
        self.deleteLater()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        # What the layer was placed beside has moved: a menu in the wrong place is worse than none.
        if event.type() == QEvent.Type.Resize and watched is self._window:
            self.close_layer()
        return False

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.close_layer()
        # Everything else stops here: the window's single letters are off while a layer is open.
        event.accept()

    def focusNextPrevChild(self, forward: bool) -> bool:
        # Tab goes round inside: what lies below is covered, and must not be pressed by a key.
        stops = [
            widget
            for widget in self.findChildren(QWidget)
            if widget.focusPolicy() & Qt.FocusPolicy.TabFocus and widget.isEnabled() and widget.isVisible()
        ]
        at = next((i for i, widget in enumerate(stops) if widget.hasFocus()), -1 if forward else 0)
        if stops:
            stops[(at + (1 if forward else -1)) % len(stops)].setFocus(Qt.FocusReason.TabFocusReason)
        return True

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if self._content is None or not self._content.geometry().contains(event.position().toPoint()):
            self.close_layer()
        event.accept()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self._dims:
            shade = QColor(self.look.theme.window)
            shade.setAlphaF(0.6)
            painter.fillRect(self.rect(), shade)
        if self._content is not None:
            _draw_shadow(painter, QRectF(self._content.geometry()), self.look)


def draw_panel(painter: QPainter, look: Look, rect: QRectF, role: str = "raised") -> None:
    """The ground of a menu or a sheet."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(look.colour("strong_line"), 1))
    painter.setBrush(look.colour(role if look.theme.name == "dark" else "card"))
    painter.drawRoundedRect(rect.adjusted(0.5, 0.5, -0.5, -0.5), CARD_RADIUS, CARD_RADIUS)
    painter.restore()


def _draw_shadow(painter: QPainter, rect: QRectF, look: Look) -> None:
    painter.setPen(Qt.PenStyle.NoPen)
    strength = 0.05 if look.theme.name == "dark" else 0.016
    for reach in range(_SHADOW, 0, -1):
        shade = QColor(0, 0, 0)
        shade.setAlphaF(strength)
        painter.setBrush(shade)
        grown = rect.adjusted(-reach, -reach + 3, reach, reach + 3)
        painter.drawRoundedRect(grown, CARD_RADIUS + reach, CARD_RADIUS + reach)
