"""What `recording.json` holds, and how it is laid out: JSON, a part a line, each line with its check.

A line is the unit that is written, read and lost: a file that was cut off or damaged gives what is whole of it.
"""

from __future__ import annotations

import copy
import zlib
from collections.abc import Iterator
from typing import Any

import msgspec

from app.core import messages as m
from app.core.catalog import is_hidden
from app.core.environment import Environment
from app.core.measurements import Accuracy, Counts, Memory
from app.core.plan import Cache, Plan
from app.core.recording import Event, Recording, Status, WorkloadRecord
from app.core.results import Entry, each_entry
from app.core.series import RawSamples
from app.core.workload import Workload

SCHEMA = 2
"""1: samples as lists of digits, the whole file a line. 2: samples as columns of bytes, a line a part, checks."""


class RecordingError(ValueError):
    """A file that is no recording this version can open. The text names the file and the cause."""


class Raw(msgspec.Struct, frozen=True):
    """What a result was computed from."""

    samples: RawSamples = RawSamples()
    status: Status = Status()
    counts: Counts | None = None
    count_failure: str | None = None
    memory: Memory = Memory()
    profiled_seconds: float | None = None
    trace_gz: bytes = b""


class StoredEntry(msgspec.Struct, frozen=True):
    """The part of a result that cannot be computed again from the rest."""

    workload: Workload
    implementation: str
    baseline: str
    cache: Cache = "warm"
    accuracy: Accuracy | None = None
    stopped_because: str | None = None
    raw: Raw = Raw()


class StoredWorkload(msgspec.Struct, frozen=True):
    workload: Workload
    sampler_pids: list[int] = []
    profiler_pids: list[int] = []
    cache: Cache = "warm"


PARTS: dict[str, Any] = {
    "environment": Environment | None,
    "profile": Plan | None,
    "workloads": list[StoredWorkload],
    "events": list[Event],
    "notices": list[m.Notice],
    "telemetry": list[m.Telemetry],
    "build": list[m.BuildMessage],
    "sweep": Plan | None,
}
"""Everything but the results, in the order in which it stands in the file."""

LISTS = ("results", "hidden")
"""Lists of `StoredEntry` with the derived figures beside. `hidden`: the baseline's repetitions."""

FIRST_LINE = b'{"schema":%d,\n' % SCHEMA


def document_of(recording: Recording, raw: bool = True) -> dict[str, Any]:
    """The recording as plain data: `run --json` without, `recording.json` with the raw samples."""
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "environment": recording.environment,
        "profile": recording.plan,
        "results": list(_results(recording, raw)),
    }
    if raw:
        document |= {"hidden": list(_hidden(recording)), **_parts(recording)}
    return document


def pieces(recording: Recording) -> Iterator[bytes]:
    """`recording.json`, a line a piece: what the recording holds now, whatever joins it meanwhile."""
    parts, held = _parts(recording), _held(recording)
    checks = []
    for line in _lines(parts, held):
        checks.append(check_of(line))
        yield line
    yield b'"checks":' + m.encoded(checks) + b"}\n"


def check_of(line: bytes) -> str:
    """The checksum (CRC-32) of a line, its end included."""
    return f"{zlib.crc32(line):08x}"


def _lines(parts: dict[str, Any], recording: Recording) -> Iterator[bytes]:
    yield FIRST_LINE
    for name, value in parts.items():
        yield b'"%s":%s,\n' % (name.encode(), m.encoded(value))
    for name, results in (("results", _results(recording, True)), ("hidden", _hidden(recording))):
        yield b'"%s":[\n' % name.encode()
        comma = b""
        for result in results:
            yield comma + m.encoded(result) + b"\n"
            comma = b","
        yield b"],\n"


def _held(recording: Recording) -> Recording:
    """The records of a recording as they are now, sharing their samples with those that grow."""
    held = copy.copy(recording)
    held.records = []
    for record in recording.records:
        still = copy.copy(record)
        still.series = {name: series.held() for name, series in record.series.items()}
        for table in ("status", "counts", "count_failures", "memory", "accuracy"):
            setattr(still, table, dict(getattr(record, table)))
        still.strains = list(record.strains)
        still.profiled_seconds, still.traces_gz = dict(record.profiled_seconds), dict(record.traces_gz)
        held.records.append(still)
    return held


def _parts(recording: Recording) -> dict[str, Any]:
    # Where `profile` is what was measured live beside it.
    apart = recording.sweep is not None and recording.sweep != recording.plan
    return {
        "environment": recording.environment,
        "profile": recording.plan,
        "workloads": [
            StoredWorkload(r.workload, sorted(r.sampler_pids), sorted(r.profiler_pids), r.cache)
            for r in recording.records
        ],
        "events": list(recording.events),
        "notices": list(recording.notices),
        "telemetry": list(recording.telemetry),
        "build": list(recording.build.messages),
        **({"sweep": recording.sweep} if apart else {}),
    }


def _results(recording: Recording, raw: bool) -> Iterator[dict[str, Any]]:
    plan = recording.plan
    for record in recording.records if plan is not None else ():
        assert plan is not None
        for entry in each_entry(record, plan.baseline, plan.implementations):
            yield _result(record, entry, raw)


def _hidden(recording: Recording) -> Iterator[dict[str, Any]]:
    for record in recording.records:
        for name in [name for name in record.series if is_hidden(name)]:
            # Of the repetition itself nothing is claimed: no figure is computed of it.
            yield _result(record, Entry(record.workload, name, "", "measured", cache=record.cache), True)


def _result(record: WorkloadRecord, entry: Entry, raw: bool) -> dict[str, Any]:
    data = msgspec.structs.asdict(entry)
    if entry.status == "waiting":
        data["status"] = "unavailable"
        data["reason"] = entry.reason or "the run ended before it was measured"
    if raw:
        name = entry.implementation
        series = record.series.get(name)
        data["raw"] = Raw(
            samples=series.to_raw() if series is not None else RawSamples(),
            status=record.status.get(name, Status()),
            counts=record.counts.get(name),
            count_failure=record.count_failures.get(name),
            memory=record.memory.get(name, Memory()),
            profiled_seconds=record.profiled_seconds.get(name),
            trace_gz=record.traces_gz.get(name, b""),
        )
    return data
