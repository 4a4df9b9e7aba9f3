"""Icons, drawn: 16 px, strokes of 1.5 px with round ends. Nothing is fetched or shipped as a picture."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen

STROKE = 1.5
SIZE = 16.0


class Icon:
    """Two paths in a 16 px square: one stroked, one filled."""

    def __init__(self) -> None:
        self.lines = QPainterPath()
        self.solid = QPainterPath()

    def line(self, *points: tuple[float, float]) -> Icon:
        self.lines.moveTo(*points[0])
        for point in points[1:]:
            self.lines.lineTo(*point)
        return self

    def circle(self, x: float, y: float, radius: float) -> Icon:
        self.lines.addEllipse(QPointF(x, y), radius, radius)
        return self

    def box(self, x: float, y: float, width: float, height: float, radius: float = 1.5) -> Icon:
        self.lines.addRoundedRect(QRectF(x, y, width, height), radius, radius)
        return self

    def arc(self, x: float, y: float, radius: float, start: float, sweep: float) -> Icon:
        """Degrees, counter-clockwise from three o'clock."""
        rect = QRectF(x - radius, y - radius, 2 * radius, 2 * radius)
        self.lines.arcMoveTo(rect, start)
        self.lines.arcTo(rect, start, sweep)
        return self

    def dot(self, x: float, y: float, radius: float) -> Icon:
        self.solid.addEllipse(QPointF(x, y), radius, radius)
        return self

    def fill(self, *points: tuple[float, float]) -> Icon:
        self.solid.moveTo(*points[0])
        for point in points[1:]:
            self.solid.lineTo(*point)
        self.solid.closeSubpath()
        return self

    def bar(self, x: float, y: float, width: float, height: float, radius: float = 1) -> Icon:
        self.solid.addRoundedRect(QRectF(x, y, width, height), radius, radius)
        return self


def _pins() -> Icon:
    icon = Icon().box(4, 4, 8, 8, 1.5).box(6.5, 6.5, 3, 3, 0.5)
    for at in (6.0, 10.0):
        icon.line((at, 1.5), (at, 4)).line((at, 12), (at, 14.5))
        icon.line((1.5, at), (4, at)).line((12, at), (14.5, at))
    return icon


def _sliders() -> Icon:
    icon = Icon()
    for y, x in ((4.0, 10.0), (8.0, 5.5), (12.0, 9.0)):
        icon.line((2, y), (x - 1.8, y)).line((x + 1.8, y), (14, y)).circle(x, y, 1.6)
    return icon


_DRAWN: dict[str, Callable[[], Icon]] = {
    "menu": lambda: Icon().line((2, 4), (14, 4)).line((2, 8), (14, 8)).line((2, 12), (14, 12)),
    "pause": lambda: Icon().bar(4, 3, 2.6, 10, 0.8).bar(9.4, 3, 2.6, 10, 0.8),
    "play": lambda: Icon().fill((4.5, 2.8), (13, 8), (4.5, 13.2)),
    "restart": lambda: (
        Icon().arc(8, 8, 5.3, -115, -295).line((13.3, 12.6), (13.3, 8.6)).line((9.6, 9.4), (13.2, 9.0))
    ),
    "target": lambda: Icon().circle(8, 8, 5.6).dot(8, 8, 2),
    "tick": lambda: Icon().line((3.4, 8.4), (6.6, 11.6), (12.8, 4.8)),
    "cross": lambda: Icon().line((4, 4), (12, 12)).line((12, 4), (4, 12)),
    "error": lambda: Icon().circle(8, 8, 6).line((6, 6), (10, 10)).line((10, 6), (6, 10)),
    "warning": lambda: (
        Icon().line((8, 2.4), (14.2, 13), (1.8, 13), (8, 2.4)).line((8, 6.4), (8, 9.2)).dot(8, 11.2, 0.85)
    ),
    "info": lambda: Icon().circle(8, 8, 6).line((8, 7.4), (8, 11)).dot(8, 5.1, 0.85),
    "battery": lambda: (
        Icon().box(1.5, 4.5, 11, 7, 2).line((14.6, 7), (14.6, 9)).bar(3.4, 6.4, 3.6, 3.2, 0.8)
    ),
    "lock": lambda: Icon().box(3.5, 7, 9, 6.5, 1.5).line((5.4, 7), (5.4, 5)).arc(8, 5, 2.6, 180, -180)
    .line((10.6, 5), (10.6, 7)),
    "chevron-down": lambda: Icon().line((4.5, 6.4), (8, 9.9), (11.5, 6.4)),
    "chevron-up": lambda: Icon().line((4.5, 9.6), (8, 6.1), (11.5, 9.6)),
    "chevron-right": lambda: Icon().line((6.2, 4.5), (9.7, 8), (6.2, 11.5)),
    "chevron-left": lambda: Icon().line((9.8, 4.5), (6.3, 8), (9.8, 11.5)),
    "export": lambda: (
        Icon().line((8, 10), (8, 2.4)).line((4.9, 5.3), (8, 2.2), (11.1, 5.3))
        .line((2.5, 9.5), (2.5, 13), (13.5, 13), (13.5, 9.5))
    ),
    "sweep": lambda: Icon().box(2, 2, 5, 5, 1).box(9, 2, 5, 5, 1).box(2, 9, 5, 5, 1).box(9, 9, 5, 5, 1),
    "camera": lambda: (
        Icon().line((1.8, 5.6), (1.8, 12.8), (14.2, 12.8), (14.2, 4.8), (11.2, 4.8), (10.2, 2.9), (5.8, 2.9))
        .line((5.8, 2.9), (4.8, 4.8), (1.8, 4.8), (1.8, 5.6)).circle(8, 8.6, 2.3)
    ),
    "cpu": _pins,
    "gpu": lambda: (
        Icon().box(1.6, 4, 12.8, 7.4, 1.2).circle(5.4, 7.7, 1.7).circle(10.6, 7.7, 1.7).line((3.5, 13.6), (9, 13.6))
    ),
    "clock": lambda: Icon().circle(8, 8, 6).line((8, 4.6), (8, 8), (10.4, 9.4)),
    "copy": lambda: (
        Icon().box(5.5, 5.5, 8.2, 8.2, 1.6)
        .line((3.3, 10.4), (2.4, 10.4), (2.4, 2.4), (10.4, 2.4), (10.4, 3.3))
    ),
    "arrow-up": lambda: Icon().line((8, 13), (8, 3.2)).line((4.2, 7), (8, 3.2), (11.8, 7)),
    "arrow-down": lambda: Icon().line((8, 3), (8, 12.8)).line((4.2, 9), (8, 12.8), (11.8, 9)),
    "arrow-right": lambda: Icon().line((1.5, 8), (14, 8)).line((10, 4.2), (14, 8), (10, 11.8)),
    "equals": lambda: Icon().line((3, 5.8), (13, 5.8)).line((3, 10.2), (13, 10.2)),
    "plus": lambda: Icon().line((8, 3), (8, 13)).line((3, 8), (13, 8)),
    "minus": lambda: Icon().line((3, 8), (13, 8)),
    "folder": lambda: (
        Icon().line((1.8, 12.8), (1.8, 3.4), (6.2, 3.4), (7.8, 5.2), (14.2, 5.2), (14.2, 12.8), (1.8, 12.8))
    ),
    "file": lambda: (
        Icon().line((3.5, 14), (3.5, 2), (9.3, 2), (12.5, 5.2), (12.5, 14), (3.5, 14))
        .line((9, 2.2), (9, 5.5), (12.3, 5.5))
    ),
    "more": lambda: Icon().dot(3.5, 8, 1.2).dot(8, 8, 1.2).dot(12.5, 8, 1.2),
    "sliders": _sliders,
    "keyboard": lambda: (
        Icon().box(1.5, 4, 13, 8.5, 1.5).dot(4.5, 6.9, 0.75).dot(8, 6.9, 0.75).dot(11.5, 6.9, 0.75)
        .line((5, 9.9), (11, 9.9))
    ),
    "theme": lambda: Icon().circle(8, 8, 5.8).arc(8, 8, 3, 90, 180),
    "terminal": lambda: Icon().line((2.5, 4), (6.5, 8), (2.5, 12)).line((8, 12.4), (13.5, 12.4)),
    "rebuild": lambda: Icon().arc(8, 8, 5.3, 30, 260).line((12.8, 1.9), (12.7, 5.5), (9.2, 5.4)),
}  # fmt: skip

NAMES = tuple(_DRAWN)


@cache
def icon(name: str) -> Icon:
    """The paths of an icon. Raises `ValueError` for a name that is not drawn."""
    if name not in _DRAWN:
        raise ValueError(f"no icon is called {name!r}")
    return _DRAWN[name]()


def draw_icon(painter: QPainter, name: str, rect: QRectF, colour: QColor) -> None:
    """Draw an icon into the middle of `rect`, as large as its smaller side; the stroke keeps its weight."""
    drawn = icon(name)
    side = min(rect.width(), rect.height())
    scale = side / SIZE
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.translate(rect.center().x() - side / 2, rect.center().y() - side / 2)
    painter.scale(scale, scale)
    pen = QPen(colour, STROKE / scale)
    pen.setCapStyle(Qt.PenCapStyle.RoundCap)
    pen.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
    painter.setPen(pen)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawPath(drawn.lines)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colour)
    painter.drawPath(drawn.solid)
    painter.restore()


def draw_logo(painter: QPainter, rect: QRectF, lines: QColor, block: QColor) -> None:
    """Many short calls becoming one: three bars and a block."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    scale = min(rect.width() / 20, rect.height() / 14)
    painter.translate(rect.center().x() - 10 * scale, rect.center().y() - 7 * scale)
    painter.scale(scale, scale)
    painter.setBrush(lines)
    for y in (0.0, 5.5, 11.0):
        painter.drawRoundedRect(QRectF(0, y, 6, 3), 1.5, 1.5)
    painter.setBrush(block)
    painter.drawRoundedRect(QRectF(9, 0, 11, 14), 3, 3)
    painter.restore()
