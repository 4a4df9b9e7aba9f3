"""Which samples enter a figure. The rule is the same for every contender, and what it leaves out is counted.

Left out are samples taken beside our own work (a build, a profiling pass), a series' warm-up, and rounds in which the
machine was strained on both sides of a pair: where only one side was, its own cost may be the strain. Where the
machine is strained most of the time, that is the condition measured under: all is kept, and said.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from app.core.criteria import WARM_UP_LIMIT, WINDOW, warm_up_of
from app.core.disturbance import Strain, strained
from app.core.series import Array, Series

Mask = npt.NDArray[np.bool_]


class Pairs(NamedTuple):
    """Latencies of two contenders in their common rounds, [rounds] seconds each, and the strained rounds among all."""

    first: Array
    second: Array
    strained: int
    left_out: bool


def settled(series: Series) -> Mask:
    """Which samples are undisturbed by our own work and after the warm-up."""
    good = series.undisturbed
    head = np.flatnonzero(good)[: WARM_UP_LIMIT + 2 * WINDOW]
    warm_up = warm_up_of(series.seconds[head])
    good[head[: warm_up.samples]] = False
    return good


def kept(series: Series, strains: Sequence[Strain]) -> tuple[Mask, int, bool]:
    """Which samples enter a latency, how many settled ones were strained, and whether those were left out."""
    good = settled(series)
    marked = strained(series.at_s, strains) & good
    count = int(marked.sum())
    left_out = 0 < count <= int(good.sum()) // 2
    return (good & ~marked if left_out else good), count, left_out


def pairs(first: Series, second: Series, strains: Sequence[Strain]) -> Pairs:
    """The rounds of two series that enter their speed-up."""
    a, b = settled(first), settled(second)
    in_a, in_b = np.flatnonzero(a), np.flatnonzero(b)
    rounds_a, rounds_b = first.rounds[in_a], second.rounds[in_b]
    if not np.array_equal(rounds_a, rounds_b):
        # Rounds only grow within a series, so a search replaces a sort.
        place = np.minimum(np.searchsorted(rounds_b, rounds_a), max(0, rounds_b.size - 1))
        common = rounds_b[place] == rounds_a if rounds_b.size else np.zeros(rounds_a.size, bool)
        in_a, in_b = in_a[common], in_b[place[common]]
    marked = strained(first.at_s[in_a], strains) & strained(second.at_s[in_b], strains)
    count = int(marked.sum())
    left_out = 0 < count <= marked.size // 2
    if left_out:
        in_a, in_b = in_a[~marked], in_b[~marked]
    return Pairs(first.seconds[in_a], second.seconds[in_b], count, left_out)
