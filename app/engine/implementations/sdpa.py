"""One packed projection and `torch.nn.functional.scaled_dot_product_attention`."""

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
    """The packed projection, the weighted sum and the output; no scores, where a fused backend runs."""
    activations = 5 * workload.batch * workload.seq_len * workload.embed_dim
    return activations * DTYPE_BYTES[workload.dtype]


IMPLEMENTATION = Implementation(id="sdpa", prepare=prepare, path=path, scratch_bytes=scratch_bytes)
