"""Both levels on what is hard: every length with every head size, scores that are huge, equal or infinite, denormals,
what is not finite, and memory laid out in any way.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Iterator

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from self_attention_ext import reference, self_attention
from torch import Tensor

from tests.native.cases import NAMES, Case, assert_as_exact_as_native, make_case, native_results, results
from tests.native.test_fused import run_apart

pytestmark = [pytest.mark.build, pytest.mark.usefixtures("library")]

KERNELS = ("fused", "aten")
DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
LENGTHS = (1, 2, 3, 17, 64, 129, 1000)
HEAD_SIZES = (1, 3, 20, 80, 96, 256)


def assert_exact(
    shape: tuple[int, int, int, int], causal: bool, dtype: torch.dtype, kernel: str = "fused"
) -> None:
    """The accuracy rule; of float64, which has no more exact twin here, that it agrees to rounding."""
    found, native, exact = results(shape, causal, dtype, kernel)
    if dtype != torch.float64:
        assert_as_exact_as_native(found, native, exact)
        return
    unit = torch.finfo(torch.float64).eps * (shape[1] + shape[2])
    for name, value in found.items():
        scale = max(1.0, native["q_bias" if name == "k_bias" else name].abs().max().item())
        torch.testing.assert_close(value, native[name], rtol=0, atol=unit * scale)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("head_dim", HEAD_SIZES)
@pytest.mark.parametrize("seq_len", LENGTHS)
def test_every_length_with_every_head_size(
    seq_len: int, head_dim: int, causal: bool, dtype: torch.dtype
) -> None:
    assert_exact((1 if seq_len > 200 else 2, seq_len, 2 * head_dim, 2), causal, dtype)


@settings(max_examples=40)
@given(
    batch=st.integers(1, 4),
    seq_len=st.integers(1, 150),
    heads=st.integers(1, 5),
    head_dim=st.integers(1, 40),
    causal=st.booleans(),
    dtype=st.sampled_from(DTYPES),
    kernel=st.sampled_from(KERNELS),
)
def test_any_shape(
    batch: int, seq_len: int, heads: int, head_dim: int, causal: bool, dtype: torch.dtype, kernel: str
) -> None:
    # With fewer features a weight's gradient is a handful of numbers, and the larger error of two good sums is luck.
    assume(heads * head_dim >= 8)
    assert_exact((batch, seq_len, heads * head_dim, heads), causal, dtype, kernel)


# ---- scores ------------------------------------------------------------------------------------------


def identity_case(queries: Tensor, keys: Tensor, values: Tensor, causal: bool) -> Case:
    """A layer of one head whose q, k and v are these [S, D], whatever x is projected to: x holds all three, and
    each weight picks its own. E = 3D, so that the scores are over sqrt(3D).
    """
    depth = queries.shape[1]
    x = torch.cat([queries, keys, values], dim=1)[None]
    eye = torch.eye(3 * depth, dtype=x.dtype)
    pick = torch.zeros(3, 3 * depth, 3 * depth, dtype=x.dtype)
    for i in range(3):
        pick[i, :depth] = eye[i * depth : (i + 1) * depth]
    leaves = [x, pick.reshape(9 * depth, 3 * depth), torch.zeros(9 * depth, dtype=x.dtype)]
    leaves += [eye, torch.zeros(3 * depth, dtype=x.dtype)]
    return Case(*[t.requires_grad_() for t in leaves], 1, causal)


def draw(*shape: int, seed: int = 3) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("scale", [1e4, 1e8, 1e12, 1e16])
@pytest.mark.parametrize("seq_len", [5, 70])
def test_huge_scores(seq_len: int, scale: float, causal: bool, kernel: str) -> None:
    """Up to 1e33, where a rounding unit of a score is far more than exp can bear."""
    case = make_case(2, seq_len, 24, 3, causal, torch.float32, gradients=False)
    nine = [t * scale if name == "x" else t for name, t in zip(NAMES, case.nine(), strict=True)]
    exact = reference.self_attention(*[t.double() for t in nine], 3, causal)
    native = reference.self_attention(*nine, 3, causal)
    assert_as_exact_as_native(
        {"output": self_attention(*nine, 3, causal, kernel)}, {"output": native}, {"output": exact}
    )


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("score", [0.0, 1.0, -1e5, 1e30])
@pytest.mark.parametrize("seq_len", [6, 140])
def test_equal_scores_give_the_mean(seq_len: int, score: float, causal: bool, kernel: str) -> None:
    values = draw(seq_len, 4)
    root = abs(score) ** 0.5
    queries, keys = torch.full((seq_len, 4), root), torch.full((seq_len, 4), root if score > 0 else -root)
    case = identity_case(queries, keys, values, causal)
    y = torch.ops.attnscope.self_attention_packed(*case.leaves, 1, causal, kernel)
    mean = (
        values.cumsum(0) / torch.arange(1, seq_len + 1)[:, None]
        if causal
        else values.mean(0).expand(seq_len, 4)
    )
    torch.testing.assert_close(y[0, :, :4].detach(), mean, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("seq_len", [6, 140])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_scores_that_overflow_do_as_natives(seq_len: int, sign: float, causal: bool, kernel: str) -> None:
    """Finite queries and keys whose product is infinite: towards -inf weights of zero, whole blocks of them; towards
    +inf a row of NaN. Never in rows that do not see them.
    """
    queries, keys = torch.ones(seq_len, 2) * 1e20, draw(seq_len, 2).abs() * 1e-20
    keys[seq_len // 2 - 2 : seq_len // 2] *= sign * 1e40
    keys[: seq_len // 2 - 2] *= -1e40 if sign < 0 else 1
    case = identity_case(queries, keys, draw(seq_len, 2), causal)
    assert_same_kinds(case, torch.ones_like(case.x), kernel)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("scale", [1e-38, 1e-42])
def test_denormals(scale: float, causal: bool, kernel: str) -> None:
    case = make_case(2, 40, 24, 3, causal, torch.float32, gradients=False)
    nine = [
        t * scale if name == "x" or name.endswith("bias") else t
        for name, t in zip(NAMES, case.nine(), strict=True)
    ]
    exact = reference.self_attention(*[t.double() for t in nine], 3, causal)
    native = reference.self_attention(*nine, 3, causal)
    found = self_attention(*nine, 3, causal, kernel)
    assert_as_exact_as_native({"output": found}, {"output": native}, {"output": exact})


# ---- what is not finite ------------------------------------------------------------------------------


def kinds(t: Tensor) -> Tensor:
    """0 finite, 1 -inf, 2 +inf, 3 NaN."""
    return torch.where(t.isnan(), 3, torch.where(t.isinf(), torch.where(t > 0, 2, 1), 0))


def assert_same_kinds(case: Case, dy: Tensor, kernel: str) -> None:
    native = native_results(case, dy)
    nine = case.separate()
    y = self_attention(*nine, case.heads, case.causal, kernel)
    found = dict(zip(("output", *NAMES), (y, *torch.autograd.grad(y, nine, dy)), strict=True))
    for name, value in found.items():
        assert torch.equal(kinds(value), kinds(native[name])), name


def tainted(seq_len: int, causal: bool, dtype: torch.dtype, value: float, where: str) -> tuple[Case, Tensor]:
    """Two items; `value` in one place of one argument, of x and the gradient in item 1."""
    case = make_case(2, seq_len, 12, 3, causal, dtype, gradients=False)
    dy = draw(2, seq_len, 12).to(dtype)
    leaves = dict(zip(("x", "in_weight", "in_bias", "out_weight", "out_bias"), case.leaves, strict=True))
    tensor = {**leaves, "dy": dy}[where.rstrip("qkv.")]
    part = "qkv".find(where[-1]) * 12 if "." in where else 0
    if tensor.dim() == 3:
        tensor[1, seq_len // 2, 5] = value
    elif tensor.dim() == 2:
        tensor[part + 3, 2] = value
    else:
        tensor[part + 4] = value
    return case, dy


PLACES = ("x", "dy", "out_weight", "out_bias")
PLACES += tuple(f"in_{kind}.{part}" for kind, part in itertools.product(("weight", "bias"), "qkv"))


def check_what_is_not_finite(seq_len: int, dtype: torch.dtype, kernel: str) -> None:
    values = (float("nan"), float("inf"), -float("inf"))
    for causal, value, where in itertools.product((False, True), values, PLACES):
        try:
            assert_same_kinds(*tainted(seq_len, causal, dtype, value, where), kernel)
        except AssertionError as error:
            raise AssertionError(f"{value} in {where}, causal {causal}: {error}") from None


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("seq_len", [1, 5, 13, 150])
def test_what_is_not_finite_spreads_as_natives(seq_len: int, dtype: torch.dtype, kernel: str) -> None:
    check_what_is_not_finite(seq_len, dtype, kernel)


@pytest.mark.parametrize("capability", ["avx2", "default"])
def test_what_is_not_finite_spreads_as_natives_by_every_instruction_set(capability: str) -> None:
    code = """
import torch, self_attention_ext as ext
ext.load()
from tests.native.test_fused_numerics import DTYPES, check_what_is_not_finite
for dtype in DTYPES:
    for seq_len in (5, 70):
        check_what_is_not_finite(seq_len, dtype, "fused")
"""
    run_apart(code, ATEN_CPU_CAPABILITY=capability)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("seq_len", [1, 5, 13, 150])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_one_item_never_reaches_another(value: float, seq_len: int, causal: bool, kernel: str) -> None:
    """Not by a bit: output and the gradient of x of the other items are those of a call without it."""
    clean = make_case(3, seq_len, 24, 3, causal, torch.float32, gradients=False)
    dy = draw(3, seq_len, 24)
    rows = []
    for x in (clean.x.clone(), clean.x.clone()):
        if rows:
            x[1, seq_len // 2] = value
        x.requires_grad_()
        y = self_attention(x, *clean.nine()[1:], 3, causal, kernel)
        rows.append((y.detach(), torch.autograd.grad(y, x, dy)[0]))
    for before, after in zip(*rows, strict=True):
        assert torch.equal(before[[0, 2]], after[[0, 2]])
        assert not after[1].isfinite().all()


# ---- layouts -----------------------------------------------------------------------------------------


def layouts(t: Tensor) -> Iterator[tuple[str, Tensor]]:
    """The same values [B, S, E] in memory laid out in other ways."""
    yield "transposed", t.transpose(0, 1).contiguous().transpose(0, 1)
    yield "every second position", torch.stack([t, t.flip(0)], dim=2).flatten(1, 2)[:, ::2]
    yield "embedding first", t.permute(2, 0, 1).contiguous().permute(1, 2, 0)
    yield "at an odd offset", torch.cat([t.new_zeros(3), t.flatten()])[3:].view(t.shape)
    yield "wide rows", torch.cat([t, t], dim=2)[..., : t.shape[2]]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(2, 1, 30, 3), (3, 4, 12, 2), (1, 70, 24, 1), (2, 33, 24, 2)], ids=str)
def test_layout_changes_nothing(shape: tuple[int, int, int, int], dtype: torch.dtype) -> None:
    case = make_case(*shape, dtype=dtype, gradients=False)
    dy = draw(*shape[:3]).to(dtype)

    def run(x: Tensor, dy: Tensor) -> tuple[Tensor, ...]:
        leaves = [t.detach().requires_grad_() for t in (x, *case.leaves[1:])]
        y = torch.ops.attnscope.self_attention_packed(*leaves, shape[3], True, "fused")
        return (y.detach(), *torch.autograd.grad(y, leaves, dy))

    expected = run(case.x, dy)
    for name, x in layouts(case.x):
        for gradient in (dy, dict(layouts(dy))[name]):
            for found, right in zip(run(x, gradient), expected, strict=True):
                assert found.shape == right.shape
                torch.testing.assert_close(found, right, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("shape", [(4, 3, 12, 2), (2, 40, 24, 3)], ids=str)
def test_expanded_inputs_and_gradients(shape: tuple[int, int, int, int]) -> None:
    """Strides of zero: one item for all, and one number for the whole gradient."""
    case = make_case(*shape, dtype=torch.float32, gradients=False)
    x = case.x[:1].expand(shape[:3]).requires_grad_()
    dense = x.detach().contiguous().requires_grad_()
    for dy in (torch.ones(()).expand(shape[:3]), draw(shape[2]).expand(shape[:3])):
        grads = []
        for t in (x, dense):
            y = self_attention(t, *case.nine()[1:], shape[3], True, "fused")
            grads.append((y.detach(), torch.autograd.grad(y, t, dy.contiguous() if t is dense else dy)[0]))
        for found, right in zip(*grads, strict=True):
            torch.testing.assert_close(found, right)


@pytest.mark.parametrize("offset", [1, 2, 3])
def test_memory_that_is_not_aligned(offset: int) -> None:
    """From a file or another library: floats that do not begin at a multiple of their size."""
    case = make_case(1, 20, 24, 3, dtype=torch.float32, gradients=False)
    buffer = bytearray(case.x.numel() * 4 + 4)
    x = torch.frombuffer(buffer, dtype=torch.float32, offset=offset, count=case.x.numel()).view(case.x.shape)
    ctypes.memmove(x.data_ptr(), case.x.contiguous().data_ptr(), case.x.numel() * 4)
    found = self_attention(x, *case.nine()[1:], 3, True, "fused")
    assert torch.equal(found, self_attention(*case.nine(), 3, True, "fused"))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("shape", [(0, 4), (3, 0), (0, 0)], ids=str)
def test_nothing_in_gives_nothing_out_and_zero_gradients(shape: tuple[int, int], kernel: str) -> None:
    case = make_case(*shape, 12, 3, dtype=torch.float32)
    y = torch.ops.attnscope.self_attention_packed(*case.leaves, 3, True, kernel)
    assert y.shape == (*shape, 12)
    for grad, leaf in zip(torch.autograd.grad(y.sum(), case.leaves), case.leaves, strict=True):
        assert grad.shape == leaf.shape
        assert not grad.any()
