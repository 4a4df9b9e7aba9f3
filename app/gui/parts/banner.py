"""Notices inside the window: a line that says what happened and can be put away; nothing waits for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from app.gui.icons import draw_icon
from app.gui.parts.buttons import Button
from app.gui.parts.look import Look, Part
from app.gui.parts.text import Paragraph
from app.gui.theme import CONTROL_RADIUS

MAX_SHOWN = 3
_ICONS = {"info": "info", "warning": "warning", "error": "error"}

Action = tuple[str, Callable[[], None]]


class Banner(QWidget, Part):
    """One notice. An action closes it, and so does the cross."""

    def __init__(self, look: Look, level: str, text: str, actions: Sequence[Action] = ()) -> None:
        super().__init__()
        self.look, self.level = look, level if level in _ICONS else "info"
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        row = QHBoxLayout(self)
        row.setContentsMargins(40, 6, 8, 6)
        row.setSpacing(8)
        self._text = Paragraph(look, text, 12, 500, "text")
        row.addWidget(self._text, 1)
        self.buttons: list[Button] = []
        for title, act in actions:
            button = Button(look, title, kind="pill")
            button.clicked.connect(lambda _=False, a=act: self._act(a))
            row.addWidget(button)
            self.buttons.append(button)
        self.dismiss = Button(look, icon="cross", kind="quiet", name="Dismiss")
        self.dismiss.clicked.connect(self.close_banner)
        row.addWidget(self.dismiss, 0, Qt.AlignmentFlag.AlignTop)

    @property
    def text(self) -> str:
        return self._text.text()

    def close_banner(self) -> None:
        self.hide()
        self.setParent(None)
        self.deleteLater()

    def _act(self, act: Callable[[], None]) -> None:
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
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(8)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Maximum)
        self.hide()

    def banners(self) -> list[Banner]:
        items = [self._column.itemAt(i) for i in range(self._column.count())]
        found = [item.widget() for item in items if item is not None]
        return [banner for banner in found if isinstance(banner, Banner)]

    def show_notice(self, look: Look, level: str, text: str, actions: Sequence[Action] = ()) -> Banner:
        for banner in self.banners():
            if banner.text == text:
                banner.close_banner()
        # Those with actions wait for an answer and are not pushed out by news.
        idle = [banner for banner in self.banners() if not banner.buttons]
        while idle and len(self.banners()) >= MAX_SHOWN:
            idle.pop(0).close_banner()
        banner = Banner(look, level, text, actions)
        banner.destroyed.connect(self._settle)
        self._column.addWidget(banner)
        self.show()
        return banner

    def _settle(self) -> None:
        try:
            self.setVisible(bool(self.banners()))
        except RuntimeError:
            # The window goes, and the stack before its last banner.
            return
