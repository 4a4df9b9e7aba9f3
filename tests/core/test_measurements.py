"""Words for what an accuracy check found."""

from __future__ import annotations

from app.core.measurements import BEYOND, TensorError


def test_an_error_that_is_no_number_is_not_shown_as_one() -> None:
    assert TensorError(1e-3, 1e-7, 2e-7, ok=False).fault == "is off by 1.0e-03, the bound is 2.0e-07"
    assert "no number" in TensorError(BEYOND, 1e-7, 2e-7, ok=False).fault
