"""A number's row: label, a slider that steps, and a field that takes any number."""

from __future__ import annotations

import math
from collections.abc import Sequence

from PySide6.QtCore import QLocale, QPointF, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QWheelEvent
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QSlider, QSpinBox, QWidget

from app.gui.icons import draw_icon
from app.gui.parts.look import Look, Part
from app.gui.parts.text import Label
from app.gui.theme import CONTROL_RADIUS

_HANDLE = 6.0
_TYPING_PAUSE_MS = 600


class StepSlider(QSlider, Part):
    """Steps through `steps`; the handle of a number between two steps stands between them.

    `stepped` tells the number of a step that the user chose. Steps in `impossible` carry a cross.
    """

    stepped = Signal(int)
    ring_radius = 6.0

    def __init__(self, look: Look, name: str, steps: Sequence[int], parent: QWidget | None = None) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self.steps = tuple(steps)
        self.impossible: frozenset[int] = frozenset()
        self._number = self.steps[0]
        self.wrong = False
        self.setAccessibleName(name)
        self.setRange(0, len(self.steps) - 1)
        self.setPageStep(2)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.set_look(look)

    def set_number(self, number: int) -> None:
        """Show a number without telling."""
        self._number = number
        nearest = min(range(len(self.steps)), key=lambda i: abs(math.log(self.steps[i] / number)))
        self.setValue(nearest)
        self.update()

    def number(self) -> int:
        return self._number

    def set_impossible(self, steps: frozenset[int]) -> None:
        if steps != self.impossible:
            self.impossible = steps
            self.update()

    def sizeHint(self) -> QSize:
        return QSize(78, 24)

    def minimumSizeHint(self) -> QSize:
        return QSize(48, 24)

    def step_to(self, index: int) -> None:
        index = max(0, min(index, len(self.steps) - 1))
        if self.steps[index] != self._number:
            self._number = self.steps[index]
            self.setValue(index)
            self.update()
            self.stepped.emit(self._number)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = {
            Qt.Key.Key_Left: -1,
            Qt.Key.Key_Down: -1,
            Qt.Key.Key_Right: 1,
            Qt.Key.Key_Up: 1,
            Qt.Key.Key_PageDown: -2,
            Qt.Key.Key_PageUp: 2,
            Qt.Key.Key_Home: -len(self.steps),
            Qt.Key.Key_End: len(self.steps),
        }.get(Qt.Key(event.key()))
        if step is None:
            event.ignore()
            return
        self.step_to(self._next(step))

    def _next(self, step: int) -> int:
        """From a number between two steps, one step goes to the neighbour on that side."""
        if self._number in self.steps:
            return self.steps.index(self._number) + step
        above = sum(1 for value in self.steps if value < self._number)
        return above + step if step < 0 else above + step - 1

    def wheelEvent(self, event: QWheelEvent) -> None:
        # The panel scrolls under the pointer; a slider that moved with it would change the workload.
        event.ignore()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self.step_to(self._index_at(event.position().x()))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if event.buttons() & Qt.MouseButton.LeftButton:
            self.step_to(self._index_at(event.position().x()))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        event.accept()

    def _ends(self) -> tuple[float, float]:
        return 2.0, self.width() - 2.0

    def _index_at(self, x: float) -> int:
        left, right = self._ends()
        return round((x - left) / max(right - left, 1) * (len(self.steps) - 1))

    def _x_of(self, number: float) -> float:
        left, right = self._ends()
        low, high = math.log(self.steps[0]), math.log(self.steps[-1])
        share = (math.log(max(number, 1)) - low) / (high - low)
        return left + min(max(share, 0.0), 1.0) * (right - left)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        look = self.look
        left, right = self._ends()
        middle = self.height() / 2
        at = min(max(self._x_of(self._number), left + _HANDLE), right - _HANDLE)
        pen = QPen(look.colour("strong_line"), 4)
        pen.setCapStyle(Qt.PenCapStyle.RoundCap)
        painter.setPen(pen)
        painter.drawLine(QPointF(left, middle), QPointF(right, middle))
        pen.setColor(look.colour("text_secondary"))
        painter.setPen(pen)
        painter.drawLine(QPointF(left, middle), QPointF(at, middle))
        for step in self.steps:
            x = min(max(self._x_of(step), left), right)
            if step in self.impossible:
                draw_icon(painter, "cross", QRectF(x - 4, middle + 4, 8, 8), look.colour("error"))
            else:
                painter.fillRect(QRectF(x - 0.75, middle + 7.5, 1.5, 1.5), look.colour("text_tertiary"))
        if self.wrong and self._number not in self.steps:
            draw_icon(painter, "cross", QRectF(at - 4, middle + 6, 8, 8), look.colour("error"))
        painter.setPen(QPen(look.colour("panel"), 2))
        painter.setBrush(look.colour("inverse_fill" if self.isEnabled() else "disabled"))
        painter.drawEllipse(QPointF(at, middle), _HANDLE + 1, _HANDLE + 1)


class NumberField(QSpinBox, Part):
    """Any whole number of a range. `wrong` draws its edge in the colour of errors.

    A number is taken when it is finished: Enter, leaving the field, an arrow, or a pause in typing.
    """

    ring_radius = float(CONTROL_RADIUS)

    def __init__(self, look: Look, name: str, low: int, high: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.wrong = False
        self.setAccessibleName(name)
        self.setLocale(QLocale(QLocale.Language.English, QLocale.Country.UnitedStates))
        self.setGroupSeparatorShown(True)
        self.setRange(low, high)
        self.setKeyboardTracking(False)
        self.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._typing = QTimer(self)
        self._typing.setSingleShot(True)
        self._typing.setInterval(_TYPING_PAUSE_MS)
        self._typing.timeout.connect(self.interpretText)
        self.lineEdit().textEdited.connect(lambda _: self._typing.start())
        self.set_look(look)

    def set_wrong(self, wrong: bool) -> None:
        if wrong != self.wrong:
            self.wrong = wrong
            self.update()

    def restyle(self) -> None:
        look = self.look
        self.setFont(look.font(13, 600))
        self.setFixedSize(72, look.sizes.control)
        self.setStyleSheet(
            "QSpinBox { background: transparent; border: none; padding: 0 26px 0 4px;"
            f" color: {look.colour('text').name()};"
            f" selection-background-color: {look.colour('strong_line').name()};"
            f" selection-color: {look.colour('text').name()}; }}"
            "QSpinBox::up-button, QSpinBox::down-button { width: 24px; border: none; background: none; }"
            "QSpinBox::up-arrow, QSpinBox::down-arrow { image: none; width: 0; height: 0; }"
        )

    def wheelEvent(self, event: QWheelEvent) -> None:
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Escape):
            self.interpretText()
            self.clearFocus()
            self.window().setFocus()
            return
        super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        look = self.look
        rect = QRectF(self.rect())
        painter.setPen(QPen(look.colour("error" if self.wrong else "strong_line"), 1))
        painter.setBrush(look.field)
        painter.drawRoundedRect(rect.adjusted(0.5, 0.5, -0.5, -0.5), CONTROL_RADIUS, CONTROL_RADIUS)
        ink = look.colour("text_secondary")
        middle = rect.center().y()
        draw_icon(painter, "chevron-up", QRectF(rect.right() - 19, middle - 11, 11, 11), ink)
        draw_icon(painter, "chevron-down", QRectF(rect.right() - 19, middle, 11, 11), ink)


class FieldRow(QWidget, Part):
    """`changed` tells the number that the user set, by slider or field."""

    changed = Signal(int)

    def __init__(
        self,
        look: Look,
        title: str,
        help_text: str,
        low: int,
        high: int,
        steps: Sequence[int],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.look = look
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(14)
        self.label = Label(look, title, 13, 400, "text_secondary")
        self.label.setToolTip(help_text)
        self.slider = StepSlider(look, title, steps)
        self.field = NumberField(look, title, low, high)
        row.addWidget(self.label)
        row.addWidget(self.slider, 1)
        row.addWidget(self.field)
        self.slider.stepped.connect(self._set)
        self.field.valueChanged.connect(self._set)
        self.set_number(self.slider.steps[0])

    def set_title(self, title: str, help_text: str) -> None:
        """Another name for the number, for the eye and for assistive technology."""
        self.label.setText(title)
        self.label.setToolTip(help_text)
        self.slider.setAccessibleName(title)
        self.field.setAccessibleName(title)

    def number(self) -> int:
        return self.field.value()

    def set_number(self, number: int) -> None:
        """Show a number without telling."""
        blocked = self.field.blockSignals(True)
        self.field.setValue(number)
        self.field.blockSignals(blocked)
        self.slider.set_number(number)

    def set_wrong(self, wrong: bool) -> None:
        self.field.set_wrong(wrong)
        self.slider.wrong = wrong
        self.slider.update()

    def _set(self, number: int) -> None:
        self.set_number(number)
        self.changed.emit(number)
