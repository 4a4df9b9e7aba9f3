"""A new sweep: two or three fields, the values of each, and what that comes to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QAbstractButton, QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from app.core.fields import Field, FieldError, fields_of
from app.core.plan import Measure, Plan
from app.core.recording import Recording
from app.core.sweep import SWEEP_MEASURE, grid_of, shown, sweep_plan
from app.core.time_left import left_words, time_left
from app.core.workload import Workload
from app.gui.charts.heat_map import HeatMap
from app.gui.parts.buttons import Button
from app.gui.parts.card import Card
from app.gui.parts.look import Look, Part
from app.gui.parts.menu import MenuItem
from app.gui.parts.picker import Picker
from app.gui.parts.text import CENTRE, Label, Paragraph, draw_text, width_of
from app.gui.parts.toggles import Segmented
from app.gui.sweep_results import SweepResults
from app.gui.theme import CONTROL_RADIUS
from app.gui.views.sweep_picture import Slice, heat_picture, metrics

_ROOM_FOR_PREVIEW = 480
NONE = "none"
ROLES = ("Across", "Down", "Third")
DEFAULT_AXES = ("seq_len", "embed_dim", NONE)
DEFAULT_VALUES: dict[str, tuple[Any, ...]] = {
    "batch": (1, 4, 16, 64),
    "seq_len": (4, 16, 64, 256, 512, 1024),
    "embed_dim": (32, 64, 128, 256, 512, 1024),
    "num_heads": (1, 4, 16),
}
PACES: dict[str, tuple[str, Measure]] = {
    "quick": ("Quick", Measure(max_seconds=1.0, target_ci=0.05, counts=False)),
    "normal": ("Normal", SWEEP_MEASURE),
    "careful": ("Careful", Measure(max_seconds=10.0, target_ci=0.01)),
}


def sweepable() -> dict[str, Field]:
    """Fields that can be an axis: those with steps, choices or two states."""
    return {
        name: field
        for name, field in fields_of(Workload).items()
        if field.steps or field.kind in ("choice", "bool")
    }


def values_of(field: Field) -> tuple[Any, ...]:
    """What may be chosen of a field."""
    if field.kind == "bool":
        return (False, True)
    return field.steps or field.choices


class ValueChip(QAbstractButton, Part):
    """A value that is in or out. Space and Enter toggle it; it looks pressed where it is in."""

    ring_radius = float(CONTROL_RADIUS)

    def __init__(self, look: Look, name: str, text: str, value: object) -> None:
        super().__init__()
        self.value = value
        self.setText(text)
        self.setCheckable(True)
        self.setAccessibleName(f"{name} {text}")
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.set_look(look)

    def sizeHint(self) -> QSize:
        return QSize(max(int(width_of(self.text(), self.look.font(12, 600))) + 18, 34), 26)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        look, on = self.look, self.isChecked()
        rect = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        edge = "text_secondary" if on else "strong_line"
        painter.setPen(QPen(look.colour(edge), 1.5 if on else 1))
        painter.setBrush(look.colour("raised") if on or self.underMouse() else look.field)
        painter.drawRoundedRect(rect, CONTROL_RADIUS, CONTROL_RADIUS)
        painter.setPen(look.colour("text" if on else "text_tertiary"))
        painter.setFont(look.font(12, 600 if on else 500))
        draw_text(painter, rect, self.text(), CENTRE)


class Flow(QWidget, Part):
    """Children in lines, broken where the width says."""

    GAP = 6

    def __init__(self, look: Look) -> None:
        super().__init__()
        self.look = look
        self.items: list[QWidget] = []
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def fill(self, items: Sequence[QWidget]) -> None:
        for old in self.items:
            old.setParent(None)
            old.deleteLater()
        self.items = list(items)
        for item in self.items:
            item.setParent(self)
            item.show()
        self.updateGeometry()
        self._lay()

    def restyle(self) -> None:
        self._lay()

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return self._lay(width, apply=False)

    def sizeHint(self) -> QSize:
        return QSize(200, self._lay(max(self.width(), 200), apply=False))

    def minimumSizeHint(self) -> QSize:
        return QSize(80, 26)

    def resizeEvent(self, event: object) -> None:
        self._lay()
        self.updateGeometry()

    def _lay(self, width: int | None = None, apply: bool = True) -> int:
        room = self.width() if width is None else width
        x = y = line = 0
        for item in self.items:
            size = item.sizeHint()
            if x and x + size.width() > room:
                x, y, line = 0, y + line + self.GAP, 0
            if apply:
                item.setGeometry(x, y, size.width(), size.height())
            x += size.width() + self.GAP
            line = max(line, size.height())
        return y + max(line, 26)


class AxisRow(QWidget, Part):
    """`changed`: another field, or other values of it."""

    changed = Signal()

    def __init__(self, look: Look, role: str, optional: bool) -> None:
        super().__init__()
        self.look, self._optional = look, optional
        self.field = NONE
        self.taken: frozenset[str] = frozenset()
        self._chosen: dict[str, tuple[Any, ...]] = {}
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(14)
        left = QVBoxLayout()
        left.setSpacing(4)
        self.role = Label(look, role, 12, 500, "text_tertiary")
        self.picker = Picker(look, f"Axis {role.lower()}")
        self.picker.setFixedWidth(150)
        self.picker.set_items(self._items)
        self.picker.chosen.connect(self._pick)
        left.addWidget(self.role)
        left.addWidget(self.picker)
        left.addStretch(1)
        row.addLayout(left)
        right = QVBoxLayout()
        right.setSpacing(4)
        self.values_word = Label(look, "Values", 12, 500, "text_tertiary")
        right.addWidget(self.values_word)
        self.flow = Flow(look)
        right.addWidget(self.flow)
        right.addStretch(1)
        row.addLayout(right, 1)

    @property
    def values(self) -> tuple[Any, ...]:
        return tuple(chip.value for chip in self.chips if chip.isChecked())

    @property
    def chips(self) -> list[ValueChip]:
        return [item for item in self.flow.items if isinstance(item, ValueChip)]

    def set_field(self, field: str, current: object = None) -> None:
        """Choose without telling; `current` is offered too where it is no step."""
        if self.field != NONE:
            self._chosen[self.field] = self.values
        self.field = field
        known = sweepable()
        self.picker.set_text("None" if field == NONE else known[field].title)
        chips: list[ValueChip] = []
        if field != NONE:
            offered = list(values_of(known[field]))
            chosen = self._chosen.get(field) or DEFAULT_VALUES.get(field) or tuple(offered)
            if current is not None and current not in offered:
                offered = sorted([*offered, current])
            for value in offered:
                chip = ValueChip(self.look, known[field].title, shown(field, value), value)
                chip.setChecked(value in chosen)
                chip.toggled.connect(lambda _: self.changed.emit())
                chips.append(chip)
        self.values_word.setVisible(bool(chips))
        self.flow.fill(chips)

    def _items(self) -> list[MenuItem]:
        items = [MenuItem(NONE, "None", checked=self.field == NONE)] if self._optional else []
        for name, field in sweepable().items():
            reason = "is an axis already" if name in self.taken else field.help
            items.append(
                MenuItem(
                    name, field.title, reason, checked=name == self.field, enabled=name not in self.taken
                )
            )
        return items

    def _pick(self, field: str) -> None:
        self.set_field(field)
        self.changed.emit()


class SweepSetup(Card):
    """Makes a plan. `start_requested` carries it."""

    start_requested = Signal(object)
    closed = Signal()

    def __init__(self, look: Look) -> None:
        super().__init__(look, "New sweep", "every value crossed with every other; the rest as at the left")
        self.base = Workload()
        self.implementations: tuple[str, ...] = ("native",)
        self.baseline = "native"
        self.rows = [AxisRow(look, role, index > 0) for index, role in enumerate(ROLES)]
        self.body.setSpacing(14)
        for row, field in zip(self.rows, DEFAULT_AXES, strict=True):
            row.set_field(field)
            row.changed.connect(self._changed)
            self.body.addWidget(row)
        pace = QHBoxLayout()
        pace.setSpacing(14)
        label = Label(look, "Per cell", 12, 500, "text_tertiary")
        label.setFixedWidth(150)
        self.pace = Segmented(look, [(key, title) for key, (title, _) in PACES.items()], "Time per cell")
        self.pace.set_value("normal")
        self.pace.chosen.connect(lambda _: self._changed())
        self.pace_words = Label(look, "", 12, 400, "text_secondary", may_elide=True)
        pace.addWidget(label)
        pace.addWidget(self.pace)
        pace.addWidget(self.pace_words, 1)
        self.body.addLayout(pace)
        self.preview = HeatMap(look, legend=False)
        self.preview.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.preview.setEnabled(False)
        self.body.addWidget(self.preview, 1)
        self.filler = QWidget()
        self.body.addWidget(self.filler, 1)
        self.summary = Paragraph(look, "", 13, 500, "text")
        self.detail = Paragraph(look, "", 12)
        foot = QHBoxLayout()
        foot.setSpacing(10)
        words = QVBoxLayout()
        words.setSpacing(4)
        words.addWidget(self.summary)
        words.addWidget(self.detail)
        self.back = Button(look, "Back", kind="raised")
        self.start = Button(look, "Start sweep", "play", kind="primary")
        self.back.clicked.connect(self.closed)
        self.start.clicked.connect(self._start)
        foot.addLayout(words, 1)
        foot.addWidget(self.back, 0, Qt.AlignmentFlag.AlignBottom)
        foot.addWidget(self.start, 0, Qt.AlignmentFlag.AlignBottom)
        self.body.addLayout(foot)
        self._changed()

    def show_base(self, base: Workload, implementations: tuple[str, ...], baseline: str) -> None:
        """What the fields that are no axis are, and who takes part."""
        if (base, implementations, baseline) != (self.base, self.implementations, self.baseline):
            self.base, self.implementations, self.baseline = base, implementations, baseline
            self._changed()

    def plan(self) -> Plan:
        """The sweep as it is set. Raises FieldError where nothing of it can run."""
        axes = {row.field: row.values for row in self.rows if row.field != NONE}
        _, measure = PACES[self.pace.value()]
        title = "Sweep of " + " × ".join(fields_of(Workload)[name].title.lower() for name in axes)
        return sweep_plan(self.base, axes, self.implementations, self.baseline, measure, title)

    def _changed(self) -> None:
        fields = [row.field for row in self.rows if row.field != NONE]
        for row in self.rows:
            row.taken = frozenset(field for field in fields if field != row.field)
        _, measure = PACES[self.pace.value()]
        counts = "calls counted" if measure.counts else "calls not counted"
        self.pace_words.setText(
            f"at most {measure.max_seconds:g} s of samples, or until ±{100 * measure.target_ci:g} %; {counts}"
        )
        try:
            plan = self.plan()
        except FieldError as error:
            self._refuse(
                "At least one value of each axis is needed." if error.value == "nothing" else str(error)
            )
            return
        cells = len(plan.workloads) + len(plan.skipped)
        if cells < 2:
            self._refuse("One cell is no sweep: choose a second value.")
            return
        left = left_words(time_left([], plan.workloads, plan.measure)).replace(" left", "")
        size = " × ".join(str(len(row.values)) for row in self.rows if row.field != NONE)
        self.summary.setText(f"{size} = {cells:,} cells, {left.replace('about', 'at most about')}")
        rivals = len(plan.implementations)
        said = f"{rivals} implementation{'s' if rivals > 1 else ''} in each, {self._rest(fields)}."
        if plan.skipped:
            said += f" {len(plan.skipped)} cannot run: {plan.skipped[0].reason}."
        self.detail.setText(said)
        self.start.setEnabled(True)
        self._show_preview(plan)

    def _show_preview(self, plan: Plan) -> None:
        """The picture that will fill: its first plane, with what cannot run."""
        grid = grid_of(plan)
        if grid is None:
            return
        results = SweepResults()
        results.look(Recording(), plan, plan.baseline, None)
        plane = Slice.through(grid, grid.cells[0])
        metric = metrics(False)[0]
        self.preview.show_picture(heat_picture(results, plane, plan.implementations[-1], metric, None))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        roomy = self.height() >= _ROOM_FOR_PREVIEW
        self.preview.setVisible(roomy)
        self.filler.setVisible(not roomy)

    def _rest(self, axes: Sequence[str]) -> str:
        """What stays the same in every cell."""
        told = []
        for name, field in fields_of(Workload).items():
            if name not in axes:
                value = shown(name, getattr(self.base, name))
                told.append(
                    value if field.kind in ("choice", "bool", "text") else f"{field.title.lower()} {value}"
                )
        return ", ".join(told)

    def _refuse(self, sentence: str) -> None:
        self.summary.setText(sentence)
        self.detail.setText("")
        self.start.setEnabled(False)

    def _start(self) -> None:
        self.start_requested.emit(self.plan())
