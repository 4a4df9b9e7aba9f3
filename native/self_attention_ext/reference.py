"""Multi-head self-attention in plain Python: the operator's readable twin, forward and backward, line by
line.

The C++ is held against this. Shapes: B batch, S sequence, E embedding, H heads, D = E / H.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

GRADIENTS = (
    "x",
    "q_weight",
    "q_bias",
    "k_weight",
    "k_bias",
    "v_weight",
    "v_bias",
    "out_weight",
    "out_bias",
)


def split_heads(t: Tensor, num_heads: int) -> Tensor:
    """[B, S, E] -> [B, H, S, D]"""
    batch, seq_len, embed_dim = t.shape
    return t.view(batch, seq_len, num_heads, embed_dim // num_heads).transpose(1, 2)


def merge_heads(t: Tensor) -> Tensor:
    """[B, H, S, D] -> [B, S, E]"""
    batch, num_heads, seq_len, head_dim = t.shape
    return t.transpose(1, 2).reshape(batch, seq_len, num_heads * head_dim)


def attention_weights(q: Tensor, k: Tensor, causal: bool) -> Tensor:
    """[B, H, S, D] twice -> [B, H, S, S], rows that sum to one."""
    s = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.shape[-1])
    if causal:
        seq_len = q.shape[-2]
        later = torch.triu(torch.ones(seq_len, seq_len, dtype=torch.bool, device=q.device), 1)
        s = s.masked_fill(later, float("-inf"))
    return torch.softmax(s, dim=-1)


def self_attention(
    x: Tensor,
    q_weight: Tensor,
    q_bias: Tensor | None,
    k_weight: Tensor,
    k_bias: Tensor | None,
    v_weight: Tensor,
    v_bias: Tensor | None,
    out_weight: Tensor,
    out_bias: Tensor | None,
    num_heads: int,
    causal: bool = False,
) -> Tensor:
    """The layer, step by step: x [B, S, E], weights [E, E], biases [E] or None -> [B, S, E]."""
    q = split_heads(F.linear(x, q_weight, q_bias), num_heads)
    k = split_heads(F.linear(x, k_weight, k_bias), num_heads)
    v = split_heads(F.linear(x, v_weight, v_bias), num_heads)
    p = attention_weights(q, k, causal)
    c = merge_heads(torch.matmul(p, v))
    return F.linear(c, out_weight, out_bias)


def gradients(
    dy: Tensor,
    x: Tensor,
    q_weight: Tensor,
    q_bias: Tensor | None,
    k_weight: Tensor,
    k_bias: Tensor | None,
    v_weight: Tensor,
    v_bias: Tensor | None,
    out_weight: Tensor,
    out_bias: Tensor | None,
    num_heads: int,
    causal: bool = False,
) -> dict[str, Tensor]:
    """The backward pass, derived by hand: dy [B, S, E] -> a gradient for each of the nine tensors, by name.

    An absent bias has its gradient all the same. Uses no autograd.
    """
    with torch.no_grad():
        scale = 1.0 / math.sqrt(x.shape[-1] // num_heads)
        q = split_heads(F.linear(x, q_weight, q_bias), num_heads)
        k = split_heads(F.linear(x, k_weight, k_bias), num_heads)
        v = split_heads(F.linear(x, v_weight, v_bias), num_heads)
        p = attention_weights(q, k, causal)
        c = merge_heads(torch.matmul(p, v))

        grads: dict[str, Tensor] = {"out_weight": rows(dy).T @ rows(c), "out_bias": rows(dy).sum(0)}
        dc = split_heads(dy @ out_weight, num_heads)
        dv = merge_heads(p.transpose(-2, -1) @ dc)
        dp = dc @ v.transpose(-2, -1)
        ds = p * (dp - (dp * p).sum(-1, keepdim=True))
        dq = merge_heads(ds @ k) * scale
        dk = merge_heads(ds.transpose(-2, -1) @ q) * scale
        for name, d in (("q", dq), ("k", dk), ("v", dv)):
            grads[f"{name}_weight"] = rows(d).T @ rows(x)
            grads[f"{name}_bias"] = rows(d).sum(0)
        grads["x"] = dq @ q_weight + dk @ k_weight + dv @ v_weight
        return {name: grads[name] for name in GRADIENTS}


def rows(t: Tensor) -> Tensor:
    """[B, S, E] -> [B*S, E]"""
    return t.reshape(-1, t.shape[-1])
