"""The implementations: which are measured, and which of them is the baseline."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.core.catalog import CONTENDERS
from app.core.recording import Recording, WorkloadRecord
from app.gui.controls.contender_row import ContenderRow
from app.gui.controls.contender_state import count_text, row_states
from app.gui.parts.look import Look, Part
from app.gui.parts.text import Label


class ContenderList(QWidget, Part):
    """Emits wishes; what it shows comes back through `show_recording`."""

    enabled_changed = Signal(tuple)
    baseline_changed = Signal(str)
    challenger_changed = Signal(str)

    def __init__(self, look: Look, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.look = look
        self._enabled: tuple[str, ...] = ()
        self._baseline = ""
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(0)
        head = QHBoxLayout()
        head.setContentsMargins(0, 0, 0, 6)
        self.count = Label(look, "", 12, 400, "text_tertiary")
        head.addWidget(Label(look, "Implementations", 14, 600))
        head.addStretch(1)
        head.addWidget(self.count)
        self._column.addLayout(head)
        self._rows: dict[str, ContenderRow] = {}
        for number, name in enumerate(CONTENDERS, 1):
            row = ContenderRow(look, name, number)
            row.toggled_by_user.connect(self._toggle)
            row.baseline_requested.connect(self.baseline_changed)
            row.challenger_requested.connect(self.challenger_changed)
            row.solo_requested.connect(lambda only: self.enabled_changed.emit((self._baseline, only)))
            self._column.addWidget(row)
            self._rows[name] = row

    def row(self, implementation: str) -> ContenderRow:
        return self._rows[implementation]

    def show_recording(
        self, recording: Recording, record: WorkloadRecord | None, enabled: Sequence[str], baseline: str
    ) -> None:
        """Show where each contender stands."""
        self._enabled, self._baseline = tuple(enabled), baseline
        for state in row_states(recording, record, enabled, baseline):
            self._rows[state.implementation].show_state(state)
        self.count.setText(count_text(recording, record, enabled))

    def toggle(self, index: int) -> None:
        """Switch the contender at `index`, counted from 0, on or off; none is there: nothing."""
        names = list(CONTENDERS)
        if index < len(names):
            self._toggle(names[index], names[index] not in self._enabled)

    def make_baseline(self, index: int) -> None:
        names = list(CONTENDERS)
        if index < len(names):
            self.baseline_changed.emit(names[index])

    def next_baseline(self) -> None:
        """The next of those measured."""
        if self._enabled and self._baseline in self._enabled:
            at = self._enabled.index(self._baseline)
            self.baseline_changed.emit(self._enabled[(at + 1) % len(self._enabled)])

    def _toggle(self, name: str, on: bool) -> None:
        row = self._rows[name]
        refused = (name == self._baseline and not on) or row.state.level == "unavailable"
        if refused:
            # The baseline is what everything is held against: it cannot leave before another takes over.
            blocked = row.blockSignals(True)
            row.setChecked(row.state.checked)
            row.blockSignals(blocked)
            return
        wanted = (set(self._enabled) | {name}) if on else (set(self._enabled) - {name})
        self.enabled_changed.emit(tuple(n for n in CONTENDERS if n in wanted))
