"""A worker in a process of its own, and what a test wants to hear from it."""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from app.core import launch
from app.core import messages as m
from app.core.launch import ROOT
from app.core.plan import Measure, Plan
from app.core.workload import Workload
from tests.engine.support import TINY

T = TypeVar("T")

PATIENCE_S = 60.0
SHORT = Measure(max_seconds=0.3, min_rounds=5, counts=False, accuracy=False)


class Client:
    """Starts a worker; `script` is Python that starts one with contenders of its own."""

    def __init__(self, script: str | None = None, cwd: Path | None = None, **environment: str) -> None:
        command = launch.command("worker")
        if script is not None:
            head = f"import sys; sys.path[0] = {str(ROOT)!r}\n"
            command = [sys.executable, "-c", head + script]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env={**os.environ, **environment},
        )
        self.seen: list[m.Message] = []
        self.stderr = b""
        self._queue: queue.Queue[bytes | None] = queue.Queue()
        self._threads = [
            threading.Thread(target=self._read, daemon=True),
            threading.Thread(target=self._read_stderr, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: Any) -> None:
        if self.process.poll() is None:
            with contextlib.suppress(OSError):
                self.process.stdin.close()  # type: ignore[union-attr]
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        for thread in self._threads:
            thread.join(5)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            with contextlib.suppress(OSError):
                stream.close()  # type: ignore[union-attr]

    def send(self, *commands: m.Command) -> None:
        self.write(b"".join(m.encode(command) for command in commands))

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def start(self, *names: str, generation: int = 1, workload: Workload = TINY, **changes: Any) -> None:
        measure = changes.pop("measure", SHORT)
        baseline = changes.pop("baseline", names[0])
        plan = Plan(workloads=(workload,), implementations=names, baseline=baseline, measure=measure)
        self.send(m.Start(generation, plan, **changes))

    def hear(self, kind: type[T], when: Callable[[T], bool] = lambda message: True) -> T:
        """Wait for the next message of a kind for which `when` holds."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            line = self._queue.get(timeout=max(0.01, deadline - time.monotonic()))
            if line is None:
                self.process.wait(10)
                raise AssertionError(
                    f"the worker ended ({self.process.returncode}) before {kind.__name__}:\n"
                    f"{self.stderr.decode(errors='replace')[-2000:]}\n{self.seen[-5:]}"
                )
            message = m.decode_message(line)
            self.seen.append(message)
            if isinstance(message, kind) and when(message):
                return message

    def end(self) -> int:
        """Close the client's end and wait; the exit code. What was still said is in `seen`."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        code = self.process.wait(15)
        for thread in self._threads:
            thread.join(5)
        while not self._queue.empty():
            line = self._queue.get()
            if line is not None:
                self.seen.append(m.decode_message(line))
        return code

    def all(self, kind: type[T]) -> list[T]:
        return [message for message in self.seen if isinstance(message, kind)]

    def _read(self) -> None:
        assert self.process.stdout is not None
        with contextlib.suppress(OSError, ValueError):
            for line in self.process.stdout:
                self._queue.put(line)
        self._queue.put(None)

    def _read_stderr(self) -> None:
        assert self.process.stderr is not None
        with contextlib.suppress(OSError, ValueError):
            self.stderr = self.process.stderr.read()
