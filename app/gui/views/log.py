"""A log as it grows: plain text in a fixed pitch, at its end unless a person scrolled up."""

from __future__ import annotations

import re

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QGuiApplication, QPalette, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QFrame, QPlainTextEdit

from app.core.build import LOG_LINES_KEPT
from app.core.messages import BuildLog
from app.core.text import number
from app.gui.parts.look import Look, Part
from app.gui.views.frame import slim_bars

LONGEST_LINE = 2000
_AT_ONCE = 300
_ROLES = {"info": "text_secondary", "warning": "warning", "error": "error"}
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")


def line_of(entry: BuildLog) -> str:
    """A line as it is shown: time, then the text without control characters, cut where it is endless."""
    text = _CONTROL.sub(" ", entry.text.replace("\t", "    ").replace("\n", " ⏎ ")).rstrip()
    if len(text) > LONGEST_LINE:
        text = f"{text[:LONGEST_LINE]}… ({number(len(text) - LONGEST_LINE)} characters more)"
    return f"[{entry.at_s:.2f} s]  {text}"


class LogView(QPlainTextEdit, Part):
    """At most `LOG_LINES_KEPT` lines. Long logs are taken in pieces, so that the window never waits."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._log: list[BuildLog] = []
        self._last: BuildLog | None = None
        self._rest = QTimer(self, singleShot=True, interval=30)
        self._rest.timeout.connect(self._append)
        self.setReadOnly(True)
        self.setUndoRedoEnabled(False)
        self.setMaximumBlockCount(LOG_LINES_KEPT)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.setAccessibleName("Build log")
        self.setPlaceholderText("Nothing has been said yet")
        self.document().setDocumentMargin(10)
        self.set_look(look)

    def restyle(self) -> None:
        slim_bars(self, self.look)
        self.setFont(self.look.font(12, mono=True))
        palette = self.palette()
        palette.setColor(QPalette.ColorRole.Base, self.look.colour("sunken"))
        palette.setColor(QPalette.ColorRole.Text, self.look.colour("text_secondary"))
        self.setPalette(palette)
        log = self._log
        if log:
            self._start_anew()
            self._log = log
            self._append()

    def show_log(self, log: list[BuildLog]) -> None:
        """Take what is new in `log`, which grows at its end, loses lines at its start, or is another."""
        self._log = log
        self._append()

    def text_of_log(self) -> str:
        """The whole log as text, times included."""
        return "\n".join(line_of(entry) for entry in self._log)

    def copy_log(self) -> None:
        QGuiApplication.clipboard().setText(self.text_of_log())

    def _append(self) -> None:
        fresh = self._fresh()
        if fresh is None:
            self._start_anew()
            fresh = self._log
        if not fresh:
            return
        bar = self.verticalScrollBar()
        at_end = bar.value() >= bar.maximum() - 4
        cursor = QTextCursor(self.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        cursor.beginEditBlock()
        for entry in fresh[:_AT_ONCE]:
            if self._last is not None:
                cursor.insertBlock()
            form = QTextCharFormat()
            form.setForeground(self.look.colour(_ROLES[entry.level]))
            cursor.insertText(line_of(entry), form)
            self._last = entry
        cursor.endEditBlock()
        if at_end:
            bar.setValue(bar.maximum())
        if len(fresh) > _AT_ONCE:
            self._rest.start()

    def _fresh(self) -> list[BuildLog] | None:
        """The entries after the last one shown; None where that one is gone."""
        if self._last is None:
            return self._log
        for index in range(len(self._log) - 1, -1, -1):
            if self._log[index] is self._last:
                return self._log[index + 1 :]
        return None

    def _start_anew(self) -> None:
        self.clear()
        self._last = None
