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
    seed: int = 7,
) -> Case:
    """Standard normal x and parameters of a trained layer's size; the same for the same arguments."""
    generator = torch.Generator().manual_seed(seed)

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

    Native's counts as at least one rounding unit of the tensor's largest magnitude, and as at least the
    smallest normal number: some hardware and libraries take what lies below for zero. k_bias's gradient is
    zero in exact arithmetic: its unit is that of the terms it sums, as q_bias's.
    """
    assert found.keys() == native.keys() == exact.keys()
    for name, value in found.items():
        assert value.shape == native[name].shape, name
        assert value.dtype == native[name].dtype, name
        magnitude = largest(exact["q_bias" if name == "k_bias" else name])
        unit = max(torch.finfo(value.dtype).eps * magnitude, torch.finfo(value.dtype).smallest_normal)
        bound = (2 if name == "output" else 3) * max(largest(native[name].double() - exact[name]), unit)
        error = largest(value.double() - exact[name])
        assert error <= bound, f"{name}: error {error:.2e}, bound {bound:.2e}"


def native_results(case: Case, dy: Tensor) -> dict[str, Tensor]:
    """Output and nine gradients of the step-by-step layer, by autograd."""
    nine = case.separate()
    y = reference.self_attention(*nine, case.heads, case.causal)  # type: ignore[arg-type, call-arg]
    return {"output": y.detach(), **dict(zip(NAMES, torch.autograd.grad(y, nine, dy), strict=True))}


def results(
    shape: tuple[int, int, int, int], causal: bool, dtype: torch.dtype, kernel: str, draws: int | None = None
) -> tuple[dict[str, Tensor], dict[str, Tensor], dict[str, Tensor]]:
    """Output and nine gradients: found, native's at the same precision, and exact; [draws, ...] each.

    Of a handful of numbers the largest error is a matter of luck, native's too: small shapes are drawn
    several times, and judged together.
    """
    draws = draws or (8 if shape[0] * shape[1] * shape[2] < 2000 else 1)
    rows = [_results(shape, causal, dtype, kernel, seed) for seed in range(7, 7 + draws)]
    found, native, exact = (
        {name: torch.stack([r[i][name] for r in rows]) for name in rows[0][i]} for i in range(3)
    )
    return found, native, exact


def _results(
    shape: tuple[int, int, int, int], causal: bool, dtype: torch.dtype, kernel: str, seed: int
) -> tuple[dict[str, Tensor], dict[str, Tensor], dict[str, Tensor]]:
    case = make_case(*shape, causal=causal, dtype=dtype, seed=seed)
    generator = torch.Generator().manual_seed(seed + 1)
    dy = torch.randn(case.x.shape, generator=generator, dtype=torch.float64).to(dtype)
    wide = Case(*[t.detach().double() for t in case.leaves], case.heads, case.causal)
    return kernel_results(case, dy, kernel), native_results(case, dy), native_results(wide, dy.double())


def kernel_results(case: Case, dy: Tensor, kernel: str) -> dict[str, Tensor]:
    """Output and nine gradients of the operator, its weights packed."""
    y = torch.ops.attnscope.self_attention_packed(*case.leaves, case.heads, case.causal, kernel)
    x, in_weight, in_bias, out_weight, out_bias = torch.autograd.grad(y, case.leaves, dy)
    parts = [t for pair in zip(in_weight.chunk(3), in_bias.chunk(3), strict=True) for t in pair]
    return {"output": y.detach(), **dict(zip(NAMES, [x, *parts, out_weight, out_bias], strict=True))}
