"""`recording.json`: written whole or not at all, read back as strictly as it was written."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from app.core import messages as m
from app.core.catalog import introduce, is_hidden
from app.core.environment import Environment
from app.core.measurements import Accuracy, Counts, Memory
from app.core.plan import Plan
from app.core.recording import Event, Recording, Status, WorkloadRecord
from app.core.results import Entry, entries_of
from app.core.series import RawSamples, Series
from app.core.workload import Workload

SCHEMA = 1
MAX_BYTES = 2_000_000_000


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
    accuracy: Accuracy | None = None
    stopped_because: str | None = None
    raw: Raw = Raw()


class StoredWorkload(msgspec.Struct, frozen=True):
    workload: Workload
    sampler_pids: list[int] = []
    profiler_pids: list[int] = []


class StoredRecording(msgspec.Struct, frozen=True):
    """The file. `results` carry derived figures too; a reader of ours computes them anew."""

    schema: int
    environment: Environment | None
    profile: Plan | None
    results: list[StoredEntry]
    hidden: list[StoredEntry] = []
    """The baseline's repetitions, on which the noise floor rests."""
    workloads: list[StoredWorkload] = []
    events: list[Event] = []
    notices: list[m.Notice] = []
    telemetry: list[m.Telemetry] = []
    build: list[m.BuildMessage] = []


def document_of(recording: Recording, raw: bool = True) -> dict[str, Any]:
    """The recording as plain data: `run --json` without, `recording.json` with the raw samples."""
    results = []
    plan = recording.plan
    for record in recording.records if plan is not None else ():
        assert plan is not None
        for entry in entries_of(record, plan.baseline, plan.implementations):
            results.append(_result(record, entry, raw))
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "environment": recording.environment,
        "profile": plan,
        "results": results,
    }
    if raw:
        document |= {
            "hidden": [
                _result(record, entry, raw)
                for record in recording.records
                for entry in entries_of(record, "", [name for name in record.series if is_hidden(name)])
                if is_hidden(entry.implementation)
            ],
            "workloads": [
                StoredWorkload(r.workload, sorted(r.sampler_pids), sorted(r.profiler_pids))
                for r in recording.records
            ],
            "events": recording.events,
            "notices": recording.notices,
            "telemetry": recording.telemetry,
            "build": recording.build.messages,
        }
    return document


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


def save(recording: Recording, path: Path) -> None:
    """Write `recording.json`. The file appears whole; an older one stays until then."""
    write_atomically(path, m.encoded(document_of(recording)))


class AtomicFile:
    """A file of which a reader, or a crash, never sees half: it is written beside its place. Makes the folder.

    Ends with `commit` or `discard`; everything but `discard` raises OSError.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, self._scratch = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        self._file = os.fdopen(handle, "wb")

    def write(self, data: bytes) -> None:
        self._file.write(data)

    def commit(self) -> None:
        """Put the file in its place; an older one stays until then."""
        with self._file:
            self._file.flush()
            os.fsync(self._file.fileno())
        os.chmod(self._scratch, 0o666 & ~_umask())
        os.replace(self._scratch, self._path)

    def discard(self) -> None:
        """Leave nothing behind."""
        with suppress(OSError):
            self._file.close()
        Path(self._scratch).unlink(missing_ok=True)


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file whole or not at all. Makes the folder; raises OSError."""
    file = AtomicFile(path)
    try:
        file.write(data)
        file.commit()
    except BaseException:
        file.discard()
        raise


def load(path: Path) -> Recording:
    """Open `recording.json`. Raises `RecordingError` with one sentence."""
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise RecordingError(
                f"{path}: is {size / 1e9:,.1f} GB; the largest opened is {MAX_BYTES / 1e9:g} GB"
            )
        data = path.read_bytes()
    except OSError as error:
        raise RecordingError(f"{path}: cannot be read: {error.strerror or error}") from None
    return parse(data, str(path))


def parse(data: bytes, source: str) -> Recording:
    """Read a recording from bytes; `source` opens every error."""
    if not data.strip():
        raise RecordingError(f"{source}: is empty")
    try:
        head = msgspec.json.decode(data, type=_Head)
        if head.schema is None or not bytes(head.results):
            raise RecordingError(f"{source}: is JSON but no recording: it has no `schema` and `results`")
        if head.schema != SCHEMA:
            raise RecordingError(
                f"{source}: has schema {head.schema}; this version reads {SCHEMA}; a newer AttnScope wrote it"
            )
        stored = msgspec.json.decode(data, type=StoredRecording)
        return _restore(stored)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RecordingError(f"{source}: is damaged or no recording: {error}") from None
    except RecordingError:
        raise
    except ValueError as error:
        raise RecordingError(f"{source}: is damaged: {error}") from None


class _Head(msgspec.Struct):
    schema: int | None = None
    results: msgspec.Raw = msgspec.Raw()


def _restore(stored: StoredRecording) -> Recording:
    recording = Recording()
    recording.environment = stored.environment
    recording.plan = stored.profile
    if stored.profile is not None:
        introduce(stored.profile.own)
    recording.events = list(stored.events)
    recording.notices = list(stored.notices)
    for reading in stored.telemetry:
        recording.restore_telemetry(reading)
    recording.finished = True
    for message in stored.build:
        recording.build.apply(message)
    for known in stored.workloads:
        record = recording.add_record(known.workload)
        record.sampler_pids = set(known.sampler_pids)
        record.profiler_pids = set(known.profiler_pids)
    for entry in (*stored.results, *stored.hidden):
        record = recording.add_record(entry.workload)
        _restore_entry(record, entry)
    for record in recording.records:
        record.restore_rounds()
    recording.show_first()
    return recording


def _restore_entry(record: WorkloadRecord, entry: StoredEntry) -> None:
    name, raw = entry.implementation, entry.raw
    if raw.samples.seconds:
        record.series[name] = Series.from_raw(raw.samples)
    if not is_hidden(name):
        record.status[name] = raw.status
    record.stopped_because = entry.stopped_because
    if raw.counts is not None:
        record.counts[name] = raw.counts
    if raw.count_failure is not None:
        record.count_failures[name] = raw.count_failure
    if raw.memory.peak_bytes is not None:
        record.memory[name] = raw.memory
    if entry.accuracy is not None:
        record.accuracy[name] = entry.accuracy
    if raw.profiled_seconds is not None:
        record.profiled_seconds[name] = raw.profiled_seconds
    if raw.trace_gz:
        record.traces_gz[name] = raw.trace_gz


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
