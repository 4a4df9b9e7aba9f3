"""What the machine does to a build: a full disk, no memory, records of something else, a folder without
locks."""

from __future__ import annotations

import errno
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from self_attention_ext import _build, _cache, _compile, _lock, _toolchain
from self_attention_ext._events import BuildError

from tests.native.conftest import Sandbox, only

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="shell scripts and flock")


@pytest.mark.parametrize("asked", ["g++ 'x", '"', "c++ \\"])
def test_a_cxx_with_an_open_quote_is_a_sentence(asked: str) -> None:
    with pytest.raises(BuildError, match="CXX names"):
        _toolchain.find_compiler({"CXX": asked, "PATH": os.defpath}, "linux")


def test_compilers_end_when_the_log_cannot_be_written(tmp_path: Path) -> None:
    """The disk fills up while they run: without their folder they would go on for nothing."""
    compiler = tmp_path / "slow"
    compiler.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec sleep 60\n")
    compiler.chmod(0o755)
    log = tmp_path / "log"
    job = _compile.Job(
        folder=tmp_path,
        compiler=_toolchain.Compiler((str(compiler),), str(compiler)),
        environ=dict(os.environ),
        emit=lambda event: None,
        cancelled=threading.Event(),
        deadline=time.monotonic() + 30,
        log_path=log,
    )

    def say(text: str, level: str = "info") -> None:
        if text.startswith("2/"):
            while not (tmp_path / "pid").exists():
                time.sleep(0.01)
            raise OSError(errno.ENOSPC, "No space left on device", str(log))

    job.say = say  # type: ignore[method-assign]
    with pytest.raises(OSError, match="No space left"):
        _compile.compile_all(job, ["a.cpp", "b.cpp"], [], 2, None)
    pid = int((tmp_path / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize(
    ("status", "output", "word"),
    [
        (-9, b"", "MAX_JOBS=1"),
        (1, b"g++: fatal error: Killed signal terminated program cc1plus", "MAX_JOBS=1"),
        (1, b"fatal error: error writing to a.o: No space left on device", "disk space"),
        (1, b"a.cpp:1:1: error: expected ';'", ""),
    ],
)
def test_advice_to_correct_a_source_is_kept_for_faults_of_a_source(
    tmp_path: Path, status: int, output: bytes, word: str
) -> None:
    remedies = _compile.remedies_for(status, output, tmp_path)
    assert bool(remedies) == bool(word)
    assert word in " ".join(remedies)


def test_a_compiler_that_was_killed_is_said_to_have_been() -> None:
    assert _compile.how_it_ended(-9) == "was ended by SIGKILL"
    assert _compile.how_it_ended(4) == "ended with status 4"


@pytest.mark.parametrize(
    "record", [{"sources": [{}]}, {"sources": 5, "compile_s": "x"}, {"sources": [{"seconds": "x"}, 1]}]
)
def test_timings_that_something_else_wrote_are_ignored(record: dict[str, Any]) -> None:
    assert _build._seconds_by_source(record.get("sources")) == {}
    assert _build._number(record.get("compile_s")) is None


@pytest.mark.build
def test_a_build_is_whole_in_a_cache_full_of_rubbish(sandbox: Sandbox) -> None:
    sandbox.cache.mkdir()
    (sandbox.cache / "last_build.json").write_text('{"sources": [{}, 3], "compile_s": [], "jobs": 2}')
    (sandbox.cache / "compilers.json").write_text("[]")
    abandoned = sandbox.cache / "0123456789abcdef.building-1-aa"
    abandoned.mkdir()
    (sandbox.cache / "0123456789abcdef.lock").touch()
    result = sandbox.build()
    assert result["code"] == 0, result
    # An interrupted build of sources that were edited since is cleared as well.
    assert sandbox.leftovers() == []
    (entry,) = _cache.entries(sandbox.cache)
    manifest = json.loads((entry.folder / _cache.MANIFEST).read_text())
    for damaged in ({"timings": 5}, {"compiler": None}, {"flags": 3}):
        (entry.folder / _cache.MANIFEST).write_text(json.dumps({**manifest, **damaged}))
        assert _cache.read_entry(entry.folder) is None
    again = sandbox.build()
    assert again["code"] == 0, again
    assert not only(again["events"], "finished")[0]["cached"]


def test_a_folder_without_locks_is_named_and_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(_lock.fcntl, "flock", flock)
    with pytest.raises(OSError, match="No locks available") as caught:
        _lock.Lock(tmp_path, "k").try_acquire()
    assert caught.value.filename == str(tmp_path / "k.lock")
