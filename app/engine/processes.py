"""Processes and their descriptors: the protocol's stdio, children that never outlive us."""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import signal
import sys
from pathlib import Path

from app.core.launch import ROOT


def module_command(module: str, *arguments: str) -> list[str]:
    """The command line that runs `main()` of one of our modules in a process of its own.

    Never `-m`: that would look in the current folder first, and run whatever `app` lies there.
    """
    start = f"import sys; sys.path[0] = {str(ROOT)!r}; from {module} import main; sys.exit(main())"
    return [sys.executable, "-c", start, *arguments]


def claim_stdio(stdin_fd: int = 0, stdout_fd: int = 1) -> tuple[int, int]:
    """Keep stdin and stdout for a protocol: return private copies of both descriptors.

    Afterwards `stdout_fd` leads to stderr and `stdin_fd` to the null device, so that nothing a library or
    a child prints or reads can reach the protocol.
    """
    incoming, outgoing = os.dup(stdin_fd), os.dup(stdout_fd)
    if sys.platform == "win32":
        import msvcrt

        for descriptor in (incoming, outgoing):
            msvcrt.setmode(descriptor, os.O_BINARY)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, stdin_fd)
    os.close(null)
    os.dup2(2, stdout_fd)
    return incoming, outgoing


def die_with_parent() -> None:
    """On Linux, have the kernel kill this process when the thread that started it ends.

    A belt: everywhere a child also ends when its stdin does. Call it first thing in a child.
    """
    if sys.platform != "linux":
        return
    parent = os.getppid()
    pr_set_pdeathsig = 1
    ctypes.CDLL(None, use_errno=True).prctl(pr_set_pdeathsig, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def give_way(niceness: int = 5) -> None:
    """Let the window and the sampler go first, where the system knows of niceness."""
    if hasattr(os, "nice"):
        with contextlib.suppress(OSError):
            os.nice(niceness)


KEEP = {-1: 1 << 30, -2: 64 << 20, -3: 32 << 20}
"""glibc's M_TRIM_THRESHOLD, M_TOP_PAD and M_MMAP_THRESHOLD (malloc.h), bytes; 32 MiB is the last one's limit."""

ALLOCATOR_VARIABLES = (
    "MALLOC_TRIM_THRESHOLD_",
    "MALLOC_TOP_PAD_",
    "MALLOC_MMAP_THRESHOLD_",
    "GLIBC_TUNABLES",
)


def keep_freed_memory() -> bool:
    """Have glibc keep what is freed instead of handing it back to the system; whether that was done.

    Left to itself it hands the top of the heap back or not, by how the last large block happened to lie:
    a layer then takes hundreds of page faults a call or none, and twice the time or half, for the whole
    life of the process. A user's own setting is left alone. Call before anything large is allocated.
    """
    if sys.platform != "linux" or any(name in os.environ for name in ALLOCATOR_VARIABLES):
        return False
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "gnu_get_libc_version"):
        return False
    return all(libc.mallopt(parameter, value) == 1 for parameter, value in KEEP.items())


def child_environment() -> dict[str, str]:
    """This process's environment, with the extension's package importable wherever it is here."""
    try:
        found = importlib.util.find_spec("self_attention_ext")
    except (ImportError, ValueError):
        found = None
    if found is None or found.origin is None:
        return dict(os.environ)
    folders = [str(Path(found.origin).parent.parent)]
    inherited = os.environ.get("PYTHONPATH", "")
    folders += [folder for folder in inherited.split(os.pathsep) if folder and folder not in folders]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}


def end_descendants(patience_s: float = 1.0) -> None:
    """Kill every process below this one, however deep, and wait at most `patience_s` for their end."""
    import psutil

    try:
        below = psutil.Process().children(recursive=True)
    except psutil.Error:
        return
    for process in below:
        try:
            process.kill()
        except psutil.Error:
            continue
    psutil.wait_procs(below, timeout=patience_s)
