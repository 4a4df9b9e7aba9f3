"""Makes the Qt application, the session and the window, and runs them."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

from app.core.files import RecordingError
from app.core.plan import Plan, read_profile
from app.core.version import VERSION
from app.gui.preferences import Preferences
from app.gui.session import Session
from app.gui.window import MainWindow


def start(path: Path | None, theme: str | None) -> int:
    """Open the window, on a recording or a profile if `path` is one; return its exit code.

    Raises `RecordingError` or `ProfileError` for a file that cannot be opened, before anything is shown.
    """
    application = QApplication(sys.argv[:1])
    application.setApplicationName("AttnScope")
    application.setApplicationVersion(VERSION)
    application.setDesktopFileName("attnscope")
    preferences = Preferences.load()
    if theme is not None:
        preferences.theme = theme  # type: ignore[assignment]
    session = Session(
        workload=preferences.workload, enabled=preferences.enabled, baseline=preferences.baseline
    )
    plan = _open(session, path) if path is not None and path.suffix != ".py" else None
    window = MainWindow(session, preferences)
    window.show()
    window.commands.own.restore(preferences.own, preferences.enabled)
    if path is not None and path.suffix == ".py":
        window.commands.own.add(path)
    elif plan is not None:
        window.commands.own.add_all(plan.own)
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        # Python runs the handler when it next runs at all, ten times a second, and then in the middle of
        # some slot: what that slot works with must not be closed under it.
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), lambda *_: QTimer.singleShot(0, window.close))
    # The window is painted first; the worker loads torch meanwhile.
    QTimer.singleShot(0, session.start)
    return application.exec()


def _open(session: Session, path: Path) -> Plan | None:
    """Show what is in a file; the plan of a profile, whose own implementations are asked for later."""
    if path.suffix == ".toml":
        plan = read_profile(path)
        session.workload = plan.workloads[0]
        session.enabled = tuple(name for name in plan.implementations if name in session.known)
        session.baseline = plan.baseline
        session.profile = str(path)
        return plan
    if path.suffix in (".json", ".jsonl"):
        session.open_recording(path)
    else:
        raise RecordingError(
            f"{path}: is neither a profile (.toml), nor a recording (.json), nor an implementation (.py)"
        )
    return None
