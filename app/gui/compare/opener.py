"""Opens two recordings and compares them, in slices between the window's other events."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal

from app.core.comparison import Comparing, Comparison
from app.core.files import RecordingError
from app.core.recording import Recording
from app.gui.recording_reader import RecordingReader

SLICE_S = 0.02


@dataclass(frozen=True)
class Side:
    """One of the two: its name, and the file that it came from if it did."""

    name: str
    recording: Recording
    path: Path | None = None


class Comparer(QObject):
    """Holds the sides A and B. `compared` follows every change of one of them."""

    compared = Signal(Comparison)
    failed = Signal(str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.a: Side | None = None
        self.b: Side | None = None
        self._wanted = ""
        self._comparing: Comparing | None = None
        self._reader = RecordingReader(self)
        self._reader.read.connect(self._opened)
        self._reader.failed.connect(self.failed)
        self._timer = QTimer(self, interval=1)
        self._timer.timeout.connect(self._go_on)

    def hold(self, side: Side, beside: Path) -> None:
        """Compare a recording with that of a file; the earlier one becomes A."""
        self.a, self.b = None, side
        self.open("earlier", beside)

    def open(self, which: str, path: Path) -> None:
        """Read `path` for side `a` or `b`, or for whichever its time says (`earlier`)."""
        self._wanted = which
        try:
            done = self._reader.start(path)
        except RecordingError as error:
            self.failed.emit(str(error))
            return
        except OSError as error:
            self.failed.emit(f"{path}: cannot be read: {error.strerror or error}")
            return
        if done is not None:
            self._opened(path, done)

    def swap(self) -> None:
        self.a, self.b = self.b, self.a
        self._compare()

    def stop(self) -> None:
        """Let go of both."""
        self._reader.stop()
        self._timer.stop()
        self.a = self.b = self._comparing = None

    def _opened(self, path: Path, recording: Recording) -> None:
        if not recording.sample_count:
            self.failed.emit(f"{path}: has no measurement in it")
            return
        for fault in recording.faults:
            self.failed.emit(f"{path.name}: {fault}")
        side = Side(name_of(recording, path), recording, path)
        if self._wanted == "a":
            self.a = side
        elif self._wanted == "b":
            self.b = side
        else:
            assert self.b is not None
            pair = sorted((side, self.b), key=lambda s: _began(s.recording))
            self.a, self.b = pair[0], pair[1]
        self._compare()

    def _compare(self) -> None:
        if self.a is not None and self.b is not None:
            self._comparing = Comparing(self.a.recording, self.b.recording)
            self._timer.start()
            self._go_on()

    def _go_on(self) -> None:
        comparing = self._comparing
        if comparing is None:
            return
        until = time.perf_counter() + SLICE_S
        while comparing.step():
            if time.perf_counter() > until:
                return
        self._timer.stop()
        self._comparing = None
        self.compared.emit(comparing.result())


def name_of(recording: Recording, path: Path | None) -> str:
    """What a recording is called: its file's name, or its folder's where the file has the usual one."""
    if path is None:
        return "This session"
    return path.parent.name if path.stem == "recording" and path.parent.name else path.stem


def _began(recording: Recording) -> float:
    starts = [float(s.at_s[0]) for record in recording.records for s in record.series.values() if len(s)]
    return min(starts, default=0.0)
