"""`torch.nn.MultiheadAttention` as it is, with its fast path where it takes it."""

from __future__ import annotations

import torch
from torch import Tensor

from app.core.workload import DTYPE_BYTES, Workload
from app.engine.implementations.base import Implementation, Unsupported
from app.engine.inputs import Forward, Inputs


def unsupported(workload: Workload) -> Unsupported | None:
    if workload.decode:
        return Unsupported(
            "it keeps no keys and values from one call to the next: for a new token it computes all again",
            "SDPA keeps a cache; the forward mode measures what this layer does instead.",
        )
    return None


def prepare(workload: Workload, inputs: Inputs) -> Forward:
    x, layer, seq_len = inputs.x, inputs.layer, workload.seq_len
    if not workload.causal:
        return lambda: layer(x, x, x, need_weights=False)[0]

    def forward() -> Tensor:
        # The layer wants the mask beside the hint: is_causal alone raises.
        ones = torch.ones(seq_len, seq_len, dtype=torch.bool, device=x.device)
        mask = torch.triu(ones, diagonal=1)
        output: Tensor = layer(x, x, x, attn_mask=mask, is_causal=True, need_weights=False)[0]
        return output

    return forward


def path(operators: frozenset[str]) -> str:
    return "fast path" if "_native_multi_head_attention" in operators else "regular path"


def scratch_bytes(workload: Workload) -> int:
    """The causal mask [S, S], a byte each; the scores are not counted, since some paths keep none."""
    mask = workload.seq_len**2 if workload.causal else 0
    activations = 4 * workload.batch * workload.seq_len * workload.embed_dim
    return mask + activations * DTYPE_BYTES[workload.dtype]


IMPLEMENTATION = Implementation(
    id="mha", prepare=prepare, unsupported=unsupported, path=path, scratch_bytes=scratch_bytes
)
