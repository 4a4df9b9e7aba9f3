"""The profiler child from the worker's side: replaced when it dies, grows or takes too long."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from app.engine import profiler_link
from app.engine.channel import Deliver, Inbox
from app.engine.profiler_link import ProfilerLink
from app.engine.profiler_protocol import CountPassed, CountRefused, CountRequest
from tests.conftest import ROOT
from tests.engine.support import TINY

CHILD = f"""
import os, sys, time
sys.path.insert(0, {str(ROOT)!r})
from app.core.measurements import Counts
from app.engine.profiler_protocol import *
out = sys.stdout.buffer
def say(m):
    out.write(encode(m)); out.flush()
say(ProfilerReady(os.getpid()))
for line in sys.stdin.buffer:
    request = decode_request(line)
    if request.implementation == "sleepy": time.sleep(600)
    if request.implementation == "deadly": os.kill(os.getpid(), 9)
    if request.implementation == "chatty": out.write(b"[W] a library speaks\\n")
    if request.implementation == "refused": say(CountRefused(request.id, os.getpid(), "no event")); continue
    say(CountPassed(request.id, os.getpid(), Counts(), trace_gz=b"x" * 100_000))
"""


class Host:
    def __init__(self, **changes: Any) -> None:
        self.inbox = Inbox()
        self.answers: list[CountPassed | CountRefused] = []
        self.notices: list[str] = []
        self.link = ProfilerLink(
            self.inbox,
            self.answers.append,
            lambda text, level: self.notices.append(text),
            command=(sys.executable, "-c", CHILD),
            **changes,
        )
        self._id = 0

    def ask(self, name: str = "native") -> int:
        self._id += 1
        self.link.request(CountRequest(self._id, TINY, name))
        return self._id

    def wait(self, answers: int) -> None:
        deadline = time.monotonic() + 30
        while len(self.answers) < answers and time.monotonic() < deadline:
            self.turn(0.05)
        assert len(self.answers) == answers

    def turn(self, seconds: float) -> None:
        event = self.inbox.take(seconds)
        if isinstance(event, Deliver):
            event.action()
        self.link.look()


@pytest.fixture
def host() -> Iterator[Host]:
    made = Host()
    yield made
    made.link.close()


def test_nothing_is_started_before_something_is_asked(host: Host):
    assert host.link.pid is None
    assert not host.link.busy


def test_requests_are_answered_in_order_by_one_child(host: Host):
    asked = [host.ask() for _ in range(4)]
    assert host.link.busy
    host.wait(4)
    assert [answer.id for answer in host.answers] == asked
    assert len({answer.pid for answer in host.answers}) == 1
    assert not host.link.busy


def test_a_refusal_is_passed_on(host: Host):
    host.ask("refused")
    host.wait(1)
    assert isinstance(host.answers[0], CountRefused)
    assert host.answers[0].reason == "no event"


def test_a_killed_child_is_replaced_and_the_request_made_again(host: Host):
    host.ask()
    host.wait(1)
    first = host.link.pid
    assert first is not None
    host.ask("sleepy")
    host.turn(0.1)
    # Nobody is told before the second child has answered: make the retry answerable.
    host.link._current = CountRequest(2, TINY, "native")
    os.kill(first, 9)
    host.wait(2)
    assert isinstance(host.answers[1], CountPassed)
    assert host.answers[1].pid != first
    assert any("the profiler was restarted" in text and "SIGKILL" in text for text in host.notices)


def test_a_contender_that_kills_every_child_is_given_up_and_the_next_is_counted(host: Host):
    host.ask("deadly")
    host.ask("native")
    host.wait(2)
    assert isinstance(host.answers[0], CountRefused)
    assert "SIGKILL" in host.answers[0].reason
    assert isinstance(host.answers[1], CountPassed)


def test_a_child_killed_while_idle_is_replaced_when_it_is_needed(host: Host):
    host.ask()
    host.wait(1)
    first = host.link.pid
    assert first is not None
    os.kill(first, 9)
    while host.link.pid is not None:
        host.turn(0.05)
    assert any("ended" in text for text in host.notices)
    host.ask()
    host.wait(2)
    assert host.answers[1].pid != first


def test_a_pass_that_takes_too_long_is_ended():
    host = Host(time_limit_s=1.5)
    try:
        host.ask("sleepy")
        left = host.link.seconds_left()
        assert left is not None
        assert left <= 1.5
        host.wait(1)
        assert isinstance(host.answers[0], CountRefused)
        assert "longer than" in host.answers[0].reason
    finally:
        host.link.close()


def test_what_a_library_prints_there_is_no_reply(host: Host):
    host.ask("chatty")
    host.wait(1)
    assert isinstance(host.answers[0], CountPassed)
    assert len(host.notices) == 1


def test_forgotten_requests_are_not_answered(host: Host):
    for _ in range(3):
        host.ask()
    host.link.forget()
    last = host.ask()
    host.wait(1)
    assert [answer.id for answer in host.answers] == [last]


def test_the_child_is_recycled_after_its_passes(host: Host, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(profiler_link, "MAX_PASSES", 2)
    for _ in range(4):
        host.ask()
    host.wait(4)
    pids = [answer.pid for answer in host.answers]
    assert pids[0] == pids[1] != pids[2] == pids[3]
    assert host.notices == []


def test_the_child_is_recycled_when_it_has_grown(host: Host, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(profiler_link, "MAX_GROWTH_BYTES", -1)
    for _ in range(2):
        host.ask()
    host.wait(2)
    assert host.answers[0].pid != host.answers[1].pid


def test_closing_leaves_no_child():
    host = Host()
    host.ask("sleepy")
    host.turn(0.1)
    pid = host.link.pid
    host.link.close()
    assert pid is not None
    deadline = time.monotonic() + 5
    while psutil.pid_exists(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not psutil.pid_exists(pid)


def test_a_child_that_does_not_start_is_a_reason():
    host = Host()
    host.link._command = ("/nonexistent/python",)
    host.ask()
    assert isinstance(host.answers[0], CountRefused)
    assert "does not start" in host.answers[0].reason
