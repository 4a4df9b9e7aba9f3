"""The grid of a sweep: its axes, its cells and what stands in each, read from a plan and a recording."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from app.core.catalog import is_hidden
from app.core.fields import Field, FieldError, fields_of
from app.core.plan import MAX_WORKLOADS, Measure, Plan, Skipped
from app.core.recording import Recording, Status, WorkloadRecord
from app.core.results import Entry, floor_of, speed_up_of
from app.core.statistics import SpeedUp
from app.core.text import number
from app.core.workload import Workload

MAX_AXES = 3

SWEEP_MEASURE = Measure(max_seconds=2.5, target_ci=0.02, min_rounds=30)
"""How long a cell is measured unless a profile says otherwise: about 6 s with all that belongs to it."""

CellState = Literal[
    "waiting",
    "measuring",
    "measured",
    "faster",
    "slower",
    "same",
    "unsure",
    "wrong",
    "failed",
    "impossible",
    "unavailable",
]
DECIDED: tuple[CellState, ...] = ("faster", "slower", "same")

Values = tuple[Any, ...]


class Axis(msgspec.Struct, frozen=True):
    """A field of the workload and the values it takes, in the order in which they are drawn."""

    field: str
    values: Values

    @property
    def declared(self) -> Field:
        return fields_of(Workload)[self.field]

    @property
    def title(self) -> str:
        return self.declared.title

    @property
    def is_numeric(self) -> bool:
        """Whether values have distances, so that a curve may be drawn through them."""
        return self.declared.kind in ("int", "float")


class Cell(msgspec.Struct, frozen=True):
    """One crossing of the axes. `workload` is None where the combination cannot run, for `reason`."""

    values: Values
    workload: Workload | None
    reason: str = ""


class Result(msgspec.Struct, frozen=True):
    """Where one contender stands in one cell; `reason` says why where that is no decision."""

    cell: Cell
    state: CellState
    reason: str = ""
    entry: Entry | None = None

    @property
    def ratio(self) -> float | None:
        """The speed-up; None where there is none or it may not be shown."""
        speed = self.entry.speed_up if self.entry is not None else None
        return None if speed is None else speed.median


class Grid:
    """Cells of a sweep by their place. At least one axis; all of them differ somewhere."""

    def __init__(self, axes: Sequence[Axis], cells: Mapping[Values, Cell]) -> None:
        self.axes = tuple(axes)
        self._cells = dict(cells)
        self._by_workload = {c.workload: c for c in cells.values() if c.workload is not None}

    def __len__(self) -> int:
        return len(self._cells)

    @property
    def cells(self) -> tuple[Cell, ...]:
        return tuple(self._cells.values())

    @property
    def measurable(self) -> int:
        """How many cells can run."""
        return len(self._by_workload)

    def axis(self, field: str) -> Axis | None:
        return next((axis for axis in self.axes if axis.field == field), None)

    def at(self, values: Mapping[str, Any]) -> Cell | None:
        """The cell whose axes have these values; fields that are no axis are ignored."""
        if any(axis.field not in values for axis in self.axes):
            return None
        return self._cells.get(tuple(values[axis.field] for axis in self.axes))

    def cell_of(self, workload: Workload) -> Cell | None:
        return self._by_workload.get(workload)

    def values_of(self, cell: Cell) -> dict[str, Any]:
        return {axis.field: value for axis, value in zip(self.axes, cell.values, strict=True)}

    def line(self, field: str, cell: Cell) -> tuple[Cell, ...]:
        """The cells that differ from `cell` along one axis only, in its order."""
        axis = self.axis(field)
        if axis is None:
            return ()
        fixed = self.values_of(cell)
        found = (self.at({**fixed, field: value}) for value in axis.values)
        return tuple(c for c in found if c is not None)


def sweep_plan(
    base: Workload,
    axes: Mapping[str, Sequence[Any]],
    implementations: Sequence[str],
    baseline: str,
    measure: Measure = SWEEP_MEASURE,
    title: str = "Sweep",
) -> Plan:
    """A plan of `axes` crossed over `base`, its workloads in the order in which they fill the picture.

    Raises FieldError for a value out of range, for too many cells, and where not one of them can run.
    """
    fields = fields_of(Workload)
    values: dict[str, tuple[Any, ...]] = {}
    for name, wanted in axes.items():
        checked = [fields[name].check(value, f"sweep.{name}[{i}]") for i, value in enumerate(wanted)]
        if not checked:
            raise FieldError(f"sweep.{name}", "nothing", "one or more values")
        values[name] = _in_order(fields[name], checked)
    count = 1
    for some in values.values():
        count *= len(some)
    if count > MAX_WORKLOADS:
        raise FieldError("sweep", f"{count:,} cells", f"at most {MAX_WORKLOADS:,} in all")
    order = [axis.field for axis in _as_drawn([Axis(name, some) for name, some in values.items()])]
    values = {name: values[name] for name in order}
    workloads: dict[Workload, tuple[int, ...]] = {}
    skipped: list[Skipped] = []
    for places in itertools.product(*(range(len(some)) for some in values.values())):
        chosen = {name: values[name][place] for name, place in zip(values, places, strict=True)}
        workload = msgspec.structs.replace(base, **chosen)
        if workload.problems:
            skipped.append(Skipped(chosen, workload.problems[0].sentence))
        else:
            workloads.setdefault(workload, places)
    if not workloads:
        reason = skipped[0].reason if skipped else ""
        raise FieldError("sweep", f"{count:,} cells", f"at least one that can run; {reason}")
    sizes = [len(some) for some in values.values()]
    ordered = sorted(workloads, key=lambda workload: _urgency(workloads[workload], sizes, workload))
    return Plan(
        workloads=tuple(ordered),
        implementations=tuple(implementations),
        baseline=baseline,
        measure=measure,
        title=title,
        skipped=tuple(skipped),
    )


def remeasured(
    plan: Plan, recording: Recording, again: Sequence[Workload], longer: float = 4.0
) -> tuple[Plan, int]:
    """A plan that measures `again`, and what is not done yet, `longer` times as long and as closely.

    The other cells keep their place in front; the second value is the first workload to measure.
    """
    wanted = set(again)
    kept = [
        w
        for w in plan.workloads
        if w not in wanted and is_finished(recording.record_for(w, plan.measure.cache))
    ]
    rest = [w for w in plan.workloads if w not in set(kept)]
    measure = msgspec.structs.replace(
        plan.measure,
        max_seconds=min(plan.measure.max_seconds * longer, 3600.0),
        target_ci=max(plan.measure.target_ci / longer, 0.0005),
    )
    return msgspec.structs.replace(plan, workloads=(*kept, *rest), measure=measure), len(kept)


def _urgency(places: Sequence[int], sizes: Sequence[int], workload: Workload) -> tuple[int, int, int]:
    """Slice after slice of a third axis; in each the corners first, then ever finer; cheap ones first."""
    slice_number = places[2] if len(places) > 2 else 0
    level = max(
        (refinement(place, size) for place, size in zip(places[:2], sizes[:2], strict=True)), default=0
    )
    return slice_number, level, workload.flops


def refinement(place: int, size: int) -> int:
    """At which halving of 0…size−1 a place is met: 0 for both ends, 1 for the middle, and so on."""
    low, high, level = 0, size - 1, 0
    while place not in (low, high):
        level += 1
        middle = (low + high) // 2
        if place == middle:
            break
        low, high = (low, middle) if place < middle else (middle, high)
    return level


def axes_of(plan: Plan) -> tuple[Axis, ...]:
    """The fields in which a plan's cells differ, those that cannot run included.

    The most values first, so that the picture is wide rather than high. A field that only follows another
    one is left out.
    """
    found = []
    for name, field in fields_of(Workload).items():
        values = {getattr(workload, name) for workload in plan.workloads}
        values |= {skipped.values[name] for skipped in plan.skipped if name in skipped.values}
        if len(values) > 1:
            found.append(Axis(name, _in_order(field, values)))
    return _independent(found, plan)


def _independent(axes: list[Axis], plan: Plan) -> tuple[Axis, ...]:
    """Without those whose value is known once the others' are, such as heads that follow the embedding."""
    kept = list(axes)
    for axis in sorted(axes, key=lambda a: (a.field not in ("num_heads", "batch"), len(a.values))):
        others = [other.field for other in kept if other is not axis]
        if not others:
            break
        by_others: dict[Values, set[Any]] = {}
        for workload in plan.workloads:
            key = tuple(getattr(workload, name) for name in others)
            by_others.setdefault(key, set()).add(getattr(workload, axis.field))
        swept = any(axis.field in skipped.values for skipped in plan.skipped)
        if not swept and all(len(values) == 1 for values in by_others.values()):
            kept.remove(axis)
    return _as_drawn(kept)


def _as_drawn(axes: Sequence[Axis]) -> tuple[Axis, ...]:
    """Across, down, and what is left for a choice beside the picture."""
    return tuple(sorted(axes, key=lambda a: (not a.is_numeric, -len(a.values), a.field != "seq_len")))


def grid_of(plan: Plan | None) -> Grid | None:
    """The grid of a plan; None for one that crosses nothing."""
    axes = axes_of(plan) if plan is not None and len(plan.workloads) + len(plan.skipped) > 1 else ()
    if plan is None or not axes:
        return None
    names = [axis.field for axis in axes]
    cells: dict[Values, Cell] = {}
    base = plan.workloads[0]
    for skipped in plan.skipped:
        place = tuple(skipped.values.get(name, getattr(base, name)) for name in names)
        cells[place] = Cell(place, None, skipped.reason)
    for workload in plan.workloads:
        place = tuple(getattr(workload, name) for name in names)
        cells.setdefault(place, Cell(place, workload))
    return Grid(axes, cells)


def _in_order(field: Field, values: Sequence[Any] | set[Any]) -> Values:
    if field.kind == "choice":
        return tuple(choice for choice in field.choices if choice in values)
    return tuple(sorted(set(values)))


def shown(field: str, value: object) -> str:
    """A value of an axis as it is written beside it."""
    if isinstance(value, bool):
        return "causal" if value and field == "causal" else "full" if field == "causal" else str(value)
    if isinstance(value, (int, float)):
        return number(value)
    return str(value).replace("forward_backward", "forward + backward")


def described(grid: Grid, cell: Cell) -> str:
    """`sequence 64 · embedding 128`."""
    return " · ".join(
        f"{_lower(axis)} {shown(axis.field, grid.values_of(cell)[axis.field])}" for axis in grid.axes
    )


def _lower(axis: Axis) -> str:
    return axis.title.lower()


# ---- what stands in a cell -----------------------------------------------------------------------------


def result_of(
    cell: Cell,
    implementation: str,
    record: WorkloadRecord | None,
    entry: Entry | None,
    active: Workload | None = None,
) -> Result:
    """Where `implementation` stands in `cell`. `entry` is its result there, `active` what is measured now."""
    if cell.workload is None:
        return Result(cell, "impossible", cell.reason)
    status = record.status.get(implementation, Status()) if record is not None else Status()
    if entry is not None and entry.status in ("failed", "unavailable"):
        state: CellState = "failed" if entry.status == "failed" else "unavailable"
        return Result(cell, state, entry.reason or status.reason, entry)
    if cell.workload == active:
        return Result(cell, "measuring", "", entry)
    if entry is None or entry.latency is None:
        done = record is not None and record.stopped_because == "no_contender"
        return Result(cell, "unavailable" if done else "waiting", status.reason, entry)
    if entry.accuracy is not None and not entry.accuracy.ok:
        return Result(cell, "wrong", entry.verdict_reason or "wrong result", entry)
    if entry.implementation == entry.baseline:
        return Result(cell, "measured", "", entry)
    if entry.verdict in (None, "unsure") and not is_finished(record):
        # A few samples of another occasion: what is not measured to its end is not undecided yet.
        return Result(cell, "waiting", "", entry)
    if entry.verdict is None:
        reason = status_of_baseline(record, entry.baseline)
        return Result(cell, "unsure", reason or "there is no speed-up: the baseline was not measured", entry)
    return Result(cell, entry.verdict, entry.verdict_reason or "", entry)


def status_of_baseline(record: WorkloadRecord | None, baseline: str) -> str:
    status = record.status.get(baseline, Status()) if record is not None else Status()
    return f"the baseline was not measured: {status.reason}" if status.reason else ""


def is_finished(record: WorkloadRecord | None) -> bool:
    """Whether a cell was measured to its end, whatever came of it."""
    return record is not None and record.stopped_because is not None


def finished_cells(plan: Plan, recording: Recording) -> int:
    """How many of the plan's workloads are done, counted from its start: the first that is not is next."""
    for index, workload in enumerate(plan.workloads):
        if not is_finished(recording.record_for(workload, plan.measure.cache)):
            return index
    return len(plan.workloads)


def speed_against(
    record: WorkloadRecord | None, implementation: str, rival: str, baseline: str
) -> SpeedUp | None:
    """Rival's time over the contender's in common rounds. The floor is the baseline's, as for all others."""
    if record is None or is_hidden(implementation):
        return None
    return speed_up_of(record, implementation, rival, floor_of(record, baseline))


def counted(results: Sequence[Result]) -> Iterator[tuple[CellState, tuple[Result, ...]]]:
    """Results by state, in a fixed order; states of which there is none are left out."""
    order: tuple[CellState, ...] = ("unsure", "wrong", "failed", "unavailable", "impossible")
    for state in order:
        found = tuple(result for result in results if result.state == state)
        if found:
            yield state, found
