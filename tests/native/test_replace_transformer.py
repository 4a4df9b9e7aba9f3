"""Swapped layers inside PyTorch's own transformer modules, which bypass an attention layer where they can."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from self_attention_ext import ReplacedMultiheadAttention, replace_self_attention
from torch import Tensor, nn

from tests.native.cases import largest

pytestmark = [
    pytest.mark.build,
    pytest.mark.usefixtures("library"),
    pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype stage:UserWarning"),
    pytest.mark.filterwarnings("ignore:enable_nested_tensor is True, but:UserWarning"),
    pytest.mark.filterwarnings("ignore:Support for mismatched src_key_padding_mask:UserWarning"),
]

E, HEADS, LENGTH = 24, 4, 7


def encoder(layers: int = 2, seed: int = 11, nested: bool = True, **options: Any) -> nn.TransformerEncoder:
    torch.manual_seed(seed)
    settings = {"dim_feedforward": 32, "dropout": 0.0, "batch_first": True, **options}
    model = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(E, HEADS, **settings), layers, enable_nested_tensor=nested
    )
    with torch.no_grad():  # the clones are equal, their biases zero
        for p in model.parameters():
            p.add_(torch.randn(p.shape), alpha=0.05)
    return model.double()


def pair(training: bool = False, **options: Any) -> tuple[nn.TransformerEncoder, nn.TransformerEncoder]:
    native = encoder(**options).train(training)
    ours = copy.deepcopy(native)
    assert len(replace_self_attention(ours).swapped) == len(native.layers)
    return native, ours


def draw(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(3))


def attentions(model: nn.Module) -> Iterator[ReplacedMultiheadAttention]:
    return (m for m in model.modules() if isinstance(m, ReplacedMultiheadAttention))


def paths(model: nn.Module) -> set[str]:
    return {layer.last_path for layer in attentions(model)}


def operator_calls(model: nn.Module, *inputs: Any, **how: Any) -> int:
    """How often the operator appears in a profile of one call."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        model(*inputs, **how)
    return sum(
        event.count for event in profile.key_averages() if event.key == "attnscope::self_attention_packed"
    )


@pytest.mark.parametrize("mode", ["train", "eval", "no_grad", "inference"])
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_the_layer_is_truly_called_in_every_mode(mode: str, norm_first: bool, causal: bool) -> None:
    native, ours = pair(mode == "train", norm_first=norm_first)
    x = draw(2, LENGTH, E)
    mask = nn.Transformer.generate_square_subsequent_mask(LENGTH, dtype=torch.float64) if causal else None
    context = {"no_grad": torch.no_grad, "inference": torch.inference_mode}.get(mode, torch.enable_grad)
    with context():
        assert operator_calls(ours, x, mask) == 2
        torch.testing.assert_close(ours(x, mask), native(x, mask))
    assert paths(ours) == {"operator"}


def test_the_unswapped_layer_is_bypassed_and_only_the_hook_prevents_it() -> None:
    """The precaution is needed: without it the encoder layer never calls what was swapped."""
    _, ours = pair(layers=1)
    layer = next(attentions(ours))
    x = draw(2, LENGTH, E)
    with torch.no_grad():
        ours(x)
        assert layer.calls.operator == 1
        layer.out_proj._forward_pre_hooks.clear()
        ours(x)
        assert layer.calls.operator == 1
        replace_self_attention(ours)


@pytest.mark.parametrize("mode", ["train", "eval", "no_grad"])
def test_hooks_fire_once(mode: str) -> None:
    _, ours = pair(mode == "train", layers=1)
    fired: list[str] = []
    layer = next(attentions(ours))
    layer.register_forward_pre_hook(lambda *_: fired.append("before"))
    layer.register_forward_hook(lambda *_: fired.append("after"))
    with torch.set_grad_enabled(mode != "no_grad"):
        ours(draw(2, LENGTH, E))
    assert fired == ["before", "after"]


@pytest.mark.parametrize("mode", ["train", "eval", "no_grad"])
@pytest.mark.parametrize(
    "options", [{"batch_first": False}, {"bias": False}, {"activation": "gelu"}], ids=str
)
def test_other_kinds_of_encoder_layers(options: dict[str, Any], mode: str) -> None:
    native, ours = pair(mode == "train", **options)
    x = draw(LENGTH, 3, E)
    with torch.set_grad_enabled(mode != "no_grad"):
        torch.testing.assert_close(ours(x), native(x))
    assert paths(ours) == {"operator"}


# ---- padding --------------------------------------------------------------------------------------------


def padding(*lengths: int) -> Tensor:
    return torch.arange(LENGTH)[None] >= torch.tensor(lengths)[:, None]


@pytest.mark.parametrize("mode", ["train", "eval", "no_grad"])
@pytest.mark.parametrize("nested", [True, False])
def test_padding_gives_what_the_unswapped_encoder_gives(nested: bool, mode: str) -> None:
    """With `nested`, in eval without gradients, the encoder packs its input into a nested tensor."""
    native, ours = pair(mode == "train", nested=nested)
    x, mask = draw(3, LENGTH, E), padding(7, 4, 1)
    with torch.set_grad_enabled(mode != "no_grad"):
        found, expected = (model(x, src_key_padding_mask=mask) for model in (ours, native))
    torch.testing.assert_close(found, expected)
    packed = nested and mode == "no_grad"
    assert paths(ours) == {
        f"native: {'the input is a nested tensor' if packed else 'a key_padding_mask is given'}"
    }
    assert operator_calls(ours.train(), x) == 2  # and the next call without padding is the operator's


@pytest.mark.parametrize("mode", ["train", "eval", "no_grad"])
@pytest.mark.parametrize("causal", [False, True])
def test_an_item_masked_wholly_touches_no_other(causal: bool, mode: str) -> None:
    """The item itself comes out as the native attention layer gives it when called, in every mode. In eval without
    gradients the native encoder layer does not call it, and has NaN there, unless somebody hooks on.
    """
    native, ours = pair(mode == "train", layers=1, nested=False)
    mask = padding(LENGTH, 0)
    how: dict[str, Any] = {"src_key_padding_mask": mask}
    if causal:
        how["mask"] = nn.Transformer.generate_square_subsequent_mask(LENGTH, dtype=torch.float64)
    native.layers[0].register_forward_hook(lambda *_: None)
    results = []
    for model in (ours, native):
        x = draw(2, LENGTH, E).requires_grad_(mode != "no_grad")
        with torch.set_grad_enabled(mode != "no_grad"):
            y = model(x, **how)
        if mode != "no_grad":
            y[0].square().sum().backward()
        results.append((y.detach(), x.grad, [p.grad for p in model.parameters()]))
    (y, grad, grads), (native_y, native_grad, native_grads) = results
    assert y[0].isfinite().all()
    torch.testing.assert_close(y, native_y)
    if mode != "no_grad":
        assert grad[0].isfinite().all()  # type: ignore[index]
        torch.testing.assert_close(grad, native_grad)
        for found, right in zip(grads, native_grads, strict=True):
            torch.testing.assert_close(found, right)
    native.layers[0]._forward_hooks.clear()  # the bypass gives the other item the same, too
    with torch.no_grad():
        alone = native(draw(2, LENGTH, E)[:1], mask=how.get("mask"))
    torch.testing.assert_close(y[:1], alone)
    assert all("key_padding_mask" in path for path in paths(ours))


def test_a_full_transformer_keeps_its_cross_attention() -> None:
    torch.manual_seed(2)
    native = nn.Transformer(E, HEADS, 1, 2, 32, dropout=0.0, batch_first=True).double()
    ours = copy.deepcopy(native)
    report = replace_self_attention(ours)
    assert [layer.names[0] for layer in report.swapped] == [
        "encoder.layers.0.self_attn",
        "decoder.layers.0.self_attn",
        "decoder.layers.1.self_attn",
    ]
    source, target = draw(2, LENGTH, E), draw(2, 5, E)
    mask = nn.Transformer.generate_square_subsequent_mask(5, dtype=torch.float64)
    for training in (True, False):
        with torch.set_grad_enabled(training):
            found, expected = (
                model.train(training)(source, target, tgt_mask=mask) for model in (ours, native)
            )
        torch.testing.assert_close(found, expected)
        assert paths(ours) == {"operator"}


# ---- fifty steps ----------------------------------------------------------------------------------------


def train(model: nn.Module, dtype: torch.dtype, steps: int = 50) -> Tensor:
    """The losses of a causal encoder that learns to tell each position the one before it."""
    model = model.to(dtype).train()
    head = torch.Generator().manual_seed(1)
    targets = torch.randn(E, E, generator=head, dtype=torch.float64).to(dtype) * E**-0.5
    data = torch.Generator().manual_seed(9)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    mask = nn.Transformer.generate_square_subsequent_mask(LENGTH, dtype=dtype)
    losses = []
    for _ in range(steps):
        x = torch.randn(4, LENGTH, E, generator=data, dtype=torch.float64).to(dtype)
        loss = (model(x, mask, is_causal=True)[:, 1:] - x[:, :-1] @ targets).square().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)


@pytest.mark.parametrize("kernel", ["aten", "fused"])
def test_fifty_training_steps_give_the_same_losses_to_rounding(kernel: str) -> None:
    """Rounding is what float64 leaves of the two: each step's results differ by some units of 2**-53, and the next
    steps carry the difference on. Over fifty steps of a model this size that stays under 2**20 units, so 1e-10 of
    the loss. A wrong term in a gradient is larger by many powers of ten, whatever its kind.

    In float32 the same holds by the rule for every result here: the losses' distance from those of float64 is at
    most three times that of the native model's.
    """
    native, ours = encoder(), encoder()
    replace_self_attention(ours, kernel=kernel)
    exact = train(copy.deepcopy(native), torch.float64)
    found = train(copy.deepcopy(ours), torch.float64)
    assert exact[-1] < 0.9 * exact[0]  # it learns, so the gradients matter
    torch.testing.assert_close(found, exact, rtol=1e-10, atol=0)

    native_error = largest(train(native, torch.float32).double() - exact)
    unit = torch.finfo(torch.float32).eps * largest(exact)
    assert largest(train(ours, torch.float32).double() - exact) <= 3 * max(native_error, unit)
    assert {(layer.calls.operator, layer.calls.native) for layer in attentions(ours)} == {(50, 0)}
