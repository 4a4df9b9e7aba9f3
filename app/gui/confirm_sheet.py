"""Before a user's own code first runs: which file, what it declares, what running it means, and its text."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPalette
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QPlainTextEdit, QVBoxLayout, QWidget

from app.core.own import Examined
from app.gui.parts.buttons import Button
from app.gui.parts.look import Look, Part
from app.gui.parts.overlay import Overlay, draw_panel
from app.gui.parts.text import Label, Paragraph
from app.gui.views.frame import slim_bars

WIDTH = 640
MEANING = (
    "It is code: it runs on this machine with your rights, and may read and change what you may. AttnScope runs "
    "it in a process of its own, stopped while the others are measured, and ends that process where it hangs, "
    "crashes or takes too much memory. Confirmed once, it is not asked for again until the file changes."
)


class ConfirmSheet(QWidget, Part):
    """`answered` is called once, with True where the code may run."""

    def __init__(self, look: Look, examined: Examined, answered: Callable[[bool], None]) -> None:
        super().__init__()
        self.look = look
        self.examined = examined
        file = examined.file
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 20, 24, 20)
        column.setSpacing(12)
        column.addWidget(Label(look, f"Run the code of {file.name}?", 14, 600, may_elide=True))
        grid = QGridLayout()
        grid.setHorizontalSpacing(16)
        grid.setVerticalSpacing(6)
        grid.setColumnStretch(1, 1)
        for row, (name, value, mono) in enumerate(self._facts()):
            grid.addWidget(Label(look, name, 12, 400, "text_tertiary"), row, 0)
            grid.addWidget(Label(look, value, 12, 400, "text", mono=mono, may_elide=True), row, 1)
        column.addLayout(grid)
        if examined.problem:
            column.addWidget(
                Paragraph(look, f"As it is, it will fail: {examined.problem}.", 12, 600, "error")
            )
        column.addWidget(Paragraph(look, MEANING))
        self.source = SourceText(look, examined.source)
        column.addWidget(self.source, 1)
        answers = QHBoxLayout()
        answers.setSpacing(8)
        answers.addStretch(1)
        self.cancel = Button(look, "Do not run it")
        self.run = Button(look, "Run it", kind="primary")
        self.cancel.clicked.connect(lambda: answered(False))
        self.run.clicked.connect(lambda: answered(True))
        answers.addWidget(self.cancel)
        answers.addWidget(self.run)
        column.addLayout(answers)

    def _facts(self) -> list[tuple[str, str, bool]]:
        file = self.examined.file
        facts = [
            ("File", visible(file.path), True),
            ("Size", f"{file.size_bytes:,} bytes", False),
            ("SHA-256", file.sha256, True),
        ]
        if self.examined.function:
            what = f"{visible(file.title)}: {self.examined.function} in line {self.examined.line}"
            facts.append(("Declares", what, False))
        return facts

    def paintEvent(self, event: QPaintEvent) -> None:
        draw_panel(QPainter(self), self.look, QRectF(self.rect()), "card")


class SourceText(QPlainTextEdit, Part):
    """The file as it will run, read-only."""

    def __init__(self, look: Look, source: bytes) -> None:
        super().__init__()
        self.setReadOnly(True)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setTabChangesFocus(True)
        self.setAccessibleName("The file's text")
        self.document().setDocumentMargin(10)
        self.setMinimumHeight(120)
        self.setPlainText(visible(source.decode("utf-8", "replace"), "\n\t"))
        self.set_look(look)

    def restyle(self) -> None:
        slim_bars(self, self.look)
        self.setFont(self.look.font(12, mono=True))
        palette = self.palette()
        palette.setColor(QPalette.ColorRole.Base, self.look.colour("sunken"))
        palette.setColor(QPalette.ColorRole.Text, self.look.colour("text_secondary"))
        self.setPalette(palette)


def visible(text: str, kept: str = "") -> str:
    """`text` with what is not seen, or makes other text stand elsewhere than it is, as an escape."""
    return "".join(
        c if c in kept or unicodedata.category(c) not in ("Cc", "Cf", "Zl", "Zp") else _escape(c)
        for c in text.replace("\r\n", "\n")
    )


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def ask(window: QWidget, look: Look, examined: Examined, answered: Callable[[bool], None]) -> Overlay:
    """Open the sheet over the window. Closed in any other way than by `Run it`, the answer is no."""
    layer = Overlay(window, look, dims=True)
    told: list[bool] = []

    def answer(yes: bool) -> None:
        if not told:
            told.append(yes)
            layer.close_layer()
            answered(yes)

    sheet = ConfirmSheet(look, examined, answer)
    layer.closed.connect(lambda: answer(False))
    layer.set_content(sheet)
    width = min(WIDTH, window.width() - 32)
    height = min(560, window.height() - 32)
    sheet.setGeometry((window.width() - width) // 2, (window.height() - height) // 2, width, height)
    layer.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    layer.show()
    layer.raise_()
    sheet.show()
    # Not on `Run it`: a key pressed without looking must not confirm.
    sheet.cancel.setFocus(Qt.FocusReason.PopupFocusReason)
    return layer
