"""The workload as a form. What it shows is derived from the fields that `Workload` declares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QApplication, QHBoxLayout, QSizePolicy, QSpacerItem, QVBoxLayout, QWidget

from app.core.environment import Environment
from app.core.fields import Field, fields_of
from app.core.launch import profiles
from app.core.text import NOTHING, flops, number
from app.core.workload import CAUSAL_IN_DECODE, Workload
from app.gui.controls.coalesce import Coalescer
from app.gui.controls.devices import COPY, OPEN_SYSTEM, command_for, device_items, note_of, title_of
from app.gui.controls.explanation import Explanation
from app.gui.controls.profile_picker import ProfilePicker
from app.gui.parts.buttons import TextLink
from app.gui.parts.fields import FieldRow
from app.gui.parts.look import Look, Part
from app.gui.parts.menu import MenuItem
from app.gui.parts.picker import Picker
from app.gui.parts.text import Label
from app.gui.parts.toggles import Segmented, Switch

EMIT_MS = 50
_LABEL_WIDTH = 72
_SEGMENTS_AT_MOST = 3
_CACHED = ("Cached", "tokens per sequence that are cached already; a call computes one more")
"""How the sequence's row reads in decode mode."""


class WorkloadForm(QWidget, Part):
    """Keeps the last workload that can run: a field that makes it impossible is explained and waits.

    `workload_changed` comes at most every 50 ms while a control is dragged or a key held, and always
    with the final value. `plan_chosen` tells a profile's plan and its file.
    """

    workload_changed = Signal(object)
    plan_chosen = Signal(object, object)
    system_requested = Signal()

    def __init__(
        self,
        look: Look,
        workload: Workload | None = None,
        find_profiles: Callable[[], Sequence[Path]] = profiles,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.look = look
        self._environment: Environment | None = None
        self._valid = self._draft = workload or Workload()
        self._causal = True
        """The choice to go back to after decode mode, which has none."""
        self._emit = Coalescer(EMIT_MS, self)
        self._emit.passed.connect(self.workload_changed)
        self._rows: dict[str, FieldRow] = {}
        self._switches: dict[str, Switch] = {}
        self._switch_labels: dict[str, Label] = {}
        self._segments: dict[str, Segmented] = {}
        self._pickers: dict[str, Picker] = {}
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.addLayout(self._head())
        self.profile = ProfilePicker(look, find_profiles)
        self.profile.picked.connect(self.plan_chosen)
        self._column.addWidget(self.profile)
        self._gaps = [self._gap()]
        self._explanation = Explanation(look)
        self._explanation.use.connect(self._set)
        self._add_fields()
        self.restyle()

    # ---- what others ask -------------------------------------------------------------------------------

    @property
    def workload(self) -> Workload:
        """The last one that can run."""
        return self._valid

    @property
    def explanation(self) -> Explanation:
        return self._explanation

    def row(self, name: str) -> FieldRow:
        return self._rows[name]

    def switch(self, name: str) -> Switch:
        return self._switches[name]

    def segmented(self, name: str) -> Segmented:
        return self._segments[name]

    def picker(self, name: str) -> Picker:
        return self._pickers[name]

    def set_workload(self, workload: Workload) -> None:
        """Show another workload without telling."""
        if workload == self._valid:
            return
        self._emit.drop()
        self._valid = self._draft = workload
        self._show()

    def set_environment(self, environment: Environment | None) -> None:
        """What there is to run on."""
        if environment != self._environment:
            self._environment = environment
            self._show()

    # ---- building --------------------------------------------------------------------------------------

    def _head(self) -> QHBoxLayout:
        head = QHBoxLayout()
        head.addWidget(Label(self.look, "Workload", 14, 600))
        head.addStretch(1)
        self.reset = TextLink(self.look, "Reset", 12, 500, "text_secondary", plain=True)
        self.reset.setToolTip("Back to the default workload")
        self.reset.clicked.connect(self._reset)
        head.addWidget(self.reset)
        return head

    def _add_fields(self) -> None:
        last_number = [f.name for f in fields_of(Workload).values() if f.kind == "int"][-1]
        for field in fields_of(Workload).values():
            if field.kind == "int":
                self._column.addWidget(self._number_row(field))
                if field.name == last_number:
                    self._column.addWidget(self._explanation)
                    self._column.addLayout(self._size_line())
                    self._gaps.append(self._gap())
            elif field.kind == "bool":
                self._column.addLayout(self._switch_row(field))
                self._gaps.append(self._gap())
            elif field.kind == "choice" and len(field.choices) <= _SEGMENTS_AT_MOST:
                self._column.addWidget(self._choice(field))
            else:
                self._column.addLayout(self._picker_row(field))
        self._column.addLayout(self._note_line())

    def _gap(self) -> QSpacerItem:
        """Room between groups, beyond that between rows."""
        gap = QSpacerItem(0, 0, QSizePolicy.Policy.Minimum, QSizePolicy.Policy.Fixed)
        self._column.addSpacerItem(gap)
        return gap

    def _number_row(self, field: Field) -> FieldRow:
        assert field.low is not None
        assert field.high is not None
        row = FieldRow(self.look, field.title, field.help, int(field.low), int(field.high), field.steps)
        row.changed.connect(lambda value, name=field.name: self._set(name, value))
        self._rows[field.name] = row
        return row

    def _size_line(self) -> QHBoxLayout:
        line = QHBoxLayout()
        self.head_dim = Label(self.look, "", 12, 400, "text_tertiary")
        self.work = Label(self.look, "", 12, 400, "text_tertiary")
        line.addWidget(self.head_dim)
        line.addStretch(1)
        line.addWidget(self.work)
        return line

    def _switch_row(self, field: Field) -> QHBoxLayout:
        line = QHBoxLayout()
        label = Label(self.look, field.title, 13, 400, "text_secondary")
        label.setToolTip(field.help)
        switch = Switch(self.look, field.title)
        switch.toggled.connect(lambda on, name=field.name: self._set(name, on))
        self._switches[field.name] = switch
        self._switch_labels[field.name] = label
        line.addWidget(label)
        line.addStretch(1)
        line.addWidget(switch)
        return line

    def _choice(self, field: Field) -> Segmented:
        options = [(choice, choice_title(choice)) for choice in field.choices]
        control = Segmented(self.look, options, field.title, padding=6)
        control.setToolTip(field.help)
        control.chosen.connect(lambda value, name=field.name: self._set(name, value))
        self._segments[field.name] = control
        return control

    def _picker_row(self, field: Field) -> QHBoxLayout:
        line = QHBoxLayout()
        line.setSpacing(0)
        label = Label(self.look, field.title, 13, 400, "text_secondary")
        label.setFixedWidth(_LABEL_WIDTH)
        label.setToolTip(field.help)
        picker = Picker(self.look, field.title)
        if field.name == "device":
            picker.set_items(lambda: device_items(self._environment, self._draft.device))
            picker.chosen.connect(self._choose_device)
        else:
            picker.set_items(partial(self._choices, field))
            picker.chosen.connect(lambda value, name=field.name: self._set(name, value))
        self._pickers[field.name] = picker
        line.addWidget(label)
        line.addWidget(picker, 1)
        return line

    def _note_line(self) -> QHBoxLayout:
        line = QHBoxLayout()
        line.setContentsMargins(_LABEL_WIDTH, 0, 0, 0)
        line.setSpacing(4)
        self.note = Label(self.look, "", 12, 400, "text_tertiary", may_elide=True)
        self.why = TextLink(self.look, "why", 12, 600)
        self.why.clicked.connect(lambda: self._pickers["device"].open())
        line.addWidget(self.note, 0, Qt.AlignmentFlag.AlignVCenter)
        line.addWidget(self.why, 0, Qt.AlignmentFlag.AlignVCenter)
        line.addStretch(1)
        return line

    def restyle(self) -> None:
        small = self.look.small
        self._column.setSpacing(4 if small else 8)
        for gap in self._gaps:
            gap.changeSize(0, 0 if small else 4)
        self._column.invalidate()
        # One width for all labels, so that the sliders stand below one another whatever the font.
        widest = max(row.label.sizeHint().width() for row in self._rows.values())
        for row in self._rows.values():
            row.label.setFixedWidth(widest)
        self._show()

    # ---- changing --------------------------------------------------------------------------------------

    def _set(self, name: str, value: object) -> None:
        if getattr(self._draft, name) == value:
            return
        changes = {name: value}
        if name == "mode":
            changes["causal"] = value == "decode" or self._causal
        self._draft = msgspec.structs.replace(self._draft, **changes)
        can_run = self._draft
        if can_run.problems:
            # Only the field at fault waits: what else is changed meanwhile goes on with its last good value.
            can_run = msgspec.structs.replace(self._valid, **changes)
        if can_run.problems:
            # What waits to be passed on is the last one that could run: it goes out all the same.
            self._show()
            return
        self._valid = can_run
        self._show()
        self._emit.put(self._valid)

    def _reset(self) -> None:
        self._emit.drop()
        self._valid = self._draft = msgspec.structs.replace(Workload(), device=self._valid.device)
        self._show()
        self._emit.put(self._valid)

    def _choose_device(self, choice: str) -> None:
        if choice == OPEN_SYSTEM:
            self.system_requested.emit()
        elif choice.startswith(COPY):
            QApplication.clipboard().setText(command_for(self._environment, choice.removeprefix(COPY)))
        else:
            self._set("device", choice)

    # ---- showing ---------------------------------------------------------------------------------------

    def _show(self) -> None:
        draft = self._draft
        wrong = {problem.field: problem for problem in draft.problems}
        for name, row in self._rows.items():
            row.set_number(getattr(draft, name))
            row.set_wrong(name in wrong)
            row.slider.set_impossible(self._impossible(name, row.slider.steps))
        for name, switch in self._switches.items():
            blocked = switch.blockSignals(True)
            switch.setChecked(getattr(draft, name))
            switch.blockSignals(blocked)
            switch.settle()
        self._show_decoding(draft.decode)
        if not draft.decode:
            self._causal = draft.causal
        for name, control in self._segments.items():
            control.set_value(getattr(draft, name))
        for name, picker in self._pickers.items():
            value = getattr(draft, name)
            picker.set_text(title_of(self._environment, value) if name == "device" else value)
        self._explanation.show_problem(next(iter(wrong.values()), None), draft, self._valid)
        self._show_size(bool(wrong))
        text, has_reason = note_of(self._environment, draft.device, self.look.small)
        self.note.setText(text + (" ·" if has_reason else ""))
        self.note.setVisible(bool(text))
        self.why.setVisible(has_reason)
        self.profile.show_workload(self._valid)

    def _show_decoding(self, decode: bool) -> None:
        """What reads otherwise in decode mode, and what is no choice there."""
        fields = fields_of(Workload)
        sequence, causal = fields["seq_len"], fields["causal"]
        self._rows["seq_len"].set_title(*(_CACHED if decode else (sequence.title, sequence.help)))
        why = f"No choice here: {CAUSAL_IN_DECODE}" if decode else causal.help
        self._switches["causal"].setEnabled(not decode)
        for widget in (self._switches["causal"], self._switch_labels["causal"]):
            widget.setToolTip(why)

    def _show_size(self, wrong: bool) -> None:
        draft = self._draft
        self.head_dim.setText(f"head_dim {NOTHING if wrong else number(draft.head_dim)}")
        self.work.setVisible(not wrong)
        if not wrong:
            division = "" if self.look.small else f"{number(draft.embed_dim)} ÷ {number(draft.num_heads)} · "
            self.work.setText(f"{division}{flops(draft.flops)}")

    def _choices(self, field: Field) -> list[MenuItem]:
        current = getattr(self._draft, field.name)
        return [MenuItem(choice, choice, checked=choice == current) for choice in field.choices]

    def _impossible(self, name: str, steps: Sequence[int]) -> frozenset[int]:
        """Steps that would make a combination that cannot run. Where none of them helps, the trouble is
        another field's and this one carries no cross."""
        bad = frozenset(
            step for step in steps if msgspec.structs.replace(self._draft, **{name: step}).problems
        )
        about_this = any(problem.field == name for problem in self._draft.problems)
        return bad if about_this or len(bad) < len(steps) else frozenset()


def choice_title(choice: str) -> str:
    """How a choice reads: `forward_backward` as `Forward + backward`."""
    return choice.replace("_", " + ").capitalize()
