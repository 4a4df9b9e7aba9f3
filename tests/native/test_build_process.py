"""The build as a process among others: locks, death, cancelling, damaged caches, missing compilers."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from self_attention_ext import _cache, _driver, _library, _sources
from self_attention_ext._lock import Lock

from tests.native.conftest import LOAD, Sandbox, finish, only

pytestmark = [
    pytest.mark.build,
    pytest.mark.skipif(sys.platform == "win32", reason="the pretended compiler is a shell script"),
]

SOURCES = [path.name for path in _sources.sources(_sources.source_folder())]


def key_with_fake(sandbox: Sandbox) -> str:
    """The key of the pretended compiler's entry, found by building it once."""
    result = sandbox.build()
    assert result["code"] == 0, result
    return only(result["events"], "key")[0]["key"]


def alive_inside(folder: Path) -> list[str]:
    """Processes of ours that still work in the folder."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                if os.readlink(f"/proc/{name}/cwd").startswith(str(folder.resolve())):
                    found.append(Path(f"/proc/{name}/cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:
                continue
    return found


def wait_for(condition: Any, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def test_a_cold_build_compiles_each_source_once_and_leaves_nothing_behind(sandbox: Sandbox) -> None:
    result = sandbox.load()
    assert result["code"] == 0, result
    for source in SOURCES:
        assert len(sandbox.started(f"-c {source} ")) == 2, source  # its start and its end
    assert sandbox.leftovers() == []
    finished = only(result["events"], "finished")[-1]
    assert finished["cached"] is False
    assert finished["compiler"] == "g++ 12.9.1"
    assert {step["step"] for step in only(result["events"], "step") if step["state"] == "done"} == {
        "check",
        "compile",
        "link",
        "load",
        "self-test",
    }
    entry = _cache.read_entry(Path(finished["library"]).parent)
    assert entry is not None
    assert entry.manifest["self_test"]["passed"] is True
    assert sorted(path.name for path in entry.folder.iterdir()) == [
        "build.log",
        "manifest.json",
        entry.library.name,
    ]


def test_a_warm_start_runs_no_compiler_even_one_that_is_missing(sandbox: Sandbox) -> None:
    assert sandbox.load()["code"] == 0
    before = len(sandbox.started())
    for compiler in (str(sandbox.compiler), "false", "/nonexistent/c++"):
        result = sandbox.load(CXX=compiler)
        assert result["code"] == 0, result
        assert only(result["events"], "finished")[-1]["cached"] is True
        self_test = [step for step in only(result["events"], "step") if step["step"] == "self-test"]
        assert [step["state"] for step in self_test] == ["cached"]
    assert len(sandbox.started()) == before


def test_importing_starts_no_process_and_touches_no_cache(sandbox: Sandbox) -> None:
    code = (
        # torch's own import starts a process in some releases.
        "import sys, torch; started = []\n"
        "sys.addaudithook(lambda name, args: started.append(name) if name in "
        "('subprocess.Popen', 'os.fork', 'os.posix_spawn', 'os.exec', 'os.system') else None)\n"
        "import self_attention_ext\n"
        "from self_attention_ext import SelfAttention\n"
        "print(started)"
    )
    process = sandbox.python(code, CXX="false")
    output, errors = process.communicate(timeout=60)
    assert output.strip() == b"[]", errors
    assert not sandbox.cache.exists()


def test_calling_before_load_says_to_call_load(sandbox: Sandbox) -> None:
    code = "import torch, self_attention_ext as e; e.SelfAttention(8, 2)(torch.zeros(1, 2, 8))"
    errors = sandbox.python(code).communicate(timeout=60)[1]
    assert b"Call self_attention_ext.load() first" in errors


def test_lock_files_that_nobody_holds_block_nobody(sandbox: Sandbox) -> None:
    key = key_with_fake(sandbox)
    _cache.remove_entries(sandbox.cache)
    (sandbox.cache / "lock").touch()
    (sandbox.cache / f"{key}.lock").write_text("1")
    begun = time.monotonic()
    assert sandbox.build()["code"] == 0
    assert time.monotonic() - begun < 30
    assert sandbox.leftovers() == []


def test_who_waits_says_for_which_file_and_process_and_can_be_cancelled(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = key_with_fake(sandbox)
    _cache.remove_entries(sandbox.cache)
    for name in ("CXX", "FAKE_CALLS", "FAKE_LIBRARY", "FAKE_KEY"):
        monkeypatch.setenv(name, sandbox.environ[name])
    with Lock(sandbox.cache, key):
        builder = _driver.Builder(cache_dir=str(sandbox.cache), rebuild=True)
        events: list[dict[str, Any]] = []
        builder.start()
        wait_for(lambda: events.extend(builder.poll()) or only(events, "waiting"))
        waiting = only(events, "waiting")[0]
        assert waiting["path"] == str(sandbox.cache / f"{key}.lock")
        assert waiting["pid"] == os.getpid()
        builder.cancel()
        wait_for(lambda: events.extend(builder.poll()) or not builder.running)
    assert events[-1]["event"] == "failed"
    assert events[-1]["kind"] == "cancelled"


def test_two_builds_at_once_compile_each_source_once(sandbox: Sandbox) -> None:
    processes = [sandbox.start_build(FAKE_SLEEP="0.3") for _ in range(2)]
    results = [finish(process) for process in processes]
    assert [result["code"] for result in results] == [0, 0], results
    for source in SOURCES:
        assert len(sandbox.started(f"-c {source} ")) == 2, source
    assert sorted(only(result["events"], "finished")[-1]["cached"] for result in results) == [False, True]
    assert sandbox.leftovers() == []


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="reads /proc")
def test_killing_the_parent_ends_the_compilers_and_the_next_build_is_whole(sandbox: Sandbox) -> None:
    process = sandbox.python(LOAD, FAKE_SLEEP="30")
    wait_for(sandbox.compiling)
    process.kill()
    process.communicate()
    wait_for(lambda: not alive_inside(sandbox.cache))
    wait_for(lambda: sandbox.leftovers() == [])
    assert sandbox.load()["code"] == 0
    assert sandbox.leftovers() == []


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="reads /proc")
def test_killing_the_build_process_too_leaves_nothing_that_the_next_build_does_not_clear(
    sandbox: Sandbox,
) -> None:
    process = sandbox.python(LOAD, FAKE_SLEEP="30")
    wait_for(sandbox.compiling)
    builder = next(
        int(name)
        for name in os.listdir("/proc")
        if name.isdecimal()
        and (stat := _stat(name)) is not None
        and stat == process.pid
        and b"self_attention_ext._build" in Path(f"/proc/{name}/cmdline").read_bytes()
    )
    os.kill(process.pid, signal.SIGKILL)  # first: it would end the group itself
    os.kill(builder, signal.SIGKILL)
    process.communicate()
    assert alive_inside(sandbox.cache), "the compilers were expected to outlive their builder here"
    assert sandbox.leftovers() != []
    result = sandbox.load()
    assert result["code"] == 0, result
    assert alive_inside(sandbox.cache) == []
    assert sandbox.leftovers() == []
    assert any("interrupted build was removed" in event["text"] for event in only(result["events"], "log"))


def _stat(name: str) -> int | None:
    """The parent of a process."""
    try:
        return int(Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None


def test_cancelling_ends_the_compilers_and_removes_the_folder(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CXX", "FAKE_CALLS", "FAKE_LIBRARY", "FAKE_KEY"):
        monkeypatch.setenv(name, sandbox.environ[name])
    monkeypatch.setenv("FAKE_SLEEP", "30")
    builder = _driver.Builder(cache_dir=str(sandbox.cache))
    builder.start()
    wait_for(lambda: builder.poll() is not None and sandbox.compiling())
    begun = time.monotonic()
    builder.cancel()
    events: list[dict[str, Any]] = []
    wait_for(lambda: events.extend(builder.poll()) or not builder.running)
    assert time.monotonic() - begun < 5
    assert events[-1]["kind"] == "cancelled"
    assert sandbox.leftovers() == []
    assert not alive_inside(sandbox.cache) if Path("/proc/self").exists() else True


def test_a_slow_compiler_is_reported_at_least_every_second(sandbox: Sandbox) -> None:
    process = sandbox.start_build(FAKE_SLEEP="1.2")
    stamps = []
    assert process.stdout is not None
    for line in process.stdout:
        if json.loads(line)["event"] in ("progress", "source"):
            stamps.append(time.monotonic())
    finish(process)
    gaps = [after - before for before, after in itertools.pairwise(stamps)]
    assert len(stamps) > 5
    assert max(gaps) < 1.0


def test_with_one_job_two_compilers_never_overlap(sandbox: Sandbox) -> None:
    result = sandbox.build(MAX_JOBS="1", FAKE_SLEEP="0.05")
    assert result["code"] == 0
    states = [line.split()[1] for line in sandbox.started() if line.split()[1] in ("start", "end")]
    assert states == ["start", "end"] * (len(states) // 2)
    assert any("MAX_JOBS=1" in event["text"] for event in only(result["events"], "log"))


def test_a_missing_compiler_is_one_sentence_that_names_it(sandbox: Sandbox) -> None:
    result = sandbox.build(CXX="/nonexistent/c++")
    assert result["code"] == 3
    failed = result["events"][-1]
    assert failed["kind"] == "no_compiler"
    assert "/nonexistent/c++" in failed["sentence"]
    assert failed["remedies"]


def test_no_compiler_on_path_names_what_was_looked_for_and_how_to_get_it(sandbox: Sandbox) -> None:
    empty = sandbox.folder / "empty"
    empty.mkdir()
    result = sandbox.build(CXX="", PATH=str(empty))
    assert result["code"] == 3
    assert "c++, g++, clang++" in result["events"][-1]["sentence"]
    assert "install" in result["events"][-1]["sentence"]


def test_a_compiler_that_speaks_another_code_page_is_quoted(sandbox: Sandbox) -> None:
    odd = sandbox.folder / "odd-c++"
    odd.write_bytes(b"#!/bin/sh\nprintf 'caf\\323\\n'\nexit 1\n")
    odd.chmod(0o755)
    result = sandbox.build(CXX=str(odd))
    assert result["code"] == 3
    assert "caf" in result["events"][-1]["first_error"]
    assert "decode" not in json.dumps(result["events"])


def test_a_source_that_does_not_compile_is_named_with_its_first_error(sandbox: Sandbox) -> None:
    result = sandbox.build(FAKE_FAIL="meta.cpp")
    assert result["code"] == 1
    failed = result["events"][-1]
    assert failed["kind"] == "compile_error"
    assert failed["source"] == "meta.cpp"
    assert failed["first_error"] == "meta.cpp:7:3: error: 'banana' was not declared in this scope"
    assert "banana" in Path(failed["log_path"]).read_text()
    assert sandbox.leftovers() == []


def test_a_build_asks_no_ninja_not_even_a_broken_one_that_comes_first(sandbox: Sandbox) -> None:
    mark = sandbox.folder / "asked"
    ninja = sandbox.compiler.parent / "ninja"
    ninja.write_text(f"#!/bin/sh\ntouch {mark}\nexit 1\n")
    ninja.chmod(0o755)
    # Nothing else is on PATH: the compiler's own shell script names its interpreter in full.
    result = sandbox.load(PATH=str(sandbox.compiler.parent))
    assert result["code"] == 0, result
    assert sandbox.started()
    assert not mark.exists()


def test_paths_with_blanks_and_other_alphabets_build(sandbox: Sandbox, tmp_path: Path) -> None:
    folder = tmp_path / "a b" / "Юзер-é"
    sources = folder / "native"
    sources.mkdir(parents=True)
    package = _sources.PACKAGE
    shutil.copytree(package, sources / package.name)
    shutil.copytree(_sources.source_folder(), sources / "csrc")
    result = sandbox.load(PYTHONPATH=str(sources), ATTNSCOPE_CACHE_DIR=str(tmp_path / "ext dir" / "кэш"))
    assert result["code"] == 0, result
    assert str(tmp_path / "ext dir") in only(result["events"], "finished")[-1]["library"]


def test_a_cache_that_is_a_file_is_named(sandbox: Sandbox) -> None:
    sandbox.cache.write_text("in the way")
    result = sandbox.build()
    assert result["code"] == 3
    failed = result["events"][-1]
    assert failed["kind"] == "cache_unusable"
    assert str(sandbox.cache) in failed["sentence"]


def test_an_unusable_default_cache_gives_way_to_a_private_temporary_one(sandbox: Sandbox) -> None:
    (sandbox.folder / "home").mkdir()
    (sandbox.folder / "home" / ".cache").write_text("in the way")
    temporary = sandbox.folder / "tmp"
    temporary.mkdir()
    result = sandbox.load(
        ATTNSCOPE_CACHE_DIR="", XDG_CACHE_HOME="", HOME=str(sandbox.folder / "home"), TMPDIR=str(temporary)
    )
    assert result["code"] == 0, result
    assert any(
        "using" in event["text"] and str(temporary) in event["text"]
        for event in only(result["events"], "log")
    )


def test_building_writes_nothing_into_the_package(sandbox: Sandbox) -> None:
    def listing() -> list[tuple[str, int]]:
        roots = (_sources.PACKAGE, _sources.source_folder())
        return sorted(
            (str(path), path.stat().st_mtime_ns)
            for root in roots
            for path in root.rglob("*")
            if "__pycache__" not in path.parts
        )

    before = listing()
    assert sandbox.build()["code"] == 0
    assert listing() == before


def rewrite_library(folder: Path, content: bytes) -> None:
    """Puts another library into an entry, with a checksum that agrees."""
    manifest = _cache.read_json(folder / _cache.MANIFEST)
    (folder / manifest["library"]["name"]).write_bytes(content)
    manifest["library"]["sha256"] = hashlib.sha256(content).hexdigest()
    _cache.write_json(folder / _cache.MANIFEST, manifest)


def test_a_cached_library_that_does_not_load_is_rebuilt_once_and_that_is_said(sandbox: Sandbox) -> None:
    key = key_with_fake(sandbox)
    unresolved = sandbox.folder / "unresolved.so"
    source = sandbox.folder / "unresolved.c"
    source.write_text("int missing_function(void); int use(void) { return missing_function(); }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-Wl,-z,now", "-o", unresolved, source], check=True)
    rewrite_library(sandbox.cache / key, unresolved.read_bytes())
    links = len(sandbox.started("link"))
    result = sandbox.load()
    assert result["code"] == 0, result
    assert len(sandbox.started("link")) == links + 1
    assert any("set aside" in event["text"] for event in only(result["events"], "log"))
    assert sandbox.leftovers() == []

    rewrite_library(sandbox.cache / key, unresolved.read_bytes())
    result = sandbox.load(CXX="/nonexistent/c++")
    assert result["code"] == 3
    assert result["events"][-1]["event"] == "failed"
    assert "/nonexistent/c++" in result["events"][-1]["sentence"]


def test_a_library_built_ahead_of_time_that_does_not_load_gives_way_to_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "_C.so"
    broken.write_bytes(b"no library")
    monkeypatch.setattr(_library, "_loaded", None)
    monkeypatch.setattr(_library, "ahead_of_time", lambda: (broken, ""))

    def refuse(path: Path, key: str) -> None:
        raise OSError(f"{path}: invalid ELF header")

    monkeypatch.setattr(_library, "load", refuse)
    started: list[bool] = []
    builder = _driver.Builder(cache_dir=str(tmp_path / "cache"))
    monkeypatch.setattr(builder, "_spawn", lambda: started.append(True))
    builder.start()
    (said,) = only(builder.poll(), "log")
    assert said["level"] == "warning"
    assert "_C.so, built ahead of time, does not load" in said["text"]
    assert "invalid ELF header" in said["text"]
    assert started == [True]


def test_a_library_that_never_loads_ends_with_a_sentence(sandbox: Sandbox) -> None:
    result = sandbox.load(FAKE_BREAK="1")
    assert result["code"] == 1
    assert result["events"][-1]["kind"] == "load_error"
    assert len(sandbox.started("link")) == 2  # built, set aside, built once more


def test_a_damaged_library_is_never_loaded(sandbox: Sandbox) -> None:
    key = key_with_fake(sandbox)
    library = next((sandbox.cache / key).glob("*.so"))
    library.write_bytes(library.read_bytes()[:-1] + b"!")
    result = sandbox.load()
    assert result["code"] == 0, result
    assert any("checksum" in event["text"] for event in only(result["events"], "log"))
    assert only(result["events"], "finished")[-1]["cached"] is False


def test_an_edited_source_with_an_old_time_is_rebuilt_and_the_part_named(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    sources = tmp_path / "checkout"
    shutil.copytree(_sources.PACKAGE, sources / _sources.PACKAGE.name)
    shutil.copytree(_sources.source_folder(), sources / "csrc")
    assert sandbox.load(PYTHONPATH=str(sources))["code"] == 0
    edited = sources / "csrc" / "meta.cpp"
    edited.write_text(edited.read_text() + "\n// another byte\n")
    os.utime(edited, (978307200, 978307200))
    result = sandbox.load(PYTHONPATH=str(sources))
    assert result["code"] == 0, result
    assert only(result["events"], "finished")[-1]["cached"] is False
    assert only(result["events"], "key")[0]["changed"] == ["sources"]


def test_a_build_that_takes_too_long_is_ended(sandbox: Sandbox) -> None:
    result = sandbox.build(FAKE_SLEEP="30", LIMIT="2")
    assert result["code"] == 1
    assert result["events"][-1]["kind"] == "timeout"
    assert sandbox.leftovers() == []


def test_the_build_process_is_up_in_a_blink_and_without_torch() -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(_sources.PACKAGE.parent)!r})\n"
        "import self_attention_ext._build\n"
        "print('torch' in sys.modules)"
    )
    output = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, check=True).stdout
    assert output.strip() == b"False"
