"""The window's session: what is measured, the worker that measures it, the recording that grows.

Commands go down to the worker, messages come up into the recording, views read the recording.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal

from app.core import files, journal, resuming
from app.core import messages as m
from app.core.catalog import CONTENDERS, DEFAULT_CONTENDERS, introduce
from app.core.environment import Environment
from app.core.own import OwnFile
from app.core.plan import Cache, DeviceError, Measure, Plan, on_device, on_devices
from app.core.recording import Recording, WorkloadRecord
from app.core.supervision import Supervisor
from app.core.sweep import finished_cells
from app.core.workload import Workload
from app.gui import theme
from app.gui.figures import Figures, best_challenger
from app.gui.journals import Found, Journals
from app.gui.recording_reader import RecordingReader
from app.gui.snapshot import Snapshot
from app.gui.sweep_run import SweepRun, SweepStatus, recorded
from app.gui.worker_link import WorkerLink

FLUSH_MS = 1000
CHANGED_MS = 50
ANSWER_MS = 2000
"""A worker that says nothing of a new run for so long is inside a call that nothing can stop."""

ANNOUNCED_STALE_AFTER_S = 60.0
"""A worker that said it prepares or first calls something may be silent for longer."""


class Session(QObject):
    """Owns the worker link and the recording. Has no widget and starts no thread."""

    changed = Signal()
    run_state_changed = Signal()
    contenders_changed = Signal()
    devices_changed = Signal()
    build_changed = Signal()
    notice = Signal(str, str)
    recovered_available = Signal(list)
    sweep_found = Signal()
    """A recording was opened that has a sweep in it which can go on."""

    def __init__(
        self,
        workload: Workload | None = None,
        enabled: tuple[str, ...] = DEFAULT_CONTENDERS,
        baseline: str = "native",
        journals: Journals | None = None,
        clock: Callable[[], float] = time.time,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self.workload = workload or Workload()
        self.own: dict[str, OwnFile] = {}
        """Own implementations whose code may run, by id; add with `add_own`."""
        self.enabled = tuple(name for name in CONTENDERS if name in enabled) or ("native",)
        self.baseline = baseline if baseline in self.enabled else self.enabled[0]
        self.challenger: str | None = None
        self.live = Recording()
        self.environment: Environment | None = None
        self.measure = Measure()
        self.paused = False
        self.saved = True
        self.viewing: Path | None = None
        self._viewed: Recording | None = None
        self.profile = "quick"
        self._clock = clock
        self._journals = journals or Journals()
        self._journal: journal.Journal | None = None
        self._link: WorkerLink | None = None
        self._supervisor = Supervisor()
        self._sweep: SweepRun | None = None
        self._excluded: dict[str, str] = {}
        self._careful = False
        self._generation = 0
        self._last_sample_s = clock()
        self._gave_up = ""
        self._figures = Figures()
        self._changed_timer = QTimer(self, singleShot=True, interval=CHANGED_MS)
        self._changed_timer.timeout.connect(self.changed)
        self._answer_timer = QTimer(self, singleShot=True, interval=ANSWER_MS)
        self._answer_timer.timeout.connect(self._replace_worker)
        self._reader = RecordingReader(self)
        self._reader.read.connect(self._file_read)
        self._reader.failed.connect(lambda sentence: self.notice.emit("error", sentence))
        self._flush_timer = QTimer(self, interval=FLUSH_MS)
        self._flush_timer.timeout.connect(self._flush)

    # ---- life ------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the worker; measuring and the build begin by themselves when it is ready."""
        abandoned = self._journals.abandoned()
        if abandoned:
            self.recovered_available.emit(abandoned)
        self._begin_journal()
        self._flush_timer.start()
        self._start_worker()

    def close(self) -> None:
        """End everything within a bounded time. What was not saved stays among the recent sessions."""
        for timer in (self._flush_timer, self._changed_timer, self._answer_timer):
            timer.stop()
        self._reader.stop()
        if self._link is not None:
            self._link.stop()
        self._journal = None
        self._journals.end(keep=not self.saved)

    @property
    def recording(self) -> Recording:
        """What the views show: a file while one is open, otherwise the session's own."""
        return self._viewed if self._viewed is not None else self.live

    @property
    def running(self) -> bool:
        """Whether samples are expected."""
        return (
            not self.paused
            and self.viewing is None
            and not self._gave_up
            and self.environment is not None
            and self._link is not None
            and self._link.is_running
        )

    @property
    def worker_pid(self) -> int | None:
        return self._link.pid if self._link is not None else None

    @property
    def stopped_because(self) -> str:
        """Why nothing is measured any more; empty while something is."""
        return self._gave_up

    @property
    def stale_s(self) -> float | None:
        """For how long no data came although some was due; None while all is well."""
        if self.paused or self.viewing is not None or self._link is None or self._gave_up:
            return None
        silent = self._clock() - self._last_sample_s
        # Loading torch, too, is something that may take a while and was announced.
        measures_peaks = isinstance(self.live.peaks_state, m.PeaksStarted)
        active = self.live.active is not None or self._is_sweeping
        waits = self.environment is None or active or measures_peaks
        limit = ANNOUNCED_STALE_AFTER_S if waits else theme.STALE_AFTER_S
        return silent if silent > limit else None

    # ---- what a person changes -------------------------------------------------------------------------

    def set_workload(self, workload: Workload) -> None:
        """Measure another workload; one that cannot run changes nothing."""
        if workload.problems or workload == self.workload:
            return
        self.workload = workload
        viewed = self._viewed_record(workload)
        if self._viewed is not None and viewed is not None:
            self._viewed.show(viewed)
            self._announce()
            return
        self._restart_run()

    def _viewed_record(self, workload: Workload) -> WorkloadRecord | None:
        """What an open file has of a workload, with the caches as they are chosen if it has both."""
        if self._viewed is None:
            return None
        other: Cache = "cold" if self.measure.cache == "warm" else "warm"
        return self._viewed.record_for(workload, self.measure.cache) or self._viewed.record_for(
            workload, other
        )

    def set_cache(self, cache: Cache) -> None:
        """Measure with warm or cold caches. What was measured with the others is kept apart."""
        if cache == self.measure.cache:
            return
        self.measure = msgspec.structs.replace(self.measure, cache=cache)
        viewed = self._viewed.record_for(self.workload, cache) if self._viewed is not None else None
        if self._viewed is not None and viewed is not None:
            self._viewed.show(viewed)
            self._announce()
            return
        self._restart_run()

    def set_enabled(self, implementations: tuple[str, ...]) -> None:
        """Measure these contenders, the baseline always among them."""
        names = tuple(name for name in self.known if name in implementations or name == self.baseline)
        for name in names:
            # Switched on again by hand: it gets another chance.
            if name not in self.enabled:
                self._excluded.pop(name, None)
        if names != self.enabled:
            self.enabled = names
            if self.challenger not in names:
                self.challenger = None
            self._contenders_chosen()

    def set_baseline(self, implementation: str) -> None:
        if implementation == self.baseline or implementation not in CONTENDERS:
            return
        self.baseline = implementation
        if self.challenger == implementation:
            self.challenger = None
        if implementation not in self.enabled:
            self.enabled = tuple(n for n in self.known if n in self.enabled or n == implementation)
        self._contenders_chosen()

    @property
    def own_listed(self) -> tuple[str, ...]:
        """Own implementations to list: the session's, and those of a file that is open."""
        plan = self._viewed.plan if self._viewed is not None else None
        recorded = [file.id for file in plan.own] if plan is not None else []
        return tuple(dict.fromkeys((*self.own, *recorded)))

    @property
    def known(self) -> tuple[str, ...]:
        """All contenders, in the order of every list."""
        return (*CONTENDERS, *self.own_listed)

    def add_own(self, file: OwnFile, enable: bool = True) -> None:
        """Take up an own implementation whose code was confirmed, in the place of an older version of it."""
        introduce((file,))
        before = [name for name, known in self.own.items() if known.path == file.path and name != file.id]
        for name in before:
            del self.own[name]
        self.own[file.id] = file
        self._excluded.pop(file.id, None)
        wanted = (*self.enabled, *((file.id,) if enable else ()))
        self.enabled = tuple(name for name in self.known if name in wanted)
        if self.challenger in before:
            self.challenger = file.id
        self._contenders_chosen()

    def remove_own(self, implementation: str) -> None:
        """Leave it out. What it measured stays in the recording."""
        if self.own.pop(implementation, None) is None:
            return
        self.enabled = tuple(name for name in self.enabled if name != implementation)
        if self.challenger == implementation:
            self.challenger = None
        self._contenders_chosen()

    def try_again(self, implementation: str) -> None:
        """Start a contender anew, in a new process where it has one of its own."""
        if implementation in self.enabled and implementation != self.baseline:
            others = tuple(name for name in self.enabled if name != implementation)
            self.set_enabled(others)
            self.set_enabled((*others, implementation))

    def _contenders_chosen(self) -> None:
        if self.viewing is None:
            self._restart_run()
        # A file's samples are compared anew; it stays open.
        self.contenders_changed.emit()
        self._announce()

    def set_challenger(self, implementation: str | None) -> None:
        """Whom the verdict is about; None picks by itself."""
        self.challenger = implementation
        self._announce()

    def pause(self) -> None:
        self.paused = True
        if self._sweep is not None:
            self._sweep.pause(self._clock())
        self._send(m.Pause())
        self.run_state_changed.emit()

    def resume(self) -> None:
        if self.viewing is not None:
            self.close_recording()
            return
        self.paused = False
        self._last_sample_s = self._clock()
        if self._sweep is not None:
            self._sweep.resume(self._clock())
        self._send(m.Resume())
        self.run_state_changed.emit()

    def restart(self) -> None:
        """Forget the current workload's samples and measure it anew. A file that is open stays as it is."""
        if self.viewing is not None:
            return
        record = self.live.record_for(self.workload, self.measure.cache)
        if record is not None:
            record.forget()
        self._excluded.clear()
        self._restart_run(anew=True)

    def restart_worker(self) -> None:
        """Replace a worker that does not answer. What it measured stays."""
        if self._link is not None:
            self._link.abandon()
        self._gave_up = ""
        self._note("worker restarted", "worker restarted by hand")
        self._start_worker()

    def _replace_worker(self) -> None:
        if self._link is None or not self._link.is_running or self.environment is None:
            return
        self._link.abandon()
        self.live.build.abandoned()
        self._note("long call stopped", "the worker was inside a long call; a new one takes over")
        self._start_worker()

    def profile_now(self) -> None:
        if self.viewing is None:
            self._send(m.Profile())

    def measure_peaks(self, again: bool = False) -> None:
        """Have the ceilings of the workload's device measured; `again` although they are known."""
        if self.viewing is not None or self.environment is None:
            return
        workload = self.workload
        self._send(m.MeasurePeaks(workload.device, workload.dtype, self.measure.threads, again))

    def build(self, clean: bool = False) -> None:
        self._send(m.Build(clean))

    def cancel_build(self) -> None:
        self._send(m.CancelBuild())

    # ---- the sweep -------------------------------------------------------------------------------------

    @property
    def _is_sweeping(self) -> bool:
        return self._sweep is not None and self._sweep.is_active

    def start_sweep(self, plan: Plan, first: int = 0, anew: bool = False) -> None:
        """Measure every workload of `plan` from `first` on; `anew` forgets what was sampled of those.

        Raises DeviceError. Before the worker is ready this waits for it.
        """
        if self.environment is not None:
            plan = on_devices(plan, self.environment)
        if self.viewing is not None:
            self._leave_recording()
        own = tuple(self.own[name] for name in plan.implementations if name in self.own)
        self._sweep = SweepRun(msgspec.structs.replace(plan, own=own), first, anew)
        self._run_sweep()

    def cancel_sweep(self) -> None:
        """End the sweep where it is and measure live again. It can go on later."""
        if self._is_sweeping:
            self.paused = False
            self._send(m.Resume())
            self._restart_run()
            self.run_state_changed.emit()

    def resume_sweep(self) -> None:
        """Go on with a sweep that was paused, cancelled or opened from a file, with the first cell not done."""
        if self.viewing is not None:
            self._adopt_recording()
            return
        if self._sweep is None or self._sweep.state == "done":
            return
        if self._sweep.state == "paused":
            self.resume()
        elif self._sweep.state == "stopped":
            self._run_sweep()

    def show_cell(self, workload: Workload) -> None:
        """Show a cell of the sweep: its record while the sweep goes on, else measured live."""
        if not self._is_sweeping or self.viewing is not None:
            self.set_workload(workload)
            return
        cache = self._sweep.plan.measure.cache if self._sweep is not None else "warm"
        record = self.live.record_for(workload, cache)
        if record is not None:
            self.workload = workload
            self.live.show(record)
            self._announce()

    def sweep_status(self) -> SweepStatus | None:
        """The sweep of what is shown: a file's, or this session's."""
        if self._viewed is not None:
            return recorded(self._viewed, self._resume_obstacle(self._viewed))
        return self._sweep.status(self._clock()) if self._sweep is not None else None

    def _run_sweep(self) -> None:
        sweep = self._sweep
        assert sweep is not None
        if sweep.next >= len(sweep.plan.workloads):
            sweep.state = "done"
            return
        sweep.state = "running"
        self.paused = False
        if self.environment is None:
            return
        self._send(m.Resume())
        sweep.plan = on_devices(sweep.plan, self.environment)
        self._generation += 1
        self._begin(sweep.start(self._generation, self._careful))
        self.live.show(self.live.add_record(self.workload, sweep.plan.measure.cache))
        self.run_state_changed.emit()

    def _follow_sweep(self, message: m.Message) -> None:
        sweep = self._sweep
        if sweep is None or not sweep.is_active:
            return
        if getattr(message, "generation", None) != self._generation:
            return
        if sweep.take(message, self._clock()):
            self._run_sweep()
        elif sweep.state == "done":
            self.notice.emit("info", f"the sweep is done: {len(sweep.plan.workloads)} cells are measured")
            self._restart_run()

    def _resume_obstacle(self, opened: Recording) -> str:
        """Why what this machine would measure does not belong beside what is in a file; empty if it does."""
        plan = opened.sweep
        if plan is None or self.environment is None:
            return ""
        changes = resuming.environment_changes(opened.environment, self.environment, plan)
        said = [resuming.sentence(changes)] if changes else []
        loaded = self.live.build.loaded_key
        if loaded is not None and resuming.is_other_build(opened.environment, loaded):
            said.append("the extension is another build")
        return "; ".join(said)

    def _adopt_recording(self) -> None:
        """Make the recording that is looked at this session's own, and go on with its sweep."""
        opened, path = self._viewed, self.viewing
        if opened is None or path is None or opened.sweep is None:
            return
        self._journals.end(keep=not self.saved)
        self._journal = None
        try:
            self._journal = self._journals.take_over(path, datetime.fromtimestamp(self._clock()))
        except OSError as error:
            self._lose_journal(error)
        if path.suffix != ".jsonl":
            for message in journal.messages_of(opened):
                self._keep(message)
        before, fresh = opened.build.loaded_key, self.live.build
        if fresh.loaded_key is not None:
            if before is not None and before != fresh.loaded_key:
                opened.set_aside(before)
            opened.build = fresh
        opened.finished = False
        self._viewed, self.viewing = None, None
        self.live, self.saved = opened, False
        self._generation = max(self._generation, opened.generation)
        if self.environment is not None:
            opened.apply(m.Ready(self.environment, self._clock()))
        plan = opened.sweep
        self.enabled, self.baseline = plan.implementations, plan.baseline
        self._sweep = SweepRun(plan, finished_cells(plan, opened))
        self._run_sweep()
        self.contenders_changed.emit()
        self._announce()

    # ---- recordings ------------------------------------------------------------------------------------

    def recording_saved(self, samples: int) -> None:
        """The recording shown is in a file, with so many of its samples."""
        if self.viewing is None and self.live.sample_count == samples:
            self.saved = True

    def open_recording(self, path: Path) -> None:
        """Show a recording from a file or a journal; measuring pauses. Raises `RecordingError`, OSError.

        It appears when it is read, which for one of hours takes a while.
        """
        done = self._reader.start(path)
        if done is None:
            self.notice.emit("info", f"Reading {path.name}")
        else:
            self._show_recording(path, done)

    def _file_read(self, path: Path, opened: Recording) -> None:
        try:
            self._show_recording(path, opened)
        except files.RecordingError as error:
            self.notice.emit("error", str(error))

    def _show_recording(self, path: Path, opened: Recording) -> None:
        if not opened.records:
            raise files.RecordingError(f"{path}: has no measurement in it")
        self._viewed = opened
        self.viewing = path
        self.pause()
        record = opened.current or opened.records[0]
        self.workload = record.workload
        self.measure = msgspec.structs.replace(self.measure, cache=record.cache)
        if opened.plan is not None:
            self.enabled = tuple(n for n in self.known if n in opened.plan.implementations) or self.enabled
            self.baseline = opened.plan.baseline
        self.contenders_changed.emit()
        self._announce()
        for fault in opened.faults:
            self.notice.emit("warning", f"{path.name}: {fault}")
        status = recorded(opened)
        if status is not None and not status.is_complete:
            self.sweep_found.emit()

    def close_recording(self) -> None:
        """Go back from a file to measuring, with the workload that was shown."""
        if self._viewed is None:
            return
        self._leave_recording()
        self._restart_run()
        self.contenders_changed.emit()
        self.run_state_changed.emit()

    def _leave_recording(self) -> None:
        self._viewed, self.viewing = None, None
        # What a file names is shown, and never run.
        self.enabled = tuple(name for name in self.enabled if name in self.known) or (self.baseline,)
        self.paused = False
        if self.environment is not None:
            self._make_out_device()
        self._send(m.Resume())

    def discard_journal(self, found: Found) -> None:
        found.path.unlink(missing_ok=True)

    def recent_journals(self) -> list[Found]:
        return self._journals.recent()

    def snapshot(self, window_s: float | None) -> Snapshot:
        """What there is to draw now. Figures are computed anew only where samples came."""
        record = self.recording.current
        entries = self._figures.entries(record, self.baseline, self.enabled)
        if self._figures.are_behind:
            self._announce()
        now_s = self._clock()
        if self.viewing is not None and record is not None:
            now_s = record.last_at_s or now_s
        return Snapshot(
            recording=self.recording,
            record=record,
            entries=entries,
            baseline=self.baseline,
            challenger=self.challenger or best_challenger(entries, self.baseline),
            now_s=now_s,
            window_s=window_s,
            running=self.running,
            # While a sweep is under way nothing is measured live: what is shown is of a moment that has passed.
            paused=(self.paused or self._is_sweeping) and self.viewing is None,
            stale_s=self.stale_s,
            recorded=self.viewing is not None,
            sweep=self.sweep_status(),
        )

    # ---- the worker ------------------------------------------------------------------------------------

    def _start_worker(self) -> None:
        if self._link is not None:
            self._link.deleteLater()
        self.environment = None
        self._last_sample_s = self._clock()
        self._link = WorkerLink(self)
        self._link.received.connect(self._receive)
        self._link.garbled.connect(lambda text: self.notice.emit("warning", text))
        self._link.died.connect(self._worker_died)
        self._link.start()
        self.run_state_changed.emit()

    def _worker_died(self, exit_status: int) -> None:
        self.live.build.abandoned()
        fatal = self.live.fatal
        if fatal is not None:
            self._gave_up = fatal.sentence
            self.notice.emit("error", self._gave_up)
            self.run_state_changed.emit()
            return
        decision = self._supervisor.worker_died(exit_status, self.live.active)
        self._careful = decision.careful
        if decision.blamed is not None and self._sweep is not None and self._is_sweeping:
            self._sweep.blame(decision.blamed, decision.sentence)
        elif decision.blamed is not None:
            self._excluded[decision.blamed] = decision.sentence
        word = "worker restarted" if decision.restart else "worker stopped"
        self._note(word, decision.sentence, "warning")
        if decision.restart:
            self._start_worker()
        else:
            self._gave_up = decision.sentence
            self.run_state_changed.emit()

    def _receive(self, message: m.Message) -> None:
        if not self.live.apply(message):
            return
        if getattr(message, "generation", None) == self._generation:
            self._answer_timer.stop()
        self._keep(message)
        if isinstance(message, m.Samples):
            self._last_sample_s = self._clock()
            self.saved = False
        elif isinstance(message, m.Ready):
            self.environment = message.environment
            self.devices_changed.emit()
            # A file stays open whatever becomes of the worker; measuring begins when it is closed.
            if self.viewing is None:
                self._make_out_device()
                if self._is_sweeping:
                    self._go_on_sweeping()
                else:
                    self._restart_run()
            self._send(m.Build())
        elif isinstance(message, m.Notice):
            self.notice.emit(message.level, message.text)
        elif isinstance(message, m.ContenderState):
            self.contenders_changed.emit()
        elif isinstance(message, m.BuildMessage):
            self.build_changed.emit()
            if isinstance(message, m.BuildFinished) and message.needs_new_worker:
                self._note("new build", "worker restarted for the new build")
                if self._link is not None:
                    self._link.stop()
                self._start_worker()
        self._follow_sweep(message)
        self._announce()

    def _go_on_sweeping(self) -> None:
        """A new worker goes on where the old one was; a pause holds over it."""
        paused = self.paused
        try:
            self._run_sweep()
        except DeviceError as error:
            self.notice.emit("error", str(error))
            self._restart_run()
        if paused:
            self.pause()

    def _make_out_device(self) -> None:
        assert self.environment is not None
        try:
            self.workload = on_device(self.workload, self.environment)
        except DeviceError as error:
            self.notice.emit("warning", f"{error}; going on with the CPU")
            self.workload = on_device(msgspec.structs.replace(self.workload, device="cpu"), self.environment)

    def _restart_run(self, anew: bool = False) -> None:
        if self.viewing is not None:
            self.close_recording()
            return
        if self.environment is None:
            return
        if self._sweep is not None:
            self._sweep.stop()
        self._generation += 1
        plan = Plan(
            workloads=(self.workload,),
            implementations=self.enabled,
            baseline=self.baseline,
            measure=self.measure,
            title="Live",
            own=tuple(self.own[name] for name in self.enabled if name in self.own),
        )
        self._begin(
            m.Start(
                self._generation,
                plan,
                live=True,
                careful=self._careful,
                excluded=dict(self._excluded),
                anew=anew,
            )
        )

    def _begin(self, start: m.Start) -> None:
        """Tell recording, journal and worker of a run, in this order."""
        self._last_sample_s = self._clock()
        self.live.begin(start)
        self._keep(start)
        self._send(start)
        if self.paused:
            self._send(m.Pause())
        else:
            self._answer_timer.start()
        self._announce()

    def _send(self, command: m.Command) -> None:
        if isinstance(command, m.Start):
            command = self._without_strangers(command)
        if self._link is not None:
            self._link.send(command)

    def _without_strangers(self, start: m.Start) -> m.Start:
        """Whatever a plan came from, a file included: code that was not confirmed in this window stays out."""
        strange = [file for file in start.plan.own if self.own.get(file.id) != file]
        if not strange:
            return start
        kept = tuple(file for file in start.plan.own if file not in strange)
        refused = {file.id: f"the code of {file.name} was not confirmed here" for file in strange}
        return msgspec.structs.replace(
            start,
            plan=msgspec.structs.replace(start.plan, own=kept),
            excluded={**start.excluded, **refused},
        )

    # ---- the recording ---------------------------------------------------------------------------------

    def _begin_journal(self) -> None:
        try:
            self._journal = self._journals.begin(datetime.fromtimestamp(self._clock()))
        except OSError as error:
            self._journal = None
            self.notice.emit("warning", f"unsaved work is not kept over a crash: {error}")

    def _keep(self, message: m.Start | m.Message) -> None:
        if self._journal is not None:
            try:
                self._journal.write(message)
            except OSError as error:
                self._lose_journal(error)

    def _flush(self) -> None:
        if self._journal is not None:
            try:
                self._journal.flush()
            except OSError as error:
                self._lose_journal(error)

    def _lose_journal(self, error: OSError) -> None:
        """A full disk: measuring goes on, and what the journal has so far stays where it is."""
        self._journal = None
        self.notice.emit("warning", f"unsaved work is no longer kept over a crash: {error}")

    def _note(self, event: str, sentence: str, level: str = "info") -> None:
        """An event has the two words that stand at its line in a chart; the sentence is a notice."""
        self.live.note(self._clock(), event, level)
        self.notice.emit(level, sentence)
        self._announce()

    def _announce(self) -> None:
        if not self._changed_timer.isActive():
            self._changed_timer.start()
