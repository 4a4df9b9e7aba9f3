"""Calls or launches per call: forward solid, backward hatched, total and parts beside the bar."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QColor, QFont, QPainter

from app.core.catalog import contender
from app.core.results import Entry
from app.core.text import number
from app.gui.charts.painted import PaintedChart
from app.gui.charts.painting import LEFT, RIGHT, hatched, width_of, write
from app.gui.charts.style import faded, style_of
from app.gui.parts.look import Look
from app.gui.snapshot import Snapshot

_HEAD = 20
_MARK_ROOM = 16
_LEAST_COLUMN = 62


@dataclass(frozen=True)
class Bar:
    """Counts of one kind, forward and backward; None where there are none."""

    forward: int | None
    backward: int | None

    @property
    def total(self) -> int | None:
        parts = [part for part in (self.forward, self.backward) if part is not None]
        return sum(parts) if parts else None

    @property
    def parts(self) -> str:
        """`58 + 90`; empty where there is only one part."""
        if self.forward is None or self.backward is None:
            return ""
        return f"{number(self.forward)} + {number(self.backward)}"


@dataclass(frozen=True)
class Row:
    """One contender: a bar for each column, or a word why there is none."""

    name: str
    bars: tuple[Bar, ...]
    word: str = ""


def bar_of(count: dict[str, int | None] | None) -> Bar:
    """A count as a recording has it."""
    return Bar(None, None) if count is None else Bar(count.get("forward"), count.get("backward"))


def rows_of(snapshot: Snapshot) -> tuple[tuple[str, ...], tuple[Row, ...]]:
    """Column titles and rows. Contenders that do not run have none; waiting ones say what they wait for."""
    titles = ("Kernel launches",) if snapshot.on_gpu else ("Operator calls", "Python calls")
    rows = []
    for entry in snapshot.entries:
        counts = entry.counts
        if snapshot.on_gpu:
            bars: tuple[Bar, ...] = (bar_of(counts.kernel_launches),)
        else:
            bars = (bar_of(counts.operator_calls), bar_of(counts.python_calls))
        if any(bar.total is not None for bar in bars):
            rows.append(Row(entry.implementation, bars))
        elif entry.status not in ("unavailable", "failed"):
            rows.append(Row(entry.implementation, (), _waits_for(entry, snapshot)))
    return titles, tuple(rows)


def _waits_for(entry: Entry, snapshot: Snapshot) -> str:
    if entry.counts.note:
        return "counting failed"
    if contender(entry.implementation.partition("@")[0]).needs_extension:
        if snapshot.recording.build.is_running:
            return "after the build"
        if snapshot.recording.build.state == "failed":
            return "no build"
    return "not counted yet"


class CountsChart(PaintedChart):
    """On a CPU operator calls and Python calls side by side, on a GPU kernel launches."""

    def __init__(self, look: Look) -> None:
        super().__init__(look, "Calls per call")
        self._titles: tuple[str, ...] = ("Operator calls", "Python calls")
        self._rows: tuple[Row, ...] = ()
        self._notes: dict[str, str] = {}
        self._frozen = False

    def show_snapshot(self, snapshot: Snapshot) -> None:
        titles, rows = rows_of(snapshot)
        frozen = snapshot.dimmed
        self.title = "Kernel launches" if snapshot.on_gpu else "Calls per call"
        self.caption = "per call" if snapshot.on_gpu else "in a profiled pass"
        if self.has_backward_in(rows):
            self.caption = "per call" if snapshot.on_gpu else "profiled"
        notes = {e.implementation: e.counts.note for e in snapshot.entries if e.counts.note}
        if (titles, rows, frozen, notes) == (self._titles, self._rows, self._frozen, self._notes):
            return
        self._titles, self._rows, self._frozen, self._notes = titles, rows, frozen, notes
        self.setAccessibleName(self.title)
        self.setAccessibleDescription("; ".join(self._sentence(row) for row in rows))
        self.updateGeometry()
        self.update()

    @staticmethod
    def has_backward_in(rows: tuple[Row, ...]) -> bool:
        return any(bar.backward is not None for row in rows for bar in row.bars)

    @property
    def has_backward(self) -> bool:
        return self.has_backward_in(self._rows)

    @property
    def rows(self) -> int:
        """How many lines are drawn."""
        return len(self._rows)

    @property
    def head(self) -> int:
        """Height of the line of column titles, px."""
        return _HEAD if len(self._titles) > 1 else 0

    def paint_chart(self, painter: QPainter, area: QRectF) -> None:
        look = self.look
        area = area.adjusted(0, 0, 0, -6)
        if not self._rows:
            write(painter, area, "Nothing counted yet", self.look.font(13), look.colour("text_secondary"))
            return
        pitch, rows_top = self._pitch(area)
        small = pitch < 15
        name_font = self.look.font(10 if small else 12, 500)
        names = max(width_of(style_of(row.name, look.theme).short, name_font) for row in self._rows)
        columns = len(self._titles)
        gap = 16
        # Long names give way to the figures; the tooltip has them whole.
        most = area.width() - _MARK_ROOM - 10 - _LEAST_COLUMN * columns - gap * (columns - 1)
        left = area.left() + _MARK_ROOM + min(names, most, area.width() * 0.4) + 10
        width = (area.right() - left - gap * (columns - 1)) / columns
        if columns > 1:
            for index, title in enumerate(self._titles):
                if width < 90:
                    title = {"Operator calls": "Operators", "Python calls": "Python"}.get(title, title)
                place = QRectF(left + index * (width + gap), area.top(), width, _HEAD - 4)
                write(painter, place, title, self.look.font(12, 500), look.colour("text_secondary"))
        fits = self._columns(width, small)
        for position, row in enumerate(self._rows):
            middle = rows_top + pitch * (position + 0.5)
            style = style_of(row.name, look.theme)
            waiting = not row.bars
            colour = look.colour("text_tertiary") if waiting else look.colour("text")
            own = look.colour("text_secondary") if self._frozen else style.colour
            style.mark(painter, QPointF(area.left() + 5, middle), 8, own, hollow=waiting)
            place = QRectF(area.left() + _MARK_ROOM, middle - 9, left - area.left() - _MARK_ROOM - 6, 18)
            write(painter, place, style.short, name_font, colour, LEFT, may_elide=True)
            if waiting:
                place = QRectF(left, middle - 9, area.right() - left, 18)
                write(painter, place, row.word, name_font, look.colour("text_tertiary"))
            for index, bar in enumerate(row.bars):
                start = left + index * (width + gap)
                self._bar(painter, QRectF(start, middle - pitch / 2, width, pitch), index, bar, own, fits)

    def _columns(self, width: float, small: bool) -> tuple[float, float]:
        """Room for totals and for parts; none for parts where the bars would get too short."""
        total_font, part_font = self._fonts(small)
        bars = [bar for row in self._rows for bar in row.bars]
        totals = max((width_of(number(bar.total), total_font) for bar in bars), default=10) + 6
        parts = max((width_of(bar.parts, part_font) for bar in bars), default=0)
        parts = parts + 7 if parts else 0
        if width - totals - parts < 34:
            parts = 0
        return totals, parts

    def _fonts(self, small: bool) -> tuple[QFont, QFont]:
        return self.look.font(11 if small else 13, 700), self.look.font(10 if small else 11)

    def _bar(
        self, painter: QPainter, place: QRectF, index: int, bar: Bar, own: QColor, room: tuple[float, float]
    ) -> None:
        totals, parts = room
        total = bar.total
        small = place.height() < 15
        total_font, part_font = self._fonts(small)
        most = max((row.bars[index].total or 0 for row in self._rows if row.bars), default=0)
        length = place.width() - totals - parts
        height = min(14.0, max(6.0, place.height() - 6))
        top = round(place.center().y() - height / 2)
        if total is None:
            write(painter, place, "–", total_font, self.look.colour("text_tertiary"), LEFT)
            return
        scale = length / most if most else 0.0
        forward = (bar.forward or 0) * scale
        backward = (bar.backward or 0) * scale
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        if bar.forward:
            painter.fillRect(QRectF(place.left(), top, max(forward, 2.0), height), own)
        if bar.backward:
            start = place.left() + (max(forward, 2.0) + 1 if bar.forward else 0)
            area = QRectF(start, top, max(backward - 1, 2.0), height)
            painter.fillRect(area, faded(own, 0.28))
            hatched(painter, area, own, 3.6)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        word = self.look.colour("text_secondary") if self._frozen else self.look.colour("text")
        right = place.right() - parts
        write(
            painter,
            QRectF(right - totals, place.top(), totals, place.height()),
            number(total),
            total_font,
            word,
            RIGHT,
        )
        if parts:
            place = QRectF(right, place.top(), parts, place.height())
            write(painter, place, bar.parts, part_font, self.look.colour("text_tertiary"), RIGHT)

    def _legend_words(self) -> tuple[str, str]:
        return ("fwd", "bwd") if self.look.small else ("forward", "backward")

    def legend_width(self) -> float:
        if not self.has_backward:
            return 0.0
        font = self.look.font(12)
        return sum(width_of(word, font) + 18 for word in self._legend_words()) + 14

    def paint_legend(self, painter: QPainter, right: float, middle: float) -> None:
        if not self.has_backward:
            return
        font, colour = self.look.font(12), self.look.colour("text_secondary")
        forward, backward = self._legend_words()
        x = right
        for word, striped in ((backward, True), (forward, False)):
            width = width_of(word, font)
            write(painter, QRectF(x - width, middle - 9, width + 1, 18), word, font, colour)
            swatch = QRectF(x - width - 18, middle - 4.5, 12, 9)
            if striped:
                painter.fillRect(swatch, faded(colour, 0.28))
                hatched(painter, swatch, colour, 3.6)
            else:
                painter.fillRect(swatch, colour)
            x -= width + 18 + 14

    def tip_at(self, place: QPointF) -> str:
        pitch, top = self._pitch(QRectF(self.rect()).adjusted(0, 0, 0, -6))
        index = int((place.y() - top) // pitch) if pitch else -1
        if 0 <= index < len(self._rows) and place.y() >= top:
            return self._sentence(self._rows[index])
        return ""

    def _pitch(self, area: QRectF) -> tuple[float, float]:
        top = area.top() + self.head
        return min(32.0 if self.look.small else 24.0, (area.bottom() - top) / max(len(self._rows), 1)), top

    def _sentence(self, row: Row) -> str:
        name = style_of(row.name, self.look.theme).title
        note = self._notes.get(row.name, "")
        if not row.bars:
            return f"{name}: {row.word}" + (f": {note}" if note else "")
        said = []
        for title, bar in zip(self._titles, row.bars, strict=True):
            parts = f" ({number(bar.forward)} forward, {number(bar.backward)} backward)" if bar.parts else ""
            said.append(f"{number(bar.total)} {title.lower().replace('python', 'Python')}{parts}")
        return f"{name}: {', '.join(said)}" + (f". {note}" if note else "")
