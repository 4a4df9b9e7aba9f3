"""Latency over time: a median line with its interquartile band for each contender."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QElapsedTimer, QEvent, QRectF, Qt, QTimer
from PySide6.QtGui import QMouseEvent, QPainter, QPainterPath, QResizeEvent
from PySide6.QtWidgets import QGraphicsPathItem, QGraphicsView

from app.core.text import number
from app.core.ticks import value_label
from app.gui.charts.latency_data import Curve, LatencyData, Picture, band, reading, split
from app.gui.charts.latency_items import Frame, Overlay, Scene, y_ticks_for
from app.gui.charts.style import faded, style_of
from app.gui.parts.look import Look, Part
from app.gui.snapshot import Snapshot
from app.gui.theme import TABLE_INTERVAL_MS

_TOP, _BOTTOM = 14, 26
_HOVER_MS = 33
_NOTHING = Picture((), (), (), 0.0, 60.0, False)


class _Line:
    """The three items of one contender, made once and given new data each frame."""

    def __init__(self, box: pg.ViewBox) -> None:
        self.band = QGraphicsPathItem()
        self.band.setPen(Qt.PenStyle.NoPen)
        self.steady = pg.PlotCurveItem(connect="finite", antialias=True)
        self.disturbed = pg.PlotCurveItem(connect="finite", antialias=False)
        for z, item in ((0, self.band), (1, self.disturbed), (2, self.steady)):
            item.setZValue(z)
            box.addItem(item, ignoreBounds=True)
        for item in (self.steady, self.disturbed):
            # Wide antialiased pens are an order of magnitude faster in segments.
            item.setSegmentedLineMode("on")

    def draw(self, curve: Curve, look: Look, dimmed: bool) -> None:
        colour = look.colour("text_secondary") if dimmed else style_of(curve.name, look.theme).colour
        steady, disturbed = split(curve)
        self.steady.setData(x=curve.x, y=steady, pen=pg.mkPen(colour, width=2))
        self.disturbed.setData(x=curve.x, y=disturbed, pen=pg.mkPen(faded(colour, 0.75), width=1))
        x, y = band(curve)
        path = pg.arrayToQPath(x, y, connect="finite") if x.size else QPainterPath()
        self.band.setBrush(faded(colour, look.theme.band_opacity))
        self.band.setPath(path)
        self._show(True)
        # An item without a point still costs a pass of the painter.
        self.disturbed.setVisible(bool(curve.disturbed.any()))

    def hide(self) -> None:
        self._show(False)

    def _show(self, shown: bool) -> None:
        for item in (self.band, self.steady, self.disturbed):
            item.setVisible(shown)


class LatencyChart(pg.GraphicsView, Part):  # type: ignore[misc]
    """Draws `Snapshot.record` over `Snapshot.window_s`. Call `show_snapshot` at most ten times a second."""

    title = "Latency per call"

    def __init__(self, look: Look) -> None:
        super().__init__(background=None)
        self.caption = ""
        self.environment_line = ""
        self._data = LatencyData()
        self._scene = Scene(look, _NOTHING)
        self._snapshot: Snapshot | None = None
        self._lines: list[_Line] = []
        self._values_age = QElapsedTimer()
        self._values: dict[str, float] = {}
        self._hover_at: float | None = None
        self._hover_timer = QTimer(self, singleShot=True, interval=_HOVER_MS)
        self._hover_timer.timeout.connect(self._hover)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setViewportUpdateMode(QGraphicsView.ViewportUpdateMode.FullViewportUpdate)
        self._box = pg.ViewBox(enableMouse=False, enableMenu=False, defaultPadding=0)
        self._box.setZValue(1)
        self._box.disableAutoRange()
        self._frame, self._overlay = Frame(self._scene, 0), Overlay(self._scene, 2)
        for item in (self._frame, self._box, self._overlay):
            self.addItem(item)
        self.setAccessibleName(self.title)
        self.set_look(look)

    def restyle(self) -> None:
        self._scene.look = self.look
        self.setBackgroundBrush(self.look.colour("card"))
        self._caption()
        self._redraw()

    def _caption(self) -> None:
        said = "µs · median, IQR band" if self.look.small else "µs, wall time · median with IQR band"
        if self.hidden:
            said += f" · {number(self.hidden)} hidden"
        if above := self._scene.picture.above:
            said += f" · {number(above)} peak{'s' if above > 1 else ''} above the axis"
        self.caption = said

    def show_snapshot(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        picture = self._data.picture(snapshot)
        self._scene.picture = self._steadied(picture)
        self._scene.empty = _why_empty(snapshot, picture)
        self._caption()
        self._redraw()

    @property
    def hidden(self) -> int:
        """Samples that the axis cannot show."""
        return self._scene.picture.hidden

    def render_into(self, painter: QPainter, area: QRectF) -> None:
        """Draw the chart as it stands, without the crosshair, for a picture."""
        at, self._hover_at = self._hover_at, None
        self._redraw()
        self.scene().prepareForPaint()
        self.scene().render(painter, area, area)
        self._hover_at = at
        self._redraw()

    def _steadied(self, picture: Picture) -> Picture:
        """Figures change four times a second, so that their digits can be read."""
        names = {curve.name for curve in picture.curves}
        due = not self._values_age.isValid() or self._values_age.elapsed() >= TABLE_INTERVAL_MS
        if due or names != set(self._values) or picture.frozen:
            self._values = {curve.name: curve.value for curve in picture.curves}
            self._values_age.start()
            self.setAccessibleDescription(
                ", ".join(
                    f"{style_of(c.name, self.look.theme).short} {value_label(c.value)} µs"
                    for c in picture.curves
                )
            )
        curves = tuple(replace(c, value=self._values[c.name]) for c in picture.curves)
        return replace(picture, curves=curves)

    def _redraw(self) -> None:
        scene, picture = self._scene, self._scene.picture
        width, height = float(self.width()), float(self.height())
        plot_height = max(height - _TOP - _BOTTOM, 10.0)
        scene.y_ticks = y_ticks_for(picture.top_us, scene.y_ticks, plot_height)
        left = max(32.0, scene.axis_width())
        right = width - 8
        scene.right = right
        scene.plot = QRectF(left, _TOP, max(right - left - scene.label_width(), 40.0), plot_height)
        self._box.setGeometry(scene.plot)
        self._box.setRange(
            xRange=(-picture.span_s, 0), yRange=(0, scene.y_ticks[-1]), padding=0, disableAutoRange=False
        )
        while len(self._lines) < len(picture.curves):
            self._lines.append(_Line(self._box))
        for line, curve in zip(self._lines, picture.curves, strict=False):
            line.draw(curve, self.look, picture.dimmed)
        for line in self._lines[len(picture.curves) :]:
            line.hide()
        whole = QRectF(0, 0, width, height)
        self._frame.cover(whole)
        self._overlay.cover(whole)
        self._place_hover()
        self.viewport().update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if hasattr(self, "_overlay"):
            self._redraw()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        # Each move would repaint every curve: 30 times a second is smooth enough.
        self._hover_at = event.position().x()
        if not self._hover_timer.isActive():
            self._hover_timer.start()

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._hover_at = None
        self._hover()

    def _hover(self) -> None:
        self._place_hover()
        self._overlay.update()

    def _place_hover(self) -> None:
        scene, plot = self._scene, self._scene.plot
        at, scene.hover = self._hover_at, None
        if at is not None and self._snapshot is not None and plot.left() <= at <= plot.right() + 6:
            seconds = (at - plot.right()) / plot.width() * scene.picture.span_s
            scene.hover = reading(scene.picture, self._snapshot, seconds)

    def close(self) -> bool:
        # pyqtgraph's own also takes the scene and the viewport apart, under items that are still held.
        return QGraphicsView.close(self)

    def wheelEvent(self, event: object) -> None:
        """The chart does not zoom; let the page scroll."""
        event.ignore()  # type: ignore[attr-defined]


def _why_empty(snapshot: Snapshot, picture: Picture) -> str:
    if picture.curves:
        return ""
    record = snapshot.record
    if record is None:
        return "No workload has been started"
    taken = [s for name, s in record.series.items() if not name.startswith("@") and len(s)]
    if any(not np.isfinite(s.seconds).any() or not (s.seconds > 0).any() for s in taken):
        return f"{number(sum(len(s) for s in taken))} samples, none of which an axis can show"
    if taken:
        return "No sample in this span of time"
    if snapshot.stale_s is not None:
        return "The worker has not answered yet"
    if snapshot.paused:
        return "Paused before the first sample"
    return "Waiting for the first sample" if snapshot.running else "This recording holds no samples"
