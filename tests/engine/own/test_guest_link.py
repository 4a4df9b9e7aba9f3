"""A guest as its worker has it: stopped between turns, and ended when it crashes, hangs, leaks or shouts."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from app.core.own import OwnFile
from app.engine.channel import Inbox
from app.engine.own.guest_link import GuestLink, Limits
from app.engine.own.protocol import Prepare, Prepared, Refused, Reply, Request, Take, Timed
from tests.engine.own.files import GOOD, acting, write
from tests.engine.support import TINY

PATIENCE_S = 90.0
Open = Callable[..., GuestLink]


@pytest.fixture
def opened() -> Iterator[Open]:
    links: list[GuestLink] = []

    def _open(file: OwnFile, **limits: Any) -> GuestLink:
        links.append(GuestLink(file, Inbox(), Limits(**limits)))
        return links[-1]

    yield _open
    for link in links:
        link.end()
        link.wait()


def answer(link: GuestLink, request: Request) -> Reply:
    link.ask(request, 0.01)
    end = time.monotonic() + PATIENCE_S
    while (reply := link.take(1.0)) is None:
        assert time.monotonic() < end
    return reply


def prepare(link: GuestLink) -> Reply:
    return answer(link, Prepare(1, TINY, link.file, "native", threads=1))


def refusal(link: GuestLink, turns: int = 30) -> Refused:
    """What it is refused with, in preparing or in one of some turns; its process is gone then."""
    reply = prepare(link)
    for number in range(turns):
        if isinstance(reply, Refused):
            break
        reply = answer(link, Take(2 + number))
    assert isinstance(reply, Refused), reply
    assert reply.state == "failed"
    assert link.is_over
    link.wait()
    assert not psutil.pid_exists(link.pid) or psutil.Process(link.pid).status() == "zombie"
    return reply


def used_s(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


@pytest.mark.skipif(sys.platform == "win32", reason="a signal's name")
def test_a_crash_is_told_with_the_line_it_happened_in(tmp_path: Path, opened: Open) -> None:
    crash = "import ctypes; ctypes.string_at(0)"
    link = opened(write(tmp_path, acting(crash, "calls > 40")))
    assert refusal(link).reason == "its process crashed (SIGSEGV) in mine.py, line 24"


def test_a_process_that_leaves_is_told(tmp_path: Path, opened: Open) -> None:
    link = opened(write(tmp_path, acting("os._exit(7)", "calls > 40")))
    assert refusal(link).reason == "its process ended with status 7"


def test_a_hang_is_ended_in_preparing_and_in_a_turn(tmp_path: Path, opened: Open) -> None:
    hang = opened(write(tmp_path, "while True: pass\n"), prepare_s=6.0)
    assert refusal(hang).reason == "did not return within 6 s"
    late = opened(write(tmp_path, acting("time.sleep(600)", "calls > 400"), "late.py"), turn_s=1.0)
    assert refusal(late, 3000).reason == "did not return within 1 s"


def test_allocating_without_end_ends_it_and_not_the_machine(tmp_path: Path, opened: Open) -> None:
    leak = "kept.append(torch.ones(4_000_000))"
    link = opened(write(tmp_path, acting(leak) + "\nkept = []\n"), memory_bytes=1_200_000_000)
    assert refusal(link).reason == "took more than 1.2 GB of memory"


def test_printing_without_end_ends_it_and_some_lines_do_not(tmp_path: Path, opened: Open) -> None:
    loud = opened(write(tmp_path, acting("print('x' * 5000)"), "loud.py"), printed_bytes=200_000)
    assert refusal(loud, 300).reason == "printed more than 0.2 MB"
    link = opened(write(tmp_path, acting("print('once')", "calls == 1")))
    assert isinstance(prepare(link), Prepared)
    assert "once" in link.output


@pytest.mark.skipif(sys.platform == "win32", reason="looks at process groups")
def test_between_turns_nothing_of_it_runs_neither_threads_nor_children(tmp_path: Path, opened: Open) -> None:
    spin = "import subprocess; subprocess.Popen([sys.executable, '-c', 'while True: pass'])"
    link = opened(write(tmp_path, acting(spin, "calls == 1")))
    assert isinstance(prepare(link), Prepared)
    child = psutil.Process(link.pid).children()[0]
    assert isinstance(answer(link, Take(2)), Timed)
    before = used_s(link.pid), used_s(child.pid)
    time.sleep(0.5)
    assert (used_s(link.pid), used_s(child.pid)) == before
    assert isinstance(answer(link, Take(3)), Timed)
    assert used_s(link.pid) > before[0]
    link.end()
    link.wait()
    assert not child.is_running() or child.status() == "zombie"


@pytest.mark.skipif(sys.platform == "win32", reason="sessions are POSIX")
def test_a_child_that_leaves_its_group_is_stopped_and_ended_too(tmp_path: Path, opened: Open) -> None:
    spin = (
        "import subprocess;"
        "subprocess.Popen([sys.executable, '-c', 'while True: pass'], start_new_session=True)"
    )
    link = opened(write(tmp_path, acting(spin, "calls == 1")))
    assert isinstance(prepare(link), Prepared)
    child = psutil.Process(link.pid).children()[0]
    assert os.getpgid(child.pid) != link.pid
    before = used_s(child.pid)
    time.sleep(0.3)
    assert used_s(child.pid) == before
    link.end()
    link.wait()
    assert not child.is_running() or child.status() == "zombie"


def test_an_abandoned_turn_is_stopped_where_it_is_and_its_answer_is_nobodys(
    tmp_path: Path, opened: Open
) -> None:
    link = opened(write(tmp_path, acting("time.sleep(0.05)")))
    assert isinstance(prepare(link), Prepared)
    link.ask(Take(7), 0.1)
    assert link.take(0.0) is None
    link.abandon()
    assert link.current is None
    reply = answer(link, Take(8))
    assert isinstance(reply, Timed)
    assert reply.id == 8


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the pipe and the process group see to it")
def test_a_stopped_guest_dies_with_its_worker(tmp_path: Path) -> None:
    file = write(tmp_path, GOOD)
    script = f"""
import sys
sys.path[:0] = {[path for path in sys.path if path]!r}
from app.core.own import examine
from app.engine.channel import Inbox
from app.engine.own.guest_link import GuestLink
from app.engine.own.protocol import Prepare
from tests.engine.support import TINY
from pathlib import Path
link = GuestLink(examine(Path({file.path!r})).file, Inbox())
link.ask(Prepare(1, TINY, link.file, "native"))
while link.take(1.0) is None: pass
print(link.pid, flush=True)
sys.stdin.read()
"""
    with psutil.Popen([sys.executable, "-c", script], stdin=-1, stdout=-1) as worker:
        assert worker.stdout is not None
        guest = psutil.Process(int(worker.stdout.readline()))
        worker.kill()
        worker.wait()
        guest.wait(10)
