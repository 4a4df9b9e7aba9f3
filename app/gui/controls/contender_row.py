"""One implementation in the list: check box, mark, title, and what is to be said of it."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QEnterEvent, QKeyEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QApplication, QCheckBox, QSizePolicy, QWidget

from app.core.catalog import contender
from app.core.own import is_own
from app.gui.controls.contender_state import RowState
from app.gui.marks import draw_mark
from app.gui.parts.buttons import Button, TextLink
from app.gui.parts.chips import chip_width, draw_chip
from app.gui.parts.look import Look, Part
from app.gui.parts.menu import Menu, MenuItem, open_menu
from app.gui.parts.text import RIGHT, draw_text, width_of
from app.gui.parts.toggles import draw_check
from app.gui.theme import CHIP_HEIGHT, CONTROL_RADIUS

_TITLE_LEFT = 48
_COPY = "copy"


class ContenderRow(QCheckBox, Part):
    """`toggled_by_user` tells a click or key; a state shown from outside tells nothing."""

    toggled_by_user = Signal(str, bool)
    baseline_requested = Signal(str)
    solo_requested = Signal(str)
    challenger_requested = Signal(str)
    reload_requested = Signal(str)
    remove_requested = Signal(str)
    ring_radius = float(CONTROL_RADIUS)

    def __init__(self, look: Look, implementation: str, number: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        entry = contender(implementation)
        self.implementation = implementation
        self.state = RowState(implementation, entry.title, False, False)
        self.setAccessibleName(entry.title)
        keys = f"Key {number}; Shift+{number} makes it the baseline"
        if is_own(implementation):
            keys = f"Key {number}"
        self.setToolTip(f"{entry.title}: {entry.about}" + (f"\n{keys}" if number < 10 else ""))
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.more = Button(look, icon="more", kind="quiet", name=f"More for {entry.title}", parent=self)
        self.more.clicked.connect(lambda: self.open_menu())
        self.more.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.more.hide()
        self.why = TextLink(look, "why", 12, 600, parent=self)
        self.why.clicked.connect(self.explain)
        self.why.hide()
        self.clicked.connect(lambda on: self.toggled_by_user.emit(self.implementation, on))
        self.set_look(look)

    def show_state(self, state: RowState) -> None:
        if state == self.state:
            return
        self.state = state
        blocked = self.blockSignals(True)
        self.setChecked(state.checked)
        self.blockSignals(blocked)
        self.why.setText("show" if state.level == "failed" else "why")
        self.why.setVisible(bool(state.reason))
        words = [state.note, state.reason, "baseline" if state.is_baseline else ""]
        self.setAccessibleDescription(", ".join(word for word in words if word))
        self.updateGeometry()
        self._place()
        self.update()

    def explain(self) -> Menu:
        """The whole reason and the way out."""
        state = self.state
        title = "Failed" if state.level == "failed" else "Cannot run here"
        head = MenuItem("reason", title, heading=True)
        lines = _wrapped(state.why)
        reason = [
            MenuItem(f"line{i}", line, enabled=False, fix=state.remedy if i == len(lines) - 1 else "")
            for i, line in enumerate(lines)
        ]
        copy = MenuItem(_COPY, "Copy the reason", icon="copy", line_before=True)
        return open_menu(self.why, self.look, [head, *reason, copy], self._chosen)

    def open_menu(self, at: QPoint | None = None) -> Menu:
        state = self.state
        name = state.title
        own = is_own(self.implementation)
        items = [
            MenuItem(
                "baseline",
                "Set as baseline",
                "it runs in a process of its own, and the baseline among the others" if own else "",
                enabled=not state.is_baseline and state.level != "unavailable" and not own,
            ),
            MenuItem(
                "challenger",
                "Show in the verdict",
                enabled=state.checked and not state.is_baseline and state.level != "unavailable",
            ),
            MenuItem("solo", f"Only {name} and the baseline", enabled=not state.is_baseline),
        ]
        if own:
            items += [
                MenuItem("reload", "Reload the file", icon="restart", line_before=True),
                MenuItem("remove", "Remove from the list", icon="minus"),
            ]
        if state.why:
            items.append(MenuItem(_COPY, "Copy the reason", icon="copy", line_before=True))
        return open_menu(self.more if at is None else self, self.look, items, self._chosen, at)

    def _chosen(self, choice: str) -> None:
        if choice == "baseline":
            self.baseline_requested.emit(self.implementation)
        elif choice == "challenger":
            self.challenger_requested.emit(self.implementation)
        elif choice == "reload":
            self.reload_requested.emit(self.implementation)
        elif choice == "remove":
            self.remove_requested.emit(self.implementation)
        elif choice == "solo":
            self.solo_requested.emit(self.implementation)
        elif choice == _COPY:
            text = " ".join(part for part in (self.state.why, self.state.remedy) if part)
            QApplication.clipboard().setText(f"{self.state.title}: {text}")

    def restyle(self) -> None:
        self._place()

    def sizeHint(self) -> QSize:
        height = 32 if not self.look.small else 28
        return QSize(200, height + (16 if self.state.reason else 0))

    def minimumSizeHint(self) -> QSize:
        return QSize(120, self.sizeHint().height())

    def hitButton(self, position: QPoint) -> bool:
        return True

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        self.open_menu(event.pos() if event.reason() == QContextMenuEvent.Reason.Mouse else None)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Menu:
            self.open_menu()
        else:
            super().keyPressEvent(event)

    def enterEvent(self, event: QEnterEvent) -> None:
        self.more.show()
        self.update()

    def leaveEvent(self, event: object) -> None:
        self.more.hide()
        self.update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._place()

    def _first_line(self) -> QRectF:
        height = 32 if not self.look.small else 28
        return QRectF(0, 0, self.width(), height)

    def _place(self) -> None:
        line = self._first_line()
        self.more.setGeometry(self.width() - 24, int(line.center().y()) - 12, 24, 24)
        if self.state.reason:
            # The 4 px that keep the two apart are beside the text, not taken from it.
            left = _TITLE_LEFT + width_of(self.state.reason + " · ", self.look.font(12)) + 4
            size = self.why.sizeHint()
            # A long reason gives way: without the way to the whole of it, it would be worth nothing.
            left = min(left, self.width() - size.width())
            self.why.setGeometry(int(left), int(line.bottom()) - 6, size.width(), size.height())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        look, state = self.look, self.state
        if self.underMouse():
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(look.colour("row_hover"))
            painter.drawRoundedRect(QRectF(self.rect()), CONTROL_RADIUS, CONTROL_RADIUS)
        line = self._first_line()
        greyed = state.level == "unavailable"
        draw_check(painter, look, QRectF(0, 0, 16, line.height()), state.checked and not greyed, not greyed)
        entry = contender(self.implementation)
        off = greyed or not state.checked
        mark = look.colour("disabled") if off else look.series(self.implementation)
        draw_mark(painter, entry.shape, QPointF(33, line.center().y()), 10, mark, state.hollow)
        right = self._draw_right(painter, line)
        painter.setFont(look.font(13, 500))
        painter.setPen(look.colour("text" if state.checked and not greyed else "text_tertiary"))
        title = QRectF(_TITLE_LEFT, line.top(), right - _TITLE_LEFT, line.height())
        draw_text(painter, title, self._title_for(title.width()), may_elide=self.underMouse())
        if state.reason:
            painter.setFont(look.font(12))
            painter.setPen(look.colour("error" if state.level == "failed" else "text_tertiary"))
            below = QRectF(_TITLE_LEFT, line.bottom() - 6, self.why.x() - 4 - _TITLE_LEFT, 18)
            draw_text(painter, below, f"{state.reason} ·", may_elide=True)

    def _title_for(self, room: float) -> str:
        """The longest of the names that fits: `Native (step by step)`, `Native`."""
        entry = contender(self.implementation)
        names = (entry.title, entry.title.partition(" (step")[0], entry.short)
        font = self.look.font(13, 500)
        return next((name for name in names if width_of(name, font) <= room + 0.5), names[-1])

    def _draw_right(self, painter: QPainter, line: QRectF) -> float:
        """Draws what stands at the right and returns where the title must end."""
        look, state = self.look, self.state
        if self.underMouse():
            return self.width() - 28.0
        right = float(self.width())
        if state.level == "wrong":
            width = chip_width(look, "wrong", "error")
            box = QRectF(right - width, line.center().y() - CHIP_HEIGHT / 2, width, CHIP_HEIGHT)
            draw_chip(painter, look, box, "wrong", "error", "error")
            return right - width - 6
        if state.is_baseline:
            right -= self._badge(painter, line) + 6
        if state.note:
            painter.setFont(look.font(12))
            painter.setPen(look.colour("text_tertiary"))
            draw_text(painter, QRectF(0, 0, right, line.height()), state.note, RIGHT)
            right -= width_of(state.note, look.font(12)) + 8
        return right

    def _badge(self, painter: QPainter, line: QRectF) -> float:
        look = self.look
        title_end = _TITLE_LEFT + width_of(self.state.title, look.font(13, 500))
        font = look.font(10, 700)
        room = self.width() - title_end - 6
        # Wide fonts leave no room for the whole word beside the longest title.
        word = next((w for w in ("BASELINE", "BASE") if width_of(w, font) + 14 <= room), "BASE")
        if look.small:
            word = "BASE"
        width = width_of(word, font) + 14
        box = QRectF(self.width() - width, line.center().y() - 9, width, 18)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(look.colour("raised"))
        painter.drawRoundedRect(box, 9, 9)
        painter.setFont(font)
        painter.setPen(look.colour("text_secondary"))
        draw_text(painter, box.adjusted(7, 0, -5, 0), word)
        return width


def _wrapped(text: str, width: int = 62) -> list[str]:
    import textwrap

    return textwrap.wrap(" ".join(text.split()), width)[:8]
