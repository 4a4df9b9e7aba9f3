"""`trace` as typed: facts on stdout, oddities on stderr, a refusal in a sentence."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

SHARED = ROOT.parent / "shared" / "traces"


def kernel(name: str, at: float, duration: float, correlation: int) -> dict[str, object]:
    return {
        "ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": at, "dur": duration,
        "args": {"device": 0, "stream": 7, "correlation": correlation},
    }  # fmt: skip


def launch(at: float, correlation: int) -> dict[str, object]:
    return {
        "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": at, "dur": 2.0,
        "args": {"correlation": correlation},
    }  # fmt: skip


def operator(name: str, at: float, duration: float) -> dict[str, object]:
    return {
        "ph": "X",
        "cat": "cpu_op",
        "name": name,
        "pid": 1,
        "tid": 1,
        "ts": at,
        "dur": duration,
        "args": {},
    }


def write(path: Path, *events: dict[str, object]) -> Path:
    path.write_text(json.dumps({"traceEvents": events}))
    return path


def attnscope(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "main.py"), "trace", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ | {"PYTHONIOENCODING": "utf-8"},
    )


def test_facts_are_one_json_document(tmp_path: Path) -> None:
    path = write(tmp_path / "t.json", operator("aten::mm", 0, 10), launch(1, 5), kernel("k", 4, 3, 5))
    done = attnscope(path, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert found["kernels"]["total"] == 1
    assert found["matching"]["kernel_launches_matched"] == 1
    assert found["cpu_ops"]["top_level"] == 1


def test_a_summary_names_launches_without_a_kernel(tmp_path: Path) -> None:
    path = write(tmp_path / "t.json", launch(1, 5), launch(2, 6), kernel("k", 4, 3, 5))
    assert "1 launches with a kernel, 1 without" in attnscope(path).stdout


def test_a_trace_of_a_cpu_speaks_of_no_launch(tmp_path: Path) -> None:
    path = write(tmp_path / "t.json", operator("aten::mm", 0, 10))
    assert "launch" not in attnscope(path).stdout


def test_differences_are_of_the_file_against_the_other(tmp_path: Path) -> None:
    before = write(tmp_path / "before.json", operator("aten::mm", 0, 10), operator("aten::add", 20, 1))
    after = write(tmp_path / "after.json", operator("aten::mm", 0, 10), operator("aten::mul", 20, 1))
    entries = json.loads(attnscope(after, "--against", before, "--json").stdout)["entries"]
    assert {entry["name"]: entry["change"] for entry in entries} == {
        "aten::mm": "same",
        "aten::add": "removed",
        "aten::mul": "added",
    }
    assert "added" in attnscope(after, "--against", before).stdout


@pytest.mark.parametrize("content", [b"", b"{}", b"[1", b"\x1f\x8b\x08broken"])
def test_what_is_no_trace_is_refused_with_2_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "no.json"
    path.write_bytes(content)
    done = attnscope(path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "no.json" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"recorded traces are not at {SHARED}")
def test_an_incomplete_recorded_trace_opens_with_a_warning_on_stderr_or_is_refused() -> None:
    done = attnscope(SHARED / "broken" / "truncated.json.gz", "--json")
    assert done.returncode in (0, 2)
    assert "ends early" in done.stderr or "truncated" in done.stderr
    if done.returncode == 0:
        assert json.loads(done.stdout)["events"]["total"] < 2002
