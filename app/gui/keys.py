"""The keyboard map: declared once, for the window and for the sheet that lists it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QObject, QRectF, Qt
from PySide6.QtGui import QKeySequence, QPainter, QPaintEvent, QShortcut
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSpinBox,
    QApplication,
    QGridLayout,
    QLineEdit,
    QPlainTextEdit,
    QTextEdit,
    QVBoxLayout,
    QWidget,
)

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
    Key("sweep", "Ctrl+Shift+S", "sweep over two or three axes", "Ctrl+Shift+S"),
    Key("build", "Ctrl+B", "build the extension", "Ctrl+B"),
    Key("export", "Ctrl+E", "export", "Ctrl+E"),
    Key("open", "Ctrl+O", "open a recording or a profile", "Ctrl+O"),
    Key("compare", "Ctrl+D", "compare with another recording", "Ctrl+D"),
    Key("save", "Ctrl+S", "save the recording", "Ctrl+S"),
    Key("tab", "Ctrl+1 … Ctrl+6", "tabs"),
    Key("panel", "Ctrl+L", "left panel", "Ctrl+L"),
    Key("toggle", "1 … 9", "switch an implementation on or off"),
    Key("baseline", "Shift+1 … 9", "make an implementation the baseline"),
    Key("next-baseline", "B", "next baseline"),
    Key("cell", "Arrows, Enter", "in a map: move the cell, open it in Live"),
    Key("keys", "F1 or ?", "all keys", "F1"),
    Key("close", "Esc", "close a menu, leave a field"),
)


class Keys(QObject):
    """The window's shortcuts. Single keys are off while a field, a button they would press, or a layer has
    the focus."""

    def __init__(self, window: QWidget, run: Callable[[str, int], None], tabs: int) -> None:
        # A child of the window: the application must not call it once the window is gone.
        super().__init__(window)
        self._letters: list[QShortcut] = []
        self._space: list[QShortcut] = []
        for key in KEYS:
            if key.sequence:
                self._add(window, key.sequence, key.command, 0, run)
        for index in range(tabs):
            self._add(window, f"Ctrl+{index + 1}", "tab", index, run)
        for digit in range(1, 10):
            self._letters.append(self._add(window, str(digit), "toggle", digit - 1, run))
            self._letters.append(self._add(window, f"Shift+{digit}", "baseline", digit - 1, run))
        for letter, command in (("P", "profile"), ("B", "next-baseline"), ("?", "keys")):
            self._letters.append(self._add(window, letter, command, 0, run))
        self._space.append(self._add(window, "Space", "run", 0, run))
        application = QApplication.instance()
        assert isinstance(application, QApplication)
        application.focusChanged.connect(self.focus_changed)

    def focus_changed(self, old: QWidget | None, new: QWidget | None) -> None:
        letters = not _takes_letters(new)
        for shortcut in self._letters:
            shortcut.setEnabled(letters)
        for shortcut in self._space:
            shortcut.setEnabled(letters and not isinstance(new, QAbstractButton))

    def _add(
        self, window: QWidget, sequence: str, command: str, index: int, run: Callable[[str, int], None]
    ) -> QShortcut:
        shortcut = QShortcut(QKeySequence(sequence), window)
        # A held key repeats what steps, such as the baseline, but does not flicker what toggles.
        shortcut.setAutoRepeat(command == "next-baseline")
        shortcut.activated.connect(lambda: run(command, index))
        return shortcut


def _takes_letters(widget: QWidget | None) -> bool:
    if isinstance(widget, (QLineEdit, QAbstractSpinBox, QPlainTextEdit, QTextEdit)):
        return True
    while widget is not None:
        if isinstance(widget, Overlay):
            return True
        widget = widget.parentWidget()
    return False


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
        column.addWidget(
            Label(look, "Single letters are off while a field has the focus.", 12, 400, "text_tertiary")
        )

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
