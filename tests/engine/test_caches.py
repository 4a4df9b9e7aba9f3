"""How large the last-level cache is, by what each system tells, and that a cold call is timed without its flush."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
import torch

from app.engine import caches, sampling
from app.engine.caches import CacheFlush
from app.engine.sampling import COLD, Pace
from app.engine.stopwatch import CpuStopwatch


def sysfs(folder: Path, caches_of: dict[int, list[tuple[int, str, str, str]]]) -> Path:
    for cpu, entries in caches_of.items():
        for index, (level, kind, size, shared) in enumerate(entries):
            place = folder / f"cpu{cpu}" / "cache" / f"index{index}"
            place.mkdir(parents=True)
            for name, value in (
                ("level", level),
                ("type", kind),
                ("size", size),
                ("shared_cpu_list", shared),
            ):
                (place / name).write_text(f"{value}\n")
    return folder


def test_linux_counts_a_shared_cache_once_and_every_socket(tmp_path: Path) -> None:
    cores = {
        cpu: [
            (1, "Data", "32K", str(cpu)),
            (1, "Instruction", "32K", str(cpu)),
            (2, "Unified", "1024K", str(cpu)),
            (3, "Unified", "32768K", "0-1" if cpu < 2 else "2-3"),
        ]
        for cpu in range(4)
    }
    assert caches._from_linux(sysfs(tmp_path, cores)) == 2 * (32 << 20)


def test_linux_without_a_third_level_takes_the_second(tmp_path: Path) -> None:
    cores = {cpu: [(1, "Data", "64K", str(cpu)), (2, "Unified", "2M", "0-1")] for cpu in range(2)}
    assert caches._from_linux(sysfs(tmp_path, cores)) == 2 << 20


def test_linux_that_tells_nothing_is_none(tmp_path: Path) -> None:
    assert caches._from_linux(tmp_path) is None


def test_a_mac_tells_of_its_l3_or_its_largest_l2() -> None:
    assert caches._from_darwin({"hw.l3cachesize": 8 << 20}.get) == 8 << 20
    silicon = {"hw.perflevel0.l2cachesize": 16 << 20, "hw.l2cachesize": 4 << 20}
    assert caches._from_darwin(silicon.get) == 16 << 20


def record(level: int, size: int, kind: int = 0, relation: int = 2) -> bytes:
    body = struct.pack("<BBHII", level, 16, 64, size, kind) + bytes(36)
    return struct.pack("<II", relation, 8 + len(body)) + body


def test_windows_records_are_read_as_they_are_documented() -> None:
    data = b"".join(
        (
            record(1, 32 << 10),
            record(1, 32 << 10, kind=1),
            record(3, 24 << 20),
            record(3, 24 << 20),
            record(9, 1, relation=0),
        )
    )
    assert caches.from_windows_records(data) == 48 << 20
    assert caches.from_windows_records(b"") is None
    with pytest.raises(ValueError, match="cut off"):
        caches.from_windows_records(data[:-4])


def test_an_unknown_cache_is_flushed_with_more_than_nearly_any_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caches, "last_level_bytes", lambda device: None)
    assert caches.flush_bytes("cpu") == caches.OVER * caches.ASSUMED_BYTES
    monkeypatch.setattr(caches, "last_level_bytes", lambda device: 32 << 20)
    assert caches.flush_bytes("cpu") == 64 << 20


def test_the_flush_writes_every_line() -> None:
    flush = CacheFlush("cpu", 1 << 16)
    flush()
    flush()
    assert flush._buffer.numel() * 4 == 1 << 16
    assert torch.equal(flush._buffer, torch.full_like(flush._buffer, 2.0))


class Told(CpuStopwatch):
    """A clock that moves only where it is told to, and the order in which everything came."""

    def __init__(self) -> None:
        self.t = 0.0
        self.said: list[str] = []

    def now(self) -> float:  # type: ignore[override]
        self.said.append("clock")
        return self.t

    def works(self, what: str, seconds: float) -> None:
        self.said.append(what)
        self.t += seconds


def test_a_cold_block_is_one_call_timed_without_the_flush() -> None:
    watch = Told()
    block = sampling.time_block(
        lambda: watch.works("call", 2e-3), COLD, watch, lambda: watch.works("flush", 50e-3)
    )
    assert block.calls == 1
    assert block.seconds == pytest.approx(2e-3)
    assert watch.said == ["flush", "clock", "call", "clock"]


def test_a_warm_block_flushes_nothing() -> None:
    watch = Told()
    sampling.time_block(lambda: watch.works("call", 1e-3), Pace(3, rehearse=True), watch)
    assert watch.said == ["call", "clock", "call", "call", "call", "clock"]


@pytest.mark.slow
def test_weights_that_fit_the_cache_are_slower_to_read_cold_than_warm() -> None:
    """A product of one row with a weight that fits the cache is bound by reading that weight."""
    cache = caches.last_level_bytes("cpu")
    if cache is None:
        pytest.skip("this machine does not tell of its caches")
    side = int((min(cache // 4, 16 << 20) / 4) ** 0.5)
    weight, row = torch.ones(side, side), torch.ones(1, side)
    flush, watch = CacheFlush("cpu"), CpuStopwatch()

    def call() -> torch.Tensor:
        return row @ weight

    call()
    cold = min(sampling.time_block(call, COLD, watch, flush).seconds for _ in range(40))
    warm = min(sampling.time_block(call, Pace(3, rehearse=True), watch).seconds for _ in range(40))
    # The fastest of each: whatever else the machine does only ever adds.
    assert cold > 1.2 * warm
