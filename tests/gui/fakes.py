"""A session without a worker: the window's side of the contract, with what was asked of it written down."""

from __future__ import annotations

from pathlib import Path

import msgspec
from PySide6.QtCore import QObject, Signal

from app.core import files
from app.core.catalog import CONTENDERS, introduce
from app.core.environment import Environment
from app.core.own import OwnFile
from app.core.plan import Cache, Measure, Plan
from app.core.recording import Recording
from app.core.results import entries_of
from app.core.workload import Workload
from app.gui.session import best_challenger
from app.gui.snapshot import Snapshot
from app.gui.sweep_run import SweepStatus, recorded
from app.gui.window import MainWindow


class FakeSession(QObject):
    changed = Signal()
    run_state_changed = Signal()
    contenders_changed = Signal()
    devices_changed = Signal()
    build_changed = Signal()
    notice = Signal(str, str)
    recovered_available = Signal(list)
    sweep_found = Signal()

    def __init__(self, recording: Recording | None = None) -> None:
        super().__init__()
        self.recording = recording or Recording()
        plan = self.recording.plan
        self.workload = plan.workloads[0] if plan is not None else Workload()
        self.enabled: tuple[str, ...] = plan.implementations if plan is not None else ("native",)
        self.baseline = plan.baseline if plan is not None else "native"
        self.challenger: str | None = None
        self.paused = False
        self.running = True
        self.stale_s: float | None = None
        self.stopped_because = ""
        self.viewing: Path | None = None
        self.worker_pid: int | None = 4242
        self.environment: Environment | None = self.recording.environment
        self.saved = False
        self.measure = Measure()
        self.profile = "quick"
        self.own: dict[str, OwnFile] = {}
        self.own_listed: tuple[str, ...] = ()
        self.age_s = 0.1
        self.sweep: SweepStatus | None = recorded(self.recording)
        self.calls: list[tuple[object, ...]] = []

    def _did(self, *call: object) -> None:
        self.calls.append(call)
        self.changed.emit()

    def set_workload(self, workload: Workload) -> None:
        self.workload = workload
        self._did("set_workload", workload)

    def set_cache(self, cache: Cache) -> None:
        self.measure = msgspec.structs.replace(self.measure, cache=cache)
        self._did("set_cache", cache)

    def measure_peaks(self, again: bool = False) -> None:
        self._did("measure_peaks", again)

    def set_enabled(self, implementations: tuple[str, ...]) -> None:
        names = (*CONTENDERS, *self.own_listed)
        self.enabled = tuple(n for n in names if n in implementations or n == self.baseline)
        self._did("set_enabled", self.enabled)

    def add_own(self, file: OwnFile, enable: bool = True) -> None:
        introduce((file,))
        self.own[file.id] = file
        self.own_listed = tuple(self.own)
        if enable:
            self.enabled = (*self.enabled, file.id)
        self._did("add_own", file, enable)

    def remove_own(self, implementation: str) -> None:
        self.own.pop(implementation)
        self.own_listed = tuple(self.own)
        self._did("remove_own", implementation)

    def try_again(self, implementation: str) -> None:
        self._did("try_again", implementation)

    def set_baseline(self, implementation: str) -> None:
        self.baseline = implementation
        self._did("set_baseline", implementation)

    def set_challenger(self, implementation: str | None) -> None:
        self.challenger = implementation
        self._did("set_challenger", implementation)

    def pause(self) -> None:
        self.paused = True
        self._did("pause")

    def resume(self) -> None:
        self.paused, self.viewing = False, None
        self._did("resume")

    def restart(self) -> None:
        self._did("restart")

    def restart_worker(self) -> None:
        self._did("restart_worker")

    def profile_now(self) -> None:
        self._did("profile_now")

    def start_sweep(self, plan: Plan, first: int = 0, anew: bool = False) -> None:
        self._did("start_sweep", plan, first)

    def cancel_sweep(self) -> None:
        self._did("cancel_sweep")

    def resume_sweep(self) -> None:
        self._did("resume_sweep")

    def show_cell(self, workload: Workload) -> None:
        record = self.recording.record_for(workload)
        if record is not None:
            self.workload = workload
            self.recording.show(record)
        self._did("show_cell", workload)

    def build(self, clean: bool = False) -> None:
        self._did("build", clean)

    def cancel_build(self) -> None:
        self._did("cancel_build")

    def open_recording(self, path: Path) -> None:
        self.recording = files.load(path)
        self.viewing = path
        self.paused = True
        record = self.recording.current
        if record is not None:
            self.workload = record.workload
        self._did("open_recording", path)

    def recording_saved(self, samples: int) -> None:
        self.saved = self.recording.sample_count == samples
        self._did("recording_saved", samples)

    def discard_journal(self, found: object) -> None:
        self._did("discard_journal", found)

    def recent_journals(self) -> list[object]:
        return []

    def close(self) -> None:
        self._did("close")

    def snapshot(self, window_s: float | None) -> Snapshot:
        record = self.recording.current
        entries = entries_of(record, self.baseline, self.enabled) if record is not None else ()
        last = record.last_at_s if record is not None else None
        return Snapshot(
            recording=self.recording,
            record=record,
            entries=entries,
            baseline=self.baseline,
            challenger=self.challenger or best_challenger(entries, self.baseline),
            now_s=(last or 0.0) + self.age_s,
            window_s=window_s,
            running=self.running and not self.paused,
            paused=self.paused and self.viewing is None,
            recorded=self.viewing is not None,
            stale_s=self.stale_s,
            sweep=self.sweep,
        )


def calls(window: MainWindow, name: str) -> list[tuple[object, ...]]:
    """Arguments of every call of that name that the window made of its fake session."""
    session = window.session
    assert isinstance(session, FakeSession)
    return [call[1:] for call in session.calls if call[0] == name]
