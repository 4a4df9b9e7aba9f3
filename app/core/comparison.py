"""Two recordings held against each other: what both have, what only one has, and where their machines differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import msgspec
import numpy as np

from app.core.catalog import contender, is_hidden
from app.core.change import BASES, Basis, Change, Ratio, SideFigures, Spread, judge, ratio_of, spread_of
from app.core.criteria import moved
from app.core.environment import Environment
from app.core.evidence import kept
from app.core.machines import MachineRow, machine_rows
from app.core.recording import Recording, WorkloadRecord
from app.core.results import Entry, each_entry, floor_of, pairs_of
from app.core.statistics import VerdictWord, has_drifted, median_interval
from app.core.workload import Workload


class Mean(msgspec.Struct, frozen=True):
    """Geometric mean over the workloads that both have."""

    implementation: str
    latency: float
    net: float | None
    workloads: int


class About(msgspec.Struct, frozen=True):
    """What one of the two recordings is, beside its figures. Times are seconds since 1970."""

    title: str
    began_s: float | None
    ended_s: float | None
    workloads: int
    rounds: int
    environment: Environment | None


class Comparison(msgspec.Struct, frozen=True):
    """B held against A. `only_a` and `only_b`: workloads that the other lacks."""

    a: About
    b: About
    baseline: str
    changes: tuple[Change, ...]
    only_a: tuple[Workload, ...] = ()
    only_b: tuple[Workload, ...] = ()
    implementations_only_a: tuple[str, ...] = ()
    implementations_only_b: tuple[str, ...] = ()
    machines: tuple[MachineRow, ...] = ()
    means: tuple[Mean, ...] = ()

    @property
    def implementations(self) -> tuple[str, ...]:
        """Those that both have in some workload, the baseline first."""
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
    def moving(self) -> tuple[MachineRow, ...]:
        """In what the machines differ that can move a figure, without what only follows from another."""
        return tuple(row for row in self.machines if row.differs and row.moves and not row.follows)


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
            if (record := a.record_for(other.workload, other.cache)) is not None
            and _has_samples(record, other)
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
        spreads: dict[tuple[str, Basis], Spread] = {}
        return Comparison(
            a=_about(a),
            b=_about(b),
            baseline=self.baseline,
            changes=tuple(_judged(change, self._changes, spreads) for change in self._changes),
            only_a=tuple(r.workload for r in a.records if r.series and r.workload not in common),
            only_b=tuple(r.workload for r in b.records if r.series and r.workload not in common),
            implementations_only_a=tuple(name for name in names_a if name not in names_b),
            implementations_only_b=tuple(name for name in names_b if name not in names_a),
            machines=machine_rows(a, b),
            means=_means(self._changes),
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
                fault = drifted or _moved(record, other, name, self.baseline)
                change = self._change(other.workload, name, ours, theirs, base, fault)
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
        unsteady: str,
    ) -> Change:
        (ours, entry_a), (theirs, entry_b) = a, b
        if ours is None or theirs is None:
            return Change(workload, name, self.baseline, ours, theirs)
        latency = ratio_of(
            (theirs.median_s, theirs.low_s, theirs.high_s), (ours.median_s, ours.low_s, ours.high_s)
        )
        net = _net(entry_a, entry_b)
        fault = (
            unsteady or _fault(name, entry_a, entry_b) or (self._threads if workload.device == "cpu" else "")
        )
        is_baseline = name == self.baseline
        return Change(
            workload=workload,
            implementation=name,
            baseline=self.baseline,
            a=ours,
            b=theirs,
            latency=latency,
            baseline_latency=None if is_baseline else base,
            net=None if is_baseline else net,
            fault=fault,
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


def _judged(change: Change, changes: Sequence[Change], spreads: dict[tuple[str, Basis], Spread]) -> Change:
    for basis in BASES:
        key = (change.implementation, basis)
        if key not in spreads:
            spreads[key] = spread_of(changes, *key)
    name, floors, fault = change.implementation, change.floors, change.fault
    return msgspec.structs.replace(
        change,
        net_claim=None
        if name == change.baseline or change.latency is None
        else judge(change.net, floors, spreads[name, "net"], fault),
        latency_claim=judge(
            change.latency, floors, spreads[name, "latency"], fault if change.latency else ""
        ),
    )


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
    interval = None if series is None else median_interval(series.seconds[kept(series, record.strains)[0]])
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
        if series is not None and has_drifted(series.seconds[kept(series, record.strains)[0]]):
            return f"the level of {contender(baseline).title} moved by more than 20 % within {side}"
    return ""


def _moved(a: WorkloadRecord, b: WorkloadRecord, name: str, baseline: str) -> str:
    for side, record in (("A", a), ("B", b)):
        found = pairs_of(record, name, baseline)
        levels = moved(found.first / found.second) if found is not None and found.first.size else None
        if levels is not None:
            return f"the speed-up moved from {levels[0]:.2f} to {levels[1]:.2f} within {side}"
    return ""


def _unequal_threads(a: Environment | None, b: Environment | None) -> str:
    if a is None or b is None or a.threads == b.threads:
        return ""
    return f"threads differ, {a.threads} and {b.threads}: unequal counts are never compared"


def _has_samples(*records: WorkloadRecord) -> bool:
    return all(any(len(s) for name, s in r.series.items() if not is_hidden(name)) for r in records)


def _measured(recording: Recording) -> tuple[str, ...]:
    """Everything sampled somewhere, in the order of the plan."""
    planned = recording.plan.implementations if recording.plan is not None else ()
    sampled = [name for r in recording.records for name, s in r.series.items() if len(s)]
    found = {name for name in sampled if not is_hidden(name)}
    return tuple(dict.fromkeys([*(n for n in planned if n in found), *(n for n in sampled if n in found)]))


def _about(recording: Recording) -> About:
    series = [s for record in recording.records for s in record.series.values() if len(s)]
    return About(
        title=recording.plan.title if recording.plan is not None else "",
        began_s=min((float(s.at_s[0]) for s in series), default=None),
        ended_s=max((float(s.at_s[-1]) for s in series), default=None),
        workloads=sum(any(map(len, record.series.values())) for record in recording.records),
        rounds=sum(max(map(len, record.series.values()), default=0) for record in recording.records),
        environment=recording.environment,
    )


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
