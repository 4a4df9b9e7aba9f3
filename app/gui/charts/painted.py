"""The base of charts that draw themselves with a painter."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize
from PySide6.QtGui import QHelpEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QToolTip, QWidget

from app.gui.parts.look import Look, Part


class PaintedChart(QWidget, Part):
    """Subclasses draw in `paint_chart` and tell in `tip_at` what lies under the pointer.

    `title`, `caption` and `environment_line` are what an exported picture carries around the chart.
    """

    def __init__(self, look: Look, title: str = "") -> None:
        super().__init__()
        self.title = title
        self.caption = ""
        self.environment_line = ""
        self.setAccessibleName(title)
        self.set_look(look)

    def paint_chart(self, painter: QPainter, area: QRectF) -> None:
        raise NotImplementedError

    def legend_width(self) -> float:
        """Pixels that `paint_legend` takes; 0 for a chart without legend."""
        return 0.0

    def paint_legend(self, painter: QPainter, right: float, middle: float) -> None:
        """Draw a legend that ends at `right`."""

    def tip_at(self, place: QPointF) -> str:
        """What a tooltip says at a place; empty for none."""
        return ""

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self.paint_chart(painter, QRectF(self.rect()))

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            text = self.tip_at(QPointF(event.pos()))
            if text:
                QToolTip.showText(event.globalPos(), text, self)
            else:
                QToolTip.hideText()
            return True
        return super().event(event)

    def minimumSizeHint(self) -> QSize:
        return QSize(80, 40)

    def sizeHint(self) -> QSize:
        return QSize(400, 160)
