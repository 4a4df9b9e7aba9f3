"""Seeded tensors and the one set of parameters that every contender of a workload shares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F  # noqa: N812  torch's own name for it
from torch import Tensor, nn

from app.core.workload import Workload

Forward = Callable[[], Tensor]
"""An implementation made ready for its inputs: one forward pass, output [B, S, E]."""

PARTS = (
    "q_weight",
    "q_bias",
    "k_weight",
    "k_bias",
    "v_weight",
    "v_bias",
    "out_weight",
    "out_bias",
)

BIAS_STD = 0.1


@dataclass(frozen=True)
class Cached:
    """Keys and values [B, H, S, D] of the tokens that a decode workload starts from. Nobody writes to them."""

    keys: Tensor
    values: Tensor

    def with_room(self) -> tuple[Tensor, Tensor]:
        """Both in memory of their own, with room for one token more: [B, H, S + 1, D]."""
        batch, num_heads, seq_len, head_dim = self.keys.shape
        copies = []
        for filled in (self.keys, self.values):
            copy = filled.new_zeros(batch, num_heads, seq_len + 1, head_dim)
            copy[:, :, :seq_len] = filled
            copies.append(copy)
        return copies[0], copies[1]


@dataclass(frozen=True)
class Inputs:
    """What one workload is computed on.

    `x` [B, S, E], in decode mode the new tokens [B, 1, E], which see those in `cached`. `layer` holds the
    parameters packed, as `nn.MultiheadAttention` does; `parts` are the same numbers in the same memory as
    separate leaves, as a layer written step by step owns them (a slice of the packed weight would cost it
    copies in the backward pass that no such layer pays).
    `output_gradient` [B, S, E] is what the backward pass starts from; None in the other modes.
    """

    workload: Workload
    x: Tensor
    layer: nn.MultiheadAttention
    parts: Mapping[str, Tensor]
    output_gradient: Tensor | None
    leaves: tuple[Tensor, ...] = field(repr=False, default=())
    cached: Cached | None = None

    def call(self, forward: Forward) -> Forward:
        """What is measured: `forward` itself, or a training step around it without the optimiser."""
        if self.output_gradient is None:
            return forward
        leaves, gradient = self.leaves, self.output_gradient

        def step() -> Tensor:
            for leaf in leaves:
                leaf.grad = None
            output = forward()
            output.backward(gradient)  # type: ignore[no-untyped-call]
            return output

        return step

    def clear_gradients(self) -> None:
        for leaf in self.leaves:
            leaf.grad = None

    def gradients(self) -> dict[str, Tensor]:
        """Gradients after a step: `x` [B, S, E] and each of `PARTS`, whichever leaves they gathered in."""
        found = {"x": _gradient(self.x.grad, "x")}
        packed = self._packed_gradients()
        for name in PARTS:
            own, shared = self.parts[name].grad, packed.get(name)
            found[name] = _gradient(shared if own is None else own, name)
            if own is not None and shared is not None:
                found[name] = own + shared
        return found

    def _packed_gradients(self) -> dict[str, Tensor]:
        layer = self.layer
        found = {"out_weight": layer.out_proj.weight.grad, "out_bias": layer.out_proj.bias.grad}
        for kind, packed in (("weight", layer.in_proj_weight.grad), ("bias", layer.in_proj_bias.grad)):
            if packed is not None:
                found |= {
                    f"{letter}_{kind}": part for letter, part in zip("qkv", packed.chunk(3), strict=True)
                }
        return {name: gradient for name, gradient in found.items() if gradient is not None}


def make_inputs(workload: Workload, seed: int = 0) -> Inputs:
    """Seeded inputs for `workload`, whose device is resolved ("cpu" or "cuda:N").

    The same seed gives the same numbers on every device; torch's global random state is left alone.
    Weights are drawn with a standard deviation of 1/sqrt(E), so that activations stay near 1 at any size.
    Raises what torch raises when the memory does not suffice.
    """
    dtype = getattr(torch, workload.dtype)
    device = torch.device(workload.device)
    generator = torch.Generator().manual_seed(seed)
    draw_dtype = torch.float64 if dtype == torch.float64 else torch.float32

    def normal(*shape: int, std: float = 1.0) -> Tensor:
        drawn = torch.empty(shape, dtype=draw_dtype).normal_(0.0, std, generator=generator)
        return drawn.to(device=device, dtype=dtype)

    width = workload.embed_dim
    shape = (workload.batch, 1 if workload.decode else workload.seq_len, width)
    # Made without memory first: its own initialisation would use the global random state.
    layer = nn.MultiheadAttention(width, workload.num_heads, batch_first=True, device="meta", dtype=dtype)
    layer = layer.to_empty(device=device).train(workload.backward)
    with torch.no_grad():
        for name, parameter in layer.named_parameters():
            std = BIAS_STD if name.endswith("bias") else width**-0.5
            parameter.copy_(normal(*parameter.shape, std=std))
    layer.requires_grad_(workload.backward)
    parts = {
        name: part.requires_grad_(workload.backward) for name, part in separate_parameters(layer).items()
    }
    x = normal(*shape).requires_grad_(workload.backward)
    output_gradient = normal(*shape) if workload.backward else None
    cached = None
    if workload.decode:
        cached = cache_of(layer, normal(workload.batch, workload.seq_len, width))
    return Inputs(
        workload=workload,
        x=x,
        layer=layer,
        parts=parts,
        output_gradient=output_gradient,
        leaves=(x, *layer.parameters(), *parts.values()) if workload.backward else (),
        cached=cached,
    )


def cache_of(layer: nn.MultiheadAttention, tokens: Tensor) -> Cached:
    """What a layer keeps of `tokens` [B, S, E]: their keys and values [B, H, S, D]."""
    batch, seq_len, _ = tokens.shape
    heads = (batch, seq_len, layer.num_heads, layer.head_dim)
    with torch.no_grad():
        _, k_weight, v_weight = layer.in_proj_weight.chunk(3)
        _, k_bias, v_bias = layer.in_proj_bias.chunk(3)
        keys = F.linear(tokens, k_weight, k_bias).view(heads).transpose(1, 2)
        values = F.linear(tokens, v_weight, v_bias).view(heads).transpose(1, 2)
        return Cached(keys.contiguous(), values.contiguous())


def separate_parameters(layer: nn.MultiheadAttention) -> dict[str, Tensor]:
    """`PARTS` as tensors without history that share `layer`'s memory: weights [E, E], biases [E]."""
    weights = layer.in_proj_weight.detach().chunk(3)
    biases = layer.in_proj_bias.detach().chunk(3)
    parts = {}
    for letter, weight, bias in zip("qkv", weights, biases, strict=True):
        parts[f"{letter}_weight"], parts[f"{letter}_bias"] = weight.detach(), bias.detach()
    parts["out_weight"] = layer.out_proj.weight.detach()
    parts["out_bias"] = layer.out_proj.bias.detach()
    return parts


def on_batch_slice(inputs: Inputs, batch: int) -> Inputs:
    """The first `batch` sequences of `inputs` with the same parameters, as inputs of their own."""
    import msgspec

    backward, cached = inputs.workload.backward, inputs.cached
    x = inputs.x.detach()[:batch].clone().requires_grad_(backward)
    gradient = None if inputs.output_gradient is None else inputs.output_gradient[:batch].clone()
    return Inputs(
        workload=msgspec.structs.replace(inputs.workload, batch=batch),
        x=x,
        layer=inputs.layer,
        parts=inputs.parts,
        output_gradient=gradient,
        leaves=(x, *inputs.leaves[1:]) if backward else (),
        cached=None if cached is None else Cached(cached.keys[:batch], cached.values[:batch]),
    )


def _gradient(gradient: Tensor | None, name: str) -> Tensor:
    if gradient is None:
        raise RuntimeError(f"the backward pass left no gradient for {name}")
    return gradient
