"""What a recording says, as one entry per workload and implementation: tables, exports and the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from app.core.catalog import contender, is_hidden, twin_of
from app.core.measurements import Accuracy, Counts, Memory
from app.core.recording import Recording, Status, WorkloadRecord
from app.core.series import paired
from app.core.statistics import (
    SpeedUp,
    Summary,
    Verdict,
    VerdictWord,
    has_drifted,
    noise_floor,
    speed_up,
    summarise,
    verdict,
)
from app.core.workload import Workload

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
    """One implementation in one workload, beside the baseline."""

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
    profiled_s: float | None = None
    stopped_because: str | None = None


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
    first, second = paired(base, twin)
    return noise_floor(first, second) if first.size else None


def speed_up_of(
    record: WorkloadRecord, implementation: str, baseline: str, floor: float | None
) -> SpeedUp | None:
    """Speed-up of a contender over the baseline from their common undisturbed rounds."""
    base, series = record.series.get(baseline), record.series.get(implementation)
    if base is None or series is None or implementation == baseline:
        return None
    first, second = paired(base, series)
    return speed_up(first, second, floor) if first.size else None


def _entry(record: WorkloadRecord, name: str, baseline: str, floor: float | None, drifted: bool) -> Entry:
    series = record.series.get(name)
    status = record.status.get(name, Status())
    accuracy = record.accuracy.get(name)
    latency = device = None
    disturbed = 0
    if series is not None:
        good = series.undisturbed
        disturbed = int((~good).sum())
        latency = summarise(series.seconds[good])
        timed = series.device_seconds[good]
        device = summarise(timed[timed == timed])
    speed = speed_up_of(record, name, baseline, floor)
    judged = _judge(record, name, baseline, speed, drifted)
    withheld = accuracy is not None and not accuracy.ok
    return Entry(
        workload=record.workload,
        implementation=name,
        baseline=baseline,
        status=_status(status, latency),
        reason=status.reason or None,
        latency=latency,
        device_latency=device,
        # No speed-up stands beside a wrong result: being fast at something else is no merit.
        speed_up=None if withheld else speed,
        verdict=judged.word if judged else None,
        verdict_reason=judged.reason if judged else None,
        next_steps=judged.next_steps if judged else (),
        counts=_counts(record.counts.get(name), record.count_failures.get(name)),
        accuracy=accuracy,
        memory=record.memory.get(name, Memory()),
        path=status.path,
        disturbed=disturbed,
        profiled_s=record.profiled_seconds.get(name),
        stopped_because=record.stopped_because,
    )


def _has_drifted(record: WorkloadRecord, baseline: str) -> bool:
    base = record.series.get(baseline)
    return base is not None and has_drifted(base.seconds[base.undisturbed])


def _judge(
    record: WorkloadRecord, name: str, baseline: str, speed: SpeedUp | None, drifted: bool
) -> Verdict | None:
    if name == baseline or speed is None:
        return None
    accuracy = record.accuracy.get(name)
    if accuracy is not None and not accuracy.ok:
        tensor = accuracy.first_wrong or "output"
        return Verdict("unsure", f"wrong result: {tensor} {accuracy.tensors[tensor].fault}")
    if drifted:
        return Verdict(
            "unsure",
            f"the level of {contender(baseline).title} moved by more than 20 % meanwhile",
            ("measure again", "look at clock and temperature"),
        )
    return verdict(speed)


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
