"""Notices inside the window: a line that says what happened and can be put away; nothing waits for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from app.gui.icons import draw_icon
from app.gui.parts.buttons import Button
from app.gui.parts.look import Look, Part, dress
from app.gui.parts.text import Paragraph
from app.gui.theme import CONTROL_RADIUS

MAX_SHOWN = 3
_ICONS = {"info": "info", "warning": "warning", "error": "error"}

Action = tuple[str, Callable[[], None]]


class Banner(QWidget, Part):
    """One notice. An action closes it, and so does the cross; its stack uses it again for another.

    It is never deleted before its stack: PySide 6.11 crashes now and then when it deletes such a widget.
    """

    closed = Signal()

    def __init__(self, look: Look, parent: QWidget) -> None:
        super().__init__(parent)
        self.look, self.level = look, "info"
        self.is_open = False
        self._actions: list[Callable[[], None]] = []
        self._made: list[Button] = []
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(40, 6, 8, 6)
        self._row.setSpacing(8)
        self._text = Paragraph(look, "", 12, 500, "text", self)
        self._row.addWidget(self._text, 1)
        self.dismiss = Button(look, icon="cross", kind="quiet", name="Dismiss", parent=self)
        self.dismiss.clicked.connect(self.close_banner)
        self._row.addWidget(self.dismiss, 0, Qt.AlignmentFlag.AlignTop)

    @property
    def text(self) -> str:
        return self._text.text()

    @property
    def buttons(self) -> list[Button]:
        """Those of the actions there are now."""
        return self._made[: len(self._actions)]

    def open_with(self, look: Look, level: str, text: str, actions: Sequence[Action]) -> None:
        """Say something, and offer `actions`."""
        self.is_open, self.level = True, level if level in _ICONS else "info"
        self._text.setText(text)
        self._actions = [act for _, act in actions]
        while len(self._made) < len(actions):
            button = Button(look, kind="pill", parent=self)
            button.clicked.connect(partial(self._act, len(self._made)))
            self._row.insertWidget(self._row.count() - 1, button)
            self._made.append(button)
        for button, (title, _) in zip(self._made, actions, strict=False):
            button.setText(title)
        for index, button in enumerate(self._made):
            button.setVisible(index < len(actions))
        self.show()
        self.update()

    def close_banner(self) -> None:
        if self.is_open:
            self.is_open = False
            self.hide()
            self.closed.emit()

    def _act(self, index: int, _: bool = False) -> None:
        act = self._actions[index]
        self.close_banner()
        act()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        look = self.look
        state = self.level if self.level != "info" else "faster"
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(look.fill(state))
        painter.drawRoundedRect(QRectF(self.rect()), CONTROL_RADIUS, CONTROL_RADIUS)
        box = QRectF(12, (self.height() - 16) / 2, 16, 16)
        draw_icon(painter, _ICONS[self.level], box, look.colour(state))


class BannerStack(QWidget):
    """The newest notices, at most three; the same text is not shown twice."""

    def __init__(self) -> None:
        super().__init__()
        self._free: list[Banner] = []
        self._shown: list[Banner] = []
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(8)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Maximum)
        self.hide()

    def banners(self) -> list[Banner]:
        """Those that are open, the oldest first."""
        return list(self._shown)

    def show_notice(self, look: Look, level: str, text: str, actions: Sequence[Action] = ()) -> Banner:
        for banner in self.banners():
            if banner.text == text:
                banner.close_banner()
        # Those with actions wait for an answer and are not pushed out by news.
        idle = [banner for banner in self.banners() if not banner.buttons]
        while idle and len(self._shown) >= MAX_SHOWN:
            idle.pop(0).close_banner()
        if self._free:
            banner = self._free.pop()
            dress(banner, look)
        else:
            banner = Banner(look, self)
            banner.closed.connect(partial(self._put_away, banner))
        self._shown.append(banner)
        self._column.addWidget(banner)
        banner.open_with(look, level, text, actions)
        self.show()
        return banner

    def _put_away(self, banner: Banner) -> None:
        self._shown.remove(banner)
        self._column.removeWidget(banner)
        self._free.append(banner)
        self.setVisible(bool(self._shown))
