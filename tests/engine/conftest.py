"""A run that a test leaves half-way keeps its bench, and with it the process's state: nobody after it may notice."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from app.engine import process_state


@pytest.fixture(autouse=True)
def process_state_put_back() -> Iterator[None]:
    before = process_state.capture()
    yield
    process_state.restore(before)
