"""Every cell's result for the sweep's views, made anew only where its record changed."""

from __future__ import annotations

from collections.abc import Sequence

from app.core.catalog import contender
from app.core.crossover import Crossover, Point, crossover, sentence
from app.core.plan import Plan
from app.core.recording import Recording, WorkloadRecord
from app.core.results import Entry, entries_of
from app.core.sweep import Axis, Cell, Grid, Result, grid_of, result_of, speed_against
from app.core.workload import Workload


class SweepResults:
    """Looks at one recording with one plan at a time; call `look` before the rest."""

    def __init__(self) -> None:
        self.grid: Grid | None = None
        self.plan: Plan | None = None
        self.baseline = "native"
        self._recording: Recording | None = None
        self._active: Workload | None = None
        self._records: dict[Workload, WorkloadRecord] = {}
        self._entries: dict[Workload, tuple[int, dict[str, Entry]]] = {}
        self._crossings: dict[tuple[object, ...], tuple[Crossover | None, str, str]] = {}

    def look(self, recording: Recording, plan: Plan | None, baseline: str, active: Workload | None) -> None:
        """Take over a moment. Grid and entries are kept where they still hold."""
        if plan is not self.plan and plan != self.plan:
            self.grid = grid_of(plan)
        if recording is not self._recording or plan != self.plan or baseline != self.baseline:
            self._entries.clear()
            self._crossings.clear()
        self._recording, self.plan, self.baseline, self._active = recording, plan, baseline, active
        self._records = {record.workload: record for record in recording.records}

    @property
    def version(self) -> tuple[object, ...]:
        """Changes whenever a cell's result may have."""
        cells = self.plan.workloads if self.plan is not None else ()
        records = [self._records.get(workload) for workload in cells]
        # Samples of the cell in hand come ten times a second and decide nothing yet.
        versions = tuple(r.version if r is not None and r.workload != self._active else -1 for r in records)
        return (id(self._recording), self.baseline, self._active, versions)

    @property
    def contenders(self) -> tuple[str, ...]:
        """Who takes part, the baseline included."""
        return self.plan.implementations if self.plan is not None else ()

    def entry(self, cell: Cell, implementation: str) -> Entry | None:
        record = self._records.get(cell.workload) if cell.workload is not None else None
        if record is None:
            return None
        kept = self._entries.get(record.workload)
        if kept is None or kept[0] != record.version:
            made = {e.implementation: e for e in entries_of(record, self.baseline, self.contenders)}
            kept = (record.version, made)
            self._entries[record.workload] = kept
        return kept[1].get(implementation)

    def result(self, cell: Cell, implementation: str) -> Result:
        record = self._records.get(cell.workload) if cell.workload is not None else None
        if cell.workload is not None and cell.workload == self._active:
            return Result(cell, "measuring")
        return result_of(cell, implementation, record, self.entry(cell, implementation), self._active)

    def results(self, implementation: str) -> tuple[Result, ...]:
        """All cells of the grid for one contender."""
        cells = self.grid.cells if self.grid is not None else ()
        return tuple(self.result(cell, implementation) for cell in cells)

    def points(self, line: Sequence[Cell], axis: Axis, implementation: str, rival: str) -> list[Point]:
        """Speed-up of a contender over a rival along a line, where both were measured and neither is wrong."""
        found = []
        place = self.grid.axes.index(axis) if self.grid is not None else 0
        for cell in line:
            record = self._records.get(cell.workload) if cell.workload is not None else None
            if record is None or record.workload == self._active:
                continue
            wrong = [record.accuracy.get(name) for name in (implementation, rival)]
            if any(accuracy is not None and not accuracy.ok for accuracy in wrong):
                continue
            speed = speed_against(record, implementation, rival, self.baseline)
            if speed is not None:
                found.append(Point(float(cell.values[place]), speed))
        return found

    def crossing(
        self, line: Sequence[Cell], axis: Axis, implementation: str
    ) -> tuple[Crossover | None, str, str]:
        """Where `implementation` first stops being the fastest: the place, the rival and the sentence.

        Where nobody overtakes it, how it stands to the baseline.
        """
        key = (self.version, axis, implementation, line[0].values if line else ())
        kept = self._crossings.get(key)
        rivals = [name for name in self.contenders if name != implementation]
        rivals.sort(key=lambda name: name != self.baseline)
        if kept is None:
            kept = self._crossing(line, axis, implementation, rivals)
            self._crossings = {key: kept}
        return kept

    def _crossing(
        self, line: Sequence[Cell], axis: Axis, implementation: str, rivals: Sequence[str]
    ) -> tuple[Crossover | None, str, str]:
        found: list[tuple[Crossover, str, str]] = []
        words = ""
        name = contender(implementation).short
        for rival in rivals:
            points = self.points(line, axis, implementation, rival)
            crossed = crossover(points)
            said = sentence(crossed, points, name, contender(rival).short, axis.title.lower())
            if crossed is not None:
                found.append((crossed, rival, said))
            elif not words:
                words = said
        stops = [one for one in found if one[0].kind == "stops" and one[0].at is not None]
        if stops:
            return min(stops, key=lambda one: one[0].at or 0.0)
        drawn = [one for one in found if one[0].at is not None] or found
        return drawn[0] if drawn else (None, "", words)
