"""A live run: native at once, the others as they come, and one that fails takes nobody along."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from app.core import messages as m
from app.core.catalog import TWIN
from app.core.environment import Device
from app.core.measurements import Counts
from app.core.plan import Measure
from app.engine.live import COUNTS_AFTER_S, LiveRun
from app.engine.profiler_protocol import CountPassed, CountRefused
from app.engine.run import DeviceLostError
from tests.engine.support import TINY, Stage, with_


@pytest.fixture
def stage() -> Stage:
    return Stage()


def live(stage: Stage, start: m.Start, inherited: Any = None) -> LiveRun:
    return LiveRun(start, stage.shop, inherited)


def raises(error: BaseException, after: int = 0) -> Any:
    """A contender whose call raises, the first time or after some calls."""

    def prepare(workload: Any, inputs: Any) -> Any:
        calls = [0]

        def call() -> torch.Tensor:
            calls[0] += 1
            if calls[0] > after:
                raise error
            return inputs.x

        return call

    return prepare


def test_native_is_sampled_before_another_is_prepared(stage: Stage):
    stage.add("other")
    run = live(stage, stage.start("other", "native"))
    stage.drive(run, lambda: bool(stage.samples("native")))
    assert not stage.samples("other")
    assert stage.all(m.Samples)[0].pid == stage.shop.pid


def test_the_first_sample_of_each_contender_is_sent_at_once_and_later_ones_together(stage: Stage):
    stage.add("other")
    run = live(stage, stage.start("native", "other"))
    stage.drive(run, lambda: run.round > 60)
    batches = stage.all(m.Samples)
    assert len(batches[0].samples) == 1
    assert max(len(batch.samples) for batch in batches) > 10


def test_every_ready_contender_and_the_twin_is_measured_once_per_round(stage: Stage):
    stage.add("other", 3e-4)
    run = live(stage, stage.start("native", "other"))
    stage.drive(run, lambda: run.round > 20)
    run.close()
    rounds = {name: [s.round for s in stage.samples(name)] for name in ("native", "other", TWIN)}
    for numbers in rounds.values():
        assert len(numbers) == len(set(numbers))
    complete = set(rounds["other"])
    assert complete <= set(rounds["native"])
    assert complete <= set(rounds[TWIN])
    assert [s.seconds for s in stage.samples("other")] == pytest.approx([3e-4] * len(rounds["other"]))


def test_a_contender_that_raises_in_its_first_call_fails_with_its_reason(stage: Stage):
    stage.add("broken", prepare=raises(ValueError("a mask\nof the wrong shape")))
    run = live(stage, stage.start("native", "broken"))
    stage.drive(run, lambda: run.round > 10)
    state = stage.state_of("broken")
    assert state.state == "failed"
    assert state.reason == "ValueError: a mask of the wrong shape"
    assert stage.samples("native")


def test_a_contender_that_raises_later_leaves_the_round_and_the_others_go_on(stage: Stage):
    native_prepare = stage.registry["native"].prepare

    def prepare(workload: Any, inputs: Any) -> Any:
        forward, begun = native_prepare(workload, inputs), stage.device.time

        def call() -> torch.Tensor:
            if stage.device.time > begun + 0.2:
                raise RuntimeError("no more")
            return forward()

        return call

    stage.add("tired", prepare=prepare)
    run = live(stage, stage.start("native", "tired"))
    stage.drive(run, lambda: run.round > 150)
    assert stage.state_of("tired").state == "failed"
    last = max(s.round for s in stage.samples("tired"))
    assert max(s.round for s in stage.samples("native")) > last + 50


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError(
            "[enforce fail at alloc_cpu.cpp:1] DefaultCPUAllocator: can't allocate memory: you "
            "tried to allocate 68719476736 bytes. Error code 12 (Cannot allocate memory)"
        ),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 64.00 GiB. GPU 0 has"),
    ],
)
def test_out_of_memory_is_said_in_one_sentence_with_the_size(stage: Stage, error: BaseException):
    stage.add("huge", prepare=raises(error))
    run = live(stage, stage.start("native", "huge"))
    stage.drive(run, lambda: run.round > 5)
    state = stage.state_of("huge")
    assert (state.state, "out of memory" in state.reason) == ("failed", True)
    assert state.remedy
    if "64.00" in str(error) or "6871" in str(error):
        assert "64.00 GiB" in state.reason or "68.7 GB" in state.reason


def test_a_contender_that_leaves_the_process_does_not_take_it_along(stage: Stage):
    stage.add("leaver", prepare=raises(SystemExit(7)))
    run = live(stage, stage.start("native", "leaver"))
    stage.drive(run, lambda: run.round > 5)
    assert "exit status 7" in stage.state_of("leaver").reason


def test_a_driver_reset_is_said_and_asks_for_a_new_worker(stage: Stage):
    stage.add("long", prepare=raises(RuntimeError("CUDA error: the launch timed out and was terminated")))
    run = live(stage, stage.start("native", "long"))
    with pytest.raises(DeviceLostError, match="the driver was reset"):
        stage.drive(run, lambda: run.round > 5)
    assert "the worker was restarted" in stage.state_of("long").reason


def test_what_is_about_to_be_done_is_said_before_it_is_done(stage: Stage):
    seen: list[Any] = []

    def prepare(workload: Any, inputs: Any) -> Any:
        seen.append(stage.sent[-1])

        def call() -> torch.Tensor:
            if len(seen) == 1:
                seen.append(stage.sent[-1])
            return inputs.x

        return call

    stage.add("watched", prepare=prepare)
    run = live(stage, stage.start("native", "watched"))
    stage.drive(run, lambda: len(seen) == 2)
    assert seen == [m.Active(1, 0, "watched", "prepare"), m.Active(1, 0, "watched", "first call")]


def test_a_careful_run_says_whose_block_is_next_and_loses_no_sample(stage: Stage):
    run = live(stage, stage.start("native", careful=True))
    stage.drive(run, lambda: run.round > 3)
    blocks = [active for active in stage.all(m.Active) if active.step == "sample"]
    assert len(blocks) >= 6
    assert {active.implementation for active in blocks} == {"native"}


def test_an_excluded_contender_is_not_touched(stage: Stage):
    stage.add("deadly", prepare=raises(AssertionError("it was prepared")))
    run = live(
        stage, stage.start("native", "deadly", excluded={"deadly": "the worker crashed during deadly"})
    )
    stage.drive(run, lambda: run.round > 5)
    assert stage.state_of("deadly").reason == "the worker crashed during deadly"
    assert stage.state_of("deadly").state == "failed"


def test_an_unknown_contender_and_an_unsupported_one_are_unavailable(stage: Stage):
    from app.engine.implementations import Unsupported

    stage.add("picky", unsupported=lambda workload: Unsupported("only on Sundays", "wait"))
    run = live(stage, stage.start("native", "picky", "unheard-of"))
    stage.drive(run, lambda: run.round > 5)
    assert (stage.state_of("picky").state, stage.state_of("picky").remedy) == ("unavailable", "wait")
    assert "unheard-of" in stage.state_of("unheard-of").reason


def test_a_call_that_cannot_fit_is_refused_before_the_system_kills_the_worker(stage: Stage):
    stage.add("wide", scratch_bytes=lambda workload: 10**15)
    run = live(stage, stage.start("native", "wide"))
    stage.drive(run, lambda: run.round > 5)
    state = stage.state_of("wide")
    assert state.state == "unavailable"
    assert "1,000,000.0 GB" in state.reason


def test_inputs_that_cannot_fit_leave_no_contender(stage: Stage):
    huge = with_(TINY, batch=65536, seq_len=131072, embed_dim=65536, num_heads=1)
    stage.drive(live(stage, stage.start("native", workloads=(huge,))))
    assert "GB" in stage.state_of("native").reason
    assert stage.all(m.WorkloadDone) == [m.WorkloadDone(1, 0, "no_contender")]


def test_no_contender_left_is_said_once(stage: Stage):
    stage.add("broken", prepare=raises(ValueError("no")))
    run = live(stage, stage.start("broken", baseline="broken"))
    stage.drive(run)
    stage.drive(run)
    assert stage.all(m.WorkloadDone) == [m.WorkloadDone(1, 0, "no_contender")]


def test_a_device_that_is_not_there_is_a_reason_and_not_a_crash(stage: Stage):
    missing = Device("cuda:3", "cuda:3", usable=False, reason="there is no device cuda:3", remedy="cpu")
    stage.shop.resolve = lambda workload: (workload, missing)
    stage.drive(live(stage, stage.start("native")))
    assert stage.state_of("native").reason == "there is no device cuda:3"
    assert stage.state_of("native").remedy == "cpu"


# ---- the extension -------------------------------------------------------------------------------------


def test_the_extension_joins_by_itself_when_it_is_built(stage: Stage):
    stage.add("extension", needs="extension")
    run = live(stage, stage.start("native", "extension"))
    stage.drive(run, lambda: run.round > 3)
    assert stage.state_of("extension").reason == "the extension is not built yet"
    stage.extension.state = "building"
    run.extension_changed()
    stage.drive(run, lambda: run.round > 6)
    run.flush()
    assert stage.state_of("extension").reason == "the extension is being built"
    assert all(s.disturbed == "build" for s in stage.samples("native")[-2:])
    stage.extension.state = "loaded"
    run.extension_changed()
    stage.drive(run, lambda: bool(stage.samples("extension")))
    assert stage.state_of("extension").state == "ready"


def test_a_build_that_failed_is_the_contenders_reason(stage: Stage):
    stage.add("extension", needs="extension")
    stage.extension.state, stage.extension.reason, stage.extension.remedy = (
        "failed",
        "no compiler",
        "install one",
    )
    run = live(stage, stage.start("native", "extension"))
    stage.drive(run, lambda: run.round > 3)
    state = stage.state_of("extension")
    assert (state.state, state.reason, state.remedy) == ("unavailable", "no compiler", "install one")


# ---- what disturbs -------------------------------------------------------------------------------------


def test_samples_beside_a_pass_say_so_and_rounds_are_spaced(stage: Stage):
    run = live(stage, stage.start("native"))
    stage.drive(run, lambda: run.round > 25)
    stage.profiler.busy = True
    begun, rounds = stage.device.time, run.round
    stage.drive(run, lambda: run.round > rounds + 10)
    run.close()
    assert stage.samples("native")[-1].disturbed == "profiling"
    assert stage.samples("native")[3].disturbed == ""
    assert stage.device.time - begun > 0.3


def test_a_slow_preparation_goes_on_beside_the_samples(stage: Stage):
    stage.add("compiled", slow_to_prepare=True)
    run = live(stage, stage.start("native", "compiled"))
    stage.drive(run, lambda: stage.shop.background.token is not None)
    stage.shop.background.join()
    assert stage.state_of("compiled").state == "preparing"
    (token, error) = stage.finished.pop()
    run.prepared_in_background(token, error)
    stage.drive(run, lambda: bool(stage.samples("compiled")))
    assert stage.state_of("compiled").state == "ready"


def test_a_slow_preparation_runs_under_the_sampled_gradient_mode(stage: Stage):
    modes = []

    def prepare(workload: Any, inputs: Any) -> Any:
        def call() -> torch.Tensor:
            modes.append((torch.is_grad_enabled(), torch.get_num_threads()))
            return inputs.x * 1

        return call

    stage.add("compiled", prepare=prepare, slow_to_prepare=True)
    run = live(stage, stage.start("native", "compiled"))
    stage.drive(run, lambda: stage.shop.background.token is not None)
    stage.shop.background.join()
    assert modes == [(False, torch.get_num_threads())] * 2


def test_a_slow_preparation_that_fails_is_reported(stage: Stage):
    stage.add("compiled", prepare=raises(RuntimeError("no template")), slow_to_prepare=True)
    run = live(stage, stage.start("native", "compiled"))
    stage.drive(run, lambda: stage.shop.background.token is not None)
    stage.shop.background.join()
    run.prepared_in_background(*stage.finished.pop())
    assert stage.state_of("compiled").reason == "RuntimeError: no template"


# ---- a changed control ---------------------------------------------------------------------------------


def test_lanes_of_the_same_workload_are_kept_and_reported_again(stage: Stage):
    prepared: list[int] = []
    stage.add("other")
    original = stage.registry["other"].prepare

    def prepare(workload: Any, inputs: Any) -> Any:
        prepared.append(1)
        return original(workload, inputs)

    stage.add("other", prepare=prepare)
    first = live(stage, stage.start("native", "other", measure=Measure(accuracy=False, counts=False)))
    stage.drive(first, lambda: first.round > 5)
    assert len(prepared) == 1
    for generation, names in ((2, ("native",)), (3, ("native", "other"))):
        stage.sent.clear()
        start = stage.start(*names, generation=generation, measure=Measure(accuracy=False, counts=False))
        first = live(stage, start, first.bench)
        stage.drive(first, lambda: first.round > 2)  # noqa: B023
    assert len(prepared) == 1
    assert {message.generation for message in stage.all(m.Samples)} == {3}
    assert stage.state_of("other").state == "ready"
    assert stage.state_of("other").generation == 3


def test_accuracy_and_counts_of_the_same_workload_are_said_again_and_not_measured_again(stage: Stage):
    run = live(stage, stage.start("native"))
    stage.drive(run, lambda: bool(stage.profiler.requests))
    stage.drive(run, lambda: bool(stage.all(m.Checked)))
    request = stage.profiler.requests[0]
    run.counted(CountPassed(request.id, 77, Counts(verified=True)))
    stage.sent.clear()
    again = live(stage, stage.start("native", generation=2), run.bench)
    stage.drive(again, lambda: stage.device.time > 0 and again.round > 100)
    assert [message.generation for message in stage.all(m.Checked)] == [2]
    assert [(message.generation, message.pid) for message in stage.all(m.Counted)] == [(2, 77)]
    assert len(stage.profiler.requests) == 1


def test_another_workload_gets_new_inputs_and_the_old_ones_go(stage: Stage):
    run = live(stage, stage.start("native"))
    stage.drive(run, lambda: run.round > 3)
    old = run.bench
    other = with_(TINY, seq_len=4)
    new = live(stage, stage.start("native", generation=2, workloads=(other,)), old)
    stage.drive(new, lambda: new.round > 3)
    assert old is not None
    assert old.inputs is None
    assert new.bench is not None
    assert new.bench.workload == other


def test_a_held_key_starts_no_passes_and_no_checks(stage: Stage):
    run = live(stage, stage.start("native"))
    for generation in range(2, 12):
        begun = stage.device.time
        stage.drive(run, lambda: stage.device.time > begun + COUNTS_AFTER_S / 2)  # noqa: B023
        start = stage.start("native", generation=generation, workloads=(with_(TINY, seq_len=generation),))
        run = live(stage, start, run.bench)
    assert stage.profiler.requests == []
    stage.drive(run, lambda: bool(stage.profiler.requests))
    assert len(stage.profiler.requests) == 1
    assert stage.profiler.requests[0].workload.seq_len == 11


def test_counts_are_asked_for_with_the_samplers_own_settings(stage: Stage):
    run = live(stage, stage.start("native"))
    stage.drive(run, lambda: bool(stage.profiler.requests))
    request = stage.profiler.requests[0]
    assert request.workload == TINY
    assert request.threads == torch.get_num_threads()
    run.counted(CountRefused(request.id, 5, "there is no event"))
    assert stage.all(m.CountFailed) == [m.CountFailed(1, 0, "native", "there is no event")]


def test_counts_of_an_older_run_are_dropped(stage: Stage):
    run = live(stage, stage.start("native"))
    stage.drive(run, lambda: bool(stage.profiler.requests))
    stale = stage.profiler.requests[0].id
    new = live(stage, stage.start("native", generation=2, workloads=(with_(TINY, seq_len=4),)), run.bench)
    new.counted(CountPassed(stale, 5, Counts()))
    assert stage.all(m.Counted) == []


def test_counts_can_be_asked_for_again(stage: Stage):
    run = live(stage, stage.start("native"))
    stage.drive(run, lambda: bool(stage.profiler.requests))
    first = stage.profiler.requests[0].id
    run.recount()
    assert [request.id for request in stage.profiler.requests] != [first]
    assert len(stage.profiler.requests) == 1


# ---- the process is left as it was ---------------------------------------------------------------------


def test_a_contender_that_changes_the_process_is_named_and_the_process_put_back(stage: Stage):
    threads = torch.get_num_threads()

    def prepare(workload: Any, inputs: Any) -> Any:
        def call() -> torch.Tensor:
            torch.set_num_threads(threads + 1)
            torch.set_flush_denormal(True)
            return inputs.x * 1

        return call

    stage.add("greedy", prepare=prepare)
    run = live(stage, stage.start("native", "greedy"))
    stage.drive(run, lambda: run.round > 5)
    assert torch.get_num_threads() == threads
    assert 5e-324 * torch.tensor(1.0, dtype=torch.float64) != 0
    told = [notice.text for notice in stage.all(m.Notice)]
    assert len(told) == 2
    assert any(text.startswith("greedy changed the thread count") for text in told)
    assert any("denormal" in text for text in told)


def test_the_thread_count_asked_for_is_set_while_measuring_and_put_back_after(stage: Stage):
    before = torch.get_num_threads()
    seen = []

    def prepare(workload: Any, inputs: Any) -> Any:
        def call() -> torch.Tensor:
            seen.append(torch.get_num_threads())
            return inputs.x * 1

        return call

    stage.add("native", prepare=prepare)
    run = live(stage, stage.start("native", measure=Measure(threads=before + 1)))
    stage.drive(run, lambda: run.round > 3)
    assert set(seen) == {before + 1}
    assert run.bench is not None
    run.bench.close()
    assert torch.get_num_threads() == before


def test_denormal_numbers_are_found_and_said_once(stage: Stage):
    native_prepare = stage.registry["native"].prepare

    def shrinking(workload: Any, inputs: Any) -> Any:
        forward = native_prepare(workload, inputs)

        def call() -> torch.Tensor:
            stage.device.queued += 1e-3
            return forward() + (inputs.x * 1e-39).sum()

        return call

    stage.add("shrinking", prepare=shrinking)
    run = live(stage, stage.start("native", "shrinking"))
    stage.drive(run, lambda: stage.device.time > 101)
    told = [notice.text for notice in stage.all(m.Notice) if "denormal" in notice.text]
    assert len(told) == 1
    assert told[0].startswith("shrinking")


def test_a_failed_lane_is_tried_again_with_the_next_start(stage: Stage):
    attempts = []

    def prepare(workload: Any, inputs: Any) -> Any:
        attempts.append(1)
        if len(attempts) == 1:
            raise ValueError("no")
        return lambda: inputs.x * 1

    stage.add("moody", prepare=prepare)
    run = live(stage, stage.start("native", "moody"))
    stage.drive(run, lambda: run.round > 3)
    assert stage.state_of("moody").state == "failed"
    again = live(stage, stage.start("native", "moody", generation=2), run.bench)
    stage.drive(again, lambda: again.round > 3)
    assert stage.state_of("moody").state == "ready"
