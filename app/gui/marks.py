"""The shapes that tell contenders apart where colour does not."""

from __future__ import annotations

import math

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QPainter, QPainterPath, QPen

_HOLE = 0.5
"""A hollow mark's hole, as a share of its size: at 10 px a line of 2.5 px stays."""


def mark_path(shape: str, size: float) -> QPainterPath:
    """The outline of a mark of `size` px, centred on the origin. Areas look equal, widths are not."""
    if shape == "ring" or shape.startswith("hollow-"):
        solid = "circle" if shape == "ring" else shape.removeprefix("hollow-")
        return mark_path(solid, size).subtracted(mark_path(solid, size * _HOLE))
    path = QPainterPath()
    half = size / 2
    if shape == "circle":
        path.addEllipse(QPointF(0, 0), half, half)
    elif shape == "square":
        side = half * 0.9
        path.addRoundedRect(QRectF(-side, -side, 2 * side, 2 * side), 1.2, 1.2)
    elif shape == "diamond":
        _polygon(path, 4, half * 1.15, -90)
    elif shape == "triangle":
        _polygon(path, 3, half * 1.2, -90, drop=half * 0.2)
    elif shape == "hexagon":
        _polygon(path, 6, half * 1.08, -90)
    elif shape in ("plus", "cross"):
        arm = half * 0.42
        path.setFillRule(Qt.FillRule.WindingFill)
        path.addRect(QRectF(-half * 1.05, -arm, 2.1 * half, 2 * arm))
        path.addRect(QRectF(-arm, -half * 1.05, 2 * arm, 2.1 * half))
        path = path.simplified()
        if shape == "cross":
            from PySide6.QtGui import QTransform

            path = QTransform().rotate(45).map(path)
    else:
        raise ValueError(f"no mark is called {shape!r}")
    return path


def draw_mark(
    painter: QPainter, shape: str, centre: QPointF, size: float, colour: QColor, hollow: bool = False
) -> None:
    """Draw a mark; `hollow` for a contender that does not run."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.translate(centre)
    painter.setPen(QPen(colour, 1.5) if hollow else Qt.PenStyle.NoPen)
    painter.setBrush(Qt.BrushStyle.NoBrush if hollow else QBrush(colour))
    painter.drawPath(mark_path(shape, size - 1.5 if hollow else size))
    painter.restore()


def _polygon(path: QPainterPath, corners: int, radius: float, first_degrees: float, drop: float = 0) -> None:
    for corner in range(corners):
        angle = math.radians(first_degrees + 360 * corner / corners)
        point = QPointF(radius * math.cos(angle), radius * math.sin(angle) + drop)
        if corner == 0:
            path.moveTo(point)
        else:
            path.lineTo(point)
    path.closeSubpath()
