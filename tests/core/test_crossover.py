"""Where a contender stops winning: the place, its bounds, and the words where there is none."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from app.core.crossover import Crossover, Point, crossover, crossovers, sentence, side, span
from app.core.statistics import SpeedUp, speed_up

FLOOR = 0.01


def speed(median: float, half: float = 0.02, floor: float | None = FLOOR) -> SpeedUp:
    return SpeedUp(median, median * (1 - half), median * (1 + half), 0.95, floor, 100)


def line(*pairs: tuple[float, float], half: float = 0.02) -> list[Point]:
    return [Point(at, speed(median, half)) for at, median in pairs]


def found(points: list[Point]) -> Crossover:
    crossing = crossover(points)
    assert crossing is not None
    return crossing


def test_it_lies_where_the_logarithms_cross_and_the_band_bounds_it() -> None:
    crossing = found(line((100, 2.0), (400, 0.5)))
    assert crossing.kind == "stops"
    assert crossing.overtaken
    assert crossing.at == pytest.approx(200.0)
    assert crossing.low is not None
    assert crossing.high is not None
    assert 100 < crossing.low < 200 < crossing.high < 400
    assert crossing.low * crossing.high == pytest.approx(200.0**2, rel=1e-3)


def test_a_wider_band_bounds_it_less() -> None:
    narrow, wide = found(line((100, 2.0), (400, 0.5))), found(line((100, 2.0), (400, 0.5), half=0.1))
    assert wide.low < narrow.low < narrow.high < wide.high  # type: ignore[operator]


def test_undecided_cells_between_widen_the_bounds_but_not_beyond_the_certain_ones() -> None:
    crossing = found(line((64, 1.5), (128, 1.01), (256, 0.995), (512, 0.7)))
    assert (crossing.last, crossing.first) == (64, 512)
    assert 64 < crossing.low < 128  # type: ignore[operator]
    assert 256 < crossing.high < 512  # type: ignore[operator]
    assert 128 < crossing.at < 256  # type: ignore[operator]


def test_the_order_in_which_cells_came_does_not_matter() -> None:
    points = line((64, 1.5), (128, 1.2), (256, 0.9), (512, 0.7))
    shuffled = points[:]
    random.Random(3).shuffle(shuffled)
    assert crossover(shuffled) == crossover(points)


def test_a_line_that_ends_undecided_has_an_open_bound() -> None:
    crossing = found(line((64, 1.5), (128, 1.2), (256, 1.005)))
    assert not crossing.overtaken
    assert (crossing.last, crossing.first) == (128, 256)
    assert crossing.at is None
    assert crossing.high is None
    words = sentence(crossing, line((64, 1.5)), "SDPA", "Native", "sequence")
    assert (
        words == "SDPA stops being faster than Native at sequence between 128 and 256: it is undecided there"
    )


def test_starting_to_win_is_told_apart_from_stopping() -> None:
    crossing = found(line((1, 0.5), (100, 2.0)))
    assert crossing.kind == "starts"
    assert crossing.at == pytest.approx(10.0)
    assert crossing.low < 10 < crossing.high  # type: ignore[operator]


def test_several_crossings_are_all_found_and_the_first_stop_is_the_one_told() -> None:
    points = line((1, 0.5), (10, 2.0), (100, 0.5), (1000, 2.0))
    assert [c.kind for c in crossovers(points)] == ["starts", "stops", "starts"]
    assert found(points).kind == "stops"


@pytest.mark.parametrize(
    ("points", "words"),
    [
        (line((1, 2.0), (10, 3.0)), "faster than Native all along"),
        (line((1, 0.5), (10, 0.6)), "slower than Native all along"),
        (line((1, 1.0), (10, 1.001)), "nothing is decided"),
        (line((1, 0.5), (10, 1.0)), "nowhere shown faster"),
        ([], "not measured together"),
    ],
)
def test_where_there_is_none_the_words_say_why(points: list[Point], words: str) -> None:
    assert crossover(points) is None
    assert words in sentence(None, points, "SDPA", "Native", "sequence")


def test_nothing_is_certain_without_interval_or_floor() -> None:
    assert side(speed(2.0, floor=None)) == "open"
    assert side(SpeedUp(2.0, None, None, 0.95, FLOOR, 3)) == "open"
    assert crossover([Point(1, SpeedUp(2.0, None, None, 0.95, FLOOR, 3))]) is None


def test_words_have_place_and_bounds() -> None:
    points = line((100, 2.0), (400, 0.5))
    words = sentence(crossover(points), points, "Ext. (fused)", "SDPA", "sequence")
    assert words.startswith("Ext. (fused) stops being faster than SDPA at sequence 200 (")
    assert span(Crossover("stops", 200.0, 190.0, None, 1, 2, False)) == "from 190 on"
    assert span(Crossover("starts", 200.0, None, 210.0, 1, 2, False)) == "up to 210"


def test_the_bounds_hold_the_true_crossover_in_at_least_93_of_100_noisy_lines() -> None:
    """Times of two contenders whose true ratio is (300 / x) ** 0.4: it crosses 1 at 300."""
    chance = np.random.default_rng(11)
    held = 0
    for _ in range(200):
        points = []
        for at in (64, 128, 256, 512, 1024):
            ratio = (300 / at) ** 0.4
            common = np.exp(chance.normal(0, 0.1, 60))
            base = ratio * common * np.exp(chance.normal(0, 0.06, 60))
            ours = common * np.exp(chance.normal(0, 0.06, 60))
            measured = speed_up(base, ours, FLOOR)
            assert measured is not None
            points.append(Point(at, measured))
        crossing = crossover(points)
        assert crossing is not None
        assert crossing.kind == "stops"
        low, high = crossing.low or 0.0, crossing.high or math.inf
        held += low <= 300 <= high
    assert held >= 186


def test_between_cells_far_apart_a_bend_is_allowed_for() -> None:
    """Overhead and work: the ratio bends, and a straight line across a wide gap misses where it crosses."""
    chance = np.random.default_rng(2)
    held = 0
    for _ in range(100):
        overheads, rates = chance.uniform(100, 800, 2), chance.uniform(0.8, 2.0, 2)
        ours, rival = (min(overheads), max(rates)), (max(overheads), min(rates))
        truth = (rival[0] - ours[0]) / (ours[1] - rival[1])
        points = []
        for at in (4, 16, 64, 1024, 4096, 65536, 1048576):
            ratio = (rival[0] + rival[1] * at) / (ours[0] + ours[1] * at)
            points.append(Point(at, speed(ratio, 0.003, 0.005)))
        crossing = crossover(points)
        if crossing is None or crossing.low is None or crossing.high is None:
            held += 1
            continue
        held += crossing.low <= truth <= crossing.high
    assert held >= 93


def test_the_bounds_stay_between_the_cells_on_either_side() -> None:
    crossing = found(line((8, 3.0), (64, 2.9), (2048, 0.9), (4096, 0.89)))
    assert 64 <= crossing.low <= crossing.at <= crossing.high <= 2048  # type: ignore[operator]
    assert crossing.high == pytest.approx(2048)
