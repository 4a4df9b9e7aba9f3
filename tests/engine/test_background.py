"""One slow preparation at a time, beside the sampling."""

from __future__ import annotations

import threading

import pytest

from app.engine import process_state
from app.engine.background import Background


def test_who_is_told_of_the_end_finds_it_no_longer_running():
    seen: list[tuple[object, bool]] = []
    background = Background(lambda token, error: seen.append((token, background.running)))
    background.start("a", lambda: None, process_state.capture())
    background.join()
    assert seen == [("a", False)]


def test_a_second_preparation_is_refused_while_one_runs():
    go = threading.Event()
    background = Background(lambda token, error: None)
    background.start("a", lambda: go.wait(10) and None, process_state.capture())
    try:
        assert background.running
        with pytest.raises(RuntimeError, match="running already"):
            background.start("b", lambda: None, process_state.capture())
    finally:
        go.set()
        background.join()
    assert not background.running


def test_what_a_preparation_raises_is_told_without_the_frames_that_hold_its_tensors():
    told: list[BaseException | None] = []
    background = Background(lambda token, error: told.append(error))

    def work() -> None:
        raise MemoryError("no")

    background.start("a", work, process_state.capture())
    background.join()
    (error,) = told
    assert isinstance(error, MemoryError)
    assert error.__traceback__ is None
