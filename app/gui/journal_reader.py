"""Reads a journal while the window goes on: one of hours takes seconds."""

from __future__ import annotations

import time
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal

from app.core.journal import Replay
from app.core.recording import Recording

SLICE_S = 0.02


class JournalReader(QObject):
    """Reads one journal at a time, in slices between other events; a short one at once."""

    read = Signal(Path, Recording, int)
    """The path, its recording, and how many lines could not be read. Not for one that was read at once."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._path = Path()
        self._replay: Replay | None = None
        self._timer = QTimer(self, interval=1)
        self._timer.timeout.connect(self._read_on)

    def start(self, path: Path) -> tuple[Recording, int] | None:
        """Begin to read. What `read` would carry where that is done at once, else None. Raises OSError."""
        self.stop()
        self._path, self._replay = path, Replay(path)
        done = self._read_slice()
        if done is None:
            self._timer.start()
        return done

    def stop(self) -> None:
        """Give up a journal that is being read."""
        self._timer.stop()
        if self._replay is not None:
            self._replay.close()
            self._replay = None

    def _read_on(self) -> None:
        done = self._read_slice()
        if done is not None:
            self.read.emit(self._path, *done)

    def _read_slice(self) -> tuple[Recording, int] | None:
        replay = self._replay
        assert replay is not None
        until = time.perf_counter() + SLICE_S
        while replay.step():
            if time.perf_counter() > until:
                return None
        self.stop()
        replay.recording.show_latest()
        return replay.recording, replay.unreadable
