"""Two recordings held against each other: per workload and contender what changed, and whether it can be believed.

The two were measured at different times, so nothing is paired between them. Within each, the speed-up over a
common baseline is: the *net* change is the ratio of the two speed-ups, from which whatever moved the baseline as
well (a clock, a battery, another machine) is taken out. The change of the *latency* alone is given beside it.
Intervals of ratios are combined from those of their two sides by the square-and-add method (Zou and Donner,
Statistics in Medicine 27, 2008), on a log scale; the sides' own are distribution-free and know how much the rounds
resemble each other. The band within which nothing is claimed is the root of the sum of both squared noise floors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

import msgspec
import numpy as np

from app.core.catalog import contender, is_hidden
from app.core.environment import Difference, Environment, differences
from app.core.recording import Recording, WorkloadRecord
from app.core.results import Entry, each_entry, floor_of
from app.core.statistics import (
    SAME_MARGIN,
    USABLE_FLOOR,
    VerdictWord,
    has_drifted,
    median_interval,
)
from app.core.workload import Workload

Basis = Literal["net", "latency"]
Bounded = Literal["exceeded", "unsure", "within"]

BASES: dict[str, str] = {
    "net": "the latency against the baseline's: what moved both is taken out",
    "latency": "the latency alone: a machine that got slower shows as well",
}


class Ratio(msgspec.Struct, frozen=True):
    """B over A: above 1 it takes longer in B. The bounds are null where there is too little evidence."""

    median: float
    low: float | None = None
    high: float | None = None

    @property
    def change(self) -> float:
        """As a share: 0.05 takes 5 % longer."""
        return self.median - 1


class SideFigures(msgspec.Struct, frozen=True):
    """What one of the two recordings says of a contender, seconds per call."""

    median_s: float
    low_s: float | None
    high_s: float | None
    n: int
    speed_up: float | None
    noise_floor: float | None
    accurate: bool | None


class Change(msgspec.Struct, frozen=True):
    """One contender in one workload, in A and in B.

    `baseline_latency` is how the baseline's own latency changed, `net` the change without it; both null for the
    baseline itself, of which only `latency` speaks. `band`: no claim within ± this share.
    """

    workload: Workload
    implementation: str
    baseline: str
    a: SideFigures | None
    b: SideFigures | None
    latency: Ratio | None = None
    baseline_latency: Ratio | None = None
    net: Ratio | None = None
    band: float | None = None
    verdict: VerdictWord | None = None
    """Of the net change; null for the baseline and where a side lacks it."""
    reason: str = ""
    latency_verdict: VerdictWord | None = None
    latency_reason: str = ""

    def ratio(self, basis: Basis) -> Ratio | None:
        return self.net if basis == "net" else self.latency

    def word(self, basis: Basis) -> VerdictWord | None:
        return self.verdict if basis == "net" else self.latency_verdict

    def why(self, basis: Basis) -> str:
        return self.reason if basis == "net" else self.latency_reason


class Mean(msgspec.Struct, frozen=True):
    """Geometric mean over the workloads that both have."""

    implementation: str
    latency: float
    net: float | None
    workloads: int


class Comparison(msgspec.Struct, frozen=True):
    """B held against A. `only_a` and `only_b`: workloads that the other lacks."""

    a_title: str
    b_title: str
    baseline: str
    changes: tuple[Change, ...]
    only_a: tuple[Workload, ...] = ()
    only_b: tuple[Workload, ...] = ()
    implementations_only_a: tuple[str, ...] = ()
    implementations_only_b: tuple[str, ...] = ()
    differences: tuple[Difference, ...] = ()
    equal: tuple[str, ...] = ()
    means: tuple[Mean, ...] = ()
    a_environment: Environment | None = None
    b_environment: Environment | None = None

    @property
    def implementations(self) -> tuple[str, ...]:
        """Those that both have, the baseline first."""
        names = dict.fromkeys(c.implementation for c in self.changes if c.latency is not None)
        return tuple(sorted(names, key=lambda name: name != self.baseline))

    @property
    def workloads(self) -> tuple[Workload, ...]:
        """Those that both have."""
        return tuple(dict.fromkeys(change.workload for change in self.changes))

    def of(self, implementation: str) -> tuple[Change, ...]:
        return tuple(c for c in self.changes if c.implementation == implementation)

    def count(self, implementation: str, word: VerdictWord, basis: Basis = "net") -> int:
        return sum(change.word(basis) == word for change in self.of(implementation))

    @property
    def moving(self) -> tuple[Difference, ...]:
        """Differences of the environments that can move a figure."""
        return tuple(d for d in self.differences if d.moves)


Side: TypeAlias = tuple[SideFigures | None, Entry]


class Comparing:
    """A comparison made a workload at a time, so that a window can go on meanwhile."""

    def __init__(self, a: Recording, b: Recording) -> None:
        self.a, self.b = a, b
        self.baseline = common_baseline(a, b)
        self._threads = _unequal_threads(a.environment, b.environment)
        self._pairs = [
            (record, other)
            for other in b.records
            if (record := a.record_for(other.workload)) is not None and _has_samples(record, other)
        ]
        self._changes: list[Change] = []
        self._steps = self._each()

    def step(self) -> bool:
        """Compare one contender. False: that was all."""
        change = next(self._steps, None)
        if change is not None:
            self._changes.append(change)
        return change is not None

    def result(self) -> Comparison:
        """What has been compared so far; everything after `step` was False."""
        a, b = self.a, self.b
        common = {record.workload for record, _ in self._pairs}
        names_a, names_b = _measured(a), _measured(b)
        found = (
            ()
            if a.environment is None or b.environment is None
            else differences(a.environment, b.environment)
        )
        unequal = {difference.field for difference in found}
        known = a.environment is not None and b.environment is not None
        fields = [info.name for info in msgspec.structs.fields(Environment)] if known else []
        changes = tuple(self._changes)
        return Comparison(
            a_title=a.plan.title if a.plan is not None else "",
            b_title=b.plan.title if b.plan is not None else "",
            baseline=self.baseline,
            changes=changes,
            only_a=tuple(r.workload for r in a.records if r.series and r.workload not in common),
            only_b=tuple(r.workload for r in b.records if r.series and r.workload not in common),
            implementations_only_a=tuple(name for name in names_a if name not in names_b),
            implementations_only_b=tuple(name for name in names_b if name not in names_a),
            differences=found,
            equal=tuple(name for name in fields if name not in unequal),
            means=_means(changes),
            a_environment=a.environment,
            b_environment=b.environment,
        )

    def _each(self) -> Iterator[Change]:
        for record, other in self._pairs:
            names = [
                name
                for name in dict.fromkeys((self.baseline, *record.series, *other.series))
                if not is_hidden(name) and (name in record.series or name in other.series)
            ]
            sides_a = _sides(record, self.baseline, names)
            sides_b = _sides(other, self.baseline, names)
            drifted = _drifted(record, other, self.baseline)
            base: Ratio | None = None
            for name, ours, theirs in zip(names, sides_a, sides_b, strict=True):
                change = self._change(other.workload, name, ours, theirs, base, drifted)
                if name == self.baseline:
                    base = change.latency
                yield change

    def _change(
        self,
        workload: Workload,
        name: str,
        a: Side,
        b: Side,
        base: Ratio | None,
        drifted: str,
    ) -> Change:
        (ours, entry_a), (theirs, entry_b) = a, b
        if ours is None or theirs is None:
            return Change(workload, name, self.baseline, ours, theirs)
        latency = ratio_of(
            (theirs.median_s, theirs.low_s, theirs.high_s), (ours.median_s, ours.low_s, ours.high_s)
        )
        net = _net(entry_a, entry_b)
        band = _band(ours.noise_floor, theirs.noise_floor)
        fault = (
            drifted or _fault(name, entry_a, entry_b) or (self._threads if workload.device == "cpu" else "")
        )
        is_baseline = name == self.baseline
        word, reason = judge(net, band, fault)
        latency_word, latency_reason = judge(latency, band, fault)
        return Change(
            workload=workload,
            implementation=name,
            baseline=self.baseline,
            a=ours,
            b=theirs,
            latency=latency,
            baseline_latency=None if is_baseline else base,
            net=None if is_baseline else net,
            band=band,
            verdict=None if is_baseline else word,
            reason="" if is_baseline else reason,
            latency_verdict=latency_word,
            latency_reason=latency_reason,
        )


def compare(a: Recording, b: Recording) -> Comparison:
    """B held against A, whole."""
    comparing = Comparing(a, b)
    while comparing.step():
        pass
    return comparing.result()


def common_baseline(a: Recording, b: Recording) -> str:
    """The baseline of B's plan where A measured it too, else A's where B did, else what both have."""
    wanted = [recording.plan.baseline for recording in (b, a) if recording.plan is not None]
    names_a, names_b = _measured(a), _measured(b)
    both = [name for name in (*wanted, *names_b) if name in names_a and name in names_b]
    return both[0] if both else (wanted[0] if wanted else "native")


def ratio_of(
    above: tuple[float, float | None, float | None], below: tuple[float, float | None, float | None]
) -> Ratio:
    """Ratio of two independent positive estimates, each (median, low, high), with an interval of the same confidence.

    Square-and-add on the logarithms: each bound is as far from the ratio as both sides' distances to theirs,
    squared and added.
    """
    ratio = above[0] / below[0]
    if above[1] is None or above[2] is None or below[1] is None or below[2] is None:
        return Ratio(ratio)
    down = math.hypot(math.log(above[0] / above[1]), math.log(below[2] / below[0]))
    up = math.hypot(math.log(above[2] / above[0]), math.log(below[0] / below[1]))
    return Ratio(ratio, ratio * math.exp(-down), ratio * math.exp(up))


def judge(ratio: Ratio | None, band: float | None, fault: str = "") -> tuple[VerdictWord | None, str]:
    """FASTER, SLOWER or SAME where the whole interval says so, otherwise UNSURE; with the reason."""
    if fault:
        return "unsure", fault
    if ratio is None:
        return None, "one of them has no round of it beside the common baseline"
    low, high = ratio.low, ratio.high
    if low is None or high is None:
        return "unsure", "too few undisturbed rounds in one of them"
    if band is None:
        return "unsure", "one of them has no noise floor: its baseline was another"
    span = f"{_signed(low - 1)} to {_signed(high - 1)}"
    if low > 1 + band:
        return "slower", f"the whole interval, {span}, lies beyond both noise floors, ±{band:.1%}"
    if high < 1 / (1 + band):
        return "faster", f"the whole interval, {span}, lies beyond both noise floors, ±{band:.1%}"
    if band > USABLE_FLOOR * math.sqrt(2):
        return "unsure", f"the noise floors of both come to ±{band:.1%}"
    margin = max(SAME_MARGIN, band)
    if low >= 1 / (1 + margin) and high <= 1 + margin:
        return "same", f"the whole interval, {span}, lies within ±{margin:.1%}"
    return "unsure", f"the interval, {span}, reaches into the noise floors of both, ±{band:.1%}"


def against_bound(change: Change, max_slowdown: float, basis: Basis = "net") -> Bounded | None:
    """Whether a contender got slower by more than a share of `max_slowdown`; None where nothing can be said.

    `exceeded` only where it is shown: the verdict is SLOWER and the whole interval lies beyond the bound.
    `unsure` where it seems so and is not shown.
    """
    ratio = change.ratio(basis)
    if ratio is None:
        return None
    if change.word(basis) == "slower" and ratio.low is not None and ratio.low > 1 + max_slowdown:
        return "exceeded"
    if ratio.median <= 1 + max_slowdown:
        return "within"
    return "unsure"


def _net(a: Entry, b: Entry) -> Ratio | None:
    """The change that the baseline does not share: A's speed-up over B's."""
    before, after = a.speed_up, b.speed_up
    if before is None or after is None:
        return None
    return ratio_of((before.median, before.low, before.high), (after.median, after.low, after.high))


def _sides(record: WorkloadRecord, baseline: str, names: Sequence[str]) -> Iterator[Side]:
    floor = floor_of(record, baseline)
    for entry in each_entry(record, baseline, names):
        yield _side(record, entry, floor), entry


def _side(record: WorkloadRecord, entry: Entry, floor: float | None) -> SideFigures | None:
    series = record.series.get(entry.implementation)
    interval = None if series is None else median_interval(series.seconds[series.undisturbed])
    if interval is None:
        return None
    return SideFigures(
        median_s=interval.median,
        low_s=interval.low,
        high_s=interval.high,
        n=interval.n,
        speed_up=None if entry.speed_up is None else entry.speed_up.median,
        noise_floor=floor,
        accurate=None if entry.accuracy is None else entry.accuracy.ok,
    )


def _fault(name: str, a: Entry, b: Entry) -> str:
    """Why nothing may be claimed whatever the figures say; empty where nothing stands against it."""
    for side, entry in (("A", a), ("B", b)):
        if entry.accuracy is not None and not entry.accuracy.ok:
            return f"wrong result in {side}: {entry.accuracy.first_wrong or 'output'}"
    if a.path and b.path and a.path != b.path:
        return f"{contender(name).title} took another way: {a.path} in A, {b.path} in B"
    return ""


def _drifted(a: WorkloadRecord, b: WorkloadRecord, baseline: str) -> str:
    for side, record in (("A", a), ("B", b)):
        series = record.series.get(baseline)
        if series is not None and has_drifted(series.seconds[series.undisturbed]):
            return f"the level of {contender(baseline).title} moved by more than 20 % within {side}"
    return ""


def _unequal_threads(a: Environment | None, b: Environment | None) -> str:
    if a is None or b is None or a.threads == b.threads:
        return ""
    return f"threads differ, {a.threads} and {b.threads}: unequal counts are never compared"


def _band(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else math.hypot(a, b)


def _has_samples(*records: WorkloadRecord) -> bool:
    return all(any(len(s) for name, s in r.series.items() if not is_hidden(name)) for r in records)


def _measured(recording: Recording) -> tuple[str, ...]:
    """Everything sampled somewhere, in the order of the plan."""
    planned = recording.plan.implementations if recording.plan is not None else ()
    sampled = [name for r in recording.records for name, s in r.series.items() if len(s)]
    found = {name for name in sampled if not is_hidden(name)}
    return tuple(dict.fromkeys([*(n for n in planned if n in found), *(n for n in sampled if n in found)]))


def _means(changes: Sequence[Change]) -> tuple[Mean, ...]:
    means = []
    for name in dict.fromkeys(change.implementation for change in changes):
        own = [change for change in changes if change.implementation == name]
        latencies = [c.latency.median for c in own if c.latency is not None]
        nets = [c.net.median for c in own if c.net is not None]
        if latencies:
            net = float(np.exp(np.mean(np.log(nets)))) if nets else None
            means.append(Mean(name, float(np.exp(np.mean(np.log(latencies)))), net, len(latencies)))
    return tuple(means)


def _signed(share: float) -> str:
    return f"{share:+.1%}".replace("-", "\u2212")
