"""A worker for the command line: a child process, its messages in a queue."""

from __future__ import annotations

import contextlib
import queue
import subprocess
import sys
import threading
from collections import deque
from types import TracebackType

from app.commands.exits import INPUT, CommandError
from app.core import messages as m
from app.core.launch import command
from app.core.trust import Trust

QUIT_S = 3.0


class WorkerProcess:
    """Starts a worker and reads it in a thread. `next` gives messages, then None once it has ended."""

    def __init__(self) -> None:
        self.stderr_lines: deque[str] = deque(maxlen=500)
        self._messages: queue.Queue[m.Message | None] = queue.Queue()
        self._process = subprocess.Popen(
            command("worker"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Ctrl+C is for the command line, which ends the worker in its own time.
            start_new_session=sys.platform != "win32",
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )
        self._readers = [
            threading.Thread(target=self._read_messages, daemon=True),
            threading.Thread(target=self._read_stderr, daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def __enter__(self) -> WorkerProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_status(self) -> int:
        """As subprocess has it: negative for a signal. Waits for the end."""
        return self._process.wait()

    def send(self, message: m.Command) -> None:
        """Send a command; to a worker that has died this does nothing, `next` tells of that.

        Whatever a plan came from, a file included: one with code that nobody confirmed is not sent.
        """
        if isinstance(message, m.Start):
            unknown = ", ".join(file.path for file in Trust().missing(message.plan.own))
            if unknown:
                raise CommandError(INPUT, f"{unknown}: is code that was not confirmed; run it with --trust")
        assert self._process.stdin is not None
        line = m.encode(message)
        try:
            self._process.stdin.write(line)
            self._process.stdin.flush()
        except (BrokenPipeError, OSError, ValueError):
            pass

    def next(self, timeout: float | None = None) -> m.Message | None:
        """The next message; None when the worker has ended. Raises `queue.Empty` after `timeout` s."""
        return self._messages.get(timeout=timeout)

    def stop(self) -> None:
        """End the worker within a bounded time."""
        self.send(m.Shutdown())
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(QUIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for reader in self._readers:
            reader.join(1.0)
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()

    def _read_messages(self) -> None:
        assert self._process.stdout is not None
        splitter = m.LineSplitter()
        try:
            while data := self._process.stdout.read1(1 << 16):  # type: ignore[attr-defined]
                for line in splitter.feed(data):
                    self._messages.put(m.decode_message(line))
        except m.ProtocolError as error:
            self.stderr_lines.append(str(error))
            self._process.kill()
        except (OSError, ValueError):
            pass
        self._messages.put(None)

    def _read_stderr(self) -> None:
        assert self._process.stderr is not None
        try:
            for line in self._process.stderr:
                self.stderr_lines.append(line.decode("utf-8", "replace").rstrip())
        except (OSError, ValueError):
            pass
