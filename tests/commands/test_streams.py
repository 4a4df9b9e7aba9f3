"""Standard streams that are closed, full or of another alphabet, and results that cannot be written."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from app.commands import run as run_module
from app.commands import streams
from app.commands.exits import INPUT, INTERRUPTED, MISSING, OK, CommandError
from app.commands.measuring import Measuring
from app.commands.progress import Progress
from app.core.files import save
from app.core.stored import SCHEMA
from tests import factories
from tests.conftest import ROOT

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="a shell's redirections")


@pytest.fixture
def recording_file(tmp_path: Path) -> Path:
    save(factories.recording(rounds=30), tmp_path / "r.json")
    return tmp_path / "r.json"


def shell(line: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    program = f"{sys.executable} {ROOT / 'main.py'}"
    return subprocess.run(
        ["/bin/sh", "-c", line.replace("attnscope", program)],
        capture_output=True,
        timeout=60,
        check=False,
        env=os.environ | environment,
    )


@POSIX
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("form", ["md", "json"])
def test_a_full_disk_behind_stdout_is_one_sentence(recording_file: Path, form: str) -> None:
    done = shell(f"attnscope report {recording_file} --format {form} >/dev/full")
    assert done.returncode == INPUT
    (line,) = done.stderr.decode().splitlines()
    assert line == "attnscope: stdout: cannot be written: No space left on device"


@POSIX
def test_closed_streams_end_nothing_and_are_given_to_no_file(recording_file: Path) -> None:
    done = shell(f"attnscope report {recording_file} --format md <&- >&-")
    assert (done.returncode, done.stderr) == (0, b"")
    target = recording_file.with_name("r.md")
    done = shell(f"attnscope report {recording_file} --format md --out {target} <&- >&- 2>&-")
    assert done.returncode == 0
    assert b"FASTER" in target.read_bytes()
    assert shell("attnscope report missing --format md 2>&-").returncode == INPUT


@POSIX
def test_a_reader_that_leaves_early_is_no_fault(recording_file: Path) -> None:
    done = shell(f"attnscope report {recording_file} --format json | head -c 5")
    assert (done.stdout[:1], done.stderr) == (b"{", b"")


@POSIX
def test_an_ascii_terminal_gets_escapes_and_json_stays_json(recording_file: Path) -> None:
    ascii_only = {"PYTHONIOENCODING": "ascii"}
    shown = shell("attnscope report × --format md", **ascii_only)
    assert shown.returncode == INPUT
    assert b"Traceback" not in shown.stderr
    assert b"\\xd7" in shown.stderr
    done = shell(f"attnscope report {recording_file} --format json", **ascii_only)
    assert json.loads(done.stdout)["schema"] == SCHEMA


def test_each_result_is_written_whatever_became_of_the_others(tmp_path: Path) -> None:
    (tmp_path / "recording.json").mkdir()
    (tmp_path / "traces").touch()
    unwritten = run_module.write_all(factories.recording(rounds=5), tmp_path, Progress(quiet=True))
    assert unwritten[0].startswith(f"{tmp_path / 'recording.json'}: cannot be written")
    assert (tmp_path / "samples.csv").is_file()
    assert (tmp_path / "report.html").is_file()


def test_results_that_cannot_be_written_are_still_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "recording.json").mkdir()

    def measure(self: Measuring) -> bool:
        self._recording.__dict__.update(factories.recording(rounds=30).__dict__)
        return True

    monkeypatch.setattr(Measuring, "run", measure)
    from app.cli import main

    assert main(["run", "quick", "--quiet", "--out", str(tmp_path)]) == INPUT
    shown = capsys.readouterr()
    assert "FASTER" in shown.out
    assert "recording.json: cannot be written" in shown.err


@POSIX
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_closed_terminal_is_an_interrupt_and_a_second_one_loses_nothing(name: str) -> None:
    number = getattr(signal, name)
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt), streams.ends_are_interrupts():
        signal.raise_signal(number)
    with streams.no_interrupts():
        signal.raise_signal(number)
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(number) is before


def test_progress_outlives_the_terminal_it_is_told_to() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w", buffering=1) as stream:
        Progress(stream).line("anybody there?")
        with pytest.raises(BrokenPipeError):
            stream.write("indeed nobody\n")
        with open(os.devnull, "w") as null:
            os.dup2(null.fileno(), writing)


def test_a_full_stdout_raises_a_sentence_in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

        def flush(self) -> None:
            pass

        def fileno(self) -> int:
            raise OSError

    monkeypatch.setattr(sys, "stdout", Full())
    with pytest.raises(CommandError, match="No space left"):
        streams.show("x")


def test_an_interrupt_before_the_first_sample_leaves_an_earlier_recording_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    save(factories.recording(rounds=30), tmp_path / "recording.json")
    before = (tmp_path / "recording.json").read_bytes()

    def measure(self: Measuring) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(Measuring, "run", measure)
    from app.cli import main

    assert main(["run", "quick", "--out", str(tmp_path)]) == INTERRUPTED
    assert (tmp_path / "recording.json").read_bytes() == before
    assert "nothing was measured yet" in capsys.readouterr().err


@pytest.mark.parametrize(("completed", "code"), [(True, OK), (False, MISSING)])
def test_a_run_that_was_given_up_does_not_end_well(
    completed: bool, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from app.cli import main

    def measure(self: Measuring) -> bool:
        self._recording.__dict__.update(factories.recording(rounds=30).__dict__)
        return completed

    monkeypatch.setattr(Measuring, "run", measure)
    assert main(["run", "quick", "--quiet"]) == code
