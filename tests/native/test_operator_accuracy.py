"""Output and nine gradients, at every precision, against float64 and by the rule that native's own error
sets.
"""

from __future__ import annotations

import pytest
import torch
from self_attention_ext import reference, self_attention

from tests.native.cases import NAMES, assert_as_exact_as_native, largest, make_case, native_results

pytestmark = [pytest.mark.build, pytest.mark.usefixtures("library")]

SHAPES = [
    (2, 5, 12, 3),
    (1, 7, 12, 3),
    (3, 1, 8, 2),
    (1, 1, 8, 1),
    (2, 49, 64, 2),
    (3, 33, 60, 5),
    (1, 130, 32, 4),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("form", ["packed", "adjoining", "separate"])
def test_results_are_as_exact_as_natives(
    shape: tuple[int, int, int, int], causal: bool, dtype: torch.dtype, form: str
) -> None:
    case = make_case(*shape, causal=causal, dtype=dtype)
    dy = torch.randn(case.x.shape, generator=torch.Generator().manual_seed(8), dtype=torch.float64).to(dtype)
    wide = make_case(*shape, causal=causal, dtype=dtype)
    wide = type(wide)(*[t.detach().double() for t in wide.leaves], wide.heads, wide.causal)
    exact, native = native_results(wide, dy.double()), native_results(case, dy)

    if form == "packed":
        call = (case.heads, causal)
        y = torch.ops.attnscope.self_attention_packed(*case.leaves, *call)
        x, in_weight, in_bias, out_weight, out_bias = torch.autograd.grad(y, case.leaves, dy)
        parts = [t for pair in zip(in_weight.chunk(3), in_bias.chunk(3), strict=True) for t in pair]
        grads = [x, *parts, out_weight, out_bias]
    else:
        nine = case.nine() if form == "adjoining" else case.separate()
        y = self_attention(*nine, case.heads, causal)
        grads = list(torch.autograd.grad(y, nine, dy))
    assert_as_exact_as_native({"output": y.detach(), **dict(zip(NAMES, grads, strict=True))}, native, exact)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_float64_agrees_with_the_twins_hand_derived_pass(
    shape: tuple[int, int, int, int], causal: bool
) -> None:
    case = make_case(*shape, causal=causal)
    dy = torch.randn(case.x.shape, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
    nine = case.separate()
    y = self_attention(*nine, case.heads, causal)
    found = dict(zip(NAMES, torch.autograd.grad(y, nine, dy), strict=True))
    twin = reference.gradients(dy, *nine, case.heads, causal)
    unit = torch.finfo(torch.float64).eps * shape[2] * shape[1]
    assert largest(y - reference.self_attention(*nine, case.heads, causal)) <= unit * max(1.0, largest(y))
    for name, grad in found.items():
        assert largest(grad - twin[name]) <= unit * max(1.0, largest(twin[name])), name


def test_the_twins_gradients_are_those_of_autograd() -> None:
    case = make_case()
    dy = torch.randn(case.x.shape, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
    expected = native_results(case, dy)
    for name, grad in reference.gradients(dy, *case.separate(), case.heads, case.causal).items():
        torch.testing.assert_close(grad, expected[name])


@pytest.mark.parametrize("absent", [("q",), ("k",), ("v",), ("out",), ("q", "k", "v", "out")], ids="".join)
@pytest.mark.parametrize("form", ["adjoining", "separate"])
def test_absent_biases_count_as_zero(absent: tuple[str, ...], form: str) -> None:
    case = make_case()
    nine = case.nine() if form == "adjoining" else case.separate()
    given = [
        None if name.endswith("_bias") and name[:-5] in absent else t
        for name, t in zip(NAMES, nine, strict=True)
    ]
    zeroed = [torch.zeros_like(t) if g is None else t for g, t in zip(given, nine, strict=True)]
    wanted = [t for t in given if t is not None]
    y = self_attention(*given, case.heads, case.causal)  # type: ignore[arg-type]
    expected = reference.self_attention(*zeroed, case.heads, case.causal)  # type: ignore[arg-type]
    torch.testing.assert_close(y, expected)
    dy = torch.ones_like(y)
    for found, right in zip(
        torch.autograd.grad(y, wanted, dy), torch.autograd.grad(expected, wanted, dy), strict=True
    ):
        torch.testing.assert_close(found, right)


def test_a_single_head_of_the_whole_width() -> None:
    case = make_case(heads=1)
    torch.testing.assert_close(
        self_attention(*case.nine(), 1, True), reference.self_attention(*case.nine(), 1, True)
    )


def test_adjoining_weights_are_projected_together() -> None:
    """One product for q, k and v where they adjoin, three where they do not: seen in the operators called."""

    def products(nine: list[torch.Tensor]) -> int:
        with (
            torch.no_grad(),
            torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile,
        ):
            self_attention(*nine, 3, True)
        return sum(event.count for event in profile.key_averages() if event.key == "aten::addmm")

    case = make_case(gradients=False)
    assert products(case.nine()) == 2  # the input and the output projection
    assert products([t.detach() for t in case.separate()]) == 4
