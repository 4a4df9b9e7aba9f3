"""What the verdict offers to do, done."""

from __future__ import annotations

import time

import msgspec
from PySide6.QtCore import QObject
from PySide6.QtWidgets import QApplication

from app.core.build import BuildState
from app.core.fields import fields_of
from app.core.workload import Workload
from app.gui.session import Session
from app.gui.tab_area import BUILD, SYSTEM, TabArea

WAIT_S = 30.0


class VerdictActions(QObject):
    """Remembers until when a person wants to wait for a silent worker."""

    def __init__(self, session: Session, tabs: TabArea, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session, self._tabs = session, tabs
        self._wait_until = 0.0

    def act(self, action: str) -> None:
        session = self._session
        if action == "larger-sequence":
            session.set_workload(larger_sequence(session.workload))
        elif action == "measure-again":
            session.restart()
        elif action == "open-system":
            self._tabs.go_to(SYSTEM)
        elif action == "open-build":
            self._tabs.go_to(BUILD)
        elif action == "wait":
            self._wait_until = time.monotonic() + WAIT_S
        elif action == "restart-worker":
            session.restart_worker()
        elif action == "retry-build":
            session.build(False)
        elif action == "cancel-build":
            session.cancel_build()
        elif action == "copy-log":
            QApplication.clipboard().setText(log_text(session.recording.build))
        elif action == "copy-reason":
            QApplication.clipboard().setText(self._reason())
        session.changed.emit()

    def waiting_s(self, stale_s: float | None) -> float | None:
        """For how much longer to wait without asking; None: ask. A worker that answered ends the wait."""
        if stale_s is None:
            self._wait_until = 0.0
            return None
        left = self._wait_until - time.monotonic()
        return left if left > 0 else None

    def _reason(self) -> str:
        session = self._session
        if session.stopped_because:
            return session.stopped_because
        snapshot = session.snapshot(None)
        entry = snapshot.entry(snapshot.challenger)
        return (entry.reason or "") if entry is not None else ""


def larger_sequence(workload: Workload) -> Workload:
    """The same with the next longer sequence of the slider's steps; unchanged at the end of them."""
    steps = fields_of(Workload)["seq_len"].steps
    longer = next((step for step in steps if step > workload.seq_len), workload.seq_len)
    return msgspec.structs.replace(workload, seq_len=longer)


def log_text(build: BuildState) -> str:
    """The build's log as text: what failed first, then every line with its time."""
    lines = []
    if build.failed is not None:
        lines = [build.failed.sentence, build.failed.first_error, ""]
    lines += [f"[{line.at_s:.1f} s] {line.text}" for line in build.log]
    return "\n".join(lines).strip() + "\n"
