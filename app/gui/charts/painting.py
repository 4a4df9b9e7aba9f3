"""What charts share when they draw in pixels: text in a font and colour, hatching, dashed lines."""

from __future__ import annotations

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QPainter, QPen

from app.gui.parts import text as parts_text
from app.gui.parts.text import CENTRE, LEFT, RIGHT, width_of

__all__ = ["CENTRE", "LEFT", "RIGHT", "dashed", "hatched", "width_of", "write"]


def write(
    painter: QPainter,
    rect: QRectF,
    text: str,
    font: QFont,
    colour: QColor,
    align: Qt.AlignmentFlag = LEFT,
    may_elide: bool = False,
) -> None:
    """One line, vertically centred; one that is cut without `may_elide` is recorded as an overflow."""
    painter.setFont(font)
    painter.setPen(colour)
    parts_text.draw_text(painter, rect, text, align, may_elide)


def hatched(
    painter: QPainter, rect: QRectF, colour: QColor, spacing: float = 5.0, width: float = 1.2
) -> None:
    """Diagonal lines over `rect`, each cut at its edges: a clip would be lost in SVG."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(colour, width, Qt.PenStyle.SolidLine, Qt.PenCapStyle.FlatCap))
    x = rect.left() - rect.height()
    x -= x % spacing
    lines = []
    while x < rect.right():
        # From (x, bottom) up to (x + height, top), cut at the left and right edge.
        left, right = max(x, rect.left()), min(x + rect.height(), rect.right())
        if right > left:
            start = QPointF(left, rect.bottom() - (left - x))
            lines.append(QLineF(start, QPointF(right, rect.bottom() - (right - x))))
        x += spacing
    painter.drawLines(lines)
    painter.restore()


def dashed(colour: QColor, width: float = 1.0) -> QPen:
    """The pen of events and limits."""
    pen = QPen(colour, width)
    pen.setDashPattern([3.0, 3.0])
    return pen
