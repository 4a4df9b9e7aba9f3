"""Reading `recording.json` part by part: as far as it is whole, with a sentence for what is not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from app.core import schema_1
from app.core.catalog import contender, introduce, is_hidden
from app.core.fields import one_line
from app.core.recording import Recording, WorkloadRecord
from app.core.schema_1 import Part
from app.core.series import Series
from app.core.stored import FIRST_LINE, LISTS, PARTS, SCHEMA, RecordingError, StoredEntry, check_of

MAX_BYTES = 1_000_000_000
MAX_UNLINED_BYTES = 256_000_000
"""A file without lines is read as one: numbers written out take up to ten times their text in memory."""

MAX_CHECKS_BYTES = 8_000_000
MAX_FAULTS = 20

MIGRATIONS: dict[int, Callable[[Part], Part]] = {1: schema_1.to_2}
"""From each schema that was ever written to the next."""

_decoders = {name: msgspec.json.Decoder(type_) for name, type_ in PARTS.items()}
_entry_decoder = msgspec.json.Decoder(StoredEntry)
_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError)


class _Head(msgspec.Struct):
    schema: int | None = None
    results: msgspec.Raw = msgspec.Raw()


class _Entry(msgspec.Struct, frozen=True):
    workload: msgspec.Raw
    implementation: msgspec.Raw
    baseline: msgspec.Raw
    cache: msgspec.Raw = msgspec.Raw(b'"warm"')
    accuracy: msgspec.Raw = msgspec.Raw(b"null")
    stopped_because: msgspec.Raw = msgspec.Raw(b"null")
    raw: msgspec.Raw = msgspec.Raw(b"{}")


class _Unlined(msgspec.Struct, frozen=True):
    """The whole document with its parts unread."""

    environment: msgspec.Raw
    profile: msgspec.Raw
    results: list[_Entry]
    hidden: list[_Entry] = []
    workloads: msgspec.Raw = msgspec.Raw(b"[]")
    events: msgspec.Raw = msgspec.Raw(b"[]")
    notices: msgspec.Raw = msgspec.Raw(b"[]")
    telemetry: msgspec.Raw = msgspec.Raw(b"[]")
    build: msgspec.Raw = msgspec.Raw(b"[]")
    sweep: msgspec.Raw = msgspec.Raw(b"null")


class Opening:
    """The recording of a file, a part at a time, so that a window can go on meanwhile.

    Raises `RecordingError`, here and in `step`, with one sentence that begins with `source`, where the file is
    none of ours or nothing of it can be used; otherwise what cannot is left out and named in the recording's
    `faults`.
    """

    def __init__(self, file: BinaryIO, source: str) -> None:
        self.recording = Recording()
        self._file = file
        self._taken: set[str] = set()
        self.source = source
        self._size = file.seek(0, 2)
        file.seek(0)
        if self._size > MAX_BYTES:
            raise self._refused(_too_large(self._size, MAX_BYTES))
        self._parts = self._open()

    def step(self) -> bool:
        """Read a part. False: that was all, and the recording is complete."""
        part = next(self._parts, None)
        if part is not None:
            self._take(part)
            return True
        self._finish()
        return False

    def close(self) -> None:
        """Leave the rest unread."""
        self._file.close()

    # ---- layouts ---------------------------------------------------------------------------------------

    def _open(self) -> Iterator[Part]:
        head = self._file.read(256)
        self._file.seek(0)
        if not head.strip() and self._size <= len(head):
            raise self._refused("is empty")
        if head.startswith(FIRST_LINE):
            return self._lined()
        # Before a long file of another time is read to its end.
        found = re.match(rb'\s*\{\s*"schema"\s*:\s*(\d{1,9})\b', head)
        if found:
            self._refuse_newer(int(found[1]))
        return self._unlined()

    def _lined(self) -> Iterator[Part]:
        """Parts of a file that is as we wrote it, each held against its check."""
        checks = self._checks()
        expected = set(checks or ())
        seen: list[str] = []
        within = ""
        for line in self._file:
            if line.startswith(b'"checks":'):
                break
            if not line.endswith(b"\n"):
                break
            seen.append(check_of(line))
            name, data = _split(line, within)
            if checks is not None and seen[-1] not in expected:
                if name in PARTS:
                    self._fault(f"its {name} is damaged and left out")
                elif within:
                    self._fault(f"{_entry_title(data)} is damaged and left out")
                else:
                    self._fault("a line of it is damaged")
                continue
            if data == b"[":
                within = name
            elif data == b"]":
                within = ""
            elif name:
                yield name, data
        if checks is None:
            self._fault(f"its end is missing ({self._size:,} bytes are there){self._missing()}")
        elif len(seen) < len(checks):
            lost = len(checks) - len(seen)
            self._fault(f"{lost:,} line{'s are' if lost > 1 else ' is'} missing{self._missing()}")
        elif seen != checks and not self.recording.faults:
            self._fault(f"its lines are not those that were written, or not in their order{self._missing()}")

    def _checks(self) -> list[str] | None:
        """The checks at the end of the file; None where it has no whole end."""
        self._file.seek(max(0, self._size - MAX_CHECKS_BYTES))
        tail = self._file.read()
        self._file.seek(0)
        place = tail.rfind(b'\n"checks":')
        if place < 0:
            return None
        try:
            end = msgspec.json.decode(b"{" + tail[place + 1 :], type=dict[str, list[str]])
        except _ERRORS:
            return None
        return end["checks"]

    def _unlined(self) -> Iterator[Part]:
        """Parts of a file of an older schema, or of one that another program wrote anew."""
        if self._size > MAX_UNLINED_BYTES:
            raise self._refused(_too_large(self._size, MAX_UNLINED_BYTES))
        data = self._file.read()
        try:
            head = msgspec.json.decode(data, type=_Head)
            if head.schema is None or not bytes(head.results):
                raise self._refused("is JSON but no recording: it has no `schema` and `results`")
            self._refuse_newer(head.schema)
            document = msgspec.json.decode(data, type=_Unlined)
        except RecordingError:
            raise
        except _ERRORS as error:
            raise self._refused(f"is cut off, damaged or no recording: {_sentence(error)}") from None
        if head.schema >= 2:
            self._fault("another program wrote it anew, so nothing shows whether its figures were changed")
        for part in _parts(document):
            try:
                for schema in range(head.schema, SCHEMA):
                    part = MIGRATIONS[schema](part)
            except _ERRORS as error:
                raise self._refused(f"is damaged: {_sentence(error)}") from None
            yield part

    def _refuse_newer(self, schema: int) -> None:
        if schema > SCHEMA:
            raise self._refused(
                f"has schema {schema}; this AttnScope reads up to {SCHEMA}. Open it with a newer one"
            )
        if schema < 1:
            raise self._refused(f"has schema {schema}; there is none below 1")

    # ---- parts -----------------------------------------------------------------------------------------

    def _take(self, part: Part) -> None:
        name, data = part
        recording = self.recording
        try:
            if name in LISTS:
                entry = _entry_decoder.decode(data)
                _restore_entry(recording.add_record(entry.workload, entry.cache), entry)
                return
            decoder = _decoders.get(name)
            # A part of a later version, or one that stands there twice.
            if decoder is None or name in self._taken:
                return
            self._taken.add(name)
            value = decoder.decode(data)
        except _ERRORS as error:
            what = _entry_title(data) if name in LISTS else f"its {name}"
            raise self._refused(f"is damaged: {what}: {_sentence(error)}") from None
        if name == "profile":
            recording.plan = value
            introduce(value.own if value is not None else ())
        elif name == "telemetry":
            for reading in value:
                recording.restore_telemetry(reading)
        elif name == "build":
            for message in value:
                recording.build.apply(message)
        elif name == "workloads":
            for known in value:
                record = recording.add_record(known.workload, known.cache)
                record.sampler_pids, record.profiler_pids = set(known.sampler_pids), set(known.profiler_pids)
        elif isinstance(value, list):
            getattr(recording, name).extend(value)
        else:
            setattr(recording, name, value)

    def _finish(self) -> None:
        recording = self.recording
        self.close()
        if recording.faults and recording.plan is None:
            raise self._refused(f"cannot be used: {recording.faults[0]}, and its profile with it")
        if recording.faults and not recording.sample_count:
            raise self._refused(f"cannot be used: {recording.faults[0]}, and no sample is left")
        for record in recording.records:
            record.restore_rounds()
        if recording.sweep is None and recording.plan is not None and len(recording.plan.workloads) > 1:
            recording.sweep = recording.plan
        recording.finished = True
        recording.show_first()

    def _missing(self) -> str:
        """What the profile asked for and the file does not have, as the end of a sentence."""
        recording = self.recording
        if recording.plan is None:
            return ""
        wanted = [
            (record.workload, name)
            for record in recording.records
            for name in recording.plan.implementations
            if name not in record.status
        ]
        if not wanted:
            return "; every result is there"
        workload, name = wanted[0]
        more = f" and {len(wanted) - 1:,} more" if len(wanted) > 1 else ""
        return f"; without {contender(name).title} at {workload.label}{more}"

    def _fault(self, clause: str) -> None:
        if len(self.recording.faults) < MAX_FAULTS:
            self.recording.faults.append(clause)

    def _refused(self, clause: str) -> RecordingError:
        self.close()
        return RecordingError(f"{self.source}: {clause}")


def open_file(path: Path) -> Opening:
    """Begin to read `recording.json`. Raises `RecordingError`."""
    try:
        return Opening(path.open("rb"), str(path))
    except OSError as error:
        raise RecordingError(f"{path}: cannot be read: {error.strerror or error}") from None


def _split(line: bytes, within: str) -> Part:
    """What a line holds: its part's name and its JSON, `[` or `]` where a list of results begins or ends."""
    if line == b"],\n":
        return within, b"]"
    if within:
        return within, line[1:-1] if line.startswith(b",") else line[:-1]
    found = re.match(rb'"([a-z_]+)":', line)
    if found is None:
        return "", b""
    name = found[1].decode()
    return name, b"[" if name in LISTS else line[found.end() : -2]


def _parts(document: _Unlined) -> Iterator[Part]:
    for name in PARTS:
        yield name, bytes(getattr(document, name))
    for name in LISTS:
        for entry in getattr(document, name):
            yield name, msgspec.json.encode(entry)


def _entry_title(data: bytes) -> str:
    """What a result is of, as far as it can be told from a damaged one."""
    found = re.search(rb'"implementation":"([^"\\]{1,80})"', data)
    if found is None:
        return "a result"
    return f"a result of {one_line(found[1].decode('utf-8', 'replace'))}"


def _restore_entry(record: WorkloadRecord, entry: StoredEntry) -> None:
    name, raw = entry.implementation, entry.raw
    series = Series.from_raw(raw.samples)
    if len(series):
        record.series[name] = series
    if not is_hidden(name):
        record.status[name] = raw.status
    record.stopped_because = entry.stopped_because or record.stopped_because
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


def _too_large(size: int, limit: int) -> str:
    return f"is {size / 1e6:,.0f} MB; the largest opened is {limit / 1e6:,.0f} MB"


def _sentence(error: Exception) -> str:
    return one_line(str(error) or type(error).__name__, 200)
