"""Sweeps in a session, against a worker without torch: cells, pauses, deaths, and what a crash leaves."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from pytestqt.qtbot import QtBot

from app.core import files
from app.core import messages as m
from app.core.journal import Journal, messages_of, replay
from app.core.plan import Plan
from app.core.recording import Recording
from app.core.results import all_entries
from app.core.sweep import finished_cells, sweep_plan
from app.core.workload import Workload
from app.gui import worker_link
from app.gui.journals import Journals
from app.gui.session import Session
from app.gui.sweep_run import SweepStatus
from tests import factories
from tests.conftest import ROOT
from tests.gui import sweeps

pytestmark = pytest.mark.gui

Make = Callable[..., Session]
NAMES = ("native", "sdpa")


@pytest.fixture
def make(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Make]:
    sessions: list[Session] = []
    monkeypatch.setattr(
        worker_link, "command", lambda *_: [sys.executable, str(ROOT / "tests" / "fake_worker.py")]
    )

    def session(*faults: str) -> Session:
        monkeypatch.setenv("ATTNSCOPE_FAKE", ",".join(faults))
        made = Session(journals=Journals(tmp_path / "data"), enabled=NAMES)
        sessions.append(made)
        return made

    yield session
    for made in sessions:
        made.close()


def plan(lengths: tuple[int, ...] = (2, 4, 8, 16, 32)) -> Plan:
    return sweep_plan(Workload(device="cpu"), {"seq_len": lengths}, NAMES, "native")


def status(session: Session) -> SweepStatus:
    found = session.snapshot(None).sweep
    assert found is not None
    return found


def started(session: Session, qtbot: QtBot, lengths: tuple[int, ...] = (2, 4, 8, 16, 32)) -> None:
    session.start()
    qtbot.waitUntil(lambda: session.environment is not None, timeout=20000)
    session.start_sweep(plan(lengths))


def samples(recording: Recording) -> dict[Workload, int]:
    return {r.workload: sum(len(s) for s in r.series.values()) for r in recording.records}


def test_cells_fill_one_by_one_and_live_measuring_goes_on_after(make: Make, qtbot: QtBot) -> None:
    session = make()
    started(session, qtbot)
    before = session.workload
    assert status(session).state == "running"
    qtbot.waitUntil(lambda: status(session).done == 2, timeout=20000)
    left = status(session).left_s
    assert left is not None
    assert 0 <= left < 60
    assert status(session).active in status(session).plan.workloads
    assert session.snapshot(None).record.workload == before  # type: ignore[union-attr]
    qtbot.waitUntil(lambda: status(session).state == "done", timeout=20000)
    assert status(session).is_complete
    assert session.live.sweep == status(session).plan
    cells = {r.workload: r for r in session.live.records if r.workload in status(session).plan.workloads}
    assert len(cells) == 5
    assert all(r.stopped_because for r in cells.values())
    live = session.live.record_for(before)
    assert live is not None
    count = sum(len(s) for s in live.series.values())
    qtbot.waitUntil(lambda: sum(len(s) for s in live.series.values()) > count + 20, timeout=20000)


def test_a_pause_stops_the_cell_and_its_clock(make: Make, qtbot: QtBot) -> None:
    session = make()
    started(session, qtbot)
    qtbot.waitUntil(lambda: status(session).done >= 1, timeout=20000)
    session.pause()
    assert status(session).state == "paused"
    qtbot.wait(200)
    count = session.live.sample_count
    qtbot.wait(300)
    assert session.live.sample_count == count
    session.resume_sweep()
    assert status(session).state == "running"
    qtbot.waitUntil(lambda: status(session).state == "done", timeout=20000)


def test_a_cancelled_sweep_measures_live_and_goes_on_without_repeating_a_cell(
    make: Make, qtbot: QtBot
) -> None:
    session = make()
    started(session, qtbot)
    qtbot.waitUntil(lambda: status(session).done >= 2, timeout=20000)
    session.cancel_sweep()
    done = status(session).done
    assert status(session).state == "stopped"
    finished = {w: samples(session.live)[w] for w in status(session).plan.workloads[:done]}
    assert session.live.plan is not None
    assert len(session.live.plan.workloads) == 1
    qtbot.wait(300)
    session.resume_sweep()
    assert status(session).state == "running"
    qtbot.waitUntil(lambda: status(session).state == "done", timeout=20000)
    after = samples(session.live)
    assert {w: after[w] for w in finished} == finished


def test_changing_the_workload_stops_the_sweep_and_late_messages_reach_no_cell(
    make: Make, qtbot: QtBot
) -> None:
    session = make()
    started(session, qtbot)
    qtbot.waitUntil(lambda: status(session).done >= 1, timeout=20000)
    generation = session.live.generation
    session.set_workload(Workload(seq_len=77, device="cpu"))
    assert status(session).state == "stopped"
    before = samples(session.live)
    late = m.Samples(generation, 3, 1, ("native",), (m.Sample(0, 0, 1.0, 1e-3, 1),))
    assert not session.live.apply(late)
    assert samples(session.live) == before
    assert not session.live.apply(m.WorkloadDone(generation, 3, "target_ci"))


def test_showing_a_cell_does_not_disturb_the_sweep(make: Make, qtbot: QtBot) -> None:
    session = make()
    started(session, qtbot)
    qtbot.waitUntil(lambda: status(session).done >= 1, timeout=20000)
    first = status(session).plan.workloads[0]
    session.show_cell(first)
    assert session.workload == first
    snapshot = session.snapshot(None)
    assert snapshot.record is not None
    assert snapshot.record.workload == first
    assert status(session).state == "running"
    qtbot.waitUntil(lambda: status(session).state == "done", timeout=20000)
    session.show_cell(status(session).plan.workloads[1])
    assert session.live.plan is not None
    assert session.live.plan.workloads == (status(session).plan.workloads[1],)


def test_a_killed_worker_is_replaced_and_no_finished_cell_is_measured_again(make: Make, qtbot: QtBot) -> None:
    session = make()
    started(session, qtbot)
    qtbot.waitUntil(lambda: status(session).done >= 2, timeout=20000)
    pid = session.worker_pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    qtbot.waitUntil(lambda: session.worker_pid not in (None, pid), timeout=20000)
    done = status(session).done
    finished = {w: samples(session.live)[w] for w in status(session).plan.workloads[:done]}
    qtbot.waitUntil(lambda: status(session).state == "done", timeout=20000)
    after = samples(session.live)
    assert {w: after[w] for w in finished} == finished
    assert all(session.live.record_for(w).stopped_because for w in status(session).plan.workloads)  # type: ignore[union-attr]


def test_a_pause_holds_over_the_death_of_the_worker(make: Make, qtbot: QtBot) -> None:
    session = make()
    started(session, qtbot)
    qtbot.waitUntil(lambda: status(session).done >= 1, timeout=20000)
    session.pause()
    pid = session.worker_pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    qtbot.waitUntil(lambda: session.worker_pid not in (None, pid), timeout=20000)
    qtbot.waitUntil(lambda: session.environment is not None, timeout=20000)
    assert status(session).state == "paused"
    assert session.paused
    session.resume_sweep()
    qtbot.waitUntil(lambda: status(session).state == "done", timeout=20000)


def test_a_contender_that_crashes_in_one_cell_runs_in_the_others(make: Make, qtbot: QtBot) -> None:
    session = make("segfault:sdpa:8")
    started(session, qtbot)
    qtbot.waitUntil(lambda: status(session).state == "done", timeout=30000)
    by_length = {r.workload.seq_len: r for r in session.live.records if r.workload.seq_len < 64}
    assert by_length[8].status["sdpa"].state == "failed"
    assert "SIGSEGV" in by_length[8].status["sdpa"].reason
    assert len(by_length[8].series["native"])
    for length in (2, 4, 16, 32):
        assert by_length[length].status["sdpa"].state == "ready", length
        assert len(by_length[length].series["sdpa"])


def test_a_killed_window_leaves_a_sweep_that_the_next_one_goes_on_with(
    make: Make, qtbot: QtBot, tmp_path: Path
) -> None:
    first = make()
    started(first, qtbot)
    qtbot.waitUntil(lambda: status(first).done >= 2, timeout=20000)
    first._flush()
    path = first._journal.path  # type: ignore[union-attr]
    # As kill -9 leaves it: no end of the journal, a line cut off, the lock of a process that is gone.
    left = tmp_path / "data" / "unsaved" / "20260101-120000-1.jsonl"
    left.write_bytes(path.read_bytes() + b'{"type":"Samples","gen')
    first.close()
    done = finished_cells(replay(left)[0].sweep, replay(left)[0])  # type: ignore[arg-type]
    assert done >= 2

    second = make()
    found: list[object] = []
    sweeps_found: list[bool] = []
    second.recovered_available.connect(found.extend)
    second.sweep_found.connect(lambda: sweeps_found.append(True))
    second.start()
    assert [f.path for f in found] == [left]  # type: ignore[attr-defined]
    qtbot.waitUntil(lambda: second.environment is not None, timeout=20000)
    second.open_recording(left)
    qtbot.waitUntil(lambda: second.viewing is not None, timeout=20000)
    assert sweeps_found
    shown = status(second)
    assert (shown.state, shown.done, shown.obstacle) == ("recorded", done, "")
    finished = {w: samples(second.recording)[w] for w in shown.plan.workloads[:done]}

    second.resume_sweep()
    assert second.viewing is None
    assert status(second).state == "running"
    assert not left.exists()
    qtbot.waitUntil(lambda: status(second).state == "done", timeout=20000)
    after = samples(second.live)
    assert {w: after[w] for w in finished} == finished
    second._flush()
    again, unreadable = replay(second._journal.path)  # type: ignore[union-attr]
    assert unreadable == 1
    assert {w: samples(again)[w] for w in finished} == finished
    assert finished_cells(again.sweep, again) == 5  # type: ignore[arg-type]


def test_a_sweep_in_a_saved_file_goes_on_and_the_file_stays(make: Make, qtbot: QtBot, tmp_path: Path) -> None:
    partial = swept(plan(), 2)
    path = tmp_path / "half.json"
    files.save(partial, path)
    saved = path.read_bytes()
    session = make()
    session.start()
    qtbot.waitUntil(lambda: session.environment is not None, timeout=20000)
    session.open_recording(path)
    assert status(session).done == 2
    session.resume_sweep()
    qtbot.waitUntil(lambda: status(session).state == "done", timeout=20000)
    assert path.read_bytes() == saved
    session._flush()
    journalled, unreadable = replay(session._journal.path)  # type: ignore[union-attr]
    assert unreadable == 0
    assert finished_cells(journalled.sweep, journalled) == 5  # type: ignore[arg-type]


def test_a_sweep_of_another_machine_says_what_differs(make: Make, qtbot: QtBot, tmp_path: Path) -> None:
    partial = swept(plan(), 2)
    partial.environment = msgspec.structs.replace(factories.environment(), cpu="Another CPU")
    path = tmp_path / "half.json"
    files.save(partial, path)
    session = make()
    session.start()
    qtbot.waitUntil(lambda: session.environment is not None, timeout=20000)
    session.open_recording(path)
    assert "was Another CPU" in status(session).obstacle


def swept(made_of: Plan, cells: int) -> Recording:
    """A recording in which so many cells are done."""
    made = Recording()
    made.apply(m.Ready(factories.environment(), factories.START_S))
    made.begin(m.Start(1, made_of))
    names = (*made_of.implementations, "@twin")
    for index in range(cells):
        rows = tuple(
            m.Sample(n, i, factories.START_S + index + n / 50, 1e-4 * (1 + i / 10 + n / 1e4), 2)
            for n in range(40)
            for i in range(len(names))
        )
        for name in made_of.implementations:
            made.apply(m.ContenderState(1, index, name, "ready"))
        made.apply(m.Samples(1, index, 7, names, rows))
        made.apply(m.WorkloadDone(1, index, "target_ci"))
    return made


def test_what_a_file_holds_survives_being_written_as_a_journal(tmp_path: Path) -> None:
    made = sweeps.measured(sweeps.plan_of(sweeps.THREE))
    path = tmp_path / "made.json"
    files.save(made, path)
    opened = files.load(path)
    journal = Journal(tmp_path / "made.jsonl")
    for message in messages_of(opened):
        journal.write(message)
    journal.close(remove=False)
    again, unreadable = replay(tmp_path / "made.jsonl")
    assert unreadable == 0
    assert again.sweep == opened.sweep
    assert all_entries(again) == all_entries(opened)
    assert len(all_entries(again)) == 12 * 5
