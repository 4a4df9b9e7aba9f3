"""The worker's side of one guest: handing over, taking back, and an end to what goes on for too long.

All methods run in the worker's main thread. It waits for a guest in short slices, between which commands are
answered, so that nothing a guest does can hold the worker up.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec
import psutil

from app.core.own import OwnFile
from app.core.supervision import describe_exit
from app.engine.channel import Inbox
from app.engine.own.protocol import (
    GuestReady,
    Prepare,
    Refused,
    Reply,
    Request,
    Take,
    decode_reply,
    encode,
)
from app.engine.processes import child_environment, module_command

COMMAND = module_command("app.engine.own.guest")
OUTPUT_KEPT = 8_000


LOOK_S = 0.05
ABANDONED_AFTER_S = 2.0
"""Preparing again what is prepared already costs less than a new process, which loads torch first."""


@dataclass(frozen=True)
class Limits:
    """Seconds and bytes after which a guest is ended.

    Preparing may compile, so it has minutes. A turn lasts milliseconds; `turn_s` is for a machine that
    swaps. `memory_bytes` None: half of what is free when the guest starts.
    """

    prepare_s: float = 300.0
    turn_s: float = 5.0
    turn_factor: float = 50.0
    memory_bytes: int | None = None
    printed_bytes: int = 1_000_000


LIMITS = Limits()


class GuestLink:
    """One process. `ask` hands over, `take` waits for the answer and stops the guest again."""

    def __init__(
        self,
        file: OwnFile,
        inbox: Inbox,
        limits: Limits = LIMITS,
        command: Sequence[str] = COMMAND,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.file = file
        self.current: Request | None = None
        self.prepared: Prepare | None = None
        """What it is prepared for; None while it is not."""
        self._limits = limits
        self._clock = clock
        self._limit_s = self._spent_s = self._looked_at = 0.0
        self.is_ready = False
        """Whether torch is loaded there; until then it has run nothing of the user's."""
        self._is_stopped = False
        self._is_over = False
        self._printed = 0
        self._tail = bytearray()
        self._strays: list[psutil.Process] = []
        self._memory = limits.memory_bytes or max(1 << 30, psutil.virtual_memory().available // 2)
        self._replies: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=child_environment(),
        )

        def read() -> None:
            assert self._process.stdout is not None
            with self._process.stdout as replies:
                for line in replies:
                    self.is_ready = True
                    self._replies.put(line)
                    inbox.deliver(_nothing)
            self._process.wait()
            self._replies.put(None)
            inbox.deliver(_nothing)

        self._readers = [
            threading.Thread(target=work, name=name, daemon=True)
            for name, work in (("guest", read), ("guest-output", self._read_output))
        ]
        for reader in self._readers:
            reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_over(self) -> bool:
        """Whether the process has ended, or was told to."""
        return self._is_over

    @property
    def output(self) -> str:
        """The end of what it printed."""
        return bytes(self._tail).decode("utf-8", "replace")

    @property
    def seconds_left(self) -> float | None:
        """Until `take` must look at it again, whether or not it answers; None while nothing is asked."""
        if self.current is None:
            return None
        return max(0.0, min(self._limit_s - self._spent_s, LOOK_S))

    def ask(self, request: Request, expected_s: float = 0.0) -> None:
        """Hand over. `expected_s` is what a turn should take."""
        assert self.current is None
        limits = self._limits
        limit = limits.prepare_s
        if isinstance(request, Take):
            limit = max(limits.turn_s, limits.turn_factor * expected_s)
        else:
            self.prepared = None if isinstance(request, Prepare) else self.prepared
        self.current = request
        self._limit_s, self._spent_s, self._looked_at = limit, 0.0, self._clock()
        self._resume()
        assert self._process.stdin is not None
        # One that is gone already is noticed by its reader.
        with contextlib.suppress(OSError, ValueError):
            self._process.stdin.write(encode(request))
            self._process.stdin.flush()

    def take(self, timeout_s: float) -> Reply | None:
        """The answer to what was asked, or None within `timeout_s`. After it the guest is stopped."""
        asked = self.current
        assert asked is not None
        end = self._clock() + timeout_s
        while True:
            try:
                # In slices: what must not grow is looked at meanwhile.
                line = self._replies.get(timeout=max(0.0, min(end - self._clock(), LOOK_S)))
            except queue.Empty:
                trouble = self._trouble()
                if trouble:
                    return self._give_up(asked, trouble)
                if self._clock() >= end:
                    return None
                continue
            if line is None:
                return self._give_up(asked, self._ending())
            reply = self._read_reply(line)
            if reply is None:
                return self._give_up(asked, "its process wrote something that is no answer")
            if not isinstance(reply, GuestReady) and reply.id == asked.id:
                return self._answered(asked, reply)
            # Anything else answers a request that nobody waits for any more.

    def abandon(self) -> None:
        """Nobody waits for the answer any more: stop it where it is; what takes long, end."""
        if self.current is None:
            return
        if not isinstance(self.current, Take) and self._spent_s > ABANDONED_AFTER_S:
            self.end()
        self.current = None
        self._stop()

    def end(self) -> None:
        """Kill it with everything it started."""
        self._is_over = True
        self.current = self.prepared = None
        for process in [*self._strays, *_descendants(self._process.pid)]:
            with contextlib.suppress(psutil.Error):
                process.kill()
        self._signal(getattr(signal, "SIGKILL", signal.SIGTERM))
        with contextlib.suppress(OSError):
            self._process.kill()
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()

    def wait(self, timeout_s: float = 10.0) -> None:
        """Until it is gone and read to its end; after `end`, for who must leave nothing behind."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout_s)
        for thread in self._readers:
            thread.join(timeout_s)

    # ---- what may not go on ----------------------------------------------------------------------------

    def _trouble(self) -> str:
        """Why it must be ended now, "" for no reason."""
        now = self._clock()
        # Time in which nobody looked does not count: then this process was stopped itself, as by a suspend.
        self._spent_s += min(now - self._looked_at, 5 * LOOK_S)
        self._looked_at = now
        if self._spent_s >= self._limit_s:
            return f"did not return within {self._limit_s:,.0f} s"
        if self._printed > self._limits.printed_bytes:
            return f"printed more than {self._limits.printed_bytes / 1e6:g} MB"
        try:
            held = psutil.Process(self._process.pid).memory_info().rss
        except psutil.Error:
            return ""
        if held > self._memory:
            return f"took more than {self._memory / 1e9:,.1f} GB of memory"
        return ""

    def _answered(self, asked: Request, reply: Reply) -> Reply:
        if isinstance(asked, Prepare):
            self.prepared = asked
            # Whoever left the group is stopped one by one.
            self._strays = [p for p in _descendants(self._process.pid) if not self._is_in_group(p.pid)]
        trouble = self._trouble()
        self.current = None
        if trouble:
            return self._give_up(asked, trouble)
        if isinstance(reply, Refused) and reply.state == "failed":
            self.end()
        else:
            self._stop()
        return reply

    def _give_up(self, asked: Request, reason: str) -> Refused:
        self.end()
        return Refused(asked.id, "failed", reason)

    def _ending(self) -> str:
        status = self._process.wait()
        # faulthandler's lines, the innermost first.
        _, found, rest = self.output.partition(f'File "{self.file.path}", line ')
        line = rest.split(" ", 1)[0].rstrip(",") if found else ""
        where = f" in {self.file.name}, line {line}" if line.isdigit() else ""
        return f"its process {describe_exit(status)}{where}"

    @staticmethod
    def _read_reply(line: bytes) -> Reply | None:
        try:
            return decode_reply(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None

    def _read_output(self) -> None:
        assert self._process.stderr is not None
        descriptor = self._process.stderr.fileno()
        with self._process.stderr:
            while True:
                try:
                    data = os.read(descriptor, 1 << 16)
                except OSError:
                    return
                if not data:
                    return
                self._printed += len(data)
                self._tail += data
                del self._tail[:-OUTPUT_KEPT]

    # ---- stopping --------------------------------------------------------------------------------------

    def _stop(self) -> None:
        """Nothing of it runs until `_resume`, threads and children included."""
        # Before it is ready its group is not there yet, and it has run nothing of the user's.
        if self._is_over or self._is_stopped or not self.is_ready:
            return
        self._is_stopped = True
        if sys.platform == "win32":
            self._each(psutil.Process.suspend)
        else:
            self._signal(signal.SIGSTOP)
            self._each(psutil.Process.suspend, self._strays)

    def _resume(self) -> None:
        if not self._is_stopped:
            return
        self._is_stopped = False
        if sys.platform == "win32":
            self._each(psutil.Process.resume)
        else:
            self._each(psutil.Process.resume, self._strays)
            self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        if sys.platform == "win32" or not self.is_ready:
            return
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, number)

    def _each(
        self, act: Callable[[psutil.Process], None], processes: Sequence[psutil.Process] | None = None
    ) -> None:
        if processes is None:
            with contextlib.suppress(psutil.Error):
                act(psutil.Process(self._process.pid))
            processes = _descendants(self._process.pid)
        for process in processes:
            with contextlib.suppress(psutil.Error):
                act(process)

    def _is_in_group(self, pid: int) -> bool:
        if sys.platform == "win32":
            return True
        try:
            return os.getpgid(pid) == self._process.pid
        except OSError:
            return True


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        return list(psutil.Process(pid).children(recursive=True))
    except psutil.Error:
        return []


def _nothing() -> None:
    """Wakes the main thread, which then looks for itself."""
