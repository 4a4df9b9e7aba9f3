"""The command line: exit codes, one sentence on stderr, nothing imported that is not needed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from app.commands.window import BAD_PYSIDE, XCB_LIBRARIES, what_is_missing, why_refused, why_unreachable
from app.core.files import save
from app.core.plan import tomllib
from tests import factories
from tests.conftest import ROOT


def attnscope(
    *arguments: str, drop: tuple[str, ...] = (), **environment: str
) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if name not in drop}
    return subprocess.run(
        [sys.executable, str(ROOT / "main.py"), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=ROOT,
        env=inherited | environment,
    )


def one_sentence(done: subprocess.CompletedProcess[str]) -> str:
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    (line,) = done.stderr.strip().splitlines()
    return line


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[workload]\nheads = 3", ["workload.heads", "unknown key"]),
        ("[workload]\nbatch = 'x'", ["workload.batch", "whole number"]),
        ("[workload]\nnum_heads = 3", ["num_heads = 3", "divisor of embed_dim 128"]),
        ("[workload]\nseq_len = -1", ["seq_len = -1"]),
        ("[workload]\nseq_len = 1000000000000", ["131,072"]),
        ("[measure]\nmax_seconds = nan", ["nan"]),
        ("[", ["TOML"]),
    ],
)
def test_a_bad_profile_ends_with_2_and_names_the_place(tmp_path: Path, text: str, words: list[str]) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    done = attnscope("run", str(path), "--json")
    assert done.returncode == 2
    sentence = one_sentence(done)
    for word in ["bad.toml", *words]:
        assert word in sentence


def test_a_file_of_100_mb_ends_with_2_at_once(tmp_path: Path) -> None:
    path = tmp_path / "big.toml"
    with path.open("wb") as file:
        file.truncate(100_000_000)
    done = attnscope("run", str(path))
    assert done.returncode == 2
    assert "100.0 MB" in one_sentence(done)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("run", "quick", "--set", "workload.seq_len=many"), "workload.seq_len"),
        (("run", "quick", "--set", "nonsense"), "table.key=value"),
        (("run", "no-such-profile"), "no-such-profile"),
        (("run",), "PROFILE"),
        (("run", "quick", "--frobnicate"), "--frobnicate"),
        (("run", "quick", "--out", "/dev/null/x"), "--out"),
        (("report", "missing.json", "--format", "md"), "missing.json"),
        (("frobnicate",), "frobnicate"),
        (("--frobnicate",), "--frobnicate"),
    ],
)
def test_a_bad_flag_ends_with_2_and_names_it(arguments: tuple[str, ...], word: str) -> None:
    done = attnscope(*arguments)
    assert done.returncode == 2
    assert word in one_sentence(done)


def test_without_a_screen_the_window_says_so_and_names_the_headless_command() -> None:
    done = attnscope(drop=("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"))
    assert done.returncode == 3
    sentence = one_sentence(done)
    assert "no screen" in sentence
    assert "attnscope run quick" in sentence


def test_missing_libraries_are_named_with_the_packages_that_hold_them() -> None:
    def find(name: str) -> str | None:
        return None if name == "xcb-cursor" else f"lib{name}.so"

    sentence = what_is_missing({"DISPLAY": ":0"}, "linux", find)
    assert "libxcb-cursor0" in sentence
    assert "libxcb-icccm4" not in sentence
    assert what_is_missing({"DISPLAY": ":0"}, "linux", lambda name: "found") == ""
    assert what_is_missing({"WAYLAND_DISPLAY": "w"}, "linux", lambda name: None) == ""
    assert what_is_missing({"QT_QPA_PLATFORM": "offscreen"}, "linux", lambda name: None) == ""
    assert what_is_missing({}, "win32") == ""
    assert len(XCB_LIBRARIES) >= 6


@pytest.mark.parametrize("version", list(BAD_PYSIDE))
def test_a_pyside_that_breaks_plots_is_refused_here_and_by_pip(version: tuple[int, int, int]) -> None:
    assert "6.11.3" in why_refused(version)
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    requirement = next(Requirement(d) for d in declared if d.startswith("PySide6"))
    assert not requirement.specifier.contains(".".join(map(str, version)))
    assert requirement.specifier.contains("6.11.3")
    assert why_refused((6, 11, 3)) == ""


def test_a_report_is_written_to_stdout_and_to_a_file(tmp_path: Path) -> None:
    save(factories.recording(rounds=30), tmp_path / "r.json")
    shown = attnscope("report", str(tmp_path / "r.json"), "--format", "md")
    assert shown.returncode == 0
    assert "FASTER" in shown.stdout
    to_file = attnscope(
        "report", str(tmp_path / "r.json"), "--format", "html", "--out", str(tmp_path / "new" / "r.html")
    )
    assert (to_file.returncode, to_file.stdout) == (0, "")
    assert (tmp_path / "new" / "r.html").read_text().startswith("<!doctype html>")


def test_the_command_line_itself_loads_neither_qt_nor_torch() -> None:
    code = (
        "import sys, app.cli\n"
        "from app.commands import run, report, window, progress, worker_process\n"
        "bad = {'torch', 'PySide6', 'pyqtgraph'} & set(sys.modules)\n"
        "sys.exit(str(bad) if bad else 0)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_every_folder_of_python_is_packaged() -> None:
    declared = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"])
    found = {".".join(path.parent.relative_to(ROOT).parts) for path in (ROOT / "app").rglob("__init__.py")}
    assert found <= declared
    assert {"app.profiles", "self_attention_ext", "self_attention_ext.csrc"} <= declared


@pytest.mark.parametrize("command", [("run",), (), ("report", "--format", "md")])
def test_a_name_too_long_for_a_file_ends_with_2(command: tuple[str, ...]) -> None:
    done = attnscope(*command, "a" * 5000)
    assert done.returncode == 2
    one_sentence(done)


@pytest.mark.skipif(sys.platform == "win32", reason="arguments are text there")
def test_a_title_that_is_not_utf_8_ends_with_2_at_once() -> None:
    done = subprocess.run(
        [
            os.fsencode(sys.executable),
            os.fsencode(ROOT / "main.py"),
            b"run",
            b"quick",
            b"--set",
            b"title=\xff",
        ],
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert b"UTF-8" in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="X11")
def test_a_screen_that_does_not_answer_ends_with_3_and_not_in_an_abort_of_qt() -> None:
    drop = ("WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    done = attnscope(drop=drop, DISPLAY=":4077")
    assert done.returncode == 3
    assert ":4077 (DISPLAY) does not answer" in done.stderr or "not installed" in done.stderr
    one_sentence(done)


def test_a_session_that_has_ended_is_noticed_from_its_name(tmp_path: Path) -> None:
    gone = {"WAYLAND_DISPLAY": "wayland-9", "XDG_RUNTIME_DIR": str(tmp_path)}
    assert "wayland-9 (WAYLAND_DISPLAY) does not answer" in why_unreachable(gone, "linux")
    (tmp_path / "wayland-9").touch()
    assert why_unreachable(gone, "linux") == ""
    assert why_unreachable({"QT_QPA_PLATFORM": "offscreen"}, "linux") == ""
    assert why_unreachable({}, "win32") == ""
