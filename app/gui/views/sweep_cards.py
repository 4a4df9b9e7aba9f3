"""Beside the map: the cell that is selected, and the cells about which nothing is claimed."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from app.core import text
from app.core.catalog import contender
from app.core.results import Entry
from app.core.sweep import CellState, Result
from app.gui.charts.heat_map import words_for
from app.gui.charts.painting import hatched
from app.gui.parts.buttons import Button
from app.gui.parts.card import Card
from app.gui.parts.chips import STATE_GLYPHS, chip_width, draw_chip
from app.gui.parts.look import Look, Part
from app.gui.parts.text import Label, Paragraph
from app.gui.theme import CHIP_HEIGHT

CHIP_OF: dict[CellState, tuple[str, str]] = {
    "faster": ("faster", "faster"),
    "slower": ("slower", "slower"),
    "same": ("same", "same"),
    "unsure": ("unsure", "unsure"),
    "wrong": ("error", "wrong"),
    "failed": ("error", "failed"),
}


class StateChip(QWidget, Part):
    """A chip whose state changes; gone where there is none."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self.look = look
        self._state, self._word = "", ""
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def show_state(self, state: CellState) -> None:
        role, word = CHIP_OF.get(state, ("", ""))
        self.setVisible(bool(word))
        if (role, word) != (self._state, self._word):
            self._state, self._word = role, word
            self.setAccessibleName(word)
            self.updateGeometry()
            self.update()

    def text(self) -> str:
        return self._word

    def sizeHint(self) -> QSize:
        if not self._word:
            return QSize(0, CHIP_HEIGHT)
        return QSize(int(chip_width(self.look, self._word, STATE_GLYPHS[self._state]) + 1), CHIP_HEIGHT)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._word:
            rect = QRectF(self.rect())
            draw_chip(QPainter(self), self.look, rect, self._word, self._state, STATE_GLYPHS[self._state])


class SelectedCell(Card):
    """Its claim, its figures, and what can be done with it."""

    open_requested = Signal()
    command_requested = Signal()

    def __init__(self, look: Look) -> None:
        super().__init__(look, "Selected cell")
        head = QHBoxLayout()
        head.setSpacing(12)
        self.figure = Label(look, "", 22, 700)
        self.chip = StateChip(look)
        self.interval = Label(look, "", 12, 500, "text_secondary", may_elide=True)
        for widget in (self.figure, self.chip):
            head.addWidget(widget, 0, Qt.AlignmentFlag.AlignVCenter)
        head.addWidget(self.interval, 1, Qt.AlignmentFlag.AlignVCenter)
        self.body.addLayout(head)
        self.reason = Paragraph(look, "", 12)
        self.body.addWidget(self.reason)
        grid = QGridLayout()
        grid.setHorizontalSpacing(18)
        grid.setVerticalSpacing(2)
        self._names = [Label(look, "", 12, 400, "text_secondary") for _ in range(4)]
        self._values = [Label(look, "", 13, 600) for _ in range(4)]
        for column in range(4):
            grid.addWidget(self._names[column], 0, column)
            grid.addWidget(self._values[column], 1, column)
        grid.setColumnStretch(4, 1)
        self.body.addLayout(grid)
        self.body.addStretch(1)
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        self.open = Button(look, "Open in Live", kind="raised")
        self.command = Button(look, "Copy as command", kind="raised")
        self.open.clicked.connect(self.open_requested)
        self.command.clicked.connect(self.command_requested)
        buttons.addWidget(self.open)
        buttons.addWidget(self.command)
        buttons.addStretch(1)
        self.body.addLayout(buttons)
        self.body.setSpacing(8)

    def show_cell(self, where: str, result: Result | None, base: Entry | None, implementation: str) -> None:
        """`base` is the baseline's entry in the same cell."""
        self.subtitle.setText(where)
        measurable = result is not None and result.cell.workload is not None
        self.open.setEnabled(measurable)
        self.command.setEnabled(measurable)
        if result is None:
            self._clear("Choose a cell of the map")
            return
        entry = result.entry
        speed = entry.speed_up if entry is not None else None
        shown = speed is not None and result.state in CHIP_OF
        self.figure.setVisible(bool(shown))
        self.figure.setText(text.times(speed.median) if speed is not None else "")
        self.chip.show_state(result.state)
        self.interval.setText(_interval(entry, self.look.small))
        said = {"waiting": "Not measured yet.", "measuring": "Is being measured now."}.get(result.state, "")
        reason = said or result.reason
        self.reason.setText(reason[:1].upper() + reason[1:] if result.state != "faster" else "")
        self.reason.setVisible(bool(self.reason.text()))
        self._figures(entry, base, implementation)

    def _clear(self, sentence: str) -> None:
        for widget in (self.figure, self.chip):
            widget.hide()
        self.interval.setText("")
        self.reason.setText(sentence)
        self.reason.show()
        self._figures(None, None, "")

    def _figures(self, entry: Entry | None, base: Entry | None, implementation: str) -> None:
        told: list[tuple[str, str]] = []
        for one in (base, entry if entry is not base else None):
            if one is not None and one.latency is not None:
                told.append(
                    (contender(one.implementation).short, f"{text.micros(one.latency.median_s)}{text.THIN}µs")
                )
        if entry is not None and entry.latency is not None:
            on_gpu = entry.workload.device.startswith("cuda")
            counts = [
                _total(e.counts.kernel_launches if on_gpu else e.counts.operator_calls)
                for e in (base, entry)
                if e is not None
            ]
            if counts and all(count is not None for count in counts):
                arrow = " → ".join(text.number(count) for count in counts)
                told.append(("Launches" if on_gpu else "Operators", arrow))
            rounds = entry.speed_up.rounds if entry.speed_up is not None else entry.latency.n
            if not self.look.small:
                told.append(("Rounds", text.number(rounds)))
        for index in range(4):
            name, value = told[index] if index < len(told) else ("", "")
            self._names[index].setText(name)
            self._values[index].setText(value)
            for label in (self._names[index], self._values[index]):
                label.setVisible(bool(name))


def _interval(entry: Entry | None, short: bool) -> str:
    speed = entry.speed_up if entry is not None else None
    if speed is None:
        return ""
    if speed.low is None or speed.high is None:
        return "no interval yet"
    if short:
        return f"CI {text.number(speed.low, 2)}–{text.number(speed.high, 2)}"
    floor = f" · floor ±{text.percent(speed.noise_floor, 1)}" if speed.noise_floor is not None else ""
    return f"95{text.THIN}% CI {text.number(speed.low, 2)}–{text.number(speed.high, 2)}{floor}"


def _total(counts: dict[str, int | None] | None) -> int | None:
    parts = [part for part in (counts or {}).values() if part is not None]
    return sum(parts) if parts else None


class _Swatch(QWidget, Part):
    def __init__(self, look: Look) -> None:
        super().__init__()
        self.look, self._state = look, "unsure"
        self.setFixedSize(24, 16)

    def show_state(self, state: CellState) -> None:
        if state != self._state:
            self._state = state
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        rect = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        look = self.look
        bad = self._state in ("wrong", "failed")
        painter.setPen(QPen(look.colour("error" if bad else "strong_line"), 1))
        painter.setBrush(look.fill("unsure") if self._state == "unsure" else Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(rect, 3, 3)
        if self._state == "unsure":
            hatched(painter, rect.adjusted(1, 1, -1, -1), look.colour("disabled"), 4.0, 1.0)


class _Row(QWidget, Part):
    def __init__(self, look: Look) -> None:
        super().__init__()
        self.look = look
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 3, 0, 3)
        row.setSpacing(12)
        self.swatch = _Swatch(look)
        self.name = Label(look, "", 13, 600)
        self.reason = Label(look, "", 12, 400, "text_secondary", may_elide=True)
        self.button = Button(look, "Show", kind="quiet")
        row.addWidget(self.swatch)
        row.addWidget(self.name)
        row.addWidget(self.reason, 1)
        row.addWidget(self.button)


Group = tuple[str, tuple[Result, ...]]
"""What the cells have in common, in two words; the cells."""


class UnclaimedCells(Card):
    """What was not shown is part of the result: by what they lack, with the reason and the way on."""

    shown = Signal(object)
    """A `Result` to select."""
    longer_requested = Signal()

    ROWS = 4

    def __init__(self, look: Look) -> None:
        super().__init__(look, "Cells without a claim")
        self._groups: list[Group] = []
        self._turn: dict[str, int] = {}
        self.can_measure = True
        box = QVBoxLayout()
        box.setSpacing(0)
        self.rows = [_Row(look) for _ in range(self.ROWS)]
        for index, row in enumerate(self.rows):
            row.button.clicked.connect(lambda _=False, i=index: self._pressed(i))
            box.addWidget(row)
        self.none = Label(look, "", 12, 400, "text_secondary", may_elide=True)
        box.addWidget(self.none)
        box.addStretch(1)
        self.body.addLayout(box)

    def show_results(self, results: Sequence[Result], total: int, complete: bool) -> None:
        groups = grouped(results)
        self._groups = groups[: self.ROWS]
        unsure = sum(result.state == "unsure" for result in results)
        others = sum(len(members) for _, members in groups) - unsure
        parts = [f"{others} skipped" if others else "", f"{unsure} unsure" if unsure else ""]
        said = ", ".join(part for part in parts if part)
        self.subtitle.setText(f"{said} of {total}" if said else f"none of {total}")
        for index, row in enumerate(self.rows):
            row.setVisible(index < len(self._groups))
            if index < len(self._groups):
                self._fill(row, *self._groups[index])
        self.none.setVisible(not groups)
        waits = "" if complete else " so far"
        self.none.setText(f"Every cell that was measured has its verdict{waits}.")

    def _fill(self, row: _Row, word: str, members: tuple[Result, ...]) -> None:
        state = members[0].state
        row.swatch.show_state(state)
        row.name.setText(f"{len(members)} {word}")
        row.reason.setText(_reasons(members))
        longer = state == "unsure" and self.can_measure
        row.button.set_content(
            "Run 4× longer" if longer else "Show cells" if len(members) > 1 else "Show cell"
        )
        row.button.setAccessibleName(f"{row.button.text()}: {row.name.text()}")

    def _pressed(self, index: int) -> None:
        word, members = self._groups[index]
        if members[0].state == "unsure" and self.can_measure:
            self.longer_requested.emit()
            return
        turn = self._turn.get(word, -1) + 1
        self._turn[word] = turn
        self.shown.emit(members[turn % len(members)])


def grouped(results: Sequence[Result]) -> list[Group]:
    """Results without a claim by what they lack; UNSURE first, then what went wrong, then what cannot run."""
    order: dict[CellState, int] = {"unsure": 0, "wrong": 1, "failed": 2, "unavailable": 3, "impossible": 4}
    found: dict[tuple[int, str], list[Result]] = {}
    for result in results:
        if result.state in order:
            word = "UNSURE" if result.state == "unsure" else words_for(result.state, result.reason)
            found.setdefault((order[result.state], word), []).append(result)
    return [(word, tuple(members)) for (_, word), members in sorted(found.items(), key=lambda one: one[0])]


def _reasons(members: Sequence[Result]) -> str:
    floors = [
        result.entry.speed_up.noise_floor
        for result in members
        if result.entry is not None
        and result.entry.speed_up is not None
        and result.entry.speed_up.noise_floor is not None
    ]
    if members[0].state == "unsure" and floors and len(members) > 1:
        low, high = text.percent(min(floors), 1), text.percent(max(floors), 1)
        return f"not told from no difference; noise floors ±{low} to ±{high}"
    first = members[0].reason or "no reason was given"
    more = len({result.reason for result in members}) - 1
    return first if more <= 0 else f"{first}; and {more} more"
