"""One self-attention layer's worth of work: what is computed, on what, and in which direction.

In mode `decode` a call computes one new token of each sequence, against the cached keys and values of the
`seq_len` tokens before it.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

POWERS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)

Mode = Literal["forward", "forward_backward", "decode"]
DType = Literal["float32", "float64", "bfloat16", "float16"]

DTYPE_BYTES: dict[str, int] = {"float32": 4, "float64": 8, "bfloat16": 2, "float16": 2}


class Problem(msgspec.Struct, frozen=True):
    """Why a combination of valid values cannot run, and the nearest values of `field` that can.

    `expected` ends the sentence 'expected ...' of an error about the field.
    """

    field: str
    sentence: str
    nearest: tuple[int, ...] = ()
    expected: str = ""


CAUSAL_IN_DECODE = "in decode mode a new token sees itself and every token before it: that is causal"


class Workload(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Multi-head self-attention on `x` of shape [batch, seq_len, embed_dim]."""

    batch: Annotated[
        int,
        Meta(ge=1, le=65536, title="Batch", description="sequences per call", extra={"steps": POWERS[:9]}),
    ] = 8
    seq_len: Annotated[
        int,
        Meta(
            ge=1,
            le=131072,
            title="Sequence",
            description="tokens per sequence; in decode mode those already cached",
            extra={"steps": POWERS},
        ),
    ] = 64
    embed_dim: Annotated[
        int,
        Meta(
            ge=1,
            le=65536,
            title="Embedding",
            description="features per token",
            extra={"steps": POWERS[4:]},
        ),
    ] = 128
    num_heads: Annotated[
        int,
        Meta(ge=1, le=1024, title="Heads", description="attention heads", extra={"steps": POWERS[:7]}),
    ] = 4
    causal: Annotated[
        bool, Meta(title="Causal", description="each token sees only itself and earlier ones")
    ] = True
    mode: Annotated[
        Mode,
        Meta(
            title="Mode",
            description="forward alone, forward and backward as in a training step, "
            "or decode: one new token per sequence against cached ones",
        ),
    ] = "forward"
    dtype: Annotated[DType, Meta(title="dtype", description="type of inputs and parameters")] = "float32"
    device: Annotated[
        str,
        Meta(
            title="Device",
            pattern=r"auto|cpu|cuda(:\d{1,3})?",
            description='"auto", "cpu", "cuda" or "cuda:N"',
        ),
    ] = "auto"

    @property
    def head_dim(self) -> int:
        """Features per head; meaningful only where `problems` is empty."""
        return self.embed_dim // self.num_heads

    @property
    def backward(self) -> bool:
        return self.mode == "forward_backward"

    @property
    def decode(self) -> bool:
        return self.mode == "decode"

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Combinations that cannot run. Each field alone is valid already."""
        found = []
        if self.embed_dim % self.num_heads:
            nearest = nearest_divisors(self.embed_dim, self.num_heads, limit=1024)
            near = f", such as {' or '.join(map(str, nearest))}" if nearest else ""
            found.append(
                Problem(
                    "num_heads",
                    f"{self.embed_dim} does not divide by {self.num_heads}",
                    nearest,
                    f"a divisor of embed_dim {self.embed_dim}{near}",
                )
            )
        if self.decode and not self.causal:
            found.append(Problem("causal", CAUSAL_IN_DECODE, expected=f"true: {CAUSAL_IN_DECODE}"))
        return tuple(found)

    @property
    def flops(self) -> int:
        """Floating-point operations of one call: a multiply-add is two, the softmax is left out.

        Projections: 4 products [B·S, E] x [E, E]. Attention: 2 products [S, D] x [D, S] per head,
        half of each where causal. The backward pass does each product twice. In decode mode: 4 products
        [B, E] x [E, E], and 2 products [1, D] x [D, S + 1] per head.
        """
        if self.decode:
            return self.batch * (4 * 2 * self.embed_dim**2 + 2 * 2 * (self.seq_len + 1) * self.embed_dim)
        tokens = self.batch * self.seq_len
        projections = 4 * 2 * tokens * self.embed_dim**2
        attention = 2 * 2 * tokens * self.seq_len * self.embed_dim
        if self.causal:
            attention = attention * (self.seq_len + 1) // (2 * self.seq_len)
        return (projections + attention) * (3 if self.backward else 1)

    @property
    def working_set_bytes(self) -> int:
        """Bytes of the input, the output and the parameters: what a call must at least touch.

        Input and output [B, S, E], weights 4 x [E, E], biases 4 x [E]; with backward the gradient
        of each as well. In decode mode the input and the output are [B, 1, E], and the cache is read.
        """
        tokens = 1 if self.decode else self.seq_len
        numbers = 2 * self.batch * tokens * self.embed_dim + 4 * self.embed_dim * (self.embed_dim + 1)
        if self.decode:
            return numbers * DTYPE_BYTES[self.dtype] + self.cache_bytes
        return numbers * DTYPE_BYTES[self.dtype] * (2 if self.backward else 1)

    @property
    def cache_bytes(self) -> int:
        """Keys and values [B, H, S + 1, D] of a decode call, its own new token included; 0 in other modes."""
        numbers = 2 * self.batch * (self.seq_len + 1) * self.embed_dim if self.decode else 0
        return numbers * DTYPE_BYTES[self.dtype]

    @property
    def label(self) -> str:
        """A short name, as in `8×64×128, 4 heads, causal, forward, float32`.

        In decode mode `8×1×128 after 64 cached, 4 heads, decode, float32`: causal is no choice there.
        """
        heads = "1 head" if self.num_heads == 1 else f"{self.num_heads} heads"
        if self.decode:
            shape = f"{self.batch}×1×{self.embed_dim} after {self.seq_len} cached"
            return f"{shape}, {heads}, decode, {self.dtype}"
        direction = "forward + backward" if self.backward else "forward"
        causal = "causal" if self.causal else "full"
        shape = f"{self.batch}×{self.seq_len}×{self.embed_dim}"
        return f"{shape}, {heads}, {causal}, {direction}, {self.dtype}"


def nearest_divisors(number: int, wanted: int, limit: int) -> tuple[int, ...]:
    """The divisors of `number` next below and above `wanted`, none above `limit`."""
    below = next((d for d in range(min(wanted, number), 0, -1) if number % d == 0), None)
    above = next((d for d in range(wanted + 1, min(number, limit) + 1) if number % d == 0), None)
    return tuple(d for d in (below, above) if d is not None)
