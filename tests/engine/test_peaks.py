"""Peaks of a device: measured by the clock that is given, kept by what they hold for, never made up."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
import torch

from app.core.environment import Device
from app.core.peaks import Peaks
from app.engine import peaks
from app.engine.stopwatch import CpuStopwatch
from tests.core.test_work import peaks as made_up

CPU = Device("cpu", "CPU · Example", cache_bytes=1 << 20)


class Clock(CpuStopwatch):
    """A machine on which every product and copy takes `each` seconds."""

    def __init__(self, each: float) -> None:
        self.each, self.t = each, 0.0

    def now(self) -> float:  # type: ignore[override]
        self.t += self.each / 2
        return self.t

    def wall(self) -> float:  # type: ignore[override]
        return 1_780_000_000.0


def measured(watch: CpuStopwatch, dtype: str = "float32", threads: int = 0) -> Peaks:
    units = peaks.measure(CPU, dtype, threads, watch)
    while True:
        try:
            next(units)
        except StopIteration as end:
            found: Peaks = end.value
            return found


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peaks, "SIZES", (32, 64))
    monkeypatch.setattr(peaks, "LEAST_COPY", 1 << 20)


@pytest.mark.usefixtures("short")
def test_ceilings_are_work_over_the_clocks_time() -> None:
    found = measured(Clock(0.1))
    # From one reading to the next passes half of `each`.
    assert found.matmul_size == 32
    assert found.compute == pytest.approx(2 * 32**3 / 0.05)
    assert found.copy_bytes == 4 << 20
    assert found.memory == pytest.approx(2 * (4 << 20) / 0.05)
    assert found.measured_at_s == 1_780_000_000.0


@pytest.mark.usefixtures("short")
def test_a_product_too_short_to_time_gives_way_to_a_larger_one() -> None:
    assert measured(Clock(1e-6)).matmul_size == 64


@pytest.mark.usefixtures("short")
def test_a_clock_that_stands_still_gives_no_peak() -> None:
    with pytest.raises(peaks.PeaksError, match="clock stood still"):
        measured(Clock(0.0))


@pytest.mark.usefixtures("short")
def test_threads_and_gradient_mode_are_left_as_they_were() -> None:
    before = torch.get_num_threads()
    torch.set_grad_enabled(True)
    units = peaks.measure(CPU, "float32", 1, CpuStopwatch())
    for _ in units:
        assert torch.get_num_threads() == before
        assert torch.is_grad_enabled()
    assert measured(CpuStopwatch(), threads=1).threads == 1


@pytest.mark.usefixtures("short")
def test_the_real_clock_gives_something_a_processor_could_do() -> None:
    found = measured(CpuStopwatch())
    assert 1e6 < found.compute < 1e15
    assert 1e6 < found.memory < 1e13


def test_what_torch_cannot_do_is_a_sentence_not_a_peak(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: object, **__: object) -> None:
        raise RuntimeError('"addmm_impl_cpu_" not implemented for Half')

    monkeypatch.setattr(torch, "mm", refuses)
    with pytest.raises(
        peaks.PeaksError, match=r"CPU · Example at float16 cannot be measured: .*not implemented"
    ):
        measured(CpuStopwatch(), "float16")


def test_the_copied_buffer_is_no_part_of_a_cache_and_fits_into_memory() -> None:
    assert peaks.copy_bytes(CPU) == peaks.LEAST_COPY
    assert peaks.copy_bytes(msgspec.structs.replace(CPU, cache_bytes=64 << 20)) == 256 << 20
    card = Device("cuda:0", "GPU", cache_bytes=50 << 20, free_bytes=400 << 20)
    assert peaks.copy_bytes(card) == 100 << 20


# ---- kept ----------------------------------------------------------------------------------------------


def test_peaks_are_kept_and_measured_again_in_their_place(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "peaks.json"
    peaks.keep(made_up(), path)
    peaks.keep(made_up(dtype="bfloat16"), path)
    peaks.keep(made_up(compute=123e9), path)
    assert [(one.dtype, one.compute) for one in peaks.load_peaks(path)] == [
        ("bfloat16", 100e9),
        ("float32", 123e9),
    ]


@pytest.mark.parametrize("text", [b"", b"{", b'[{"device": 1}]', b"\xff\xfe"])
def test_a_damaged_file_means_measuring_again(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "peaks.json"
    path.write_bytes(text)
    assert peaks.load_peaks(path) == ()
    peaks.keep(made_up(), path)
    assert len(peaks.load_peaks(path)) == 1


def test_peaks_of_another_processor_or_torch_are_not_ours(tmp_path: Path) -> None:
    path = tmp_path / "peaks.json"
    ours = made_up(processor=CPU.title, torch=str(torch.__version__))
    for one in (
        ours,
        made_up(processor="another", torch=ours.torch),
        made_up(processor=CPU.title, torch="1.0"),
    ):
        peaks.keep(one, path)
    assert peaks.known_peaks((CPU,), path) == (ours,)
    assert peaks.known_peaks((msgspec.structs.replace(CPU, usable=False),), path) == ()


def test_a_place_that_cannot_be_written_only_means_measuring_again(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    peaks.keep(made_up(), tmp_path / "file" / "peaks.json")
    assert peaks.load_peaks(tmp_path / "file" / "peaks.json") == ()
