"""Accuracy: errors per tensor beside native's own and the bound, every contender, how it is judged."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.core import text
from app.core.results import Entry
from app.exports.accuracy_rows import slice_note
from app.gui.accuracy_data import (
    caption_of,
    output_rows,
    report_text,
    rows_of,
    standings_of,
    subject_of,
    why_none,
)
from app.gui.charts.tensors import TensorChart
from app.gui.parts.buttons import Button
from app.gui.parts.card import Card
from app.gui.parts.text import Paragraph
from app.gui.snapshot import Snapshot
from app.gui.theme import Theme, Type
from app.gui.views.facts import Fact, FactList
from app.gui.views.frame import FlushCard, View, scrolled, slim_bars
from app.gui.views.rows import title_of
from app.gui.views.standings import StandingList
from app.gui.views.system_cards import copy_text

_JUDGED = (
    Fact("Ours", "max |ours − float64|"),
    Fact("Native", "max |native − float64|"),
    Fact("Bound", "2 × native, 3 × for gradients"),
    Fact("Native's least", "1 rounding unit"),
    Fact("Passes if", "ours ≤ bound in every tensor"),
)
_GATE = "A speed-up is shown only while all pass, of the baseline too."


class AccuracyView(View):
    """`implementation_selected`: a contender's line was clicked. `command_requested`: copy what reproduces this."""

    implementation_selected = Signal(str)
    command_requested = Signal()

    def __init__(self, theme: Theme, type_: Type) -> None:
        super().__init__(theme, type_)
        look = self.look
        self._wanted: str | None = None
        self._challenger: str | None = None
        self.tensors = TensorChart(look)
        self.card = FlushCard(look, "Error per tensor")
        self.card.body.addWidget(self.tensors, 1)
        self.copy = Button(look, "Copy report", "copy", "quiet")
        self.copy.clicked.connect(self._copy)
        self.card.tools.addWidget(self.copy)
        self.every = Card(look, "Every implementation", "worst share of the bound · largest |Δ|")
        self.standings = StandingList(look)
        self.standings.chosen.connect(self._choose)
        self.every.body.addWidget(self.standings)
        self.every.body.addStretch(1)
        self.judged = Card(look, "How it is judged")
        self._rule = FactList(look, "How it is judged", 76, 24)
        self._rule.show_facts(_JUDGED)
        self.judged.body.addWidget(self._rule)
        self.judged.body.addWidget(Paragraph(look, _GATE, 12, 400, "text_secondary"))
        self.judged.body.addStretch(1)
        self.inputs = Card(look, "Inputs", "same for every implementation")
        self._inputs = FactList(look, "Inputs", 76, 24)
        self.inputs.body.addWidget(self._inputs)
        self.reproduce = Button(look, "Copy reproduction", "terminal", "raised")
        self.reproduce.setToolTip("The command line that measures and checks this workload without a window")
        self.reproduce.clicked.connect(self.command_requested)
        self.inputs.body.addStretch(1)
        buttons = QHBoxLayout()
        buttons.addWidget(self.reproduce)
        buttons.addStretch(1)
        self.inputs.body.addLayout(buttons)
        self._lay_out()

    def _lay_out(self) -> None:
        content = QWidget()
        self._column = QVBoxLayout(content)
        self._column.setContentsMargins(0, 0, 0, 0)
        # What the table does not need, with a row or a few, stays empty below everything.
        self._column.addWidget(self.card, 1000)
        self._below = QHBoxLayout()
        self._below.addWidget(self.every, 43)
        self._below.addWidget(self.judged, 28)
        self._below.addWidget(self.inputs, 29)
        self._column.addLayout(self._below)
        self._column.addStretch(1)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        self._scroll = scrolled(content)
        outer.addWidget(self._scroll)
        self._restyled()

    def chart_widgets(self) -> dict[str, QWidget]:
        return {self.tensors.title: self.tensors}

    def _restyled(self) -> None:
        slim_bars(self._scroll, self.look)
        gap = self.look.sizes.gap
        self._column.setSpacing(gap)
        self._below.setSpacing(gap)
        small = self.look.small
        # In a narrow window the rule gives way: it is in the tooltip of the card beside it.
        self.judged.setVisible(not small)
        self.every.subtitle.setText("" if small else "worst share of the bound · largest |Δ|")
        self.inputs.subtitle.setText("" if small else "same for every implementation")
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """The table takes what the cards below leave, and scrolls before its rows cannot be read."""
        head = self.look.sizes.card_head + 6
        self.card.setMinimumHeight(self.tensors.minimumSizeHint().height() + head)
        self.card.setMaximumHeight(self.tensors.natural_height + head + 8)

    def _choose(self, name: str) -> None:
        self._wanted = name
        self.implementation_selected.emit(name)
        if self.snapshot is not None:
            self._draw(self.snapshot)

    def _take(self, snapshot: Snapshot) -> None:
        if snapshot.challenger != self._challenger:
            # Whom the verdict speaks of was changed elsewhere, so it is about that one here as well.
            if self._challenger is not None and self._wanted not in (None, snapshot.challenger):
                self._wanted = None
            self._challenger = snapshot.challenger
        entry = subject_of(snapshot, self._wanted)
        accuracy = entry.accuracy if entry is not None else None
        rows = rows_of(entry)
        if len(rows) == 1:
            rows = output_rows(snapshot)
        name = entry.implementation if entry is not None else snapshot.baseline
        message = "" if rows else why_none(snapshot, entry)
        self.tensors.show_rows(name, rows, message, snapshot.dimmed)
        by_contender = accuracy is not None and len(accuracy.tensors) == 1
        self.tensors.title = "Error of the output" if by_contender else f"Error per tensor: {title_of(name)}"
        record = snapshot.record
        workload = record.workload if record is not None else None
        caption = caption_of(entry, workload.dtype, workload.device) if workload is not None else ""
        self.tensors.caption = caption
        self.card.title.setText(self.tensors.title)
        self.card.subtitle.setText(caption)
        self.standings.show_rows(standings_of(snapshot), name)
        self._inputs.show_facts(self._input_facts(snapshot, entry))
        self._fit()

    def _input_facts(self, snapshot: Snapshot, entry: Entry | None) -> list[Fact]:
        accuracy = entry.accuracy if entry is not None else None
        seed = accuracy.seed if accuracy is not None and accuracy.seed is not None else 0
        facts = [
            Fact("Values", f"normal, seed {text.number(seed)}"),
            Fact("Weights", "normal ÷ √E, biases 0.1"),
            Fact("Exact", "native steps in float64"),
        ]
        note = slice_note(entry) if entry is not None else ""
        if note:
            facts.append(Fact("Checked", note, glyph="", bold=True))
        elif accuracy is not None:
            facts.append(Fact("Checked", "the whole batch"))
        return facts

    def _copy(self) -> None:
        if self.snapshot is not None:
            copy_text(report_text(self.snapshot))
