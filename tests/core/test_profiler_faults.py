"""What a profiler's error means."""

from __future__ import annotations

import pytest

from app.core.profiler_faults import LOST_RECORDS, explain


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "function cuptiSubscribe failed with error CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED",
            "one at a",
        ),
        ("CUPTI error 39: another tool is subscribed", "one at a time"),
        ("ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU counters", "not needed"),
        ("CUPTI_ERROR_INSUFFICIENT_PRIVILEGES", "no special rights"),
        ("CUPTI initialization failed - CUDA profiler activities will be missing", "did not start"),
        ("Could not load library libcupti.so.12", "did not start"),
        ("libcupti.so.12: cannot open shared object file", "did not start"),
        ("CUDA out of memory. Tried to allocate 2.00 GiB", "not enough memory"),
        ("Profiler is already enabled on this thread", "Another profiler session"),
        ("CUPTI_ERROR_UNKNOWN", "reported an error"),
    ],
)
def test_a_known_error_becomes_a_sentence(text: str, says: str) -> None:
    sentence = explain(text)
    assert sentence is not None
    assert says in sentence
    assert sentence.endswith(".")


@pytest.mark.parametrize("text", ["", "mat1 and mat2 shapes cannot be multiplied (3x4 and 5x6)"])
def test_an_error_of_another_kind_is_left_alone(text: str) -> None:
    assert explain(text) is None


def test_no_sentence_asks_for_an_administrators_rights() -> None:
    codes = ("CUPTI_ERROR_INSUFFICIENT_PRIVILEGES", "CUPTI_ERROR_NOT_INITIALIZED", "CUPTI_ERROR_UNKNOWN")
    for sentence in (*map(explain, codes), LOST_RECORDS):
        assert sentence is not None
        assert not any(word in sentence.lower() for word in ("administrator", "root", "sudo", "modprobe"))
