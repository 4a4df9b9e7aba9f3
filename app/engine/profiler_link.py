"""The worker's side of its profiler child: started when first needed, asked one thing at a time, replaced.

All methods run in the worker's main thread; what the child says is delivered there through the inbox.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec
import psutil

from app.engine.channel import Inbox
from app.engine.processes import child_environment, module_command
from app.engine.profiler_protocol import (
    CountPassed,
    CountRefused,
    CountRequest,
    ProfilerReady,
    decode_reply,
    encode,
)

COMMAND = module_command("app.engine.profiler_child")

MAX_PASSES = 100
MAX_GROWTH_BYTES = 300_000_000
"""torch.profiler keeps memory of every session (pytorch#193348); a fresh process has none."""

TIME_LIMIT_S = 120.0
"""For a start and a pass together. torch alone may take 10 s to load on a busy machine."""

ATTEMPTS = 2

Notice = Callable[[str, Literal["info", "warning", "error"]], None]


class _Child:
    """One process. `said` and `ended` are called in the main thread."""

    def __init__(
        self,
        command: Sequence[str],
        inbox: Inbox,
        said: Callable[[_Child, bytes], None],
        ended: Callable[[_Child], None],
    ) -> None:
        self.process = subprocess.Popen(
            list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=child_environment()
        )
        self.is_ready = False
        self.is_spent = False
        """Whether a user's code ran in it: then nobody else is counted there."""
        self.passes = 0
        self.first_bytes: int | None = None

        def read() -> None:
            assert self.process.stdout is not None
            with self.process.stdout as replies:
                for line in replies:
                    inbox.deliver(lambda line=line: said(self, line))  # type: ignore[misc]
            self.process.wait()
            inbox.deliver(lambda: ended(self))

        threading.Thread(target=read, name="profiler", daemon=True).start()

    def write(self, data: bytes) -> None:
        """A child that is gone already is noticed by its reader."""
        assert self.process.stdin is not None
        with contextlib.suppress(OSError, ValueError):
            self.process.stdin.write(data)
            self.process.stdin.flush()

    def end(self, kill: bool = False) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        if kill:
            self.process.kill()

    def has_grown(self) -> bool:
        """Whether it holds much more memory than after its first pass."""
        try:
            now: int = psutil.Process(self.process.pid).memory_info().rss
        except psutil.Error:
            return False
        if self.first_bytes is None:
            self.first_bytes = now
        return now - self.first_bytes > MAX_GROWTH_BYTES


class ProfilerLink:
    """Queues requests for the child; `answered` gets each outcome, in order."""

    def __init__(
        self,
        inbox: Inbox,
        answered: Callable[[CountPassed | CountRefused], None],
        notice: Notice,
        command: Sequence[str] = COMMAND,
        clock: Callable[[], float] = time.monotonic,
        time_limit_s: float = TIME_LIMIT_S,
    ) -> None:
        self._inbox = inbox
        self._answered = answered
        self._notice = notice
        self._command = command
        self._clock = clock
        self._time_limit_s = time_limit_s
        self._child: _Child | None = None
        self._queue: deque[CountRequest] = deque()
        self._current: CountRequest | None = None
        self._ignored = False
        self._attempt = 0
        self._deadline: float | None = None
        self._was_late = False
        self._restarts = 0

    @property
    def busy(self) -> bool:
        return self._current is not None

    @property
    def pid(self) -> int | None:
        # Read once: the telemetry thread asks too.
        child = self._child
        return None if child is None else child.process.pid

    def request(self, request: CountRequest) -> None:
        self._queue.append(request)
        self._next()

    def forget(self) -> None:
        """Drop what waits; the pass that runs goes on, and its outcome is dropped too."""
        self._queue.clear()
        self._ignored = self._current is not None

    def seconds_left(self) -> float | None:
        """Until `look` must be called for the time limit; None while nothing runs."""
        return None if self._deadline is None else max(0.0, self._deadline - self._clock())

    def look(self) -> None:
        """End a child that takes too long."""
        if self._deadline is not None and self._clock() >= self._deadline and self._child is not None:
            self._deadline = None
            self._was_late = True
            self._child.end(kill=True)

    def close(self) -> None:
        self._queue.clear()
        if self._child is not None:
            self._child.end(kill=True)

    # ---- one at a time ---------------------------------------------------------------------------------

    def _next(self) -> None:
        if self._current is not None or not self._queue:
            return
        self._current = self._queue.popleft()
        self._ignored = False
        self._attempt = 1
        self._send()

    def _send(self) -> None:
        assert self._current is not None
        self._was_late = False
        self._deadline = self._clock() + self._time_limit_s
        own = self._current.own is not None
        if self._child is not None and (self._child.is_spent or own):
            self._retire()
        if self._child is None:
            try:
                self._child = _Child(self._command, self._inbox, self._said, self._ended)
            except OSError as error:
                self._finish(CountRefused(self._current.id, 0, f"the profiler does not start: {error}"))
                return
        self._child.is_spent = own
        # Written before it is ready: the pipe keeps it until torch is loaded.
        self._child.write(encode(self._current))

    def _finish(self, reply: CountPassed | CountRefused) -> None:
        self._current = None
        self._deadline = None
        if not self._ignored:
            self._answered(reply)
        self._next()

    # ---- what the child does ---------------------------------------------------------------------------

    def _said(self, child: _Child, line: bytes) -> None:
        if child is not self._child:
            return
        try:
            reply = decode_reply(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            self._notice(f"the profiler said something that is no reply: {error}", "warning")
            return
        if isinstance(reply, ProfilerReady):
            child.is_ready = True
            return
        if self._current is None or reply.id != self._current.id:
            return
        child.passes += 1
        if child.is_spent:
            self._retire()
        elif child.passes >= MAX_PASSES or child.has_grown():
            self._child = None
            child.end()
        self._finish(reply)

    def _retire(self) -> None:
        """Let the child go; one that a user's code ran in may not go of itself."""
        child, self._child = self._child, None
        if child is not None:
            child.end(kill=child.is_spent)

    def _ended(self, child: _Child) -> None:
        child.end()
        if child is not self._child:
            return
        self._child = None
        if self._current is None:
            # It is started again with the next request.
            self._notice("the profiler ended; it is restarted when it is needed", "info")
            return
        how = f"took longer than {self._time_limit_s:,.0f} s" if self._was_late else _ending(child.process)
        # A user's code that crashed once crashes again.
        if self._attempt < ATTEMPTS and not self._was_late and not child.is_spent:
            self._attempt += 1
            self._notice(f"the profiler {how}; the profiler was restarted", "warning")
            self._send()
            return
        self._notice(f"the profiler {how} while counting {self._current.implementation}", "warning")
        self._finish(CountRefused(self._current.id, child.process.pid, f"the profiler {how}"))


def _ending(process: subprocess.Popen[bytes]) -> str:
    status = process.returncode
    if status is not None and status < 0:
        import signal

        try:
            return f"was ended by {signal.Signals(-status).name}"
        except ValueError:
            return f"was ended by signal {-status}"
    if os.name == "nt" and status is not None and status >= 0xC0000000:
        return f"crashed (0x{status:08X})"
    return f"ended with status {status}"
