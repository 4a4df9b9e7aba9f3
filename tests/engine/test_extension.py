"""The worker's driver of the build: events become the protocol's messages, one to one."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
from self_attention_ext import _cache, _library

from app.core import messages as m
from app.engine import extension
from tests.native.conftest import Sandbox, built, library, sandbox

__all__ = ["built", "library", "sandbox"]  # fixtures

pytestmark = [
    pytest.mark.build,
    pytest.mark.skipif(sys.platform == "win32", reason="the pretended compiler is a shell script"),
]


@pytest.fixture
def environment(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    """This process builds in the sandbox, with the pretended compiler."""
    for name in ("CXX", "FAKE_CALLS", "FAKE_LIBRARY", "FAKE_KEY", "ATTNSCOPE_CACHE_DIR"):
        monkeypatch.setenv(name, sandbox.environ[name])
    return sandbox


def run(build: extension.ExtensionBuild, limit_s: float = 60) -> list[m.BuildMessage]:
    messages = build.start()
    deadline = time.monotonic() + limit_s
    while build.is_running:
        assert time.monotonic() < deadline, messages
        messages += build.poll()
        time.sleep(0.01)
    return messages


def test_a_finished_entry_arrives_in_the_first_answer(environment: Sandbox, built: _cache.Entry) -> None:
    environment.adopt(built)
    build = extension.ExtensionBuild()
    messages = build.start()
    assert not build.is_running
    assert extension.is_loaded()
    key = next(message for message in messages if isinstance(message, m.BuildKey))
    assert key.key == built.key
    assert list(key.parts) == ["sources", "torch", "python", "compiler", "flags"]
    steps = {message.step: message.state for message in messages if isinstance(message, m.BuildStep)}
    assert steps == {
        "check": "done",
        "compile": "cached",
        "link": "cached",
        "load": "done",
        "self-test": "cached",
    }
    assert build.finished is messages[-1]
    assert build.finished.cached is True
    assert build.finished.needs_new_worker is False
    assert environment.started() == []


def test_a_clean_build_beside_a_loaded_library_asks_for_a_new_worker(environment: Sandbox) -> None:
    before = _library.loaded()
    messages = run(extension.ExtensionBuild(clean=True))
    finished = messages[-1]
    assert isinstance(finished, m.BuildFinished)
    assert finished.cached is False
    assert finished.needs_new_worker is True
    assert _library.loaded() == before
    assert Path(finished.library).is_file()
    kinds = {type(message) for message in messages}
    assert kinds >= {m.BuildKey, m.BuildStep, m.BuildSource, m.BuildProgress, m.BuildLog, m.BuildFinished}
    sources = [
        message for message in messages if isinstance(message, m.BuildSource) and message.state == "done"
    ]
    assert {message.index for message in sources} == set(range(1, sources[0].total + 1))


def test_every_message_survives_the_protocol(environment: Sandbox) -> None:
    for message in run(extension.ExtensionBuild(clean=True)):
        assert m.decode_message(m.encode(message)) == message


def test_cancel_ends_the_build_without_blocking(
    environment: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_SLEEP", "30")
    build = extension.ExtensionBuild(clean=True)
    build.start()
    deadline = time.monotonic() + 20
    while not environment.compiling():
        assert time.monotonic() < deadline
        build.poll()
        time.sleep(0.01)
    begun = time.monotonic()
    build.cancel()
    assert time.monotonic() - begun < 0.5
    while build.is_running:
        assert time.monotonic() - begun < 10
        build.poll()
        time.sleep(0.01)
    assert build.failure is not None
    assert build.failure.kind == "cancelled"
    assert extension.exit_code(build.failure) == 130
    assert environment.leftovers() == []


def test_a_missing_compiler_is_a_message_and_exit_code_3(
    environment: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "/nonexistent/c++")
    build = extension.ExtensionBuild(clean=True)
    run(build)
    assert build.failure is not None
    assert "/nonexistent/c++" in build.failure.sentence
    assert build.failure.remedies
    assert extension.exit_code(build.failure) == 3


def test_a_compile_error_names_source_and_line(environment: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_FAIL", "checks.cpp")
    build = extension.ExtensionBuild(clean=True)
    run(build)
    assert build.failure is not None
    assert build.failure.kind == "compile_error"
    assert build.failure.source == "checks.cpp"
    assert build.failure.first_error.startswith("checks.cpp:7:3: error:")
    assert Path(build.failure.log_path).is_file()


def test_an_event_of_an_unknown_kind_is_passed_over() -> None:
    assert extension.translate({"event": "weather"}) is None
