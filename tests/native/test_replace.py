"""Layers swapped in place: the same object, parameters, signature and results; what is not covered goes the native
way, for a reason that can be read.
"""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import self_attention_ext as ext
import torch
from self_attention_ext import ReplacedMultiheadAttention, replace_self_attention, restore_self_attention
from torch import Tensor, nn
from torch.nn.utils import prune

pytestmark = [pytest.mark.build, pytest.mark.usefixtures("library")]

E, HEADS = 12, 3


class Block(nn.Module):
    """A model of one attention layer, float64: what is left between native and operator is rounding."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(E)
        self.attention = nn.MultiheadAttention(E, HEADS, **options)
        self.double()

    def forward(self, x: Tensor, **how: Any) -> Tensor:
        x = self.norm(x)
        y: Tensor = self.attention(x, x, x, need_weights=False, **how)[0]
        return y


def pair(training: bool = True, **options: Any) -> tuple[Block, Block]:
    """The native model, and a copy of it whose layer is swapped."""
    torch.manual_seed(5)
    native = Block(**options)
    # Biases start at zero: make them count.
    with torch.no_grad():
        for p in native.parameters():
            p.add_(torch.randn(p.shape, dtype=p.dtype), alpha=0.1)
    native.train(training)
    ours = copy.deepcopy(native)
    report = replace_self_attention(ours)
    assert [layer.names for layer in report.swapped] == [("attention",)]
    return native, ours


def draw(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(3))


def triangle(length: int, kind: str = "bool") -> Tensor:
    hidden = torch.ones(length, length, dtype=torch.bool).triu(1)
    if kind == "bool":
        return hidden
    return torch.zeros(length, length, dtype=torch.float64).masked_fill(hidden, float("-inf"))


def layer_of(model: Block) -> ReplacedMultiheadAttention:
    assert isinstance(model.attention, ReplacedMultiheadAttention)
    return model.attention


def outcome(call: Callable[[], Any]) -> Any:
    """The result, or the type of the exception."""
    try:
        return call()
    except Exception as error:
        return type(error)


def assert_same(found: Any, expected: Any) -> None:
    if isinstance(expected, Tensor):
        torch.testing.assert_close(found, expected, equal_nan=True)
        assert found.is_contiguous() or not expected.is_contiguous()
    elif isinstance(expected, tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    else:
        assert found is expected


# ---- the swap itself ------------------------------------------------------------------------------------


def test_the_model_keeps_its_objects_names_and_parameters() -> None:
    model = Block(batch_first=True)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    layer, before = model.attention, dict(model.named_parameters())
    order, modules, state = (
        list(before),
        [name for name, _ in model.named_modules()],
        list(model.state_dict()),
    )
    replace_self_attention(model)
    assert model.attention is layer
    assert isinstance(layer, nn.MultiheadAttention)
    assert type(layer) is ReplacedMultiheadAttention
    assert list(dict(model.named_parameters())) == order
    assert all(p is before[name] for name, p in model.named_parameters())
    assert [name for name, _ in model.named_modules()] == modules
    assert list(model.state_dict()) == state
    assert {id(p) for group in optimizer.param_groups for p in group["params"]} == {
        id(p) for p in model.parameters()
    }


def test_attributes_that_others_read_are_still_there() -> None:
    native, ours = pair(batch_first=True, dropout=0.25)
    names = "embed_dim kdim vdim _qkv_same_embed_dim num_heads dropout batch_first head_dim bias_k bias_v "
    for name in (names + "add_zero_attn in_proj_bias in_proj_weight q_proj_weight training").split():
        found, expected = getattr(ours.attention, name), getattr(native.attention, name)
        assert torch.equal(found, expected) if isinstance(expected, Tensor) else found == expected, name


def test_the_report_names_every_layer_and_why_it_was_left() -> None:
    class Peculiar(nn.MultiheadAttention):
        pass

    exchanged = nn.MultiheadAttention(E, HEADS)
    exchanged.forward = lambda *a, **k: (a[0], None)  # type: ignore[method-assign]
    shared = nn.MultiheadAttention(E, HEADS)
    model = nn.ModuleDict(
        {
            "one": shared,
            "again": shared,
            "dropping": nn.MultiheadAttention(E, HEADS, dropout=0.1),
            "subclass": Peculiar(E, HEADS),
            "sizes": nn.MultiheadAttention(E, HEADS, kdim=6),
            "learned": nn.MultiheadAttention(E, HEADS, add_bias_kv=True),
            "zero": nn.MultiheadAttention(E, HEADS, add_zero_attn=True),
            "exchanged": exchanged,
            "decoder": nn.TransformerDecoderLayer(E, HEADS, dim_feedforward=16, dropout=0.0),
            "other": nn.Linear(E, E),
        }
    )
    report = replace_self_attention(model)
    assert [layer.names for layer in report.swapped] == [
        ("one", "again"),
        ("dropping",),
        ("decoder.self_attn",),
    ]
    assert "dropout=0.1" in report.swapped[1].note
    left = {layer.names: layer.note for layer in report.left}
    expected = {
        "subclass": "Peculiar",
        "sizes": "kdim=6",
        "learned": "add_bias_kv",
        "zero": "add_zero_attn",
        "exchanged": "forward was exchanged",
        "decoder.multihead_attn": "cross-attention",
    }
    assert left.keys() == {(name,) for name in expected}
    for name, words in expected.items():
        assert words in left[(name,)]
        assert not isinstance(model.get_submodule(name), ReplacedMultiheadAttention)
    assert "one, again" in str(report)
    assert "left:" in str(report)


def test_a_second_call_swaps_nothing_but_what_is_new() -> None:
    model = nn.Sequential(nn.MultiheadAttention(E, HEADS))
    first = model[0]
    replace_self_attention(model)
    again = replace_self_attention(model)
    assert (again.swapped, [layer.names for layer in again.before]) == ((), [("0",)])
    assert len(first.out_proj._forward_pre_hooks) == 1
    model.append(nn.MultiheadAttention(E, HEADS))
    later = replace_self_attention(model, kernel="aten")
    assert [layer.names for layer in later.swapped] == [("1",)]
    assert first.kernel == "aten"


def test_a_layer_that_is_the_whole_model() -> None:
    layer = nn.MultiheadAttention(E, HEADS, batch_first=True).double()
    x = draw(2, 5, E)
    expected = layer(x, x, x, need_weights=False)[0]
    report = replace_self_attention(layer)
    assert str(report) == "swapped:\n  the model itself"
    torch.testing.assert_close(layer(x, x, x, need_weights=False)[0], expected)
    assert layer.last_path == "operator"


def test_restoring_brings_the_native_layers_back() -> None:
    native, ours = pair(batch_first=True)
    state = vars(copy.deepcopy(native.attention)).keys()
    assert restore_self_attention(ours) == ("attention",)
    assert type(ours.attention) is nn.MultiheadAttention
    assert vars(ours.attention).keys() == state
    assert not ours.attention.out_proj._forward_pre_hooks
    x = draw(2, 5, E)
    assert torch.equal(ours(x), native(x))
    assert restore_self_attention(ours) == ()


def test_what_cannot_be_asked_is_refused() -> None:
    with pytest.raises(ValueError, match="'banana'; expected one of: auto, aten, fused"):
        replace_self_attention(Block(), kernel="banana")
    with pytest.raises(TypeError, match=r"Tensor; expected a torch\.nn\.Module"):
        replace_self_attention(torch.zeros(3))  # type: ignore[arg-type]
    assert str(replace_self_attention(nn.Linear(3, 3))) == "no nn.MultiheadAttention found"


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


# ---- copies, checkpoints, other owners of the parameters -------------------------------------------------


def test_copies_and_pickles_stay_swapped_and_whole() -> None:
    _, ours = pair(batch_first=True)
    x = draw(2, 5, E)
    y = ours(x)
    buffer = io.BytesIO()
    torch.save(ours, buffer)
    buffer.seek(0)
    copies = [copy.deepcopy(ours), pickle.loads(pickle.dumps(ours)), torch.load(buffer, weights_only=False)]
    for other in copies:
        layer = layer_of(other)
        assert (layer.calls.operator, layer.last_path) == (0, "")
        torch.testing.assert_close(other(x), y)
        assert layer.last_path == "operator"
        assert len(layer.out_proj._forward_pre_hooks) == 1
        assert {id(p) for p in other.parameters()}.isdisjoint(id(p) for p in ours.parameters())
    assert layer_of(ours).calls.operator == 1


def test_a_state_dict_fits_both_ways() -> None:
    native, ours = pair(batch_first=True)
    fresh = Block(batch_first=True)
    fresh.load_state_dict(ours.state_dict())
    x = draw(2, 5, E)
    torch.testing.assert_close(fresh(x), ours(x))
    with torch.no_grad():
        native.attention.in_proj_weight.mul_(2)
    ours.load_state_dict(native.state_dict())
    torch.testing.assert_close(ours(x), native(x))


def test_functional_call_uses_the_parameters_given() -> None:
    native, ours = pair(batch_first=True)
    x = draw(2, 5, E)
    given = {name: (p.detach() * 1.5).requires_grad_() for name, p in native.named_parameters()}
    found, expected = (torch.func.functional_call(model, given, (x,)) for model in (ours, native))
    torch.testing.assert_close(found, expected)
    assert layer_of(ours).last_path == "operator"
    leaves = list(given.values())
    for one, other in zip(
        torch.autograd.grad(found.sum(), leaves), torch.autograd.grad(expected.sum(), leaves), strict=True
    ):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("target", ["in_proj_weight", "out_proj"])
def test_a_parametrization_put_on_later_is_honoured(target: str) -> None:
    native, ours = pair(batch_first=True)
    for model in (native, ours):
        attention = model.attention
        if target == "out_proj":
            nn.utils.parametrizations.weight_norm(attention.out_proj)
        else:
            nn.utils.parametrizations.weight_norm(attention, "in_proj_weight")
    x = draw(2, 5, E)
    torch.testing.assert_close(ours(x), native(x))
    assert layer_of(ours).last_path == "operator"


def test_a_parametrization_put_on_before_is_left_and_named() -> None:
    model = Block(batch_first=True)
    nn.utils.parametrizations.weight_norm(model.attention, "in_proj_weight")
    report = replace_self_attention(model)
    assert not report.swapped
    assert "Parametrized" in report.left[0].note


def test_pruning_goes_on_working() -> None:
    native, ours = pair(batch_first=True)
    for model in (native, ours):
        prune.l1_unstructured(model.attention, "in_proj_weight", 0.3)
    x = draw(2, 5, E)
    torch.testing.assert_close(ours(x), native(x))


@pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")  # native's own, under vmap
def test_transforms_of_torch_func_go_on_working() -> None:
    native, ours = pair(batch_first=True)
    x = draw(3, 2, 5, E)
    for transform in (
        lambda model: torch.vmap(model)(x),
        lambda model: torch.func.grad(lambda x: model(x).square().sum())(x[0]),
        lambda model: torch.vmap(torch.func.grad(lambda x: model(x).square().sum()))(x),
    ):
        torch.testing.assert_close(transform(ours), transform(native))
    assert layer_of(ours).last_path == "native: inside a transform of torch.func"


def test_nothing_is_swapped_where_no_library_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    from self_attention_ext import _library

    monkeypatch.setattr(_library, "loaded", lambda: None)
    monkeypatch.setattr(_library, "ahead_of_time", lambda: (None, ""))
    model = Block()
    with pytest.raises(RuntimeError, match=r"self_attention_ext\.load\(\)"):
        ext.replace_self_attention(model)
    assert type(model.attention) is nn.MultiheadAttention
