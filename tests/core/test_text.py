from __future__ import annotations

import math

import pytest

from app.core import text


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (text.number(1284.04, 1), "1,284.0"),
        (text.number(-24), "−24"),
        (text.number(None), "–"),
        (text.number(math.nan), "–"),
        (text.micros(812.44e-6), "812.4"),
        (text.micros(0.0123456), "12,346"),
        (text.micros(None), "–"),
        (text.duration(812e-6), "812\u202fµs"),
        (text.duration(3.4e-3), "3.4\u202fms"),
        (text.duration(2.06), "2.1\u202fs"),
        (text.duration(65), "1:05"),
        (text.times(3.418), "3.42×"),
        (text.times(math.inf), "–"),
        (text.percent(0.43), "43\u202f%"),
        (text.size(512), "512\u202fB"),
        (text.size(6_187_000), "5.9\u202fMiB"),
        (text.size(None), "–"),
        (text.flops(253e6), "0.25\u202fGFLOP"),
        (text.flops(1.3e6), "1.30\u202fMFLOP"),
        (text.error(3.04e-7), "3.0e-07"),
    ],
)
def test_numbers_are_written_as_the_interface_writes_them(given: str, shown: str) -> None:
    assert given == shown
