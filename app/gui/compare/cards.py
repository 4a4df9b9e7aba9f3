"""The cards beside the table: the machines, the latencies in one figure each, and what to do."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QHelpEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from app.core.change import signed
from app.core.comparison import Comparison, Mean
from app.core.machines import CONDITIONS, MachineRow
from app.core.text import THIN
from app.gui.charts.painting import LEFT, RIGHT, width_of, write
from app.gui.charts.style import style_of
from app.gui.icons import draw_icon
from app.gui.parts.look import Look, Part
from app.gui.theme import CONTROL_RADIUS

SHOWN = 6
"""Lines of the environment: what differs, and as much of what is equal as then fits, one at least."""


def heading(comparison: Comparison) -> str:
    """`2 differ, 1 follows, 18 equal`."""
    rows = comparison.machines
    if not rows:
        return "not recorded"
    follow = sum(row.differs and bool(row.follows) for row in rows)
    differ = sum(row.differs for row in rows) - follow
    equal = len(rows) - follow - differ
    parts = [f"{differ} differ" if differ != 1 else "1 differs"]
    if follow:
        parts.append(f"{follow} follow{'s' if follow == 1 else ''}")
    return ", ".join([*parts, f"{equal} equal"])


_NARROW = 260


class MachineList(QWidget, Part):
    """What differs, with what it can move; then what is equal, as much of it as is asked for."""

    _DIFFERENT, _EQUAL, _GAP = 42, 24, 4

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._rows: tuple[MachineRow, ...] = ()
        self._all = False
        self.setAccessibleName("Environment")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.set_look(look)

    def show_rows(self, rows: tuple[MachineRow, ...], everything: bool) -> None:
        self._rows, self._all = rows, everything
        words = [f"{r.title}: {r.a}" + (f" in A, {r.b} in B; {note(r)}" if r.differs else "") for r in rows]
        self.setAccessibleDescription("; ".join(words))
        self.updateGeometry()
        self.update()

    @property
    def hidden(self) -> int:
        """How many equal ones are not shown."""
        return len(self._rows) - len(self.shown())

    def shown(self) -> list[MachineRow]:
        rows = [row for row in self._rows if row.differs]
        equal = [row for row in self._rows if not row.differs]
        return rows + (equal if self._all else equal[: max(SHOWN - len(rows), 1)])

    def sizeHint(self) -> QSize:
        height = sum(self._height(row) for row in self.shown())
        return QSize(240, height + 2)

    def minimumSizeHint(self) -> QSize:
        return QSize(160, self.sizeHint().height())

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            y = 0
            for row in self.shown():
                y += self._height(row)
                if event.pos().y() < y:
                    words = f"{row.a} in A, {row.b} in B\n{note(row)}" if row.differs else row.a
                    QToolTip.showText(event.globalPos(), f"{row.title}: {words}", self)
                    return True
        return super().event(event)

    def _height(self, row: MachineRow) -> int:
        return self._DIFFERENT + self._GAP if row.differs else self._EQUAL

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        look = self.look
        shown = self.shown()
        labels = max((width_of(row.title, look.font(12, 600)) for row in shown), default=60.0) + 14
        labels = min(labels, self.width() * 0.36)
        y = 0.0
        for row in shown:
            rect = QRectF(0, y, self.width(), self._DIFFERENT if row.differs else self._EQUAL)
            if row.differs:
                self._difference(painter, rect, row, labels)
            else:
                glyph = QRectF(9, rect.center().y() - 7, 14, 14)
                draw_icon(painter, "equals", glyph, look.colour("text_tertiary"))
                label = QRectF(32, rect.top(), labels, rect.height())
                write(
                    painter,
                    label,
                    row.title,
                    look.font(12),
                    look.colour("text_tertiary"),
                    LEFT,
                    may_elide=True,
                )
                value = rect.adjusted(32 + labels, 0, -6, 0)
                write(
                    painter, value, row.a, look.font(12), look.colour("text_secondary"), LEFT, may_elide=True
                )
            y += self._height(row)

    def _difference(self, painter: QPainter, rect: QRectF, row: MachineRow, labels: float) -> None:
        look = self.look
        matters = bool(row.moves)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(look.fill("warning") if matters else look.colour("raised"))
        painter.drawRoundedRect(rect, CONTROL_RADIUS, CONTROL_RADIUS)
        icon = "warning" if matters else "info"
        draw_icon(
            painter,
            icon,
            QRectF(9, rect.top() + 6, 14, 14),
            look.colour("warning" if matters else "text_secondary"),
        )
        upper = QRectF(32, rect.top() + 3, labels, 20)
        write(painter, upper, row.title, look.font(12, 600), look.colour("text"), LEFT, may_elide=True)
        lower = QRectF(32, rect.top() + 21, rect.width() - 40, 19)
        if self.width() < _NARROW:
            # The two values need the line; what they can move is in the tooltip.
            self._values(painter, lower, row)
            return
        self._values(painter, QRectF(32 + labels, upper.top(), rect.right() - 40 - labels, 20), row)
        write(painter, lower, note(row), look.font(12), look.colour("text_secondary"), LEFT, may_elide=True)

    def _values(self, painter: QPainter, place: QRectF, row: MachineRow) -> None:
        look = self.look
        a, b = row.a or "none", row.b or "none"
        arrow, bold, plain = 30.0, look.font(12, 600), look.font(12)
        room = max(place.width() - arrow, 0.0)
        a_width, b_width = width_of(a, plain) + 1, width_of(b, bold) + 1
        if a_width + b_width > room:
            # What is longer than half gives way first.
            a_width = min(a_width, max(room / 2, room - b_width))
            b_width = room - a_width
        before = QRectF(place.left(), place.top(), a_width, place.height())
        write(painter, before, a, plain, look.colour("text_secondary"), LEFT, may_elide=True)
        box = QRectF(before.right() + 7, place.center().y() - 8, 16, 16)
        draw_icon(painter, "arrow-right", box, look.colour("text_secondary"))
        after = QRectF(box.right() + 7, place.top(), b_width, place.height())
        write(painter, after, b, bold, look.colour("text"), LEFT, may_elide=True)


def note(row: MachineRow) -> str:
    """What a difference means."""
    if row.follows:
        return f"follows from {row.follows if row.follows in ('PyTorch', 'CPU') else row.follows.lower()}"
    if not row.moves:
        return "moves no figure that is known of"
    return row.moves if row.field in CONDITIONS else f"can move {row.moves}"


class MeanBars(QWidget, Part):
    """A bar per contender from no change: the geometric mean of how its latency changed."""

    _ROW = 24

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._means: tuple[Mean, ...] = ()
        self.setAccessibleName("Latency from A to B")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.set_look(look)

    def show_means(self, means: tuple[Mean, ...]) -> None:
        self._means = means
        self.setAccessibleDescription("; ".join(f"{m.implementation} {signed(m.latency - 1)}" for m in means))
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(240, self._ROW * max(len(self._means), 1))

    def minimumSizeHint(self) -> QSize:
        return QSize(160, self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        look = self.look
        if not self._means:
            return
        titles = [style_of(m.implementation, look.theme).title for m in self._means]
        names = max(width_of(title, look.font(12)) for title in titles) + 22
        names = min(names, self.width() * 0.55)
        figures = max(width_of(_figure(m), look.font(13, 600)) for m in self._means) + 4
        plot = QRectF(names + 8, 0, max(self.width() - names - figures - 20, 10), self.height())
        low = min(min(m.latency - 1 for m in self._means), 0.0)
        high = max(max(m.latency - 1 for m in self._means), 0.0)
        span = max(high - low, 0.01)
        zero = plot.left() + plot.width() * -low / span
        painter.setPen(QPen(look.colour("strong_line"), 1))
        painter.drawLine(QPointF(zero, 0), QPointF(zero, self.height()))
        for index, (mean, title) in enumerate(zip(self._means, titles, strict=True)):
            y = index * self._ROW
            style = style_of(mean.implementation, look.theme)
            style.mark(painter, QPointF(5, y + self._ROW / 2), 10)
            place = QRectF(18, y, names - 18, self._ROW)
            write(painter, place, title, look.font(12), look.colour("text"), LEFT, may_elide=True)
            end = zero + plot.width() * (mean.latency - 1) / span
            bar = QRectF(min(zero, end), y + 6, max(abs(end - zero), 1), self._ROW - 12)
            painter.fillRect(bar, style.colour)
            figure = QRectF(self.width() - figures, y, figures, self._ROW)
            write(painter, figure, _figure(mean), look.font(13, 600), look.colour("text"), RIGHT)


def _figure(mean: Mean) -> str:
    return signed(mean.latency - 1).replace("%", f"{THIN}%")
