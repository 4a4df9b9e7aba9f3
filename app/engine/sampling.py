"""Latency: blocks of calls, their length, and the order of contenders within a round.

Used only in a process that never profiles: the profiler leaves a process slower than it was.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import repeat
from typing import Any

from app.engine.stopwatch import Stopwatch

BLOCK_S = 2e-3
"""A block lasts at least this long: reading the clock (some 50 ns) is lost in it, and so is most of what the
contender before left in the caches."""

REHEARSED_S = 1e-2
"""Calls shorter than this are made once untimed ahead of a block; longer ones warm the caches themselves."""

RUN_UP_S = 1.5e-2
"""The system finds processors for the threads of a process that was stopped within some milliseconds."""

MAX_CALLS = 1000
WARM_UP_S = 0.02
WARM_UP_CALLS = 3
STEADY_S = 1e-3
STEADY = 1.1
"""A call within this factor of the fastest before it, either way, counts as steady."""

Call = Callable[[], Any]


@dataclass(frozen=True)
class Block:
    """`calls` calls that ended at `at_s` (since 1970) and took `seconds` each on the host's clock.

    `device_seconds` is the same on the device's own clock, per call; None on a CPU.
    """

    calls: int
    seconds: float
    at_s: float
    device_seconds: float | None


@dataclass(frozen=True)
class Pace:
    """How a contender is sampled: `calls` calls a block, and whether one goes ahead untimed.

    With it a warm cache is measured: the contender before left its own data there.
    """

    calls: int
    rehearse: bool


COLD = Pace(1, rehearse=False)
"""With a cold cache: the second call of a block would find what the first one loaded."""


def time_block(call: Call, pace: Pace, watch: Stopwatch, flush: Call | None = None) -> Block:
    """Time a block of calls in a row, with the garbage collector held and the device idle at both ends.

    `flush` empties the caches ahead of it, outside what is timed.
    """
    calls = pace.calls
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        if pace.rehearse:
            call()
        if flush is not None:
            flush()
        watch.synchronise()
        begin = watch.now()
        first = watch.mark()
        for _ in repeat(None, calls):
            call()
        second = watch.mark()
        watch.synchronise()
        elapsed = watch.now() - begin
        on_device = watch.between(first, second)
    finally:
        if was_enabled:
            gc.enable()
    return Block(calls, elapsed / calls, watch.wall(), None if on_device is None else on_device / calls)


def run_up(call: Call, watch: Stopwatch) -> None:
    """Be where a block in the middle of a round begins: another contender, `call`, has just run for a while.

    For a process that takes over from another. Its threads are asleep or on one processor, and its caches
    cold: the same code came out up to twice as slow as where none of that was. Letting a contender call itself
    until it is fast is no better, since nobody else is given that: it came out 7 % ahead.
    """
    watch.synchronise()
    end = watch.now() + RUN_UP_S
    for _ in range(MAX_CALLS):
        call()
        watch.synchronise()
        if watch.now() >= end:
            return


def warm_up(call: Call, watch: Stopwatch) -> float:
    """Call until steady, and return the fastest call's seconds. The first call was made before.

    Bounded in calls too, for a clock that stands still.
    """
    fastest = math.inf
    spent = 0.0
    for done in range(1, MAX_CALLS + 1):
        watch.synchronise()
        begin = watch.now()
        call()
        watch.synchronise()
        took = watch.now() - begin
        spent += took
        steady = fastest / STEADY <= took <= STEADY * fastest
        fastest = min(fastest, took)
        if spent >= WARM_UP_S or (done >= WARM_UP_CALLS and steady and spent >= STEADY_S):
            break
    return fastest


def pace_for(seconds_per_call: float) -> Pace:
    """The pace that makes blocks of `BLOCK_S` or longer, from 1 to `MAX_CALLS` calls."""
    if seconds_per_call * MAX_CALLS <= BLOCK_S:
        return Pace(MAX_CALLS, rehearse=True)
    return Pace(max(1, math.ceil(BLOCK_S / seconds_per_call)), rehearse=seconds_per_call < REHEARSED_S)


@cache
def _orders(n: int) -> tuple[tuple[int, ...], ...]:
    """A Williams square: over its rows each takes every place, and follows every other, equally often.

    Source: E. J. Williams, Experimental designs balanced for the estimation of residual effects of
    treatments, Australian Journal of Scientific Research A 2 (1949).
    """
    first = [0]
    low, high = 1, n - 1
    while low <= high:
        first.append(low)
        if low != high:
            first.append(high)
        low, high = low + 1, high - 1
    rows = [tuple((place + shift) % n for place in first) for shift in range(n)]
    if n % 2:
        rows += [tuple(reversed(row)) for row in rows]
    return tuple(rows)


def round_order(n: int, number: int) -> tuple[int, ...]:
    """The order of `n` contenders in round `number`: a permutation of range(n), the same every time."""
    if n == 0:
        return ()
    rows = _orders(n)
    return rows[number % len(rows)]
