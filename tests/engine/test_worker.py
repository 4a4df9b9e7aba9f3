"""The worker process from outside: its protocol, its ends, and what its contenders may do to it."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from app.core import messages as m
from app.core.plan import Measure
from tests.engine.client import Client
from tests.engine.support import TINY, with_

COUNTING = Measure(max_seconds=0.3, min_rounds=5, accuracy=False)

# Contenders for tests: each does something that one should not.
MISCHIEF = """
import os, signal, sys
from app.engine.implementations import Implementation, native, shipped
from app.engine.worker import run_worker

def mischief(act):
    def prepare(workload, inputs):
        forward = native.prepare(workload, inputs)
        def call():
            act()
            return forward()
        return call
    return prepare

def crash():
    os.kill(os.getpid(), signal.SIGSEGV)

def shout():
    print("printed by a contender")
    sys.stdout.flush()
    os.write(1, b"written by a contender\\n")

def read():
    assert sys.stdin.read() == "" and os.read(0, 10) == b""

def look():
    found = [name for name in sys.modules if name.startswith(("PySide", "pyqtgraph", "app.gui"))]
    assert not found, found

def leave():
    raise SystemExit(0)

if __name__ == "__main__":
    registry = shipped()
    for act in (crash, shout, read, look, leave):
        registry[act.__name__] = Implementation(act.__name__, mischief(act))
    sys.exit(run_worker(registry=registry))
"""


def test_a_headless_run_from_hello_to_done():
    with Client() as client:
        hello = client.hear(m.Hello)
        assert hello.pid == client.process.pid
        assert hello.protocol == m.PROTOCOL
        environment = client.hear(m.Ready).environment
        assert environment.devices[0].id == "cpu"
        assert environment.threads
        assert environment.denormals_flushed is False
        client.start("native", "sdpa", measure=Measure(max_seconds=0.5, counts=False))
        client.hear(m.RunDone)
        sampled = {
            batch.implementations[sample.implementation]
            for batch in client.all(m.Samples)
            for sample in batch.samples
        }
        assert sampled == {"native", "sdpa", "@twin"}
        # Latency never comes from a process that profiled.
        assert {batch.pid for batch in client.all(m.Samples)} == {hello.pid}
        assert all(checked.accuracy.ok for checked in client.all(m.Checked))
        assert client.end() == 0


def test_hello_comes_before_torch_is_loaded():
    with Client() as client:
        hello = client.hear(m.Hello)
        ready = client.hear(m.Ready)
        assert ready.at_s - hello.at_s > 0.2
        client.end()


def test_counts_come_from_another_process_and_nothing_is_said_on_stderr(tmp_path: Path):
    # Neither process may take an `app` that lies in the current folder for ours.
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "__init__.py").write_text("raise SystemExit('the wrong app')")
    with Client(cwd=tmp_path) as client:
        client.start("native", measure=COUNTING)
        client.hear(m.RunDone)
        counted = client.all(m.Counted)
        assert len(counted) == 1, client.all(m.CountFailed)
        assert counted[0].pid != client.process.pid
        assert counted[0].counts.python_calls.forward > 15
        assert counted[0].trace_gz
        assert client.end() == 0
        assert b"Kineto" not in client.stderr
        assert b"INFO" not in client.stderr


def test_a_killed_profiler_child_is_noticed_and_counting_goes_on():
    with Client() as client:
        client.start("native", "sdpa", measure=Measure(accuracy=False), live=True)
        first = client.hear(m.Counted)
        client.hear(m.Counted, lambda counted: counted.implementation == "sdpa")
        os.kill(first.pid, signal.SIGKILL)
        client.hear(m.Notice, lambda notice: "profiler" in notice.text)
        client.send(m.Profile())
        assert client.hear(m.Counted).pid != first.pid
        assert client.hear(m.Samples).pid == client.process.pid
        assert client.end() == 0


def test_what_is_no_command_is_ignored_and_said():
    with Client() as client:
        client.hear(m.Ready)
        client.write(b"garbage\n" + b'{"type":"Nothing"}\n' + b"\xff\xd3\n" + b'{"type":"Start"}\n')
        for _ in range(4):
            assert "ignored" in client.hear(m.Notice).text
        client.start("native")
        client.hear(m.RunDone)
        assert client.end() == 0


def test_commands_may_arrive_in_pieces():
    with Client() as client:
        plan_line = m.encode(m.Start(5, _plan()))
        for start in range(0, len(plan_line), 7):
            client.write(plan_line[start : start + 7])
        assert client.hear(m.RunDone).generation == 5
        client.end()


def _plan():
    from app.core.plan import Plan
    from tests.engine.client import SHORT

    return Plan(workloads=(TINY,), implementations=("native",), measure=SHORT)


def test_a_changed_workload_is_sampled_soon_and_the_old_one_is_over():
    with Client() as client:
        client.start("native", "sdpa", live=True, measure=Measure(counts=False))
        client.hear(m.Samples)
        for generation in range(2, 6):
            time.sleep(0.1)
            begun = time.monotonic()
            client.start(
                "native",
                "sdpa",
                generation=generation,
                workload=with_(TINY, seq_len=4 * generation),
                live=True,
                measure=Measure(counts=False),
            )
            client.hear(m.Samples, lambda batch: batch.generation == generation)  # noqa: B023
            # 0.3 s is the promise on a quiet machine.
            assert time.monotonic() - begun < 1.5
        client.send(m.Pause())
        client.end()
        generations = [batch.generation for batch in client.all(m.Samples)]
        assert generations == sorted(generations)


def test_a_pause_stops_samples_and_holds_over_a_new_start():
    with Client() as client:
        client.start("native", live=True, measure=Measure(counts=False, accuracy=False))
        client.hear(m.Samples)
        client.send(m.Pause())
        client.start("native", generation=2, live=True, measure=Measure(counts=False, accuracy=False))
        client.hear(m.Telemetry)
        client.hear(m.Telemetry)
        assert not [batch for batch in client.all(m.Samples) if batch.generation == 2]
        client.send(m.Resume())
        client.hear(m.Samples, lambda batch: batch.generation == 2)
        client.end()


def test_contenders_reach_neither_the_protocol_nor_qt_and_one_that_asks_to_leave_stays_alone():
    with Client(MISCHIEF) as client:
        client.start("native", "shout", "read", "look", "leave")
        client.hear(m.RunDone)
        states = {state.implementation: state.state for state in client.all(m.ContenderState)}
        assert states.pop("leave") == "failed"
        assert states == dict.fromkeys(("native", "shout", "read", "look"), "ready")
        assert client.end() == 0
        assert b"printed by a contender" in client.stderr
        assert b"written by a contender" in client.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="a signal is sent")
def test_a_contender_that_crashes_was_named_before():
    with Client(MISCHIEF) as client:
        client.start("native", "crash", live=True)
        with pytest.raises(AssertionError, match="ended"):
            client.hear(m.RunDone)
        assert client.process.returncode == -signal.SIGSEGV
        assert client.all(m.Active)[-1] == m.Active(1, 0, "crash", "first call")
        # What was sampled before is not lost with the process.
        assert client.all(m.Samples)


def _ends_with_its_children(client: Client, end: Callable[[], object]) -> None:
    """Start a pass, end the worker, and see that its child is gone with it."""
    worker = psutil.Process(client.process.pid)
    client.start("native", live=True, measure=Measure(accuracy=False))
    deadline = time.monotonic() + 30
    while not worker.children() and time.monotonic() < deadline:
        client.hear(m.Samples)
    children = worker.children(recursive=True)
    assert children
    begun = time.monotonic()
    end()
    client.process.wait(10)
    assert time.monotonic() - begun < 6
    _, left = psutil.wait_procs(children, timeout=5)
    # An orphan that has ended stays a zombie where the first process of a container reaps none.
    assert [child for child in left if child.status() != psutil.STATUS_ZOMBIE] == []


def test_the_end_of_stdin_ends_the_worker_and_its_child_in_the_middle_of_a_pass():
    with Client() as client:
        _ends_with_its_children(client, client.process.stdin.close)
        assert client.process.returncode == 0


def test_shutdown_ends_the_worker_and_its_child():
    with Client() as client:
        _ends_with_its_children(client, lambda: client.send(m.Shutdown()))
        assert client.process.returncode == 0


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM from outside")
def test_sigterm_ends_the_worker_and_its_child():
    with Client() as client:
        _ends_with_its_children(client, client.process.terminate)
        assert client.process.returncode == 0


def test_a_killed_worker_leaves_no_child():
    with Client() as client:
        _ends_with_its_children(client, client.process.kill)


@pytest.mark.skipif(sys.platform == "win32", reason="signals as on POSIX")
def test_ctrl_c_belongs_to_the_client():
    with Client() as client:
        client.hear(m.Ready)
        client.process.send_signal(signal.SIGINT)
        client.start("native")
        client.hear(m.RunDone)
        assert client.end() == 0


@pytest.mark.skipif(sys.platform == "win32", reason="signals as on POSIX")
def test_a_worker_inside_one_endless_call_still_ends():
    script = MISCHIEF.replace(
        "def leave():\n    raise SystemExit(0)", "def leave():\n    torch_sleep()"
    ).replace(
        "def mischief(act):",
        "def torch_sleep():\n    import ctypes\n    ctypes.CDLL(None).sleep(600)\n\ndef mischief(act):",
    )
    with Client(script) as client:
        client.start("leave", live=True)
        client.hear(m.Active, lambda active: active.step == "first call")
        begun = time.monotonic()
        client.process.stdin.close()
        client.process.wait(10)
        assert time.monotonic() - begun < 6


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('raise OSError("[WinError 126] a module was not found")', "WinError 126"),
        ('raise ImportError("libcudart.so.13: cannot open shared object file")', "libcudart"),
    ],
)
def test_a_torch_that_does_not_import_is_reported_with_a_way_out(tmp_path: Path, body: str, expected: str):
    package = tmp_path / "torch"
    package.mkdir()
    (package / "__init__.py").write_text(body)
    with Client(PYTHONPATH=str(tmp_path)) as client:
        fatal = client.hear(m.Fatal)
        assert expected in fatal.reason
        assert "torch" in fatal.remedy
        assert client.process.wait(10) == 3
        assert b"Traceback" not in client.stderr
