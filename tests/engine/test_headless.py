"""A headless run: each workload until it is known well enough, with no child at work while sampling."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch

from app.core import messages as m
from app.core.catalog import TWIN
from app.core.measurements import Counts
from app.core.plan import Measure
from app.engine.headless import HeadlessRun
from app.engine.profiler_protocol import CountPassed
from tests.engine.support import TINY, Stage, with_

QUIET = Measure(counts=False, accuracy=False)


@pytest.fixture
def stage() -> Stage:
    return Stage()


def headless(stage: Stage, *names: str, **changes: Any) -> HeadlessRun:
    return HeadlessRun(stage.start(*names, **changes), stage.shop)


def answer(stage: Stage, run: HeadlessRun) -> None:
    """Let the fake profiler answer what it was asked."""
    for request in list(stage.profiler.requests):
        stage.profiler.requests.remove(request)
        run.counted(CountPassed(request.id, 99, Counts(verified=True)))


def drive(stage: Stage, run: HeadlessRun) -> None:
    for _ in range(200):
        stage.drive(run)
        if stage.all(m.RunDone):
            return
        answer(stage, run)
    raise AssertionError("the run does not end")


def test_a_steady_speed_up_stops_early_because_it_is_known(stage: Stage):
    stage.add("fast", 5e-5)
    run = headless(stage, "native", "fast", measure=Measure(counts=False, accuracy=False, min_rounds=30))
    drive(stage, run)
    assert stage.all(m.WorkloadDone) == [m.WorkloadDone(1, 0, "target_ci")]
    assert len(stage.samples("fast")) == len(stage.samples("native")) == len(stage.samples(TWIN)) == 30
    assert stage.all(m.RunDone) == [m.RunDone(1)]


def test_a_restless_speed_up_stops_at_the_time_limit(stage: Stage):
    costs = random.Random(0)

    def prepare(workload: Any, inputs: Any) -> Any:
        def call() -> torch.Tensor:
            stage.device.queued += costs.uniform(1e-3, 5e-3)
            return inputs.x

        return call

    stage.add("restless", prepare=prepare)
    begun = stage.device.time
    drive(
        stage,
        headless(
            stage,
            "native",
            "restless",
            measure=Measure(max_seconds=0.5, target_ci=0.001, counts=False, accuracy=False),
        ),
    )
    assert stage.all(m.WorkloadDone)[0].stopped_because == "max_seconds"
    assert 0.5 <= stage.device.time - begun < 1.0


def test_the_rounds_asked_for_are_made_even_if_it_is_known_before(stage: Stage):
    stage.add("fast", 5e-5)
    measure = Measure(counts=False, accuracy=False, min_rounds=100)
    drive(stage, headless(stage, "native", "fast", measure=measure))
    assert len(stage.samples("fast")) == 100


def test_a_round_is_complete_even_if_one_call_takes_longer_than_the_limit(stage: Stage):
    stage.add("native", 20.0)
    stage.add("slow", 30.0)
    measure = Measure(max_seconds=0.05, counts=False, accuracy=False)
    drive(stage, headless(stage, "native", "slow", measure=measure))
    assert [s.seconds for s in stage.samples("slow")] == [30.0]
    assert [s.calls for s in stage.samples("native")] == [1]


def test_accuracy_comes_first_then_latency_then_counts(stage: Stage):
    run = headless(stage, "native")
    drive(stage, run)
    kinds = [type(message).__name__ for message in stage.sent]
    last_check = max(i for i, kind in enumerate(kinds) if kind == "Checked")
    samples = [i for i, kind in enumerate(kinds) if kind == "Samples"]
    counted = kinds.index("Counted")
    assert last_check < samples[0]
    assert samples[-1] < counted < kinds.index("WorkloadDone")


def test_nothing_is_asked_of_the_profiler_before_the_latency_is_known(stage: Stage):
    run = headless(stage, "native", measure=Measure(accuracy=False))
    stage.drive(run, lambda: run.round > 10)
    assert stage.profiler.requests == []
    drive(stage, run)
    assert len(stage.all(m.Counted)) == 1


def test_workloads_follow_each_other_and_a_restarted_run_begins_where_it_was(stage: Stage):
    workloads = (TINY, with_(TINY, seq_len=4), with_(TINY, seq_len=2))
    drive(stage, headless(stage, "native", workloads=workloads, measure=QUIET, first_workload=1))
    assert [done.workload for done in stage.all(m.WorkloadDone)] == [1, 2]
    assert {batch.workload for batch in stage.all(m.Samples)} == {1, 2}


def test_a_workload_without_contender_is_passed_over(stage: Stage):
    huge = with_(TINY, batch=65536, seq_len=131072, embed_dim=65536, num_heads=1)
    drive(stage, headless(stage, "native", workloads=(huge, TINY), measure=QUIET))
    assert [done.stopped_because for done in stage.all(m.WorkloadDone)] == ["no_contender", "target_ci"]


def test_contenders_that_all_fail_while_sampling_end_the_workload(stage: Stage):
    def prepare(workload: Any, inputs: Any) -> Any:
        begun = stage.device.time

        def call() -> torch.Tensor:
            stage.device.queued += 1e-3
            if stage.device.time > begun + 0.05:
                raise RuntimeError("enough")
            return inputs.x

        return call

    stage.add("native", prepare=prepare)
    drive(stage, headless(stage, "native", measure=QUIET))
    assert stage.all(m.WorkloadDone)[0].stopped_because == "no_contender"
    assert stage.state_of("native").reason == "RuntimeError: enough"


def test_the_extension_is_built_before_anything_is_measured(stage: Stage):
    stage.add("extension", needs="extension")
    run = headless(stage, "native", "extension", measure=QUIET)
    stage.drive(run)
    assert stage.extension.starts == 1
    assert stage.all(m.Samples) == []
    stage.extension.state = "loaded"
    drive(stage, run)
    assert len(stage.samples("extension")) == len(stage.samples("native"))


def test_the_extension_is_not_built_for_contenders_that_do_without(stage: Stage):
    drive(stage, headless(stage, "native", measure=QUIET))
    assert stage.extension.starts == 0


def test_a_failed_build_costs_only_the_contenders_that_need_it(stage: Stage):
    stage.add("extension", needs="extension")
    run = headless(stage, "native", "extension", measure=QUIET)
    stage.drive(run)
    stage.extension.state, stage.extension.reason = "failed", "no compiler"
    drive(stage, run)
    assert stage.state_of("extension").state == "unavailable"
    assert stage.samples("native")


def test_sampling_waits_until_nothing_else_goes_on(stage: Stage):
    stage.profiler.busy = True
    run = headless(stage, "native", measure=QUIET)
    stage.drive(run)
    assert stage.all(m.Samples) == []
    stage.profiler.busy = False
    drive(stage, run)
    assert all(sample.disturbed == "" for sample in stage.samples("native"))


def test_disturbed_rounds_do_not_make_a_speed_up_known(stage: Stage):
    stage.add("fast", 5e-5)
    run = headless(stage, "native", "fast", measure=QUIET)
    stage.drive(run, lambda: run.round > 2)
    stage.extension.state = "building"
    stage.drive(run, lambda: run.round > 60)
    stage.extension.state = "absent"
    drive(stage, run)
    undisturbed = [sample for sample in stage.samples("fast") if not sample.disturbed]
    assert len(stage.samples("fast")) > 60
    assert stage.all(m.WorkloadDone)[0].stopped_because == "target_ci"
    assert len(undisturbed) >= 5


def test_a_pause_is_no_measuring_time(stage: Stage):
    stage.add("restless", 1e-3)
    run = headless(
        stage,
        "native",
        "restless",
        measure=Measure(max_seconds=1.0, target_ci=0.0005, min_rounds=100_000, counts=False, accuracy=False),
    )
    stage.drive(run, lambda: run.round > 20)
    stage.device.time += 3600
    rounds = run.round
    drive(stage, run)
    assert run.round > rounds + 100


def test_without_a_baseline_the_latencies_decide(stage: Stage):
    stage.add("alone")
    drive(stage, headless(stage, "alone", measure=QUIET))
    assert stage.all(m.WorkloadDone)[0].stopped_because == "target_ci"
    assert not stage.samples(TWIN)


def test_thread_count_and_gradient_mode_are_put_back(stage: Stage):
    threads, gradients = torch.get_num_threads(), torch.is_grad_enabled()
    measure = Measure(threads=threads + 1, counts=False)
    drive(stage, headless(stage, "native", measure=measure))
    assert (torch.get_num_threads(), torch.is_grad_enabled()) == (threads, gradients)


def test_the_same_thread_count_is_profiled(stage: Stage):
    run = headless(stage, "native", measure=Measure(threads=1, accuracy=False))
    stage.drive(run)
    assert stage.profiler.requests[0].threads == 1
    drive(stage, run)
