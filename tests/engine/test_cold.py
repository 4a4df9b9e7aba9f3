"""Cold caches in a run: the flush goes ahead of every block of every contender, and into no figure."""

from __future__ import annotations

from typing import Any

import pytest

from app.core import messages as m
from app.core.catalog import TWIN
from app.core.plan import Measure
from app.engine import lanes
from app.engine.headless import HeadlessRun
from app.engine.live import LiveRun
from tests.engine.support import Stage

COLD = Measure(max_seconds=0.2, min_rounds=5, counts=False, accuracy=False, cache="cold")
WARM = Measure(max_seconds=0.2, min_rounds=5, counts=False, accuracy=False)


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.fixture
def flushes(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """When the cache was flushed. Each takes 10 ms of the device, far longer than any call."""
    done: list[float] = []

    class Flush:
        def __init__(self, device: str) -> None:
            assert device == "cpu"

        def __call__(self) -> None:
            done.append(stage.device.time)
            stage.device.queued += 10e-3

    monkeypatch.setattr(lanes, "CacheFlush", Flush)
    return done


def test_every_block_of_every_contender_is_one_call_after_a_flush(stage: Stage, flushes: list[float]) -> None:
    stage.add("fast", 5e-5)
    stage.drive(HeadlessRun(stage.start("native", "fast", measure=COLD), stage.shop))
    taken = [sample for name in ("native", "fast", TWIN) for sample in stage.samples(name)]
    assert {sample.calls for sample in taken} == {1}
    assert len(flushes) == len(taken)
    assert all(sample.seconds == pytest.approx(1e-4) for sample in stage.samples("native"))
    assert all(sample.seconds == pytest.approx(5e-5) for sample in stage.samples("fast"))


def test_warm_blocks_are_not_flushed(stage: Stage, flushes: list[float]) -> None:
    stage.drive(HeadlessRun(stage.start("native", measure=WARM), stage.shop))
    assert flushes == []
    assert min(sample.calls for sample in stage.samples("native")) > 1


def test_a_flush_that_does_not_fit_into_memory_is_a_reason_not_a_crash(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(device: str) -> Any:
        raise MemoryError("no room for the buffer")

    monkeypatch.setattr(lanes, "CacheFlush", refuses)
    stage.drive(HeadlessRun(stage.start("native", measure=COLD), stage.shop))
    assert stage.state_of("native").state in ("unavailable", "failed")
    assert stage.all(m.RunDone)


def test_another_cache_policy_takes_another_bench(stage: Stage, flushes: list[float]) -> None:
    first = LiveRun(stage.start("native", measure=WARM, live=True), stage.shop)
    stage.drive(first, lambda: len(stage.samples("native")) > 3)
    warm = first.bench
    second = LiveRun(stage.start("native", measure=COLD, live=True, generation=2), stage.shop, warm)
    stage.drive(second, lambda: len(flushes) > 3)
    assert second.bench is not warm
    third = LiveRun(stage.start("native", measure=COLD, live=True, generation=3), stage.shop, second.bench)
    before = len(flushes)
    stage.drive(third, lambda: len(flushes) > before + 3)
    assert third.bench is second.bench
