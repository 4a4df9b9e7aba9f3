"""Reads a recording or a journal while the window goes on: one of hours takes long."""

from __future__ import annotations

import time
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal

from app.core.files import RecordingError
from app.core.journal import Replay
from app.core.opening import Opening, open_file
from app.core.recording import Recording

SLICE_S = 0.02
JOURNAL = ".jsonl"


class RecordingReader(QObject):
    """Reads one file at a time, in slices between other events; a short one at once."""

    read = Signal(Path, Recording)
    """Not for one that was read at once."""

    failed = Signal(str)
    """A sentence that names the file."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._path = Path()
        self._source: Replay | Opening | None = None
        self._timer = QTimer(self, interval=1)
        self._timer.timeout.connect(self._read_on)

    def start(self, path: Path) -> Recording | None:
        """Begin to read. The recording where that is done at once, else None.

        Raises OSError and, for what is no recording, `RecordingError`.
        """
        self.stop()
        self._path = path
        self._source = Replay(path) if path.suffix == JOURNAL else open_file(path)
        done = self._read_slice()
        if done is None:
            self._timer.start()
        return done

    def stop(self) -> None:
        """Give up a file that is being read."""
        self._timer.stop()
        if self._source is not None:
            self._source.close()
            self._source = None

    def _read_on(self) -> None:
        try:
            done = self._read_slice()
        except RecordingError as error:
            self.stop()
            self.failed.emit(str(error))
        except OSError as error:
            self.stop()
            self.failed.emit(f"{self._path}: cannot be read: {error.strerror or error}")
        else:
            if done is not None:
                self.read.emit(self._path, done)

    def _read_slice(self) -> Recording | None:
        source = self._source
        assert source is not None
        until = time.perf_counter() + SLICE_S
        while source.step():
            if time.perf_counter() > until:
                return None
        self.stop()
        recording = source.recording
        if isinstance(source, Replay):
            recording.show_latest()
            if source.unreadable:
                recording.faults.append(f"{source.unreadable:,} lines could not be read")
        return recording
