"""The build process: one request line in, events out. `_driver` starts it.

It imports neither torch nor anything outside the standard library, so that it is up at once. Its standard
input is a lifeline: when it closes, because the parent closed it or died, or on a line `cancel`, the
compilers are ended, the folder removed and the process gone.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from . import _cache, _sources
from ._compile import Job, all_flags, compile_all, identify, link, probe, standard_name
from ._events import BuildError, Emit, Event, log, step
from ._lock import Lock
from ._plan import Plan, copy_sources, known_version, make_plan, remember_version, with_compiler
from ._process import give_way, kill_inside, lead_group, remove_tree
from ._toolchain import Compiler, also_found, build_environment, find_compiler, jobs, short_version

FAILED_LOG = "failed.log"
LAST_BUILD = "last_build.json"
DEFAULT_LIMIT_S = 900.0
WAITING_S = 1.0


class Build:
    """One request from start to end. `run` emits everything up to `finished` or raises BuildError."""

    def __init__(self, request: dict[str, Any], emit: Emit, cancelled: threading.Event) -> None:
        self.request = request
        self.emit = emit
        self.cancelled = cancelled
        self.environ = dict(os.environ)
        self.started = time.monotonic()
        self.started_at = time.time()
        self.deadline = self.started + float(request.get("time_limit_s") or DEFAULT_LIMIT_S)
        self.force = bool(request.get("force"))

    def run(self) -> None:
        root, note = _cache.open_root(self.request.get("cache_dir"), self.environ)
        if note:
            self.say(note, "warning")
        while not self._build(make_plan(root, self.request["facts"])):
            self.say("the sources were edited meanwhile: starting over", "warning")

    def say(self, text: str, level: str = "info") -> None:
        self.emit(log(time.monotonic() - self.started, text, level))

    def _build(self, plan: Plan) -> bool:
        """False if the sources changed between reading and copying them."""
        self.emit(step("check", "started"))
        compiler = find_compiler(self.environ)
        version = known_version(plan.root, compiler) or self._identify(plan, compiler)
        parts = with_compiler(plan, compiler, version)
        key = _cache.key_of(parts)
        entry_folder = plan.root / key
        before = _cache.entries(plan.root)
        changed = _cache.changed_parts(parts, before[0].parts) if before else ()
        self.emit(
            {
                "event": "key",
                "key": key,
                "parts": {name: [part.digest, part.text] for name, part in parts.items()},
                "changed": list(changed),
                "folder": str(entry_folder),
            }
        )
        if changed:
            self.say(f"changed since the last build: {', '.join(changed)}")
        if not self.force and self._take(entry_folder):
            return True
        with self._locked(plan.root, key):
            if self._take(entry_folder, since=self.started_at if self.force else 0.0):
                return True
            self._clear_abandoned(plan.root, key)
            folder = plan.root / f"{key}.building-{os.getpid()}-{secrets.token_hex(4)}"
            folder.mkdir(mode=0o700)
            try:
                return self._compile(plan, compiler, version, parts, key, folder)
            except BuildError as error:
                if (folder / _cache.LOG).is_file():
                    with contextlib.suppress(OSError):
                        os.replace(folder / _cache.LOG, plan.root / FAILED_LOG)
                        error.log_path = str(plan.root / FAILED_LOG)
                raise
            finally:
                remove_tree(folder)

    def _compile(
        self, plan: Plan, compiler: Compiler, version: str, parts: _cache.Parts, key: str, folder: Path
    ) -> bool:
        if not copy_sources(plan, folder):
            return False
        (folder / "build_key.h").write_text(f'#define ATTNSCOPE_BUILD_KEY "{key}"\n', encoding="ascii")
        job = self._job(compiler, folder)
        standard = plan.facts["standard"]
        name = short_version(version, compiler.path)
        count, why = jobs(len(plan.sources), self.environ)
        flags = all_flags(plan.compile_flags, plan.facts["include_dirs"], standard, compiler.is_msvc)
        probe(job, flags, standard, name)
        checked = time.monotonic()
        self.emit(
            step("check", "done", checked - self.started, f"{name}, {standard_name(standard)}, {count} jobs")
        )
        job.say(
            f"compiler {compiler.path}: {name}, checked, it builds; {standard_name(standard)}, set by torch"
        )
        others = also_found(compiler, self.environ)
        if others:
            job.say(f"also found: {', '.join(others)}")
        job.say(f"{count} jobs ({why})")

        last = _cache.read_json(plan.root / LAST_BUILD)
        took = _seconds_by_source(last.get("sources"))
        # The longest first: a long one started last would leave the other processors idle.
        weights = _sources.weights(folder, plan.sources)
        order = sorted(plan.sources, key=lambda name: took.get(name, weights[name]), reverse=True)
        self.emit(step("compile", "started", detail=f"{len(order)} files"))
        records = compile_all(
            job, order, flags, count, _number(last.get("compile_s")) if last.get("jobs") == count else None
        )
        compiled = time.monotonic()
        work = sum(item["seconds"] for item in records)
        self.emit(step("compile", "done", compiled - checked, f"{work:.1f} s of work on {count} jobs"))

        self.emit(step("link", "started", detail=plan.library))
        link(job, order, plan.library, plan.facts["library_dir"])
        linked = time.monotonic()
        content = (folder / plan.library).read_bytes()
        size = f"{plan.library}, {len(content) / 2**20:.1f} MiB"
        self.emit(step("link", "done", linked - compiled, size))

        timings = {
            "check_s": checked - self.started,
            "compile_s": compiled - checked,
            "link_s": linked - compiled,
            "work_s": work,
            "jobs": count,
            "sources": records,
        }
        manifest = {
            "schema": _cache.SCHEMA,
            "key": key,
            "parts": {part: [value.digest, value.text] for part, value in parts.items()},
            "library": {
                "name": plan.library,
                "sha256": hashlib.sha256(content).hexdigest(),
                "bytes": len(content),
            },
            "built_at": time.time(),
            "compiler": {"path": compiler.path, "name": name, "version": version},
            "flags": [*plan.compile_flags, *([standard] if standard else [])],
            "timings": timings,
            "self_test": None,
        }
        self._publish(folder, plan.root / key, plan.library, manifest)
        with contextlib.suppress(OSError):
            _cache.write_json(plan.root / LAST_BUILD, timings)
        self._finished(manifest, plan.root / key, cached=False)
        return True

    def _publish(self, folder: Path, entry_folder: Path, library: str, manifest: dict[str, Any]) -> None:
        """Leaves only what an entry holds in the folder, then makes it the entry by one rename."""
        keep = {library, _cache.LOG}
        for path in folder.iterdir():
            if path.name not in keep:
                path.unlink()
        _cache.write_json(folder / _cache.MANIFEST, manifest)
        _cache.set_aside(entry_folder)
        os.rename(folder, entry_folder)

    def _take(self, folder: Path, since: float = 0.0) -> bool:
        """Finishes with the entry in the folder if it is whole. A damaged one is left to be replaced, and
        said.
        """
        entry = _cache.read_entry(folder)
        if entry is None or entry.built_at < since:
            return False
        problem = _cache.damage(entry)
        if problem:
            self.say(f"the cached library is damaged and will be built again: {problem}", "warning")
            return False
        self.emit(step("check", "done", time.monotonic() - self.started, entry.parts["compiler"].text))
        self.emit(step("compile", "cached"))
        self.emit(step("link", "cached", detail=entry.library.name))
        self._finished(entry.manifest, folder, cached=True)
        return True

    def _finished(self, manifest: dict[str, Any], folder: Path, cached: bool) -> None:
        self.emit(
            {
                "event": "finished",
                "library": str(folder / manifest["library"]["name"]),
                "key": manifest["key"],
                "cached": cached,
                "seconds": time.monotonic() - self.started,
                "compiler": manifest["compiler"]["name"],
                "flags": manifest["flags"],
                "jobs": manifest["timings"]["jobs"],
                "full_build": {**manifest["timings"], "built_at": manifest["built_at"]},
            }
        )

    def _identify(self, plan: Plan, compiler: Compiler) -> str:
        with tempfile.TemporaryDirectory(prefix="attnscope-check-") as scratch:
            version = identify(self._job(compiler, Path(scratch)))
        remember_version(plan.root, compiler, version)
        return version

    def _job(self, compiler: Compiler, folder: Path) -> Job:
        return Job(
            folder,
            compiler,
            build_environment(self.environ, folder),
            self.emit,
            self.cancelled,
            self.deadline,
            folder / _cache.LOG,
            self.started,
        )

    @contextlib.contextmanager
    def _locked(self, root: Path, key: str) -> Iterator[None]:
        """Holds the entry's lock; while another build holds it, says for which file and process it waits."""
        lock = Lock(root, key)
        begun = said = time.monotonic()
        while not lock.try_acquire():
            now = time.monotonic()
            if now - said >= WAITING_S or said == begun:
                said = now
                self.emit(
                    {
                        "event": "waiting",
                        "path": str(lock.path),
                        "pid": lock.holder(),
                        "elapsed_s": now - begun,
                    }
                )
            if self.cancelled.is_set():
                raise BuildError("cancelled", "The build was cancelled while it waited for another one.")
            if now > self.deadline:
                raise BuildError(
                    "timeout",
                    f"Another build (process {lock.holder() or 'unknown'}) has held {lock.path} for "
                    f"{now - begun:.0f} s; waiting for it was given up.",
                    remedies=("End that process and build again.",),
                )
            time.sleep(0.05)
        try:
            yield
        finally:
            lock.release()

    def _clear_abandoned(self, root: Path, key: str) -> None:
        """We hold the lock, so any other build folder of this key belongs to a build that was killed."""
        for folder in root.glob(f"{key}.building-*"):
            killed = kill_inside(folder)
            remove_tree(folder)
            ended = f" and {len(killed)} of its processes ended" if killed else ""
            self.say(f"the folder of an interrupted build was removed{ended}", "warning")
        _cache.remove_abandoned(root, key)


def _number(value: object) -> float | None:
    """A record of an earlier build may hold anything: it was written by whatever ran then."""
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _seconds_by_source(records: object) -> dict[str, float]:
    """How long each source took last time; those of which nothing sensible is on record are left out."""
    found = {}
    for item in records if isinstance(records, list) else ():
        seconds = _number(item.get("seconds")) if isinstance(item, dict) else None
        if seconds is not None:
            found[str(item.get("source"))] = seconds
    return found


class _Channel:
    """The real standard output, kept for events; whatever else prints goes to standard error."""

    def __init__(self) -> None:
        self._file: BinaryIO = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)

    def emit(self, event: Event) -> None:
        with contextlib.suppress(OSError, ValueError):  # nobody listens any more: the lifeline ends us
            self._file.write(json.dumps(event).encode() + b"\n")
            self._file.flush()


def _hold_lifeline(cancelled: threading.Event) -> None:
    for line in iter(sys.stdin.buffer.readline, b""):
        if line.strip() == b"cancel":
            break
    cancelled.set()


def main() -> int:
    """Reads the request, builds, and ends with the exit code of its outcome."""
    lead_group()
    give_way()
    channel = _Channel()
    cancelled = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: cancelled.set())
    try:
        request = json.loads(sys.stdin.buffer.readline())
    except ValueError as error:
        channel.emit(BuildError("died", f"The build process was not given a request: {error}.").event())
        return 2
    threading.Thread(target=_hold_lifeline, args=(cancelled,), daemon=True).start()
    try:
        Build(request, channel.emit, cancelled).run()
    except BuildError as error:
        channel.emit(error.event())
        return error.exit_code
    except OSError as error:
        place = error.filename2 or error.filename
        place = f" ({place})" if place else ""
        channel.emit(
            BuildError(
                "cache_unusable",
                f"The build could not use its files{place}: {error.strerror or error}.",
                remedies=("Name another folder in ATTNSCOPE_CACHE_DIR.", "Free some disk space."),
            ).event()
        )
        return 3
    return 0


if __name__ == "__main__":
    # A thread may still sit in a read of standard input, which would hold up an orderly end.
    code = main()
    sys.stderr.flush()
    os._exit(code)
