"""The layer."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ._decoding import KeyValueCache
from ._operator import check_kernel, operators


class SelfAttention(nn.Module):
    """Multi-head self-attention, `layer(x)`: [B, S, E] -> [B, S, E].

    Parameters are named and shaped as those of nn.MultiheadAttention, so that a state_dict fits either. A layer
    made from one with batch_first=False keeps its layout: [S, B, E] -> [S, B, E].
    Raises ValueError for sizes that do not fit or an unknown kernel.
    """

    in_proj_bias: nn.Parameter | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        bias: bool = True,
        causal: bool = False,
        kernel: str = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(f"embed_dim is {embed_dim} and num_heads {num_heads}; expected positive numbers")
        if embed_dim % num_heads:
            raise ValueError(
                f"embed_dim is {embed_dim}; expected a multiple of num_heads, which is {num_heads}"
            )
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.causal = causal
        self.kernel = check_kernel(kernel)
        self.dropout = 0.0
        self.batch_first = True
        self.in_proj_weight = nn.Parameter(torch.empty(3 * embed_dim, embed_dim, device=device, dtype=dtype))
        if bias:
            self.in_proj_bias = nn.Parameter(torch.empty(3 * embed_dim, device=device, dtype=dtype))
        else:
            self.register_parameter("in_proj_bias", None)
        self.out_proj = nn.Linear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the parameters as nn.MultiheadAttention does."""
        nn.init.xavier_uniform_(self.in_proj_weight)
        if self.in_proj_bias is not None:
            nn.init.zeros_(self.in_proj_bias)
        if self.out_proj.bias is not None:
            nn.init.zeros_(self.out_proj.bias)

    def forward(self, x: Tensor) -> Tensor:
        if self.dropout and self.training:
            raise self._refused_dropout()
        y: Tensor
        if self.batch_first:
            y = operators.packed(x, *self._tensors(), self.num_heads, self.causal, self.kernel)
            return y
        if x.dim() == 3:  # of another rank, the operator says what it expects
            x = x.transpose(0, 1)
        y = operators.packed(x, *self._tensors(), self.num_heads, self.causal, self.kernel)
        return y.transpose(0, 1).contiguous()

    def new_cache(self, batch: int, max_len: int) -> KeyValueCache:
        """An empty cache for `step`: room for `max_len` tokens of `batch` sequences.

        Of the layer's device and type, or the type of the autocast region that this is called in. Raises
        ValueError for sizes that make no cache.
        """
        weight = self.in_proj_weight
        kind = weight.device.type
        dtype = weight.dtype
        if dtype == torch.float32 and kind != "meta" and torch.is_autocast_enabled(kind):
            dtype = torch.get_autocast_dtype(kind)
        head_dim = self.embed_dim // self.num_heads
        return KeyValueCache(batch, self.num_heads, max_len, head_dim, weight.device, dtype)

    def step(self, x_t: Tensor, cache: KeyValueCache) -> Tensor:
        """Decode one token of each sequence: x_t [B, 1, E] -> [B, 1, E], also where the layer was made with
        batch_first=False; the cache is one token longer after.

        The result is the last row of the causal forward pass over all tokens so far, whatever `causal` is: a
        token cannot see what has not come yet. Inference only: nothing is recorded for a backward pass.
        Raises RuntimeError if the cache is full or x_t requires a gradient, and ValueError that names what
        does not fit: x_t or a cache of another shape, type or device. The cache is then as it was.
        """
        if self.dropout and self.training:
            raise self._refused_dropout()
        try:
            position, keys, values = cache.length, cache.keys, cache.values
        except AttributeError:
            raise TypeError(
                f"cache is a {type(cache).__name__}; expected the KeyValueCache that new_cache returns"
            ) from None
        if position >= cache.max_len:
            raise cache.full()
        y: Tensor = operators.step(x_t, *self._tensors(), keys, values, position, self.num_heads, self.kernel)
        cache.length = position + 1
        return y

    def _tensors(self) -> tuple[Tensor, Tensor | None, Tensor, Tensor | None]:
        try:
            # A lookup in the dictionaries costs a tenth of one through Module.__getattr__, five times a call.
            own, out = self._parameters, self._modules["out_proj"]._parameters  # type: ignore[union-attr]
            return own["in_proj_weight"], own["in_proj_bias"], out["weight"], out["bias"]  # type: ignore[return-value]
        except KeyError:  # a parametrized layer keeps its tensors elsewhere
            out_proj = self.out_proj
            return self.in_proj_weight, self.in_proj_bias, out_proj.weight, out_proj.bias

    def _refused_dropout(self) -> RuntimeError:
        return RuntimeError(
            f"This layer was made from one with dropout={self.dropout}, which the operator does not "
            "apply in training. Set dropout to 0, or train with nn.MultiheadAttention."
        )

    def extra_repr(self) -> str:
        bias = self.in_proj_bias is not None
        layout = "" if self.batch_first else ", batch_first=False"
        return f"{self.embed_dim}, {self.num_heads}, bias={bias}, causal={self.causal}, kernel={self.kernel!r}{layout}"

    @classmethod
    def from_multihead_attention(
        cls, mha: nn.MultiheadAttention, causal: bool = False, kernel: str = "auto"
    ) -> SelfAttention:
        """A layer on the given one's own parameters: none is copied, training one trains both. It reads
        [B, S, E], or [S, B, E] where the given one was made with batch_first=False.

        Raises ValueError with the reason where that layer does what the operator does not.
        """
        reason = cannot_convert(mha)
        if reason:
            raise ValueError(f"this nn.MultiheadAttention cannot be converted: {reason}")
        layer = cls(mha.embed_dim, mha.num_heads, mha.in_proj_bias is not None, causal, kernel, device="meta")
        layer.in_proj_weight = mha.in_proj_weight
        layer.in_proj_bias = mha.in_proj_bias
        layer.out_proj.weight = mha.out_proj.weight
        layer.out_proj.bias = mha.out_proj.bias
        layer.dropout = mha.dropout
        layer.batch_first = mha.batch_first
        return layer.train(mha.training)


def cannot_convert(mha: Any) -> str:
    """Why the operator cannot stand in for this layer; nothing if it can. Reads the layer's true state."""
    if not isinstance(mha, nn.MultiheadAttention):
        return f"it is a {type(mha).__name__}; expected nn.MultiheadAttention"
    reason = unfit_layer(mha)
    if reason:
        return reason
    if mha.dropout and mha.training:
        return f"it is in training with dropout={mha.dropout}, which the operator does not apply"
    return ""


def unfit_layer(mha: nn.MultiheadAttention) -> str:
    """What such a layer computes in every call that the operator does not; nothing if there is no such
    thing.
    """
    if not mha._qkv_same_embed_dim or mha.in_proj_weight is None:
        return f"its keys and values have sizes of their own (kdim={mha.kdim}, vdim={mha.vdim})"
    if mha.bias_k is not None or mha.bias_v is not None:
        return "it appends a learned key and value (add_bias_kv=True)"
    if mha.add_zero_attn:
        return "it appends a key and value of zeros (add_zero_attn=True)"
    return ""
