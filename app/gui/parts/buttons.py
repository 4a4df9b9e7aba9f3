"""Buttons: raised, primary, quiet and outlined as a pill; and words that can be clicked."""

from __future__ import annotations

from typing import Literal

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QEnterEvent, QFont, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QPushButton, QSizePolicy, QWidget

from app.gui.icons import draw_icon
from app.gui.parts.look import Look, Part
from app.gui.parts.text import draw_text, width_of
from app.gui.theme import CONTROL_RADIUS, ICON

Kind = Literal["raised", "primary", "quiet", "pill", "field", "dashed"]

_PADDING = {"raised": 14, "primary": 14, "quiet": 8, "pill": 12, "field": 9, "dashed": 14}
_GAP = 6


class Button(QPushButton, Part):
    """A button with an icon, a text or both.

    `text` empty: a square with the icon only; `name` is then what assistive technology reads and the
    tooltip shows. `chevron`: it opens a menu. Only Tab gives it the focus, so that a click leaves the
    single-letter keys working.
    """

    def __init__(
        self,
        look: Look,
        text: str = "",
        icon: str = "",
        kind: Kind = "raised",
        name: str = "",
        chevron: bool = False,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(text, parent)
        self.icon_name, self.kind, self.chevron = icon, kind, chevron
        self._name = name
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        wide = QSizePolicy.Policy.Expanding if kind == "dashed" else QSizePolicy.Policy.Fixed
        self.setSizePolicy(wide, QSizePolicy.Policy.Fixed)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        if name:
            self.setAccessibleName(name)
            self.setToolTip(name)
        self.set_look(look)

    @property
    def ring_radius(self) -> float:
        return self.height() / 2 if self.kind == "pill" else CONTROL_RADIUS

    def set_kind(self, kind: Kind) -> None:
        if kind != self.kind:
            self.kind = kind
            self.updateGeometry()
            self.update()

    def set_content(self, text: str, icon: str = "") -> None:
        """Change text and icon; nothing happens where both are as before."""
        if text != self.text() or icon != self.icon_name:
            self.icon_name = icon
            self.setText(text)
            self.updateGeometry()
            self.update()

    def text_font(self) -> QFont:
        if self.kind in ("pill", "quiet"):
            return self.look.font(12, 500 if self.kind == "quiet" else 600)
        return self.look.font(13, 600)

    def control_height(self) -> int:
        if self.kind == "pill":
            return 24
        return 24 if self.kind == "quiet" and not self.icon_name else self.look.sizes.control

    def sizeHint(self) -> QSize:
        height = self.control_height()
        if not self.text():
            return QSize(height, height)
        width = 2 * _PADDING[self.kind] + width_of(self.text(), self.text_font()) + 1
        if self.icon_name:
            width += ICON + _GAP
        if self.chevron:
            width += ICON
        return QSize(int(width + 0.99), height)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def enterEvent(self, event: QEnterEvent) -> None:
        self.update()
        super().enterEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        ink = self._draw_ground(painter)
        self._draw_content(painter, ink)

    def _draw_ground(self, painter: QPainter) -> QColor:
        look, enabled = self.look, self.isEnabled()
        hovered = enabled and (self.underMouse() or self.isDown())
        rect = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        radius = self.ring_radius if self.kind == "pill" else CONTROL_RADIUS
        fill: QColor | None = None
        edge: QColor | None = look.colour("strong_line")
        ink = look.colour("text" if enabled else "disabled")
        if self.kind == "primary":
            fill, edge = look.colour("inverse_fill"), None
            ink = look.colour("inverse_text")
            if hovered:
                fill.setAlphaF(0.88)
            if not enabled:
                fill, edge, ink = look.colour("raised"), look.colour("hairline"), look.colour("disabled")
        elif self.kind == "raised":
            fill = look.colour("raised")
            if hovered:
                fill = look.colour("hairline")
        elif self.kind == "field":
            fill = look.colour("raised") if hovered else look.field
        elif self.kind == "quiet":
            edge = None
            fill = look.colour("raised") if hovered else None
            ink = look.colour(("text" if hovered else "text_secondary") if enabled else "disabled")
        elif hovered:
            fill = look.colour("raised")
        line = QPen(edge, 1) if edge is not None else QPen(Qt.PenStyle.NoPen)
        if self.kind == "dashed":
            line.setStyle(Qt.PenStyle.DashLine)
            ink = look.colour("text_secondary" if enabled else "disabled")
        painter.setPen(line)
        painter.setBrush(fill if fill is not None else Qt.BrushStyle.NoBrush)
        if fill is not None or edge is not None:
            painter.drawRoundedRect(rect, radius, radius)
        return ink

    def _draw_content(self, painter: QPainter, ink: QColor) -> None:
        rect = QRectF(self.rect())
        if not self.text():
            draw_icon(painter, self.icon_name, _square(rect.center()), ink)
            return
        padding = _PADDING[self.kind]
        inner = rect.adjusted(padding, 0, -padding, 0)
        if self.kind == "dashed":
            # As wide as its place, with the content in the middle.
            spare = inner.width() - width_of(self.text(), self.text_font()) - ICON - _GAP - 1
            inner.setLeft(inner.left() + max(0.0, spare / 2))
        if self.icon_name:
            centre = QPointF(inner.left() + ICON / 2, inner.center().y())
            draw_icon(painter, self.icon_name, _square(centre), ink)
            inner.setLeft(inner.left() + ICON + _GAP)
        if self.chevron:
            centre = QPointF(inner.right() - ICON / 2 + 4, inner.center().y())
            draw_icon(painter, "chevron-down", _square(centre), ink)
            inner.setRight(inner.right() - ICON)
        painter.setFont(self.text_font())
        painter.setPen(ink)
        align = (
            Qt.AlignmentFlag.AlignLeft if self.icon_name or self.chevron else Qt.AlignmentFlag.AlignHCenter
        )
        draw_text(painter, inner, self.text(), align)


class TextLink(QAbstractButton, Part):
    """Words to click, such as `why`: underlined unless `plain`."""

    ring_radius = 4.0

    def __init__(
        self,
        look: Look,
        text: str,
        size: int = 12,
        weight: int = 600,
        role: str = "text",
        plain: bool = False,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setText(text)
        self._size, self._weight, self._role, self._plain = size, weight, role, plain
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.set_look(look)

    def set_role(self, role: str) -> None:
        if role != self._role:
            self._role = role
            self.update()

    def text_font(self) -> QFont:
        return self.look.font(self._size, self._weight)

    def sizeHint(self) -> QSize:
        return QSize(int(width_of(self.text(), self.text_font())) + 2, self._size + 6)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        role = self._role if self.isEnabled() else "disabled"
        if self._plain and self.underMouse() and self.isEnabled():
            role = "text"
        painter.setPen(self.look.colour(role))
        painter.setFont(self.text_font())
        draw_text(painter, QRectF(self.rect()), self.text())
        if not self._plain or self.underMouse():
            painter.setPen(QPen(self.look.colour("text_secondary"), 1))
            width = int(width_of(self.text(), self.text_font()))
            painter.drawLine(0, self.height() - 1, width, self.height() - 1)

    def enterEvent(self, event: QEnterEvent) -> None:
        self.update()
        super().enterEvent(event)


def _square(centre: QPointF, side: float = ICON) -> QRectF:
    return QRectF(centre.x() - side / 2, centre.y() - side / 2, side, side)
