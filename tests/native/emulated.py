"""ATen's CUDA attentions, their contracts checked, their arithmetic done on the CPU: what calls them can be run without
a GPU. Layouts, paddings and demands are those of aten/src/ATen/native/transformers/cuda.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor


def forward(q: Tensor, k: Tensor, v: Tensor, causal: bool, scale: float) -> tuple[Tensor, Tensor]:
    """The weighted values [B, H, S, D] and the log-sum-exp [B, H, S], computed in float32 or float64."""
    wide = torch.float64 if q.dtype == torch.float64 else torch.float32
    scores = q.to(wide) @ k.to(wide).transpose(-2, -1) * scale
    if causal:
        scores = scores.masked_fill(scores.new_ones(scores.shape[-2:], dtype=torch.bool).triu(1), -math.inf)
    return (scores.softmax(-1) @ v.to(wide)).to(q.dtype), scores.logsumexp(-1)


def backward(
    dout: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, causal: bool, scale: float
) -> tuple[Tensor, Tensor, Tensor]:
    """dq, dk, dv [B, H, S, D] from the weights that the log-sum-exp gives back."""
    wide = lse.dtype
    dout, q, k, v, out = (t.to(wide) for t in (dout, q, k, v, out))
    p = (q @ k.transpose(-2, -1) * scale - lse.unsqueeze(-1)).exp()
    if causal:
        p = p.tril()
    ds = p * (dout @ v.transpose(-2, -1) - (dout * out).sum(-1, keepdim=True)) * scale
    return ds @ k, ds.transpose(-2, -1) @ q, p.transpose(-2, -1) @ dout


def by_position(t: Tensor) -> Tensor:
    """[B, H, S, D] as the CUDA kernels lay out what they make: the heads of one position adjoin."""
    return t.transpose(1, 2).contiguous().transpose(1, 2)


def flash_forward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    return_debug_mask: bool = False,
    *,
    scale: float | None = None,
) -> tuple[Any, ...]:
    assert q.size(3) % 8 == 0
    assert q.size(3) <= 256
    assert all(t.stride(3) == 1 for t in (q, k, v))
    assert not dropout_p
    assert not return_debug_mask
    assert scale is not None
    out, lse = forward(q, k, v, is_causal, scale)
    seed, offset = torch.empty(2, dtype=torch.uint64), torch.empty((), dtype=torch.uint64)
    return by_position(out), lse.contiguous(), None, None, q.size(2), k.size(2), seed, offset, q.new_empty(0)


def flash_backward(
    dout: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    lse: Tensor,
    cum_seq_q: Tensor | None,
    cum_seq_k: Tensor | None,
    max_q: int,
    max_k: int,
    dropout_p: float,
    is_causal: bool,
    philox_seed: Tensor,
    philox_offset: Tensor,
    *,
    scale: float | None = None,
) -> tuple[Tensor, ...]:
    assert dout.size(3) % 8 == 0
    assert all(t.stride(3) == 1 for t in (dout, q, k, v, out))
    # Both are made contiguous by position: anything else would be a copy more.
    assert dout.transpose(1, 2).is_contiguous()
    assert out.transpose(1, 2).is_contiguous()
    assert lse.shape == q.shape[:3]
    assert lse.is_contiguous()
    assert (max_q, max_k, dropout_p) == (q.size(2), k.size(2), 0.0)
    assert cum_seq_q is None
    assert cum_seq_k is None
    assert scale is not None
    grads = backward(dout, q, k, v, out, lse, is_causal, scale)
    return tuple(by_position(t.to(q.dtype)) for t in grads)


def efficient_forward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    attn_bias: Tensor | None,
    compute_log_sumexp: bool,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
) -> tuple[Tensor, ...]:
    assert all(t.stride(3) == 1 for t in (q, k, v))
    assert attn_bias is None
    assert not dropout_p
    assert scale is not None
    out, lse = forward(q, k, v, is_causal, scale)
    seq_len = q.size(2)
    length = (seq_len + 31) // 32 * 32
    padded = torch.nn.functional.pad(lse, (0, length - seq_len), value=math.inf)
    kept = padded if compute_log_sumexp else padded[..., :0].contiguous()
    seed = torch.empty((), dtype=torch.int64)
    return by_position(out), kept, seed, seed.clone()


def efficient_backward(
    dout: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor | None,
    out: Tensor,
    cu_seqlens_q: Tensor | None,
    cu_seqlens_k: Tensor | None,
    max_seqlen_q: int,
    max_seqlen_k: int,
    lse: Tensor,
    dropout_p: float,
    philox_seed: Tensor,
    philox_offset: Tensor,
    custom_mask_type: int,
    bias_requires_grad: bool,
    *,
    scale: float | None = None,
    num_splits_key: int | None = None,
    window_size: int | None = None,
    shared_storage_dqdkdv: bool = False,
) -> tuple[Any, ...]:
    """The inner operator: tensors are [B, S, H, D]."""
    batch, seq_len, num_heads, head_dim = q.shape
    assert all(t.shape == q.shape for t in (dout, k, v, out))
    assert all(t.stride(3) == 1 for t in (q, k, v))
    assert dout.is_contiguous()
    assert out.is_contiguous()  # its row stride is taken for granted
    assert lse.shape == (batch, num_heads, (seq_len + 31) // 32 * 32)
    assert num_heads == 1 or lse.stride(1) % 8 == 0
    assert batch == 1 or lse.stride(0) % 8 == 0
    assert torch.isinf(lse[..., seq_len:]).all()
    assert (bias, cu_seqlens_q, cu_seqlens_k, bias_requires_grad) == (None, None, None, False)
    assert (max_seqlen_q, max_seqlen_k, dropout_p) == (seq_len, seq_len, 0.0)
    assert (num_splits_key, window_size) == (None, None)
    assert custom_mask_type in (0, 1)
    assert scale is not None
    by_head = [t.transpose(1, 2) for t in (dout, q, k, v, out)]
    grads = backward(*by_head, lse[..., :seq_len], custom_mask_type == 1, scale)
    if shared_storage_dqdkdv:
        chunk = q.new_empty(batch, seq_len, 3, num_heads, head_dim)
        made = [chunk.select(2, i) for i in range(3)]
    else:
        made = [torch.empty_like(q, memory_format=torch.contiguous_format) for _ in range(3)]
    for target, grad in zip(made, grads, strict=True):
        target.copy_(grad.transpose(1, 2))
    return (*made, q.new_empty(0))


KERNELS = {
    "_scaled_dot_product_flash_attention": flash_forward,
    "_scaled_dot_product_flash_attention_backward": flash_backward,
    "_scaled_dot_product_efficient_attention": efficient_forward,
    "_efficient_attention_backward": efficient_backward,
}


@contextmanager
def cuda_attentions_on_the_cpu() -> Iterator[None]:
    """They run on CPU tensors, which ATen's own do not, until the block ends."""
    with ExitStack() as stack:
        library = stack.enter_context(torch.library._scoped_library("aten", "IMPL"))
        for name, kernel in KERNELS.items():
            library.impl(name, kernel, "CPU")
        yield
