"""A card around a chart: its title, caption and legend in the head."""

from __future__ import annotations

from typing import Protocol

from PySide6.QtCore import QRectF, QSize
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from app.gui.charts.painted import PaintedChart
from app.gui.parts.card import Card
from app.gui.parts.look import Look, Part
from app.gui.snapshot import Snapshot


class Chart(Protocol):
    """What a chart tells about itself."""

    title: str
    caption: str
    environment_line: str


def environment_line(snapshot: Snapshot) -> str:
    """What was measured, and on what: the last line of every picture."""
    workload = snapshot.record.label if snapshot.record is not None else ""
    return machine_line(snapshot, workload)


def machine_line(snapshot: Snapshot, workload: str) -> str:
    """`workload`, and what it was measured on."""
    environment = snapshot.recording.environment
    if environment is None:
        return workload
    device = snapshot.record.workload.device if snapshot.record is not None else "cpu"
    title = next((d.title for d in environment.devices if d.id == device), environment.cpu)
    torch = f"torch {environment.torch}" if environment.torch else ""
    told = (workload, title, environment.system, torch, f"AttnScope {environment.attnscope}")
    return " · ".join(part for part in told if part)


class _Legend(QWidget, Part):
    def __init__(self, look: Look, chart: PaintedChart) -> None:
        super().__init__()
        self.look, self._chart = look, chart
        self._width = 0

    def fit(self) -> None:
        """Take the room that the legend needs now."""
        width = round(self._chart.legend_width())
        if width != self._width:
            self._width = width
            self.setFixedWidth(width)
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(self._width, 20)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._chart.paint_legend(painter, self.width(), QRectF(self.rect()).center().y())


class ChartCard(Card):
    """Call `refresh` after the chart was shown something: the head repeats what the chart says."""

    def __init__(self, look: Look, chart: QWidget, bottom: int = 8) -> None:
        super().__init__(look, str(getattr(chart, "title", "")))
        self.chart = chart
        self._bottom = bottom
        self.body.addWidget(chart)
        self._legend = _Legend(look, chart) if isinstance(chart, PaintedChart) else None
        if self._legend is not None:
            self.tools.addWidget(self._legend)
        self.restyle()

    def restyle(self) -> None:
        super().restyle()
        margins = self._outer.contentsMargins()
        margins.setBottom(getattr(self, "_bottom", 8))
        self._outer.setContentsMargins(margins)
        if hasattr(self, "_legend"):
            self.refresh()

    def refresh(self) -> None:
        self.title.setText(self.chart.title)  # type: ignore[attr-defined]
        self.subtitle.setText(self.chart.caption)  # type: ignore[attr-defined]
        if self._legend is not None:
            self._legend.fit()
