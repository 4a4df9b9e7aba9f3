"""A large file, written between the window's events so that the window never waits for it."""

from __future__ import annotations

import time
from collections.abc import Iterator

from PySide6.QtCore import QObject, QTimer, Signal

from app.core.files import AtomicFile

AT_ONCE_S = 0.02


class GradualFile(QObject):
    """Writes `pieces` to `file`, which appears when the last one is in it.

    `ended` tells an error's text, empty where all went well; the object is gone soon after.
    """

    ended = Signal(str)

    def __init__(self, file: AtomicFile, pieces: Iterator[bytes], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._pieces = pieces
        self._file = file
        self._timer = QTimer(self, interval=1)
        self._timer.timeout.connect(self._step)

    def start(self) -> None:
        """Write what can be written at once; a small file is complete when this returns."""
        self._timer.start()
        self._step()

    @property
    def is_going_on(self) -> bool:
        return self._timer.isActive()

    def cancel(self) -> None:
        """Leave no file. `ended` is not emitted."""
        if self.is_going_on:
            self._timer.stop()
            self._file.discard()
            self.deleteLater()

    def _step(self) -> None:
        until = time.perf_counter() + AT_ONCE_S
        try:
            while time.perf_counter() < until:
                piece = next(self._pieces, None)
                if piece is None:
                    self._file.commit()
                    self._end("")
                    return
                self._file.write(piece)
        except OSError as error:
            self._file.discard()
            self._end(error.strerror or str(error))

    def _end(self, error: str) -> None:
        self._timer.stop()
        self.ended.emit(error)
        self.deleteLater()
