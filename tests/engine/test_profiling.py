"""Profile passes of plain calls and of the contenders, on the CPU."""

from __future__ import annotations

import gc
import gzip
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile, record_function

from app.core.measurements import Phased
from app.core.trace import Trace, count_calls, facts, read, window_of
from app.core.workload import Workload
from app.engine import profiling
from app.engine.implementations.registry import shipped
from app.engine.inputs import make_inputs
from app.engine.profiling import Profiler, ProfilingError
from tests.core.synthetic_trace import Maker

TITLE = "the call"


@pytest.fixture(scope="module")
def profiler() -> Profiler:
    return Profiler()


@pytest.fixture(autouse=True)
def _same_process_state() -> Iterator[None]:
    """A pass leaves the process as it found it."""
    engine = torch.autograd.Variable._execution_engine
    threads, init = torch.get_num_threads(), record_function.__init__
    yield
    assert torch.autograd.Variable._execution_engine is engine
    assert torch.get_num_threads() == threads
    assert record_function.__init__ is init
    assert not torch.autograd._profiler_enabled()


def contender(name: str, **changes: Any) -> tuple[Callable[[], object], Workload]:
    workload = Workload(batch=2, seq_len=16, embed_dim=32, num_heads=4, device="cpu", **changes)
    inputs = make_inputs(workload)
    return inputs.call(shipped()[name].prepare(workload, inputs)), workload


def trace_of(trace_gz: bytes) -> Trace:
    return read(trace_gz, "exported")


def two_operators() -> Tensor:
    return torch.ones(64) + 1


# ---- what is counted -----------------------------------------------------------------------------------


def test_native_makes_more_than_fifteen_python_calls_forward(profiler: Profiler) -> None:
    call, _ = contender("native")
    counts = profiler.profile(call).counts
    assert counts.python_calls.forward > 15
    assert counts.python_calls.backward is None
    assert counts.operator_calls.forward > counts.python_calls.forward
    assert counts.operator_calls.backward is None
    assert counts.kernel_launches is None


@pytest.mark.parametrize("name", ["native", "sdpa"])
def test_a_decoding_step_has_a_forward_part_alone(profiler: Profiler, name: str) -> None:
    call, _ = contender(name, mode="decode")
    counts = profiler.profile(call).counts
    assert counts.python_calls.forward > 10
    assert counts.python_calls.backward is None
    assert counts.operator_calls.backward is None


@pytest.mark.parametrize("name", ["native", "mha", "sdpa"])
def test_a_training_step_is_a_forward_pass_and_one_entry_into_the_engine(
    profiler: Profiler, name: str
) -> None:
    call, workload = contender(name, mode="forward_backward")
    profiled = profiler.profile(call, backward=workload.backward, title=TITLE)
    counts = profiled.counts
    assert counts.python_calls.backward == 1
    assert counts.operator_calls.backward > 0
    trace = trace_of(profiled.trace_gz)
    ops = sum(event["name"].startswith("aten::") for event in json_of(profiled.trace_gz)["traceEvents"])
    assert counts.operator_calls.total == ops
    # The trace alone says the same as the counter at the engine's door.
    assert count_calls(trace, window_of(trace, TITLE), backward=True) == counts


def test_the_forward_part_of_a_training_step_is_that_of_the_forward_pass(profiler: Profiler) -> None:
    forward, _ = contender("native")
    step, _ = contender("native", mode="forward_backward")
    alone = profiler.profile(forward).counts
    within = profiler.profile(step, backward=True).counts
    assert within.python_calls.forward == alone.python_calls.forward
    assert within.operator_calls.forward == alone.operator_calls.forward


@pytest.fixture(scope="module")
def one_operator() -> Iterator[Callable[[Tensor], Tensor]]:
    """An operator with a backward of its own, composed of others, as an extension registers one."""
    library = torch.library.Library("attnscope_test", "DEF")
    library.define("layer(Tensor x) -> Tensor")

    class Layer(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            with torch._C._AutoDispatchBelowAutograd():
                return (torch.mm(x, x) + x).relu()

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Tensor:
            (x,) = ctx.saved_tensors
            return grad.mm(x.t()) + grad

    library.impl("layer", lambda x: (torch.mm(x, x) + x).relu(), "CPU")
    library.impl("layer", Layer.apply, "AutogradCPU")
    yield torch.ops.attnscope_test.layer
    library._destroy()


def test_a_layer_behind_one_operator_is_one_python_call(
    profiler: Profiler, one_operator: Callable[[Tensor], Tensor]
) -> None:
    x = torch.randn(8, 8)
    counts = profiler.profile(lambda: one_operator(x)).counts
    assert counts.python_calls == Phased(1, None)
    assert counts.operator_calls.forward > 3


def test_a_layer_behind_one_operator_is_one_python_call_in_a_training_step(
    profiler: Profiler, one_operator: Callable[[Tensor], Tensor]
) -> None:
    x = torch.randn(8, 8, requires_grad=True)
    gradient = torch.ones(8, 8)

    def step() -> None:
        x.grad = None
        one_operator(x).backward(gradient)

    counts = profiler.profile(step, backward=True).counts
    assert counts.python_calls == Phased(1, 1)
    assert counts.operator_calls.backward > 2


def test_each_entry_into_the_engine_counts_and_one_inside_another_does_not(profiler: Profiler) -> None:
    x = torch.randn(8, requires_grad=True)

    def twice() -> None:
        torch.autograd.grad(x.exp().sum(), x)
        torch.autograd.grad(x.exp().sum(), x)

    def checkpointed() -> None:
        from torch.utils.checkpoint import checkpoint

        checkpoint(lambda t: t.exp().sin(), x, use_reentrant=True).sum().backward()

    assert profiler.profile(twice, backward=True).counts.python_calls.backward == 2
    assert profiler.profile(checkpointed, backward=True).counts.python_calls.backward == 1


def test_a_callers_own_range_moves_nothing(profiler: Profiler) -> None:
    call, _ = contender("native", mode="forward_backward")

    def labelled() -> object:
        with record_function("backward"):
            return call()

    assert profiler.profile(labelled, backward=True).counts == profiler.profile(call, backward=True).counts


# ---- passes and sessions -------------------------------------------------------------------------------


def test_the_first_pass_of_a_process_is_thrown_away() -> None:
    calls: list[bool] = []

    def call() -> Tensor:
        calls.append(torch.autograd._profiler_enabled())
        result = torch.ones(4)
        if calls.count(True) == 1:  # the pass to throw away does more
            result = result + 1 + 1 + 1
        return result

    fresh = Profiler()
    assert fresh.profile(call).counts.python_calls.forward == 1
    timed = profiling.TIMED_CALLS - 1
    assert calls == [False] * profiling.WARMUP_CALLS + [True] * (3 + timed)
    calls.clear()
    fresh.profile(call)
    assert calls.count(True) == 2 + timed


def test_the_cost_of_profiling_is_the_median_of_several_calls(
    profiler: Profiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call that is slow now and then, as all are, is not what a call under the profiler takes."""
    under = []

    def call() -> Tensor:
        if torch.autograd._profiler_enabled():
            under.append(1)
            # The counted call, the first timed one, is the outlier.
            time.sleep(0.05 if len(under) == 1 else 0.002)
        return torch.ones(4) + 1

    profiler.profile(lambda: torch.ones(4) + 1)
    monkeypatch.setattr(profiling, "TIMED_S", 1.0)
    found = profiler.profile(call)
    assert found.timed == profiling.TIMED_CALLS
    assert 0.002 <= found.seconds < 0.05


def test_a_call_of_seconds_is_not_repeated_to_learn_what_profiling_costs(
    profiler: Profiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profiling, "TIMED_S", 1e-9)
    found = profiler.profile(two_operators)
    assert found.timed == 1
    assert found.seconds > 0


def test_two_requests_at_once_give_two_full_results_in_order(profiler: Profiler) -> None:
    finished: list[tuple[str, int | None]] = []
    inside = threading.Event()

    def slow() -> Tensor:
        inside.set()
        return two_operators()

    def request(name: str, call: Callable[[], object]) -> None:
        finished.append((name, profiler.profile(call).counts.python_calls.forward))

    first = threading.Thread(target=request, args=("first", slow))
    first.start()
    assert inside.wait(30)
    second = threading.Thread(target=request, args=("second", lambda: two_operators() + 1))
    second.start()
    first.join(60)
    second.join(60)
    assert finished == [("first", 2), ("second", 3)]


def test_work_of_another_thread_is_an_empty_pass_and_an_error(profiler: Profiler) -> None:
    def elsewhere() -> None:
        worker = threading.Thread(target=two_operators)
        worker.start()
        worker.join()

    with pytest.raises(ProfilingError, match="no operator in its own thread"):
        profiler.profile(elsewhere)


def test_a_session_open_elsewhere_is_an_error_not_an_empty_result(profiler: Profiler) -> None:
    with (
        profile(activities=[ProfilerActivity.CPU]),
        pytest.raises(ProfilingError, match="Another profiler session"),
    ):
        profiler.profile(two_operators)


def test_an_export_that_writes_nothing_is_an_error(
    profiler: Profiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profile, "export_chrome_trace", lambda self, path: None)
    with pytest.raises(ProfilingError, match="wrote nothing"):
        profiler.profile(two_operators)


def test_what_the_call_raises_comes_out_and_the_next_pass_is_whole(profiler: Profiler) -> None:
    def broken() -> None:
        if torch.autograd._profiler_enabled():
            raise ValueError("no such head")
        two_operators()

    with pytest.raises(ValueError, match="no such head"):
        profiler.profile(broken)
    assert profiler.profile(two_operators).counts.python_calls.forward == 2


def test_the_profilers_own_errors_become_sentences(
    profiler: Profiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(self: profile) -> None:
        raise RuntimeError("CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED")

    monkeypatch.setattr(profile, "start", busy)
    with pytest.raises(ProfilingError, match="Another tool"):
        profiler.profile(two_operators)


def test_profiled_seconds_are_those_of_the_call_under_the_profiler(profiler: Profiler) -> None:
    profiled = profiler.profile(two_operators, title=TITLE)
    trace = trace_of(profiled.trace_gz)
    window = window_of(trace, TITLE)
    assert 0 < profiled.seconds <= (window.end - window.start) / 1e9
    found = facts(trace)
    assert found["span_us"] <= found["span_with_profiler_marker_us"]


@pytest.mark.slow
def test_memory_does_not_grow_with_passes() -> None:
    """In a process of its own, so that nothing else's memory counts."""
    code = """
import psutil, torch
from app.engine.profiling import Profiler
profiler, me = Profiler(), psutil.Process()
for number in range(1, 301):
    profiler.profile(lambda: torch.ones(64) + 1)
    if number == 100:
        before = me.memory_info().rss
print(me.memory_info().rss - before)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert int(done.stdout) < 5 * 1024**2


def test_sessions_are_collected_regularly(profiler: Profiler, monkeypatch: pytest.MonkeyPatch) -> None:
    collected = []
    monkeypatch.setattr(gc, "collect", lambda *_: collected.append(1))
    for _ in range(profiling.COLLECT_EVERY):
        profiler.profile(two_operators)
    assert len(collected) >= 2  # a request is three sessions


# ---- passes on a device, from made-up traces -----------------------------------------------------------


def device_pass(lost: int = 0) -> profiling._Pass:
    maker = Maker().mark(0, 500, profiling.MARKER).op("aten::mm", 1, 400)
    for number in range(1, 5):
        maker.call("cudaLaunchKernel", number, 10 * number)
        if number > lost:
            maker.work("gemm", number, 100 + 10 * number)
    text = maker.json()
    return profiling._Pass(text, read(text), 0.0005, 0, {})


@pytest.fixture
def device_profiler(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Profiler, list[bool]]]:
    """A profiler whose sessions on a device give the passes handed in, after the one thrown away."""
    monkeypatch.setattr(profiling, "_synchronise", lambda device, on_device: None)
    monkeypatch.setattr(profiling, "_allocator_peak", lambda call, device: 4096)

    def make(*passes: profiling._Pass) -> tuple[Profiler, list[bool]]:
        waiting = [device_pass(lost=4), *passes]
        taken: list[bool] = []
        profiler = Profiler()

        def session(*_: object, **__: object) -> profiling._Pass:
            profiler._sessions += 1
            taken.append(True)
            return waiting.pop(0)

        monkeypatch.setattr(profiler, "_timed", lambda *_: [])
        monkeypatch.setattr(profiler, "_session", session)
        return profiler, taken

    return make


def test_a_device_pass_whose_launches_all_match_is_taken_at_once(device_profiler: Any) -> None:
    profiler, taken = device_profiler(device_pass())
    profiled = profiler.profile(two_operators, device="cuda:0")
    assert profiled.counts.kernel_launches == Phased(4, None)
    assert profiled.counts.verified
    assert profiled.memory.peak_bytes == 4096
    assert len(taken) == 2


def test_lost_records_repeat_the_pass_until_all_match(device_profiler: Any) -> None:
    profiler, taken = device_profiler(device_pass(lost=2), device_pass(lost=1), device_pass())
    assert profiler.profile(two_operators, device="cuda:0").counts.verified
    assert len(taken) == 4


def test_records_that_stay_lost_are_shown_as_such(device_profiler: Any) -> None:
    profiler, taken = device_profiler(*[device_pass(lost=1)] * profiling.ATTEMPTS)
    counts = profiler.profile(two_operators, device="cuda:0").counts
    assert len(taken) == 1 + profiling.ATTEMPTS
    assert counts.kernel_launches == Phased(4, None)
    assert not counts.verified
    assert "1 of 4 launches" in counts.note
    assert "after 3 passes" in counts.note
    assert "another tool" in counts.note


# ---- memory --------------------------------------------------------------------------------------------


def test_peak_memory_is_what_the_call_had_allocated_at_once(profiler: Profiler) -> None:
    held = torch.ones(1000, dtype=torch.float64)

    def call() -> Tensor:
        a = held + held  # 8000 bytes
        b = a + held  # 16000 alive
        del a
        return b + held  # 16000 alive again

    assert profiler.profile(call).memory.peak_bytes == 16_000


def test_memory_from_before_the_call_offsets_nothing_when_freed(profiler: Profiler) -> None:
    box: list[Tensor] = []

    def call() -> None:
        box.clear()
        box.append(torch.empty(500, dtype=torch.float64))

    assert profiler.profile(call).memory.peak_bytes == 4_000


ALLOCATOR_PEAK = profiling._allocator_peak
"""As it is, before `device_profiler` replaces it."""


class Allocator:
    """torch.cuda's statistics, fed by hand. `kept` stands for gradients that each call replaces."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = self.peak = 1_000  # inputs and parameters
        self.kept = 0
        monkeypatch.setattr(torch.cuda, "synchronize", lambda device: None)
        monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: self.now)
        monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: self.peak)
        monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", self.reset)

    def reset(self, device: str) -> None:
        self.peak = self.now

    def take(self, size: int) -> None:
        self.now += size
        self.peak = max(self.peak, self.now)

    def release(self) -> None:
        self.take(-self.kept)
        self.kept = 0

    def step(self) -> None:
        self.release()
        self.take(50)
        self.take(200)
        self.kept = 200
        self.take(-50)


def test_gradients_belong_to_the_memory_of_the_call_on_a_device_too(
    monkeypatch: pytest.MonkeyPatch, device_profiler: Any
) -> None:
    profiler, _ = device_profiler(device_pass())
    monkeypatch.setattr(profiling, "_allocator_peak", ALLOCATOR_PEAK)
    device = Allocator(monkeypatch)
    profiled = profiler.profile(device.step, device="cuda:0", release=device.release)
    assert profiled.memory.peak_bytes == 250


# ---- the trace -----------------------------------------------------------------------------------------


def json_of(trace_gz: bytes) -> dict[str, Any]:
    return json.loads(gzip.decompress(trace_gz))


def ranges(trace_gz: bytes) -> list[str]:
    return [e["name"] for e in json_of(trace_gz)["traceEvents"] if e.get("cat") == "user_annotation"]


@pytest.mark.parametrize(
    "label",
    ['say "hi"', 'odd " quote', "back\\slash", "emoji \U0001f642", "accénted", "tab\tand\nline", "plain"],
)
def test_labels_survive_as_given(profiler: Profiler, label: str) -> None:
    def labelled() -> Tensor:
        with record_function(label):
            return two_operators()

    title = f"Títle of {label}"
    profiled = profiler.profile(labelled, title=title)
    assert ranges(profiled.trace_gz) == [title, label]
    trace = trace_of(profiled.trace_gz)
    assert trace.warnings == ()
    assert count_calls(trace, window_of(trace, title)) == profiled.counts


def test_one_label_stays_one_label(profiler: Profiler) -> None:
    def labelled() -> None:
        for name in ("é", "ü", "é"):
            with record_function(name):
                two_operators()

    assert ranges(profiler.profile(labelled, title="t").trace_gz) == ["t", "é", "ü", "é"]


def test_the_trace_says_where_it_comes_from_and_nothing_of_temporary_files(profiler: Profiler) -> None:
    origin = {"environment": profiling.environment_facts(), "implementation": "native"}
    profiled = profiler.profile(two_operators, title=TITLE, origin=origin)
    text = gzip.decompress(profiled.trace_gz)
    document = json.loads(text)
    assert document["attnscope"] == {**origin, "call": TITLE}
    assert document["attnscope"]["environment"]["torch"] == torch.__version__
    assert document["traceName"] == TITLE
    assert b"attnscope-" not in text


def test_stacks_are_off_unless_asked_for_and_never_outlast_the_pass(profiler: Profiler) -> None:
    plain = trace_of(profiler.profile(two_operators, title=TITLE).trace_gz)
    stacked = trace_of(profiler.profile(two_operators, title=TITLE, stacks=True).trace_gz)
    frames = "python_function"
    assert frames not in facts(plain)["events"]["complete_by_category"]
    found = facts(stacked)
    assert found["events"]["complete_by_category"][frames] > 0
    assert found["span_us"] <= found["span_with_profiler_marker_us"]
    marker = [e for e in range(len(stacked.complete)) if stacked.name_of(e).startswith("PyTorch Profiler")]
    assert stacked.complete.duration.max() <= stacked.complete.duration[marker].max()
