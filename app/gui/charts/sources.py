"""Which source was compiled when, and by which job: bars on one time axis, in shades of grey."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from app.core.text import THIN, number
from app.core.ticks import from_zero, tick_label
from app.gui.charts.painted import PaintedChart
from app.gui.charts.painting import CENTRE, LEFT, RIGHT, width_of, write
from app.gui.parts.look import Look
from app.gui.theme import on

ROW = 24
_AXIS = 22


@dataclass(frozen=True)
class SourceBar:
    """`seconds` None: still going on, until `now_s` of the chart."""

    source: str
    job: int
    started_s: float
    seconds: float | None
    failed: bool = False


class SourcesChart(PaintedChart):
    """Bars of a build, the first started on top."""

    def __init__(self, look: Look) -> None:
        super().__init__(look, "Sources")
        self._bars: tuple[SourceBar, ...] = ()
        self._now_s = 0.0

    def show_bars(self, bars: tuple[SourceBar, ...], now_s: float = 0.0) -> None:
        """`now_s`: seconds since compiling began, up to which bars that go on are drawn."""
        if (bars, now_s) == (self._bars, self._now_s):
            return
        if len(bars) != len(self._bars):
            self.updateGeometry()
        self._bars, self._now_s = bars, now_s
        said = [
            f"{bar.source} {number(bar.seconds, 1)} s"
            if bar.seconds is not None
            else f"{bar.source} going on"
            for bar in bars
        ]
        self.setAccessibleDescription("; ".join(said))
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(400, ROW * max(len(self._bars), 1) + _AXIS + 4)

    def minimumSizeHint(self) -> QSize:
        return QSize(200, 17 * max(len(self._bars), 1) + _AXIS)

    def paint_chart(self, painter: QPainter, area: QRectF) -> None:
        look = self.look
        if not self._bars:
            text = "No source was compiled at this start"
            write(painter, area, text, look.font(12), look.colour("text_secondary"), LEFT, True)
            return
        mono, figure = look.font(12, mono=True), look.font(12, 600)
        names = max(width_of(bar.source, mono) for bar in self._bars) + 18
        left = area.left() + min(names, area.width() * 0.36)
        right = area.right() - max(width_of(self._figure(bar), figure) for bar in self._bars) - 12
        end = max(max(bar.started_s + self._length(bar) for bar in self._bars), 0.1)
        ticks = from_zero(end, max(2, int((right - left) // 64)))
        scale = (right - left) / max(end, ticks[-2] if len(ticks) > 1 else end)
        bottom = area.bottom() - _AXIS
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        for tick in ticks:
            x = round(left + tick * scale) + 0.5
            if x > right + 1:
                continue
            painter.setPen(QPen(look.colour("strong_line" if tick == 0 else "grid"), 1))
            painter.drawLine(QPointF(x, area.top()), QPointF(x, bottom))
            word = "0" if tick == 0 else f"{tick_label(tick, ticks[1])}{THIN}s"
            place = QRectF(x - 30, bottom + 4, 60, 16)
            write(painter, place, word, look.font(11), look.colour("text_tertiary"), CENTRE)
        pitch = min(float(ROW), (bottom - area.top()) / len(self._bars))
        for index, bar in enumerate(self._bars):
            row = QRectF(area.left(), area.top() + index * pitch, area.width(), pitch)
            self._row(painter, row, bar, left, scale, names)

    def _row(
        self, painter: QPainter, row: QRectF, bar: SourceBar, left: float, scale: float, names: float
    ) -> None:
        look = self.look
        place = QRectF(row.left(), row.top(), left - row.left() - 8, row.height())
        mono = look.font(12, mono=True)
        write(painter, place, bar.source, mono, look.colour("text"), LEFT, may_elide=True)
        fill = look.fill("error") if bar.failed else self._shade(bar.job)
        inset = 3 if row.height() >= 20 else 2
        start = left + bar.started_s * scale
        box = QRectF(start, row.top() + inset, max(self._length(bar) * scale, 2.0), row.height() - 2 * inset)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        painter.fillRect(box, fill)
        if bar.failed:
            painter.setPen(QPen(look.colour("error"), 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(box.adjusted(0, 0, -1, -1))
        word = f"job {self._rank(bar.job)}"
        font = look.font(11, 500)
        if box.width() > width_of(word, font) + 12 and box.height() >= 12:
            write(
                painter,
                box.adjusted(6, 0, 0, 0),
                word,
                font,
                look.colour("error") if bar.failed else on(fill),
                LEFT,
            )
        role = "error" if bar.failed else "text_secondary" if bar.seconds is None else "text"
        colour = look.colour(role)
        write(painter, row, self._figure(bar), look.font(12, 600), colour, RIGHT)

    def _length(self, bar: SourceBar) -> float:
        return bar.seconds if bar.seconds is not None else max(self._now_s - bar.started_s, 0.0)

    @staticmethod
    def _figure(bar: SourceBar) -> str:
        if bar.failed:
            return "failed"
        return "…" if bar.seconds is None else f"{number(bar.seconds, 1)}{THIN}s"

    def _rank(self, job: int) -> int:
        """Jobs count from one, whatever the numbers are that they came with."""
        return sorted({bar.job for bar in self._bars}).index(job) + 1

    def _shade(self, job: int) -> QColor:
        shades = ("control_outline", "strong_line", "disabled", "text_tertiary")
        return self.look.colour(shades[(self._rank(job) - 1) % len(shades)])
