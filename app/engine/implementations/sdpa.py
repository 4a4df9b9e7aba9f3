"""One packed projection and `torch.nn.functional.scaled_dot_product_attention`.

In decode mode over a cache that is made once and written in place: the step as one writes it in Python.
"""

from __future__ import annotations

import torch.nn.functional as F  # noqa: N812  torch's own name for it
from torch import Tensor

from app.core.workload import DTYPE_BYTES, Workload
from app.engine.implementations.base import Implementation
from app.engine.inputs import Forward, Inputs

BACKENDS = {
    "_scaled_dot_product_flash_attention_for_cpu": "flash",
    "_scaled_dot_product_flash_attention": "flash",
    "_scaled_dot_product_efficient_attention": "memory-efficient",
    "_scaled_dot_product_cudnn_attention": "cuDNN",
    "_scaled_dot_product_fused_attention_overrideable": "fused",
}


def prepare(workload: Workload, inputs: Inputs) -> Forward:
    x, layer = inputs.x, inputs.layer
    batch, seq_len, embed_dim = x.shape
    packed = (batch, seq_len, 3, workload.num_heads, workload.head_dim)
    in_weight, in_bias = layer.in_proj_weight, layer.in_proj_bias
    out_weight, out_bias = layer.out_proj.weight, layer.out_proj.bias
    causal = workload.causal
    if inputs.cached is not None:
        keys, values = inputs.cached.with_room()
        position, length = workload.seq_len, workload.seq_len + 1

        def step() -> Tensor:
            projected = F.linear(x, in_weight, in_bias).view(packed)
            q, k, v = projected.permute(2, 0, 3, 1, 4).unbind(0)  # [B, H, 1, D] each
            keys.narrow(2, position, 1).copy_(k)
            values.narrow(2, position, 1).copy_(v)
            seen_keys, seen_values = keys.narrow(2, 0, length), values.narrow(2, 0, length)
            context = F.scaled_dot_product_attention(q, seen_keys, seen_values)
            merged = context.transpose(1, 2).reshape(batch, 1, embed_dim)
            return F.linear(merged, out_weight, out_bias)

        return step

    def forward() -> Tensor:
        projected = F.linear(x, in_weight, in_bias).view(packed)
        q, k, v = projected.permute(2, 0, 3, 1, 4).unbind(0)  # [B, H, S, D] each
        context = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        merged = context.transpose(1, 2).reshape(batch, seq_len, embed_dim)
        return F.linear(merged, out_weight, out_bias)

    return forward


def path(operators: frozenset[str]) -> str:
    """Which backend ran; "" where it was none that is known by name."""
    for operator, backend in BACKENDS.items():
        if operator in operators:
            return backend
    return "math" if operators & {"_softmax", "_safe_softmax", "softmax"} else ""


def scratch_bytes(workload: Workload) -> int:
    """The packed projection, the weighted sum and the output; no scores, where a fused backend runs.

    In decode mode those of one token, and a cache of its own.
    """
    tokens = workload.batch * (1 if workload.decode else workload.seq_len)
    return 5 * tokens * workload.embed_dim * DTYPE_BYTES[workload.dtype] + workload.cache_bytes


IMPLEMENTATION = Implementation(id="sdpa", prepare=prepare, path=path, scratch_bytes=scratch_bytes)
