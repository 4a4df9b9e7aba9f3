"""The worker's two ends: messages out at once, and one queue of everything that comes in.

Commands, children, background threads and signals all put events into the `Inbox`; the main thread takes
them out between two units of work, or waits there when it has nothing to do.
"""

from __future__ import annotations

import os
import queue
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from app.core.messages import Command, LineSplitter, Message, ProtocolError, Shutdown, decode_command, encode

READ_BYTES = 1 << 16


@dataclass(frozen=True)
class CommandArrived:
    command: Command


@dataclass(frozen=True)
class BadLine:
    """What came was no command; `reason` is one sentence."""

    reason: str


@dataclass(frozen=True)
class ClientGone:
    """Nobody reads or writes any more, or the process was told to end."""


@dataclass(frozen=True)
class Deliver:
    """Something for one of the worker's services, to be done in the main thread."""

    action: Callable[[], None]


Event = CommandArrived | BadLine | ClientGone | Deliver


class Inbox:
    """A queue that any thread, and a signal handler, may put events into."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Event] = queue.SimpleQueue()

    def put(self, event: Event) -> None:
        self._queue.put(event)

    def deliver(self, action: Callable[[], None]) -> None:
        self._queue.put(Deliver(action))

    def take(self, timeout_s: float) -> Event | None:
        """The next event; None if none came within `timeout_s` (0: none is there)."""
        try:
            if timeout_s <= 0:
                return self._queue.get_nowait()
            return self._queue.get(timeout=timeout_s)
        except queue.Empty:
            return None


class Outbox:
    """Writes messages to the protocol's descriptor, each at once and whole. Any thread may send."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()
        self.is_broken = False

    def send(self, message: Message) -> None:
        """A client that is gone is no error here: the reader notices its end as well."""
        line = memoryview(encode(message))
        with self._lock:
            if self.is_broken:
                return
            try:
                while line:
                    line = line[os.write(self._descriptor, line) :]
            except OSError:
                self.is_broken = True


class CommandReader(threading.Thread):
    """Reads commands until the client's end closes. `leaving` is told as soon as the end is in sight,
    because the main thread may be inside a call that takes minutes."""

    def __init__(self, descriptor: int, inbox: Inbox, leaving: Callable[[], None]) -> None:
        super().__init__(name="commands", daemon=True)
        self._descriptor = descriptor
        self._inbox = inbox
        self._leaving = leaving

    def run(self) -> None:
        splitter = LineSplitter()
        while True:
            try:
                data = os.read(self._descriptor, READ_BYTES)
            except OSError:
                data = b""
            if not data:
                break
            try:
                lines = splitter.feed(data)
            except ProtocolError as error:
                splitter = LineSplitter()
                self._inbox.put(BadLine(str(error)))
                continue
            for line in lines:
                self._take(line)
        self._inbox.put(ClientGone())
        self._leaving()

    def _take(self, line: bytes) -> None:
        try:
            command = decode_command(line)
        except ProtocolError as error:
            self._inbox.put(BadLine(str(error)))
            return
        self._inbox.put(CommandArrived(command))
        if isinstance(command, Shutdown):
            self._leaving()


def heed_signals(inbox: Inbox, leaving: Callable[[], None]) -> None:
    """SIGTERM ends the worker in an orderly way; SIGINT belongs to the client, which shares the terminal.

    Python runs a handler only between two bytecodes of the main thread; the wake-up descriptor is written
    even while that is inside one long call. Call from the main thread.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def ended(number: int, frame: Any) -> None:
        inbox.put(ClientGone())

    signal.signal(signal.SIGTERM, ended)
    if not hasattr(os, "set_blocking"):
        return
    reading, writing = os.pipe()
    try:
        os.set_blocking(writing, False)
    except OSError:
        # Windows before Python 3.12 has no such pipes, and no SIGTERM from outside either.
        os.close(reading)
        os.close(writing)
        return
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)

    def wait() -> None:
        while True:
            numbers = os.read(reading, 64)
            if not numbers:
                return
            if signal.SIGTERM in numbers:
                leaving()

    threading.Thread(target=wait, name="signals", daemon=True).start()
