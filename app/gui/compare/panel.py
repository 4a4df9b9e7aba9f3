"""The left panel of a comparison: the two recordings, the contenders, which workloads to show."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QEnterEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from app.core.comparison import About, Comparison
from app.gui.charts.painting import CENTRE, LEFT, RIGHT, write
from app.gui.charts.style import style_of
from app.gui.compare.opener import Side
from app.gui.compare.words import Chosen, Show, about_lines, counts
from app.gui.icons import draw_icon
from app.gui.parts.buttons import TextLink
from app.gui.parts.chips import chip_width, draw_chip
from app.gui.parts.look import Look, Part
from app.gui.parts.text import Label
from app.gui.parts.toggles import Segmented
from app.gui.theme import CARD_RADIUS, CHIP_HEIGHT, CONTROL_RADIUS
from app.gui.views.frame import scrolled, slim_bars


class SideCard(QAbstractButton, Part):
    """A recording: its letter, its name, when and where. Pressed, it asks for another file."""

    ring_radius = float(CARD_RADIUS)

    def __init__(self, look: Look, letter: str) -> None:
        super().__init__()
        self.letter = letter
        self._name, self._lines = "", ("", "")
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.set_look(look)

    def show_side(self, side: Side | None, about: About | None, power: str) -> None:
        self._name = side.name if side is not None else ""
        self._lines = about_lines(about, power) if about is not None else ("", "")
        self.setAccessibleName(f"Recording {self.letter}: {self._name}. Choose another")
        path = "" if side is None or side.path is None else f"\n{side.path}"
        self.setToolTip(f"{self._name}{path}\nChoose another")
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(200, 84 if not self.look.small else 78)

    def minimumSizeHint(self) -> QSize:
        return QSize(120, self.sizeHint().height())

    def enterEvent(self, event: QEnterEvent) -> None:
        self.update()

    def leaveEvent(self, event: QEvent) -> None:
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        look, rect = self.look, QRectF(self.rect())
        painter.setPen(QPen(look.colour("strong_line"), 1))
        painter.setBrush(look.colour("row_hover" if self.underMouse() else "card"))
        painter.drawRoundedRect(rect.adjusted(0.5, 0.5, -0.5, -0.5), CARD_RADIUS, CARD_RADIUS)
        chip = QRectF(12, 10, 24, 24)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(look.colour("raised"))
        painter.drawRoundedRect(chip, CONTROL_RADIUS, CONTROL_RADIUS)
        write(painter, chip, self.letter, look.font(13, 600), look.colour("text"), CENTRE)
        arrow = QRectF(rect.right() - 28, 14, 16, 16)
        draw_icon(painter, "chevron-down", arrow, look.colour("text_secondary"))
        name = QRectF(46, 10, arrow.left() - 52, 24)
        write(painter, name, self._name, look.font(13, 600), look.colour("text"), LEFT, may_elide=True)
        for index, (line, role) in enumerate(zip(self._lines, ("text", "text_secondary"), strict=True)):
            place = QRectF(12, rect.height() - 44 + 18 * index, rect.width() - 24, 18)
            write(painter, place, line, look.font(12), look.colour(role), LEFT, may_elide=True)


class NameRow(QAbstractButton, Part):
    """A contender of the comparison: its mark and what is to be said of it."""

    ring_radius = float(CONTROL_RADIUS)

    def __init__(self, look: Look, name: str) -> None:
        super().__init__()
        self.name = name
        self._state, self._trailing = "other", ""
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.set_look(look)

    def show_state(self, is_shown: bool, is_baseline: bool, missing: str) -> None:
        self._state = (
            "missing" if missing else "shown" if is_shown else "baseline" if is_baseline else "other"
        )
        self._trailing = missing or ("BASELINE" if is_baseline else "shown" if is_shown else "")
        self.setEnabled(not missing)
        self.setCursor(Qt.CursorShape.ArrowCursor if missing else Qt.CursorShape.PointingHandCursor)
        title = style_of(self.name, self.look.theme).title
        self.setAccessibleName(f"{title} {self._trailing}".strip())
        self._is_shown, self._is_baseline = is_shown, is_baseline
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(200, 30 if not self.look.small else 26)

    def minimumSizeHint(self) -> QSize:
        return QSize(120, self.sizeHint().height())

    def enterEvent(self, event: QEnterEvent) -> None:
        self.update()

    def leaveEvent(self, event: QEvent) -> None:
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        look, rect = self.look, QRectF(self.rect())
        missing = self._state == "missing"
        if self._is_shown or (self.underMouse() and not missing):
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(look.colour("raised" if self._is_shown else "row_hover"))
            painter.drawRoundedRect(rect, CONTROL_RADIUS, CONTROL_RADIUS)
        style = style_of(self.name, look.theme)
        colour = look.colour("disabled") if missing else None
        style.mark(painter, QPointF(13, rect.center().y()), 10, colour, hollow=missing)
        right = rect.right() - 8
        if self._is_baseline and not missing:
            width = chip_width(look, "BASELINE", "")
            box = QRectF(right - width, rect.center().y() - CHIP_HEIGHT / 2, width, CHIP_HEIGHT)
            draw_chip(painter, look, box, "BASELINE", "same", "")
            right = box.left() - 6
        elif self._trailing:
            place = QRectF(rect.center().x(), rect.top(), right - rect.center().x(), rect.height())
            write(painter, place, self._trailing, look.font(12), look.colour("text_secondary"), RIGHT)
            right -= 52 if not missing else 70
        place = QRectF(28, rect.top(), max(right - 28, 0), rect.height())
        role = "text_secondary" if missing else "text"
        font = look.font(13, 600 if self._is_shown else 400)
        write(painter, place, style.title, font, look.colour(role), LEFT, may_elide=True)


class CountRow(QWidget, Part):
    """A label and a number at the right."""

    def __init__(self, look: Look, label: str) -> None:
        super().__init__()
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(Label(look, label, 12, 400, "text_secondary"))
        row.addStretch(1)
        self.value = Label(look, "0", 12, 400, "text", RIGHT)
        row.addWidget(self.value)
        self.set_look(look)


class Rule(QWidget, Part):
    """A hairline across the panel."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self.setFixedHeight(1)
        self.set_look(look)

    def paintEvent(self, event: QPaintEvent) -> None:
        QPainter(self).fillRect(self.rect(), self.look.colour("hairline"))


class ComparePanel(QWidget, Part):
    """`side_pressed` tells `a` or `b`, `shown` a contender, `filtered` which workloads."""

    side_pressed = Signal(str)
    swapped = Signal()
    shown = Signal(str)
    filtered = Signal(str)

    def __init__(self, look: Look) -> None:
        super().__init__()
        self.look = look
        self.a, self.b = SideCard(look, "A"), SideCard(look, "B")
        self.swap = TextLink(look, "Swap")
        self.both = Label(look, "", 12, 400, "text_secondary", RIGHT)
        self.filter = Segmented(
            look, (("all", "All"), ("changed", "Changed"), ("unsure", "Unsure")), "Workloads", 8
        )
        self.only_a, self.only_b = CountRow(look, "A only"), CountRow(look, "B only")
        self.rows: list[NameRow] = []
        inner = QWidget()
        self._column = QVBoxLayout(inner)
        self._column.setSpacing(8)
        self._head("Recordings", self.swap)
        self._column.addWidget(self.a)
        self._column.addWidget(self.b)
        self._column.addWidget(Rule(look))
        self._head("Implementations", self.both)
        self._names = QVBoxLayout()
        self._names.setSpacing(2)
        self._column.addLayout(self._names)
        self._column.addWidget(Rule(look))
        self._head("Workloads", None)
        self._column.addWidget(self.filter)
        self._column.addWidget(self.only_a)
        self._column.addWidget(self.only_b)
        self._column.addStretch(1)
        self._area = scrolled(inner)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 1, 0)
        outer.addWidget(self._area)
        self.a.clicked.connect(lambda: self.side_pressed.emit("a"))
        self.b.clicked.connect(lambda: self.side_pressed.emit("b"))
        self.swap.clicked.connect(self.swapped)
        self.filter.chosen.connect(self.filtered)
        self.restyle()

    def restyle(self) -> None:
        self.setFixedWidth(self.look.sizes.panel)
        gap = 12 if self.look.small else 16
        self._column.setContentsMargins(gap, gap, gap, gap)
        slim_bars(self._area, self.look)

    def show_comparison(self, comparison: Comparison, chosen: Chosen, a: Side, b: Side) -> None:
        power = {row.field: (row.a, row.b) for row in comparison.machines}.get("power", ("", ""))
        self.a.show_side(a, comparison.a, power[0])
        self.b.show_side(b, comparison.b, power[1])
        self.both.setText(f"in both: {len(comparison.implementations)}")
        names = (
            *comparison.implementations,
            *comparison.implementations_only_a,
            *comparison.implementations_only_b,
        )
        if tuple(row.name for row in self.rows) != names:
            self._make_rows(names)
        for row in self.rows:
            missing = (
                "not in B"
                if row.name in comparison.implementations_only_a
                else "not in A"
                if row.name in comparison.implementations_only_b
                else ""
            )
            row.show_state(row.name == chosen.implementation, row.name == comparison.baseline, missing)
        found = counts(comparison, chosen)
        words: dict[Show, str] = {"all": "All", "changed": "Changed", "unsure": "Unsure"}
        for show, word in words.items():
            self.filter.segment(show).setText(f"{word} {found[show]}")
        self.filter.set_value(chosen.show)
        self.filter.restyle()
        self.only_a.value.setText(f"{len(comparison.only_a):,}")
        self.only_b.value.setText(f"{len(comparison.only_b):,}")

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), self.look.colour("panel"))
        painter.setPen(QPen(self.look.colour("hairline"), 1))
        x = self.width() - 0.5
        painter.drawLine(QPointF(x, 0), QPointF(x, self.height()))

    def _head(self, title: str, trailing: QWidget | None) -> None:
        row = QHBoxLayout()
        row.addWidget(Label(self.look, title, 14, 600))
        row.addStretch(1)
        if trailing is not None:
            row.addWidget(trailing)
        self._column.addLayout(row)

    def _make_rows(self, names: tuple[str, ...]) -> None:
        for row in self.rows:
            self._names.removeWidget(row)
            row.hide()
            row.deleteLater()
        self.rows = [NameRow(self.look, name) for name in names]
        for row in self.rows:
            row.clicked.connect(lambda _=False, name=row.name: self.shown.emit(name))
            self._names.addWidget(row)
