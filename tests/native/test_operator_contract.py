"""What the operator accepts, refuses and promises to PyTorch."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from self_attention_ext import SelfAttention, reference, self_attention
from torch import Tensor

from tests.native.cases import NAMES, make_case

pytestmark = [pytest.mark.build, pytest.mark.usefixtures("library")]


def packed(*arguments: object) -> Tensor:
    result: Tensor = torch.ops.attnscope.self_attention_packed(*arguments)
    return result


# ---- gradients ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("causal", [False, True])
def test_gradcheck_in_float64(causal: bool) -> None:
    case = make_case(2, 3, 4, 2, causal)
    assert torch.autograd.gradcheck(lambda *t: packed(*t, 2, causal), case.leaves)
    assert torch.autograd.gradcheck(lambda *t: self_attention(*t, 2, causal), case.separate())


def test_a_gradient_penalty_is_that_of_the_twin() -> None:
    def penalty(function: object) -> tuple[Tensor, ...]:
        nine = make_case().separate()
        y = function(*nine, 3, True)  # type: ignore[operator]
        (dx,) = torch.autograd.grad(y.square().sum(), nine[0], create_graph=True)
        return torch.autograd.grad(dx.norm(), nine, allow_unused=True)

    for ours, right in zip(penalty(self_attention), penalty(reference.self_attention), strict=True):
        torch.testing.assert_close(ours, right) if right is not None else None


def test_a_hook_fires_once_when_the_graph_is_kept() -> None:
    case = make_case()
    fired = []
    case.x.register_hook(lambda grad: fired.append(1))
    torch.autograd.grad(packed(*case.leaves, 3, True).square().sum(), case.x, create_graph=True)
    assert fired == [1]


@pytest.mark.parametrize(
    "wanted",
    [("x",), ("k_weight",), ("v_bias",), ("q_weight", "v_weight"), ("out_weight",), ("out_bias",), NAMES[:7]],
    ids="+".join,
)
@pytest.mark.parametrize("form", ["adjoining", "separate"])
def test_only_the_gradients_asked_for(wanted: tuple[str, ...], form: str) -> None:
    case = make_case(gradients=False)
    nine = case.nine() if form == "adjoining" else [t.detach() for t in case.separate()]
    for name, t in zip(NAMES, nine, strict=True):
        t.requires_grad_(name in wanted)
    y = self_attention(*nine, 3, True)
    expected = reference.self_attention(*nine, 3, True)
    leaves = [t for name, t in zip(NAMES, nine, strict=True) if name in wanted]
    for found, right in zip(
        torch.autograd.grad(y.sum(), leaves), torch.autograd.grad(expected.sum(), leaves), strict=True
    ):
        torch.testing.assert_close(found, right)


def test_an_unwanted_gradient_costs_no_product() -> None:
    case = make_case(gradients=False)
    case.out_bias.requires_grad_()
    y = packed(*case.leaves, 3, True)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        y.sum().backward()
    assert not [event.key for event in profile.key_averages() if event.key in ("aten::mm", "aten::bmm")]


def test_changing_a_parameter_before_backward_is_noticed() -> None:
    case = make_case()
    y = packed(*case.leaves, 3, True)
    with torch.no_grad():
        case.in_weight.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


# ---- layouts --------------------------------------------------------------------------------------------


def variants(x: Tensor) -> dict[str, Tensor]:
    """The values of x [B, S, E] in other layouts."""
    batch, seq_len, embed_dim = x.shape
    wide = torch.zeros(batch, 2 * seq_len, embed_dim, dtype=x.dtype)
    wide[:, ::2] = x
    return {
        "transposed": x.transpose(0, 1).contiguous().transpose(0, 1),
        "every second position": wide[:, ::2],
        "features apart": x.transpose(1, 2).contiguous().transpose(1, 2),
    }


@pytest.mark.parametrize("layout", ["transposed", "every second position", "features apart"])
@pytest.mark.parametrize("batch", [1, 3])
def test_any_strides_in_the_input_and_the_incoming_gradient(layout: str, batch: int) -> None:
    case = make_case(batch, gradients=False)
    x = variants(case.x)[layout].detach().requires_grad_()
    dy = variants(torch.randn(case.x.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1)))[
        layout
    ]
    nine = [x, *[t.requires_grad_() for t in case.separate()[1:]]]
    expected = torch.autograd.grad(reference.self_attention(*nine, 3, True), nine, dy)
    for found, right in zip(
        torch.autograd.grad(self_attention(*nine, 3, True), nine, dy), expected, strict=True
    ):
        torch.testing.assert_close(found, right)


def test_expanded_inputs_and_gradients() -> None:
    case = make_case(gradients=False)
    x = case.x[:1].expand(3, -1, -1)
    weight = case.in_weight.T.contiguous().T.requires_grad_()
    y = packed(x, weight, case.in_bias, case.out_weight, case.out_bias, 3, True)
    nine = [x, *[t for pair in zip(weight.chunk(3), case.in_bias.chunk(3), strict=True) for t in pair]]
    expected = reference.self_attention(*nine, case.out_weight, case.out_bias, 3, True)
    torch.testing.assert_close(y, expected)
    (found,) = torch.autograd.grad(y.sum(), weight)  # sum's gradient is one number, expanded
    torch.testing.assert_close(found, torch.autograd.grad(expected.sum(), weight)[0])


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_the_output_shares_no_memory_with_an_input(mode: type) -> None:
    with mode():
        for seq_len in (1, 4):
            case = make_case(1, seq_len, 8, 1, gradients=False)
            pointers = {t.untyped_storage().data_ptr() for t in case.leaves}
            assert packed(*case.leaves, 1, False).untyped_storage().data_ptr() not in pointers
            assert self_attention(*case.nine(), 1, False).untyped_storage().data_ptr() not in pointers


@pytest.mark.parametrize(("batch", "seq_len"), [(0, 3), (2, 0), (0, 0)])
def test_empty_inputs_give_empty_results_and_zero_gradients(batch: int, seq_len: int) -> None:
    code = f"""
import sys, torch, self_attention_ext as ext
ext.load()
layer = ext.SelfAttention(8, 2, causal=True)
x = torch.zeros({batch}, {seq_len}, 8, requires_grad=True)
y = layer(x)
y.sum().backward()
assert y.shape == x.shape == x.grad.shape
for p in layer.parameters():
    assert p.grad.shape == p.shape and not p.grad.any()
with torch.no_grad():
    assert layer(x).shape == x.shape
"""
    run_apart(code)


def test_zero_features_or_heads_are_refused() -> None:
    run_apart(
        """
import torch, self_attention_ext as ext
ext.load()
for embed, heads in ((0, 1), (8, 0), (8, -1)):
    w, b = torch.zeros(3 * embed, embed), torch.zeros(3 * embed)
    try:
        torch.ops.attnscope.self_attention_packed(torch.zeros(1, 2, embed), w, b, w[:embed], b[:embed], heads)
    except ValueError as error:
        assert "expected a positive" in str(error), error
    else:
        raise SystemExit("not refused")
"""
    )


def run_apart(code: str) -> None:
    """In a process of its own: a crash is a failure of this test, not the end of all."""
    import os

    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environ, timeout=120
    )
    assert result.returncode == 0, result.stderr[-2000:]


# ---- refusals -------------------------------------------------------------------------------------------

SPOILT = {
    "shape": (lambda t: t[:-1], "expected"),
    "dtype": (lambda t: t.float(), "is float32; expected float64, as x is"),
    "device": (lambda t: t.to("meta"), "is on meta; expected cpu, where x is"),
    "rank": (lambda t: t.unsqueeze(0), "expected"),
}


@pytest.mark.parametrize("fault", SPOILT)
@pytest.mark.parametrize("name", NAMES[1:])
@pytest.mark.parametrize("gradients", [False, True])
def test_each_argument_is_checked_and_named(name: str, fault: str, gradients: bool) -> None:
    spoil, words = SPOILT[fault]
    nine = [t.detach() for t in make_case().separate()]
    index = NAMES.index(name)
    nine[index] = spoil(nine[index])
    for t in nine:
        t.requires_grad_(gradients)
    with pytest.raises(ValueError, match=name) as caught:
        self_attention(*nine, 3, True)
    message = str(caught.value)
    assert words in message
    assert str(list(nine[index].shape)) in message


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (
            torch.zeros(2, 5, 12, dtype=torch.int64),
            "is int64; expected float32, float64, bfloat16 or float16",
        ),
        (torch.zeros(5, 12), "has 2 dimensions; expected 3: [B, S, E]"),
        (torch.zeros(2, 5, 12).to_sparse(), "has layout Sparse; expected a dense"),
        (torch.zeros(2, 5, 11), "num_heads = 3"),
    ],
    ids=["int64", "rank 2", "sparse", "not divisible"],
)
@pytest.mark.parametrize("gradients", [False, True])
def test_x_is_checked_and_named(x: Tensor, words: str, gradients: bool) -> None:
    nine = [t.detach().float().requires_grad_(gradients) for t in make_case().separate()]
    nine[0] = x
    with pytest.raises(ValueError, match=r"self_attention: x \(shape") as caught:
        self_attention(*nine, 3, True)
    assert words in str(caught.value)


def test_the_packed_form_names_its_arguments() -> None:
    case = make_case(gradients=False)
    with pytest.raises(
        ValueError, match=r"in_proj_weight \(shape \[35, 12\]\).*expected \[36, 12\].*\[3E, E\]"
    ):
        packed(case.x, case.in_weight[:-1], case.in_bias, case.out_weight, case.out_bias, 3)
    with pytest.raises(ValueError, match=r"in_proj_bias \(shape \[35\]\).*expected \[36\]"):
        packed(case.x, case.in_weight, case.in_bias[:-1], case.out_weight, case.out_bias, 3)


def test_the_inner_operators_refuse_what_does_not_fit() -> None:
    case = make_case(gradients=False)
    forward, backward = (
        torch.ops.attnscope.self_attention_forward,
        torch.ops.attnscope.self_attention_backward,
    )
    y, qkv, p, c = forward(
        case.x, [case.in_weight], [case.in_bias], case.out_weight, case.out_bias, 3, True, "aten"
    )
    with pytest.raises(ValueError, match=r"expected 1 \(packed\) or 3"):
        forward(case.x, [case.in_weight] * 2, [], case.out_weight, None, 3, True, "aten")
    with pytest.raises(ValueError, match=r"p \(shape"):
        backward(y, case.x, [case.in_weight], case.out_weight, qkv, p[:, :-1], c, 3, True, 31, "aten")
    with pytest.raises(ValueError, match="expected 5 bits"):
        backward(y, case.x, [case.in_weight], case.out_weight, qkv, p, c, 3, True, 32, "aten")


def test_an_unknown_kernel_lists_what_exists() -> None:
    with pytest.raises(ValueError, match="'banana'; expected one of: auto, aten"):
        SelfAttention(8, 2, kernel="banana")
    with pytest.raises(ValueError, match="'banana'; expected one of: auto, aten"):
        packed(*make_case().leaves, 3, True, "banana")


# ---- the dispatcher's promises --------------------------------------------------------------------------


# Some releases' opcheck looks at .grad of tensors that it has itself made non-leaves.
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning")
@pytest.mark.parametrize("layout", ["contiguous", "transposed"])
@pytest.mark.parametrize("batch", [1, 2])
def test_opcheck(layout: str, batch: int) -> None:
    case = make_case(batch, dtype=torch.float32)
    x = case.x if layout == "contiguous" else variants(case.x.detach())[layout].requires_grad_()
    torch.library.opcheck(torch.ops.attnscope.self_attention_packed.default, (x, *case.leaves[1:], 3, True))
    torch.library.opcheck(torch.ops.attnscope.self_attention.default, (x, *case.separate()[1:], 3, True))


@pytest.mark.parametrize("kernel", ["aten", "fused"])
def test_opcheck_of_the_inner_operators(kernel: str) -> None:
    for batch in (1, 2):
        case = make_case(batch, gradients=False)
        call = (case.x, [case.in_weight], [case.in_bias], case.out_weight, case.out_bias, 3, True, kernel)
        torch.library.opcheck(torch.ops.attnscope.self_attention_forward.default, call)
        y, *kept = torch.ops.attnscope.self_attention_forward(*call)
        back = (y, case.x, [case.in_weight], case.out_weight, *kept, 3, True, 31, kernel)
        torch.library.opcheck(torch.ops.attnscope.self_attention_backward.default, back)


def test_a_huge_sequence_has_the_right_shape_on_meta() -> None:
    layer = SelfAttention(64, 8, causal=True, device="meta")
    assert layer(torch.empty(1, 65536, 64, device="meta")).shape == (1, 65536, 64)


def test_backward_inside_an_autocast_region() -> None:
    case = make_case(dtype=torch.float32)
    y = packed(*case.leaves, 3, True)
    expected = torch.autograd.grad(y.sum(), case.leaves, retain_graph=True)
    with torch.autocast("cpu", torch.bfloat16):
        for found, right in zip(torch.autograd.grad(y.sum(), case.leaves), expected, strict=True):
            assert torch.equal(found, right)


# ---- the process is left as it was ----------------------------------------------------------------------


def test_a_call_leaves_the_process_as_it_found_it() -> None:
    case = make_case()
    before = (
        torch.get_num_threads(),
        torch.get_default_dtype(),
        torch.is_grad_enabled(),
        torch.get_rng_state(),
    )
    packed(*case.leaves, 3, True).sum().backward()
    with pytest.raises(ValueError, match="num_heads"):
        packed(*case.leaves, 5, True)
    after = (
        torch.get_num_threads(),
        torch.get_default_dtype(),
        torch.is_grad_enabled(),
        torch.get_rng_state(),
    )
    assert before[:3] == after[:3]
    assert torch.equal(before[3], after[3])


def test_other_threads_run_during_a_call() -> None:
    import threading
    import time

    layer = SelfAttention(64, 1).eval()
    x = torch.randn(1, 6000, 64)
    ticks: list[float] = []
    done = threading.Event()

    def tick() -> None:
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.005)

    thread = threading.Thread(target=tick)
    thread.start()
    begun = time.perf_counter()
    with torch.no_grad():
        layer(x)
    took = time.perf_counter() - begun
    done.set()
    thread.join()
    during = [t for t in ticks if begun <= t <= begun + took]
    # A call that kept the interpreter to itself would leave none.
    assert len(during) >= took / 0.1
