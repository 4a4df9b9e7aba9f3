"""Lists of facts: a label, what was found, and at the right what belongs to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QRectF, QSize
from PySide6.QtGui import QHelpEvent, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from app.gui.charts.painting import LEFT, RIGHT, width_of, write
from app.gui.icons import draw_icon
from app.gui.parts.look import Look, Part
from app.gui.theme import CONTROL_RADIUS


@dataclass(frozen=True)
class Fact:
    """`glyph` stands before the label (`role` colours it), `trailing` at the right in `trailing_role`."""

    label: str
    value: str
    trailing: str = ""
    glyph: str = ""
    role: str = "ok"
    bold: bool = False
    trailing_role: str = "text_tertiary"
    trailing_mono: bool = False
    trailing_bold: bool = True
    mono: bool = False


class FactList(QWidget, Part):
    """One line a fact. What is cut shows the whole in its tooltip."""

    def __init__(self, look: Look, name: str, label_width: int = 92, row: int = 24) -> None:
        super().__init__()
        self._facts: tuple[Fact, ...] = ()
        self._label_width, self._row = label_width, row
        self.setAccessibleName(name)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.set_look(look)

    def show_facts(self, facts: Sequence[Fact]) -> None:
        new = tuple(facts)
        if new != self._facts:
            self._facts = new
            self.setAccessibleDescription(
                "; ".join(f"{f.label}: {f.value} {f.trailing}".strip() for f in new)
            )
            self.updateGeometry()
            self.update()

    @property
    def facts(self) -> tuple[Fact, ...]:
        return self._facts

    def _pitch(self) -> int:
        return self._row - 3 if self.look.small else self._row

    def sizeHint(self) -> QSize:
        return QSize(240, self._pitch() * max(len(self._facts), 1))

    def minimumSizeHint(self) -> QSize:
        return QSize(140, self._pitch() * max(len(self._facts), 1))

    def _labels(self) -> float:
        widest = max((width_of(f.label, self.look.font(12)) for f in self._facts), default=0.0)
        return max(min(self._label_width, self.width() * 0.3), widest + 12)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        look, pitch = self.look, self._pitch()
        labels = self._labels()
        glyphs = 22 if any(fact.glyph for fact in self._facts) else 0
        for index, fact in enumerate(self._facts):
            row = QRectF(0, index * pitch, self.width(), pitch)
            if fact.glyph:
                place = QRectF(row.left(), row.center().y() - 7, 14, 14)
                draw_icon(painter, fact.glyph, place, look.colour(fact.role))
            row.setLeft(glyphs)
            label = QRectF(row.left(), row.top(), labels - 8, pitch)
            write(painter, label, fact.label, look.font(12), look.colour("text_tertiary"), LEFT)
            end = row.right()
            if fact.trailing:
                bold = fact.trailing_bold and not fact.trailing_mono
                font = look.font(12, 600 if bold else 400, fact.trailing_mono)
                width = width_of(fact.trailing, font)
                place = QRectF(end - width - 1, row.top(), width + 1, pitch)
                write(painter, place, fact.trailing, font, look.colour(fact.trailing_role), RIGHT)
                end -= width + 12
            left = row.left() + labels
            font = look.font(12, mono=True) if fact.mono else look.font(13, 600 if fact.bold else 400)
            place = QRectF(left, row.top(), max(end - left, 0), pitch)
            write(painter, place, fact.value, font, look.colour("text"), LEFT, may_elide=True)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            index = event.pos().y() // max(self._pitch(), 1)
            if 0 <= index < len(self._facts):
                QToolTip.showText(event.globalPos(), self._facts[index].value, self)
            return True
        return super().event(event)


class CodeWords(QWidget, Part):
    """Short words of code, each in a box, over as many lines as they need."""

    _HEIGHT, _GAP = 22, 6

    def __init__(self, look: Look, name: str) -> None:
        super().__init__()
        self._words: tuple[str, ...] = ()
        self.setAccessibleName(name)
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setSizePolicy(policy)
        self.set_look(look)

    def show_words(self, words: Sequence[str]) -> None:
        if tuple(words) != self._words:
            self._words = tuple(words)
            self.setAccessibleDescription(" ".join(words))
            self._fit()

    def restyle(self) -> None:
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _places(self) -> list[tuple[str, QRectF]]:
        font = self.look.font(12, mono=True)
        x = y = 0.0
        places = []
        for word in self._words:
            width = min(width_of(word, font) + 13, float(self.width()))
            if x and x + width > self.width():
                x, y = 0.0, y + self._HEIGHT + self._GAP
            places.append((word, QRectF(x, y, width, self._HEIGHT)))
            x += width + self._GAP
        return places

    def _fit(self) -> None:
        places = self._places()
        height = round(places[-1][1].bottom()) + 1 if places else 0
        if height != self.height() or self.minimumHeight() != height:
            self.setFixedHeight(height)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        look = self.look
        for word, place in self._places():
            painter.setPen(QPen(look.colour("hairline"), 1))
            painter.setBrush(look.colour("raised"))
            painter.drawRoundedRect(
                place.adjusted(0.5, 0.5, -0.5, -0.5), CONTROL_RADIUS - 2, CONTROL_RADIUS - 2
            )
            inner = place.adjusted(6, 0, -6, 0)
            write(painter, inner, word, look.font(12, mono=True), look.colour("text"), LEFT, may_elide=True)
