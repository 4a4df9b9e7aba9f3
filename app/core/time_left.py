"""How long the rest of a sweep takes, from how long its cells took so far. Told the time, asks no clock."""

from __future__ import annotations

import math
from collections.abc import Sequence

from app.core.plan import Measure, Plan
from app.core.workload import Workload

OVERHEAD_S = 2.0
"""What a cell costs beside its samples, before any is known: inputs, preparation, accuracy, counts."""

NEAR = math.log(8)
"""Cells whose work differs by this factor tell less of each other by 1/e."""


def time_left(
    took: Sequence[tuple[Workload, float]], remaining: Sequence[Workload], measure: Measure
) -> float:
    """Seconds for `remaining`, from cells that took so many seconds each.

    A cell is expected to take what those of similar work took, the similar weighing more. Before the first,
    what the measuring may take at most.
    """
    if not took:
        return len(remaining) * (measure.max_seconds + OVERHEAD_S)
    logs = [math.log(max(workload.flops, 1)) for workload, _ in took]
    total = 0.0
    for workload in remaining:
        place = math.log(max(workload.flops, 1))
        weights = [math.exp(-abs(place - log) / NEAR) for log in logs]
        total += sum(w * s for w, (_, s) in zip(weights, took, strict=True)) / sum(weights)
    return total


class CellClock:
    """Times the cells of one plan. Pauses do not count, and neither do cells that were measured before."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.took: list[tuple[Workload, float]] = []
        self._index: int | None = None
        self._since_s = 0.0
        self._spent_s = 0.0
        self._is_paused = False

    def begin(self, index: int, now_s: float) -> None:
        """Cell `index` is measured from now on."""
        self._index, self._since_s, self._spent_s = index, now_s, 0.0

    def pause(self, now_s: float) -> None:
        if not self._is_paused:
            self._spent_s += now_s - self._since_s
            self._is_paused = True

    def resume(self, now_s: float) -> None:
        if self._is_paused:
            self._since_s = now_s
            self._is_paused = False

    def finish(self, index: int, now_s: float) -> None:
        """Cell `index` is done; the next begins."""
        if self._index == index:
            self.took.append((self.plan.workloads[index], max(self._in_hand(now_s), 0.0)))
        self.begin(index + 1, now_s)

    def left_s(self, now_s: float) -> float:
        """Seconds to the end of the plan, pauses not counted."""
        index = self._index or 0
        whole = time_left(self.took, self.plan.workloads[index:], self.plan.measure)
        if self._index is None or not self.plan.workloads[index:]:
            return whole
        first = time_left(self.took, self.plan.workloads[index : index + 1], self.plan.measure)
        return whole - min(self._in_hand(now_s), first)

    def _in_hand(self, now_s: float) -> float:
        return self._spent_s + (0.0 if self._is_paused else now_s - self._since_s)


def left_words(seconds: float) -> str:
    """`about 40 s left`, `about 3 min left`: as coarse as an estimate is."""
    if seconds < 5:
        return "a few seconds left"
    if seconds < 90:
        return f"about {5 * round(seconds / 5)} s left"
    if seconds < 5400:
        return f"about {round(seconds / 60)} min left"
    return f"about {seconds / 3600:.1f} h left"
