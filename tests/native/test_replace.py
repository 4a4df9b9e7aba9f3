"""Layers swapped in place: the same objects, parameters, names and owners, and a report of what was done."""

from __future__ import annotations

import copy
import io
import pickle

import pytest
import self_attention_ext as ext
import torch
from self_attention_ext import ReplacedMultiheadAttention, replace_self_attention, restore_self_attention
from torch import Tensor, nn
from torch.nn.utils import prune

from tests.native.swapped import HEADS, Block, E, draw, layer_of, outcome, pair

pytestmark = [pytest.mark.build, pytest.mark.usefixtures("library")]


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


def test_an_output_projection_that_is_no_plain_tensor_goes_the_native_way() -> None:
    """As a dynamically quantized one, whose weight is a method: native's outcome, whatever it is."""

    class Packed(nn.Module):
        bias = None

        def weight(self) -> Tensor:
            raise NotImplementedError

    native, ours = pair(batch_first=True)
    for model in (native, ours):
        model.attention.out_proj = Packed()
    x = draw(2, 5, E)
    assert outcome(lambda: ours(x)) is outcome(lambda: native(x))
    assert layer_of(ours).last_path == "native: a parameter is a method"
