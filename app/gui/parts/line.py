"""A line of unlike pieces on one baseline, with shorter versions of itself for narrow places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.gui.icons import draw_icon
from app.gui.marks import draw_mark
from app.gui.parts.chips import chip_width, draw_chip
from app.gui.parts.look import Look, Part
from app.gui.parts.text import record_overflow
from app.gui.theme import CHIP_HEIGHT


@dataclass(frozen=True)
class Text:
    text: str
    size: int = 12
    weight: int = 400
    role: str = "text_secondary"
    mono: bool = False
    gap: float = 0


@dataclass(frozen=True)
class Glyph:
    name: str
    role: str = "text_secondary"
    size: float = 16
    gap: float = 6


@dataclass(frozen=True)
class Mark:
    shape: str
    series: str
    size: float = 10
    hollow: bool = False
    gap: float = 8


@dataclass(frozen=True)
class ChipPiece:
    text: str
    state: str
    glyph: str = ""
    gap: float = 10


@dataclass(frozen=True)
class Dot:
    role: str
    size: float = 8
    gap: float = 8


@dataclass(frozen=True)
class Hosted:
    """The place of a child widget, by name; `rise` moves it up from where its middle would be."""

    name: str
    gap: float = 8
    on_baseline: bool = False


Piece: TypeAlias = Text | Glyph | Mark | ChipPiece | Dot | Hosted
Level: TypeAlias = tuple[Piece, ...]


def joined(*parts: Level, size: int = 12) -> Level:
    """Parts with a middle dot between them."""
    line: list[Piece] = []
    for part in parts:
        if part and line:
            line.append(Text("  ·  ", size, 400, "text_tertiary"))
        line.extend(part)
    return tuple(line)


class PieceLine(QWidget, Part):
    """Shows the first of its levels that fits its width; levels go from the longest to the shortest.

    A level after the first must leave something out. If even the last does not fit, it is cut at the
    right and recorded as an overflow.
    """

    def __init__(self, look: Look, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.levels: tuple[Level, ...] = ((),)
        self._hosted: dict[str, QWidget] = {}
        self._shown = 0
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Expanding)
        self.set_look(look)

    def host(self, name: str, widget: QWidget) -> None:
        """Give a child widget a name by which pieces place it. It is hidden until one does."""
        widget.setParent(self)
        widget.hide()
        self._hosted[name] = widget

    def set_levels(self, levels: Sequence[Level]) -> None:
        new = tuple(levels)
        if new != self.levels:
            self.levels = new
            self.setAccessibleName(self.text(0))
            self.updateGeometry()
            self.arrange()
            self.update()

    @property
    def shown(self) -> Level:
        """The level that is drawn now."""
        return self.levels[self._shown]

    def text(self, level: int | None = None) -> str:
        """The words of the level shown, or of one."""
        words = []
        for piece in self.shown if level is None else self.levels[level]:
            if isinstance(piece, (Text, ChipPiece)):
                words.append(piece.text)
            elif isinstance(piece, Hosted):
                widget = self._hosted[piece.name]
                words.append(str(widget.property("text") or ""))
        return " ".join(" ".join(words).split())

    def width_of(self, level: Level) -> float:
        return sum(self._width(piece) + piece.gap for piece in level) - (level[-1].gap if level else 0)

    def sizeHint(self) -> QSize:
        return QSize(int(self.width_of(self.levels[0])) + 1, 24)

    def minimumSizeHint(self) -> QSize:
        return QSize(0, 20)

    def restyle(self) -> None:
        self.arrange()

    def resizeEvent(self, event: QResizeEvent) -> None:
        self.arrange()

    def arrange(self) -> None:
        """Choose the level and place the hosted widgets."""
        fitting = (i for i, level in enumerate(self.levels) if self.width_of(level) <= self.width() + 0.5)
        self._shown = next(fitting, len(self.levels) - 1)
        x = 0.0
        placed = set()
        baseline = self._baseline()
        for piece in self.shown:
            if isinstance(piece, Hosted):
                widget = self._hosted[piece.name]
                size = widget.sizeHint()
                if piece.on_baseline:
                    top = baseline - getattr(widget, "ascent", size.height() / 2)
                else:
                    top = baseline - self._rise() - size.height() / 2
                widget.setGeometry(round(x), round(top), size.width(), size.height())
                placed.add(piece.name)
            x += self._width(piece) + piece.gap
        for name, widget in self._hosted.items():
            widget.setVisible(name in placed)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        needed = self.width_of(self.shown)
        if needed > self.width() + 0.5:
            record_overflow(self.text(), needed, self.width())
        baseline = self._baseline()
        middle = baseline - self._rise()
        x = 0.0
        for piece in self.shown:
            width = self._width(piece)
            self._draw(painter, piece, x, width, baseline, middle)
            x += width + piece.gap

    def _draw(
        self, painter: QPainter, piece: Piece, x: float, width: float, baseline: float, middle: float
    ) -> None:
        look = self.look
        if isinstance(piece, Text):
            painter.setFont(self._font(piece))
            painter.setPen(look.colour(piece.role))
            text = piece.text
            room = self.width() - x
            if width > room + 0.5:
                text = QFontMetricsF(painter.font()).elidedText(
                    text, Qt.TextElideMode.ElideRight, max(room, 0)
                )
            painter.drawText(QPointF(x, baseline), text)
        elif isinstance(piece, Glyph):
            box = QRectF(x, middle - piece.size / 2, piece.size, piece.size)
            draw_icon(painter, piece.name, box, look.colour(piece.role))
        elif isinstance(piece, Mark):
            centre = QPointF(x + piece.size / 2, middle)
            draw_mark(painter, piece.shape, centre, piece.size, look.series(piece.series), piece.hollow)
        elif isinstance(piece, Dot):
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(look.colour(piece.role))
            painter.drawEllipse(QPointF(x + piece.size / 2, middle), piece.size / 2, piece.size / 2)
        elif isinstance(piece, ChipPiece):
            box = QRectF(x, middle - CHIP_HEIGHT / 2, width, CHIP_HEIGHT)
            draw_chip(painter, look, box, piece.text, piece.state, piece.glyph)

    def _font(self, piece: Text) -> QFont:
        return self.look.font(piece.size, piece.weight, piece.mono)

    def _width(self, piece: Piece) -> float:
        if isinstance(piece, Text):
            return QFontMetricsF(self._font(piece)).horizontalAdvance(piece.text)
        if isinstance(piece, ChipPiece):
            return chip_width(self.look, piece.text, piece.glyph)
        if isinstance(piece, Hosted):
            return self._hosted[piece.name].sizeHint().width()
        return piece.size

    def _main_font(self) -> QFont:
        """The smallest text decides the middle: marks stand beside words, not beside the number."""
        texts = [piece for piece in self.shown if isinstance(piece, Text)]
        if not texts:
            return self.look.font(12)
        smallest = min(texts, key=lambda piece: piece.size)
        return self._font(smallest)

    def _rise(self) -> float:
        return QFontMetricsF(self._main_font()).capHeight() / 2

    def _baseline(self) -> float:
        tallest = QFontMetricsF(self._main_font()).capHeight()
        return self.height() / 2 + tallest / 2
