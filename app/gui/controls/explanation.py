"""Why a combination cannot run, what runs meanwhile, and the nearest values that can."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRectF, Signal
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.core.fields import fields_of
from app.core.text import number
from app.core.workload import Problem, Workload
from app.gui.icons import draw_icon
from app.gui.parts.buttons import Button
from app.gui.parts.look import Look, Part
from app.gui.parts.text import Paragraph


def goes_on_with(draft: Workload, valid: Workload) -> str:
    """The sentence that says what is measured while `draft` cannot be."""
    changed = []
    for name, field in fields_of(Workload).items():
        value = getattr(valid, name)
        if field.kind == "int" and getattr(draft, name) != value:
            if name == "num_heads":
                changed.append("1 head" if value == 1 else f"{number(value)} heads")
            else:
                changed.append(f"{field.title.lower()} {number(value)}")
    return f"The run goes on with {' and '.join(changed)}." if changed else "The run goes on as before."


class Explanation(QWidget, Part):
    """Shown below the field that is at fault. `use` tells the field and the value to set it to."""

    use = Signal(str, int)

    def __init__(self, look: Look) -> None:
        super().__init__()
        self.look = look
        self._problem: Problem | None = None
        column = QVBoxLayout(self)
        column.setContentsMargins(22, 0, 0, 4)
        column.setSpacing(2)
        self.sentence = Paragraph(look, "", 12, 600, "error")
        self.meanwhile = Paragraph(look, "", 12)
        column.addWidget(self.sentence)
        column.addWidget(self.meanwhile)
        self._buttons = QHBoxLayout()
        self._buttons.setContentsMargins(0, 4, 0, 0)
        self._buttons.setSpacing(8)
        column.addLayout(self._buttons)
        self.buttons: list[Button] = []
        self.hide()

    def show_problem(self, problem: Problem | None, draft: Workload, valid: Workload) -> None:
        if problem is None:
            self._problem = None
            self.hide()
            return
        self.sentence.setText(problem.sentence)
        self.meanwhile.setText(goes_on_with(draft, valid))
        if self._problem is None or self._problem.nearest != problem.nearest:
            self._offer(problem.field, problem.nearest)
        self._problem = problem
        self.show()

    def _offer(self, field: str, values: Sequence[int]) -> None:
        for button in self.buttons:
            self._buttons.removeWidget(button)
            button.hide()
            button.deleteLater()
        while self._buttons.count():
            self._buttons.takeAt(0)
        self.buttons = []
        for value in values:
            button = Button(self.look, f"Use {number(value)}", kind="pill")
            button.clicked.connect(lambda _=False, v=value: self.use.emit(field, v))
            self._buttons.addWidget(button)
            self.buttons.append(button)
        self._buttons.addStretch(1)

    def paintEvent(self, event: QPaintEvent) -> None:
        draw_icon(QPainter(self), "error", QRectF(0, 0, 16, 16), self.look.colour("error"))
