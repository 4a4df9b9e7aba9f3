"""Self-attention step by step: the baseline. Each line is an operator call or two."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F  # noqa: N812  torch's own name for it
from torch import Tensor

from app.core.workload import DTYPE_BYTES, Workload
from app.engine.implementations.base import Implementation
from app.engine.inputs import Forward, Inputs


def self_attention(
    x: Tensor,  # [B, S, E]
    q_weight: Tensor,  # [E, E], as are the other weights
    q_bias: Tensor,  # [E], as are the other biases
    k_weight: Tensor,
    k_bias: Tensor,
    v_weight: Tensor,
    v_bias: Tensor,
    out_weight: Tensor,
    out_bias: Tensor,
    *,
    num_heads: int,
    causal: bool,
) -> Tensor:
    """Multi-head self-attention on `x`, returning [B, S, E]."""
    batch, seq_len, embed_dim = x.shape
    head_dim = embed_dim // num_heads
    q = F.linear(x, q_weight, q_bias).view(batch, seq_len, num_heads, head_dim).transpose(1, 2)
    k = F.linear(x, k_weight, k_bias).view(batch, seq_len, num_heads, head_dim).transpose(1, 2)
    v = F.linear(x, v_weight, v_bias).view(batch, seq_len, num_heads, head_dim).transpose(1, 2)
    scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(head_dim)  # [B, H, S, S]
    if causal:
        ones = torch.ones(seq_len, seq_len, dtype=torch.bool, device=x.device)
        scores = scores.masked_fill(torch.triu(ones, diagonal=1), float("-inf"))
    probabilities = torch.softmax(scores, dim=-1)
    context = torch.matmul(probabilities, v)  # [B, H, S, D]
    merged = context.transpose(1, 2).contiguous().view(batch, seq_len, embed_dim)
    return F.linear(merged, out_weight, out_bias)


def decoding_step(
    x_t: Tensor,  # [B, 1, E]
    keys: Tensor,  # [B, H, max_len, D], written to, as are the values
    values: Tensor,
    q_weight: Tensor,  # [E, E], as are the other weights
    q_bias: Tensor,  # [E], as are the other biases
    k_weight: Tensor,
    k_bias: Tensor,
    v_weight: Tensor,
    v_bias: Tensor,
    out_weight: Tensor,
    out_bias: Tensor,
    *,
    position: int,
    num_heads: int,
) -> Tensor:
    """One new token of each sequence after `position` cached ones, returning [B, 1, E]."""
    batch, _, embed_dim = x_t.shape
    head_dim = embed_dim // num_heads
    q = F.linear(x_t, q_weight, q_bias).view(batch, 1, num_heads, head_dim).transpose(1, 2)
    k = F.linear(x_t, k_weight, k_bias).view(batch, 1, num_heads, head_dim).transpose(1, 2)
    v = F.linear(x_t, v_weight, v_bias).view(batch, 1, num_heads, head_dim).transpose(1, 2)
    keys[:, :, position : position + 1] = k
    values[:, :, position : position + 1] = v
    seen_keys, seen_values = keys[:, :, : position + 1], values[:, :, : position + 1]
    scores = torch.matmul(q, seen_keys.transpose(-2, -1)) / math.sqrt(head_dim)  # [B, H, 1, position + 1]
    probabilities = torch.softmax(scores, dim=-1)
    context = torch.matmul(probabilities, seen_values)  # [B, H, 1, D]
    merged = context.transpose(1, 2).contiguous().view(batch, 1, embed_dim)
    return F.linear(merged, out_weight, out_bias)


def prepare(workload: Workload, inputs: Inputs) -> Forward:
    x, parts = inputs.x, tuple(inputs.parts.values())
    num_heads, causal = workload.num_heads, workload.causal
    if inputs.cached is not None:
        keys, values = inputs.cached.with_room()
        position = workload.seq_len

        def step() -> Tensor:
            return decoding_step(x, keys, values, *parts, position=position, num_heads=num_heads)

        return step

    def forward() -> Tensor:
        return self_attention(x, *parts, num_heads=num_heads, causal=causal)

    return forward


def scratch_bytes(workload: Workload) -> int:
    """Scores, their scaled or masked copy and the probabilities [B, H, S, S], two alive at a time.

    In decode mode [B, H, 1, S + 1], and a cache of its own.
    """
    rows, columns = (1, workload.seq_len + 1) if workload.decode else (workload.seq_len, workload.seq_len)
    scores = workload.batch * workload.num_heads * rows * columns
    return 2 * scores * DTYPE_BYTES[workload.dtype] + workload.cache_bytes


IMPLEMENTATION = Implementation(id="native", prepare=prepare, scratch_bytes=scratch_bytes)
