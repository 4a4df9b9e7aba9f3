"""Every implementation's worst share of its bounds: one line each, a click shows its tensors."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QHelpEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from app.core import text
from app.gui.accuracy_data import Standing
from app.gui.charts.painting import LEFT, RIGHT, width_of, write
from app.gui.charts.style import style_of
from app.gui.parts.look import Look, Part
from app.gui.theme import CONTROL_RADIUS

_BAR = 4


class StandingList(QWidget, Part):
    """Emits `chosen` with a contender's id. Up and down move, since only one is shown at a time."""

    chosen = Signal(str)
    ring_radius = 4.0

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._rows: tuple[Standing, ...] = ()
        self._current = ""
        self.setAccessibleName("Every implementation")
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.set_look(look)

    def show_rows(self, rows: tuple[Standing, ...], current: str) -> None:
        if (rows, current) == (self._rows, self._current):
            return
        self._rows, self._current = rows, current
        self.setAccessibleDescription("; ".join(self._sentence(row) for row in rows))
        self.updateGeometry()
        self.update()

    @property
    def rows(self) -> tuple[Standing, ...]:
        return self._rows

    def _pitch(self) -> int:
        return 22 if self.look.small else 27

    def sizeHint(self) -> QSize:
        return QSize(360, self._pitch() * max(len(self._rows), 1))

    def minimumSizeHint(self) -> QSize:
        return QSize(240, self.sizeHint().height())

    def _sentence(self, row: Standing) -> str:
        if row.share is None:
            return f"{row.title}: {row.word}, max |Δ| {row.worst}"
        state = "" if row.ok else "beyond its bound, "
        return f"{row.title}: {state}{text.used(row.share)} of the bound in {row.tensor}, max |Δ| {row.worst}"

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        look, pitch = self.look, self._pitch()
        plain, bold = look.font(13), look.font(13, 600)
        names = max((width_of(row.title, bold) for row in self._rows), default=100.0)
        shares = max((width_of(self._share(row), bold) for row in self._rows), default=30.0)
        right = max((width_of(row.worst, plain) for row in self._rows), default=50.0)
        tensors = max((width_of(row.tensor, look.font(12)) for row in self._rows), default=50.0)
        names = min(names, self.width() * 0.36)
        bars = self.width() - 20 - names - 14 - shares - 12 - tensors - 14 - right - 10
        bars = min(bars, 90.0) if bars >= 34 else 0.0
        for index, row in enumerate(self._rows):
            rect = QRectF(0, index * pitch, self.width(), pitch)
            if row.name == self._current:
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(look.colour("row_selected"))
                painter.drawRoundedRect(rect.adjusted(-0, 1, 0, -1), CONTROL_RADIUS - 2, CONTROL_RADIUS - 2)
            style = style_of(row.name, look.theme)
            style.mark(painter, QPointF(9, rect.center().y()), 9)
            font = bold if row.name == self._current else plain
            x = 20.0
            write(
                painter, QRectF(x, rect.top(), names, pitch), row.title, font, look.colour("text"), LEFT, True
            )
            x += names + 14
            self._figures(painter, rect, row, (x, bars, shares, right))

    def _figures(
        self, painter: QPainter, rect: QRectF, row: Standing, places: tuple[float, float, float, float]
    ) -> None:
        look = self.look
        x, bars, shares, right = places
        end = rect.right() - right - 6
        if row.share is None:
            place = QRectF(x, rect.top(), end - x - 8, rect.height())
            write(painter, place, row.word, look.font(12), look.colour("text_tertiary"), LEFT, True)
        else:
            if bars:
                track = QRectF(x, rect.center().y() - _BAR / 2 - 0.5, bars, _BAR + 1)
                painter.fillRect(track, look.colour("hairline"))
                fill = QRectF(track)
                fill.setWidth(bars * min(row.share, 1.0))
                colour = look.colour("error") if not row.ok else style_of(row.name, look.theme).colour
                painter.fillRect(fill, colour)
                x += bars + 12
            role = "text" if row.ok else "error"
            place = QRectF(x, rect.top(), shares + 1, rect.height())
            write(painter, place, self._share(row), look.font(13, 600), look.colour(role), RIGHT)
            x += shares + 12
            place = QRectF(x, rect.top(), end - x - 6, rect.height())
            write(painter, place, row.tensor, look.font(12), look.colour("text_secondary"), LEFT, True)
        place = QRectF(rect.right() - right - 7, rect.top(), right + 1, rect.height())
        write(painter, place, row.worst, look.font(13), look.colour("text_secondary"), RIGHT)

    @staticmethod
    def _share(row: Standing) -> str:
        return "" if row.share is None else text.used(row.share)

    def _row_at(self, y: float) -> Standing | None:
        index = int(y // self._pitch())
        return self._rows[index] if 0 <= index < len(self._rows) else None

    def mousePressEvent(self, event: QMouseEvent) -> None:
        row = self._row_at(event.position().y())
        if row is not None:
            self.chosen.emit(row.name)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = {Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1}.get(Qt.Key(event.key()))
        if step is None or not self._rows:
            super().keyPressEvent(event)
            return
        names = [row.name for row in self._rows]
        at = names.index(self._current) if self._current in names else 0
        self.chosen.emit(names[min(max(at + step, 0), len(names) - 1)])

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            row = self._row_at(event.pos().y())
            QToolTip.showText(event.globalPos(), self._sentence(row) if row is not None else "", self)
            return True
        return super().event(event)
