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


def is_beyond(value: float) -> bool:
    """Whether a figure stands for no number: see `measurements.BEYOND`."""
    return value >= sys.float_info.max
