"""What to do when the worker dies: whom to blame, whether to go on."""

from __future__ import annotations

import signal

import msgspec

from app.core.messages import Active
from app.core.workload import Workload

MAX_DEATHS = 5
"""Deaths of one session that nothing explains, after which going on would only repeat them."""

MAX_BLAMED_WORKLOADS = 3
"""After ending the worker in so many, a contender is not tried in the others any more."""

FAULTS = ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL")


class Decision(msgspec.Struct, frozen=True):
    """`blamed` must not run again; `careful` makes the next worker announce every block."""

    restart: bool
    careful: bool
    blamed: str | None
    sentence: str


class Supervisor:
    """Remembers the deaths of a session's workers.

    A worker that dies while it prepares or first calls a contender died of it if a fault ended it. A kill
    from outside (a person, the out-of-memory killer) looks the same whoever runs, so it is forgiven once
    per contender. A death between announcements is explained by running again, carefully.
    """

    def __init__(self) -> None:
        self._suspects: dict[str, int] = {}
        self._unexplained = 0

    def worker_died(self, exit_status: int, active: Active | None) -> Decision:
        """`exit_status` as subprocess has it: negative for a signal."""
        how = describe_exit(exit_status)
        if active is not None:
            name = active.implementation
            self._suspects[name] = self._suspects.get(name, 0) + 1
            if is_fault(exit_status) or self._suspects[name] > 1:
                return Decision(True, False, name, f"the worker {how} during {name}: {active.step}")
            return Decision(True, True, None, f"the worker {how} during {name}; it was restarted")
        self._unexplained += 1
        if self._unexplained > MAX_DEATHS:
            return Decision(False, False, None, f"the worker {how}, for the {self._unexplained}th time")
        return Decision(True, True, None, f"the worker {how}; it was restarted")


class Exclusions:
    """Contenders that ended a worker: each must not run again where it did, nor, after the third time, at all.

    A workload that is too large for a contender says nothing of the smaller ones after it.
    """

    def __init__(self) -> None:
        self._reasons: dict[str, dict[Workload, str]] = {}

    def blame(self, implementation: str, workload: Workload, reason: str) -> None:
        self._reasons.setdefault(implementation, {})[workload] = reason

    def at(self, workload: Workload) -> dict[str, str]:
        """Who must not run in this workload, and why."""
        found = {}
        for name, reasons in self._reasons.items():
            if workload in reasons:
                found[name] = reasons[workload]
            elif len(reasons) >= MAX_BLAMED_WORKLOADS:
                found[name] = (
                    f"it ended the worker in {len(reasons)} workloads; {next(reversed(reasons.values()))}"
                )
        return found


def is_fault(exit_status: int) -> bool:
    """Whether the process itself went wrong, rather than being ended from outside."""
    name = _signal_name(exit_status)
    # Windows reports NTSTATUS codes such as 0xC0000005 (access violation).
    return name in FAULTS or exit_status >= 0xC0000000


def describe_exit(exit_status: int) -> str:
    """The end of a process as a clause, such as `was killed (SIGKILL)`."""
    name = _signal_name(exit_status)
    if name == "SIGKILL":
        return "was killed (SIGKILL: by hand, or for want of memory)"
    if name:
        return f"crashed ({name})" if name in FAULTS else f"was ended ({name})"
    if exit_status >= 0xC0000000:
        return f"crashed (0x{exit_status:08X})"
    return f"ended with status {exit_status}"


def _signal_name(exit_status: int) -> str:
    if exit_status >= 0:
        return ""
    try:
        return signal.Signals(-exit_status).name
    except ValueError:
        return f"signal {-exit_status}"
