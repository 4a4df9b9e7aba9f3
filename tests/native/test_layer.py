"""The module: it shares nn.MultiheadAttention's parameters, and says what it cannot convert."""

from __future__ import annotations

import copy
import io
import pickle

import pytest
import torch
from self_attention_ext import SelfAttention
from torch import nn

pytestmark = [pytest.mark.build, pytest.mark.usefixtures("library")]


def causal_native(mha: nn.MultiheadAttention, x: torch.Tensor) -> torch.Tensor:
    mask = torch.triu(torch.ones(x.shape[1], x.shape[1], dtype=torch.bool), 1)
    y: torch.Tensor = mha(x, x, x, attn_mask=mask, need_weights=False)[0]
    return y


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("heads", [1, 3, 4])
def test_a_state_dict_fits_either_way(bias: bool, heads: int) -> None:
    mha = nn.MultiheadAttention(12, heads, bias=bias, batch_first=True)
    layer = SelfAttention(12, heads, bias=bias, causal=True)
    assert list(layer.state_dict()) == list(mha.state_dict())
    layer.load_state_dict(mha.state_dict())
    x = torch.randn(2, 5, 12)
    torch.testing.assert_close(layer(x), causal_native(mha, x))
    mha.load_state_dict(SelfAttention(12, heads, bias=bias).state_dict())


@pytest.mark.parametrize("bias", [True, False])
def test_a_converted_layer_shares_every_parameter(bias: bool) -> None:
    mha = nn.MultiheadAttention(12, 3, bias=bias, batch_first=True)
    layer = SelfAttention.from_multihead_attention(mha, causal=True)
    assert {id(p) for p in layer.parameters()} == {id(p) for p in mha.parameters()}
    x = torch.randn(2, 5, 12)
    torch.testing.assert_close(layer(x), causal_native(mha, x))
    torch.optim.SGD(layer.parameters(), 0.1).zero_grad()
    layer(x).sum().backward()
    assert mha.in_proj_weight.grad is not None


@pytest.mark.parametrize(
    ("mha", "words"),
    [
        (nn.MultiheadAttention(12, 3, batch_first=True, kdim=6), "kdim=6"),
        (nn.MultiheadAttention(12, 3, batch_first=True, add_bias_kv=True), "add_bias_kv"),
        (nn.MultiheadAttention(12, 3, batch_first=True, add_zero_attn=True), "add_zero_attn"),
        (nn.MultiheadAttention(12, 3, batch_first=True, dropout=0.1), "dropout=0.1"),
        (nn.Linear(12, 12), "Linear"),
    ],
)
def test_what_cannot_be_converted_is_refused_with_the_reason(mha: nn.MultiheadAttention, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        SelfAttention.from_multihead_attention(mha)


@pytest.mark.parametrize("causal", [False, True])
def test_a_layer_made_with_the_batch_second_keeps_that_layout(causal: bool) -> None:
    mha = nn.MultiheadAttention(12, 3).double()
    layer = SelfAttention.from_multihead_attention(mha, causal=causal)
    x = torch.randn(5, 2, 12, dtype=torch.float64)
    mask = torch.triu(torch.ones(5, 5, dtype=torch.bool), 1) if causal else None
    expected = mha(x, x, x, attn_mask=mask, need_weights=False)[0]
    found = layer(x)
    torch.testing.assert_close(found, expected)
    assert found.stride() == expected.stride()
    assert "batch_first=False" in repr(layer)
    with pytest.raises(ValueError, match="2 dimensions; expected 3"):
        layer(x[0])


def test_dropout_counts_only_in_training() -> None:
    mha = nn.MultiheadAttention(12, 3, batch_first=True, dropout=0.1).eval()
    layer = SelfAttention.from_multihead_attention(mha, causal=True)
    x = torch.randn(2, 5, 12)
    torch.testing.assert_close(layer(x), causal_native(mha, x))
    layer.train()
    with pytest.raises(RuntimeError, match=r"dropout=0\.1"):
        layer(x)


def test_copies_and_pickles_are_whole() -> None:
    layer = SelfAttention(12, 3, causal=True)
    x = torch.randn(2, 5, 12)
    copies = [copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))]
    buffer = io.BytesIO()
    torch.save(layer, buffer)
    buffer.seek(0)
    copies.append(torch.load(buffer, weights_only=False))
    for other in copies:
        assert {id(p) for p in other.parameters()}.isdisjoint(id(p) for p in layer.parameters())
        torch.testing.assert_close(other(x), layer(x))


def test_a_parametrized_layer_uses_its_parametrization() -> None:
    layer = SelfAttention(12, 3)
    x = torch.randn(2, 5, 12)
    doubled = copy.deepcopy(layer)
    with torch.no_grad():
        doubled.in_proj_weight.mul_(2)

    class Double(nn.Module):
        def forward(self, weight: torch.Tensor) -> torch.Tensor:
            return 2 * weight

    torch.nn.utils.parametrize.register_parametrization(layer, "in_proj_weight", Double())
    torch.testing.assert_close(layer(x), doubled(x))


def test_hooks_fire_once() -> None:
    layer = SelfAttention(12, 3).eval()
    fired = []
    layer.register_forward_hook(lambda *_: fired.append(1))
    with torch.no_grad():
        layer(torch.randn(2, 5, 12))
    assert fired == [1]


@pytest.mark.parametrize(("embed_dim", "heads"), [(0, 1), (8, 0), (8, 3)])
def test_sizes_that_do_not_fit_are_refused(embed_dim: int, heads: int) -> None:
    with pytest.raises(ValueError, match="expected"):
        SelfAttention(embed_dim, heads)


def test_the_layer_says_what_it_is() -> None:
    assert "12, 3, bias=True, causal=True, kernel='auto'" in repr(SelfAttention(12, 3, causal=True))
