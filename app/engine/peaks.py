"""The compute and memory peaks of a device, measured by torch's own product and copy, and kept on disk.

For the worker's main thread, between two units of a run: nothing is sampled meanwhile.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Generator
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec
import psutil
import torch

from app.core.environment import Device
from app.core.files import write_atomically
from app.core.peaks import Peaks, merged
from app.core.workload import DTYPE_BYTES
from app.engine import process_state
from app.engine.caches import ASSUMED_BYTES
from app.engine.stopwatch import Stopwatch

SIZES = (256, 512, 1024, 2048, 4096, 8192)
"""Sides of the matrices tried: the smallest whose product lasts `LONG_ENOUGH_S`, a power of two."""

LONG_ENOUGH_S = 0.02
TRIES = 20
BUDGET_S = 1.5
"""Each ceiling is the best of `TRIES`, or of as many as fit; at least `LEAST_TRIES`."""

LEAST_TRIES = 3
COPY_OVER = 4
"""A copied buffer is so many times the last-level cache, so that memory is measured and no cache."""

LEAST_COPY, MOST_COPY = 32 << 20, 1 << 30
MEMORY_SHARE = 0.25


class PeaksError(RuntimeError):
    """Why no peak could be measured: one sentence."""


def measure(device: Device, dtype: str, threads: int, watch: Stopwatch) -> Generator[None, None, Peaks]:
    """Measure both ceilings, about three seconds, a product or a copy at a time: whoever drives it looks at
    commands in between. Raises `PeaksError`.

    Runs with `threads` threads (0: as many as the thread has), and leaves them as they were after each.
    """
    pool = _Pool(threads)
    begun = watch.now()
    try:
        side, compute, tries = yield from _compute(device.id, dtype, watch, pool)
        copied, memory, copies = yield from _memory(device, dtype, watch, pool)
    except RuntimeError as error:
        text = " ".join(str(error).split())[:200]
        raise PeaksError(f"the peaks of {device.title} at {dtype} cannot be measured: {text}") from None
    return Peaks(
        device=device.id,
        processor=device.title,
        dtype=dtype,
        threads=pool.threads,
        torch=str(torch.__version__),
        compute=compute,
        memory=memory,
        measured_at_s=watch.wall(),
        matmul_size=side,
        copy_bytes=copied,
        tries=min(tries, copies),
        took_s=watch.now() - begun,
        clock_hz=_clock_hz(device.id),
    )


class _Pool:
    """Runs a piece of work with a number of threads and without gradients, whatever the thread had before."""

    def __init__(self, threads: int) -> None:
        self.threads = threads or torch.get_num_threads()

    def once(self, work: Callable[[], object], watch: Stopwatch) -> float:
        """Seconds that `work` took."""
        before = process_state.capture()
        process_state.restore(replace(before, threads=self.threads, gradients=False))
        try:
            watch.synchronise()
            begin = watch.now()
            work()
            watch.synchronise()
            return watch.now() - begin
        finally:
            process_state.restore(before)


def thread_count() -> int:
    return torch.get_num_threads()


def _clock_hz(device: str) -> float | None:
    """The CPU's clock just after; None where the system does not tell, and on a GPU."""
    if device != "cpu":
        return None
    try:
        told = psutil.cpu_freq()
    except (OSError, NotImplementedError, AttributeError):
        return None
    return told.current * 1e6 if told is not None and told.current else None


def _compute(
    device: str, dtype: str, watch: Stopwatch, pool: _Pool
) -> Generator[None, None, tuple[int, float, int]]:
    """(side of the matrices, FLOP/s, tries)."""
    kind = getattr(torch, dtype)
    for side in SIZES:
        a = torch.ones(side, side, dtype=kind, device=device)
        b = torch.ones(side, side, dtype=kind, device=device)
        out = torch.empty(side, side, dtype=kind, device=device)
        product = partial(torch.mm, a, b, out=out)
        # The first product of a size and type may prepare something.
        pool.once(product, watch)
        yield
        # The best of three: one alone may have been interrupted, and would pass for a long one.
        took = min(pool.once(product, watch) for _ in range(3))
        yield
        if took >= LONG_ENOUGH_S or side == SIZES[-1]:
            best, tries = yield from _best(product, took, watch, pool)
            return side, 2.0 * side**3 / best, tries
    raise AssertionError("the last size is taken as it is")


def _memory(
    device: Device, dtype: str, watch: Stopwatch, pool: _Pool
) -> Generator[None, None, tuple[int, float, int]]:
    """(bytes of the buffer copied, bytes/s read and written, tries)."""
    count = max(1, copy_bytes(device) // DTYPE_BYTES[dtype])
    source = torch.ones(count, dtype=getattr(torch, dtype), device=device.id)
    # Written once ahead: pages that the system has yet to give are no part of a copy.
    target = torch.zeros_like(source)
    copy = partial(target.copy_, source)
    took = pool.once(copy, watch)
    yield
    best, tries = yield from _best(copy, took, watch, pool)
    copied = count * DTYPE_BYTES[dtype]
    return copied, 2.0 * copied / best, tries


def copy_bytes(device: Device) -> int:
    """How large a buffer to copy: far above the last cache, far below the memory that is free."""
    wanted = COPY_OVER * (device.cache_bytes or ASSUMED_BYTES)
    free = psutil.virtual_memory().available if device.id == "cpu" else device.free_bytes
    room = int(MEMORY_SHARE * free) if free else LEAST_COPY
    return min(max(wanted, LEAST_COPY), MOST_COPY, max(room, 1 << 20))


def _best(
    work: Callable[[], object], took: float, watch: Stopwatch, pool: _Pool
) -> Generator[None, None, tuple[float, int]]:
    tries = max(LEAST_TRIES, min(TRIES, int(BUDGET_S / max(took, 1e-9))))
    best = took
    for _ in range(tries):
        best = min(best, pool.once(work, watch))
        yield
    if best <= 0:
        raise PeaksError("the clock stood still while the peaks were measured")
    return best, tries


# ---- kept on disk --------------------------------------------------------------------------------------


def store_path() -> Path:
    """Where peaks are kept; ATTNSCOPE_CACHE_DIR says otherwise."""
    override = os.environ.get("ATTNSCOPE_CACHE_DIR")
    if override:
        return Path(override) / "peaks.json"
    import platformdirs

    return Path(platformdirs.user_cache_dir("attnscope", appauthor=False)) / "peaks.json"


def load_peaks(path: Path | None = None) -> tuple[Peaks, ...]:
    """What is kept, of this machine or another that shares the folder; nothing where it cannot be read."""
    try:
        return tuple(msgspec.json.decode((path or store_path()).read_bytes(), type=list[Peaks]))
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return ()


def known_peaks(devices: tuple[Device, ...], path: Path | None = None) -> tuple[Peaks, ...]:
    """What is kept of these devices by this torch: what holds for another processor is no peak of ours."""
    here = {(device.id, device.title, str(torch.__version__)) for device in devices if device.usable}
    return tuple(one for one in load_peaks(path) if (one.device, one.processor, one.torch) in here)


def keep(new: Peaks, path: Path | None = None) -> None:
    """Write `new` to the others. A place that cannot be written only means measuring again next time."""
    where = path or store_path()
    with contextlib.suppress(OSError):
        write_atomically(where, msgspec.json.format(msgspec.json.encode(merged(load_peaks(where), new))))
