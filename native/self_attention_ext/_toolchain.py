"""The C++ compiler: which one, which version, how many at once."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ._events import BuildError

BYTES_PER_JOB = 1_500_000_000
"""Memory that one compilation of torch's headers is allowed for: more at once, and the machine swaps or
kills.
"""

INSTALL_HINTS = {
    "linux": "install one: sudo apt install g++ (Debian, Ubuntu) or sudo dnf install gcc-c++ (Fedora)",
    "darwin": "install one: xcode-select --install",
    "win32": "install the C++ workload of Visual Studio Build Tools and start from its developer prompt",
}


@dataclass(frozen=True)
class Compiler:
    """A compiler as found. `command` starts it, extra words of CXX included; `path` is the file behind it."""

    command: tuple[str, ...]
    path: str

    @property
    def is_msvc(self) -> bool:
        return Path(self.path).stem.lower() == "cl"


def install_hint(platform: str = sys.platform) -> str:
    return INSTALL_HINTS.get(platform, INSTALL_HINTS["linux"])


def find_compiler(environ: Mapping[str, str], platform: str = sys.platform) -> Compiler:
    """The compiler that CXX names, otherwise the system's own. Starts no process.

    Raises BuildError of kind no_compiler with what was looked for and how to get one.
    """
    search = environ.get("PATH", os.defpath)
    asked = environ.get("CXX", "").strip()
    if asked:
        try:
            words = [asked] if os.path.isfile(asked) else shlex.split(asked, posix=platform != "win32")
        except ValueError:  # a quote that nobody closes
            words = []
        found = shutil.which(words[0], path=search) if words else None
        if found is None:
            raise BuildError(
                "no_compiler",
                f"No C++ compiler: the environment variable CXX names {asked}, which is not a program here.",
                remedies=(
                    "Correct CXX, or unset it to use the system's compiler.",
                    _sentence(install_hint(platform)),
                ),
            )
        return Compiler((found, *words[1:]), os.path.realpath(found))
    names = ("cl", "clang-cl") if platform == "win32" else ("c++", "g++", "clang++")
    for name in names:
        found = shutil.which(name, path=search)
        if found is not None:
            return Compiler((found,), os.path.realpath(found))
    raise BuildError(
        "no_compiler",
        f"No C++ compiler: none of {', '.join(names)} is on PATH; {install_hint(platform)}.",
        remedies=(_sentence(install_hint(platform)), "Or name one in the environment variable CXX."),
    )


def also_found(chosen: Compiler, environ: Mapping[str, str]) -> list[str]:
    """Other compilers on PATH that CXX could name."""
    search = environ.get("PATH", os.defpath)
    others = []
    for name in ("g++", "clang++"):
        found = shutil.which(name, path=search)
        if found is not None and os.path.realpath(found) != chosen.path:
            others.append(found)
    return others


def fingerprint(compiler: Compiler) -> str | None:
    """A digest of the compiler's own file and its extra words, so that its version is asked for once, not
    every start.
    """
    digest = hashlib.sha256("\0".join(compiler.command[1:]).encode())
    try:
        with open(compiler.path, "rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    except OSError:
        return None
    return digest.hexdigest()


def short_version(version_text: str, path: str) -> str:
    """`g++ 12.2.0` from what `--version` prints."""
    number = re.search(r"\d+\.\d+(?:\.\d+)*", re.sub(r"\([^)]*\)", "", version_text))
    if "clang" in version_text:
        name = "clang++"
    elif "Free Software Foundation" in version_text:
        name = "g++"
    else:
        name = Path(path).name
    return f"{name} {number.group()}" if number else name


def jobs(sources: int, environ: Mapping[str, str]) -> tuple[int, str]:
    """How many compilers run at once, and why: cores, free memory, MAX_JOBS."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    free = free_memory()
    count = cores
    reason = f"{cores} cores"
    if free is not None:
        count = min(count, max(1, free // BYTES_PER_JOB))
        reason += f", {free / 2**30:.1f} GiB free"
    asked = environ.get("MAX_JOBS", "").strip()
    if asked.isdecimal() and int(asked) > 0:
        count = min(count, int(asked))
        reason += f", MAX_JOBS={asked}"
    return max(1, min(count, sources)), reason


def free_memory() -> int | None:
    """Bytes that a compiler may use now; None where the system does not say. A container's limit counts."""
    if sys.platform == "win32":
        return _free_memory_windows()
    free = None
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    free = int(line.split()[1]) * 1024
    except (OSError, ValueError):
        try:
            # Half of all memory: macOS names no figure for what could be freed without starting a process.
            free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
        except (OSError, ValueError):
            return None
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
        if limit.isdecimal() and free is not None:
            used = int(Path("/sys/fs/cgroup/memory.current").read_text(encoding="ascii"))
            stat = Path("/sys/fs/cgroup/memory.stat").read_text(encoding="ascii")
            cached = re.search(r"^inactive_file (\d+)$", stat, re.MULTILINE)
            free = min(free, max(0, int(limit) - used + (int(cached.group(1)) if cached else 0)))
    except (OSError, ValueError):
        pass
    return free


def _free_memory_windows() -> int | None:
    import ctypes

    class Status(ctypes.Structure):
        _fields_ = [
            ("length", ctypes.c_ulong),
            ("load", ctypes.c_ulong),
            *[(name, ctypes.c_ulonglong) for name in ("total", "free", "tp", "fp", "tv", "fv", "ev")],
        ]

    status = Status(length=ctypes.sizeof(Status))
    kernel32 = getattr(ctypes, "windll").kernel32  # noqa: B009
    return status.free if kernel32.GlobalMemoryStatusEx(ctypes.byref(status)) else None


def build_environment(environ: Mapping[str, str], folder: Path) -> dict[str, str]:
    """The compilers' environment: messages in English, temporary files where they are cleared, no stray
    inputs.
    """
    kept = {name: value for name, value in environ.items() if name not in ("CUDNN_HOME", "LANGUAGE")}
    kept.update(LC_ALL="C", TMPDIR=str(folder), TMP=str(folder), TEMP=str(folder))
    return kept


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."
