"""Running compilers so that none outlives its build, and clearing up after builds that were killed."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

TAIL_BYTES = 4_000_000
BUILD_NICENESS = 10
"""How much of one compiler's output is kept: a runaway template error can print gigabytes."""


class Running:
    """A compiler at work in `folder`, its output going to a file there, read as it grows. Never a shell."""

    def __init__(self, command: Sequence[str], folder: Path, output: Path, environ: dict[str, str]) -> None:
        """Raises OSError if the program does not start."""
        self.output_path = output
        self.started = time.monotonic()
        self._read = 0
        with open(output, "wb") as sink:
            self.process = subprocess.Popen(
                command,
                cwd=folder,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
            )

    def poll(self) -> int | None:
        return self.process.poll()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    def new_output(self) -> bytes:
        """What it has printed since the last call, up to the limit kept."""
        with open(self.output_path, "rb") as file:
            file.seek(self._read)
            data = file.read(max(0, TAIL_BYTES - self._read))
        self._read += len(data)
        return data

    def output(self) -> bytes:
        with open(self.output_path, "rb") as file:
            return file.read(TAIL_BYTES)


def lead_group() -> None:
    """Makes this process the head of a group of its own, if it is not yet: what it starts can be ended as
    one.
    """
    if hasattr(os, "setsid"):
        with contextlib.suppress(OSError):  # already the head of its group
            os.setsid()


def give_way() -> None:
    """Lets whatever else wants the processor go first: a build is never more urgent than the window it is for."""
    if hasattr(os, "nice"):
        with contextlib.suppress(OSError):
            os.nice(BUILD_NICENESS)


def end_children(running: Sequence[Running], folder: Path) -> None:
    """Ends the compilers and what they started, asking first. This process, their head, stays."""
    if sys.platform == "win32":
        for item in running:
            if item.poll() is None:
                subprocess.run(
                    ["taskkill", "/F", "/T", "/PID", str(item.process.pid)],
                    capture_output=True,
                    timeout=10,
                    check=False,
                )
        return
    if os.getpgrp() == os.getpid():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.killpg(0, signal.SIGTERM)
    deadline = time.monotonic() + 1.0
    while time.monotonic() < deadline and any(item.poll() is None for item in running):
        time.sleep(0.01)
    for item in running:
        if item.poll() is None:
            item.process.kill()
            item.process.wait(timeout=10)
    kill_inside(folder)


def end_group(pid: int) -> None:
    """Ends a whole group by its head: for the parent of a build process that is gone without clearing up."""
    if sys.platform != "win32":
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)


def kill_inside(folder: Path) -> list[int]:
    """Kills processes whose working folder is inside `folder`: compilers of a build that was itself killed.

    They would otherwise write into the folder seconds later. Linux only; elsewhere it finds none.
    """
    killed: list[int] = []
    inside = os.path.realpath(folder)
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else []:
        if not name.isdecimal() or int(name) == os.getpid():
            continue
        try:
            cwd = os.readlink(f"/proc/{name}/cwd").removesuffix(" (deleted)")
        except OSError:
            continue
        if cwd == inside or cwd.startswith(inside + os.sep):
            with contextlib.suppress(OSError):
                os.kill(int(name), signal.SIGKILL)
                killed.append(int(name))
    return killed


def remove_tree(folder: Path) -> None:
    """Removes the folder, again if a process that was just ended still wrote into it."""
    for _ in range(20):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.05)
