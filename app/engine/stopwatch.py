"""The clocks that a block of calls is measured with, one kind per device.

On a CPU a call has ended when it returns. On a GPU it has only been queued: the host clock is read after a
synchronise, and events inside the queue give the device's own time.
"""

from __future__ import annotations

import time
from typing import Any, Protocol

import torch


class Stopwatch(Protocol):
    def now(self) -> float:
        """Seconds on a monotonic clock."""

    def wall(self) -> float:
        """Seconds since 1970, for the time axis; never for a duration."""

    def synchronise(self) -> None:
        """Wait until all queued work is done."""

    def mark(self) -> Any:
        """A point in the device's queue, or None where there is no queue."""

    def between(self, first: Any, second: Any) -> float | None:
        """Seconds of the device between two marks that it has passed; None where there is no queue."""


class CpuStopwatch:
    now = staticmethod(time.perf_counter)
    wall = staticmethod(time.time)

    def synchronise(self) -> None:
        pass

    def mark(self) -> None:
        return None

    def between(self, first: None, second: None) -> float | None:
        return None


class CudaStopwatch:
    now = staticmethod(time.perf_counter)
    wall = staticmethod(time.time)

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def synchronise(self) -> None:
        torch.cuda.synchronize(self._device)

    def mark(self) -> torch.cuda.Event:
        event = torch.cuda.Event(enable_timing=True)
        event.record(torch.cuda.current_stream(self._device))
        return event

    def between(self, first: torch.cuda.Event, second: torch.cuda.Event) -> float | None:
        return first.elapsed_time(second) / 1e3


def stopwatch_for(device: torch.device) -> Stopwatch:
    return CudaStopwatch(device) if device.type == "cuda" else CpuStopwatch()
