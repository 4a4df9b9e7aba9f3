"""Where along one axis a contender stops, or starts, being faster than a rival, and how well that is known.

Ratios and sizes are looked at on log scales, between neighbouring cells by straight lines. The interval is
where the band of the cells' own intervals meets 1, its near edge first, its far edge last; widened to where
the lines through the cells on either side, drawn on, meet it. A curve that bends one way lies between those
and its chord, so that cells far apart do not pass for a place that is known well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import msgspec

from app.core.statistics import SpeedUp
from app.core.text import number

Kind = Literal["stops", "starts"]
Side = Literal["faster", "slower", "open"]


class Point(msgspec.Struct, frozen=True):
    """A cell of the line: its place on the axis (above 0) and the contender's speed-up over the rival."""

    at: float
    speed: SpeedUp


class Crossover(msgspec.Struct, frozen=True):
    """`kind` "stops": faster below, no longer above; "starts": the other way round.

    `at` is where the medians cross, None where they do not. `low` and `high` bound it; None where the
    axis ends before the bound is met. `overtaken`: the rival is shown faster on the far side, rather than
    merely not shown slower. `last` and `first` are the last cell certainly on the near side and the first
    certainly not.
    """

    kind: Kind
    at: float | None
    low: float | None
    high: float | None
    last: float
    first: float
    overtaken: bool


def side(speed: SpeedUp) -> Side:
    """Whether the whole interval lies beyond the noise floor, and where."""
    if speed.low is None or speed.high is None or speed.noise_floor is None:
        return "open"
    if speed.low > 1 + speed.noise_floor:
        return "faster"
    if speed.high < 1 / (1 + speed.noise_floor):
        return "slower"
    return "open"


def crossovers(points: Sequence[Point]) -> tuple[Crossover, ...]:
    """Every change of side along the line, in the order of the axis; none where one side holds throughout.

    A stretch that ends undecided counts as one: the contender stops being shown faster there.
    """
    line = sorted((p for p in points if _usable(p)), key=lambda p: p.at)
    sides = [side(point.speed) for point in line]
    found = []
    before: int | None = None
    for index, word in enumerate(sides):
        if word == "open":
            continue
        if before is not None and sides[before] != word:
            found.append(_between(line, before, index, overtaken=True))
        before = index
    if before is not None and before < len(line) - 1 and sides[before] == "faster":
        found.append(_between(line, before, before + 1, overtaken=False))
    first = next((i for i, word in enumerate(sides) if word != "open"), None)
    if first is not None and first > 0 and sides[first] == "faster":
        found.insert(0, _between(line, first - 1, first, overtaken=False))
    return tuple(found)


def crossover(points: Sequence[Point]) -> Crossover | None:
    """Where the contender stops winning: the first such place, else the first where it starts; None for neither."""
    found = crossovers(points)
    stops = next((c for c in found if c.kind == "stops"), None)
    return stops or next(iter(found), None)


def _usable(point: Point) -> bool:
    return point.at > 0 and point.speed.median > 0 and math.isfinite(point.speed.median)


def _between(line: Sequence[Point], before: int, after: int, overtaken: bool) -> Crossover:
    kind: Kind = "stops" if side(line[before].speed) == "faster" else "starts"
    # An open end may cross later than its first undecided cell: the rest of the line is looked at as well.
    end = after if overtaken or kind == "starts" else len(line) - 1
    start = before if overtaken or kind == "stops" else 0
    stretch = line[start : end + 1]
    centre = [(math.log(p.at), math.log(p.speed.median)) for p in stretch]
    lows = [(math.log(p.at), math.log(_bound(p.speed.low, p.speed.median))) for p in stretch]
    highs = [(math.log(p.at), math.log(_bound(p.speed.high, p.speed.median))) for p in stretch]
    near, far = (lows, highs) if kind == "stops" else (highs, lows)
    at = _first_zero(centre)
    low, high = _first_zero(near), _last_zero(far)
    if at is not None:
        reached = [at, *_bent([(math.log(p.at), math.log(p.speed.median)) for p in line], at)]
        low = None if low is None else min(low, *reached)
        high = None if high is None else max(high, *reached)
    if overtaken:
        # Certain on both sides: the bounds never reach beyond the two cells that are.
        low = max(low, line[before].at) if low is not None else line[before].at
        high = min(high, line[after].at) if high is not None else line[after].at
    return Crossover(kind, at, low, high, line[before].at, line[after].at, overtaken)


def _bound(value: float | None, median: float) -> float:
    return value if value is not None and value > 0 else median


def _first_zero(line: Sequence[tuple[float, float]]) -> float | None:
    """Where a broken line first changes sign, back on the linear scale."""
    for (x0, y0), (x1, y1) in pairwise(line):
        if y0 == 0:
            return math.exp(x0)
        if y0 * y1 < 0:
            return math.exp(x0 + (x1 - x0) * y0 / (y0 - y1))
    return math.exp(line[-1][0]) if line and line[-1][1] == 0 else None


def _bent(line: Sequence[tuple[float, float]], at: float) -> list[float]:
    """Where the neighbours of the piece that crosses, drawn on into it, meet zero; within its ends."""
    place = math.log(at)
    index = next(
        i for i in range(len(line) - 1) if line[i][0] <= place + 1e-12 and place <= line[i + 1][0] + 1e-12
    )
    start, end = line[index], line[index + 1]
    found = []
    if index > 0:
        found.append(_meets(line[index - 1], start, start[0], end[0]))
    if index + 2 < len(line):
        found.append(_meets(end, line[index + 2], start[0], end[0]))
    return [math.exp(x) for x in found]


def _meets(first: tuple[float, float], second: tuple[float, float], low: float, high: float) -> float:
    """Where the line through two points is zero, held within low…high; the far end where it is level."""
    (x0, y0), (x1, y1) = first, second
    if y0 == y1:
        return high if x1 <= low + 1e-12 else low
    meets = x0 - y0 * (x1 - x0) / (y1 - y0)
    # Running away from zero, it meets it only on the wrong side: nothing is known but the piece's ends.
    if x1 <= low + 1e-12 and meets < low:
        return high
    if x0 >= high - 1e-12 and meets > high:
        return low
    return min(max(meets, low), high)


def _last_zero(line: Sequence[tuple[float, float]]) -> float | None:
    return _first_zero(list(reversed(line)))


def sentence(found: Crossover | None, points: Sequence[Point], name: str, rival: str, axis: str) -> str:
    """What the line shows, in words: where it crosses and how well that is known, or that it does not."""
    if found is None:
        return _no_crossing(points, name, rival)
    verb = "stops being" if found.kind == "stops" else "starts being"
    where = f"{name} {verb} faster than {rival} at {axis} "
    if found.at is None:
        return f"{where}between {number(round(found.last))} and {number(round(found.first))}: it is undecided there"
    said = f"{where}{number(round(found.at))} ({span(found)})"
    if not found.overtaken:
        said += ", which one is faster beyond is undecided" if found.kind == "stops" else ", undecided before"
    return said


def span(found: Crossover) -> str:
    """The bounds: `310–372`; a bound beyond the axis is named as one."""
    low = number(round(found.low)) if found.low is not None else None
    high = number(round(found.high)) if found.high is not None else None
    if low is None and high is None:
        return "nowhere certain"
    if high is None:
        return f"from {low} on"
    if low is None:
        return f"up to {high}"
    return low if low == high else f"{low}–{high}"


def _no_crossing(points: Sequence[Point], name: str, rival: str) -> str:
    words = {side(point.speed) for point in points}
    if not points:
        return f"{name} and {rival} were not measured together along this line"
    if words == {"faster"}:
        return f"no crossover: {name} is faster than {rival} all along"
    if words == {"slower"}:
        return f"no crossover: {name} is slower than {rival} all along"
    if words == {"open"}:
        return f"no crossover: between {name} and {rival} nothing is decided here"
    return f"no crossover: {name} is nowhere shown faster than {rival}"
