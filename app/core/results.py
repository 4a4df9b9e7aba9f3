"""What a recording says, as one entry per workload and implementation: tables, exports and the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from app.core.catalog import beside_of, contender, is_hidden, twin_of
from app.core.criteria import moved
from app.core.evidence import Pairs, kept, pairs
from app.core.latencies import Latencies, latencies_of
from app.core.measurements import Accuracy, Counts, Memory
from app.core.own import is_own
from app.core.plan import Cache
from app.core.recording import Recording, Status, WorkloadRecord
from app.core.statistics import (
    SpeedUp,
    Summary,
    Verdict,
    VerdictWord,
    has_drifted,
    median_interval,
    noise_floor,
    speed_up,
    summarise,
    verdict,
)
from app.core.workload import Workload

SLOWED = 1.25
"""Two processes that run the same code differ by less; by 8 % was the most seen."""

ResultStatus = Literal["measured", "unavailable", "failed", "waiting"]


class ResultCounts(msgspec.Struct, frozen=True):
    """Counts as `recording.json` has them: per call, null where they do not apply."""

    python_calls: dict[str, int | None] | None = None
    operator_calls: dict[str, int | None] | None = None
    kernel_launches: dict[str, int | None] | None = None
    memcpys: int | None = None
    memsets: int | None = None
    graph_launches: int | None = None
    kernel_time_s: float | None = None
    verified: bool | None = None
    note: str = ""


class Entry(msgspec.Struct, frozen=True):
    """One implementation in one workload, beside the baseline.

    `withheld`: why no speed-up is shown although it could be computed. `latencies`: the three beside each
    other, and what profiling costs.
    """

    workload: Workload
    implementation: str
    baseline: str
    status: ResultStatus
    reason: str | None = None
    latency: Summary | None = None
    device_latency: Summary | None = None
    speed_up: SpeedUp | None = None
    verdict: VerdictWord | None = None
    verdict_reason: str | None = None
    next_steps: tuple[str, ...] = ()
    counts: ResultCounts = ResultCounts()
    accuracy: Accuracy | None = None
    memory: Memory = Memory()
    path: str = ""
    disturbed: int = 0
    """Samples taken beside our own work, such as a build; left out."""
    strained: int = 0
    """Further samples taken while the machine was busy otherwise or throttled."""
    strained_left_out: bool = False
    profiled_s: float | None = None
    stopped_because: str | None = None
    cache: Cache = "warm"
    withheld: str | None = None
    latencies: Latencies = Latencies()


def entries_of(record: WorkloadRecord, baseline: str, implementations: Sequence[str]) -> tuple[Entry, ...]:
    """Entries in the order of `implementations`, then what else was measured, such as an earlier build."""
    return tuple(each_entry(record, baseline, implementations))


def each_entry(record: WorkloadRecord, baseline: str, implementations: Sequence[str]) -> Iterator[Entry]:
    """The same one by one: those of hours of samples take long to make."""
    others = [name for name in record.series if name not in implementations and not is_hidden(name)]
    floor, drifted = floor_of(record, baseline), _has_drifted(record, baseline)
    for name in (*implementations, *others):
        yield _entry(record, name, baseline, floor, drifted)


def all_entries(recording: Recording) -> tuple[Entry, ...]:
    """Entries of every workload, in the order in which they were begun."""
    if recording.plan is None:
        return ()
    plan = recording.plan
    return tuple(
        entry
        for record in recording.records
        for entry in entries_of(record, plan.baseline, plan.implementations)
    )


def floor_of(record: WorkloadRecord, baseline: str) -> float | None:
    """The noise floor: the baseline against its twin in the same rounds."""
    base, twin = record.series.get(baseline), record.series.get(twin_of(baseline))
    if base is None or twin is None:
        return None
    found = pairs(base, twin, record.strains)
    return noise_floor(found.first, found.second) if found.first.size else None


def speed_up_of(
    record: WorkloadRecord, implementation: str, baseline: str, floor: float | None
) -> SpeedUp | None:
    """Speed-up of a contender over the baseline from their common undisturbed rounds; None too where a result of
    either is wrong."""
    found = pairs_of(record, implementation, baseline)
    if found is None or not found.first.size:
        return None
    return speed_up(found.first, found.second, floor)


def pairs_of(record: WorkloadRecord, implementation: str, baseline: str) -> Pairs | None:
    """The rounds from which that speed-up is made; None for the baseline itself, or where one was not sampled.

    None too where a result of either is wrong: being fast at something else is no merit, and a figure that
    nothing makes cannot be shown by mistake. What ran in a process of its own is held against the baseline in
    that process: between two processes the same code differs by several percent, by how their memory lies.
    """
    base = record.series.get(beside_of(baseline, implementation), record.series.get(baseline))
    series = record.series.get(implementation)
    if base is None or series is None or implementation == baseline:
        return None
    if withheld_because(record, implementation, baseline) is not None:
        return None
    return pairs(base, series, record.strains)


def withheld_because(record: WorkloadRecord, implementation: str, baseline: str) -> str | None:
    """Why no speed-up may be shown, as a clause: a tensor of the contender or of the baseline is wrong."""
    for name in (implementation, baseline):
        accuracy = record.accuracy.get(name)
        if accuracy is None or accuracy.ok:
            continue
        tensor = accuracy.first_wrong or "output"
        fault = f"{tensor} {accuracy.tensors[tensor].fault}" if tensor in accuracy.tensors else "it failed"
        whose = "wrong result" if name == implementation else f"wrong result of {contender(name).title}"
        return f"{whose}: {fault}"
    return None


def slowed_baseline(record: WorkloadRecord, implementation: str, baseline: str) -> float | None:
    """How many times as long the baseline takes beside an own implementation, where that is beyond chance.

    An implementation that makes its whole process slow would otherwise look fast beside what it slowed.
    """
    base, beside = record.series.get(baseline), record.series.get(beside_of(baseline, implementation))
    if base is None or beside is None:
        return None
    found = pairs(beside, base, record.strains)
    times = median_interval(found.first / found.second)
    if times is None or times.low is None or times.low <= SLOWED:
        return None
    return times.median


def _entry(record: WorkloadRecord, name: str, baseline: str, floor: float | None, drifted: bool) -> Entry:
    series = record.series.get(name)
    status = record.status.get(name, Status())
    accuracy = record.accuracy.get(name)
    latency = device = None
    disturbed = strained = 0
    left_out = False
    if series is not None:
        good, strained, left_out = kept(series, record.strains)
        disturbed = int((~series.undisturbed).sum())
        latency = summarise(series.seconds[good])
        timed = series.device_seconds[good]
        device = summarise(timed[timed == timed])
    found = pairs_of(record, name, baseline)
    speed = speed_up(found.first, found.second, floor) if found is not None and found.first.size else None
    judged = _judge(record, name, baseline, speed, drifted, found)
    return Entry(
        workload=record.workload,
        implementation=name,
        baseline=baseline,
        status=_status(status, latency),
        reason=status.reason or None,
        latency=latency,
        device_latency=device,
        speed_up=speed,
        verdict=judged.word if judged else None,
        verdict_reason=judged.reason if judged else None,
        next_steps=judged.next_steps if judged else (),
        counts=_counts(record.counts.get(name), record.count_failures.get(name)),
        accuracy=accuracy,
        memory=record.memory.get(name, Memory()),
        path=status.path,
        disturbed=disturbed,
        strained=strained,
        strained_left_out=left_out,
        profiled_s=record.profiled_seconds.get(name),
        stopped_because=record.stopped_because,
        cache=record.cache,
        withheld=None if name == baseline else withheld_because(record, name, baseline),
        latencies=_latencies(record, name, latency, device),
    )


def _latencies(
    record: WorkloadRecord, name: str, latency: Summary | None, device: Summary | None
) -> Latencies:
    counts = record.counts.get(name)
    return latencies_of(
        record.workload.device,
        None if latency is None else latency.median_s,
        None if device is None else device.median_s,
        None if counts is None else counts.kernel_time_s,
        record.profiled_seconds.get(name),
        record.count_failures.get(name, ""),
    )


def _has_drifted(record: WorkloadRecord, baseline: str) -> bool:
    base = record.series.get(baseline)
    return base is not None and has_drifted(base.seconds[kept(base, record.strains)[0]])


def _judge(
    record: WorkloadRecord,
    name: str,
    baseline: str,
    speed: SpeedUp | None,
    drifted: bool,
    found: Pairs | None,
) -> Verdict | None:
    if name == baseline or name not in record.series:
        return None
    withheld = withheld_because(record, name, baseline)
    if withheld is not None:
        return Verdict("unsure", withheld)
    if speed is None or found is None:
        return None
    if drifted:
        return Verdict(
            "unsure",
            f"the level of {contender(baseline).title} moved by more than 20 % meanwhile",
            ("measure again", "look at clock and temperature"),
        )
    if is_own(name) and beside_of(baseline, name) not in record.series:
        return Verdict("unsure", f"{contender(baseline).title} was not measured in its process")
    slowed = slowed_baseline(record, name, baseline)
    if slowed is not None:
        return Verdict(
            "unsure",
            f"it slows all that runs in its process: {contender(baseline).title} takes {slowed:.2f} times as long",
            ("look at what it leaves behind after a call: threads, memory, settings",),
        )
    changed = moved(found.first / found.second)
    if changed is not None:
        early, late = changed
        return Verdict(
            "unsure",
            f"the speed-up itself moved, from {early:.2f} to {late:.2f}, while it was measured",
            ("measure again", "look at clock and temperature"),
        )
    judged = verdict(speed)
    if judged.word == "unsure" and found.strained and not found.left_out:
        # Most rounds were disturbed: left out, they would leave nothing.
        return Verdict(
            "unsure",
            f"{judged.reason}; in {found.strained} of {speed.rounds} rounds {_strain(record)}",
            ("close other programs", *(step for step in judged.next_steps if step != "close other programs")),
        )
    return judged


def _strain(record: WorkloadRecord) -> str:
    return record.strains[-1].what if record.strains else "the machine was busy"


def _status(status: Status, latency: Summary | None) -> ResultStatus:
    if status.state in ("failed", "unavailable"):
        return "failed" if status.state == "failed" else "unavailable"
    return "measured" if latency is not None else "waiting"


def _counts(counts: Counts | None, failure: str | None) -> ResultCounts:
    if counts is None:
        return ResultCounts(note=failure or "")
    return ResultCounts(
        python_calls=msgspec.structs.asdict(counts.python_calls),
        operator_calls=msgspec.structs.asdict(counts.operator_calls),
        kernel_launches=None
        if counts.kernel_launches is None
        else msgspec.structs.asdict(counts.kernel_launches),
        memcpys=counts.memcpys,
        memsets=counts.memsets,
        graph_launches=counts.graph_launches,
        kernel_time_s=counts.kernel_time_s,
        verified=counts.verified,
        note=counts.note,
    )
