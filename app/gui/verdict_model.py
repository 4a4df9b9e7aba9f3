"""What the verdict bar says, as data: one sentence, the evidence, and what to do. No widget in here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from app.core.results import Entry, ResultCounts
from app.core.text import NOTHING, number
from app.gui.parts.line import Level
from app.gui.snapshot import Snapshot

Kind = Literal[
    "starting",
    "alone",
    "warming",
    "building",
    "build-failed",
    "unavailable",
    "wrong",
    "faster",
    "slower",
    "same",
    "unsure",
    "stale",
    "stopped",
]

Step = Literal[
    "larger-sequence", "measure-again", "open-system", "open-build", "wait", "restart-worker",
    "copy-log", "retry-build", "cancel-build", "copy-reason",
]  # fmt: skip


@dataclass(frozen=True)
class Action:
    """Something that can be done about it, at a press of a button."""

    id: Step
    title: str
    icon: str = ""


@dataclass(frozen=True)
class Figure:
    """A cause at the right of the verdict: a figure before and after. Null is not zero."""

    title: str
    short: str
    before: int | None
    after: int | None

    @property
    def change(self) -> str:
        """`−143 per call`; why there is none where there is none."""
        if self.before is None or self.after is None:
            return "not counted yet"
        change = self.after - self.before
        return f"{'+' if change > 0 else ''}{number(change)} per call" if change else "as many per call"

    @property
    def known(self) -> bool:
        return self.before is not None and self.after is not None

    def texts(self) -> tuple[str, str]:
        return tuple(NOTHING if v is None else number(v) for v in (self.before, self.after))  # type: ignore[return-value]


@dataclass(frozen=True)
class BuildProgress:
    """A build under way, at the right of the verdict."""

    title: str
    elapsed: str
    share: float | None
    source: str


@dataclass(frozen=True)
class Withheld:
    """Where the figure would stand if the result were right."""

    until: str


@dataclass(frozen=True)
class Verdict:
    """`edge` is a colour role, or `hatched`. `sentence` and `evidence` go from long to short."""

    kind: Kind
    edge: str
    sentence: tuple[Level, ...]
    evidence: tuple[Level, ...]
    figures: tuple[Figure, ...] = ()
    progress: BuildProgress | None = None
    withheld: Withheld | None = None
    pills: tuple[Action, ...] = ()
    buttons: tuple[Action, ...] = ()
    dimmed: bool = False


def figures_of(snapshot: Snapshot, baseline: Entry | None, challenger: Entry | None) -> tuple[Figure, ...]:
    """The causes: on a GPU kernel launches, on a CPU operator calls; and Python calls."""
    if baseline is None or challenger is None:
        return ()
    ours, theirs = baseline.counts, challenger.counts
    python = Figure(
        "Python calls", "Python calls", _total(ours, "python_calls"), _total(theirs, "python_calls")
    )
    if snapshot.on_gpu:
        launches = (_total(ours, "kernel_launches"), _total(theirs, "kernel_launches"))
        return (Figure("Kernel launches", "Launches", *launches), python)
    operators = (_total(ours, "operator_calls"), _total(theirs, "operator_calls"))
    return (Figure("Operator calls", "Operator calls", *operators), python)


def _total(counts: ResultCounts, name: str) -> int | None:
    phases = getattr(counts, name)
    if phases is None:
        return None
    known = [value for value in phases.values() if value is not None]
    return sum(known) if known else None
