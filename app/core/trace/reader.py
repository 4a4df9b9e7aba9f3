"""Reads a Chrome trace of torch.profiler, from any version and vendor, into columns."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from app.core.trace import container, document
from app.core.trace import events as ev
from app.core.trace.model import (
    ABSENT,
    Bools,
    Complete,
    Flows,
    Ints,
    MemoryRecords,
    Oddities,
    Source,
    Trace,
    TraceError,
)
from app.core.trace.vocabulary import KIND_OF_CATEGORY, Kind

_LONG_AFTER_ZERO_NS = 10**12
"""A start of exactly 0, where the earliest other event is later than this, is a start that was lost."""
_NAMED = 3


class _Interner(dict[Any, int]):
    """Numbers for values in order of first sight."""

    def __missing__(self, value: Any) -> int:
        self[value] = number = len(self)
        return number


class _Columns:
    """Lists of arrays, one for each slice."""

    def __init__(self, *names: str) -> None:
        self._parts: dict[str, list[Any]] = {name: [] for name in names}

    def add(self, **arrays: Any) -> None:
        for name, array in arrays.items():
            self._parts[name].append(array)

    def ints(self, name: str) -> Ints:
        parts = self._parts[name]
        return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)

    def bools(self, name: str) -> Bools:
        parts = self._parts[name]
        return np.concatenate(parts) if parts else np.empty(0, dtype=np.bool_)


class _Builder:
    def __init__(self) -> None:
        self.names = _Interner()
        self.categories = _Interner()
        self.threads = _Interner()
        self.thread_of = _ThreadNumbers(self.threads)
        self.processes: set[str] = set()
        self.phases: Counter[str] = Counter()
        self.flow_ids = _Interner()
        self.whole = True
        self.complete = _Columns(
            "category", "name", "thread", "start", "duration", "timed", "measured",
            "device", "stream", "correlation", "external", "sequence",
        )  # fmt: skip
        self.flows = _Columns("is_start", "category", "identity")
        self.memory = _Columns("time", "bytes", "address", "device_type", "timed")

    def add(self, events: list[ev.Event], pieces: Sequence[document.Piece] | None) -> None:
        phases = [ev.text_of(event.ph) for event in events]
        self.phases.update(phases)
        self.processes.update(map(ev.text_of, {event.pid for event in events if _hashable(event.pid)}))
        chosen = [index for index, phase in enumerate(phases) if phase == "X"]
        if chosen:
            self._add_complete([events[i] for i in chosen], pieces and [pieces[i] for i in chosen])
        flows = [event for event, phase in zip(events, phases, strict=True) if phase in ("s", "f")]
        if flows:
            self._add_flows(flows)
        memory = [e for e, phase in zip(events, phases, strict=True) if phase == "i" and e.name == "[memory]"]
        if memory:
            self._add_memory(memory)

    def _add_complete(self, events: list[ev.Event], pieces: Sequence[document.Piece] | None) -> None:
        args = [event.args or ev.NO_ARGS for event in events]
        starts = [event.ts for event in events]
        durations = [event.dur for event in events]
        start, timed = ev.nanoseconds(starts)
        duration, measured = ev.nanoseconds(durations)
        if pieces and (ev.needs_exact(starts) or ev.needs_exact(durations)):
            for index, piece in enumerate(pieces):
                exact_start, exact_duration = ev.exact_times(piece)
                if exact_start is not None:
                    start[index] = exact_start
                if exact_duration is not None:
                    duration[index] = exact_duration
        self.whole = self.whole and not (start % 1000).any() and not (duration % 1000).any()
        pids = [event.pid for event in events]
        tids = [event.tid for event in events]
        device = ev.integers([arg.device for arg in args])
        stream = ev.integers([arg.stream for arg in args])
        external = ev.integers([arg.external if arg.external != ABSENT else arg.external_old for arg in args])
        correlation = ev.integers([arg.correlation for arg in args])
        names, categories, threads = self.names, self.categories, self.thread_of
        self.complete.add(
            category=np.array([categories[ev.text_of(event.cat)] for event in events], dtype=np.int64),
            name=np.array([names[ev.text_of(event.name)] for event in events], dtype=np.int64),
            thread=np.array([threads.of(p, t) for p, t in zip(pids, tids, strict=True)], dtype=np.int64),
            start=start,
            duration=duration,
            timed=timed,
            measured=measured,
            device=np.where(device == ABSENT, ev.integers(pids), device),
            stream=np.where(stream == ABSENT, ev.integers(tids), stream),
            correlation=np.where(correlation == ABSENT, 0, correlation),
            external=external,
            sequence=ev.integers([arg.sequence for arg in args]),
        )

    def _add_flows(self, events: list[ev.Event]) -> None:
        categories, ids = self.categories, self.flow_ids
        self.flows.add(
            is_start=np.array([event.ph == "s" for event in events], dtype=np.bool_),
            category=np.array([categories[ev.text_of(event.cat)] for event in events], dtype=np.int64),
            identity=np.array([ids[ev.text_of(event.id)] for event in events], dtype=np.int64),
        )

    def _add_memory(self, events: list[ev.Event]) -> None:
        args = [event.args or ev.NO_ARGS for event in events]
        time, timed = ev.nanoseconds([event.ts for event in events])
        size = ev.integers([arg.bytes for arg in args])
        self.memory.add(
            time=time,
            timed=timed,
            bytes=np.where(size == ABSENT, 0, size),
            address=ev.integers([arg.address for arg in args]),
            device_type=ev.integers([arg.device_type for arg in args]),
        )


def _hashable(value: Any) -> bool:
    return not isinstance(value, (list, dict))


class _ThreadNumbers:
    """Numbers of threads; ids compare as text, but making the text of every event's would be slow."""

    def __init__(self, threads: _Interner) -> None:
        self._threads = threads
        self._seen: dict[tuple[Any, Any], int] = {}

    def of(self, pid: Any, tid: Any) -> int:
        try:
            return self._seen[pid, tid]
        except TypeError:
            return self._threads["", ""]
        except KeyError:
            number = self._threads[ev.text_of(pid), ev.text_of(tid)]
            self._seen[pid, tid] = number
            return number


def read(
    source: bytes | str | os.PathLike[str],
    name: str = "",
    max_expanded_bytes: int = container.MAX_EXPANDED_BYTES,
) -> Trace:
    """Read a trace from a path or from the bytes of a file, gzipped or not, object or array form.

    `name` is what sentences call the file (by default its file name). Memory is bounded by about twice
    `max_expanded_bytes`. What is wrong with a file that can still be read is in `Trace.warnings`.

    Raises:
        TraceError: it cannot be read, is no trace, or is beyond the limit: one or two sentences.
    """
    text = container.load(source, name, max_expanded_bytes)
    parts = document.split(text)
    repairs = ev.Repairs()
    builder = _Builder()
    for events, pieces in ev.slices(parts.pieces, repairs):
        builder.add(events, pieces)
    if parts.pieces and not builder.phases.total():
        raise TraceError(
            f"{text.name} cannot be read as a trace: none of the {len(parts.pieces):,} entries in its list "
            "of events is one."
        )
    source_facts = Source(
        name=text.name,
        container="gzip" if text.gzipped else "plain",
        json_form=parts.form,
        bytes_on_disk=text.bytes_on_disk,
        bytes_json=len(text.json),
    )
    warnings = [*text.warnings, *parts.warnings, *repairs.sentences(text.name)]
    return _finish(source_facts, parts, builder, warnings, repairs.unreadable)


def _finish(
    source: Source,
    parts: document.Document,
    builder: _Builder,
    warnings: list[str],
    unreadable: int,
) -> Trace:
    columns = builder.complete
    categories = tuple(builder.categories)
    names = tuple(builder.names)
    kinds = np.array(
        [KIND_OF_CATEGORY.get(category, Kind.OTHER) for category in categories] or [Kind.OTHER],
        dtype=np.uint8,
    )
    category = columns.ints("category")
    start, duration = columns.ints("start"), columns.ints("duration")
    timed, measured = columns.bools("timed"), columns.bools("measured")
    at_zero = timed & (start == 0)
    if at_zero.any() and (others := start[timed & ~at_zero]).size and others.min() > _LONG_AFTER_ZERO_NS:
        timed = timed & ~at_zero
    negative = measured & (duration < 0)
    duration = np.where(negative | ~measured, 0, duration)
    origin = int(start[timed].min()) if timed.any() else 0
    complete = Complete(
        kind=kinds[category] if len(category) else np.empty(0, dtype=np.uint8),
        category=category,
        name=columns.ints("name"),
        thread=columns.ints("thread"),
        start=np.where(timed, start - origin, 0),
        duration=duration,
        timed=timed,
        measured=measured,
        device=columns.ints("device"),
        stream=columns.ints("stream"),
        correlation=columns.ints("correlation"),
        external=columns.ints("external"),
        sequence=columns.ints("sequence"),
    )
    oddities = Oddities(
        without_start=int((~timed).sum()),
        without_duration=int((~measured).sum()),
        negative_duration=int(negative.sum()),
        zero_duration=int((measured & (duration == 0) & ~negative).sum()),
        unreadable=unreadable,
    )

    def named(mask: Bools) -> str:
        chosen = np.flatnonzero(mask)
        listed = [
            f"{categories[category[i]] or 'event'} “{names[complete.name[i]][:60]}”" for i in chosen[:_NAMED]
        ]
        more = f" and {len(chosen) - _NAMED:,} more" if len(chosen) > _NAMED else ""
        return ", ".join(listed) + more

    def say(count: int, what: str, mask: Bools) -> None:
        if count:
            has = "event has" if count == 1 else "events have"
            warnings.append(f"{source.name}: {count:,} {has} {what}: {named(mask)}.")

    say(oddities.without_start, "no usable start (counted, but in no time)", ~timed)
    say(oddities.without_duration, "no usable duration (counted, its time unknown)", ~measured)
    say(oddities.negative_duration, "a negative duration (counted as 0)", negative)
    if not builder.phases.total():
        warnings.append(f"{source.name} holds no events: there is nothing in it.")
    return Trace(
        source=source,
        names=names,
        categories=categories,
        threads=tuple(builder.threads),
        complete=complete,
        flows=Flows(
            builder.flows.bools("is_start"), builder.flows.ints("category"), builder.flows.ints("identity")
        ),
        memory=_memory(builder.memory, origin),
        phases=dict(sorted(builder.phases.items())),
        process_ids=len(builder.processes),
        origin_ns=origin,
        whole_microseconds=builder.whole,
        header=parts.header,
        oddities=oddities,
        warnings=tuple(warnings),
        incomplete=parts.incomplete,
    )


def _memory(columns: _Columns, origin: int) -> MemoryRecords:
    time = columns.ints("time")
    order = np.argsort(time, kind="stable")
    order = order[columns.bools("timed")[order]]
    return MemoryRecords(
        time=time[order] - origin,
        bytes=columns.ints("bytes")[order],
        address=columns.ints("address")[order],
        device_type=columns.ints("device_type")[order],
    )
