"""Where an axis has its ticks, and what stands beside them."""

from __future__ import annotations

import math

from app.core.text import MINUS, THIN, number

_NICE = (1.0, 2.0, 2.5, 4.0, 5.0, 10.0)
_LOG_STEPS = (
    (1,),
    (1, 3),
    (1, 2, 5),
    (1, 2, 3, 4, 5, 6, 8),
    (1, 1.5, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 9),
)


def nice_step(span: float, at_most: int) -> float:
    """The smallest of 1, 2, 2.5, 4 and 5 times a power of ten that cuts `span` into at most `at_most`."""
    if not (math.isfinite(span) and span > 0):
        return 1.0
    raw = span / max(at_most, 1)
    power = 10.0 ** math.floor(math.log10(raw))
    return next(nice * power for nice in _NICE if nice * power >= raw * (1 - 1e-9))


def from_zero(top: float, at_most: int = 5) -> list[float]:
    """Ticks 0, step, … whose last is the first at or above `top`: the axis ends there."""
    if not (math.isfinite(top) and top > 0):
        return [0.0, 1.0]
    step = nice_step(top, at_most)
    return [step * k for k in range(math.ceil(top / step - 1e-9) + 1)]


def between(low: float, high: float, at_most: int = 6) -> list[float]:
    """Multiples of a nice step within low…high."""
    step = nice_step(high - low, at_most)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [step * k for k in range(first, last + 1)]


def logarithmic(low: float, high: float, at_most: int = 8) -> list[float]:
    """Ticks of a log axis: 1–2–5 and the like over decades, a linear step where less than one fits."""
    if not 0 < low < high:
        return []
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    best: list[float] = []
    for digits in _LOG_STEPS:
        ticks = [d * 10.0**k for k in range(first, last + 1) for d in digits if low <= d * 10.0**k <= high]
        if len(ticks) > at_most:
            break
        best = ticks
    if len(best) < 3:
        best = between(low, high, min(at_most, 5))
    return best


def tick_label(value: float, step: float) -> str:
    """A tick's value with just the decimals that `step` needs."""
    decimals = 0 if step >= 1 else min(12, max(0, -math.floor(math.log10(step) + 1e-9)))
    if decimals and abs(step * 10**decimals - round(step * 10**decimals)) > 1e-6:
        decimals += 1
    elif not decimals and step < 10 and abs(step - round(step)) > 1e-9:
        decimals = 1
    return number(value, decimals)


def value_label(value: float) -> str:
    """A figure beside a curve, in three digits: `812`, `96.4`, `0.48`."""
    size = abs(value)
    if size >= 99.95:
        return number(value)
    if size >= 9.995:
        return number(value, 1)
    if size >= 0.995 or size == 0:
        return number(value, 2)
    return number(value, min(12, 2 - math.floor(math.log10(size))))


def ago_ticks(span_s: float, at_most: int = 7) -> list[tuple[float, str]]:
    """Ticks of an axis that ends now: seconds before now (negative or 0) and their labels."""
    unit, name = next(
        (unit, name)
        for unit, name in ((1.0, "s"), (60.0, "min"), (3600.0, "h"))
        if span_s <= 240 * unit or unit == 3600.0
    )
    steps = [1, 2, 5, 10, 15, 20, 30, 60, 120]
    step = unit * next((s for s in steps if span_s / (s * unit) <= at_most), steps[-1])
    while span_s / step > at_most:
        step *= 2
    count = int(span_s / step + 1e-9)
    ticks = [(-k * step, f"{MINUS}{number(k * step / unit)}{THIN}{name}") for k in range(count, 0, -1)]
    return [*ticks, (0.0, "now")]
