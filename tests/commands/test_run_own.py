"""Own implementations on the command line: named, confirmed, measured, and never in the way of the others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.commands.exits import INPUT
from app.commands.report import report
from app.core import files
from tests.commands.test_run import SMALL, attnscope, by_name
from tests.engine.own.files import GOOD, acting, write

pytestmark = pytest.mark.e2e

FEW = ("--set", "implementations=native,sdpa", "--set", "measure.counts=false")


def test_unconfirmed_code_does_not_run_and_the_sentence_says_how(tmp_path: Path) -> None:
    file = write(tmp_path, f"open({str(tmp_path / 'ran')!r}, 'w')\n" + GOOD)
    done = attnscope("run", "quick", *SMALL, *FEW, "--add", file.path)
    assert done.returncode == INPUT
    assert done.stdout == ""
    for said in (file.path, f"{file.size_bytes:,} bytes", file.sha256[:16], "--trust"):
        assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "ran").exists()


def test_a_confirmation_holds_until_the_file_changes(tmp_path: Path) -> None:
    file = write(tmp_path, GOOD)
    profile = tmp_path / "own.toml"
    profile.write_text(
        'implementations = ["native", "./mine.py"]\n[measure]\nmax_seconds = 0.4\ncounts = false\n'
    )
    assert attnscope("run", str(profile), *SMALL).returncode == INPUT
    first = attnscope("run", str(profile), *SMALL, "--trust", "--json")
    assert first.returncode == 0, first.stderr
    assert by_name(json.loads(first.stdout))[file.id]["status"] == "measured"
    assert attnscope("run", str(profile), *SMALL).returncode == 0
    write(tmp_path, GOOD + "# edited\n")
    assert attnscope("run", str(profile), *SMALL).returncode == INPUT


def test_one_that_crashes_is_failed_with_its_reason_and_the_others_are_measured(tmp_path: Path) -> None:
    bad = write(tmp_path, acting("os._exit(9)", "calls > 30"), "bad.py")
    broken = write(tmp_path, "def broken(:\n", "broken.py")
    out = tmp_path / "out"
    added = ("--add", bad.path, "--add", broken.path, "--trust")
    done = attnscope("run", "quick", *SMALL, *FEW, *added, "--out", str(out))
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "Mine failed: its process ended with status 9" in done.stderr
    results = by_name(json.loads((out / "recording.json").read_text()))
    assert results["sdpa"]["verdict"] is not None
    assert results[bad.id]["status"] == "failed"
    assert "SyntaxError: invalid syntax (broken.py, line 1)" in results[broken.id]["reason"]
    assert "broken.py" in (out / "report.html").read_text()
    opened = files.load(out / "recording.json")
    assert opened.plan is not None
    assert {file.id for file in opened.plan.own} == {bad.id, broken.id}


def test_a_report_is_written_where_the_file_is_not(tmp_path: Path) -> None:
    import argparse

    file = write(tmp_path, GOOD)
    done = attnscope("run", "quick", *SMALL, *FEW, "--add", file.path, "--trust", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    Path(file.path).unlink()
    for kind in ("html", "md", "csv"):
        out = tmp_path / f"report.{kind}"
        report(
            argparse.Namespace(
                recording=tmp_path / "recording.json",
                format=kind,
                out=out,
                against=None,
                max_slowdown=None,
                by=None,
            )
        )
        assert "Mine" in out.read_text() or file.id in out.read_text()
    assert (
        f",{file.id}," in (tmp_path / "samples.csv").read_text()
        or file.id in (tmp_path / "samples.csv").read_text()
    )


def test_a_missing_file_is_named_before_anything_starts(tmp_path: Path) -> None:
    done = attnscope("run", "quick", "--add", str(tmp_path / "no.py"), "--trust")
    assert done.returncode == INPUT
    assert f"there is no file {tmp_path / 'no.py'}" in done.stderr
