"""What share of the roof each contender reaches, a column per phase."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize
from PySide6.QtGui import QHelpEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from app.core.roofline import Roofline
from app.core.text import NOTHING
from app.core.work import PHASES, Phase, Point
from app.gui.charts.painting import LEFT, RIGHT, write
from app.gui.charts.style import style_of
from app.gui.parts.look import Look, Part

_SHOWN: tuple[Phase, ...] = ("forward", "backward", "decode")
_HEAD = 28


def columns_of(roofline: Roofline | None, narrow: bool = False) -> tuple[Phase, ...]:
    """Forward, backward and decode; the step in the place of a backward pass that cannot be told apart.

    `narrow`: only what is measured.
    """
    found = _SHOWN
    if roofline is not None and "step" in roofline.phases and "backward" not in roofline.phases:
        found = ("forward", "step", "decode")
    if narrow and roofline is not None and roofline.phases:
        return tuple(phase for phase in found if phase in roofline.phases)
    return found


class ShareTable(QWidget, Part):
    def __init__(self, look: Look) -> None:
        super().__init__()
        self._roofline: Roofline | None = None
        self._names: tuple[str, ...] = ()
        self._marked = ""
        self.setAccessibleName("Share of the roof")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.set_look(look)

    def show_roofline(self, roofline: Roofline | None, names: tuple[str, ...], marked: str) -> None:
        """`names` in the order of the rows; `marked` is whom the verdict speaks of."""
        if (roofline, names, marked) == (self._roofline, self._names, self._marked):
            return
        self._roofline, self._names, self._marked = roofline, names, marked
        self.setAccessibleDescription("; ".join(self._sentence(name) for name in names))
        self.updateGeometry()
        self.update()

    def cell(self, name: str, phase: Phase) -> str:
        point = self._point(name, phase)
        if point is not None:
            return point.share_text
        # nn.MultiheadAttention keeps no keys and values between calls.
        if phase == "decode" and name == "mha":
            return "no cache"
        return NOTHING

    def _point(self, name: str, phase: Phase) -> Point | None:
        return None if self._roofline is None else self._roofline.point(name, phase)

    def _pitch(self) -> int:
        return 24 if self.look.small else 30

    def sizeHint(self) -> QSize:
        return QSize(280, _HEAD + self._pitch() * max(len(self._names), 1))

    def minimumSizeHint(self) -> QSize:
        return QSize(220, self.sizeHint().height())

    def _sentence(self, name: str) -> str:
        said = []
        for phase in columns_of(self._roofline):
            point = self._point(name, phase)
            if point is not None:
                said.append(f"{PHASES[phase]} {point.words}")
        return f"{style_of(name, self.look.theme).title}: {', '.join(said) or 'not placed'}"

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        look, pitch = self.look, self._pitch()
        edge = look.sizes.card_padding
        narrow = self.width() < 320
        phases = columns_of(self._roofline, narrow)
        width = 64.0 if narrow else 72.0
        rights = [self.width() - edge - width * (len(phases) - 1 - k) for k in range(len(phases))]
        head, soft = look.font(12, 500), look.colour("text_secondary")
        write(painter, QRectF(edge, 0, 150, _HEAD), "" if narrow else "Implementation", head, soft, LEFT)
        for phase, right in zip(phases, rights, strict=True):
            title = "Step" if phase == "step" else PHASES[phase].capitalize()
            write(painter, QRectF(right - width, 0, width, _HEAD), title, head, soft, RIGHT)
        for index, name in enumerate(self._names):
            rect = QRectF(0, _HEAD + index * pitch, self.width(), pitch)
            marked = name == self._marked
            if marked:
                painter.fillRect(rect, look.colour("row_selected"))
                painter.fillRect(QRectF(0, rect.top(), 3, pitch), style_of(name, look.theme).colour)
            painter.setPen(QPen(look.colour("hairline"), 1))
            painter.drawLine(QPointF(edge, rect.top() - 0.5), QPointF(self.width() - edge, rect.top() - 0.5))
            style = style_of(name, look.theme)
            style.mark(painter, QPointF(edge + 5, rect.center().y()), 9)
            bold = look.font(13, 600 if marked else 400)
            room = rights[0] - width - edge - 24
            title = style.short if self.width() < 360 else style.title
            write(
                painter,
                QRectF(edge + 20, rect.top(), room + 20, pitch),
                title,
                bold,
                look.colour("text"),
                LEFT,
                True,
            )
            for phase, right in zip(phases, rights, strict=True):
                word = self.cell(name, phase)
                known = self._point(name, phase) is not None
                font = look.font(13, 600 if marked else 400) if known else look.font(12)
                colour = look.colour("text" if known else "text_tertiary")
                write(painter, QRectF(right - width, rect.top(), width, pitch), word, font, colour, RIGHT)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            index = (event.pos().y() - _HEAD) // self._pitch()
            inside = 0 <= index < len(self._names) and event.pos().y() >= _HEAD
            QToolTip.showText(event.globalPos(), self._sentence(self._names[index]) if inside else "", self)
            return True
        return super().event(event)
