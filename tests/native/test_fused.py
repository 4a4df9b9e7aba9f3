"""Level `fused`: as exact as native at every size, type and instruction set, and no more than asked for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from self_attention_ext import SelfAttention, reference, self_attention

from tests.native.cases import NAMES, assert_as_exact_as_native, make_case, results

pytestmark = [pytest.mark.build, pytest.mark.usefixtures("library")]

LENGTHS = [(2, seq_len, 24, 3) for seq_len in (1, 2, 8, 9, 17, 64, 65, 129)]
LENGTHS += [(1, 1000, 16, 2), (2, 3, 30, 3)]
HEAD_SIZES = [(2, 20, 2 * head_dim, 2) for head_dim in (1, 3, 20, 80, 96, 256)]
FEW_HEADS = [(1, 300, 32, 1), (9, 3, 24, 3), (1, 40, 1100, 2)]
# Few enough rows for projections of our own, by each of their ways.
FEW_ROWS = [(1, 1, 128, 4), (1, 5, 34, 2), (1, 7, 160, 4), (1, 8, 30, 3), (1, 12, 260, 2), (16, 1, 300, 2)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("shape", LENGTHS + HEAD_SIZES + FEW_HEADS + FEW_ROWS, ids=str)
def test_results_are_as_exact_as_natives(
    shape: tuple[int, int, int, int], causal: bool, dtype: torch.dtype
) -> None:
    assert_as_exact_as_native(*results(shape, causal, dtype, "fused"))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("shape", LENGTHS + HEAD_SIZES + FEW_HEADS + FEW_ROWS, ids=str)
def test_float64_agrees_with_native(shape: tuple[int, int, int, int], causal: bool) -> None:
    found, native, _ = results(shape, causal, torch.float64, "fused")
    unit = torch.finfo(torch.float64).eps * shape[1] * shape[2]
    for name, value in found.items():
        scale = native["q_bias" if name == "k_bias" else name].abs().max().item()
        torch.testing.assert_close(value, native[name], rtol=0, atol=unit * max(1.0, scale))


@pytest.mark.parametrize("capability", ["avx512", "avx2", "default"])
def test_every_instruction_set_gives_the_same_results(capability: str) -> None:
    """In a process of its own, where ATen is told what the processor can do. On another kind of processor, and on one
    that lacks the instruction set, ATen takes what there is.
    """
    code = """
import torch, self_attention_ext as ext
from tests.native.cases import assert_as_exact_as_native, results
ext.load()
for dtype in (torch.float32, torch.bfloat16, torch.float16):
    for shape in ((2, 3, 30, 3), (2, 70, 40, 2), (1, 129, 24, 3)):
        for causal in (False, True):
            assert_as_exact_as_native(*results(shape, causal, dtype, "fused"))
for shape in ((2, 3, 30, 3), (2, 70, 40, 2)):
    found, native, _ = results(shape, True, torch.float64, "fused")
    for name in found:
        torch.testing.assert_close(found[name], native[name], rtol=1e-9, atol=1e-11)
print("same", torch.backends.cpu.get_cpu_capability())
"""
    run_apart(code, ATEN_CPU_CAPABILITY=capability)


def run_apart(code: str, timeout: float = 300, **extra: str) -> str:
    import os

    root = str(Path(__file__).resolve().parents[2])
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([root, *(p for p in sys.path if p)]), **extra}
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environ, timeout=timeout
    )
    assert result.returncode == 0, result.stderr[-2000:]
    return result.stdout


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("shape", [(2, 3, 4, 2), (1, 10, 6, 2)], ids=str)
def test_gradcheck(shape: tuple[int, int, int, int], causal: bool) -> None:
    case = make_case(*shape, causal=causal)
    assert torch.autograd.gradcheck(
        lambda *t: torch.ops.attnscope.self_attention_packed(*t, 2, causal, "fused"), case.leaves
    )
    assert torch.autograd.gradcheck(lambda *t: self_attention(*t, 2, causal, "fused"), case.separate())


@pytest.mark.parametrize("scale", [1e2, 1e4, 1e-20])
@pytest.mark.parametrize("causal", [False, True])
def test_very_large_and_very_small_scores(scale: float, causal: bool) -> None:
    case = make_case(2, 70, 24, 3, causal, torch.float32, gradients=False)
    nine = [t * scale if name == "x" else t for name, t in zip(NAMES, case.nine(), strict=True)]
    exact = reference.self_attention(*[t.double() for t in nine], 3, causal)
    native = reference.self_attention(*nine, 3, causal)
    found = {"output": self_attention(*nine, 3, causal, "fused")}
    assert_as_exact_as_native(found, {"output": native}, {"output": exact})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("seq_len", [1, 5, 70])
def test_what_is_not_finite_spreads_as_natives_and_stays_in_its_item(value: float, seq_len: int) -> None:
    case = make_case(3, seq_len, 24, 3, False, torch.float32, gradients=False)
    nine = case.nine()
    nine[0] = nine[0].clone()
    nine[0][1, seq_len // 2, 5] = value
    found = self_attention(*nine, 3, False, "fused")
    native = reference.self_attention(*nine, 3, False)
    assert torch.equal(found.isnan(), native.isnan())
    assert found[[0, 2]].isfinite().all()


def test_a_later_position_never_reaches_an_earlier_one() -> None:
    case = make_case(1, 200, 24, 3, True, torch.float32, gradients=False)
    nine = case.nine()
    before = self_attention(*nine, 3, True, "fused")
    nine[0] = nine[0].clone()
    nine[0][:, 150:] = torch.randn(1, 50, 24, generator=torch.Generator().manual_seed(1))
    after = self_attention(*nine, 3, True, "fused")
    assert torch.equal(before[:, :150], after[:, :150])
    assert not torch.equal(before[:, 150:], after[:, 150:])


@pytest.mark.parametrize("shape", [(2, 150, 32, 4), (1, 3, 32, 4)], ids=str)
def test_a_repeated_call_gives_the_same_bits(shape: tuple[int, int, int, int]) -> None:
    first, *others = (results(shape, True, torch.float32, "fused")[0] for _ in range(4))
    for other in others:
        assert all(torch.equal(first[name], other[name]) for name in first)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_number_of_threads_changes_nothing(threads: int) -> None:
    before = torch.get_num_threads()
    expected = results((2, 150, 32, 4), True, torch.float32, "fused")
    try:
        torch.set_num_threads(threads)
        found = results((2, 150, 32, 4), True, torch.float32, "fused")
    finally:
        torch.set_num_threads(before)
    assert_as_exact_as_native(found[0], expected[1], expected[2])


def test_a_forward_call_dispatches_four_operators_at_most() -> None:
    layer = SelfAttention(64, 4, causal=True, kernel="fused")
    for shape in ((1, 1, 64), (2, 100, 64)):
        x = torch.randn(shape)
        with (
            torch.no_grad(),
            torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile,
        ):
            layer(x)
        counted = sum(event.count for event in profile.key_averages())
        assert counted <= 4, profile.key_averages().table()


def test_auto_is_fused_on_the_cpu() -> None:
    case = make_case(2, 30, 24, 3, dtype=torch.float32, gradients=False)
    by_name = {k: self_attention(*case.nine(), 3, True, k) for k in ("auto", "fused")}
    assert torch.equal(by_name["auto"], by_name["fused"])


def test_no_score_matrix_is_made() -> None:
    """4096 positions: one head's scores alone would take 64 MB."""
    layer = SelfAttention(16, 1, kernel="fused")
    x = torch.randn(1, 4096, 16)
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
    ) as profile:
        layer(x).sum().backward()
    largest = max(abs(event.self_cpu_memory_usage) for event in profile.key_averages())
    assert largest < 8 * 2**20
