"""`run --out DIR --resume`: a run that was killed goes on, and measures no finished cell again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import psutil
import pytest

from app.commands.run_journal import NAME
from app.core import files
from app.core import messages as m
from app.core.journal import Journal, replay
from app.core.plan import Plan, on_devices, read_profile
from app.core.recording import Recording
from app.core.sweep import finished_cells
from tests import factories
from tests.conftest import ROOT

pytestmark = pytest.mark.e2e

SWEEP = (
    "run", "quick", "--set", "implementations=native,sdpa", "--set", "workload.batch=1",
    "--set", "sweep.seq_len=2,4,8,16", "--set", "measure.max_seconds=0.5", "--set", "measure.counts=false",
    "--set", "measure.target_ci=0.0005",
)  # fmt: skip


def command(out: Path, *more: str) -> list[str]:
    return [sys.executable, str(ROOT / "main.py"), *SWEEP, "--out", str(out), *more]


def run(out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(out, *more), capture_output=True, text=True, timeout=280, check=False)


def break_off(out: Path, cells: int, how: signal.Signals) -> Recording:
    """Start the sweep, and end the program once so many cells are done; what its journal holds then."""
    process = subprocess.Popen(command(out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline:
        path = out / NAME
        if path.exists() and path.read_bytes().count(b'"type":"WorkloadDone"') >= cells:
            break
        assert process.poll() is None
        time.sleep(0.02)
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(how)
    process.wait(20)
    _, alive = psutil.wait_procs(children, timeout=10)
    assert not alive
    recording, _ = replay(out / NAME)
    return recording


def first_samples(recording: Recording) -> dict[int, float]:
    """When each finished cell was first sampled, by sequence length."""
    return {
        record.workload.seq_len: float(record.series["native"].at_s[0])
        for record in recording.records
        if record.stopped_because
    }


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("how", ["SIGKILL", "SIGINT"])
def test_a_killed_sweep_goes_on_where_it_was(tmp_path: Path, how: str) -> None:
    before = break_off(tmp_path, 2, getattr(signal, how))
    assert before.plan is not None
    done = finished_cells(before.plan, before)
    assert 2 <= done < 4
    finished = first_samples(before)
    counts = {r.workload: len(r.series["native"]) for r in before.records if r.stopped_because}

    again = run(tmp_path, "--resume")
    assert again.returncode == 0, again.stderr
    assert f"resuming: {done} of 4 workloads are measured, {4 - done} are left" in again.stderr
    assert f"{done + 1} of 4" in again.stderr
    assert "1 of 4 · " not in again.stderr
    after = files.load(tmp_path / "recording.json")
    assert [record.workload.seq_len for record in after.records] == [2, 4, 8, 16]
    assert all(record.stopped_because for record in after.records)
    times = first_samples(after)
    for length, at_s in finished.items():
        assert times[length] == pytest.approx(at_s, abs=1e-3)
    for record in after.records:
        if record.workload in counts:
            assert len(record.series["native"]) == counts[record.workload]
    assert not (tmp_path / NAME).exists()


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_killed_worker_in_a_sweep_is_replaced_and_no_finished_cell_is_measured_again(
    tmp_path: Path,
) -> None:
    process = subprocess.Popen(
        command(tmp_path), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    lines = []
    with process.stderr:
        for line in process.stderr:
            lines.append(line)
            if line.startswith("2 of 4"):
                (worker,) = [c for c in psutil.Process(process.pid).children() if "worker" in c.cmdline()]
                worker.kill()
    assert process.wait(200) == 0, lines
    cells = [line.split(" of ")[0] for line in lines if " of 4 · " in line]
    assert cells == ["1", "2", "3", "4"]
    assert any("SIGKILL" in line for line in lines)
    opened = files.load(tmp_path / "recording.json")
    assert len(opened.records[0].sampler_pids) == 1
    assert opened.records[0].sampler_pids != opened.records[3].sampler_pids


def broken_off(folder: Path, plan: Plan, cells: int, **environment: object) -> None:
    """A journal as a killed run of another day leaves it, cut off in the middle of a line."""
    journal = Journal(folder / NAME)
    made = msgspec.structs.replace(factories.environment(), **environment)
    journal.write(m.Ready(made, factories.START_S))
    journal.write(m.Start(1, plan))
    for index in range(cells):
        names = (*plan.implementations, "@twin")
        samples = tuple(
            m.Sample(n, i, factories.START_S + n, 1e-4, 2) for n in range(40) for i in range(len(names))
        )
        journal.write(m.Samples(1, index, 7, names, samples))
        journal.write(m.WorkloadDone(1, index, "target_ci"))
    journal.close(remove=False)
    with (folder / NAME).open("ab") as file:
        file.write(b'{"type":"Samples","generation":1,"work')


def sweep() -> Plan:
    overrides = [SWEEP[i + 1] for i, word in enumerate(SWEEP) if word == "--set"]
    plan = read_profile(ROOT / "profiles" / "quick.toml", overrides)
    return on_devices(plan, factories.environment())


def test_another_machine_is_refused_by_name_unless_asked_for(tmp_path: Path) -> None:
    broken_off(tmp_path, sweep(), 3, cpu="Another CPU")
    before = (tmp_path / NAME).read_bytes()
    refused = run(tmp_path, "--resume")
    assert refused.returncode == 2
    (line,) = [line for line in refused.stderr.splitlines() if "--resume:" in line]
    assert "cpu is " in line
    assert "was Another CPU" in line
    assert "--resume-anyway" in line
    assert (tmp_path / NAME).read_bytes() == before

    allowed = run(tmp_path, "--resume-anyway")
    assert allowed.returncode == 0, allowed.stderr
    assert "resuming: 3 of 4" in allowed.stderr
    assert "warning: resumed although" in allowed.stderr
    opened = files.load(tmp_path / "recording.json")
    assert any("Another CPU" in notice.text for notice in opened.notices)
    assert opened.records[0].sampler_pids == {7}
    assert opened.records[3].sampler_pids != {7}


def test_another_plan_is_refused_and_says_what_changed(tmp_path: Path) -> None:
    broken_off(tmp_path, sweep(), 3)
    refused = run(tmp_path, "--resume", "--set", "measure.max_seconds=0.7")
    assert refused.returncode == 2
    assert "measure.max_seconds (0.5 before, 0.7 now)" in refused.stderr
    assert (tmp_path / NAME).exists()


def test_without_resume_nothing_of_an_earlier_run_is_lost(tmp_path: Path) -> None:
    broken_off(tmp_path, sweep(), 3)
    kept = (tmp_path / NAME).read_bytes()
    done = run(tmp_path, "--set", "sweep.seq_len=2,4")
    assert done.returncode == 0, done.stderr
    assert "--resume was not given" in done.stderr
    assert (tmp_path / "journal-1.jsonl").read_bytes() == kept


def test_resume_without_a_folder_or_without_an_earlier_run_says_so(tmp_path: Path) -> None:
    no_folder = subprocess.run(
        [sys.executable, str(ROOT / "main.py"), *SWEEP, "--resume"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert no_folder.returncode == 2
    assert "--out" in no_folder.stderr
    fresh = run(tmp_path, "--resume", "--set", "sweep.seq_len=2,4", "--json")
    assert fresh.returncode == 0
    assert "no run broke off here" in fresh.stderr
    assert len(json.loads(fresh.stdout)["results"]) == 4
    assert os.listdir(tmp_path).count(NAME) == 0
