"""A field that opens a menu of values: our combo box."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFont, QKeyEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QPushButton, QSizePolicy, QWidget

from app.gui.icons import draw_icon
from app.gui.parts.look import Look, Part
from app.gui.parts.menu import Menu, MenuItem, open_menu
from app.gui.parts.text import draw_text, width_of
from app.gui.theme import CONTROL_RADIUS, ICON


class Picker(QPushButton, Part):
    """Shows the chosen entry's title. `chosen` tells an id: an entry's, or one of its actions'."""

    chosen = Signal(str)
    ring_radius = float(CONTROL_RADIUS)

    def __init__(
        self,
        look: Look,
        name: str,
        compact: bool = False,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setAccessibleName(name)
        self._compact = compact
        self._items: Callable[[], Sequence[MenuItem]] = tuple
        self.menu_open: Menu | None = None
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        horizontal = QSizePolicy.Policy.Fixed if compact else QSizePolicy.Policy.Expanding
        self.setSizePolicy(horizontal, QSizePolicy.Policy.Fixed)
        self.clicked.connect(self.open)
        self.set_look(look)

    def set_items(self, items: Callable[[], Sequence[MenuItem]]) -> None:
        """`items` is asked each time the menu opens: what is offered may have changed."""
        self._items = items

    def items(self) -> Sequence[MenuItem]:
        return self._items()

    def set_text(self, text: str) -> None:
        if text != self.text():
            self.setText(text)
            self.setToolTip("" if self._compact else text)
            self.updateGeometry()

    def open(self) -> Menu:
        self.menu_open = open_menu(self, self.look, self._items(), self.chosen.emit, min_width=self.width())
        self.menu_open.destroyed.connect(self._menu_gone)
        return self.menu_open

    def _menu_gone(self) -> None:
        self.menu_open = None

    def sizeHint(self) -> QSize:
        width = int(width_of(self.text(), self._font())) + 10 + 10 + ICON + 8
        return QSize(width, self.look.sizes.control)

    def minimumSizeHint(self) -> QSize:
        hint = self.sizeHint()
        return hint if self._compact else QSize(72, hint.height())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Down, Qt.Key.Key_Up, Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.open()
        else:
            super().keyPressEvent(event)

    def _font(self) -> QFont:
        return self.look.font(12 if self._compact else 13, 600 if self._compact else 500)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        look = self.look
        rect = QRectF(self.rect())
        painter.setPen(QPen(look.colour("strong_line"), 1))
        painter.setBrush(look.colour("row_hover") if self.underMouse() else look.field)
        painter.drawRoundedRect(rect.adjusted(0.5, 0.5, -0.5, -0.5), CONTROL_RADIUS, CONTROL_RADIUS)
        centre = QPointF(rect.right() - 8 - ICON / 2, rect.center().y())
        box = QRectF(centre.x() - ICON / 2, centre.y() - ICON / 2, ICON, ICON)
        draw_icon(painter, "chevron-down", box, look.colour("text_secondary"))
        painter.setFont(self._font())
        painter.setPen(look.colour("text" if self.isEnabled() else "disabled"))
        draw_text(painter, rect.adjusted(10, 0, -(ICON + 12), 0), self.text(), may_elide=not self._compact)
