"""How a contender looks in every chart and table: name, colour and shape."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from PySide6.QtCore import QPointF
from PySide6.QtGui import QColor, QPainter

from app.core.catalog import contender
from app.gui.marks import draw_mark
from app.gui.theme import Theme


@dataclass(frozen=True)
class Style:
    """`hollow` marks an earlier build of the extension."""

    title: str
    short: str
    colour: QColor
    shape: str
    hollow: bool = False

    def mark(
        self,
        painter: QPainter,
        centre: QPointF,
        size: float,
        colour: QColor | None = None,
        hollow: bool = False,
    ) -> None:
        """Draw the mark, in `colour` where the state of the run overrides the contender's own."""
        draw_mark(painter, self.shape, centre, size, colour or self.colour, hollow or self.hollow)


@lru_cache(maxsize=256)
def style_of(implementation: str, theme: Theme) -> Style:
    """The style of a contender; one of an earlier build, `id@key`, keeps its contender's colour, hollow."""
    name, _, key = implementation.partition("@")
    entry = contender(name)
    colour = QColor(entry.dark if theme.name == "dark" else entry.light)
    if key:
        return Style(f"{entry.title}, build {key[:4]}", f"{entry.short} {key[:4]}", colour, entry.shape, True)
    return Style(entry.title, entry.short, colour, entry.shape)


def faded(colour: QColor, opacity: float) -> QColor:
    """The same colour, translucent."""
    result = QColor(colour)
    result.setAlphaF(opacity)
    return result
