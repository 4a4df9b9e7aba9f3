"""The operator as Python calls it, once a library is loaded."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from . import _library

KERNELS = ("auto", "aten", "fused")
"""What `kernel` may be. `auto` takes `fused`. On CUDA that is the packed projection and one of ATen's own fused
attentions, flash or memory-efficient, whichever torch would take for the input; where it would take neither, it is
`aten`."""


def check_kernel(kernel: str) -> str:
    """The name back, or a ValueError that lists what exists."""
    if kernel not in KERNELS:
        raise ValueError(f"kernel is {kernel!r}; expected one of: {', '.join(KERNELS)}")
    return kernel


class _Operators:
    """The overloads, resolved at the first call: looking one up through torch.ops costs as much as a small
    layer.
    """

    packed: Any
    separate: Any
    step: Any

    def __getattr__(self, name: str) -> Any:
        # Reached only while the attribute is not set: before a library is loaded.
        if name not in ("packed", "separate", "step"):
            raise AttributeError(name)
        require()
        self.packed = torch.ops.attnscope.self_attention_packed.default
        self.separate = torch.ops.attnscope.self_attention.default
        self.step = torch.ops.attnscope.self_attention_step.default
        return self.__dict__[name]


operators = _Operators()


def require() -> None:
    """Loads a library that was built ahead of time; never compiles."""
    if _library.loaded() is not None:
        return
    path, why = _library.ahead_of_time()
    if path is None:
        raise RuntimeError(
            "The self-attention operator is not loaded. Call self_attention_ext.load() first: it takes the "
            "library from the cache, or compiles it. `pip install ./native` builds it ahead of time."
            + (f" ({why}.)" if why else "")
        )
    _library.load(path, _library.AHEAD_OF_TIME)


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
    kernel: str = "auto",
) -> Tensor:
    """Multi-head self-attention: x [B, S, E], four weights [E, E], four biases [E] or None -> [B, S, E].

    Weights that adjoin in memory, as slices of one in_proj_weight do, are projected together.
    Differentiable in all nine tensors, twice. Raises ValueError naming an argument of the wrong shape,
    type, layout or device, and RuntimeError if no library is loaded.
    """
    y: Tensor = operators.separate(
        x,
        q_weight,
        q_bias,
        k_weight,
        k_bias,
        v_weight,
        v_bias,
        out_weight,
        out_bias,
        num_heads,
        causal,
        kernel,
    )
    return y
