"""A `Recording`: everything that one run produced. Messages go in; every view and export reads it."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from app.core import messages as m
from app.core.build import BuildState
from app.core.catalog import BESIDE, CONTENDERS, TWIN, beside_of, introduce, twin_of
from app.core.disturbance import Strain, strain_of
from app.core.environment import Environment
from app.core.measurements import Accuracy, Counts, Memory, Standing, State
from app.core.peaks import merged
from app.core.plan import Cache, Plan
from app.core.series import Series
from app.core.workload import Workload

TELEMETRY_KEPT = 3600
NOTICES_KEPT = 2000


class Status(msgspec.Struct, frozen=True):
    """Where one contender stands in one workload."""

    state: State = "waiting"
    reason: str = ""
    remedy: str = ""
    path: str = ""


class Event(msgspec.Struct, frozen=True):
    """Something that can move a curve: drawn as a dashed line with a word or two."""

    at_s: float
    text: str
    level: str = "info"


class WorkloadRecord:
    """What was measured of one workload, by contender."""

    def __init__(self, workload: Workload, cache: Cache = "warm") -> None:
        self.workload = workload
        self.cache: Cache = cache
        """What the samples found in the caches. Cold and warm ones never share a record."""
        self.series: dict[str, Series] = {}
        self.status: dict[str, Status] = {}
        self.counts: dict[str, Counts] = {}
        self.count_failures: dict[str, str] = {}
        self.memory: dict[str, Memory] = {}
        self.accuracy: dict[str, Accuracy] = {}
        self.profiled_seconds: dict[str, float] = {}
        """Of a call under the profiler, the median of several: what it costs to be counted."""
        self.traces_gz: dict[str, bytes] = {}
        self.sampler_pids: set[int] = set()
        self.profiler_pids: set[int] = set()
        self.stopped_because: str | None = None
        self.standing: Standing | None = None
        self.strains: list[Strain] = []
        """The machine's, shared by all records of a recording."""
        self.version = 0
        """Grows with every change: what was derived from an older one is out of date."""
        self._source: tuple[int, int] | None = None
        self._offset = 0
        self._last_round = -1

    @property
    def label(self) -> str:
        """The workload's name, and the cache's state where it is not the usual one."""
        return f"{self.workload.label}, cold cache" if self.cache == "cold" else self.workload.label

    @property
    def rounds(self) -> int:
        """How many rounds were begun, disturbed ones included."""
        return self._last_round + 1

    def add(self, batch: m.Samples, baseline: str) -> None:
        """Append a batch. A new generation or worker starts counting at 0 again; the record goes on.

        The hidden twin is filed under the baseline that it repeats, so that a later change of the
        baseline cannot pair it with another; so is the baseline in an own implementation's process.
        """
        source = (batch.generation, batch.pid)
        if source != self._source:
            self._source = source
            self._offset = self._last_round + 1
        self.sampler_pids.add(batch.pid)
        for sample in batch.samples:
            name = batch.implementations[sample.implementation]
            if name == TWIN:
                name = twin_of(baseline)
            elif name.startswith(BESIDE):
                name = beside_of(baseline, name.removeprefix(BESIDE))
            number = self._offset + sample.round
            self._last_round = max(self._last_round, number)
            self.series.setdefault(name, Series()).append(sample, number)

    @property
    def last_at_s(self) -> float | None:
        """When the last sample ended, seconds since 1970."""
        return max((float(s.at_s[-1]) for s in self.series.values() if len(s)), default=None)

    def forget(self) -> None:
        """Drop the samples, to measure anew; counts and accuracy do not wear out."""
        self.series.clear()
        self._last_round = -1
        self._source = None
        self.version += 1

    def restore_rounds(self) -> None:
        """Continue numbering after the series that a file brought."""
        self._last_round = max((int(s.rounds[-1]) for s in self.series.values() if len(s)), default=-1)


class Cell(NamedTuple):
    """Which workload of the current plan a message is about."""

    generation: int
    workload: int


class Recording:
    """Collects the messages of a session, in the order they came.

    `begin` is called with every `Start` that goes out; messages of an older generation change nothing.
    """

    def __init__(self) -> None:
        self.environment: Environment | None = None
        self.plan: Plan | None = None
        self.sweep: Plan | None = None
        """The plan of several workloads that was measured last; live measuring leaves it as it is."""
        self.records: list[WorkloadRecord] = []
        self.build = BuildState()
        self.telemetry: list[m.Telemetry] = []
        self.strains: list[Strain] = []
        self.events: list[Event] = []
        self.notices: list[m.Notice] = []
        self.faults: list[str] = []
        """What of the file that this came from is damaged or missing, a clause each."""
        self.fatal: m.Fatal | None = None
        self.peaks_state: m.PeaksStarted | m.PeaksMeasured | m.PeaksRefused | None = None
        """The last that was heard of measuring the device's peaks."""
        self.generation = -1
        self.finished = False
        self.active: m.Active | None = None
        self._cells: dict[Cell, WorkloadRecord] = {}
        self._shown: WorkloadRecord | None = None
        self._told: Environment | None = None
        self._is_replaced = False
        """The worker holds an older build than the latest: it ends, and its last words are not of this one."""

    @property
    def current(self) -> WorkloadRecord | None:
        """The record that is shown: the one that samples go to now, unless `show` named another."""
        return self._shown or self._cells.get(Cell(self.generation, 0))

    @property
    def sample_count(self) -> int:
        return sum(len(series) for record in self.records for series in record.series.values())

    def record_for(self, workload: Workload, cache: Cache = "warm") -> WorkloadRecord | None:
        wanted = (workload, cache)
        return next((record for record in self.records if (record.workload, record.cache) == wanted), None)

    def add_record(self, workload: Workload, cache: Cache = "warm") -> WorkloadRecord:
        """The record of a workload, made if there is none yet."""
        record = self.record_for(workload, cache)
        if record is None:
            record = WorkloadRecord(workload, cache)
            record.strains = self.strains
            self.records.append(record)
        return record

    def show_first(self) -> None:
        """Make the first record the current one: a recording from a file has no run of its own."""
        self.generation = 0
        self._cells = {Cell(0, index): record for index, record in enumerate(self.records)}

    def begin(self, start: m.Start) -> None:
        """A `Start` went out: messages of its generation belong to its plan from here on."""
        self.generation = start.generation
        self.plan = start.plan
        introduce(start.plan.own)
        self.finished = False
        self.active = None
        self._is_replaced = False
        self._shown = None
        if len(start.plan.workloads) > 1:
            self.sweep = start.plan
        self._complete_environment()
        # Only the newest generation's are looked up; a sweep of hours starts many.
        self._cells = {}
        cache = start.plan.measure.cache
        known = {(record.workload, record.cache): record for record in self.records}
        for index, workload in enumerate(start.plan.workloads):
            record = known.get((workload, cache))
            if record is None:
                record = WorkloadRecord(workload, cache)
                record.strains = self.strains
                self.records.append(record)
            self._cells[Cell(start.generation, index)] = record
            if index < start.first_workload:
                # Done by an earlier start: what became of it stays.
                continue
            record.version += 1
            if not start.live:
                record.stopped_because = None
            if start.anew:
                record.forget()
            for name in start.plan.implementations:
                if name in start.excluded:
                    record.status[name] = Status("failed", start.excluded[name])
                elif record.status.get(name, Status()).state != "ready":
                    record.status[name] = Status()

    def note(self, at_s: float, text: str, level: str = "info") -> None:
        """An event of the client's own, such as `worker restarted`."""
        self.events.append(Event(at_s, text, level))

    def apply(self, message: m.Message) -> bool:
        """Take a message in. False: it belongs to an older generation and changed nothing."""
        generation = getattr(message, "generation", None)
        if generation is not None and (generation != self.generation or self._is_replaced):
            return False
        if isinstance(message, m.BuildMessage):
            self._apply_build(message)
        elif generation is not None:
            self._apply_run(message)
        elif isinstance(message, m.Telemetry):
            self._apply_telemetry(message)
        elif isinstance(message, m.Ready):
            self._told = message.environment
            self._complete_environment()
        elif isinstance(message, m.Notice):
            self.notices.append(message)
            del self.notices[:-NOTICES_KEPT]
        elif isinstance(message, m.Fatal):
            self.fatal = message
        elif isinstance(message, (m.PeaksStarted, m.PeaksMeasured, m.PeaksRefused)):
            self._apply_peaks(message)
        return True

    def _apply_peaks(self, message: m.PeaksStarted | m.PeaksMeasured | m.PeaksRefused) -> None:
        self.peaks_state = message
        if isinstance(message, m.PeaksMeasured):
            # The worker's own telling is what the environment is completed from at the next start.
            told, known = self._told, self.environment
            if told is not None:
                self._told = msgspec.structs.replace(told, peaks=merged(told.peaks, message.peaks))
            if known is not None:
                self.environment = msgspec.structs.replace(known, peaks=merged(known.peaks, message.peaks))

    def _complete_environment(self) -> None:
        """What a worker tells of its machine before it knows the plan, with what the run changed of it."""
        if self._told is None:
            return
        threads = self.plan.measure.threads if self.plan is not None else 0
        self.environment = msgspec.structs.replace(
            self._told, threads=threads or self._told.threads, extension_key=self.build.loaded_key
        )

    def show(self, record: WorkloadRecord) -> None:
        """Make one of the records the current one, until the next `begin`. Samples go where they went."""
        self.generation = max(self.generation, 0)
        self._shown = record

    def show_latest(self) -> None:
        """Make the record of the last `Start` the current one, as it was when the session ended."""
        if self.current is None:
            self.show_first()

    def _apply_run(self, message: m.Message) -> None:
        if isinstance(message, m.RunDone):
            self.finished = True
            self.active = None
            return
        index = getattr(message, "workload", None)
        record = None if index is None else self._cells.get(Cell(self.generation, index))
        if record is None:
            return
        record.version += 1
        if isinstance(message, (m.Samples, m.ContenderState, m.Checked)):
            # What was announced has been survived.
            self.active = None
        if isinstance(message, m.Samples):
            record.add(message, self.plan.baseline if self.plan else "native")
        elif isinstance(message, m.Active):
            self.active = message
        elif isinstance(message, m.ContenderState):
            record.status[message.implementation] = Status(
                message.state, message.reason, message.remedy, message.path
            )
        elif isinstance(message, m.Checked):
            record.accuracy[message.implementation] = message.accuracy
        elif isinstance(message, m.Counted):
            name = message.implementation
            record.counts[name] = message.counts
            record.memory[name] = message.memory
            record.count_failures.pop(name, None)
            record.profiler_pids.add(message.pid)
            if message.profiled_seconds is not None:
                record.profiled_seconds[name] = message.profiled_seconds
            if message.trace_gz:
                record.traces_gz[name] = message.trace_gz
        elif isinstance(message, m.CountFailed):
            record.count_failures[message.implementation] = message.reason
        elif isinstance(message, m.WorkloadDone):
            record.stopped_because = message.stopped_because
            self.active = None
        elif isinstance(message, m.Progress):
            record.standing = message.standing

    def _apply_build(self, message: m.BuildMessage) -> None:
        before = self.build.loaded_key
        self.build.apply(message)
        if not isinstance(message, m.BuildFinished):
            return
        self._is_replaced = message.needs_new_worker
        self._complete_environment()
        if before is not None and before != message.key:
            self.set_aside(before)

    def set_aside(self, key: str) -> None:
        """Keep what an older build measured beside the new one's, under a name that says so."""
        for record in self.records:
            record.version += 1
            for name in [n for n in record.series if n in CONTENDERS and CONTENDERS[n].needs_extension]:
                old = f"{name}@{key[:8]}"
                # A build that came back and went again: what it measured before stays too.
                record.series.setdefault(old, Series()).extend(record.series.pop(name))
                tables: tuple[dict[str, Any], ...] = (
                    record.counts,
                    record.count_failures,
                    record.memory,
                    record.accuracy,
                    record.traces_gz,
                    record.profiled_seconds,
                )
                for table in tables:
                    if name in table:
                        table[old] = table.pop(name)
                record.status[old] = Status("ready", "an earlier build")

    def _apply_telemetry(self, reading: m.Telemetry) -> None:
        last = self.telemetry[-1] if self.telemetry else None
        if last is not None and last.on_mains is True and reading.on_mains is False:
            self.note(reading.at_s, "on battery", "warning")
        if last is not None and not last.gpu_throttled and reading.gpu_throttled:
            self.note(reading.at_s, "GPU throttled", "warning")
        self.restore_telemetry(reading)

    def restore_telemetry(self, reading: m.Telemetry) -> None:
        """Keep a reading, and what it says of the samples taken since the one before."""
        strain = strain_of(reading, self.telemetry[-1] if self.telemetry else None)
        if strain is not None:
            self.strains.append(strain)
            del self.strains[:-TELEMETRY_KEPT]
        self.telemetry.append(reading)
        del self.telemetry[:-TELEMETRY_KEPT]
