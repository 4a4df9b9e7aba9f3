"""What calls of a swapped layer give: native's results by the operator where it covers them, and by native's own code,
for a reason that can be read, where it does not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from self_attention_ext import replace_self_attention
from torch import Tensor, nn

from tests.native.swapped import HEADS, E, assert_same, draw, layer_of, outcome, pair, triangle

pytestmark = [pytest.mark.build, pytest.mark.usefixtures("library")]


# ---- covered calls --------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["train", "eval", "no_grad", "inference"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    ("batch_first", "shape"), [(True, (2, 5, E)), (False, (5, 2, E)), (False, (5, E)), (True, (5, E))]
)
@pytest.mark.parametrize("mask", ["none", "bool", "float", "hinted"])
def test_a_covered_call_equals_native_and_runs_the_operator(
    mask: str, batch_first: bool, shape: tuple[int, ...], bias: bool, mode: str
) -> None:
    native, ours = pair(training=mode == "train", batch_first=batch_first, bias=bias)
    how: dict[str, Any] = {}
    if mask != "none":
        how = {
            "attn_mask": triangle(5, "float" if mask == "float" else "bool"),
            "is_causal": mask == "hinted",
        }
    x = draw(*shape)
    context = {"no_grad": torch.no_grad, "inference": torch.inference_mode}.get(mode, torch.enable_grad)
    with context():
        found, expected = ours(x, **how), native(x, **how)
    assert_same(found, expected)
    assert layer_of(ours).last_path == "operator"
    if found.requires_grad:
        found.square().sum().backward()
        expected.square().sum().backward()
        for p, right in zip(ours.parameters(), native.parameters(), strict=True):
            torch.testing.assert_close(p.grad, right.grad)


@pytest.mark.parametrize("kernel", ["aten", "fused"])
def test_the_level_asked_for_is_the_one_that_runs(kernel: str) -> None:
    layer = nn.MultiheadAttention(E, HEADS, batch_first=True)
    replace_self_attention(layer, kernel=kernel)
    x = draw(2, 5, E).float()
    with torch.no_grad(), torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        layer(x, x, x, need_weights=False)
    names = {event.key: event.count for event in profile.key_averages()}
    assert names["attnscope::self_attention_packed"] == 1
    assert ("aten::_softmax" in names or "aten::softmax" in names) == (kernel == "aten")


@pytest.mark.parametrize("shape", [(0, 5, E), (2, 0, E), (0, 0, E)])
def test_empty_inputs_are_as_natives(shape: tuple[int, ...]) -> None:
    native, ours = pair(batch_first=True)
    assert_same(outcome(lambda: ours(draw(*shape))), outcome(lambda: native(draw(*shape))))


def test_a_view_of_the_output_works_as_before() -> None:
    """The native layer's [L, N, E] is contiguous; code that came to rely on it still works."""
    native, ours = pair(batch_first=False)
    x = draw(5, 2, E)
    assert ours(x).view(10, E).shape == native(x).view(10, E).shape


# ---- calls that go the native way -----------------------------------------------------------------------

Case = tuple[dict[str, Any], str]
L, N = 5, 2
NATIVE_CALLS: dict[str, Case] = {
    "float mask of any values": ({"attn_mask": draw(L, L)}, "not the causal one"),
    "a mask per head": ({"attn_mask": draw(N * HEADS, L, L) > 1.0}, "[6, 5, 5]"),
    "nearly causal": ({"attn_mask": triangle(L).triu(2)}, "not the causal one"),
    "reversed": ({"attn_mask": ~triangle(L) & ~torch.eye(L, dtype=torch.bool)}, "not the causal one"),
    "bool padding": (
        {"key_padding_mask": torch.tensor([[False] * 5, [False] * 3 + [True] * 2])},
        "key_padding",
    ),
    "float padding": ({"key_padding_mask": draw(N, L)}, "key_padding"),
    "padding and causal": (
        {
            "key_padding_mask": torch.tensor([[False] * 5, [False] * 3 + [True] * 2]),
            "attn_mask": triangle(L),
            "is_causal": True,
        },
        "key_padding",
    ),
    "weights wanted": ({"need_weights": True}, "need_weights"),
    "weights per head": ({"need_weights": True, "average_attn_weights": False}, "need_weights"),
    "is_causal without a mask": ({"is_causal": True}, "without an attn_mask"),
    "a mask of another size": ({"attn_mask": triangle(L + 1)}, "[6, 6]"),
    "a mask of another size, hinted": ({"attn_mask": triangle(L + 1), "is_causal": True}, "[6, 6]"),
    "a mask of integers": ({"attn_mask": torch.ones(L, L, dtype=torch.int64)}, "int64"),
    "a mask of another type": ({"attn_mask": triangle(L, "float").float()}, "float32"),
}


@pytest.mark.filterwarnings("ignore:Support for mismatched key_padding_mask:UserWarning")
@pytest.mark.filterwarnings("ignore:.*Converting mask without torch.bool:UserWarning")
@pytest.mark.parametrize("mode", ["train", "eval without gradients"])
@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("name", NATIVE_CALLS)
def test_a_call_that_is_not_covered_is_natives_own(name: str, batch_first: bool, mode: str) -> None:
    how, words = NATIVE_CALLS[name]
    how = {"need_weights": False, **how}
    native, ours = pair(training=mode == "train", batch_first=batch_first)
    x = draw(N, L, E) if batch_first else draw(L, N, E)
    with torch.set_grad_enabled(mode == "train"):
        found = outcome(lambda: ours.attention(x, x, x, **how))
        expected = outcome(lambda: native.attention(x, x, x, **how))
    assert_same(found, expected)
    layer = layer_of(ours)
    assert words in layer.last_path
    assert layer.why_native(x, x, x, **how) == layer.last_path.removeprefix("native: ")
    assert (layer.calls.operator, layer.calls.native) == (0, 1)


def test_a_mask_that_is_learned_gets_its_gradient() -> None:
    native, ours = pair(batch_first=True)
    x, mask = draw(N, L, E), triangle(L, "float").requires_grad_()
    for hinted in (False, True):  # hinted, native drops the mask, and so its gradient
        grads = [
            torch.autograd.grad(
                m(x, attn_mask=mask, is_causal=hinted).square().sum(), mask, allow_unused=True
            )
            for m in (ours, native)
        ]
        assert_same(*grads)
        assert "wants a gradient" in layer_of(ours).last_path


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        (lambda: (draw(2, 5, E), draw(2, 4, E), draw(2, 4, E)), "one and the same"),
        (lambda: (draw(2, 5, E), draw(2, 5, E), draw(2, 5, E)), "one and the same"),
        (lambda: (draw(2, 5, E + 1),) * 3, "[2, 5, 13]"),
        (lambda: (draw(5),) * 3, "[5]"),
        (lambda: (draw(1, 2, 5, E),) * 3, "[1, 2, 5, 12]"),
        (lambda: (draw(2, 5, E).float(),) * 3, "float32"),
        (lambda: (torch.ones(2, 5, E, dtype=torch.int64),) * 3, "int64"),
        (lambda: (draw(2, 5, E).to_sparse(),) * 3, "sparse"),
    ],
    ids=["lengths", "equal but not the same", "width", "1-D", "4-D", "float32", "int64", "sparse"],
)
def test_other_inputs_have_natives_outcome(inputs: Callable[[], tuple[Tensor, ...]], words: str) -> None:
    native, ours = pair(batch_first=True)
    q, k, v = inputs()
    found = outcome(lambda: ours.attention(q, k, v, need_weights=False))
    assert_same(found, outcome(lambda: native.attention(q, k, v, need_weights=False)))
    assert words in layer_of(ours).last_path


def test_dropout_in_training_is_natives_and_in_evaluation_the_operators() -> None:
    native, ours = pair(batch_first=True, dropout=0.5)
    x = draw(2, 5, E)
    results = []
    for model in (native, ours):
        torch.manual_seed(1)
        results.append(model(x))
    assert torch.equal(*results)
    assert layer_of(ours).last_path == "native: dropout=0.5 in training"
    torch.testing.assert_close(ours.eval()(x), native.eval()(x))
    assert layer_of(ours).last_path == "operator"


def test_counts_and_reasons_add_up() -> None:
    _, ours = pair(batch_first=True)
    x, layer = draw(2, 5, E), layer_of(ours)
    assert layer.last_path == ""
    ours(x)
    ours(x)
    layer(x, x, x)
    ours(x, key_padding_mask=torch.zeros(2, 5, dtype=torch.bool))
    assert (layer.calls.operator, layer.calls.native, sum(layer.calls.reasons.values())) == (2, 2, 2)
    assert "operator=2, native=2" in repr(layer.calls)
    layer.calls.clear()
    assert (layer.calls.operator, layer.calls.native, layer.last_path) == (0, 0, "")


def test_a_tensor_subclass_goes_the_native_way() -> None:
    class Tagged(Tensor):
        pass

    native, ours = pair(batch_first=True)
    x = draw(2, 5, E).as_subclass(Tagged)
    found = ours.attention(x, x, x, need_weights=False)[0]
    assert type(found) is Tagged
    torch.testing.assert_close(found, native.attention(x, x, x, need_weights=False)[0])
    assert "Tagged" in layer_of(ours).last_path
