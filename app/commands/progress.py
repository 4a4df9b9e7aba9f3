"""What a run says while it goes on: one line that changes on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import TextIO

from app.core import messages as m
from app.core import text
from app.core.catalog import contender
from app.core.plan import Plan
from app.core.recording import Recording
from app.core.results import Entry, entries_of
from app.core.time_left import CellClock, left_words
from app.core.workload import Workload
from app.exports.accuracy_rows import slice_note

LINE_S = 0.2


class Progress:
    """Writes to stderr, so that stdout stays for the result."""

    def __init__(self, stream: TextIO | None = None, quiet: bool = False) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._quiet = quiet
        self._live = self._stream.isatty() and not quiet
        self._last_s = 0.0
        self._width = 0
        self._cells: CellClock | None = None
        self._began: int | None = None

    def begin(self, plan: Plan, first: int) -> None:
        """A `Start` went out: the cells from `first` on are measured."""
        if self._cells is None or self._cells.plan != plan:
            self._cells = CellClock(plan)
        self._began = None

    def line(self, words: str) -> None:
        """A line that stays."""
        if self._quiet:
            return
        # A terminal that was closed, or a pipe that nobody reads, must not end what is being measured.
        with contextlib.suppress(OSError, ValueError):
            self._clear()
            print(words, file=self._stream, flush=True)

    def status(self, words: str) -> None:
        """A line that the next one replaces; on something that is no terminal nothing."""
        now = time.monotonic()
        if not self._live or now - self._last_s < LINE_S:
            return
        self._last_s = now
        words = words[: self._columns() - 1]
        with contextlib.suppress(OSError, ValueError):
            self._stream.write("\r" + words.ljust(self._width))
            self._stream.flush()
        self._width = len(words)

    def log(self, entry: m.BuildLog) -> None:
        """A line of a build's log, with its time."""
        self.line(f"[{entry.at_s:5.1f} s] {entry.text}")

    def message(self, message: m.Message, recording: Recording) -> None:
        """Tell of a message, if it is of interest to someone who waits."""
        if isinstance(message, m.BuildProgress):
            expected = f" of about {message.expected_s:.0f} s" if message.expected_s else ""
            self.status(f"compiling {message.done} of {message.total} · {message.elapsed_s:.0f} s{expected}")
        elif isinstance(message, m.BuildFinished):
            how = "loaded from the cache" if message.cached else "built"
            self.line(f"extension {how} in {message.seconds:.1f} s")
        elif isinstance(message, m.BuildFailed):
            self.line(f"extension not built: {message.sentence}")
        elif isinstance(message, m.BuildWaiting):
            self.status(
                f"waiting for process {message.pid}, which builds the same · {message.elapsed_s:.0f} s"
            )
        elif isinstance(message, m.Notice) and message.level != "info":
            self.line(f"{message.level}: {message.text}")
        elif isinstance(message, m.ContenderState) and message.state == "failed":
            self.line(f"{contender(message.implementation).title} failed: {message.reason}")
        elif isinstance(message, m.Active):
            if self._cells is not None and self._began is None:
                # From the first word of it: loading torch and the build belong to no cell.
                self._began = message.workload
                self._cells.begin(message.workload, time.monotonic())
            self.status(f"{contender(message.implementation).title}: {message.step}")
        elif isinstance(message, m.Samples):
            self._sampling(message, recording)
        elif isinstance(message, m.WorkloadDone):
            self._done(message, recording)

    def _done(self, message: m.WorkloadDone, recording: Recording) -> None:
        """A line per cell of a sweep: what came of it, and how long the others take."""
        plan = recording.plan
        if plan is None or len(plan.workloads) < 2 or message.generation != recording.generation:
            return
        if self._cells is not None:
            self._cells.finish(message.workload, time.monotonic())
        workload = plan.workloads[message.workload]
        record = recording.record_for(workload, plan.measure.cache)
        entries = entries_of(record, plan.baseline, plan.implementations) if record is not None else ()
        claims = [_claim(entry) for entry in entries if entry.implementation != plan.baseline]
        count = f"{message.workload + 1} of {len(plan.workloads)}"
        self.line(" · ".join([count, workload.label, *claims, *self._left(message.workload + 1)]))

    def _left(self, at: int) -> list[str]:
        if self._cells is None or at >= len(self._cells.plan.workloads):
            return []
        return [left_words(self._cells.left_s(time.monotonic()))]

    def _sampling(self, message: m.Samples, recording: Recording) -> None:
        if recording.plan is None or not message.samples:
            return
        workload = recording.plan.workloads[message.workload]
        count = len(recording.plan.workloads)
        where = f"{message.workload + 1}/{count} " if count > 1 else ""
        known = _known(recording, workload)
        cold = ", cold cache" if recording.plan.measure.cache == "cold" else ""
        said = [f"{where}{workload.label}{cold}", f"round {message.samples[-1].round + 1:,}{known}"]
        left = self._left(message.workload) if count > 1 else []
        self.status(" · ".join([*said, *left]))

    def _clear(self) -> None:
        if self._live and self._width:
            self._stream.write("\r" + " " * self._width + "\r")
            self._width = 0

    @staticmethod
    def _columns() -> int:
        import shutil

        return shutil.get_terminal_size().columns


def _known(recording: Recording, workload: Workload) -> str:
    """How well the speed-ups are known, beside what was asked, and how much of the time is spent."""
    record = recording.record_for(workload, recording.plan.measure.cache if recording.plan else "warm")
    stands = record.standing if record is not None else None
    if stands is None:
        return ""
    width = "no interval yet" if stands.precision is None else f"±{text.percent(stands.precision, 1)}"
    spent = f"{min(stands.spent_s, stands.limit_s):.0f} of at most {stands.limit_s:.0f} s"
    return f" · {width}, asked ±{text.percent(stands.target, 1)} · {spent}"


def table(recording: Recording) -> str:
    """The results as a plain table for a terminal."""
    if recording.plan is None:
        return "nothing was measured"
    lines = []
    for record in recording.records:
        lines.append(record.label + f", {record.workload.device}")
        entries = entries_of(record, recording.plan.baseline, recording.plan.implementations)
        lines += [_row(entry) for entry in entries]
        lines.append("")
    for skipped in recording.plan.skipped:
        values = ", ".join(f"{key} {value}" for key, value in skipped.values.items())
        lines.append(f"skipped {values}: {skipped.reason}")
    return "\n".join(lines).rstrip()


def _claim(entry: Entry) -> str:
    """`SDPA 1.20× FASTER`, or why there is no such figure."""
    short = contender(entry.implementation).short
    if entry.speed_up is None or entry.verdict is None:
        return f"{short} {'wrong result' if entry.verdict_reason else entry.status}"
    return f"{short} {text.times(entry.speed_up.median)} {entry.verdict.upper()}"


def _row(entry: Entry) -> str:
    title = contender(entry.implementation).title.ljust(24)
    if entry.latency is None:
        return f"  {title}{entry.status}: {entry.reason or 'the run ended before it was measured'}"
    time_us = f"{text.micros(entry.latency.median_s)} µs".rjust(14)
    if entry.implementation == entry.baseline:
        claim = "baseline"
    elif entry.withheld is not None:
        claim = f"withheld: {entry.withheld}"
    elif entry.speed_up is None:
        claim = f"no speed-up: {entry.verdict_reason}" if entry.verdict_reason else "no speed-up"
    elif entry.speed_up.low is None or entry.speed_up.high is None:
        # A figure without an interval would be read as one with.
        claim = f"UNSURE: {entry.verdict_reason}"
    else:
        speed = entry.speed_up
        claim = (
            f"{text.times(speed.median)} ({speed.low:.2f}–{speed.high:.2f}) {(entry.verdict or '').upper()}"
        )
    calls = _calls(entry)
    wrong = "" if entry.accuracy is None or entry.accuracy.ok else "  WRONG RESULT"
    note = slice_note(entry)
    part = f"  accuracy of {note}" if note else ""
    return f"  {title}{time_us}  {claim.ljust(32)}  {calls}{wrong}{part}".rstrip()


def _calls(entry: Entry) -> str:
    counts = entry.counts
    parts = []
    for name, phases in (("Python", counts.python_calls), ("operator", counts.operator_calls)):
        if phases is not None:
            count = sum(v for v in phases.values() if v is not None)
            parts.append(f"{count} {name} call{'' if count == 1 else 's'}")
    if counts.kernel_launches is not None:
        parts.append(f"{sum(v for v in counts.kernel_launches.values() if v is not None)} launches")
    return ", ".join(parts)
