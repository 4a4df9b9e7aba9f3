"""What a file with an attention implementation of your own is written against.

    import torch
    import torch.nn.functional as F
    from attnscope import Parameters, Workload, implementation

    @implementation(title="My attention")
    def build(workload: Workload, parameters: Parameters):
        def forward(x):  # [B, S, E] -> [B, S, E]
            ...
        return forward

One file, one decorated function. docs/own_implementation.md has a whole one, and how it is measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from app.core.workload import Workload

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Declaration", "Parameters", "Workload", "implementation"]

MARK = "__attnscope__"
MODES = ("forward", "forward_backward")

Build = TypeVar("Build", bound=Callable[..., Any])


@dataclass(frozen=True)
class Parameters:
    """The layer's parameters, the same numbers for every implementation. E is `workload.embed_dim`.

    Weights are [E, E] and multiply from the right, transposed, as `torch.nn.functional.linear` has them;
    biases are [E]. `in_proj_weight` [3E, E] and `in_proj_bias` [3E] are q, k and v in that order in one
    piece, as `torch.nn.MultiheadAttention` stores them; `out_weight` and `out_bias` belong to both forms.

    All lie on the workload's device in its dtype. In mode `forward_backward` they are leaves that require a
    gradient. Use the three separate ones or the packed one, and change none of them.
    """

    q_weight: Tensor
    q_bias: Tensor
    k_weight: Tensor
    k_bias: Tensor
    v_weight: Tensor
    v_bias: Tensor
    out_weight: Tensor
    out_bias: Tensor
    in_proj_weight: Tensor
    in_proj_bias: Tensor


@dataclass(frozen=True)
class Declaration:
    """What a decorator said: for AttnScope, which finds it on the function."""

    title: str
    supports: Callable[[Workload], bool | str] | None
    modes: tuple[str, ...]


def implementation(
    bare: object = None,
    /,
    *,
    title: str = "",
    supports: Callable[[Workload], bool | str] | None = None,
    modes: tuple[str, ...] = MODES,
) -> Callable[[Build], Build]:
    """Declare the function below as an implementation of multi-head self-attention.

    `title` is shown in lists and charts; write it as a literal, so that it can be shown before the file has
    run. `supports` is asked before anything is built: True, or one clause that says why this workload
    cannot run, such as "needs an even head_dim". `modes` are those of `workload.mode` that it knows.

    The decorated `build(workload, parameters)` returns `forward`, called as `forward(x)` with `x` [B, S, E]
    and returning [B, S, E] in the same dtype and on the same device. It is called once per workload, under
    no clock: compile, allocate and lay out there. In mode `forward_backward` AttnScope calls
    `forward(x).backward(gradient)` itself, so `forward` must be differentiable by autograd; in mode
    `forward` gradients are off.

    Mode `decode` must be declared. There `build(workload, parameters, keys, values)` is also given a cache of
    its own, [B, H, seq_len + 1, D] each: `seq_len` tokens are in it and there is room for one. Every call
    computes the same next token, `x` [B, 1, E], and may write its key and value into the last place.

    Raises:
        TypeError: without a title, as in a bare `@implementation`.
    """
    if bare is not None or not isinstance(title, str) or not title.strip():
        raise TypeError('implementation needs a title, as in @implementation(title="My attention")')
    if supports is not None and not callable(supports):
        raise TypeError("implementation: supports must be a function of a workload, or left out")
    declaration = Declaration(title, supports, tuple(modes))

    def mark(build: Build) -> Build:
        if not callable(build):
            raise TypeError(
                "implementation: what is decorated must be a function build(workload, parameters)"
            )
        setattr(build, MARK, declaration)
        return build

    return mark
