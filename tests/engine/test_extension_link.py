"""The extension from the worker's side: what a build says is passed on, and its end changes what can run."""

from __future__ import annotations

import time
from typing import Any

import pytest

from app.core import messages as m
from app.engine.extension_link import CLEARING_S, LOOK_EVERY_S, ExtensionLink

FINISHED = m.BuildFinished("/cache/a.so", "key-a", cached=False, seconds=3.0)
FAILED = m.BuildFailed("no_compiler", "No C++ compiler was found.", remedies=("Install g++.", "Set CXX."))
STEP = m.BuildStep("compile", "started")


class FakeBuild:
    """A build whose news are played by hand."""

    def __init__(self) -> None:
        self.is_running = False
        self.news: list[list[Any]] = []
        self.cancelled = False

    def start(self) -> list[Any]:
        self.is_running = True
        return self.poll()

    def poll(self) -> list[Any]:
        said = self.news.pop(0) if self.news else []
        if any(isinstance(message, (m.BuildFinished, m.BuildFailed)) for message in said):
            self.is_running = False
        return said

    def cancel(self) -> None:
        self.cancelled = True


class Host:
    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.states: list[str] = []
        self.builds: list[FakeBuild] = []
        self.next = FakeBuild()
        self.time = 0.0
        self.link = ExtensionLink(
            self.sent.append,
            lambda: self.states.append(self.link.state),
            new_build=self.new_build,
            clock=lambda: self.time,
        )

    def new_build(self, clean: bool) -> FakeBuild:
        self.builds.append(self.next)
        self.next = FakeBuild()
        return self.builds[-1]

    def look(self) -> bool:
        self.time += LOOK_EVERY_S
        return self.link.look()


@pytest.fixture
def host() -> Host:
    return Host()


def test_a_cached_library_is_there_at_once(host: Host):
    host.next.news = [[STEP, FINISHED]]
    host.link.start()
    assert host.sent == [STEP, FINISHED]
    assert host.states == ["building", "loaded"]
    assert (host.link.library, host.link.key) == ("/cache/a.so", "key-a")
    assert not host.link.building


def test_news_are_passed_on_as_they_come_and_not_looked_for_too_often(host: Host):
    host.link.start()
    build = host.builds[0]
    build.news = [[STEP], [FINISHED]]
    assert host.look()
    assert host.sent == [STEP]
    assert not host.link.look()
    assert host.link.seconds_left() == pytest.approx(LOOK_EVERY_S)
    assert host.look()
    assert host.link.state == "loaded"
    assert host.link.seconds_left() is None


def test_a_failure_is_the_reason_and_its_first_remedy_the_remedy(host: Host):
    host.next.news = [[FAILED]]
    host.link.start()
    assert (host.link.state, host.link.reason) == ("failed", FAILED.sentence)
    assert host.link.remedy == "Install g++."
    host.next.news = [[FINISHED]]
    host.link.start()
    assert (host.link.state, host.link.reason, host.link.remedy) == ("loaded", "", "")


def test_a_second_build_beside_the_first_is_not_started(host: Host):
    host.link.start()
    host.link.start()
    assert len(host.builds) == 1


def test_a_rebuild_leaves_what_is_loaded_in_use(host: Host):
    host.next.news = [[FINISHED]]
    host.link.start()
    newer = m.BuildFinished("/cache/b.so", "key-b", cached=False, seconds=3.0, needs_new_worker=True)
    host.link.start(clean=True)
    assert host.link.building
    assert host.link.state == "loaded"
    host.builds[1].news = [[newer]]
    host.look()
    assert host.sent[-1] == newer
    assert (host.link.state, host.link.library) == ("loaded", "/cache/a.so")
    host.next.news = [[FAILED]]
    host.link.start(clean=True)
    assert host.link.state == "loaded"


def test_cancelling_is_passed_on_and_harmless_without_a_build(host: Host):
    host.link.cancel()
    host.link.start()
    host.link.cancel()
    assert host.builds[0].cancelled


def test_a_build_that_cannot_even_start_is_a_sentence():
    def broken(clean: bool) -> Any:
        raise ModuleNotFoundError("No module named 'self_attention_ext'")

    sent: list[Any] = []
    link = ExtensionLink(sent.append, lambda: None, new_build=broken)
    link.start()
    assert link.state == "failed"
    assert "self_attention_ext" in sent[0].sentence
    assert not link.building


def test_closing_waits_a_moment_for_a_build_to_clear_its_folder_and_no_longer() -> None:
    host = Host()
    host.link.start()
    (build,) = host.builds
    build.news = [[], [FAILED]]
    host.link.close()
    assert build.cancelled
    assert not build.is_running
    stubborn = Host()
    stubborn.link.start()
    began = time.monotonic()
    stubborn.link.close()
    assert CLEARING_S <= time.monotonic() - began < 10 * CLEARING_S
