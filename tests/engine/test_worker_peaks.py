"""Peaks in a worker: measured alone, between samples and never beside them, once, and again when asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.core import messages as m
from app.core.plan import Measure
from app.engine import peaks
from app.engine.headless import HeadlessRun
from tests.core.test_work import peaks as made_up
from tests.engine.client import SHORT, Client
from tests.engine.support import TINY, Stage

ASK = m.MeasurePeaks("cpu", "float32")


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setenv("ATTNSCOPE_CACHE_DIR", str(tmp_path))
    return Stage()


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What was asked to be measured; each takes three units."""
    asked: list[tuple[Any, ...]] = []

    def measure(device: Any, dtype: str, threads: int, watch: Any) -> Any:
        asked.append((device.id, dtype, threads))
        for _ in range(3):
            yield
        return made_up(dtype=dtype, threads=threads or peaks.thread_count())

    monkeypatch.setattr(peaks, "measure", measure)
    return asked


def run_of(stage: Stage, **changes: Any) -> HeadlessRun:
    stage.add("fast", 5e-5)
    measure = Measure(counts=False, accuracy=False, **changes)
    return HeadlessRun(stage.start("native", "fast", measure=measure), stage.shop)


def test_a_plan_that_asks_for_a_roofline_has_peaks_before_its_first_sample(
    stage: Stage, measured: list[tuple[Any, ...]]
) -> None:
    stage.drive(run_of(stage, roofline=True))
    kinds = [type(message) for message in stage.sent]
    assert kinds.index(m.PeaksStarted) < kinds.index(m.PeaksMeasured) < kinds.index(m.Samples)
    assert measured == [("cpu", "float32", 0)]


def test_a_plan_that_does_not_ask_measures_none(stage: Stage, measured: list[tuple[Any, ...]]) -> None:
    stage.drive(run_of(stage))
    assert measured == []
    assert stage.all(m.PeaksMeasured) == []


def test_peaks_that_are_known_are_told_and_not_measured(
    stage: Stage, measured: list[tuple[Any, ...]]
) -> None:
    for _ in range(2):
        list(stage.shop.measure_peaks(stage.shop.resolve(TINY)[1], "float32", 0))
    assert len(measured) == 1
    assert len(stage.all(m.PeaksMeasured)) == 2
    list(stage.shop.measure_peaks(stage.shop.resolve(TINY)[1], "float32", 0, again=True))
    assert len(measured) == 2
    assert len(stage.shop.known_peaks) == 1
    assert len(peaks.load_peaks()) == 1


def test_other_threads_and_types_have_peaks_of_their_own(
    stage: Stage, measured: list[tuple[Any, ...]]
) -> None:
    device = stage.shop.resolve(TINY)[1]
    for dtype, threads in (("float32", 0), ("bfloat16", 0), ("float32", 7)):
        list(stage.shop.measure_peaks(device, dtype, threads))
    assert len(measured) == 3
    assert len(peaks.load_peaks()) == 3


def test_what_cannot_be_measured_is_a_sentence(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: object) -> Any:
        yield
        raise peaks.PeaksError("the peaks of a processor at float16 cannot be measured: no")

    monkeypatch.setattr(peaks, "measure", refuses)
    list(stage.shop.measure_peaks(stage.shop.resolve(TINY)[1], "float16", 0))
    assert stage.all(m.PeaksMeasured) == []
    assert "cannot be measured" in stage.all(m.PeaksRefused)[0].reason
    assert stage.shop.known_peaks == ()


def test_a_live_worker_samples_nothing_while_it_measures_and_goes_on_after(tmp_path: Path) -> None:
    with Client(ATTNSCOPE_CACHE_DIR=str(tmp_path)) as client:
        client.hear(m.Ready)
        client.start("native", live=True)
        client.hear(m.Samples)
        client.send(ASK)
        client.hear(m.PeaksStarted)
        found = client.hear(m.PeaksMeasured).peaks
        client.hear(m.Samples)
    order = client.seen
    start = next(i for i, message in enumerate(order) if isinstance(message, m.PeaksStarted))
    end = next(i for i, message in enumerate(order) if isinstance(message, m.PeaksMeasured))
    begun = found.measured_at_s - found.took_s
    for batch in client.all(m.Samples):
        for sample in batch.samples:
            # A sample is of before or of after; the tenth is for the clock that both are read from.
            assert (
                sample.at_s <= begun + 0.1
                or sample.at_s - sample.seconds * sample.calls >= found.measured_at_s - 0.1
            )
    assert not any(isinstance(message, m.Samples) for message in order[start + 2 : end])
    assert found.compute > 0
    assert found.memory > 0
    assert peaks.load_peaks(tmp_path / "peaks.json") == (found,)


def test_a_worker_tells_what_it_knows_and_refuses_beside_a_plan(tmp_path: Path) -> None:
    with Client(ATTNSCOPE_CACHE_DIR=str(tmp_path)) as client:
        ready = client.hear(m.Ready).environment
        client.start("native", measure=SHORT)
        client.send(ASK)
        assert "being measured" in client.hear(m.PeaksRefused).reason
        client.hear(m.RunDone)
    cpu = next(device for device in ready.devices if device.id == "cpu")
    known = made_up(processor=cpu.title, torch=ready.torch)
    peaks.keep(known, tmp_path / "peaks.json")
    with Client(ATTNSCOPE_CACHE_DIR=str(tmp_path)) as client:
        assert client.hear(m.Ready).environment.peaks == (known,)
