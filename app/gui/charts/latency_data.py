"""What the latency chart shows, worked out of a snapshot without drawing anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.core.catalog import is_hidden
from app.core.curves import Buckets, RollingBuckets, bucket_width, growing_span, runs
from app.core.recording import Event
from app.core.series import Series
from app.gui.snapshot import Snapshot

Array = npt.NDArray[np.float64]

US = 1e6
_GAP_BUCKETS = 4
_RECENT_SHARE = 1 / 12
_SHOWN_PERCENT = 95
_CROWDED = 2.0
_HEADROOM = 1.25


@dataclass(frozen=True)
class Curve:
    """One contender: seconds before now (negative) and µs, [points] each; NaN where the line is broken."""

    name: str
    x: Array
    q1: Array
    median: Array
    q3: Array
    disturbed: npt.NDArray[np.bool_]
    value: float
    """Median of the last twelfth of the span, µs."""
    hidden: int
    live: bool
    """Whether its newest sample is as new as everyone's."""

    @property
    def last(self) -> tuple[float, float]:
        """Where the line ends: seconds before now, µs."""
        return float(self.x[-1]), float(self.median[-1])


@dataclass(frozen=True)
class Stretch:
    """A time in which other work ran beside the samples, seconds before now, and what it was."""

    start: float
    end: float
    what: str


@dataclass(frozen=True)
class Picture:
    """Everything a frame needs. `anchor_s` is the time at the right edge, seconds since 1970."""

    curves: tuple[Curve, ...]
    stretches: tuple[Stretch, ...]
    events: tuple[tuple[float, Event], ...]
    anchor_s: float
    span_s: float
    frozen: bool
    """Whether the right edge is the last sample rather than now."""
    dimmed: bool = False
    """Whether the curves are grey."""

    @property
    def top_us(self) -> float:
        """Where the axis must reach, µs; 0 for none.

        A machine that is busy for a moment makes peaks of a hundred times the level, on an axis to which
        the curves themselves would lie flat: what a twentieth of the buckets or fewer reach may leave it.
        """
        curves = [curve for curve in self.curves if curve.x.size]
        highest = max((float(np.nanmax(curve.q3)) for curve in curves), default=0.0)
        levels = (max(float(np.nanpercentile(c.q3, _SHOWN_PERCENT)), c.value) for c in curves)
        level = max(levels, default=0.0)
        return highest if highest <= _CROWDED * level else _HEADROOM * level

    @property
    def above(self) -> int:
        """How many buckets have their median above the axis."""
        top = self.top_us
        return sum(int((curve.median > top).sum()) for curve in self.curves)

    @property
    def hidden(self) -> int:
        return sum(curve.hidden for curve in self.curves)


class LatencyData:
    """Keeps the buckets of each series between frames."""

    def __init__(self) -> None:
        self._rolling: dict[str, tuple[Series, RollingBuckets, float]] = {}

    def picture(self, snapshot: Snapshot) -> Picture:
        """The frame for this moment."""
        record = snapshot.record
        names = [e.implementation for e in snapshot.entries if not is_hidden(e.implementation)]
        series = {n: record.series[n] for n in names if record is not None and len(record.series.get(n, ()))}
        frozen = snapshot.dimmed or not snapshot.running
        newest = max((float(s.at_s[-1]) for s in series.values()), default=snapshot.now_s)
        # A run that stands still must not scroll out of sight.
        anchor = newest if frozen else max(snapshot.now_s, newest)
        oldest = min((float(s.at_s[0]) for s in series.values()), default=anchor)
        span = snapshot.window_s or growing_span(anchor - oldest)
        since = anchor - span if snapshot.window_s else -np.inf
        self._rolling = {n: kept for n, kept in self._rolling.items() if n in series}
        curves, marked = [], []
        for name, one in series.items():
            buckets, width = self._buckets(name, one, span, since)
            if len(buckets):
                curve, stretches = _curve(name, one, buckets, width, anchor, span, newest)
                curves.append(curve)
                marked.extend(stretches)
        events = tuple(
            (event.at_s - anchor, event)
            for event in snapshot.recording.events
            if anchor - span <= event.at_s <= anchor
        )
        dimmed = frozen and not snapshot.recorded
        return Picture(tuple(curves), merged(marked), events, anchor, span, frozen, dimmed)

    def _buckets(self, name: str, series: Series, span: float, since: float) -> tuple[Buckets, float]:
        kept = self._rolling.get(name)
        if kept is None or kept[0] is not series:
            kept = (series, RollingBuckets(), 0.0)
        at_s = series.at_s
        inside = at_s.size - int(np.searchsorted(at_s, since))
        covered = min(span, max(float(at_s[-1] - at_s[0]), 1.0))
        width = bucket_width(span, round(inside * span / covered), kept[2] or None)
        self._rolling[name] = (series, kept[1], width)
        return kept[1].update(at_s, series.seconds, ~series.undisturbed, width, since), width


def _curve(
    name: str, series: Series, buckets: Buckets, width: float, anchor: float, span: float, newest: float
) -> tuple[Curve, list[Stretch]]:
    x = buckets.at_s - anchor
    recent = x >= x[-1] - max(span * _RECENT_SHARE, width)
    value = float(np.median(buckets.median[recent])) * US
    stretches = []
    for start, stop in runs(buckets.disturbed):
        index = min(int(np.searchsorted(series.at_s, buckets.at_s[start])), len(series) - 1)
        half = width / 2
        stretches.append(Stretch(x[start] - half, x[stop - 1] + half, series.disturbance(index) or "busy"))
    broken = np.flatnonzero(np.diff(x) > max(_GAP_BUCKETS * width, 2.0)) + 1
    x, q1, median, q3 = (
        np.insert(column, broken, np.nan)
        for column in (x, buckets.q1 * US, buckets.median * US, buckets.q3 * US)
    )
    disturbed = np.insert(buckets.disturbed, broken, False)
    live = newest - float(series.at_s[-1]) < max(2 * width, 1.0)
    return Curve(name, x, q1, median, q3, disturbed, value, buckets.hidden, live), stretches


def merged(stretches: Sequence[Stretch]) -> tuple[Stretch, ...]:
    """Stretches of all curves, overlapping ones joined under the first one's word."""
    result: list[Stretch] = []
    for stretch in sorted(stretches, key=lambda s: s.start):
        if result and stretch.start <= result[-1].end:
            before = result[-1]
            result[-1] = Stretch(before.start, max(before.end, stretch.end), before.what)
        else:
            result.append(stretch)
    return tuple(result)


def split(curve: Curve) -> tuple[Array, Array]:
    """The median twice: undisturbed with NaN elsewhere, and disturbed, joined to its neighbours."""
    steady = np.where(curve.disturbed, np.nan, curve.median)
    touched = curve.disturbed.copy()
    touched[1:] |= curve.disturbed[:-1]
    touched[:-1] |= curve.disturbed[1:]
    return steady, np.where(touched, curve.median, np.nan)


def band(curve: Curve) -> tuple[Array, Array]:
    """Outline of the interquartile band: one closed polygon a run, NaN between them."""
    xs: list[Array] = []
    ys: list[Array] = []
    for start, stop in runs(np.isfinite(curve.x)):
        if stop - start > 1:
            piece = slice(start, stop)
            x = curve.x[piece]
            xs += [x, x[::-1], x[:1], np.array([np.nan])]
            ys += [curve.q1[piece], curve.q3[piece][::-1], curve.q1[piece][:1], np.array([np.nan])]
    if not xs:
        return np.empty(0), np.empty(0)
    return np.concatenate(xs), np.concatenate(ys)


@dataclass(frozen=True)
class Reading:
    """What the crosshair stands on."""

    x: float
    round: int | None
    rows: tuple[tuple[str, float, float, float], ...]
    """Name, median, first and third quartile, µs, in the order of the curves."""
    event: Event | None


def reading(picture: Picture, snapshot: Snapshot, x: float) -> Reading | None:
    """The buckets nearest to `x` seconds before now; None where there is none within 1/20 of the span."""
    best: float | None = None
    rows = []
    round_number = None
    for curve in picture.curves:
        finite = np.flatnonzero(np.isfinite(curve.x))
        if not finite.size:
            continue
        i = int(finite[np.argmin(np.abs(curve.x[finite] - x))])
        if abs(float(curve.x[i]) - x) > picture.span_s / 20:
            continue
        rows.append((curve.name, float(curve.median[i]), float(curve.q1[i]), float(curve.q3[i])))
        if best is None:
            best = float(curve.x[i])
            series = snapshot.record.series[curve.name] if snapshot.record else None
            if series is not None and len(series):
                place = min(int(np.searchsorted(series.at_s, picture.anchor_s + best)), len(series) - 1)
                round_number = int(series.rounds[place])
    if best is None:
        return None
    near = [(abs(at - x), event) for at, event in picture.events if abs(at - x) < picture.span_s / 40]
    event = min(near, key=lambda pair: pair[0])[1] if near else None
    return Reading(best, round_number, tuple(rows), event)
