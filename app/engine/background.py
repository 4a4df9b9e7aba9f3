"""One slow preparation at a time in a thread of its own, so that sampling goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable

from app.engine import process_state
from app.engine.process_state import ProcessState


class Background:
    """Runs one function at a time; `finished` is called in its thread when one ends.

    A running one cannot be stopped, only ignored: look at `running` before starting another.
    """

    def __init__(self, finished: Callable[[Hashable, BaseException | None], None]) -> None:
        self._finished = finished
        self._thread: threading.Thread | None = None
        self._is_working = False
        self.token: Hashable = None

    @property
    def running(self) -> bool:
        return self._is_working

    def start(self, token: Hashable, work: Callable[[], None], state: ProcessState) -> None:
        """Run `work` under `state`, since thread count and gradient mode belong to a thread."""
        if self.running:
            raise RuntimeError("a preparation is running already")
        self.token = token
        self._is_working = True

        def run() -> None:
            error: BaseException | None = None
            try:
                process_state.restore(state)
                work()
            except BaseException as raised:
                raised.__traceback__ = None
                error = raised
            # Before it is told: who wakes at the news must not find it running, and wait for another.
            self._is_working = False
            self._finished(token, error)

        self._thread = threading.Thread(target=run, name="preparation", daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Wait for the end of what runs: for those who have nothing else to do."""
        if self._thread is not None:
            self._thread.join()
