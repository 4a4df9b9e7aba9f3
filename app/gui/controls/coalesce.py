"""Values that come faster than they are worth passing on."""

from __future__ import annotations

from typing import TypeVar

from PySide6.QtCore import QObject, QTimer, Signal

T = TypeVar("T")


class Coalescer(QObject):
    """Passes the first value on at once, then at most one per interval; the last one always arrives."""

    passed = Signal(object)

    def __init__(self, interval_ms: int, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._pending: object | None = None
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(interval_ms)
        self._timer.timeout.connect(self._due)

    def put(self, value: object) -> None:
        if self._timer.isActive():
            self._pending = value
            return
        self._timer.start()
        self.passed.emit(value)

    def drop(self) -> None:
        """Forget what waits: something else has been decided meanwhile."""
        self._pending = None

    def _due(self) -> None:
        if self._pending is not None:
            value, self._pending = self._pending, None
            self._timer.start()
            self.passed.emit(value)
