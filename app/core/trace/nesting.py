"""Which events lie within which, and how long at least one of some intervals lasts."""

from __future__ import annotations

import numpy as np

from app.core.trace.model import Bools, Ints


def running_ends(end: Ints) -> Ints:
    """For each interval, in the order given, the latest end of those before it; far past for the first."""
    latest = np.empty_like(end)
    if len(end):
        latest[0] = np.iinfo(np.int64).min
        np.maximum.accumulate(end[:-1], out=latest[1:])
    return latest


def top_level(start: Ints, duration: Ints, contained: bool = False) -> Bools:
    """Which intervals of one thread are not nested in another one of them. In the order given.

    By start, then longer first, then as given, an interval is nested if it starts before the latest end so
    far (end exclusive), however late it ends; with `contained`, if it ends no later than that. The two differ
    where times are cut so coarsely that a child can begin when its parent is said to end.
    """
    order = np.lexsort((-duration, start))
    first, last = start[order], (start + duration)[order]
    latest = running_ends(last)
    nested = last <= latest if contained else first < latest
    top = np.empty(len(start), dtype=np.bool_)
    top[order] = ~nested
    return top


def busy(start: Ints, end: Ints) -> int:
    """Length of the union of intervals: an overlap counts once."""
    if not len(start):
        return 0
    order = np.argsort(start, kind="stable")
    first, last = start[order], end[order]
    covered = np.maximum(running_ends(last), first)
    return int(np.maximum(last - covered, 0).sum())


def starting_early(start: Ints, end: Ints) -> int:
    """How many intervals start before the latest end of those that start before them."""
    order = np.argsort(start, kind="stable")
    return int((start[order] < running_ends(end[order])).sum())


def inside(start: Ints, end: Ints, range_start: Ints, range_end: Ints) -> Bools:
    """Which intervals lie within one of some ranges, which do not overlap each other."""
    if not len(range_start):
        return np.zeros(len(start), dtype=np.bool_)
    order = np.argsort(range_start, kind="stable")
    starts, ends = range_start[order], range_end[order]
    at = np.searchsorted(starts, start, side="right") - 1
    return (at >= 0) & (end <= ends[np.maximum(at, 0)])
