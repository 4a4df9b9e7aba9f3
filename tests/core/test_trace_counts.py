"""Counting one call from its trace."""

from __future__ import annotations

import pytest

from app.core.measurements import Phased
from app.core.trace import TraceError, count_calls, facts, operator_names, peak_bytes, window_of
from tests.core.synthetic_trace import MARK, Maker


def forward_pass() -> Maker:
    """Two Python calls: a linear layer of three operators, and a softmax of one."""
    return (
        Maker()
        .mark(0, 200)
        .op("aten::linear", 10, 40, 1)
        .op("aten::t", 12, 4)
        .op("aten::addmm", 20, 20, 1)
        .op("aten::softmax", 60, 20, 2)
    )


def training_step(tid: object = 100) -> Maker:
    return (
        forward_pass()
        .node("SoftmaxBackward0", 90, 10, 2, tid)
        .op("aten::_softmax_backward_data", 92, 4, tid=tid)
        .node("AddmmBackward0", 110, 30, 1, tid)
        .op("aten::mm", 112, 10, tid=tid)
        .op("aten::mm", 124, 10, tid=tid)
        .node("torch::autograd::AccumulateGrad", 150, 10, tid=tid)
        .op("aten::detach", 152, 2, tid=tid)
    )


def test_python_calls_are_the_operators_inside_no_other_operator() -> None:
    counts = count_calls(forward_pass().trace())
    assert counts.python_calls == Phased(2, None)
    assert counts.operator_calls == Phased(4, None)


def test_a_call_on_the_cpu_has_no_launches_rather_than_none_of_them() -> None:
    counts = count_calls(training_step().trace(), backward=True)
    assert counts.kernel_launches is None
    assert counts.memcpys is None
    assert counts.graph_launches is None
    assert counts.kernel_time_s is None
    assert not counts.verified


@pytest.mark.parametrize("tid", [100, 4711], ids=["in the caller's thread", "in the engine's own thread"])
def test_the_backward_part_is_what_the_engine_runs_and_the_parts_add_up(tid: int) -> None:
    trace = training_step(tid).trace()
    counts = count_calls(trace, backward=True)
    assert counts.python_calls == Phased(2, 1)
    assert counts.operator_calls == Phased(4, 4)
    assert counts.operator_calls.total == sum(
        event["name"].startswith("aten::") for event in training_step(tid).events
    )


def test_a_users_range_around_everything_moves_nothing_to_another_part() -> None:
    trace = training_step().mark(5, 180, "backward").trace()
    assert count_calls(trace, backward=True) == count_calls(training_step().trace(), backward=True)


def test_seeding_a_gradient_counts_as_forward() -> None:
    counts = count_calls(training_step().op("aten::ones_like", 82, 4).trace(), backward=True)
    assert counts.python_calls == Phased(3, 1)
    assert counts.operator_calls == Phased(5, 4)


def test_a_second_backward_pass_is_a_second_entry() -> None:
    twice = training_step().node("SoftmaxBackward0", 170, 10, 2).node("AddmmBackward0", 182, 10, 1)
    assert count_calls(twice.trace(), backward=True).python_calls.backward == 2


def test_a_counted_number_of_entries_goes_before_an_inferred_one() -> None:
    assert count_calls(training_step().trace(), backward=True, engine_entries=3).python_calls.backward == 3


def test_a_backward_pass_within_a_backward_pass_is_no_further_entry() -> None:
    nested = training_step().node("CheckpointedBackward", 126, 4, 9)
    assert count_calls(nested.trace(), backward=True).python_calls.backward == 1


def test_only_the_marked_call_is_counted() -> None:
    maker = forward_pass().op("aten::mm", 300, 10)
    trace = maker.trace()
    window = window_of(trace, MARK)
    assert count_calls(trace, window).operator_calls.forward == 4
    assert count_calls(trace).operator_calls.forward == 5
    assert "aten::mm" not in operator_names(trace, window)


def test_a_missing_or_repeated_mark_is_an_error() -> None:
    with pytest.raises(TraceError, match="0 ranges"):
        window_of(Maker().op("aten::mm", 0, 1).trace(), MARK)
    with pytest.raises(TraceError, match="2 ranges"):
        window_of(forward_pass().mark(300, 5).trace(), MARK)


@pytest.mark.parametrize(
    "name",
    [
        "AddmmBackward0",
        "torch::autograd::CppNode<Layer>",
        "Torch-Compiled Region: 0/0",
        "graph_0_cpp_fused_mm",
    ],
)
def test_what_the_dispatcher_did_not_dispatch_is_no_operator_call(name: str) -> None:
    assert count_calls(forward_pass().op(name, 100, 5).trace()).operator_calls.forward == 4


# ---- the device ----------------------------------------------------------------------------------------


def all_launch_calls() -> Maker:
    maker = Maker().mark(0, 1000).op("aten::mm", 5, 90)
    runtime = ("cudaLaunchKernel", "cudaLaunchKernelExC", "cudaLaunchCooperativeKernel")
    driver = ("cuLaunchKernel", "cuLaunchKernelEx")
    for number, name in enumerate((*runtime, *driver), start=1):
        category = "cuda_driver" if name in driver else "cuda_runtime"
        maker.launch(number, 10 * number, name, category)
    maker.call("cudaGraphLaunch", 20, 200).work("in_graph_1", 20, 210).work("in_graph_2", 20, 216)
    maker.call("cudaMemcpyAsync", 30, 300).work("Memcpy HtoD", 30, 310, category="gpu_memcpy")
    maker.call("cudaMemsetAsync", 40, 320).work("Memset (Device)", 40, 330, category="gpu_memset")
    return maker.call("cudaLaunchHostFunc", 50, 340)


def test_every_kind_of_launch_counts_and_graphs_copies_and_memsets_stand_apart() -> None:
    trace = all_launch_calls().trace()
    found = facts(trace)["launch_calls"]
    assert set(found["kernel_launch_by_name"].values()) == {1}
    assert found["kernel_launch_total"] == 5
    assert found["graph_launch_by_name"] == {"cudaGraphLaunch": 1}
    counts = count_calls(trace, device=True)
    assert counts.kernel_launches == Phased(5, None)
    assert counts.graph_launches == 1
    assert counts.memcpys == 1
    assert counts.memsets == 1
    assert counts.kernel_time_s == pytest.approx(7 * 5e-6)
    assert counts.verified
    assert "2 kernels more" in counts.note


def test_an_orphan_is_unattributed_but_in_the_totals() -> None:
    trace = all_launch_calls().work("orphan", 999, 500).trace()
    counts = count_calls(trace, device=True)
    assert counts.kernel_launches == Phased(5, None)
    assert counts.kernel_time_s == pytest.approx(8 * 5e-6)
    assert not counts.verified
    assert "unattributed: orphan" in counts.note
    matching = facts(trace)["matching"]
    assert facts(trace)["kernels"]["total"] == 8
    assert matching["kernels_without_call"] == 1
    assert matching["kernels_by_call"]["(no call)"] == 1


def test_ten_launches_with_eight_kernels_are_unverified_and_the_two_named() -> None:
    maker = Maker().mark(0, 1000).op("aten::mm", 5, 45).op("aten::add", 60, 45)
    for number in range(1, 11):
        at = 10 * number
        maker.call("cudaLaunchKernel", number, at)
        if number not in (3, 9):
            maker.work("gemm", number, at + 200)
    counts = count_calls(maker.trace(), device=True)
    assert counts.kernel_launches == Phased(10, None)
    assert not counts.verified
    assert "2 of 10 launches" in counts.note
    assert "cudaLaunchKernel in aten::mm (correlation 3)" in counts.note
    assert "cudaLaunchKernel in aten::add (correlation 9)" in counts.note
    assert "correlation 4" not in counts.note


def test_launches_from_the_engines_thread_are_backward() -> None:
    maker = training_step(4711).launch(1, 30)
    maker.call("cudaLaunchKernel", 2, 114, tid=4711).work("gemm", 2, 130)
    maker.call("cudaLaunchKernel", 3, 126, tid=4711).work("gemm", 3, 140)
    counts = count_calls(maker.trace(), backward=True, device=True)
    assert counts.kernel_launches == Phased(1, 2)
    assert counts.verified


def test_a_call_of_unknown_name_that_owns_a_kernel_has_launched_it() -> None:
    maker = Maker().mark(0, 100).call("INVALID", 1, 10).work("gemm", 1, 20).call("INVALID", 2, 30)
    counts = count_calls(maker.trace(), device=True)
    assert counts.kernel_launches == Phased(1, None)
    assert counts.verified


def test_launches_before_the_mark_do_not_count() -> None:
    maker = Maker().launch(1, 0).mark(100, 200).launch(2, 110)
    trace = maker.trace()
    counts = count_calls(trace, window_of(trace, MARK), device=True)
    assert counts.kernel_launches == Phased(1, None)
    assert counts.verified


def test_a_graph_launch_without_any_work_is_unverified() -> None:
    counts = count_calls(Maker().mark(0, 100).call("cudaGraphLaunch", 5, 10).trace(), device=True)
    assert counts.graph_launches == 1
    assert not counts.verified
    assert "cudaGraphLaunch (correlation 5)" in counts.note


def test_a_device_of_which_nothing_was_recorded_has_null_launches_and_a_reason() -> None:
    counts = count_calls(forward_pass().trace(), device=True)
    assert counts.operator_calls == Phased(4, None)
    assert counts.kernel_launches is None
    assert counts.kernel_time_s is None
    assert not counts.verified
    assert "did not reach the device" in counts.note


# ---- memory --------------------------------------------------------------------------------------------


def test_the_peak_is_of_what_the_call_itself_allocated() -> None:
    maker = Maker().mark(10, 90).memory(5, 1000, 1)
    maker.memory(20, 100, 2).memory(30, -1000, 1).memory(40, 300, 3).memory(50, -100, 2).memory(60, 50, 4)
    trace = maker.trace(profile_memory=1)
    assert peak_bytes(trace, window_of(trace, MARK)) == 400


def test_another_devices_memory_does_not_count() -> None:
    trace = Maker().mark(0, 90).memory(5, 1000, 1, device_type=1).memory(6, 10, 2).trace()
    assert peak_bytes(trace) == 10


def test_memory_that_was_not_recorded_is_null_and_none_allocated_is_zero() -> None:
    assert peak_bytes(forward_pass().trace()) is None
    assert peak_bytes(forward_pass().trace(profile_memory=1)) == 0
