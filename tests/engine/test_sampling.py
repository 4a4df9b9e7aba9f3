"""Latency on a device whose clock moves only when it is waited for."""

from __future__ import annotations

import gc
import itertools
from collections import Counter

import pytest

from app.engine import sampling
from app.engine.sampling import Pace
from app.engine.stopwatch import CpuStopwatch
from tests.engine.support import FakeDevice

BLOCK_OF_FIVE = Pace(5, rehearse=True)
SINGLE = Pace(1, rehearse=False)


def test_queued_work_is_waited_for_so_launch_time_does_not_pass_for_run_time():
    device = FakeDevice()
    block = sampling.time_block(device.work(2e-4), BLOCK_OF_FIVE, device)
    assert block.seconds == pytest.approx(2e-4)
    assert block.device_seconds == pytest.approx(2e-4)
    assert block.calls == 5


def test_a_block_waits_at_its_ends_and_not_after_every_call():
    device = FakeDevice()
    sampling.time_block(device.work(1e-5), Pace(100, rehearse=False), device)
    assert device.synchronised == 2


def test_work_left_in_the_queue_by_another_is_not_counted():
    device = FakeDevice()
    device.queued = 5.0
    assert sampling.time_block(device.work(1e-3), SINGLE, device).seconds == pytest.approx(1e-3)


def test_the_warming_call_of_a_block_is_not_counted():
    device = FakeDevice()
    costs = itertools.chain([1.0], itertools.repeat(1e-4))

    def call() -> None:
        device.queued += next(costs)

    assert sampling.time_block(call, BLOCK_OF_FIVE, device).seconds == pytest.approx(1e-4)


def test_a_single_long_call_is_not_made_twice():
    device = FakeDevice()
    made = []
    sampling.time_block(lambda: made.append(1), sampling.pace_for(0.5), device)
    assert len(made) == 1


def test_warm_up_ends_on_a_clock_that_stands_still():
    device = FakeDevice()
    made = []
    assert sampling.warm_up(lambda: made.append(1), device) == 0.0
    assert len(made) <= sampling.MAX_CALLS


def test_warm_up_finds_the_steady_figure_behind_slow_first_calls():
    device = FakeDevice()
    costs = itertools.chain([5e-3, 3e-3, 1e-3], itertools.repeat(2e-4))

    def call() -> None:
        device.queued += next(costs)

    assert sampling.warm_up(call, device) == pytest.approx(2e-4)


@pytest.mark.parametrize(
    ("seconds", "calls", "rehearse"),
    [
        (0.0, 1000, True),
        (1e-9, 1000, True),
        (2e-6, 1000, True),
        (1e-4, 20, True),
        (3e-4, 7, True),
        (2e-3, 1, True),
        (1e-2, 1, False),
        (60.0, 1, False),
    ],
)
def test_blocks_are_long_enough_for_the_clock_and_bounded(seconds: float, calls: int, rehearse: bool):
    assert sampling.pace_for(seconds) == Pace(calls, rehearse)


@pytest.mark.parametrize("n", range(1, 8))
def test_every_contender_takes_every_place_and_follows_every_other_equally_often(n: int):
    rounds = [sampling.round_order(n, number) for number in range(2 * n)]
    assert all(sorted(order) == list(range(n)) for order in rounds)
    places = Counter((place, name) for order in rounds for place, name in enumerate(order))
    assert set(places.values()) == {2}
    follows = Counter(pair for order in rounds for pair in itertools.pairwise(order))
    assert len(follows) == n * (n - 1)
    assert len(set(follows.values())) <= 1


def test_no_contender_makes_an_empty_round():
    assert sampling.round_order(0, 3) == ()


def test_garbage_is_not_collected_inside_a_block_and_is_again_after_one_that_raised():
    seen = []

    def call() -> None:
        seen.append(gc.isenabled())
        raise ValueError("made up")

    assert gc.isenabled()
    with pytest.raises(ValueError, match="made up"):
        sampling.time_block(call, SINGLE, CpuStopwatch())
    assert seen == [False]
    assert gc.isenabled()
