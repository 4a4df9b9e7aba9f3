"""Finding a compiler and deciding how much of the machine it may take: pure functions of the environment."""

from __future__ import annotations

from pathlib import Path

import pytest
from self_attention_ext import _toolchain
from self_attention_ext._events import BuildError


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_cxx_is_taken_with_its_options(tmp_path: Path) -> None:
    compiler = program(tmp_path / "my c++")
    found = _toolchain.find_compiler({"CXX": f"'{compiler}' -m64", "PATH": ""}, "linux")
    assert found.command == (str(compiler), "-m64")
    assert _toolchain.find_compiler({"CXX": str(compiler), "PATH": ""}, "linux").command == (str(compiler),)


def test_a_cxx_that_is_no_program_is_never_replaced_by_another(tmp_path: Path) -> None:
    program(tmp_path / "g++")
    with pytest.raises(BuildError, match="/nonexistent") as caught:
        _toolchain.find_compiler({"CXX": "/nonexistent/c++", "PATH": str(tmp_path)}, "linux")
    assert caught.value.kind == "no_compiler"


def test_the_systems_own_name_comes_first(tmp_path: Path) -> None:
    for name in ("clang++", "g++"):
        program(tmp_path / name)
    assert _toolchain.find_compiler({"PATH": str(tmp_path)}, "linux").path == str(tmp_path / "g++")


@pytest.mark.parametrize(
    ("platform", "words"),
    [("linux", "apt install g++"), ("darwin", "xcode-select"), ("win32", "Visual Studio")],
)
def test_without_a_compiler_the_sentence_says_how_to_get_one(
    tmp_path: Path, platform: str, words: str
) -> None:
    with pytest.raises(BuildError, match=r"none of .* is on PATH") as caught:
        _toolchain.find_compiler({"PATH": str(tmp_path)}, platform)
    assert words in caught.value.sentence


def test_a_compilers_fingerprint_is_its_content(tmp_path: Path) -> None:
    compiler = _toolchain.Compiler((str(program(tmp_path / "g++")),), str(tmp_path / "g++"))
    first = _toolchain.fingerprint(compiler)
    assert _toolchain.fingerprint(_toolchain.Compiler((compiler.path, "-m32"), compiler.path)) != first
    (tmp_path / "g++").write_text("#!/bin/sh\n# upgraded\n")
    assert _toolchain.fingerprint(compiler) != first


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("c++ (Debian 12.2.0-14+deb12u1) 12.2.0\nCopyright (C) 2022 Free Software Foundation", "g++ 12.2.0"),
        ("Ubuntu clang version 18.1.3 (1ubuntu1)", "clang++ 18.1.3"),
        ("something else", "odd"),
    ],
)
def test_a_compiler_is_named_as_people_do(text: str, name: str) -> None:
    assert _toolchain.short_version(text, "/usr/bin/odd") == name


@pytest.mark.parametrize(
    ("cores", "free", "environ", "count"),
    [
        (8, 64 * 10**9, {}, 8),
        (8, 4 * 10**9, {}, 2),
        (8, 10**8, {}, 1),
        (8, None, {}, 8),
        (8, 64 * 10**9, {"MAX_JOBS": "3"}, 3),
        (2, 64 * 10**9, {"MAX_JOBS": "30"}, 2),
        (8, 64 * 10**9, {"MAX_JOBS": "banana"}, 8),
        (32, 640 * 10**9, {}, 9),
    ],
)
def test_jobs_fit_cores_memory_wish_and_work(
    cores: int, free: int | None, environ: dict[str, str], count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_toolchain, "free_memory", lambda: free)
    monkeypatch.setattr(_toolchain.os, "sched_getaffinity", lambda pid: set(range(cores)), raising=False)
    assert _toolchain.jobs(9, environ)[0] == count


def test_the_compilers_environment_loses_stray_inputs_and_keeps_the_rest(tmp_path: Path) -> None:
    environ = {"CUDNN_HOME": "/c", "PATH": "/bin", "LANG": "de_DE.UTF-8", "SOMETHING": "1"}
    made = _toolchain.build_environment(environ, tmp_path)
    assert "CUDNN_HOME" not in made
    assert made["SOMETHING"] == "1"
    assert made["LC_ALL"] == "C"
    assert made["TMPDIR"] == str(tmp_path)


def test_free_memory_is_a_plausible_figure() -> None:
    free = _toolchain.free_memory()
    assert free is None or 10**6 < free < 10**14
