"""A session's messages, written as they come, so that a crash loses at most the last second."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import msgspec

from app.core import messages as m
from app.core.catalog import TWIN, twin_of
from app.core.measurements import Memory
from app.core.plan import Plan
from app.core.recording import Recording, WorkloadRecord
from app.core.series import Series


class Journal:
    """Appends every command that starts a run and every message to a file, a line each."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        torn = _is_torn(path)
        self._file: BinaryIO = path.open("ab")
        if torn:
            # What a crash cut off must not swallow the first line that follows.
            self._file.write(b"\n")
        self._samples = 0

    @property
    def has_samples(self) -> bool:
        return self._samples > 0

    def write(self, message: m.Start | m.Message) -> None:
        """Add a message. It is on its way to the disk at the next `flush`."""
        if isinstance(message, m.Samples):
            self._samples += len(message.samples)
        self._file.write(m.encode(message))

    def flush(self) -> None:
        self._file.flush()

    def close(self, remove: bool) -> None:
        """End the journal; `remove` it where the recording was saved or holds nothing."""
        # A full disk refuses what was not flushed yet, at the last moment as well.
        with contextlib.suppress(OSError):
            self._file.close()
        if remove:
            self.path.unlink(missing_ok=True)


def _is_torn(path: Path) -> bool:
    """Whether a file ends in the middle of a line."""
    with contextlib.suppress(OSError), path.open("rb") as file:
        if file.seek(0, 2):
            file.seek(-1, 2)
            return file.read(1) != b"\n"
    return False


class Replay:
    """The recording that a journal's messages make, piece by piece. Raises OSError.

    A journal cut off in the middle of a line, as a crash leaves it, gives all whole ones; `unreadable`
    counts those that could not be read.
    """

    def __init__(self, path: Path) -> None:
        self.recording = Recording()
        self.unreadable = 0
        self._file = path.open("rb")

    def step(self, lines: int = 100) -> bool:
        """Read on. False: that was all, and the recording is complete."""
        for line in islice(self._file, lines):
            if line.strip():
                self._take(line)
            lines -= 1
        if lines:
            self.recording.finished = True
            self.close()
        return not lines

    def close(self) -> None:
        """Leave the rest unread."""
        self._file.close()

    def _take(self, line: bytes) -> None:
        try:
            if line.startswith(b'{"type":"Start"'):
                command = m.decode_command(line)
                assert isinstance(command, m.Start)
                self.recording.begin(command)
            else:
                self.recording.apply(m.decode_message(line))
        except (m.ProtocolError, IndexError):
            self.unreadable += 1


def replay(path: Path) -> tuple[Recording, int]:
    """A journal's whole recording, and how many lines could not be read. Raises OSError."""
    whole = Replay(path)
    while whole.step():
        pass
    return whole.recording, whole.unreadable


SAMPLES_A_MESSAGE = 2000


def messages_of(recording: Recording) -> Iterator[m.Start | m.Message]:
    """What a journal would have written of a recording from a file: replayed, it gives the same figures.

    Not the samples of a baseline's repetition other than the plan's: those stay in the file.
    """
    if recording.environment is not None:
        yield m.Ready(recording.environment, 0.0)
    yield from recording.build.messages
    plan = recording.sweep or recording.plan
    if plan is None:
        return
    generation = recording.generation
    swept = set(plan.workloads)
    for record in recording.records:
        if record.workload not in swept or record.cache != plan.measure.cache:
            measure = msgspec.structs.replace(plan.measure, cache=record.cache)
            alone = Plan((record.workload,), plan.implementations, plan.baseline, measure)
            yield m.Start(generation, alone, live=True)
            yield from _record_messages(record, generation, 0, plan.baseline)
    yield m.Start(generation, plan)
    for index, workload in enumerate(plan.workloads):
        found = recording.record_for(workload, plan.measure.cache)
        if found is not None:
            yield from _record_messages(found, generation, index, plan.baseline)


def _record_messages(
    record: WorkloadRecord, generation: int, index: int, baseline: str
) -> Iterator[m.Message]:
    for name, status in record.status.items():
        yield m.ContenderState(
            generation, index, name, status.state, status.reason, status.remedy, status.path
        )
    pid = next(iter(record.sampler_pids), 0)
    for name, series in record.series.items():
        told = TWIN if name == twin_of(baseline) else name
        if told == TWIN or not name.startswith(TWIN):
            yield from _series_messages(series, generation, index, pid, told)
    for name, accuracy in record.accuracy.items():
        yield m.Checked(generation, index, name, accuracy)
    counter = next(iter(record.profiler_pids), 0)
    for name, counts in record.counts.items():
        yield m.Counted(
            generation,
            index,
            name,
            counts,
            record.memory.get(name, Memory()),
            counter,
            record.profiled_seconds.get(name),
            record.traces_gz.get(name, b""),
        )
    for name, reason in record.count_failures.items():
        yield m.CountFailed(generation, index, name, reason)
    if record.stopped_because is not None:
        yield m.WorkloadDone(generation, index, record.stopped_because)  # type: ignore[arg-type]


def _series_messages(series: Series, generation: int, index: int, pid: int, name: str) -> Iterator[m.Samples]:
    made = [
        m.Sample(
            round=int(number),
            implementation=0,
            at_s=float(at_s),
            seconds=float(seconds),
            calls=int(calls),
            disturbed=series.disturbance(place),
            device_seconds=None if device != device else float(device),
        )
        for place, (number, at_s, seconds, calls, device) in enumerate(
            zip(series.rounds, series.at_s, series.seconds, series.calls, series.device_seconds, strict=True)
        )
    ]
    for start in range(0, len(made), SAMPLES_A_MESSAGE):
        yield m.Samples(generation, index, pid, (name,), tuple(made[start : start + SAMPLES_A_MESSAGE]))
