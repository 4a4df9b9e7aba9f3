"""One really built library for the whole session, and compilers that only pretend."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from self_attention_ext import _cache, _driver, _events, _sources, _torch_facts

# Tracing may start a pool of compile workers that would outlive its test.
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")

FAKE_COMPILER = Path(__file__).with_name("fake_compiler.py")


@pytest.fixture(scope="session")
def library() -> dict[str, Any]:
    """The operator, built or from the user's cache, loaded into this process."""
    try:
        finished = _driver.load()
    except _events.BuildError as error:
        if error.kind == "no_compiler":
            pytest.skip(error.sentence)
        raise
    return finished


@pytest.fixture(scope="session")
def built(library: dict[str, Any]) -> _cache.Entry:
    """Its cache entry."""
    entry = _cache.read_entry(Path(library["library"]).parent)
    assert entry is not None
    return entry


class Sandbox:
    """A cache of its own and a compiler that takes no time; each start is written to `calls`."""

    def __init__(self, folder: Path, built: _cache.Entry) -> None:
        self.folder = folder
        self.cache = folder / "cache"
        self.calls = folder / "calls.txt"
        self.compiler = folder / "bin" / "fake-g++"
        self.compiler.parent.mkdir()
        self.compiler.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {FAKE_COMPILER} "$@"\n')
        self.compiler.chmod(0o755)
        self.environ = {
            **os.environ,
            "CXX": str(self.compiler),
            "ATTNSCOPE_CACHE_DIR": str(self.cache),
            "FAKE_CALLS": str(self.calls),
            "FAKE_LIBRARY": str(built.library),
            "FAKE_KEY": built.key,
            "PYTHONPATH": os.pathsep.join(str(path) for path in sys.path if path),
        }

    def adopt(self, entry: _cache.Entry) -> Path:
        """A copy of a finished entry in this cache."""
        target = self.cache / entry.key
        shutil.copytree(entry.folder, target)
        shutil.copyfile(entry.folder.parent / "compilers.json", self.cache / "compilers.json")
        return target

    def started(self, word: str = "") -> list[str]:
        """The compiler's calls that contain `word`, as `seconds state pid arguments`."""
        lines = self.calls.read_text().splitlines() if self.calls.exists() else []
        return [line for line in lines if word in line]

    def compiling(self) -> bool:
        """Whether a compiler was started on one of the sources, whichever is taken first."""
        return any("probe.cpp" not in line for line in self.started(" start "))

    def leftovers(self) -> list[str]:
        """What a finished build must not leave in the cache."""
        names = [path.name for path in self.cache.iterdir()] if self.cache.exists() else []
        return [name for name in names if ".building-" in name or ".stale-" in name or name.endswith(".lock")]

    def python(self, code: str, **extra: str) -> subprocess.Popen[bytes]:
        """Another interpreter, running `code`."""
        return subprocess.Popen(
            [sys.executable, "-c", code],
            env={**self.environ, **extra},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.folder,
        )

    def build(self, **extra: str) -> dict[str, Any]:
        """The build process alone, without torch and without loading: exit status and events."""
        return finish(self.start_build(**extra))

    def start_build(self, **extra: str) -> subprocess.Popen[bytes]:
        return start_build({**self.environ, **extra}, float(extra.get("LIMIT", "60")))

    def load(self, **extra: str) -> dict[str, Any]:
        """`load()` in a process of its own: exit status, what it printed, its events."""
        return finish(self.python(LOAD, **extra))


def start_build(environ: dict[str, str], limit_s: float) -> subprocess.Popen[bytes]:
    """The build process alone, its request sent: it neither imports torch nor loads what it builds."""
    start = f"import sys; sys.path.insert(0, {str(_sources.PACKAGE.parent)!r}); "
    start += "from self_attention_ext._build import main; import os; os._exit(main())"
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", start],
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdin is not None
    request = {"facts": dict(_torch_facts.facts()), "time_limit_s": limit_s}
    process.stdin.write(json.dumps(request).encode() + b"\n")
    process.stdin.flush()
    return process


LOAD = """
import json, sys
import self_attention_ext as ext
try:
    ext.load(on_event=lambda event: print(json.dumps(event), flush=True))
except ext.BuildError as error:
    sys.exit(error.exit_code)
"""


def finish(process: subprocess.Popen[bytes], timeout: float = 120) -> dict[str, Any]:
    assert process.stdout is not None
    assert process.stderr is not None
    # Not communicate(): that closes standard input at once, which is the build process's lifeline.
    output = process.stdout.read()
    errors = process.stderr.read()
    process.wait(timeout)
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            stream.close()
    events = [json.loads(line) for line in output.splitlines() if line.startswith(b"{")]
    return {"code": process.returncode, "events": events, "errors": errors.decode("utf-8", "replace")}


def only(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [event for event in events if event["event"] == kind]


@pytest.fixture
def sandbox(tmp_path: Path, built: _cache.Entry) -> Sandbox:
    return Sandbox(tmp_path, built)
