"""What makes one build differ from another, and what does not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from self_attention_ext import _cache, _events, _flags, _sources, _torch_facts
from self_attention_ext._lock import Busy, Lock

FACTS = {
    "torch_version": "2.9.0+cpu",
    "cuda": None,
    "cxx11_abi": True,
    "python_tag": "cp311",
    "machine": "linux-x86_64",
}


def parts(
    folder: Path, flags: tuple[str, ...] = ("-O2", "-Wall"), version: str = "12.2.0", **facts: object
) -> _cache.Parts:
    known = {**FACTS, **facts}
    return {
        "sources": _cache.sources_part(_sources.sources(folder), _sources.headers(folder)),
        "torch": _cache.torch_part(known),
        "python": _cache.python_part(known),
        "compiler": _cache.compiler_part("/usr/bin/g++", f"g++ {version}", f"g++ {version}"),
        "flags": _cache.flags_part(flags),
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.cpp").write_text("int a;\n")
    (tmp_path / "b.h").write_text("int b;\n")
    return tmp_path


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"torch_version": "2.9.1+cpu"}, "torch"),
        ({"torch_version": "2.9.0+cu126"}, "torch"),
        ({"cuda": "12.6"}, "torch"),
        ({"cxx11_abi": False}, "torch"),
        ({"python_tag": "cp312"}, "python"),
        ({"machine": "linux-aarch64"}, "python"),
        ({"version": "12.3.0"}, "compiler"),
        ({"flags": ("-O3", "-Wall")}, "flags"),
        ({"flags": ("-O2", "-Wall", "-g")}, "flags"),
        ({"flags": ("-O2-Wall",)}, "flags"),
    ],
    ids=str,
)
def test_each_part_changes_the_key_and_is_named(folder: Path, change: dict[str, object], part: str) -> None:
    before, after = parts(folder), parts(folder, **change)  # type: ignore[arg-type]
    assert _cache.key_of(before) != _cache.key_of(after)
    assert _cache.changed_parts(after, before) == (part,)


@pytest.mark.parametrize("name", ["a.cpp", "b.h"])
def test_one_byte_of_a_source_or_header_changes_the_key(folder: Path, name: str) -> None:
    before = parts(folder)
    (folder / name).write_text((folder / name).read_text() + " ")
    assert _cache.changed_parts(parts(folder), before) == ("sources",)


def test_renaming_a_source_changes_the_key(folder: Path) -> None:
    before = parts(folder)
    (folder / "a.cpp").rename(folder / "c.cpp")
    assert _cache.changed_parts(parts(folder), before) == ("sources",)


def test_file_times_do_not_change_the_key(folder: Path) -> None:
    before = parts(folder)
    for path in folder.iterdir():
        os.utime(path, (978307200, 978307200))
    assert _cache.key_of(parts(folder)) == _cache.key_of(before)


def test_the_cache_lies_in_the_users_folder_by_the_platforms_convention() -> None:
    home = Path.home()
    assert _cache.default_root({}, "linux") == home / ".cache" / "attnscope" / "extension"
    assert _cache.default_root({"XDG_CACHE_HOME": "/x"}, "linux") == Path("/x/attnscope/extension")
    assert _cache.default_root({"XDG_CACHE_HOME": "relative"}, "linux") == home / ".cache/attnscope/extension"
    assert _cache.default_root({}, "darwin") == home / "Library" / "Caches" / "attnscope" / "extension"
    assert _cache.default_root({"LOCALAPPDATA": "/l"}, "win32") == Path("/l/attnscope/Cache/extension")


def test_a_damaged_record_counts_as_none(tmp_path: Path) -> None:
    entry = tmp_path / ("0" * 16)
    entry.mkdir()
    for text in ("", "[]", "{", '{"schema": 1, "key": "other", "parts": {}}', '{"parts": 3}'):
        (entry / "manifest.json").write_text(text)
        assert _cache.read_entry(entry) is None
    assert _cache.entries(tmp_path) == []


def test_removing_entries_leaves_what_is_not_ours(tmp_path: Path) -> None:
    (tmp_path / "holiday photos").mkdir()
    (tmp_path / "0123456789abcdef.notes").mkdir()
    abandoned = tmp_path / "0123456789abcdef.building-12-ab"
    abandoned.mkdir()
    _cache.remove_entries(tmp_path)
    assert not abandoned.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0123456789abcdef.notes", "holiday photos"]


def test_an_entry_being_built_is_not_removed(tmp_path: Path) -> None:
    building = tmp_path / "0123456789abcdef.building-12-ab"
    building.mkdir()
    with Lock(tmp_path, "0123456789abcdef"):
        _cache.remove_entries(tmp_path)
        assert building.exists()


def test_a_lock_is_held_once_and_leaves_no_file(tmp_path: Path) -> None:
    first, second = Lock(tmp_path, "k"), Lock(tmp_path, "k")
    with first:
        assert second.try_acquire() is False
        assert second.holder() == os.getpid()
        with pytest.raises(Busy), second:
            pass
    assert list(tmp_path.iterdir()) == []
    assert second.try_acquire() is True
    second.release()


def test_the_language_standard_is_the_one_torch_names() -> None:
    flag = "-std" + "=c++42"
    text = f"flags = ['{flag}', '-fPIC']\nmore = [\"{flag}\"]\nold = ['{flag[:-2]}11']\n"
    assert _torch_facts.language_standard(text, "linux") == flag
    assert _torch_facts.language_standard(text, "win32") is None
    assert _torch_facts.language_standard(text.replace("-std=", "/std:"), "win32") == flag.replace(
        "-std=", "/std:"
    )
    assert _torch_facts.language_standard("nothing", "linux") is None


def test_the_installed_torch_names_its_standard() -> None:
    assert _torch_facts.facts()["standard"] is not None


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_no_flag_pins_a_language_standard_or_a_processor(platform: str) -> None:
    flags = [*_flags.compile_flags(platform), *_flags.link_flags(platform)]
    assert not [flag for flag in flags if "std" in flag or "march" in flag]


def test_no_file_of_the_extension_names_a_language_standard() -> None:
    native = _sources.PACKAGE.parent
    words = ["-std" + "=c++", "-std" + "=gnu++", "/std" + ":c++"]
    for path in [
        *native.rglob("*.py"),
        *native.rglob("*.cpp"),
        *native.rglob("*.h"),
        *native.rglob("*.toml"),
    ]:
        text = path.read_text(encoding="utf-8")
        assert not [word for word in words if word in text], path


@pytest.mark.parametrize(
    ("output", "error"),
    [
        (
            b"a.cpp: In function 'f':\na.cpp:3:5: error: no match\n   3 | x\n     | ^\nmore",
            "a.cpp:3:5: error: no match\n   3 | x\n     | ^",
        ),
        (b"cc1plus: fatal error: out of memory\n", "cc1plus: fatal error: out of memory"),
        (b"a.cpp(3): error C2065: 'x': undeclared\r\n", "a.cpp(3): error C2065: 'x': undeclared"),
        (b"/usr/bin/ld: a.o: undefined reference to `f'\n", "/usr/bin/ld: a.o: undefined reference to `f'"),
        (b"caf\xd3\n", "caf\ufffd"),
        (b"", ""),
    ],
)
def test_the_first_error_is_found_in_any_compilers_words(output: bytes, error: str) -> None:
    assert _events.first_error(output) == error


def test_a_failure_crosses_processes_unchanged() -> None:
    error = _events.BuildError(
        "no_compiler", "None.", first_error="e", source="s", log_path="l", remedies=("r",)
    )
    again = _events.BuildError.from_event(error.event())
    assert again.event() == error.event()
    assert again.exit_code == 3


def test_importing_the_package_does_not_import_torch() -> None:
    code = f"import sys; sys.path.insert(0, {str(_sources.PACKAGE.parent)!r})\n"
    code += "import self_attention_ext\nprint('torch' in sys.modules)"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    assert output.strip() == b"False"
