"""A sweep in the real window: its worker killed, then the window itself; the next window goes on with it."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from app.core import messages as m
from app.core.journal import replay
from app.core.recording import Recording
from app.core.sweep import finished_cells
from tests.e2e.conftest import Application

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def done(application: Application) -> int:
    return sum(isinstance(message, m.WorkloadDone) for message in application.messages())


def journal_of(application: Application) -> Recording:
    (path,) = (application.data / "unsaved").glob("*.jsonl")
    return replay(path)[0]


def counts(recording: Recording) -> dict[object, int]:
    return {r.workload: sum(len(s) for s in r.series.values()) for r in recording.records}


@pytest.mark.usefixtures("built_extension")
def test_a_sweep_survives_kill_9_of_the_worker_and_of_the_window(
    launch: Callable[..., Application], tmp_path: Path
) -> None:
    first = launch("--theme", "dark")
    first.wait_for_window()
    first.wait_until(lambda: first.samples_of("extension-fused"), 120)
    first.key("ctrl+shift+s", "space")
    first.wait_until(lambda: done(first) >= 2, 120)
    worker = first.child("worker")
    assert worker is not None
    worker.kill()
    first.wait_until(lambda: done(first) >= 3, 120)
    first.screenshot("sweep-running")
    first.process.send_signal(signal.SIGKILL)
    first.process.wait(10)

    left = journal_of(first)
    assert left.sweep is not None
    finished = finished_cells(left.sweep, left)
    assert finished >= 3
    before = {w: counts(left)[w] for w in left.sweep.workloads[:finished]}
    pids = {pid for r in left.records for pid in r.sampler_pids}
    assert len(pids) == 2

    (path,) = (first.data / "unsaved").glob("*.jsonl")
    second = launch(str(path), "--theme", "light")
    second.wait_for_window()
    second.wait_until(lambda: any(isinstance(t, m.BuildFinished) for t in second.messages()), 90)
    second.key("ctrl+shift+s")
    second.screenshot("sweep-restored")
    second.key("space")
    second.wait_until(lambda: _finished(second) >= finished + 1, 180)
    second.screenshot("sweep-resumed")
    code, _ = second.close()
    assert code == 0
    (kept,) = (second.data / "recent").glob("*.jsonl")
    again = replay(kept)[0]
    assert again.sweep is not None
    assert {w: counts(again)[w] for w in before} == before


def _finished(application: Application) -> int:
    found = list((application.data / "unsaved").glob("*.jsonl"))
    recording = replay(found[-1])[0] if found else Recording()
    return finished_cells(recording.sweep, recording) if recording.sweep is not None else 0
