"""What decoding remembers: the keys and values of the tokens so far."""

from __future__ import annotations

import torch
from torch import Tensor


class KeyValueCache:
    """The keys and values of up to `max_len` tokens of `batch` sequences, for one layer.

    `keys` and `values` [B, H, max_len, D]: the first `length` positions are filled, the rest is unset.
    `length` is moved by `SelfAttention.step`, `append`, `rewind` and `reset` alone. It copies and pickles
    like any object that holds tensors.
    """

    def __init__(
        self,
        batch: int,
        num_heads: int,
        max_len: int,
        head_dim: int,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        if batch < 0:
            raise ValueError(f"batch is {batch}; expected 0 or more sequences")
        if max_len < 1:
            raise ValueError(f"max_len is {max_len}; expected room for at least 1 token")
        # Ordinary tensors even in inference mode: it could be made there and used outside.
        with torch.inference_mode(False), torch.no_grad():
            shape = (batch, num_heads, max_len, head_dim)
            self.keys = torch.zeros(shape, device=device, dtype=dtype)
            self.values = torch.zeros(shape, device=device, dtype=dtype)
        self.max_len = max_len
        self.length = 0

    def append(self, keys: Tensor, values: Tensor) -> None:
        """Take over the keys and values [B, H, T, D] of T more tokens, as for a prompt.

        Raises ValueError for another shape, and RuntimeError if there is no room for them.
        """
        batch, num_heads, _, head_dim = self.keys.shape
        for name, given in (("keys", keys), ("values", values)):
            tokens = given.shape[2] if given.dim() == 4 else "T"
            if list(given.shape) != [batch, num_heads, tokens, head_dim]:
                raise ValueError(
                    f"{name} has shape {list(given.shape)}; expected [{batch}, {num_heads}, T, {head_dim}]"
                )
        if keys.shape != values.shape:
            raise ValueError(f"keys has shape {list(keys.shape)} and values {list(values.shape)}")
        end = self.length + keys.shape[2]
        if end > self.max_len:
            raise RuntimeError(
                f"{keys.shape[2]} tokens do not fit: the cache holds {self.length} of at most {self.max_len}"
            )
        with torch.no_grad():
            self.keys[:, :, self.length : end] = keys
            self.values[:, :, self.length : end] = values
        self.length = end

    def rewind(self, length: int) -> None:
        """Forget all but the first `length` tokens. Raises ValueError if there are not as many."""
        if not 0 <= length <= self.length:
            raise ValueError(f"length is {length}; expected 0 to {self.length}, the tokens the cache holds")
        self.length = length

    def reset(self) -> None:
        """Forget all tokens."""
        self.length = 0

    def full(self) -> RuntimeError:
        """The error of a step for which there is no room."""
        return RuntimeError(
            f"the cache is full: it holds {self.length} tokens of at most {self.max_len}. Make one with a "
            "larger max_len, or forget tokens with rewind(length) or reset()."
        )

    def __repr__(self) -> str:
        batch, num_heads, _, head_dim = self.keys.shape
        return (
            f"KeyValueCache({self.length} of {self.max_len} tokens, batch={batch}, num_heads={num_heads}, "
            f"head_dim={head_dim}, dtype={self.keys.dtype}, device={str(self.keys.device)!r})"
        )
