"""Two states or a few: a switch, a check box and a segmented control."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEasingCurve, QPointF, QRectF, QSize, Qt, QVariantAnimation, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QButtonGroup, QCheckBox, QHBoxLayout, QRadioButton, QSizePolicy, QWidget

from app.gui.icons import draw_icon
from app.gui.parts.look import Look, Part
from app.gui.parts.text import CENTRE, draw_text, width_of
from app.gui.theme import CONTROL_RADIUS, HOVER_MS

SWITCH = QSize(36, 20)


class Switch(QCheckBox, Part):
    """On or off, at once. `name` is what assistive technology reads."""

    ring_radius = 10.0

    def __init__(self, look: Look, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._animation = QVariantAnimation(self)
        self._animation.setEasingCurve(QEasingCurve.Type.OutCubic)
        self._animation.valueChanged.connect(self._move)
        self._at = 0.0
        self.toggled.connect(self._slide)
        self.set_look(look)

    def sizeHint(self) -> QSize:
        return SWITCH

    def minimumSizeHint(self) -> QSize:
        return SWITCH

    def hitButton(self, position: object) -> bool:
        return True

    def settle(self) -> None:
        """Stand where the state is, without sliding there."""
        if self._animation.state() != QVariantAnimation.State.Running:
            self._move(float(self.isChecked()))

    def _move(self, value: object) -> None:
        assert isinstance(value, float)
        self._at = value
        self.update()

    def _slide(self, on: bool) -> None:
        duration = self.look.milliseconds(HOVER_MS) if self.isVisible() else 0
        self._animation.stop()
        if not duration:
            self._move(float(on))
            return
        self._animation.setDuration(duration)
        self._animation.setStartValue(self._at)
        self._animation.setEndValue(float(on))
        self._animation.start()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        look, on = self.look, self.isChecked()
        track = QRectF(0.5, 0.5, SWITCH.width() - 1, SWITCH.height() - 1)
        painter.setPen(Qt.PenStyle.NoPen if on else QPen(look.colour("control_outline"), 1))
        fill = "inverse_fill" if self.isEnabled() else "disabled"
        painter.setBrush(look.colour(fill if on else "raised"))
        painter.drawRoundedRect(track, 9.5, 9.5)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(look.colour("inverse_text") if on else look.colour("control_outline"))
        painter.drawEllipse(QPointF(10 + 16 * self._at, 10), 7, 7)


def draw_check(painter: QPainter, look: Look, rect: QRectF, checked: bool, enabled: bool = True) -> None:
    """A check box of 16 px in the middle of `rect`."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    box = QRectF(rect.center().x() - 7.5, rect.center().y() - 7.5, 15, 15)
    if checked:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(look.colour("inverse_fill" if enabled else "disabled"))
        painter.drawRoundedRect(box.adjusted(-0.5, -0.5, 0.5, 0.5), 4, 4)
        draw_icon(painter, "tick", box.adjusted(1.5, 1.5, -1.5, -1.5), look.colour("inverse_text"))
    else:
        painter.setPen(QPen(look.colour("control_outline" if enabled else "strong_line"), 1))
        painter.setBrush(look.field)
        painter.drawRoundedRect(box, 4, 4)
    painter.restore()


class _Segment(QRadioButton):
    ring_radius = float(CONTROL_RADIUS)

    def __init__(self, owner: Segmented, text: str) -> None:
        super().__init__(text, owner)
        self._owner = owner
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        look = self._owner.look
        width = width_of(self.text(), look.font(12, 600))
        return QSize(int(width) + 2 * self._owner.padding, look.sizes.control - 4)

    def minimumSizeHint(self) -> QSize:
        hint = self.sizeHint()
        return QSize(hint.width() - 2 * self._owner.padding + 6, hint.height())

    def hitButton(self, position: object) -> bool:
        return True

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        look = self._owner.look
        if self.isChecked():
            painter.setPen(QPen(look.colour("strong_line"), 1))
            painter.setBrush(look.colour("raised" if look.theme.name == "dark" else "card"))
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 5, 5)
        active = self.isChecked() or self.underMouse()
        painter.setPen(look.colour("text" if active else "text_secondary"))
        painter.setFont(look.font(12, 600))
        draw_text(painter, QRectF(self.rect()), self.text(), CENTRE)


class Segmented(QWidget, Part):
    """One of a few, all in sight. Arrow keys move the choice."""

    chosen = Signal(str)

    def __init__(
        self,
        look: Look,
        options: Sequence[tuple[str, str]],
        name: str = "",
        padding: int = 12,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.look, self.padding = look, padding
        self.setAccessibleName(name)
        row = QHBoxLayout(self)
        row.setContentsMargins(2, 2, 2, 2)
        row.setSpacing(2)
        self._group = QButtonGroup(self)
        self._segments: dict[str, _Segment] = {}
        for value, text in options:
            segment = _Segment(self, text)
            segment.setAccessibleName(f"{name}: {text}" if name else text)
            self._segments[value] = segment
            self._group.addButton(segment)
            row.addWidget(segment, 1)
            segment.toggled.connect(lambda on, v=value: self.chosen.emit(v) if on else None)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def value(self) -> str:
        return next((value for value, s in self._segments.items() if s.isChecked()), "")

    def set_value(self, value: str) -> None:
        """Choose without telling: what changes from outside is no wish of the user's."""
        blocked = self.blockSignals(True)
        self._segments[value].setChecked(True)
        self.blockSignals(blocked)

    def segment(self, value: str) -> QRadioButton:
        return self._segments[value]

    def restyle(self) -> None:
        for segment in self._segments.values():
            segment.updateGeometry()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        look = self.look
        painter.setPen(QPen(look.colour("hairline"), 1))
        painter.setBrush(look.colour("sunken" if look.theme.name == "dark" else "raised"))
        rect = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        painter.drawRoundedRect(rect, CONTROL_RADIUS, CONTROL_RADIUS)
