"""What a curve is drawn from: samples in buckets, densities, and places that do not overlap. Fed numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

MAX_BUCKETS = 240
SAMPLES_A_BUCKET = 5
"""A bucket of fewer has no spread worth a band, so slow contenders get wider ones."""

_BINS = 512


@dataclass(frozen=True)
class Buckets:
    """Samples by time, [buckets] each: mean time, quartiles (seconds), and whether all were disturbed.

    `hidden` counts samples that no axis can show: zero, negative, infinite or not a number.
    """

    index: npt.NDArray[np.int64]
    at_s: Array
    q1: Array
    median: Array
    q3: Array
    disturbed: Bools
    hidden: int = 0

    def __len__(self) -> int:
        return int(self.at_s.size)


def _no_buckets(hidden: int = 0) -> Buckets:
    none = np.empty(0)
    return Buckets(np.empty(0, np.int64), none, none, none, none, np.empty(0, bool), hidden)


def drawable(values: Array) -> Bools:
    """Which values are finite and above zero."""
    return np.isfinite(values) & (values > 0)


def bucketise(at_s: Array, seconds: Array, disturbed: Bools, width_s: float) -> Buckets:
    """Quartiles of `seconds` in buckets of `width_s`, cut at multiples of it so that they never move.

    Disturbed samples count only where a bucket has no other.
    """
    keep = drawable(seconds) & np.isfinite(at_s)
    hidden = int(keep.size - keep.sum())
    if hidden:
        at_s, seconds, disturbed = at_s[keep], seconds[keep], disturbed[keep]
    if at_s.size == 0:
        return _no_buckets(hidden)
    index = np.floor(at_s / width_s).astype(np.int64)
    if disturbed.any() and not disturbed.all():
        good = np.unique(index[~disturbed])
        place = np.minimum(np.searchsorted(good, index), good.size - 1)
        keep = ~disturbed | (good[place] != index)
        at_s, seconds, disturbed, index = at_s[keep], seconds[keep], disturbed[keep], index[keep]
    order = np.lexsort((seconds, index))
    ordered, cut = seconds[order], index[order]
    starts = np.flatnonzero(np.r_[True, cut[1:] != cut[:-1]])
    sizes = np.diff(np.r_[starts, cut.size])

    def quantile(share: float) -> Array:
        place = starts + (sizes - 1) * share
        low = np.floor(place).astype(np.int64)
        high = np.minimum(low + 1, starts + sizes - 1)
        result: Array = ordered[low] + (place - low) * (ordered[high] - ordered[low])
        return result

    times = np.add.reduceat(at_s[order] - at_s[0], starts) / sizes + at_s[0]
    return Buckets(
        cut[starts],
        times,
        quantile(0.25),
        quantile(0.5),
        quantile(0.75),
        np.logical_and.reduceat(disturbed[order], starts),
        hidden,
    )


def bucket_width(span_s: float, samples: int, before_s: float | None = None) -> float:
    """Seconds a bucket: a power of two times 1/240 of `span_s`, with a few samples in each.

    `before_s`, the width used last, is kept while it still does, so that a rate near a threshold does not
    make the curve flicker between two widths.
    """
    narrowest = max(span_s, 1e-6) / MAX_BUCKETS
    wanted = max(narrowest, SAMPLES_A_BUCKET * span_s / max(samples, 1))
    widest = narrowest * 8
    if before_s is not None and narrowest <= before_s <= widest and wanted / 1.5 <= before_s <= wanted * 4:
        return before_s
    width = narrowest
    while width < min(wanted, widest):
        width *= 2
    return width


def growing_span(age_s: float) -> float:
    """A span that holds `age_s` and grows by doubling, so that buckets of everything keep their cuts."""
    span = 60.0
    while span < age_s:
        span *= 2
    return span


class RollingBuckets:
    """Buckets of a series that grows at its end: only what came since the last call is sorted again."""

    def __init__(self) -> None:
        self._width = 0.0
        self._done = _no_buckets()
        self._next = 0
        self._since = math.inf

    def update(
        self, at_s: Array, seconds: Array, disturbed: Bools, width_s: float, since_s: float
    ) -> Buckets:
        """Buckets from `since_s` on. The arrays are the whole series, [samples] each."""
        if width_s != self._width or at_s.size < self._next or since_s < self._since:
            self._width, self._done = width_s, _no_buckets()
            self._next = int(np.searchsorted(at_s, since_s))
        self._since = since_s
        fresh = bucketise(at_s[self._next :], seconds[self._next :], disturbed[self._next :], width_s)
        if len(fresh) and len(self._done) and fresh.index[0] <= self._done.index[-1]:
            # The clock was set back: sort everything again.
            self._done = _no_buckets()
            self._next = 0
            inside = at_s >= since_s
            return bucketise(at_s[inside], seconds[inside], disturbed[inside], width_s)
        whole = _joined(self._done, fresh, since_s)
        if len(fresh) > 1:
            # All but the last bucket are complete.
            last = fresh.index[-1] * width_s
            self._next += int(np.searchsorted(at_s[self._next :], last))
            self._done = _cut(whole, len(whole) - 1)
        return whole


def _cut(buckets: Buckets, stop: int) -> Buckets:
    return Buckets(
        buckets.index[:stop],
        buckets.at_s[:stop],
        buckets.q1[:stop],
        buckets.median[:stop],
        buckets.q3[:stop],
        buckets.disturbed[:stop],
        buckets.hidden,
    )


def _joined(first: Buckets, second: Buckets, since_s: float) -> Buckets:
    start = int(np.searchsorted(first.at_s, since_s))
    return Buckets(
        np.r_[first.index[start:], second.index],
        np.r_[first.at_s[start:], second.at_s],
        np.r_[first.q1[start:], second.q1],
        np.r_[first.median[start:], second.median],
        np.r_[first.q3[start:], second.q3],
        np.r_[first.disturbed[start:], second.disturbed],
        first.hidden + second.hidden,
    )


def runs(present: Bools) -> list[tuple[int, int]]:
    """Half-open ranges in which `present` holds."""
    edges = np.flatnonzero(np.diff(np.r_[False, present, False].astype(np.int8)))
    return [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]


@dataclass(frozen=True)
class Density:
    """A kernel density over log10 of the values, tallest point 1. `outside` values lie beyond the grid."""

    log_x: Array
    height: Array
    outside: int = 0
    hidden: int = 0


def log_density(values: Array, low: float, high: float, points: int = 160) -> Density | None:
    """Gaussian kernel density of the decadic logarithm of `values` between `low` and `high`.

    The bandwidth is Silverman's, from the smaller of standard deviation and IQR, so that a few slow samples
    do not flatten the peak. None where nothing can be drawn.
    """
    keep = drawable(values)
    hidden = int(values.size - keep.sum())
    if not (0 < low < high) or not keep.any():
        return None
    logs = np.log10(values[keep])
    first, last = math.log10(low), math.log10(high)
    smooth = _smoothed(logs, first, last)
    if smooth is None:
        return None
    centres, heights = smooth
    grid = np.linspace(first, last, points)
    drawn = np.interp(grid, centres, heights)
    outside = int(((logs < first) | (logs > last)).sum())
    return Density(grid, drawn / max(float(drawn.max()), 1e-300), outside, hidden)


def density(values: Array, low: float, high: float, points: int = 160) -> tuple[Array, Array] | None:
    """Kernel density of finite `values` on a linear axis: x and heights, tallest point 1."""
    values = values[np.isfinite(values)]
    if values.size == 0 or not low < high:
        return None
    smooth = _smoothed(values, low, high)
    if smooth is None:
        return None
    grid = np.linspace(low, high, points)
    drawn = np.interp(grid, *smooth)
    return grid, drawn / max(float(drawn.max()), 1e-300)


def _smoothed(values: Array, low: float, high: float) -> tuple[Array, Array] | None:
    counted, edges = np.histogram(values, bins=_BINS, range=(low, high))
    if not counted.any():
        return None
    step = float(edges[1] - edges[0])
    q1, q3 = np.percentile(values, (25, 75))
    spread = min(float(values.std()), float(q3 - q1) / 1.349) or float(values.std())
    width = max(0.9 * spread * values.size**-0.2, 1.5 * step)
    reach = min(math.ceil(4 * width / step), _BINS // 2 - 1)
    offsets = np.arange(-reach, reach + 1) * step
    kernel = np.exp(-0.5 * (offsets / width) ** 2)
    centres: Array = (edges[:-1] + edges[1:]) / 2
    heights: Array = np.convolve(counted.astype(np.float64), kernel, mode="same")
    return centres, heights


def pushed_apart(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places nearest to `wanted` that are at least `gap` apart and, where they fit, within low…high.

    The order of `wanted` is kept; ties keep the order given.
    """
    order = sorted(range(len(wanted)), key=lambda i: (wanted[i], i))
    groups: list[tuple[float, list[int]]] = []
    for i in order:
        centre = min(max(wanted[i], low), high)
        members = [i]
        while groups and centre - groups[-1][0] < gap * (len(groups[-1][1]) + len(members)) / 2:
            before, earlier = groups.pop()
            members = earlier + members
            centre = (before * len(earlier) + centre * (len(members) - len(earlier))) / len(members)
            half = gap * (len(members) - 1) / 2
            centre = max(min(centre, high - half), low + half)
        groups.append((centre, members))
    places = [0.0] * len(wanted)
    for centre, members in groups:
        for position, i in enumerate(members):
            places[i] = centre + gap * (position - (len(members) - 1) / 2)
    return places
