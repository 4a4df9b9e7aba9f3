"""What the verdict bar is put together from: names that are pickers, and the panels at its right."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from app.gui.icons import draw_icon
from app.gui.parts.buttons import Button, TextLink
from app.gui.parts.chips import ProgressBar
from app.gui.parts.look import Look, Part
from app.gui.parts.text import RIGHT, Label, draw_text, width_of
from app.gui.verdict_model import Action, BuildProgress, Figure, Withheld

_PADDING = 24
_ARROW = 18


class NamePicker(QPushButton, Part):
    """A contender's name in the sentence, dotted below: a click picks another."""

    ring_radius = 4.0

    def __init__(self, look: Look, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._role = name
        self.dimmed = False
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setToolTip(f"Pick another {name}")
        self.set_look(look)

    def set_name(self, text: str) -> None:
        if text != self.text():
            self.setText(text)
            self.setAccessibleName(f"{self._role}: {text}")
            self.updateGeometry()

    def set_dimmed(self, dimmed: bool) -> None:
        if dimmed != self.dimmed:
            self.dimmed = dimmed
            self.update()

    def text_font(self) -> QFont:
        return self.look.font(self.look.sizes.sentence, 600)

    @property
    def ascent(self) -> float:
        """From the widget's top to the baseline of its text."""
        return QFontMetricsF(self.text_font()).ascent()

    def sizeHint(self) -> QSize:
        metrics = QFontMetricsF(self.text_font())
        return QSize(int(metrics.horizontalAdvance(self.text()) + 1.99), int(metrics.height()) + 2)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        look = self.look
        painter.setFont(self.text_font())
        painter.setPen(look.colour("text_secondary" if self.dimmed else "text"))
        painter.drawText(QPointF(0, self.ascent), self.text())
        pen = QPen(look.colour("text" if self.underMouse() else "text_tertiary"), 1)
        pen.setDashPattern([2, 2])
        painter.setPen(pen)
        y = int(self.ascent) + 4.5
        painter.drawLine(QPointF(0, y), QPointF(self.width(), y))


class Figures(QWidget, Part):
    """The causes, side by side: caption, before → after, change."""

    def __init__(self, look: Look, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.figures: tuple[Figure, ...] = ()
        self.shown = 0
        self.dimmed = False
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Expanding)
        self.set_look(look)

    def show_figures(self, figures: tuple[Figure, ...], dimmed: bool) -> None:
        if (figures, dimmed) != (self.figures, self.dimmed):
            self.figures, self.dimmed = figures, dimmed
            self.setToolTip("\n".join(self.texts()))
            self.updateGeometry()
            self.update()

    def texts(self) -> list[str]:
        """One text per figure, as tests and tooltips read it."""
        return [f"{f.title}: {' → '.join(f.texts())} ({f.change})" for f in self.figures]

    def set_shown(self, count: int) -> None:
        """Only the first `count` of them."""
        if count != self.shown:
            self.shown = count
            self.updateGeometry()
            self.update()

    def visible_figures(self) -> tuple[Figure, ...]:
        return self.figures[: self.shown]

    def _caption(self, figure: Figure) -> str:
        return figure.short if self.look.small else figure.title

    def column_width(self, figure: Figure) -> float:
        look, size = self.look, self.look.sizes.figure
        before, after = figure.texts()
        value = width_of(before, look.font(size, 500)) + _ARROW + 16 + width_of(after, look.font(size, 600))
        caption = width_of(self._caption(figure), look.font(12))
        change = width_of(figure.change, look.font(12, 500))
        padding = _PADDING if not look.small else 16
        return max(value, caption, change, 112 if not look.small else 80) + 2 * padding

    def width_for(self, count: int) -> int:
        return int(sum(self.column_width(f) for f in self.figures[:count]) + 0.99)

    def sizeHint(self) -> QSize:
        return QSize(self.width_for(self.shown), self.look.sizes.verdict)

    def minimumSizeHint(self) -> QSize:
        return QSize(self.sizeHint().width(), 40)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        x = 0.0
        for figure in self.visible_figures():
            width = self.column_width(figure)
            self._draw(painter, figure, x, width)
            x += width

    def _draw(self, painter: QPainter, figure: Figure, x: float, width: float) -> None:
        look = self.look
        small = look.small
        painter.setPen(QPen(look.colour("hairline"), 1))
        painter.drawLine(QPointF(x + 0.5, 20), QPointF(x + 0.5, self.height() - 20))
        left = x + (_PADDING if not small else 16)
        middle = self.height() / 2
        offset = 26 if not small else 25
        painter.setFont(look.font(12))
        painter.setPen(look.colour("text_secondary"))
        room = width - _PADDING
        draw_text(painter, QRectF(left, middle - offset - 9, room, 18), self._caption(figure))
        before, after = figure.texts()
        size = look.sizes.figure
        painter.setFont(look.font(size, 500))
        draw_text(painter, QRectF(left, middle - 15, room, 30), before)
        at = left + width_of(before, painter.font()) + 8
        draw_icon(painter, "arrow-right", QRectF(at, middle - 8, _ARROW, 17), look.colour("text_tertiary"))
        painter.setFont(look.font(size, 600))
        painter.setPen(look.colour("text_secondary" if self.dimmed or not figure.known else "text"))
        draw_text(painter, QRectF(at + _ARROW + 8, middle - 15, room, 30), after)
        painter.setFont(look.font(12, 500))
        painter.setPen(look.colour("text_secondary"))
        draw_text(painter, QRectF(left, middle + offset - 11, room, 18), figure.change)


class BuildPanel(QWidget, Part):
    """A build under way: what it does, for how long, how far, and Cancel."""

    cancelled = Signal()

    def __init__(self, look: Look, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.look = look
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 12, 4, 12)
        column.setSpacing(6)
        self.title = Label(look, "", 12, 600)
        self.elapsed = Label(look, "", 12, 400, "text_secondary", RIGHT)
        self.bar = ProgressBar(look)
        self.source = Label(look, "", 11, 400, "text_secondary", mono=True, may_elide=True)
        self.cancel = TextLink(look, "Cancel", 12, 600, plain=True)
        self.cancel.clicked.connect(self.cancelled)
        first, last = QHBoxLayout(), QHBoxLayout()
        first.addWidget(self.title)
        first.addStretch(1)
        first.addWidget(self.elapsed)
        last.addWidget(self.source, 1)
        last.addWidget(self.cancel)
        column.addStretch(1)
        column.addLayout(first)
        column.addWidget(self.bar)
        column.addLayout(last)
        column.addStretch(1)
        self.restyle()

    def restyle(self) -> None:
        self.setFixedWidth(272 if not self.look.small else 220)

    def show_progress(self, progress: BuildProgress) -> None:
        self.title.setText(progress.title)
        self.elapsed.setText(progress.elapsed)
        self.bar.set_share(progress.share or 0.0)
        self.source.setText(progress.source)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setPen(QPen(self.look.colour("hairline"), 1))
        painter.drawLine(QPointF(0.5, 20), QPointF(0.5, self.height() - 20))


class WithheldPanel(QWidget, Part):
    """In the place of the figure: that it is withheld, and what lifts that."""

    def __init__(self, look: Look, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._until = ""
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Expanding)
        self.set_look(look)

    def show_withheld(self, withheld: Withheld) -> None:
        if withheld.until != self._until:
            self._until = withheld.until
            self.setAccessibleName(f"Speed-up withheld {withheld.until}")
            self.updateGeometry()
            self.update()

    def sizeHint(self) -> QSize:
        wide = max(
            width_of(self._until, self.look.font(12, 500)),
            width_of("withheld", self.look.font(self.look.sizes.figure, 600)) + 26,
        )
        return QSize(int(wide) + 2 * _PADDING, self.look.sizes.verdict)

    def minimumSizeHint(self) -> QSize:
        return QSize(self.sizeHint().width(), 40)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        look = self.look
        painter.setPen(QPen(look.colour("hairline"), 1))
        painter.drawLine(QPointF(0.5, 20), QPointF(0.5, self.height() - 20))
        middle, left = self.height() / 2, float(_PADDING)
        room = self.width() - left
        painter.setFont(look.font(12))
        painter.setPen(look.colour("text_secondary"))
        draw_text(painter, QRectF(left, middle - 35, room, 18), "Speed-up")
        draw_icon(painter, "lock", QRectF(left - 2, middle - 10, 20, 20), look.colour("text_secondary"))
        painter.setFont(look.font(look.sizes.figure, 600))
        draw_text(painter, QRectF(left + 24, middle - 15, room - 24, 30), "withheld")
        painter.setFont(look.font(12, 500))
        draw_text(painter, QRectF(left, middle + 15, room, 18), self._until)


class Buttons(QWidget):
    """The bar's buttons, kept while they stay the same."""

    acted = Signal(str)

    def __init__(self, look: Look, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._actions: tuple[Action, ...] = ()
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(16, 0, 8, 0)
        self._row.setSpacing(8)
        self.buttons: list[Button] = []
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Expanding)

    def show_actions(self, look: Look, actions: tuple[Action, ...]) -> None:
        if actions == self._actions:
            return
        self._actions = actions
        for button in self.buttons:
            self._row.removeWidget(button)
            button.hide()
            button.deleteLater()
        self.buttons = []
        for action in actions:
            button = Button(look, action.title, action.icon)
            button.clicked.connect(lambda _=False, a=action.id: self.acted.emit(a))
            self._row.addWidget(button)
            self.buttons.append(button)
