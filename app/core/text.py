"""Numbers as the interface and the reports write them: thousands comma, true minus sign, narrow units."""

from __future__ import annotations

import math
import sys

MINUS = "−"
THIN = "\u202f"  # narrow no-break space
NOTHING = "–"
"""What stands where a value does not apply."""


def number(value: float | None, decimals: int = 0) -> str:
    """`1,284.0`; an en dash for None."""
    if value is None or not math.isfinite(value):
        return NOTHING
    return f"{value:,.{decimals}f}".replace("-", MINUS)


def micros(seconds: float | None) -> str:
    """Seconds as µs with one decimal, none from 10,000 µs; the unit stands in the title."""
    if seconds is None:
        return NOTHING
    value = seconds * 1e6
    return number(value, 0 if value >= 10_000 else 1)


def duration(seconds: float) -> str:
    """A length of time with its unit: `812 µs`, `3.4 ms`, `2.1 s`, `1:05`."""
    if seconds < 1e-3:
        return f"{number(seconds * 1e6)}{THIN}µs"
    if seconds < 1:
        return f"{number(seconds * 1e3, 1)}{THIN}ms"
    if seconds < 60:
        return f"{number(seconds, 1)}{THIN}s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes:,}:{rest:02d}"


def times(ratio: float | None) -> str:
    """A speed-up: `3.42×`."""
    return NOTHING if ratio is None or not math.isfinite(ratio) else f"{number(ratio, 2)}×"


def longer(ratio: float | None) -> str:
    """How much longer something takes: `+87 %` for a ratio of 1.87."""
    if ratio is None or not math.isfinite(ratio):
        return NOTHING
    return f"{'+' if ratio >= 1 else ''}{percent(ratio - 1)}"


def percent(share: float | None, decimals: int = 0) -> str:
    """A share of one: `43 %`."""
    return NOTHING if share is None else f"{number(100 * share, decimals)}{THIN}%"


def size(count: float | None) -> str:
    """Bytes with a binary unit: `5.9 MiB`."""
    if count is None:
        return NOTHING
    value, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if abs(value) < 1024:
            break
        value, unit = value / 1024, larger
    return f"{number(value, 0 if unit == 'B' else 1)}{THIN}{unit}"


def flops(count: float) -> str:
    """Floating-point operations: `0.25 GFLOP`."""
    for threshold, unit in ((1e12, "TFLOP"), (1e8, "GFLOP"), (1e5, "MFLOP"), (1e2, "kFLOP")):
        if count >= threshold:
            scale = {"TFLOP": 1e12, "GFLOP": 1e9, "MFLOP": 1e6, "kFLOP": 1e3}[unit]
            return f"{number(count / scale, 2 if count / scale < 10 else 1)}{THIN}{unit}"
    return f"{number(count)}{THIN}FLOP"


def error(value: float | None) -> str:
    """An absolute error: `3.0e-07`."""
    return NOTHING if value is None else f"{value:.1e}"


def signed_error(value: float | None) -> str:
    """A signed error: `+1.4e-10`, with a true minus sign; `0` for none at all."""
    if value is None:
        return NOTHING
    return "0" if value == 0 else f"{value:+.1e}".replace("-", MINUS, 1) if value < 0 else f"{value:+.1e}"


def used(share: float) -> str:
    """A share of a bound: `56 %`, and how many times it where it is far beyond: `68,333×`."""
    if is_beyond(share):
        return "∞"
    return percent(share) if share < 10 else f"{number(share)}×" if share < 1e6 else f"{share:.0e}×"


_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July",
    "August", "September", "October", "November", "December",
)  # fmt: skip


def moment(at_s: float) -> str:
    """Seconds since 1970 as `1 December 2026, 19:04 UTC`: the same wherever it is read.

    The calendar is worked out by hand (H. Hinnant, days_from_civil): this room has no clock.
    """
    minutes = math.floor(at_s / 60)
    days, minute = divmod(minutes, 24 * 60)
    era, day_of_era = divmod(days + 719_468, 146_097)
    year = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year + year // 4 - year // 100)
    month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month + 2) // 5 + 1
    year += era * 400 + (1 if month >= 10 else 0)
    name = _MONTHS[(month + 2) % 12]
    return f"{day} {name} {year}, {minute // 60:02d}:{minute % 60:02d} UTC"


def is_beyond(value: float) -> bool:
    """Whether a figure stands for no number: see `measurements.BEYOND`."""
    return value >= sys.float_info.max
