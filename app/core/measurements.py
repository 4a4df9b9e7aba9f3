"""What is measured of one implementation beside its latency: counts, accuracy, memory."""

from __future__ import annotations

import sys
from typing import Literal

import msgspec


class Phased(msgspec.Struct, frozen=True):
    """A count per call, forward and backward apart. Null: does not apply here."""

    forward: int | None = None
    backward: int | None = None

    @property
    def total(self) -> int | None:
        parts = [part for part in (self.forward, self.backward) if part is not None]
        return sum(parts) if parts else None


class Counts(msgspec.Struct, frozen=True):
    """Counts per call, from a profiled pass.

    `python_calls`: operators entered from Python. `operator_calls`: operators dispatched, those inside
    others included. `kernel_launches`, `memcpys`, `memsets`: device work, null where there is no device.
    """

    python_calls: Phased = Phased()
    operator_calls: Phased = Phased()
    kernel_launches: Phased | None = None
    memcpys: int | None = None
    memsets: int | None = None
    graph_launches: int | None = None
    kernel_time_s: float | None = None
    verified: bool = False
    note: str = ""


BEYOND = sys.float_info.max
"""Stands for an error that is no number: JSON has neither NaN nor infinity."""


OUTPUT_FACTOR = 2.0
GRADIENT_FACTOR = 3.0
"""How often native's own error a tensor may be off."""


def factor_of(tensor: str) -> float:
    """By what native's own error is multiplied to give the bound of a tensor."""
    return OUTPUT_FACTOR if tensor == "output" else GRADIENT_FACTOR


class TensorError(msgspec.Struct, frozen=True):
    """How far one tensor is from its float64 value, beside native's own error and the bound.

    `max_abs`: largest |difference|. `rel_l2`: norm of the difference over that of the exact values. `cosine`:
    of the angle between measured and exact. `one_minus_cosine`: the same near 1, where a difference of two
    numbers would round it away. `bias`: mean signed error. The last four are null where there is nothing to
    divide by: a true value of zero, or a tensor that is missing. `native_…`: native's own, at the same
    precision on the same inputs. `unit`: what native's own error counts as at least; null in older files.
    `shape`: of the tensor as it was checked.
    """

    max_abs: float
    native_max_abs: float
    bound: float
    ok: bool
    rel_l2: float | None = None
    cosine: float | None = None
    bias: float | None = None
    one_minus_cosine: float | None = None
    native_rel_l2: float | None = None
    native_one_minus_cosine: float | None = None
    native_bias: float | None = None
    unit: float | None = None
    shape: tuple[int, ...] = ()

    @property
    def used(self) -> float:
        """The share of the bound that is used up: above 1 the tensor fails."""
        if self.bound > 0:
            return self.max_abs / self.bound
        return 0.0 if self.max_abs == 0 else BEYOND

    @property
    def fault(self) -> str:
        """What is wrong with a tensor that is, as the end of a sentence about it."""
        if self.max_abs >= BEYOND:
            return "is missing, of another shape, or holds what is no number"
        return f"is off by {self.max_abs:.1e}, the bound is {self.bound:.1e}"


class Accuracy(msgspec.Struct, frozen=True):
    """Errors of the output and, in forward_backward mode, of every gradient.

    `checked_batch`: how many sequences were checked where not all of them were, since the float64 values of
    all would take too much memory or time; null: all of them. Gradients of parameters are then those of a
    smaller batch. `seed`: of the inputs; null in older files.
    """

    ok: bool
    tensors: dict[str, TensorError]
    checked_batch: int | None = None
    seed: int | None = None

    @property
    def tightest(self) -> str | None:
        """The tensor that uses most of its bound."""
        return max(self.tensors, key=lambda name: self.tensors[name].used, default=None)

    @property
    def wrong(self) -> tuple[str, ...]:
        return tuple(name for name, tensor in self.tensors.items() if not tensor.ok)

    @property
    def worst(self) -> float:
        """Largest absolute error over all tensors."""
        return max((tensor.max_abs for tensor in self.tensors.values()), default=0.0)

    @property
    def first_wrong(self) -> str | None:
        return next((name for name, tensor in self.tensors.items() if not tensor.ok), None)


class Memory(msgspec.Struct, frozen=True):
    """Bytes allocated by one call at its peak, inputs and parameters not counted."""

    peak_bytes: int | None = None


State = Literal["waiting", "preparing", "ready", "unavailable", "failed"]

StoppedBecause = Literal["target_ci", "max_seconds", "drift", "no_contender"]


class Standing(msgspec.Struct, frozen=True):
    """Where measuring stands: why it may stop, or how far it has come.

    `precision` is the widest interval's half-width as a share of its speed-up; null while one has no interval.
    """

    stop: StoppedBecause | None
    precision: float | None
    target: float
    spent_s: float
    limit_s: float

    @property
    def share(self) -> float:
        """How much of the way is behind, from 0 to 1: evidence grows with time, an interval's width with its root."""
        known = 0.0 if not self.precision else min(1.0, (self.target / self.precision) ** 2)
        return max(known, min(1.0, self.spent_s / self.limit_s))
