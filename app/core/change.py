"""What changed between two recordings for one contender in one workload, and whether it can be believed.

The two were measured at different times, so nothing is paired between them. Within each, the speed-up over a
common baseline is: the *net* change is the ratio of the two speed-ups, from which whatever moved the baseline as
well (a clock, a battery, another machine) is taken out. The change of the *latency* alone is given beside it.
Intervals of ratios are combined from those of their two sides by the square-and-add method (Zou and Donner,
Statistics in Medicine 27, 2008), on a log scale; the sides' own are distribution-free and know how much the rounds
resemble each other.

They cannot know what differs from one start of a process to the next (where memory lies, for one), which for
unchanged code is often more than all within it (Kalibera and Jones, Rigorous Benchmarking in Reasonable Time,
2013). So nothing is claimed within a *band*: the root of the sum of the squared noise floors of both and of that
*spread*, as the other contenders of the same two recordings show it where there are enough of them, otherwise as it
was found for unchanged code.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist, median_low
from typing import Literal

import msgspec
import numpy as np

from app.core.statistics import SAME_MARGIN, USABLE_FLOOR, VerdictWord
from app.core.text import MINUS
from app.core.workload import Workload

Basis = Literal["net", "latency"]
Bounded = Literal["exceeded", "unsure", "within"]

BASES: dict[Basis, str] = {
    "net": "the latency against the baseline's: what moved both is taken out",
    "latency": "the latency alone: a machine that got slower shows as well",
}

SPREAD: dict[Basis, float] = {"net": 0.03, "latency": 0.08}
"""Standard deviation of the logarithm of a change of unchanged code between two runs, found on a shared machine."""

MIN_CONTROLS = 10
"""Changes of other contenders from which the spread is estimated; with fewer it is assumed."""

MIN_EACH = 5
"""A contender with fewer changes than this shows no spread of its own."""

TAILS = 2.776
"""Student's t at 95 % for four degrees of freedom: such changes have heavier tails than normal ones."""

USABLE_BAND = USABLE_FLOOR * math.sqrt(2)
"""A band above this leaves nothing to be called the same."""

_NORMAL = NormalDist().inv_cdf(0.975)


class Ratio(msgspec.Struct, frozen=True):
    """B over A: above 1 it takes longer in B. The bounds are null where there is too little evidence."""

    median: float
    low: float | None = None
    high: float | None = None

    @property
    def change(self) -> float:
        """As a share: 0.05 takes 5 % longer."""
        return self.median - 1


class SideFigures(msgspec.Struct, frozen=True):
    """What one of the two recordings says of a contender, seconds per call."""

    median_s: float
    low_s: float | None
    high_s: float | None
    n: int
    speed_up: float | None
    noise_floor: float | None
    accurate: bool | None


class Spread(msgspec.Struct, frozen=True):
    """How far unchanged code moves between two runs: a standard deviation, as a share.

    `controls`: the changes of other contenders that show it; 0 where it is assumed.
    """

    share: float
    controls: int = 0


class Claim(msgspec.Struct, frozen=True):
    """What is said of a ratio. `band`: nothing is claimed within ± this share; null without a noise floor."""

    verdict: VerdictWord
    reason: str
    band: float | None
    spread: Spread


class Change(msgspec.Struct, frozen=True):
    """One contender in one workload, in A and in B.

    `baseline_latency` is how the baseline's own latency changed, `net` the change without it; both null for the
    baseline itself, of which only `latency` speaks. `fault`: why nothing may be claimed whatever the figures say.
    A claim is null where there is no ratio to judge.
    """

    workload: Workload
    implementation: str
    baseline: str
    a: SideFigures | None
    b: SideFigures | None
    latency: Ratio | None = None
    baseline_latency: Ratio | None = None
    net: Ratio | None = None
    fault: str = ""
    net_claim: Claim | None = None
    latency_claim: Claim | None = None

    def ratio(self, basis: Basis) -> Ratio | None:
        return self.net if basis == "net" else self.latency

    def claim(self, basis: Basis) -> Claim | None:
        return self.net_claim if basis == "net" else self.latency_claim

    def word(self, basis: Basis) -> VerdictWord | None:
        claim = self.claim(basis)
        return None if claim is None else claim.verdict

    @property
    def floors(self) -> float | None:
        """Both noise floors: the root of the sum of their squares."""
        if self.a is None or self.b is None or self.a.noise_floor is None or self.b.noise_floor is None:
            return None
        return math.hypot(self.a.noise_floor, self.b.noise_floor)


def ratio_of(
    above: tuple[float, float | None, float | None], below: tuple[float, float | None, float | None]
) -> Ratio:
    """Ratio of two independent positive estimates, each (median, low, high), with an interval as sure as theirs.

    Square-and-add on the logarithms: each bound is as far from the ratio as both sides' distances to theirs,
    squared and added.
    """
    ratio = above[0] / below[0]
    if above[1] is None or above[2] is None or below[1] is None or below[2] is None:
        return Ratio(ratio)
    down = math.hypot(math.log(above[0] / above[1]), math.log(below[2] / below[0]))
    up = math.hypot(math.log(above[2] / above[0]), math.log(below[0] / below[1]))
    return Ratio(ratio, ratio * math.exp(-down), ratio * math.exp(up))


def spread_of(changes: Sequence[Change], implementation: str, basis: Basis) -> Spread:
    """How far the other contenders moved between the two recordings, beyond what their intervals explain.

    For each of them from the 80th percentile of its changes; of these the middle one, so that a contender that did
    change in every workload does not hide what became of the others.
    """
    ratios: dict[str, list[Ratio]] = {}
    for change in changes:
        ratio = change.ratio(basis)
        if change.implementation != implementation and not change.fault and ratio is not None:
            ratios.setdefault(change.implementation, []).append(ratio)
    controls = [found for found in ratios.values() if len(found) >= MIN_EACH]
    count = sum(map(len, controls))
    if count < MIN_CONTROLS:
        return Spread(SPREAD[basis])
    return Spread(median_low([_spread(found) for found in controls]), count)


def _spread(ratios: Sequence[Ratio]) -> float:
    moved = np.abs(np.log([ratio.median for ratio in ratios]))
    widths = [math.log(r.high / r.low) / 2 for r in ratios if r.low is not None and r.high is not None]
    explained = float(np.median(widths)) / _NORMAL if widths else 0.0
    seen = float(np.quantile(moved, 0.8)) / NormalDist().inv_cdf(0.9)
    return math.sqrt(max(seen**2 - explained**2, 0.0))


def judge(ratio: Ratio | None, floors: float | None, spread: Spread, fault: str = "") -> Claim | None:
    """FASTER, SLOWER or SAME where the whole interval says so, otherwise UNSURE; with the reason."""
    band = None if floors is None else math.hypot(floors, math.expm1(TAILS * spread.share))
    if fault:
        return Claim("unsure", fault, band, spread)
    if ratio is None:
        return None
    low, high = ratio.low, ratio.high
    if low is None or high is None:
        return Claim("unsure", "too few undisturbed rounds in one of them", band, spread)
    if band is None:
        return Claim("unsure", "one of them has no noise floor for this baseline", band, spread)
    span = f"{signed(low - 1)} to {signed(high - 1)}"
    noise = f"what unchanged code moves between two runs, ±{band:.1%}"
    if low > 1 + band:
        return Claim("slower", f"the whole interval, {span}, lies beyond {noise}", band, spread)
    if high < 1 / (1 + band):
        return Claim("faster", f"the whole interval, {span}, lies beyond {noise}", band, spread)
    if band > USABLE_BAND:
        return Claim("unsure", f"the interval, {span}, lies not beyond {noise}", band, spread)
    margin = max(SAME_MARGIN, band)
    if low >= 1 / (1 + margin) and high <= 1 + margin:
        return Claim("same", f"the whole interval, {span}, lies within ±{margin:.1%}", band, spread)
    return Claim("unsure", f"the interval, {span}, reaches into {noise}", band, spread)


def against_bound(change: Change, max_slowdown: float, basis: Basis = "net") -> Bounded | None:
    """Whether a contender got slower by more than a share of `max_slowdown`; None where nothing can be said.

    `exceeded` only where it is shown: SLOWER, and beyond the bound with the noise between runs taken off as well.
    `unsure` where it seems so and is not shown.
    """
    ratio, claim = change.ratio(basis), change.claim(basis)
    if ratio is None or claim is None:
        return None
    if claim.verdict == "slower" and ratio.low is not None and claim.band is not None:
        doubt = math.hypot(math.log(ratio.median / ratio.low), math.log1p(claim.band))
        if ratio.median * math.exp(-doubt) > 1 + max_slowdown:
            return "exceeded"
    return "unsure" if ratio.median > 1 + max_slowdown else "within"


def signed(share: float, decimals: int = 1) -> str:
    """A change as a share: `+5.0%`."""
    text = f"{share:+.{decimals}%}".replace("-", MINUS)
    return text if any(digit in text for digit in "123456789") else f"±{text[1:]}"
