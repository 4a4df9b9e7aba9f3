"""How much arithmetic and how much memory traffic a call is, by formula, and where that puts it under a roof.

Arithmetic is the same for every contender: a multiply-add counts as two, softmax and elementwise work as
none, and a causal mask as the half that it saves, whether or not a contender saves it. Traffic is that of
the contender's own steps: every operator reads its operands once and writes its result once. What a cache
keeps between two operators is not known to a formula, so a small workload may lie above the roof.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from app.core.peaks import Peaks
from app.core.text import percent
from app.core.workload import DTYPE_BYTES, Workload

Phase = Literal["forward", "backward", "step", "decode"]
PHASES: dict[Phase, str] = {
    "forward": "forward",
    "backward": "backward",
    "step": "training step",
    "decode": "decode",
}

OVERHEAD_BOUND = 0.1
"""Below this share of the roof neither arithmetic nor memory is what takes the time."""


class Traffic(msgspec.Struct, frozen=True):
    """Numbers read and written by one call: so many activations [B, S, E], weights [E, E] and score matrices
    [B, H, S, S]. In decoding, with T tokens cached and one new: activations [B, E], scores [B, H, T + 1], and
    so many caches of keys and values [B, T + 1, 2E]."""

    activations: int = 0
    weights: int = 0
    scores: int = 0
    cache: int = 0

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(
            self.activations + other.activations,
            self.weights + other.weights,
            self.scores + other.scores,
            self.cache + other.cache,
        )

    def numbers(self, workload: Workload) -> int:
        """How many numbers that is in one workload. Biases and masks are left out: a thousandth or so."""
        width, batch = workload.embed_dim, workload.batch
        tokens = tokens_of(workload)
        keys = keys_of(workload)
        return (
            self.activations * batch * tokens * width
            + self.weights * width * width
            + self.scores * batch * workload.num_heads * tokens * keys
            + self.cache * 2 * batch * keys * width
        )

    def formula(self, decoding: bool = False) -> str:
        """As `8·B·S·E + 4·E² + 10·B·H·S²`."""
        terms = (
            (self.activations, "B·E" if decoding else "B·S·E"),
            (self.weights, "E²"),
            (self.scores, "B·H·(T+1)" if decoding else "B·H·S²"),
            (2 * self.cache, "B·(T+1)·E"),
        )
        return " + ".join(f"{count}·{term}" for count, term in terms if count) or "0"


LEAST_FORWARD = Traffic(activations=2, weights=4)
LEAST_BACKWARD = Traffic(activations=3, weights=8)
LEAST_DECODE = Traffic(activations=2, weights=4, cache=1)
"""What any implementation must touch: input, output and parameters once, and backward their gradients."""

# Of an operator a·b = c: 2 activations and a weight for a projection [B·S, E] x [E, E], written as (2, 1, 0).
_FORWARD: dict[str, Traffic] = {
    # q, k, v: 3 x (2, 1, 0); scores (2, 0, 1); scale (0, 0, 2); mask (0, 0, 2); softmax (0, 0, 2);
    # weighted sum (2, 0, 1); merging the heads (2, 0, 0); output (2, 1, 0).
    "native": Traffic(14, 4, 8),
    # Packed projection (4, 3, 0); one attention kernel (4, 0, 0); output (2, 1, 0).
    "mha": Traffic(10, 4),
    "sdpa": Traffic(10, 4),
    # As native, with scale, mask and softmax in one pass over the scores.
    "compiled": Traffic(14, 4, 4),
    # Packed projection (4, 3, 0); splitting the heads (6, 0, 0); scores with scale and mask (2, 0, 1);
    # softmax in place (0, 0, 2); weighted sum (2, 0, 1); merging (2, 0, 0); output (2, 1, 0).
    "extension-aten": Traffic(18, 4, 4),
    "extension-fused": Traffic(10, 4),
}
_BACKWARD: dict[str, Traffic] = {
    # Output: dx (2, 1, 0), dw (2, 1, 0); merging (2, 0, 0); dv (2, 0, 1), dp (2, 0, 1); softmax (0, 0, 3);
    # mask (0, 0, 2); scale (0, 0, 2); dq and dk 2 x (2, 0, 1); q, k, v: dx 3 x (2, 1, 0), dw 3 x (2, 1, 0),
    # adding up dx 2 x (3, 0, 0).
    "native": Traffic(32, 8, 11),
    # Output (4, 2, 0); one attention kernel, reading q, k, v, output and its gradient, writing three (8, 0, 0);
    # packed projection: dx (4, 3, 0), dw (4, 3, 0).
    "mha": Traffic(20, 8),
    "sdpa": Traffic(20, 8),
    "compiled": Traffic(32, 8, 7),
    # Output (4, 2, 0); splitting (2, 0, 0); dv (2, 0, 1), dp (2, 0, 1); softmax in place (0, 0, 3);
    # dq and dk 2 x (2, 0, 1); merging (6, 0, 0); packed projection (8, 6, 0).
    "extension-aten": Traffic(28, 8, 7),
    "extension-fused": Traffic(20, 8),
}
_DECODE: dict[str, Traffic] = {
    # As forward with one token: q, k, v (6, 3, 0), keys and values into the cache (4, 0, 0), scores (1, 0, 1) and
    # half the cache, scale and softmax (0, 0, 4), weighted sum (1, 0, 1) and the other half, merging (2, 0, 0),
    # output (2, 1, 0).
    "native": Traffic(16, 4, 6, cache=1),
    # Packed projection (4, 3, 0), into the cache (4, 0, 0), one attention kernel (2, 0, 0), output (2, 1, 0).
    "sdpa": Traffic(12, 4, cache=1),
    "compiled": Traffic(16, 4, 4, cache=1),
    # Packed projection (4, 3, 0), into the cache (4, 0, 0), scores with scale (1, 0, 1), softmax in place (0, 0, 2),
    # weighted sum (1, 0, 1), merging (2, 0, 0), output (2, 1, 0).
    "extension-aten": Traffic(14, 4, 4, cache=1),
    # Projection into queries and cache (4, 3, 0), attention (2, 0, 0), output (2, 1, 0).
    "extension-fused": Traffic(8, 4, cache=1),
}


class Work(msgspec.Struct, frozen=True):
    """FLOP and bytes of one phase of a call. `is_least`: the contender's steps are not known, and the bytes
    are the least that any must move, so that its true intensity may be lower."""

    phase: Phase
    flops: int
    bytes: int
    traffic: Traffic
    is_least: bool = False

    @property
    def intensity(self) -> float:
        """FLOP per byte."""
        return self.flops / self.bytes


def tokens_of(workload: Workload) -> int:
    """Tokens that a call computes: one in decoding."""
    return 1 if is_decode(workload) else workload.seq_len


def keys_of(workload: Workload) -> int:
    """Tokens that each is held against: in decoding the cached ones and the new one itself."""
    return workload.seq_len + 1 if is_decode(workload) else workload.seq_len


def is_decode(workload: Workload) -> bool:
    return workload.mode == "decode"


def phase_of(workload: Workload) -> Phase:
    """What one call of a workload is."""
    if is_decode(workload):
        return "decode"
    return "step" if workload.backward else "forward"


def work_of(workload: Workload, implementation: str, phase: Phase | None = None) -> Work:
    """Arithmetic and traffic of one phase (by default of what a call of `workload` is) of a contender.

    `backward` alone is the step less its forward pass.
    """
    phase = phase or phase_of(workload)
    name = implementation.partition("@")[0]
    traffic, is_least = _traffic(name, phase, workload.causal)
    counted = traffic.numbers(workload) * DTYPE_BYTES[workload.dtype]
    return Work(phase, flops_of(workload, phase), counted, traffic, is_least)


def flops_of(workload: Workload, phase: Phase) -> int:
    """FLOP of a phase. `Workload.flops` is that of the phase which the workload measures."""
    if phase == "decode":
        keys, width, batch = workload.seq_len + 1, workload.embed_dim, workload.batch
        return 8 * batch * width**2 + 4 * batch * keys * width
    forward = msgspec.structs.replace(workload, mode="forward").flops
    return {"forward": forward, "backward": 2 * forward, "step": 3 * forward}[phase]


def _traffic(name: str, phase: Phase, causal: bool) -> tuple[Traffic, bool]:
    if phase == "step":
        forward, least = _traffic(name, "forward", causal)
        backward, _ = _traffic(name, "backward", causal)
        return forward + backward, least
    table, least_of_all = {
        "forward": (_FORWARD, LEAST_FORWARD),
        "backward": (_BACKWARD, LEAST_BACKWARD),
        "decode": (_DECODE, LEAST_DECODE),
    }[phase]
    found = table.get(name)
    if found is None:
        return least_of_all, True
    if not causal and name == "native" and phase != "decode":
        # Without a mask one pass over the scores is not made.
        found = msgspec.structs.replace(found, scores=found.scores - 2)
    return found, False


class Point(msgspec.Struct, frozen=True):
    """One contender's phase under the roof. `seconds` per call, as measured; `share` of the roof there."""

    implementation: str
    work: Work
    seconds: float
    roof: float
    memory_bound: bool

    @property
    def achieved(self) -> float:
        """FLOP/s."""
        return self.work.flops / self.seconds

    @property
    def share(self) -> float:
        return self.achieved / self.roof

    @property
    def words(self) -> str:
        """`12 % of the memory roof`."""
        return f"{self.share_text} of the {'memory' if self.memory_bound else 'compute'} roof"

    @property
    def share_text(self) -> str:
        """`12 %`, `0.4 %`: what is small is not nothing."""
        return percent(self.share, 0 if self.share >= 0.0995 else 1)


def place(implementation: str, work: Work, seconds: float, peaks: Peaks) -> Point:
    """A contender that took `seconds` per call, under the roof of `peaks`."""
    return Point(implementation, work, seconds, peaks.roof(work.intensity), work.intensity < peaks.ridge)
