"""Seeded inputs for the operator, and the rule by which its results are judged."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from self_attention_ext import reference
from torch import Tensor

NAMES = reference.GRADIENTS


@dataclass(frozen=True)
class Case:
    """x [B, S, E] and the eight parameters; `packed` ones are slices of one in_proj_weight and
    in_proj_bias.
    """

    x: Tensor
    in_weight: Tensor
    in_bias: Tensor
    out_weight: Tensor
    out_bias: Tensor
    heads: int
    causal: bool

    @property
    def leaves(self) -> tuple[Tensor, ...]:
        return self.x, self.in_weight, self.in_bias, self.out_weight, self.out_bias

    def nine(self) -> list[Tensor]:
        """The nine tensors, q, k and v as slices of the packed ones."""
        weights, biases = self.in_weight.chunk(3), self.in_bias.chunk(3)
        pairs = [t for pair in zip(weights, biases, strict=True) for t in pair]
        return [self.x, *pairs, self.out_weight, self.out_bias]

    def separate(self) -> list[Tensor]:
        """The nine tensors, each in memory of its own, gradients wanted."""
        return [t.detach().clone().requires_grad_() for t in self.nine()]


def make_case(
    batch: int = 2,
    seq_len: int = 5,
    embed_dim: int = 12,
    heads: int = 3,
    causal: bool = True,
    dtype: torch.dtype = torch.float64,
    gradients: bool = True,
) -> Case:
    """Standard normal x and parameters of a trained layer's size; the same for the same arguments."""
    generator = torch.Generator().manual_seed(7)

    def draw(*shape: int, scale: float = 1.0) -> Tensor:
        values = torch.randn(shape, generator=generator, dtype=torch.float64) * scale
        return values.to(dtype).requires_grad_(gradients)

    size = embed_dim**-0.5
    return Case(
        draw(batch, seq_len, embed_dim),
        draw(3 * embed_dim, embed_dim, scale=size),
        draw(3 * embed_dim, scale=0.1),
        draw(embed_dim, embed_dim, scale=size),
        draw(embed_dim, scale=0.1),
        heads,
        causal,
    )


def largest(t: Tensor) -> float:
    return t.abs().max().item() if t.numel() else 0.0


def assert_as_exact_as_native(
    found: dict[str, Tensor], native: dict[str, Tensor], exact: dict[str, Tensor]
) -> None:
    """The error against float64 is at most twice native's, three times for gradients.

    Native's counts as at least one rounding unit of the tensor's largest magnitude. k_bias's gradient is
    zero in exact arithmetic: its unit is that of the terms it sums, as q_bias's.
    """
    assert found.keys() == native.keys() == exact.keys()
    for name, value in found.items():
        assert value.shape == native[name].shape, name
        assert value.dtype == native[name].dtype, name
        magnitude = largest(exact["q_bias" if name == "k_bias" else name])
        unit = torch.finfo(value.dtype).eps * magnitude
        bound = (2 if name == "output" else 3) * max(largest(native[name].double() - exact[name]), unit)
        error = largest(value.double() - exact[name])
        assert error <= bound, f"{name}: error {error:.2e}, bound {bound:.2e}"


def native_results(case: Case, dy: Tensor) -> dict[str, Tensor]:
    """Output and nine gradients of the step-by-step layer, by autograd."""
    nine = case.separate()
    y = reference.self_attention(*nine, case.heads, case.causal)  # type: ignore[arg-type, call-arg]
    return {"output": y.detach(), **dict(zip(NAMES, torch.autograd.grad(y, nine, dy), strict=True))}
