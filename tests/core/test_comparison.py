"""Two recordings compared: claims only what would be claimed of unchanged code almost never."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

import msgspec
import numpy as np
import pytest

from app.core import change as changes
from app.core import messages as m
from app.core.change import Basis, against_bound, judge, ratio_of, spread_of
from app.core.comparison import Comparison, common_baseline, compare
from app.core.machines import machine_rows
from app.core.recording import Recording
from app.core.statistics import median_interval
from app.core.workload import Workload
from tests import factories, two_recordings
from tests.two_recordings import WORKLOADS, recording

FUSED = "extension-aten"


def words(comparison: Comparison, name: str, basis: Basis = "net") -> Counter[str | None]:
    return Counter(change.word(basis) for change in comparison.of(name))


# ---- intervals ---------------------------------------------------------------------------------------------

Draw = Callable[[np.random.Generator, int], np.ndarray]


def autocorrelated(g: np.random.Generator, n: int) -> np.ndarray:
    out = np.empty(n)
    level = 0.0
    for i, shock in enumerate(g.normal(0, 0.03, n)):
        level = 0.7 * level + shock
        out[i] = level
    return np.exp(out)


SAMPLES: dict[str, Draw] = {
    "normal": lambda g, n: 1 + g.normal(0, 0.05, n),
    "heavy-tailed": lambda g, n: np.exp(0.03 * g.standard_t(2, n)),
    "bimodal": lambda g, n: np.where(g.random(n) < 0.3, 1.2, 1.0) * np.exp(g.normal(0, 0.03, n)),
    "autocorrelated": autocorrelated,
}


@pytest.mark.parametrize("kind", list(SAMPLES))
def test_the_interval_of_a_ratio_covers_the_true_one(kind: str) -> None:
    draw, g = SAMPLES[kind], np.random.default_rng(5)
    median = float(
        np.median(draw(np.random.default_rng(1), 400_000 if kind != "autocorrelated" else 100_000))
    )
    assert math.isfinite(median)
    covered = wide = 0
    trials = 400
    for _ in range(trials):
        a, b = median_interval(draw(g, 150)), median_interval(1.3 * draw(g, 90))
        assert a is not None
        assert b is not None
        ratio = ratio_of((b.median, b.low, b.high), (a.median, a.low, a.high))
        if ratio.low is None or ratio.high is None:
            covered += 1
            continue
        covered += ratio.low <= 1.3 <= ratio.high
        wide += ratio.high / ratio.low > 1.25
    assert covered >= 0.93 * trials
    assert wide < 0.2 * trials


def test_a_ratio_without_an_interval_on_one_side_has_none() -> None:
    ratio = ratio_of((2.0, None, None), (1.0, 0.9, 1.1))
    assert (ratio.median, ratio.low, ratio.high) == (2.0, None, None)


# ---- claims ------------------------------------------------------------------------------------------------


def test_unchanged_code_whose_level_differs_from_run_to_run_is_not_called_changed() -> None:
    claimed = total = 0
    for seed in range(12):
        a = recording(between_runs=0.02, seed=2 * seed, workloads=WORKLOADS[:4])
        b = recording(between_runs=0.02, seed=2 * seed + 1, workloads=WORKLOADS[:4])
        for change in compare(a, b).changes:
            if change.net is not None:
                total += 1
                claimed += change.word("net") in ("faster", "slower")
    assert total == 12 * 4 * 3
    assert claimed <= 0.05 * total


def test_a_change_far_beyond_that_is_claimed_in_both_directions() -> None:
    before = recording(between_runs=0.01, seed=1)
    slower = compare(before, recording({FUSED: 1.3}, between_runs=0.01, seed=2))
    faster = compare(before, recording({FUSED: 0.7}, between_runs=0.01, seed=3))
    assert words(slower, FUSED)["slower"] >= 11
    assert words(faster, FUSED)["faster"] >= 11
    assert words(slower, "sdpa")["slower"] == words(faster, "sdpa")["faster"] == 0
    change = slower.of(FUSED)[0]
    assert change.net is not None
    assert change.net.median == pytest.approx(1.3, rel=0.06)
    assert change.net_claim is not None
    assert "lies beyond" in change.net_claim.reason


def test_steady_code_on_a_quiet_machine_is_shown_to_be_the_same() -> None:
    comparison = compare(recording(seed=1, noise=0.004), recording(seed=2, noise=0.004))
    assert words(comparison, FUSED) == Counter(same=12)
    claim = comparison.of(FUSED)[0].net_claim
    assert claim is not None
    assert claim.spread.controls == 24
    assert claim.spread.share < 0.01


def test_a_machine_that_got_slower_moves_the_latency_and_not_the_net() -> None:
    comparison = compare(recording(seed=1), recording(everything=1.2, seed=2))
    for change in comparison.of(FUSED):
        assert change.latency is not None
        assert change.baseline_latency is not None
        assert change.net is not None
        assert change.latency.change == pytest.approx(0.2, abs=0.03)
        assert change.baseline_latency.change == pytest.approx(0.2, abs=0.03)
        expected = (1 + change.latency.change) / (1 + change.baseline_latency.change)
        assert change.net.median == pytest.approx(expected, rel=0.01)
    assert words(comparison, FUSED)["slower"] == 0
    # All contenders moved alike, so that of one alone the latency claims nothing either.
    assert words(comparison, FUSED, "latency")["slower"] == 0
    (mean,) = [mean for mean in comparison.means if mean.implementation == FUSED]
    assert mean.latency == pytest.approx(1.2, rel=0.01)
    assert mean.net == pytest.approx(1.0, rel=0.01)
    assert mean.workloads == len(WORKLOADS)


def test_with_few_other_contenders_the_spread_is_the_one_found_for_unchanged_code() -> None:
    comparison = compare(
        recording(workloads=WORKLOADS[:1], seed=1), recording({FUSED: 1.06}, workloads=WORKLOADS[:1], seed=2)
    )
    (change,) = comparison.of(FUSED)
    assert change.net_claim is not None
    assert change.net_claim.verdict == "unsure"
    assert change.net_claim.spread == changes.Spread(changes.SPREAD["net"])
    assert "between two runs" in change.net_claim.reason


def test_contenders_that_all_moved_are_noise_to_each_other() -> None:
    comparison = compare(recording(between_runs=0.1, seed=1), recording(between_runs=0.1, seed=2))
    assert spread_of(comparison.changes, FUSED, "net").share > 0.1


def test_a_contender_that_changed_everywhere_does_not_hide_what_became_of_the_others() -> None:
    before = recording(seed=1, noise=0.004)
    comparison = compare(before, recording({FUSED: 0.7, "mha": 1.1}, seed=2, noise=0.004))
    assert words(comparison, FUSED) == Counter(faster=12)
    assert words(comparison, "mha") == Counter(slower=12)
    assert words(comparison, "sdpa")["slower"] == words(comparison, "sdpa")["faster"] == 0


def test_the_baseline_has_no_net_change() -> None:
    for change in compare(recording(seed=1), recording(seed=2)).of("native"):
        assert change.net is None
        assert change.net_claim is None
        assert change.baseline_latency is None
        assert change.latency is not None


# ---- what stands against a claim ---------------------------------------------------------------------------


def test_a_wrong_result_on_one_side_is_never_a_change() -> None:
    for wrong_a, wrong_b, side in ((FUSED, "", "A"), ("", FUSED, "B")):
        comparison = compare(recording(wrong=wrong_a, seed=1), recording({FUSED: 1.5}, wrong=wrong_b, seed=2))
        assert words(comparison, FUSED) == Counter(unsure=12)
        for change in comparison.of(FUSED):
            assert change.net is None
            assert change.net_claim is not None
            assert f"wrong result in {side}" in change.net_claim.reason
            assert against_bound(change, 0.05) is None
            assert change.latency_claim is not None
            assert change.latency_claim.verdict == "unsure"


def test_unequal_thread_counts_are_never_compared() -> None:
    a, b = recording(seed=1), recording({FUSED: 2.0}, seed=2)
    assert b.environment is not None
    b.environment = msgspec.structs.replace(b.environment, threads=1)
    comparison = compare(a, b)
    assert words(comparison, FUSED) == Counter(unsure=12)
    assert all(against_bound(change, 0.05) == "unsure" for change in comparison.of(FUSED))
    claim = comparison.of(FUSED)[0].net_claim
    assert claim is not None
    assert "threads differ, 2 and 1" in claim.reason


def test_a_level_that_moved_within_one_of_them_is_unsure() -> None:
    a = factories.recording(rounds=100, seed=1)
    b = factories.recording(rounds=50, seed=2)
    factories.measure(
        b, ("native", "mha", "sdpa", FUSED), "native", 50, 20.0,
        dict.fromkeys(factories.MEDIANS_S, 1.5), seed=3, first_round=50,
    )  # fmt: skip
    for change in compare(a, b).of(FUSED):
        assert change.net_claim is not None
        assert change.net_claim.verdict == "unsure"
        assert "within B" in change.net_claim.reason


def test_too_few_rounds_are_unsure() -> None:
    comparison = compare(recording(rounds=4, seed=1), recording({FUSED: 3.0}, rounds=4, seed=2))
    assert words(comparison, FUSED) == Counter(unsure=12)


def test_a_band_that_leaves_nothing_to_be_the_same_says_so() -> None:
    claim = judge(changes.Ratio(1.0, 0.99, 1.01), 0.2, changes.Spread(0.0))
    assert claim is not None
    assert claim.verdict == "unsure"
    assert "±20.0%" in claim.reason


# ---- what is compared with what ----------------------------------------------------------------------------


def test_what_only_one_has_is_listed_and_not_compared() -> None:
    a = recording(workloads=WORKLOADS[:3], names=("native", "mha", FUSED), seed=1)
    b = recording(workloads=WORKLOADS[2:5], names=("native", "sdpa", FUSED), seed=2)
    comparison = compare(a, b)
    assert comparison.workloads == (WORKLOADS[2],)
    assert comparison.only_a == WORKLOADS[:2]
    assert comparison.only_b == WORKLOADS[3:5]
    assert comparison.implementations == ("native", FUSED)
    assert comparison.implementations_only_a == ("mha",)
    assert comparison.implementations_only_b == ("sdpa",)
    (mha,) = comparison.of("mha")
    assert mha.b is None
    assert mha.a is not None
    assert mha.net_claim is None


def test_recordings_with_nothing_in_common_compare_to_nothing() -> None:
    comparison = compare(recording(workloads=WORKLOADS[:1]), recording(workloads=WORKLOADS[1:2]))
    assert comparison.changes == ()
    assert compare(Recording(), Recording()).changes == ()
    assert compare(Recording(), recording()).only_b == WORKLOADS


def test_the_same_workload_on_another_device_is_another() -> None:
    there = (msgspec.structs.replace(WORKLOADS[0], device="cuda:0"),)
    comparison = compare(recording(workloads=WORKLOADS[:1]), recording(workloads=there))
    assert comparison.only_a == WORKLOADS[:1]
    assert comparison.only_b == there


def test_the_baseline_is_one_that_both_measured() -> None:
    a = recording(names=("native", "sdpa"), baseline="native")
    b = recording(names=("sdpa", "mha", "native"), baseline="sdpa")
    assert common_baseline(a, b) == "sdpa"
    assert common_baseline(a, recording(names=("mha", "native"), baseline="mha")) == "native"
    assert common_baseline(recording(names=("mha",), baseline="mha"), a) == "native"
    # Only its own baseline was measured twice, so that of another there is no noise floor.
    for change in compare(a, b).of("native"):
        assert change.word("net") == "unsure"
        assert change.net_claim is not None
        assert "no noise floor" in change.net_claim.reason


def test_a_comparison_made_in_steps_is_the_same() -> None:
    from app.core.comparison import Comparing

    a, b = recording(seed=1), recording(seed=2)
    comparing = Comparing(a, b)
    steps = 0
    while comparing.step():
        steps += 1
    assert steps == len(WORKLOADS) * len(two_recordings.NAMES)
    assert comparing.result() == compare(a, b)


# ---- the bound ---------------------------------------------------------------------------------------------


def test_a_bound_is_exceeded_only_where_the_noise_between_runs_cannot_explain_it() -> None:
    before = recording(seed=1)
    outcomes = {}
    for factor in (1.0, 1.04, 1.07, 1.3):
        comparison = compare(before, recording({FUSED: factor}, seed=2))
        outcomes[factor] = Counter(against_bound(change, 0.05) for change in comparison.of(FUSED))
    assert outcomes[1.0] == Counter(within=12)
    assert outcomes[1.04]["exceeded"] == 0
    assert outcomes[1.3]["exceeded"] == 12
    assert outcomes[1.07]["within"] == 0
    unsteady = compare(
        recording(between_runs=0.03, seed=1), recording({FUSED: 1.1}, between_runs=0.03, seed=2)
    )
    unsure = Counter(against_bound(change, 0.05) for change in unsteady.of(FUSED))
    assert unsure["unsure"] >= 6
    assert unsure["exceeded"] <= 1
    loose = compare(before, recording({FUSED: 1.3}, seed=2))
    assert all(against_bound(change, 0.5) == "within" for change in loose.of(FUSED))


# ---- machines ----------------------------------------------------------------------------------------------


def test_machines_that_differ_are_told_with_what_that_moves_and_what_only_follows() -> None:
    a, b = recording(seed=1), recording(seed=2)
    assert b.environment is not None
    b.environment = msgspec.structs.replace(
        b.environment, torch="2.14.1", extension_key="abcd", python="3.11.7"
    )
    a.environment = msgspec.structs.replace(a.environment, extension_key="1234")  # type: ignore[type-var]
    for made, mains in ((a, True), (b, False)):
        made.apply(m.Telemetry(1.0, on_mains=mains, clock_hz=2.9e9 if mains else 2.0e9))
    rows = {row.field: row for row in machine_rows(a, b)}
    assert (rows["torch"].a, rows["torch"].b) == ("2.13.0+cpu", "2.14.1")
    assert rows["torch"].differs
    assert "every implementation" in rows["torch"].moves
    assert rows["extension_key"].follows == "PyTorch"
    assert rows["power"].b == "on battery"
    assert rows["clock"].follows == "Power"
    assert not rows["python"].differs
    order = [row.differs for row in machine_rows(a, b)]
    assert order == sorted(order, reverse=True)
    assert [row.field for row in compare(a, b).moving] == ["power", "torch"]


def test_equal_machines_differ_in_nothing() -> None:
    comparison = compare(recording(seed=1), recording(seed=2))
    assert not any(row.differs for row in comparison.machines)
    assert len(comparison.machines) > 8
    assert comparison.moving == ()


def test_what_a_recording_is_stands_beside_its_figures() -> None:
    about = compare(recording(seed=1, title="Last week"), recording(seed=2)).a
    assert about.title == "Last week"
    assert (about.workloads, about.rounds) == (12, 12 * 60)
    assert about.began_s == pytest.approx(factories.START_S)
    assert about.ended_s == pytest.approx(factories.START_S + 11.59)


def test_a_comparison_is_plain_data_for_json() -> None:
    comparison = compare(recording(seed=1, workloads=(Workload(device="cpu"),)), recording(seed=2))
    assert msgspec.json.decode(msgspec.json.encode(comparison), type=Comparison) == comparison
