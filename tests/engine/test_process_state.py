"""What contenders share of the process is known, and put back."""

from __future__ import annotations

import pytest
import torch

from app.engine import process_state


@pytest.fixture(autouse=True)
def put_back():
    before = process_state.capture()
    yield
    process_state.restore(before)


def test_nothing_changed_is_nothing_said():
    assert process_state.restore(process_state.capture()) == ()


def test_every_change_is_undone_and_named():
    before = process_state.capture()
    torch.set_num_threads(before.threads + 1)
    torch.set_flush_denormal(True)
    torch.set_grad_enabled(not before.gradients)
    torch.set_default_dtype(torch.float64)
    said = process_state.restore(before)
    assert process_state.capture() == before
    assert len(said) == 4
    assert said[0] == f"the thread count from {before.threads} to {before.threads + 1}"


def test_the_flush_mode_is_read_from_the_processor():
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor has no such mode")
    assert process_state.capture().flushes_denormals
    torch.set_flush_denormal(False)
    assert not process_state.capture().flushes_denormals


def test_fixing_the_threads_keeps_their_number():
    before = torch.get_num_threads()
    process_state.fix_threads()
    assert torch.get_num_threads() == before
