"""The keyboard map: declared once, for the window and for the sheet that lists it."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QKeyEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QGridLayout, QVBoxLayout, QWidget

from app.gui.parts.look import Look, Part
from app.gui.parts.overlay import Overlay, draw_panel
from app.gui.parts.text import Label


@dataclass(frozen=True)
class Key:
    """`sequence` as QKeySequence reads it, empty where the window looks at single letters itself."""

    command: str
    shown: str
    about: str
    sequence: str = ""


KEYS: tuple[Key, ...] = (
    Key("run", "Space", "run or pause"),
    Key("restart", "Ctrl+R", "measure this workload anew", "Ctrl+R"),
    Key("profile", "P", "count calls again, now"),
    Key("build", "Ctrl+B", "build the extension", "Ctrl+B"),
    Key("export", "Ctrl+E", "export", "Ctrl+E"),
    Key("open", "Ctrl+O", "open a recording or a profile", "Ctrl+O"),
    Key("save", "Ctrl+S", "save the recording", "Ctrl+S"),
    Key("tab", "Ctrl+1 … Ctrl+3", "tabs"),
    Key("panel", "Ctrl+L", "left panel", "Ctrl+L"),
    Key("toggle", "1 … 9", "switch an implementation on or off"),
    Key("baseline", "Shift+1 … 9", "make an implementation the baseline"),
    Key("next-baseline", "B", "next baseline"),
    Key("keys", "F1 or ?", "all keys", "F1"),
    Key("close", "Esc", "close a menu, leave a field"),
)

_SHIFTED = {"!": 1, "@": 2, "#": 3, "$": 4, "%": 5, "^": 6, "&": 7, "*": 8, "(": 9}
_MAC = {18: 1, 19: 2, 20: 3, 21: 4, 23: 5, 22: 6, 26: 7, 28: 8, 25: 9}


def digit_of(event: QKeyEvent, platform: str = sys.platform) -> int | None:
    """Which of the keys 1 to 9 was pressed, whatever Shift makes of it on this keyboard; None for others."""
    key = event.key()
    if Qt.Key.Key_1 <= key <= Qt.Key.Key_9:
        return int(key) - int(Qt.Key.Key_0)
    code = event.nativeScanCode()
    # The row of digits is one run of codes: from 10 on X11 and Wayland, from 2 on Windows.
    first = 10 if platform.startswith("linux") else 2
    if platform == "darwin":
        return _MAC.get(event.nativeVirtualKey()) if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else None
    if code:
        return code - first + 1 if first <= code <= first + 8 else None
    return _SHIFTED.get(event.text())


class KeySheet(QWidget, Part):
    """All keys, over the window. Esc or a click beside it closes it."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self.look = look
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 20, 24, 24)
        column.setSpacing(12)
        column.addWidget(Label(look, "Keys", 14, 600))
        grid = QGridLayout()
        grid.setHorizontalSpacing(24)
        grid.setVerticalSpacing(8)
        for row, key in enumerate(KEYS):
            grid.addWidget(Label(look, key.shown, 12, 600), row, 0)
            grid.addWidget(Label(look, key.about, 12, 400, "text_secondary"), row, 1)
        column.addLayout(grid)
        column.addWidget(Label(look, "Single letters are off while a field has the focus.", 12, 400, "text_tertiary"))

    def paintEvent(self, event: QPaintEvent) -> None:
        draw_panel(QPainter(self), self.look, QRectF(self.rect()), "card")


def show_keys(window: QWidget, look: Look) -> Overlay:
    """Open the sheet in the middle of the window."""
    layer = Overlay(window, look, dims=True)
    sheet = KeySheet(look)
    layer.set_content(sheet)
    size = sheet.sizeHint()
    sheet.setGeometry(
        (window.width() - size.width()) // 2,
        max(8, (window.height() - size.height()) // 2),
        size.width(),
        min(size.height(), window.height() - 16),
    )
    layer.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    layer.show()
    layer.raise_()
    sheet.show()
    layer.setFocus()
    return layer
