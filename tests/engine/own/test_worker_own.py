"""A whole worker with a user's files: the others go on whatever becomes of one, and nothing is lost."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest

from app.core import messages as m
from app.core.catalog import BESIDE, TWIN
from app.core.own import OwnFile
from app.core.plan import Measure, Plan
from app.core.workload import Workload
from app.engine.headless import HeadlessRun
from tests.engine.client import Client
from tests.engine.own.files import GOOD, acting, write
from tests.engine.support import TINY, Stage, with_

COUNTED = Measure(max_seconds=0.4, min_rounds=5)
QUICK = Measure(max_seconds=0.4, min_rounds=5, counts=False, accuracy=False)


def start(
    client: Client, *files: OwnFile, measure: Measure = QUICK, generation: int = 1, **changes: Any
) -> None:
    workloads = changes.pop("workloads", (TINY,))
    plan = Plan(workloads, ("native", *(file.id for file in files)), "native", measure, own=files)
    client.send(m.Start(generation, plan, **changes))


def states(client: Client, name: str) -> list[m.ContenderState]:
    return [state for state in client.all(m.ContenderState) if state.implementation == name]


def sampled(client: Client, name: str) -> list[m.Sample]:
    return [
        sample
        for batch in client.all(m.Samples)
        for sample in batch.samples
        if batch.implementations[sample.implementation] == name
    ]


def test_it_is_sampled_in_the_same_rounds_checked_and_counted(tmp_path: Path) -> None:
    file = write(tmp_path, GOOD)
    with Client() as client:
        start(client, file, measure=COUNTED)
        client.hear(m.RunDone)
        rounds = {name: {s.round for s in sampled(client, name)} for name in ("native", TWIN, file.id)}
        assert rounds["native"] == rounds[TWIN]
        assert len(rounds["native"] - rounds[file.id]) <= 1
        assert {s.round for s in sampled(client, BESIDE + file.id)} == rounds[file.id]
        assert not [s for s in sampled(client, "native") if s.disturbed]
        checked = {message.implementation: message.accuracy for message in client.all(m.Checked)}
        assert checked[file.id].ok
        counted = {message.implementation: message for message in client.all(m.Counted)}
        assert counted[file.id].counts.operator_calls.forward
        # Nobody else is counted where a user's code ran.
        assert counted[file.id].pid != counted["native"].pid
        assert client.end() == 0


def at_the_flag(folder: Path, act: str) -> tuple[str, Path]:
    """A file that does something as soon as the test says so, by a file."""
    flag = folder / "flag"
    return acting(act, f"os.path.exists({str(flag)!r})"), flag


def test_a_crash_loses_nothing_and_every_workload_gets_a_new_process(tmp_path: Path) -> None:
    text, flag = at_the_flag(tmp_path, "os._exit(3)")
    bad, good = write(tmp_path, text, "bad.py"), write(tmp_path, GOOD)
    longer = msgspec.structs.replace(QUICK, max_seconds=3.0, target_ci=0.0005)
    with Client() as client:
        start(client, bad, good, workloads=(TINY, with_(TINY, seq_len=16)), measure=longer)
        client.hear(m.Samples, lambda _: bool(sampled(client, bad.id)))
        flag.touch()
        client.hear(m.RunDone)
        assert client.process.poll() is None
        said = [state for state in states(client, bad.id) if state.state == "failed"]
        assert [state.workload for state in said] == [0, 1]
        assert {state.reason for state in said} == {"its process ended with status 3"}
        assert sampled(client, bad.id)
        for index in range(2):
            names = {
                batch.implementations[sample.implementation]
                for batch in client.all(m.Samples)
                if batch.workload == index
                for sample in batch.samples
            }
            assert {"native", TWIN, good.id} <= names
        # The worker cannot die of it, so it is never announced as what it may die of.
        assert not [a for a in client.all(m.Active) if a.implementation in (bad.id, good.id)]
        assert client.end() == 0


def test_while_one_hangs_commands_are_answered_and_its_end_takes_nobody_along(tmp_path: Path) -> None:
    text, flag = at_the_flag(tmp_path, "time.sleep(600)")
    file = write(tmp_path, text)
    with Client() as client:
        start(client, file, live=True)
        client.hear(m.Samples, lambda _: bool(sampled(client, file.id)))
        flag.touch()
        client.hear(m.ContenderState, lambda s: s.implementation == file.id and s.state == "failed")
        assert states(client, file.id)[-1].reason.startswith("did not return within")
        before = len(sampled(client, "native"))
        client.hear(m.Samples, lambda _: len(sampled(client, "native")) > before + 20)
        flag.unlink()
        start(client, file, live=True, generation=2)
        client.hear(
            m.Samples,
            lambda b: (
                b.generation == 2
                and b.implementations.index(file.id) in {s.implementation for s in b.samples}
            ),
        )
        flag.touch()
        # In the middle of a turn that never ends.
        start(client, live=True, generation=3)
        client.hear(m.Samples, lambda batch: batch.generation == 3)
        assert client.end() == 0


def test_what_was_not_confirmed_as_it_is_now_does_not_run(tmp_path: Path) -> None:
    file = write(tmp_path, GOOD)
    write(tmp_path, GOOD.replace("import gc", f"open({str(tmp_path / 'ran')!r}, 'w'); import gc"))
    with Client() as client:
        start(client, file)
        client.hear(m.RunDone)
        assert states(client, file.id)[-1].reason == "mine.py was changed after it was confirmed"
        assert not (tmp_path / "ran").exists()
        assert sampled(client, "native")


def test_another_workload_is_prepared_in_the_same_process(tmp_path: Path) -> None:
    note = f"open({str(tmp_path / 'pids')!r}, 'a').write(f'{{os.getpid()}}\\n')"
    file = write(tmp_path, GOOD.replace("    return attention", f"    {note}\n    return attention"))
    with Client() as client:
        start(client, file, live=True)
        client.hear(m.ContenderState, lambda s: s.implementation == file.id and s.state == "ready")
        start(client, file, live=True, generation=2, workloads=(with_(TINY, seq_len=4),))
        client.hear(
            m.ContenderState,
            lambda s: s.implementation == file.id and s.state == "ready" and s.generation == 2,
        )
        assert len(set((tmp_path / "pids").read_text().split())) == 1
        start(client, live=True, generation=3)
        client.hear(m.Samples, lambda batch: batch.generation == 3)
        pid = int((tmp_path / "pids").read_text().split()[0])
        with contextlib.suppress(psutil.NoSuchProcess):
            psutil.Process(pid).wait(10)


def test_a_wrong_result_is_judged_by_the_worker(tmp_path: Path) -> None:
    file = write(tmp_path, acting("y = y * 1.001"))
    with Client() as client:
        start(client, file, measure=msgspec.structs.replace(QUICK, accuracy=True))
        client.hear(m.RunDone)
        checked = {message.implementation: message.accuracy for message in client.all(m.Checked)}
        assert checked["native"].ok
        assert not checked[file.id].ok


def test_without_own_implementations_no_guest_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage()
    run = HeadlessRun(
        stage.start("native", workloads=(Workload(batch=1, seq_len=2, device="cpu"),)), stage.shop
    )
    stage.drive(run, lambda: run.round > 6)
    assert not stage.shop.guests.are_there
