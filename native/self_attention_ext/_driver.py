"""Builds and loads the library for this process, without ever blocking on a compiler.

`Builder` is polled: it starts the build process, passes its events on, and loads and tests what it built.
`load` waits for it. Nothing here compiles when a finished entry is there: then no process is started at
all.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import _cache, _library
from ._events import BuildError, Event, log, step
from ._lock import Busy, Lock
from ._plan import find_entry, make_plan
from ._process import end_group
from ._sources import PACKAGE

CANCEL_GRACE_S = 5.0
POLL_S = 0.02

FINISHED: Event = {
    "event": "finished",
    "library": "",
    "key": "",
    "cached": False,
    "seconds": 0.0,
    "compiler": "",
    "flags": [],
    "jobs": None,
    "full_build": None,
    "needs_new_worker": False,
}
"""The last event of a build that went well, before it is filled in. `full_build` holds the timings of the
build that made the library, `check_s`, `compile_s`, `link_s`, `work_s`, `sources`, `built_at`; None where
they are not known."""


class Builder:
    """One build or load. `start`, then `poll` until `running` is false; the last event is `finished` or
    `failed`.

    `rebuild` compiles even if a finished entry is there. Where another library is already loaded in this
    process, the new one is built but not loaded, and `finished` says `needs_new_worker`.
    """

    def __init__(
        self, *, rebuild: bool = False, cache_dir: str | None = None, time_limit_s: float | None = None
    ) -> None:
        self.rebuild = rebuild
        self.cache_dir = cache_dir
        limit = os.environ.get("ATTNSCOPE_BUILD_TIMEOUT", "")
        self.time_limit_s = time_limit_s or (float(limit) if limit.isdecimal() and int(limit) else None)
        self.running = False
        self._events: list[Event] = []
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._process: subprocess.Popen[bytes] | None = None
        self._started = 0.0
        self._cancelled_at: float | None = None
        self._result: Event | None = None
        self._retried = False

    def start(self) -> None:
        """Loads a finished entry at once, or starts the build process. Failures arrive as events."""
        self._started = time.monotonic()
        self.running = True
        try:
            if not self.rebuild and self._take_finished():
                return
            self._spawn()
        except BuildError as error:
            self._fail(error)

    def poll(self) -> list[Event]:
        """What happened since the last call. Blocks only to load and test a library that was just built."""
        while self.running and self._process is not None:
            try:
                line = self._lines.get_nowait()
            except queue.Empty:
                self._press_cancel()
                break
            try:
                if line is None:
                    self._ended()
                else:
                    self._receive(line)
            except BuildError as error:
                self._fail(error)
        events, self._events = self._events, []
        return events

    def cancel(self) -> None:
        """Asks the build process to end its compilers and itself; `failed` of kind `cancelled` follows."""
        if self._process is None or self._cancelled_at is not None:
            return
        self._cancelled_at = time.monotonic()
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.write(b"cancel\n")
            self._process.stdin.close()

    # ---- a finished entry ----------------------------------------------------------------------------

    def _take_finished(self) -> bool:
        """Loads what was built before, starting no process. False if there is nothing that fits."""
        library, why = _library.ahead_of_time()
        if library is not None and (why := self._cannot_load(library)) == "":
            for name in ("check", "compile", "link"):
                self._events.append(step(name, "cached", detail="built ahead of time"))
            self._events.append(step("load", "done", self._elapsed(), library.name))
            self._finish({"library": str(library), "key": _library.AHEAD_OF_TIME, "cached": True})
            return True
        if why:
            self._say(why, "warning")
        root, note = _cache.open_root(self.cache_dir, os.environ)
        if note:
            self._say(note, "warning")
        plan = make_plan(root, self._facts())
        entry, note = find_entry(plan, os.environ)
        if entry is None:
            return False
        problem = _cache.damage(entry)
        if problem:
            self._say(f"the cached library is damaged and will be built again: {problem}", "warning")
            return False
        if note:
            self._say(note)
        self._events.append(
            {
                "event": "key",
                "key": entry.key,
                "parts": {name: [part.digest, part.text] for name, part in entry.parts.items()},
                "changed": [],
                "folder": str(entry.folder),
            }
        )
        self._events.append(step("check", "done", self._elapsed(), entry.parts["compiler"].text))
        self._events.append(step("compile", "cached"))
        self._events.append(step("link", "cached", detail=entry.library.name))
        finished = {
            "library": str(entry.library),
            "key": entry.key,
            "cached": True,
            "compiler": entry.manifest.get("compiler", {}).get("name", ""),
            "flags": entry.manifest.get("flags", []),
            "jobs": entry.manifest.get("timings", {}).get("jobs"),
            "full_build": {**entry.manifest.get("timings", {}), "built_at": entry.built_at},
        }
        return self._load(finished)

    def _cannot_load(self, library: Path) -> str:
        """Loads the library built ahead of time; the reason where the system refuses it."""
        try:
            _library.load(library, _library.AHEAD_OF_TIME)
        except OSError as error:
            return f"{library.name}, built ahead of time, does not load and is left aside: {error}"
        return ""

    def _facts(self) -> dict[str, Any]:
        from ._torch_facts import facts

        return dict(facts())

    # ---- the build process ---------------------------------------------------------------------------

    def _spawn(self, force: bool = False) -> None:
        # -I and -S: nothing of the user's environment or site-packages is imported, and it is up in a blink.
        start = f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r}); " + (
            "from self_attention_ext._build import main; import os; code = main(); os._exit(code)"
        )
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", start],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=sys.platform != "win32",
            )
        except OSError as error:
            raise BuildError("died", f"The build process does not start: {error}.") from None
        request = {
            "facts": self._facts(),
            "cache_dir": self.cache_dir,
            "force": self.rebuild or force,
            "time_limit_s": self.time_limit_s,
        }
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # if it died at once, its end of output tells
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        threading.Thread(target=self._read, args=(self._process,), daemon=True).start()

    def _read(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        for line in iter(process.stdout.readline, b""):
            self._lines.put(line)
        self._lines.put(None)

    def _receive(self, line: bytes) -> None:
        try:
            event = json.loads(line)
        except ValueError:
            return
        if event.get("event") in ("finished", "failed"):
            self._result = event  # acted upon when the process is gone, with everything it started
        else:
            self._events.append(event)

    def _ended(self) -> None:
        process, self._process = self._process, None
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        status = process.wait()
        with contextlib.suppress(OSError):
            process.stdin.close()
        process.stdout.close()
        result, self._result = self._result, None
        if result is None:
            end_group(process.pid)
            if self._cancelled_at is not None:
                raise BuildError("cancelled", "The build was cancelled.")
            how = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
            raise BuildError("died", f"The build process {how} without a result.", remedies=("Build again.",))
        if result["event"] == "failed":
            raise BuildError.from_event(result)
        if not self._load({name: value for name, value in result.items() if name != "event"}):
            self._spawn(force=True)

    def _press_cancel(self) -> None:
        """A build process that does not react to cancel is ended with everything in its group."""
        if self._cancelled_at is not None and time.monotonic() - self._cancelled_at > CANCEL_GRACE_S:
            assert self._process is not None
            end_group(self._process.pid)
            self._process.kill()

    # ---- loading -------------------------------------------------------------------------------------

    def _load(self, finished: Event) -> bool:
        """Loads and tests the library. False if it was stale and set aside, to be built once more."""
        current = _library.loaded()
        if current is not None and current.key != finished["key"]:
            self._events.append(step("load", "cached", detail="a new process will load it"))
            self._finish(finished, needs_new_worker=True)
            return True
        begun = time.monotonic()
        self._events.append(step("load", "started"))
        path = Path(finished["library"])
        try:
            _library.load(path, finished["key"])
        except (OSError, BuildError) as error:
            if isinstance(error, BuildError) and error.kind == "loaded_other":
                raise
            return self._set_aside(path, error)
        self._events.append(
            step("load", "done", time.monotonic() - begun, f"{path.name}, {operator_count()} operators")
        )
        self._test(path)
        self._finish(finished)
        return True

    def _set_aside(self, path: Path, error: Exception) -> bool:
        self._events.append(step("load", "failed", detail=str(error)))
        if self._retried:
            raise BuildError(
                "load_error",
                f"The library was built anew and still does not load: {error}",
                remedies=("Build with the compiler that torch was made for, named in CXX.",),
            )
        self._retried = True
        self._say(
            f"the cached library does not load and is set aside, to be built once more: {error}", "warning"
        )
        with contextlib.suppress(Busy, OSError), Lock(path.parent.parent, path.parent.name):
            _cache.set_aside(path.parent)
        return False

    def _test(self, path: Path) -> None:
        """Holds the library against its readable twin, once in its life: the manifest keeps the outcome."""
        manifest_path = path.parent / _cache.MANIFEST
        manifest = _cache.read_json(manifest_path)
        kept = manifest.get("self_test")
        if isinstance(kept, dict) and kept.get("passed"):
            self._events.append(
                step("self-test", "cached", detail="output and 9 gradients: kept from the full build")
            )
            return
        from . import _selftest

        self._events.append(step("self-test", "started"))
        result = _selftest.run()
        if not result["passed"]:
            _library.withdraw()
            worst = "not a number" if result["worst"] is None else f"{result['worst']:.1f} times its bound"
            raise BuildError(
                "self_test",
                f"The library computes wrong results and is not used: {result['worst_tensor']} is {worst}.",
                remedies=("Build again.", "If you edited the sources, look at what you changed last."),
            )
        detail = "output and 9 gradients, float32 and float64"
        self._events.append(step("self-test", "done", result["seconds"], detail))
        if manifest:
            manifest["self_test"] = result
            with contextlib.suppress(
                OSError
            ):  # a cache that cannot be written costs a test at every start, no more
                _cache.write_json(manifest_path, manifest)

    # ---- words ---------------------------------------------------------------------------------------

    def _elapsed(self) -> float:
        return time.monotonic() - self._started

    def _say(self, text: str, level: str = "info") -> None:
        self._events.append(log(self._elapsed(), text, level))

    def _finish(self, finished: Event, needs_new_worker: bool = False) -> None:
        ending = {"seconds": self._elapsed(), "needs_new_worker": needs_new_worker}
        self._events.append({**FINISHED, **finished, **ending})
        self.running = False

    def _fail(self, error: BuildError) -> None:
        self._events.append(error.event())
        self.running = False


def operator_count() -> int:
    """How many operators the library has registered."""
    import torch

    names = torch._C._dispatch_get_all_op_names()
    return sum(name.startswith("attnscope::") for name in names)


def load(
    *,
    rebuild: bool = False,
    cache_dir: str | None = None,
    time_limit_s: float | None = None,
    on_event: Callable[[Event], None] | None = None,
) -> Event:
    """Makes the operator usable in this process: from the cache, or by compiling it now, which takes a
    minute.

    `on_event` is told what happens, as dictionaries. An interrupt (Ctrl+C) ends the compilers too. Returns
    the last event, `finished`. Raises BuildError with a sentence and what can be done.
    """
    current = _library.loaded()
    if current is not None and not rebuild:
        return {**FINISHED, "library": current.path, "key": current.key, "cached": True}
    builder = Builder(rebuild=rebuild, cache_dir=cache_dir, time_limit_s=time_limit_s)
    builder.start()
    last: Event = {}
    try:
        while True:
            for last in builder.poll():
                if on_event is not None:
                    on_event(last)
            if not builder.running:
                break
            time.sleep(POLL_S)
    except BaseException:
        builder.cancel()
        while builder.running:
            builder.poll()
            time.sleep(POLL_S)
        raise
    if last["event"] == "failed":
        raise BuildError.from_event(last)
    return last
