"""Where the session's sweep stands: which cell is due, how long the rest takes. Told the time, knows no Qt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from app.core import messages as m
from app.core.plan import Plan
from app.core.recording import Recording
from app.core.supervision import Exclusions
from app.core.sweep import finished_cells
from app.core.time_left import CellClock
from app.core.workload import Workload

SweepState = Literal["running", "paused", "stopped", "done", "recorded"]


@dataclass(frozen=True)
class SweepStatus:
    """A sweep at one moment. `left_s` is None where nothing is under way.

    "stopped": something else is measured now, or nothing; it can go on. "recorded": it is from a file, and
    `obstacle` says why this machine cannot simply go on with it.
    """

    plan: Plan
    state: SweepState
    done: int
    left_s: float | None = None
    active: Workload | None = None
    obstacle: str = ""

    @property
    def total(self) -> int:
        return len(self.plan.workloads)

    @property
    def is_complete(self) -> bool:
        return self.done >= self.total


class SweepRun:
    """A sweep that the session measures, or has measured."""

    def __init__(self, plan: Plan, first: int, anew: bool = False) -> None:
        self.plan = plan
        self.next = first
        self.anew = anew
        self.state: SweepState = "stopped"
        self.exclusions = Exclusions()
        self.clock = CellClock(plan)
        self._is_timed = False

    @property
    def is_active(self) -> bool:
        """Whether the worker is at it, be it in a pause."""
        return self.state in ("running", "paused")

    def start(self, generation: int, careful: bool) -> m.Start:
        """What to send to measure the cells that are left. What was sampled of them is kept, unless anew."""
        self.state = "running"
        self._is_timed = False
        excluded = self.exclusions.at(self.plan.workloads[self.next])
        anew, self.anew = self.anew, False
        return m.Start(
            generation, self.plan, careful=careful, excluded=excluded, first_workload=self.next, anew=anew
        )

    def take(self, message: m.Message, now_s: float) -> bool:
        """Follow a message of this sweep. True: the rest must be started anew, with other contenders."""
        if isinstance(message, m.Active) and not self._is_timed:
            self._is_timed = True
            self.clock.begin(message.workload, now_s)
        elif isinstance(message, m.WorkloadDone):
            before = self.plan.workloads[message.workload]
            self.next = message.workload + 1
            self.clock.finish(message.workload, now_s)
            if self.next < len(self.plan.workloads):
                after = self.plan.workloads[self.next]
                return self.exclusions.at(before) != self.exclusions.at(after)
        elif isinstance(message, m.RunDone):
            self.state = "done"
        return False

    def blame(self, implementation: str, reason: str) -> None:
        """A contender ended the worker in the cell that is due."""
        if self.next < len(self.plan.workloads):
            self.exclusions.blame(implementation, self.plan.workloads[self.next], reason)

    def pause(self, now_s: float) -> None:
        if self.state == "running":
            self.state = "paused"
            self.clock.pause(now_s)

    def resume(self, now_s: float) -> None:
        if self.state == "paused":
            self.state = "running"
            self.clock.resume(now_s)

    def stop(self) -> None:
        """Leave it where it is: it can go on later."""
        if self.is_active:
            self.state = "stopped"

    def status(self, now_s: float) -> SweepStatus:
        left = self.clock.left_s(now_s) if self.is_active else None
        due = self.plan.workloads[self.next : self.next + 1] if self.is_active else ()
        active = next(iter(due), None)
        return SweepStatus(self.plan, self.state, self.next, left, active)


def recorded(recording: Recording, obstacle: str = "") -> SweepStatus | None:
    """The sweep of a recording that is looked at; None where there is none in it."""
    plan = recording.sweep
    if plan is None:
        return None
    return SweepStatus(plan, "recorded", finished_cells(plan, recording), obstacle=obstacle)
