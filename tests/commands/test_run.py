"""`run`, `build` and `doctor` as a person types them, with the real worker on small workloads."""

from __future__ import annotations

import csv
import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from app.commands.doctor import nvcc
from app.commands.exits import MISSING, OK, WRONG
from app.commands.run import exit_code
from app.core import files
from app.core import messages as m
from tests import factories
from tests.conftest import ROOT

pytestmark = pytest.mark.e2e

SMALL = ("--set", "workload.batch=2", "--set", "workload.seq_len=8", "--set", "measure.max_seconds=0.4")
NO_EXTENSION = ("--set", "implementations=native,sdpa")


def attnscope(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "main.py"), *arguments],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        env=os.environ | environment,
    )


def by_name(document: dict[str, Any]) -> dict[str, Any]:
    return {result["implementation"]: result for result in document["results"]}


@pytest.mark.usefixtures("built_extension")
def test_quick_writes_four_kinds_of_files_and_counts_one_python_call(tmp_path: Path) -> None:
    done = attnscope("run", "profiles/quick.toml", "--set", "measure.max_seconds=1", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    document = json.loads((tmp_path / "recording.json").read_text())
    results = by_name(document)
    assert {r["status"] for r in results.values()} == {"measured"}
    assert results["extension-aten"]["counts"]["python_calls"] == {"forward": 1, "backward": None}
    assert results["extension-fused"]["counts"]["python_calls"] == {"forward": 1, "backward": None}
    assert results["extension-fused"]["counts"]["operator_calls"]["forward"] <= 4
    assert results["native"]["counts"]["python_calls"]["forward"] > 15
    assert all(r["counts"]["kernel_launches"] is None for r in results.values())
    assert all(r["accuracy"]["ok"] for name, r in results.items() if not name.startswith("@"))
    with (tmp_path / "samples.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == files.load(tmp_path / "recording.json").sample_count
    for name in ("native", "mha", "sdpa", "extension-aten", "extension-fused"):
        trace = json.loads(gzip.decompress((tmp_path / "traces" / f"{name}.json.gz").read_bytes()))
        assert trace["traceEvents"]
    report = (tmp_path / "report.html").read_text()
    assert "Extension (ATen)" in report
    assert "Extension (fused)" in report
    assert "launch" not in report.lower()


@pytest.mark.usefixtures("built_extension")
def test_decode_measures_each_contender_and_counts_one_python_call(tmp_path: Path) -> None:
    done = attnscope(
        "run", "profiles/decode.toml", "--set", "measure.max_seconds=0.5", "--set", "workload.embed_dim=64",
        "--set", "implementations=native,mha,sdpa,extension-aten,extension-fused", "--out", str(tmp_path),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    document = json.loads((tmp_path / "recording.json").read_text())
    results = by_name(document)
    assert results["mha"]["status"] == "unavailable"
    assert "keeps no keys and values" in results["mha"]["reason"]
    for name in ("native", "sdpa", "extension-aten", "extension-fused"):
        assert results[name]["status"] == "measured", name
        assert results[name]["accuracy"]["ok"], name
        assert results[name]["counts"]["python_calls"]["backward"] is None
    for name in ("extension-aten", "extension-fused"):
        assert results[name]["counts"]["python_calls"]["forward"] == 1
    assert results["extension-fused"]["counts"]["operator_calls"]["forward"] <= 4
    assert results["sdpa"]["counts"]["python_calls"]["forward"] > 10
    recording = files.load(tmp_path / "recording.json")
    assert recording.records[0].workload.mode == "decode"
    report = (tmp_path / "report.html").read_text()
    assert "1×1×64 after 128 cached, 4 heads, decode, float32" in report
    assert "Python calls per call<" in report, "no word of a backward pass there is not"


def test_json_is_one_document_on_stdout_and_nothing_of_a_library_on_stderr() -> None:
    done = attnscope("run", "quick", *SMALL, *NO_EXTENSION, "--json")
    assert done.returncode == 0
    document = json.loads(done.stdout)
    assert document["schema"] == 2
    assert by_name(document)["sdpa"]["stopped_because"] in ("target_ci", "max_seconds")
    assert "raw" not in document["results"][0]
    assert "STAGE" not in done.stderr
    assert "Kineto" not in done.stderr


def test_latency_comes_from_a_process_that_counted_nothing(tmp_path: Path) -> None:
    done = attnscope("run", "quick", *SMALL, *NO_EXTENSION, "--out", str(tmp_path))
    assert done.returncode == 0
    (record,) = files.load(tmp_path / "recording.json").records
    assert record.sampler_pids
    assert record.profiler_pids
    assert not record.sampler_pids & record.profiler_pids


def test_a_sweep_measures_every_cell_and_names_its_traces_apart(tmp_path: Path) -> None:
    done = attnscope(
        "run", "quick", *SMALL, *NO_EXTENSION, "--set", "sweep.seq_len=4,8", "--set", "measure.max_seconds=0.2",
        "--out", str(tmp_path),
    )  # fmt: skip
    assert done.returncode == 0
    opened = files.load(tmp_path / "recording.json")
    assert [record.workload.seq_len for record in opened.records] == [4, 8]
    assert all(record.stopped_because for record in opened.records)
    assert len(list((tmp_path / "traces").glob("*/native.json.gz"))) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_an_interrupted_run_keeps_what_it_measured(tmp_path: Path) -> None:
    process = start_run(tmp_path, "60")
    wait_for_sampling(process)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 130
    opened = files.load(tmp_path / "recording.json")
    assert len(opened.records[0].series["native"]) > 0
    assert (tmp_path / "samples.csv").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_killed_worker_is_replaced_and_the_run_ends_well(tmp_path: Path) -> None:
    process = start_run(tmp_path, "3")
    worker = wait_for_sampling(process)
    worker.kill()
    assert process.wait(90) == 0
    (record,) = files.load(tmp_path / "recording.json").records
    assert len(record.sampler_pids) == 2
    assert record.stopped_because


def test_without_a_compiler_native_is_measured_and_the_sentence_names_the_path(tmp_path: Path) -> None:
    done = attnscope(
        "run", "quick", *SMALL, "--set", "implementations=native,extension-aten", "--json",
        CXX="/nonexistent/c++", ATTNSCOPE_CACHE_DIR=str(tmp_path / "cache"),
    )  # fmt: skip
    assert done.returncode == MISSING
    results = by_name(json.loads(done.stdout))
    assert results["native"]["status"] == "measured"
    assert results["extension-aten"]["status"] == "unavailable"
    assert "/nonexistent/c++" in results["extension-aten"]["reason"]
    assert "/nonexistent/c++" in done.stderr


def test_a_device_that_is_not_there_ends_with_3_and_names_what_is() -> None:
    done = attnscope("run", "quick", "--set", "workload.device=cuda:7")
    assert done.returncode == MISSING
    (line,) = done.stderr.strip().splitlines()
    assert "cuda:7" in line
    assert "cpu" in line


def test_a_torch_that_does_not_import_is_a_sentence_everywhere(tmp_path: Path) -> None:
    package = tmp_path / "torch"
    package.mkdir()
    (package / "__init__.py").write_text('raise OSError("[WinError 126] a library is missing")')
    broken = {"PYTHONPATH": str(tmp_path)}
    for command in (("run", "quick"), ("build",), ("doctor",)):
        done = attnscope(*command, **broken)
        assert done.returncode == MISSING
        assert "WinError 126" in done.stdout + done.stderr
        assert "Traceback" not in done.stderr
    document = json.loads(attnscope("doctor", "--json", **broken).stdout)
    assert not document["ok"]
    assert document["environment"] is None


def test_doctor_finds_what_is_here() -> None:
    done = attnscope("doctor", "--json")
    document = json.loads(done.stdout)
    assert done.returncode == (0 if document["ok"] else MISSING)
    checks = {check["id"]: check for check in document["checks"]}
    assert checks["torch"]["level"] == "ok"
    assert {"compiler", "nvcc", "screen", "threads"} <= set(checks)
    assert document["environment"]["devices"][0]["id"] == "cpu"


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script stands in for nvidia-smi")
def test_nobody_calls_nvidia_smi_which_would_wake_an_idle_gpu(tmp_path: Path) -> None:
    mark = tmp_path / "woken"
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\ntouch '{mark}'\n")
    tool.chmod(0o755)
    # The worker comes up, looks for devices and takes its readings, as it does for a window at rest.
    done = attnscope("doctor", "--json", PATH=f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert json.loads(done.stdout)["environment"]["devices"]
    assert not mark.exists()


def test_a_missing_nvcc_says_where_it_was_looked_for(tmp_path: Path) -> None:
    nowhere = nvcc({"PATH": str(tmp_path)})
    assert nowhere.level == "optional"
    assert "not found in PATH" in nowhere.found
    named = nvcc({"PATH": str(tmp_path), "CUDA_HOME": str(tmp_path / "cuda")})
    assert str(tmp_path / "cuda") in named.found
    (tmp_path / "cuda" / "bin").mkdir(parents=True)
    (tmp_path / "cuda" / "bin" / "nvcc").touch()
    assert nvcc({"PATH": str(tmp_path), "CUDA_HOME": str(tmp_path / "cuda")}).level == "ok"


def test_the_exit_code_tells_a_wrong_result_from_a_missing_extension() -> None:
    assert exit_code(factories.recording(rounds=5)) == OK
    assert exit_code(factories.recording(rounds=5, wrong="output")) == WRONG
    unbuilt = factories.recording(rounds=5)
    unbuilt.apply(m.BuildFailed("no_compiler", "no compiler"))
    assert exit_code(unbuilt) == MISSING


def start_run(out: Path, seconds: str) -> subprocess.Popen[bytes]:
    """A run that does not stop early."""
    return subprocess.Popen(
        [
            sys.executable, str(ROOT / "main.py"), "run", "quick", *SMALL, *NO_EXTENSION,
            "--set", f"measure.max_seconds={seconds}", "--set", "measure.target_ci=0.0005", "--out", str(out),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip


def wait_for_sampling(process: subprocess.Popen[bytes]) -> psutil.Process:
    """The worker, once it has worked for longer than loading torch and preparing takes."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for child in psutil.Process(process.pid).children():
            if sum(child.cpu_times()[:2]) > 4.0:
                return child
        time.sleep(0.05)
    raise AssertionError("the worker did not come to work")
