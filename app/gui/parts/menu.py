"""Menus in our look: two-line entries, marks, and greyed ones with their reason and the way out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPoint, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QKeyEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from app.gui.icons import draw_icon
from app.gui.marks import draw_mark
from app.gui.parts.buttons import Button
from app.gui.parts.look import Look, Part
from app.gui.parts.overlay import Overlay, draw_panel
from app.gui.parts.text import RIGHT, Label, Paragraph, draw_text, width_of
from app.gui.theme import CONTROL_RADIUS, ICON

_MARGIN = 6
_LEFT = 34
_MAX_WIDTH = 460


@dataclass(frozen=True)
class MenuAction:
    """A button inside an entry, such as `Copy the command`."""

    id: str
    title: str
    icon: str = ""


@dataclass(frozen=True)
class MenuItem:
    """One entry. `shape` and `series` draw a contender's mark; `fix` and `actions` stand below it.

    A disabled entry keeps its `detail` readable: it is the reason.
    """

    id: str
    title: str
    detail: str = ""
    trailing: str = ""
    icon: str = ""
    shape: str = ""
    series: str = ""
    enabled: bool = True
    checked: bool = False
    heading: bool = False
    line_before: bool = False
    fix: str = ""
    actions: tuple[MenuAction, ...] = ()


class MenuRow(QPushButton, Part):
    """An entry of a menu."""

    def __init__(self, look: Look, item: MenuItem, walk: Callable[[QKeyEvent], None]) -> None:
        super().__init__(item.title)
        self.item = item
        self._walk = walk
        self.setEnabled(item.enabled and not item.heading)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleDescription(item.detail or item.trailing)
        self.setMouseTracking(True)
        if width_of(item.detail, look.font(12)) > _MAX_WIDTH - _LEFT - 14:
            self.setToolTip(item.detail)
        self.set_look(look)

    def sizeHint(self) -> QSize:
        item, look = self.item, self.look
        if item.heading:
            return QSize(int(width_of(item.title, look.font(11, 600))) + 24, 26)
        title = width_of(item.title, look.font(13, 500))
        width = max(title, width_of(item.detail, look.font(12)))
        if item.trailing:
            width = max(width, title + 24 + width_of(item.trailing, look.font(12)))
        return QSize(min(int(width) + _LEFT + 14, _MAX_WIDTH), 46 if item.detail else 32)

    def enterEvent(self, event: object) -> None:
        if self.isEnabled():
            self.setFocus()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Space, Qt.Key.Key_Select):
            super().keyPressEvent(event)
        else:
            # A button and a scroll area would take the arrows by their own rules.
            self._walk(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        look, item = self.look, self.item
        rect = QRectF(self.rect())
        if item.heading:
            painter.setPen(look.colour("text_tertiary"))
            painter.setFont(look.font(11, 600))
            draw_text(painter, rect.adjusted(12, 4, -12, 0), item.title)
            return
        if self.hasFocus():
            painter.setPen(Qt.PenStyle.NoPen)
            fill = look.colour("strong_line")
            fill.setAlphaF(0.6 if look.theme.name == "dark" else 0.35)
            painter.setBrush(fill)
            painter.drawRoundedRect(rect, CONTROL_RADIUS, CONTROL_RADIUS)
        self._draw_glyph(painter, rect)
        inner = rect.adjusted(_LEFT, 0, -12, 0)
        first = QRectF(inner)
        if item.detail:
            first = QRectF(inner.left(), 5, inner.width(), 18)
            painter.setFont(look.font(12))
            painter.setPen(look.colour("text_tertiary" if item.enabled else "text_secondary"))
            draw_text(painter, QRectF(inner.left(), 23, inner.width(), 17), item.detail, may_elide=True)
        if item.trailing:
            painter.setFont(look.font(12))
            painter.setPen(look.colour("text_tertiary"))
            draw_text(painter, first, item.trailing, RIGHT)
            first.setWidth(first.width() - width_of(item.trailing, look.font(12)) - 12)
        painter.setFont(look.font(13, 500))
        greyed = "text_tertiary" if item.detail else "text_secondary"
        painter.setPen(look.colour("text" if item.enabled else greyed))
        draw_text(painter, first, item.title, may_elide=True)

    def _draw_glyph(self, painter: QPainter, rect: QRectF) -> None:
        look, item = self.look, self.item
        centre = QPointF(18, rect.center().y())
        box = QRectF(centre.x() - ICON / 2, centre.y() - ICON / 2, ICON, ICON)
        if item.shape:
            draw_mark(painter, item.shape, centre, 10, look.series(item.series), hollow=not item.enabled)
        elif item.checked:
            draw_icon(painter, "tick", box, look.colour("text"))
        elif not item.enabled and item.detail:
            draw_icon(painter, "lock", box, look.colour("text_tertiary"))
        elif item.icon:
            draw_icon(painter, item.icon, box, look.colour("text_secondary"))


class Menu(QWidget, Part):
    """The panel that carries the entries. `open_menu` places it."""

    def __init__(self, look: Look, items: Sequence[MenuItem], chosen: Callable[[str], None]) -> None:
        super().__init__()
        self.look = look
        self._chosen = chosen
        self.rows: list[MenuRow] = []
        self._content = QWidget()
        column = QVBoxLayout(self._content)
        column.setContentsMargins(_MARGIN, _MARGIN, _MARGIN, _MARGIN)
        column.setSpacing(0)
        for item in items:
            if item.line_before:
                column.addSpacing(4)
                column.addWidget(_Line(look))
                column.addSpacing(4)
            row = MenuRow(look, item, self.keyPressEvent)
            row.clicked.connect(lambda _=False, i=item.id: self.choose(i))
            column.addWidget(row)
            self.rows.append(row)
            if item.fix or item.actions:
                column.addWidget(self._way_out(item))
        scroll = QScrollArea(self)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setWidgetResizable(True)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        scroll.viewport().setAutoFillBackground(False)
        scroll.setWidget(self._content)
        # Only now: `setWidget` switches it on, and the corners would be square.
        self._content.setAutoFillBackground(False)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(1, 1, 1, 1)
        outer.addWidget(scroll)
        self._scroll = scroll

    def row(self, item: str) -> MenuRow:
        """The entry of that id. Raises `KeyError`."""
        for row in self.rows:
            if row.item.id == item:
                return row
        raise KeyError(item)

    def choose(self, item: str) -> None:
        layer = self.parentWidget()
        if isinstance(layer, Overlay):
            layer.close_layer()
        self._chosen(item)

    def natural_size(self) -> QSize:
        hint = self._content.sizeHint()
        layout = self._content.layout()
        assert layout is not None
        height = layout.heightForWidth(hint.width()) if layout.hasHeightForWidth() else hint.height()
        return QSize(hint.width() + 2, height + 2)

    def focus_first(self) -> None:
        usable = [row for row in self.rows if row.isEnabled()]
        row = next((row for row in usable if row.item.checked), usable[0] if usable else None)
        if row is not None:
            row.setFocus(Qt.FocusReason.PopupFocusReason)
        else:
            self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
            self.setFocus()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        usable = [row for row in self.rows if row.isEnabled()]
        at = next((i for i, row in enumerate(usable) if row.hasFocus()), -1)
        key, to = event.key(), None
        if not usable:
            event.ignore()
            return
        if key == Qt.Key.Key_Down:
            to = (at + 1) % len(usable)
        elif key == Qt.Key.Key_Up:
            to = (at - 1) % len(usable)
        elif key == Qt.Key.Key_Home:
            to = 0
        elif key == Qt.Key.Key_End:
            to = len(usable) - 1
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and at >= 0:
            usable[at].click()
            return
        elif event.text() and event.text().isprintable():
            order = usable[at + 1 :] + usable[: at + 1]
            hit = next((r for r in order if r.item.title.lower().startswith(event.text().lower())), None)
            to = usable.index(hit) if hit is not None else None
        if to is None:
            event.ignore()
            return
        usable[to].setFocus(Qt.FocusReason.OtherFocusReason)
        self._scroll.ensureWidgetVisible(usable[to])

    def paintEvent(self, event: QPaintEvent) -> None:
        draw_panel(QPainter(self), self.look, QRectF(self.rect()))

    def _way_out(self, item: MenuItem) -> QWidget:
        block = QWidget()
        column = QVBoxLayout(block)
        column.setContentsMargins(_LEFT, 2, 12, 8)
        column.setSpacing(4)
        if item.fix:
            column.addWidget(Label(self.look, "How to fix", 12, 600))
            column.addWidget(Paragraph(self.look, item.fix))
        if item.actions:
            line = QHBoxLayout()
            line.setSpacing(8)
            for action in item.actions:
                button = Button(self.look, action.title, action.icon, "pill")
                button.clicked.connect(lambda _=False, a=action.id: self.choose(a))
                line.addWidget(button)
            line.addStretch(1)
            column.addLayout(line)
        return block


class _Line(QWidget, Part):
    def __init__(self, look: Look) -> None:
        super().__init__()
        self.look = look
        self.setFixedHeight(1)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setPen(QPen(self.look.colour("strong_line"), 1))
        painter.drawLine(8, 0, self.width() - 8, 0)


def open_menu(
    anchor: QWidget,
    look: Look,
    items: Sequence[MenuItem],
    chosen: Callable[[str], None],
    at: QPoint | None = None,
    min_width: int = 0,
) -> Menu:
    """Open a menu below `anchor`, or at a point of it; above where there is no room below."""
    window = anchor.window()
    layer = Overlay(window, look)
    menu = Menu(look, items, chosen)
    layer.set_content(menu)
    room = window.size()
    size = menu.natural_size().expandedTo(QSize(min_width, 0))
    width, height = min(size.width(), room.width() - 16), min(size.height(), room.height() - 16)
    corner = anchor.mapTo(window, at if at is not None else QPoint(0, anchor.height() + 4))
    x = max(8, min(corner.x(), room.width() - width - 8))
    y = corner.y()
    if y + height > room.height() - 8:
        top = anchor.mapTo(window, QPoint(0, 0)).y() if at is None else corner.y()
        y = max(8, top - height - 4) if top - height - 4 >= 8 else max(8, room.height() - height - 8)
    menu.setGeometry(x, y, width, height)
    layer.show()
    layer.raise_()
    menu.show()
    menu.focus_first()
    return menu
