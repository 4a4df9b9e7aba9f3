"""A small model, native and with its layer swapped, and how their outcomes are compared."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from self_attention_ext import ReplacedMultiheadAttention, replace_self_attention
from torch import Tensor, nn

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
