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


class TensorError(msgspec.Struct, frozen=True):
    """How far one tensor is from its float64 value, beside native's own error and the bound."""

    max_abs: float
    native_max_abs: float
    bound: float
    ok: bool
    rel_l2: float | None = None
    cosine: float | None = None
    bias: float | None = None

    @property
    def fault(self) -> str:
        """What is wrong with a tensor that is, as the end of a sentence about it."""
        if self.max_abs >= BEYOND:
            return "is missing, of another shape, or holds what is no number"
        return f"is off by {self.max_abs:.1e}, the bound is {self.bound:.1e}"


class Accuracy(msgspec.Struct, frozen=True):
    """Errors of the output and, in forward_backward mode, of every gradient."""

    ok: bool
    tensors: dict[str, TensorError]

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
