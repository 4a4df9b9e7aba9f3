"""The work of one build: inspect the compiler, compile the sources side by side, link them. Plain processes
only.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import _flags
from ._events import BuildError, Emit, first_error, log
from ._process import Running, end_children
from ._toolchain import Compiler, install_hint

POLL_S = 0.02
PROGRESS_S = 0.5
IDENTIFY_LIMIT_S = 20.0
FULL_BYTES = 1 << 20

_KILLED = re.compile(
    rb"Killed|terminated program|virtual memory exhausted|out of memory|cannot allocate", re.I
)
_DISK_FULL = re.compile(rb"No space left on device|Disk quota exceeded|disk full", re.I)


@dataclass
class Job:
    """What every step of a build shares."""

    folder: Path
    compiler: Compiler
    environ: dict[str, str]
    emit: Emit
    cancelled: threading.Event
    deadline: float
    log_path: Path
    started: float = field(default_factory=time.monotonic)

    def at(self) -> float:
        return time.monotonic() - self.started

    def say(self, text: str, level: str = "info") -> None:
        with open(self.log_path, "ab") as file:
            file.write(f"[{self.at():.2f} s] {text}\n".encode("utf-8", "replace"))
        self.emit(log(self.at(), text, level))

    def keep(self, output: bytes, level: str = "info") -> None:
        """A compiler's own words: raw in the file, decoded for the reader."""
        if output:
            with open(self.log_path, "ab") as file:
                file.write(output)
            for line in output.decode("utf-8", "replace").splitlines():
                self.emit(log(self.at(), line, level))

    def check(self, running: Sequence[Running]) -> None:
        """Ends the compilers and raises if the build was cancelled or has run out of time."""
        if self.cancelled.is_set():
            end_children(running, self.folder)
            raise BuildError("cancelled", "The build was cancelled.")
        if time.monotonic() > self.deadline:
            end_children(running, self.folder)
            limit = self.deadline - self.started
            raise BuildError(
                "timeout",
                f"The build took longer than its limit of {limit:.0f} s and was ended.",
                remedies=(
                    "Try again when the machine is less busy.",
                    "Raise ATTNSCOPE_BUILD_TIMEOUT (seconds).",
                ),
            )

    def run(self, command: Sequence[str], output: Path, limit_s: float | None = None) -> tuple[int, bytes]:
        """One process to its end: status and output. Raises OSError if it does not start."""
        running = Running(command, self.folder, output, self.environ)
        while running.poll() is None:
            self.check([running])
            if limit_s is not None and running.seconds > limit_s:
                end_children([running], self.folder)
                raise TimeoutError(f"no answer within {limit_s:.0f} s")
            time.sleep(POLL_S)
        return running.process.returncode, running.output()


def identify(job: Job) -> str:
    """What `--version` prints. Raises BuildError if this is no compiler that works."""
    command = [*job.compiler.command, *([] if job.compiler.is_msvc else ["--version"])]
    name = job.compiler.command[0]
    try:
        status, output = job.run(command, job.folder / "version.txt", IDENTIFY_LIMIT_S)
    except (OSError, TimeoutError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise BuildError(
            "no_compiler", f"The C++ compiler {name} does not start: {reason}.", remedies=_other(name)
        ) from None
    job.keep(output)
    if status != 0:
        raise BuildError(
            "no_compiler",
            f"The C++ compiler {name} ended with status {status} when asked for its version.",
            first_error=first_error(output),
            remedies=_other(name),
        )
    return output.decode("utf-8", "replace").strip()


def probe(job: Job, flags: Sequence[str], standard: str | None, version: str) -> None:
    """Compiles an empty file with the real flags: finds a compiler without its parts, or one too old for
    torch.
    """
    source = job.folder / "probe.cpp"
    source.write_text(
        "#include <vector>\nint main() { return static_cast<int>(std::vector<int>().size()); }\n"
    )
    name = job.compiler.command[0]
    status, output = job.run(
        [*job.compiler.command, *flags, *_compile_only(job.compiler, source.name, "probe.o")],
        job.folder / "probe.txt",
        IDENTIFY_LIMIT_S * 3,
    )
    if status == 0:
        return
    job.keep(output, "error")
    text = output.decode("utf-8", "replace")
    if standard and re.search(
        rf"(unrecognized|unknown|invalid).*{re.escape(standard.lstrip('-/').split('=')[-1])}", text
    ):
        wanted = standard_name(standard)
        raise BuildError(
            "old_compiler",
            f"{version} does not know {wanted}, which this torch demands; a newer compiler is needed.",
            first_error=first_error(output),
            remedies=(
                f"Install a compiler that knows {wanted} (g++ 11, clang++ 14 or newer) and name it in CXX.",
                "Or use a torch release that the installed compiler can build for.",
            ),
        )
    raise BuildError(
        "no_compiler",
        f"The C++ compiler {name} cannot compile an empty program (status {status}).",
        first_error=first_error(output),
        remedies=_other(name),
    )


def standard_name(standard: str | None) -> str:
    """`C++20` from torch's own flag for it."""
    found = re.search(r"\+\+(\w+)", standard or "")
    return f"C++{found.group(1)}" if found else "the compiler's own C++ standard"


def compile_all(
    job: Job, sources: Sequence[str], flags: Sequence[str], count: int, expected_s: float | None
) -> list[dict[str, Any]]:
    """Compiles every source, `count` at a time; what each took. The first failure ends the others."""
    slots: list[tuple[Running, int, str, float] | None] = [None] * count
    try:
        return _compile_in(slots, job, sources, flags, expected_s)
    except OSError:
        # A full disk, found out while writing the log: compilers would go on without their folder.
        end_children([item[0] for item in slots if item is not None], job.folder)
        raise


def _compile_in(
    slots: list[tuple[Running, int, str, float] | None],
    job: Job,
    sources: Sequence[str],
    flags: Sequence[str],
    expected_s: float | None,
) -> list[dict[str, Any]]:
    """One compiler per slot until none is waiting."""
    waiting = list(enumerate(sources))
    count = len(slots)
    records: list[dict[str, Any]] = []
    begun = time.monotonic()
    last_progress = float("-inf")

    def event(
        source: str, state: str, index: int, slot: int, started_s: float, seconds: float | None
    ) -> None:
        job.emit(
            {
                "event": "source",
                "source": source,
                "state": state,
                "index": index + 1,
                "total": len(sources),
                "job": slot + 1,
                "started_s": started_s,
                "seconds": seconds,
            }
        )

    while waiting or any(slots):
        for slot in range(count):
            if slots[slot] is None and waiting:
                index, source = waiting.pop(0)
                command = [
                    *job.compiler.command,
                    *flags,
                    *_compile_only(job.compiler, source, _object(source)),
                ]
                job.say(f"{index + 1}/{len(sources)} {shlex.join(command)}")
                started_s = time.monotonic() - begun
                slots[slot] = (
                    Running(command, job.folder, job.folder / f"{source}.txt", job.environ),
                    index,
                    source,
                    started_s,
                )
                event(source, "started", index, slot, started_s, None)
        now = time.monotonic()
        if now - last_progress >= PROGRESS_S:
            last_progress = now
            job.emit(
                {
                    "event": "progress",
                    "done": len(records),
                    "total": len(sources),
                    "elapsed_s": now - begun,
                    "expected_s": expected_s,
                }
            )
        for slot, item in enumerate(slots):
            if item is None:
                continue
            running, index, source, started_s = item
            status = running.poll()
            job.keep(running.new_output())
            if status is None:
                continue
            slots[slot] = None
            if status != 0:
                event(source, "failed", index, slot, started_s, running.seconds)
                end_children([other[0] for other in slots if other is not None], job.folder)
                output = running.output()
                left = len(waiting)
                job.say(f"stop: {source} failed with status {status}, {left} files not tried", "error")
                raise BuildError(
                    "compile_error",
                    f"{source} did not compile: the compiler {how_it_ended(status)}.",
                    first_error=first_error(output),
                    source=source,
                    remedies=remedies_for(status, output, job.folder)
                    or (f"Correct {source} and build again.", "Or name another compiler in CXX."),
                )
            event(source, "done", index, slot, started_s, running.seconds)
            records.append(
                {"source": source, "job": slot + 1, "started_s": started_s, "seconds": running.seconds}
            )
        job.check([item[0] for item in slots if item is not None])
        time.sleep(POLL_S)
    return records


def link(job: Job, sources: Sequence[str], library: str, library_dir: str) -> None:
    """Links the objects into the library, in the build's folder."""
    objects = [_object(source) for source in sources]
    if job.compiler.is_msvc:
        libraries = [f"{name}.lib" for name in _flags.LIBRARIES]
        command = [*job.compiler.command, *_flags.link_flags("win32"), *objects, "/Fe" + library, "/link"]
        command += [f"/LIBPATH:{library_dir}", *libraries]
    else:
        libraries = [f"-l{name}" for name in _flags.LIBRARIES]
        command = [*job.compiler.command, *_flags.link_flags(), *objects, "-o", library, f"-L{library_dir}"]
        command += [f"-Wl,-rpath,{library_dir}", *libraries]
    job.say(shlex.join(command))
    status, output = job.run(command, job.folder / "link.txt")
    job.keep(output, "error" if status else "info")
    if status != 0 or not (job.folder / library).is_file():
        raise BuildError(
            "link_error",
            f"The objects did not link into {library}: the compiler {how_it_ended(status)}.",
            first_error=first_error(output),
            remedies=remedies_for(status, output, job.folder)
            or (f"Check that torch's libraries lie in {library_dir}.", "Read the build log."),
        )


def how_it_ended(status: int) -> str:
    """A compiler's end as a clause; `status` as subprocess has it, negative for a signal."""
    if status >= 0:
        return f"ended with status {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"


def remedies_for(status: int, output: bytes, folder: Path) -> tuple[str, ...]:
    """What helps where the machine is at fault and not the sources: no memory, no disk. Else nothing."""
    if status < 0 or _KILLED.search(output):
        return (
            "Build again with one compiler at a time: MAX_JOBS=1. A system short of memory ends compilers.",
            "Close what needs much memory first.",
        )
    # On a full disk a compiler may find no room for its complaint either.
    if _DISK_FULL.search(output) or shutil.disk_usage(folder).free < FULL_BYTES:
        return ("Free some disk space and build again.", "Or name a folder elsewhere in ATTNSCOPE_CACHE_DIR.")
    return ()


def all_flags(
    compile_flags: Sequence[str], include_dirs: Sequence[str], standard: str | None, msvc: bool
) -> list[str]:
    """The flags of one compilation: ours, torch's headers as system headers, torch's standard."""
    include = "/external:I" if msvc else "-isystem"
    includes = [word for folder in include_dirs for word in (include, folder)]
    return [*(["/nologo"] if msvc else []), *compile_flags, *includes, *([standard] if standard else [])]


def _compile_only(compiler: Compiler, source: str, target: str) -> list[str]:
    return ["/c", source, "/Fo" + target] if compiler.is_msvc else ["-c", source, "-o", target]


def _object(source: str) -> str:
    return os.path.splitext(source)[0] + ".o"


def _other(name: str) -> tuple[str, ...]:
    hint = install_hint()
    return (f"Name another compiler in CXX instead of {name}.", hint[0].upper() + hint[1:] + ".")
