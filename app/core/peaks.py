"""The peaks of a device, as they were measured on it: what a roofline is drawn from. Never a made-up number."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from app.core.text import NOTHING, THIN, moment, number, size


class Peaks(msgspec.Struct, frozen=True):
    """Ceilings of one device at one dtype and thread count.

    `compute`: FLOP/s of the best of `tries` products of two square matrices of `matmul_size`. `memory`:
    bytes/s, read and written together, of the best of `tries` copies of `copy_bytes`. `measured_at_s`:
    seconds since 1970. `took_s`: how long measuring took. `processor`: the device's name, `torch`: the
    version whose kernels did it. `clock_hz`: the device's clock meanwhile; null where it does not tell.
    """

    device: str
    processor: str
    dtype: str
    threads: int
    torch: str
    compute: float
    memory: float
    measured_at_s: float
    matmul_size: int
    copy_bytes: int
    tries: int
    took_s: float
    clock_hz: float | None = None

    @property
    def key(self) -> tuple[str, str, str, int, str]:
        """What they hold for: any other device, dtype, thread count or torch has its own."""
        return (self.device, self.processor, self.dtype, self.threads, self.torch)

    @property
    def ridge(self) -> float:
        """FLOP per byte where both ceilings meet."""
        return self.compute / self.memory

    def roof(self, intensity: float) -> float:
        """FLOP/s attainable at `intensity` FLOP per byte."""
        return min(self.compute, self.memory * intensity)

    @property
    def sentence(self) -> str:
        """What they are and what they hold for, as a clause."""
        threads = "" if self.device.startswith("cuda") else f", {number(self.threads)} threads"
        threads = threads.replace(", 1 threads", ", 1 thread")
        return f"{rate(self.compute)} and {bandwidth(self.memory)} at {self.dtype}{threads}"

    @property
    def when(self) -> str:
        """The day and minute."""
        return moment(self.measured_at_s)

    @property
    def how_compute(self) -> str:
        side = number(self.matmul_size)
        return f"product of two {side} × {side} matrices, best of {number(self.tries)}"

    @property
    def how_memory(self) -> str:
        return f"copy of {size(self.copy_bytes)}, read and written, best of {number(self.tries)}"


def find(
    peaks: Sequence[Peaks], device: str, dtype: str, threads: int | None, torch: str | None = None
) -> Peaks | None:
    """The latest peaks for a device, dtype and thread count; on a GPU threads do not matter."""
    on_device = device.startswith("cuda")
    fitting = [
        one
        for one in peaks
        if (one.device, one.dtype) == (device, dtype)
        and (on_device or threads is None or one.threads == threads)
        and (torch is None or one.torch == torch)
    ]
    return max(fitting, key=lambda one: one.measured_at_s, default=None)


def merged(peaks: Sequence[Peaks], new: Peaks) -> tuple[Peaks, ...]:
    """`peaks` with `new` in the place of what it measures again."""
    return (*(one for one in peaks if one.key != new.key), new)


def rate(flops_per_s: float | None) -> str:
    """`995 GFLOP/s`, `1.58 TFLOP/s`, `3.2 MFLOP/s`."""
    if flops_per_s is None:
        return NOTHING
    for threshold, unit in ((1e13, "T"), (1e7, "G"), (1e4, "M")):
        if flops_per_s >= threshold or unit == "M":
            value = flops_per_s / {"T": 1e12, "G": 1e9, "M": 1e6}[unit]
            return f"{number(value, 0 if value >= 100 else 1 if value >= 10 else 2)}{THIN}{unit}FLOP/s"
    raise AssertionError("the last threshold takes all")


def bandwidth(bytes_per_s: float | None) -> str:
    """`96 GB/s`, in powers of ten as data sheets have it."""
    if bytes_per_s is None:
        return NOTHING
    value = bytes_per_s / 1e9
    return f"{number(value, 0 if value >= 100 else 1)}{THIN}GB/s"
