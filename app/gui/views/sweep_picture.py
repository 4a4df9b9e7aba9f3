"""What the sweep's charts show, worked out of results: figures, words, colours' scale. Draws nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.core import text
from app.core.catalog import contender
from app.core.crossover import Crossover, span
from app.core.results import Entry
from app.core.sweep import DECIDED, Axis, Cell, Grid, Result, described, shown
from app.gui.charts.heat_map import HeatCell, HeatPicture, words_for
from app.gui.charts.heat_scale import HeatScale
from app.gui.charts.sweep_curves import CurveLine, CurveMark, CurvePicture, CurvePoint, time_label
from app.gui.sweep_results import SweepResults


@dataclass(frozen=True)
class Metric:
    """What the map may show. `value` of an entry, None where there is none; `said` is how it is written."""

    id: str
    title: str
    map_title: str
    scale_title: str
    value: Callable[[Entry], float | None]
    said: Callable[[float], str]
    is_ratio: bool = False


def _total(counts: Mapping[str, int | None] | None) -> float | None:
    parts = [part for part in (counts or {}).values() if part is not None]
    return float(sum(parts)) if parts else None


def _launches(entry: Entry) -> float | None:
    return _total(entry.counts.kernel_launches)


def _operator_calls(entry: Entry) -> float | None:
    return _total(entry.counts.operator_calls)


def metrics(on_gpu: bool) -> tuple[Metric, ...]:
    """On a CPU operator calls stand in the place of launches."""
    if on_gpu:
        calls = Metric("calls", "Launches", "Kernel launches", "Launches", _launches, text.number)
    else:
        calls = Metric("calls", "Operators", "Operator calls", "Calls", _operator_calls, text.number)
    return (
        Metric(
            "speed-up",
            "Speed-up",
            "Speed-up map",
            "Speed-up",
            lambda e: e.speed_up.median if e.speed_up is not None else None,
            lambda v: text.number(v, 2 if v < 99.5 else 0),
            True,
        ),
        Metric(
            "latency",
            "Latency",
            "Latency map",
            "Time",
            lambda e: e.latency.median_s if e.latency is not None else None,
            time_label,
        ),
        calls,
        Metric(
            "memory",
            "Memory",
            "Memory map",
            "Peak",
            lambda e: float(e.memory.peak_bytes) if e.memory.peak_bytes is not None else None,
            text.size,
        ),
    )


@dataclass(frozen=True)
class Slice:
    """Which part of a grid lies in the plane of the map: its axes across and down, the others' values."""

    across: Axis
    down: Axis | None
    others: tuple[tuple[Axis, Any], ...]

    @classmethod
    def through(cls, grid: Grid, cell: Cell) -> Slice:
        axes = grid.axes
        values = grid.values_of(cell)
        down = axes[1] if len(axes) > 1 else None
        return cls(axes[0], down, tuple((axis, values[axis.field]) for axis in axes[2:]))

    def cell(self, grid: Grid, column: int, row: int) -> Cell | None:
        values = {axis.field: value for axis, value in self.others}
        values[self.across.field] = self.across.values[column]
        if self.down is not None:
            values[self.down.field] = self.down.values[row]
        return grid.at(values)

    def place(self, grid: Grid, cell: Cell) -> tuple[int, int] | None:
        values = grid.values_of(cell)
        if any(values[axis.field] != value for axis, value in self.others):
            return None
        row = self.down.values.index(values[self.down.field]) if self.down is not None else 0
        return self.across.values.index(values[self.across.field]), row


def heat_picture(
    results: SweepResults, plane: Slice, implementation: str, metric: Metric, selected: Cell | None
) -> HeatPicture:
    """The map of one contender in one plane of the grid."""
    grid = results.grid
    assert grid is not None
    cells = []
    values: list[float] = []
    rows = plane.down.values if plane.down is not None else ("",)
    for row in range(len(rows)):
        for column in range(len(plane.across.values)):
            cell = plane.cell(grid, column, row)
            if cell is None:
                continue
            result = results.result(cell, implementation)
            made = heat_cell(grid, result, metric, implementation)
            cells.append(((column, row), made))
            if made.value is not None:
                values.append(made.value)
    # One scale for all planes: the same colour means the same wherever one looks.
    for result in results.results(implementation):
        value = metric.value(result.entry) if result.entry is not None else None
        if value is not None and result.state not in ("failed", "unavailable", "wrong"):
            values.append(value)
    scale = HeatScale.of_ratios(values) if metric.is_ratio else HeatScale.of_amounts(values)
    said = (lambda v: f"{v:.1f}×" if v % 1 else f"{v:.0f}×") if metric.is_ratio else metric.said
    return HeatPicture(
        columns=tuple(shown(plane.across.field, v) for v in plane.across.values),
        rows=tuple(shown(plane.down.field, v) for v in rows) if plane.down is not None else ("",),
        column_title=plane.across.title,
        row_title=plane.down.title if plane.down is not None else "",
        cells=tuple(cells),
        scale=scale,
        scale_title=metric.scale_title,
        ticks=tuple((tick, said(tick)) for tick in scale.ticks()),
        ringed=plane.place(grid, selected) if selected is not None else None,
    )


def heat_cell(grid: Grid, result: Result, metric: Metric, implementation: str) -> HeatCell:
    where = described(grid, result.cell)
    name = contender(implementation).short
    value = metric.value(result.entry) if result.entry is not None else None
    measured = result.state in (*DECIDED, "unsure", "measured")
    if not measured or value is None:
        state = result.state
        words = words_for(state, result.reason)
        if measured:
            # Measured, but this figure was not taken: no verdict about it.
            state, words = "unavailable", "not counted" if metric.id == "calls" else "no figure"
        said = {"waiting": "not measured yet", "measuring": "is being measured now"}.get(state, result.reason)
        return HeatCell(state, None, "", words, f"{where}\n{name}: {said or words}")
    state = result.state if metric.is_ratio else "measured"
    tip = f"{where}\n{name}: {metric.said(value)}{'×' if metric.is_ratio else ''}"
    speed = result.entry.speed_up if result.entry is not None else None
    if metric.is_ratio and speed is not None and speed.low is not None and speed.high is not None:
        tip += f", 95{text.THIN}% interval {speed.low:.2f}–{speed.high:.2f}"
    if metric.is_ratio:
        tip += f"\n{state.upper()}: {result.reason}" if result.reason else f"\n{state.upper()}"
    return HeatCell(state, value, metric.said(value), "", tip)


# ---- curves --------------------------------------------------------------------------------------------


def curve_picture(
    results: SweepResults, axis: Axis, selected: Cell, implementation: str, is_ratio: bool
) -> tuple[CurvePicture, str]:
    """The curves through `selected` along `axis`, and the sentence about the crossover."""
    grid = results.grid
    assert grid is not None
    line = grid.line(axis.field, selected)
    names = [n for n in results.contenders if not (is_ratio and n == results.baseline)]
    lines = tuple(made for name in names if (made := _curve(results, axis, line, name, is_ratio)).points)
    crossed, rival, words = results.crossing(line, axis, implementation)
    mark = _mark(crossed, rival, implementation, axis) if crossed is not None else None
    place = grid.axes.index(axis)
    picture = CurvePicture(
        lines=lines,
        ticks=tuple(float(v) for v in axis.values),
        is_ratio=is_ratio,
        mark=mark,
        selected=float(selected.values[place]),
        highlighted=implementation,
        spoken=words,
    )
    return picture, words


def _curve(results: SweepResults, axis: Axis, line: Sequence[Cell], name: str, is_ratio: bool) -> CurveLine:
    grid = results.grid
    assert grid is not None
    place = grid.axes.index(axis)
    points = []
    for cell in line:
        result = results.result(cell, name)
        entry = result.entry
        if entry is None or result.state not in (*DECIDED, "unsure", "measured"):
            continue
        at = float(cell.values[place])
        if is_ratio and entry.speed_up is not None:
            speed = entry.speed_up
            low, high = speed.low or speed.median, speed.high or speed.median
            points.append(CurvePoint(at, speed.median, low, high, result.state in DECIDED))
        elif not is_ratio and entry.latency is not None:
            summary = entry.latency
            low, high = summary.q1_s or summary.median_s, summary.q3_s or summary.median_s
            points.append(CurvePoint(at, summary.median_s, low, high))
    return CurveLine(name, tuple(points))


def _mark(found: Crossover, rival: str, implementation: str, axis: Axis) -> CurveMark | None:
    if found.at is None:
        return None
    name = contender(implementation).short
    other = contender(rival).short
    if not found.overtaken:
        beyond = f"beyond: {other} undecided" if found.kind == "stops" else "below: undecided"
    elif found.kind == "stops":
        beyond = f"beyond: {other} faster"
    else:
        beyond = f"beyond: {name} faster"
    words = (f"crossover at {text.number(round(found.at))}", f"({span(found)})", beyond)
    return CurveMark(implementation, found.at, found.low, found.high, words)
