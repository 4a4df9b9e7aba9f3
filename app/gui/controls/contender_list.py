"""The implementations: which are measured, and which of them is the baseline."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.core.catalog import CONTENDERS
from app.core.own import is_own
from app.core.recording import Recording, WorkloadRecord
from app.gui.controls.contender_row import ContenderRow
from app.gui.controls.contender_state import count_text, row_states
from app.gui.parts.buttons import Button
from app.gui.parts.look import Look, Part
from app.gui.parts.text import Label


class ContenderList(QWidget, Part):
    """Emits wishes; what it shows comes back through `show_recording`."""

    enabled_changed = Signal(tuple)
    baseline_changed = Signal(str)
    challenger_changed = Signal(str)
    add_requested = Signal()
    reload_requested = Signal(str)
    remove_requested = Signal(str)

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
        self._names: tuple[str, ...] = tuple(CONTENDERS)
        self._own = QVBoxLayout()
        self._own.setSpacing(0)
        for number, name in enumerate(CONTENDERS, 1):
            self._column.addWidget(self._make_row(name, number))
        self._column.addLayout(self._own)
        self.add = Button(look, "Add your own…", "plus", "dashed")
        self.add.setToolTip("Measure an attention implementation of your own: one Python file")
        self.add.clicked.connect(self.add_requested)
        self._column.addSpacing(8)
        self._column.addWidget(self.add)

    def _make_row(self, name: str, number: int) -> ContenderRow:
        row = ContenderRow(self.look, name, number)
        row.toggled_by_user.connect(self._toggle)
        row.baseline_requested.connect(self.baseline_changed)
        row.challenger_requested.connect(self.challenger_changed)
        row.reload_requested.connect(self.reload_requested)
        row.remove_requested.connect(self.remove_requested)
        row.solo_requested.connect(lambda only: self.enabled_changed.emit((self._baseline, only)))
        self._rows[name] = row
        return row

    def _list_own(self, own: Sequence[str]) -> None:
        """Rows for these, in this order. One that is no longer listed is kept for its return."""
        names = (*CONTENDERS, *own)
        if names == self._names:
            return
        for name in self._names[len(CONTENDERS) :]:
            self._own.removeWidget(self._rows[name])
            self._rows[name].hide()
        self._names = names
        for number, name in enumerate(own, len(CONTENDERS) + 1):
            row = self._rows.get(name) or self._make_row(name, number)
            row.set_look(self.look)
            self._own.addWidget(row)
            row.show()

    def row(self, implementation: str) -> ContenderRow:
        return self._rows[implementation]

    def show_recording(
        self,
        recording: Recording,
        record: WorkloadRecord | None,
        enabled: Sequence[str],
        baseline: str,
        own: Sequence[str] = (),
    ) -> None:
        """Show where each contender stands, `own` ones below those that ship."""
        self._enabled, self._baseline = tuple(enabled), baseline
        self._list_own(own)
        for state in row_states(recording, record, enabled, baseline, own):
            self._rows[state.implementation].show_state(state)
        self.count.setText(count_text(recording, record, enabled, own))

    def toggle(self, index: int) -> None:
        """Switch the contender at `index`, counted from 0, on or off; none is there: nothing."""
        names = self._names
        if index < len(names):
            self._toggle(names[index], names[index] not in self._enabled)

    def make_baseline(self, index: int) -> None:
        names = [name for name in self._names if not is_own(name)]
        if index < len(names):
            self.baseline_changed.emit(names[index])

    def next_baseline(self) -> None:
        """The next of those measured."""
        names = [name for name in self._enabled if not is_own(name)]
        if self._baseline in names:
            at = names.index(self._baseline)
            self.baseline_changed.emit(names[(at + 1) % len(names)])

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
        self.enabled_changed.emit(tuple(n for n in self._names if n in wanted))
