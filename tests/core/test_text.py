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


def test_a_moment_is_what_the_calendar_says() -> None:
    from datetime import datetime, timedelta, timezone

    from app.core.text import moment

    start = datetime(1970, 1, 1, tzinfo=timezone.utc)
    for days in (0, 58, 59, 789, 10_956, 11_016, 20_788, 20_789, 40_000):
        then = start + timedelta(days=days, hours=19, minutes=4, seconds=59)
        assert moment(then.timestamp()) == f"{then.day} {then:%B %Y, %H:%M} UTC"


def test_signs_shares_and_how_much_longer() -> None:
    from app.core.text import longer, signed_error, used

    assert [signed_error(v) for v in (1.4e-10, -9e-11, 0.0, None)] == ["+1.4e-10", "−9.0e-11", "0", "–"]
    assert [used(v) for v in (0.56, 68_333.3, 1e9)] == ["56\u202f%", "68,333×", "1e+09×"]
    assert [longer(v) for v in (1.87, 0.9, None)] == ["+87\u202f%", "−10\u202f%", "–"]
