"""nn.MultiheadAttention with the operator inside: what `replace_self_attention` makes of a model's layers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad

from ._operator import operators

Weights = tuple[Tensor, "Tensor | None", Tensor, "Tensor | None"]
"""Input projection [3E, E] and its bias [3E], output projection [E, E] and its bias [E]."""

_PLAIN = (Tensor, nn.Parameter)
_DEVICES = ("cpu", "cuda", "meta")
_DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


class Calls:
    """How one layer's calls went. Counted in plain Python calls alone: see `ReplacedMultiheadAttention`.

    `operator` and `native` are numbers of calls, `reasons` says how often each reason sent one the native
    way, `last` is "operator" or "native: REASON" ("" before the first call). A copied or unpickled layer
    begins anew.
    """

    __slots__ = ("last", "operator", "reasons")

    def __init__(self) -> None:
        self.operator = 0
        self.reasons: dict[str, int] = {}
        self.last = ""

    @property
    def native(self) -> int:
        return sum(self.reasons.values())

    def add(self, reason: str) -> None:
        """Count a call; `reason` is empty where the operator took it."""
        if reason:
            self.reasons[reason] = self.reasons.get(reason, 0) + 1
            self.last = f"native: {reason}"
        else:
            self.operator += 1
            self.last = "operator"

    def clear(self) -> None:
        self.__init__()  # type: ignore[misc]

    def __deepcopy__(self, memo: object) -> Calls:
        return Calls()

    def __reduce__(self) -> tuple[type[Calls], tuple[()]]:
        return Calls, ()

    def __repr__(self) -> str:
        return f"Calls(operator={self.operator}, native={self.native}, reasons={self.reasons})"


class ReplacedMultiheadAttention(nn.MultiheadAttention):
    """nn.MultiheadAttention whose self-attention is computed by the operator, where the operator covers the
    call, and by nn.MultiheadAttention itself where it does not.

    Made by `replace_self_attention`, from a layer that exists: parameters, buffers, hooks, attributes, call
    signature and return value are that layer's own. `kernel` is the operator's level and may be set at any
    time.

    `calls` and `last_path` tell which way calls went and why. They are kept in plain Python calls only: a
    compiled or exported graph runs no Python that could count, so ask `why_native` beforehand, or look for
    `attnscope` in the graph.
    """

    kernel: str
    calls: Calls

    @property
    def last_path(self) -> str:
        """Which way the last call went: "operator" or "native: REASON"; empty before the first."""
        return self.calls.last

    def why_native(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> str:
        """Why this call would take the native path; "" if the operator would take it. Computes nothing."""
        weights, tracing = self._weights(), torch.compiler.is_compiling()
        return self._judge(
            query, key, value, key_padding_mask, need_weights, attn_mask, is_causal, weights, tracing
        )[0]

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """As nn.MultiheadAttention's: (output, weights), the weights None unless they are wanted."""
        weights, tracing = self._weights(), torch.compiler.is_compiling()
        reason, causal = self._judge(
            query, key, value, key_padding_mask, need_weights, attn_mask, is_causal, weights, tracing
        )
        if not tracing:
            self.calls.add(reason)
        if reason:
            return super().forward(
                query, key, value, key_padding_mask, need_weights, attn_mask, average_attn_weights, is_causal
            )
        if query.dim() == 2:
            y = operators.packed(query.unsqueeze(0), *weights, self.num_heads, causal, self.kernel)
            return y.squeeze(0), None
        if self.batch_first:
            return operators.packed(query, *weights, self.num_heads, causal, self.kernel), None
        y = operators.packed(query.transpose(0, 1), *weights, self.num_heads, causal, self.kernel)
        # Contiguous as the native layer's: a caller may rely on it, with `view` for one.
        return y.transpose(0, 1).contiguous(), None

    def _weights(self) -> Weights:
        try:
            # A lookup in the dictionaries costs a tenth of one through Module.__getattr__.
            own, out = self._parameters, self._modules["out_proj"]._parameters  # type: ignore[union-attr]
            return own["in_proj_weight"], own["in_proj_bias"], out["weight"], out["bias"]  # type: ignore[return-value]
        except KeyError:  # parametrized, or flattened by a wrapper: kept elsewhere
            return self.in_proj_weight, self.in_proj_bias, self.out_proj.weight, self.out_proj.bias

    def _judge(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None,
        need_weights: bool,
        attn_mask: Tensor | None,
        is_causal: bool,
        weights: Weights,
        tracing: bool,
    ) -> tuple[str, bool]:
        """Why the call takes the native path, "" if it does not; and whether it is causal."""
        if query is not key or key is not value:
            return "query, key and value are not one and the same tensor", False
        if need_weights:
            return "the attention weights are wanted (need_weights=True)", False
        if key_padding_mask is not None:
            return "a key_padding_mask is given", False
        if self.dropout and self.training:
            return f"dropout={self.dropout} in training", False
        reason = self._unfit_tensors(query, weights, tracing)
        if reason:
            return reason, False
        if attn_mask is None:
            # Natively an error on one path and no causality on another: whichever it is, it stays.
            return ("is_causal=True without an attn_mask", False) if is_causal else ("", False)
        reason = self._unfit_mask(query, attn_mask, is_causal)
        return reason, not reason

    def _unfit_tensors(self, query: Tensor, weights: Weights, tracing: bool) -> str:
        """What about the input or the parameters the operator cannot take; native may, or says its own
        word.
        """
        if type(query) not in _PLAIN and _foreign(query):
            return f"the input is a {type(query).__name__}"
        if query.is_nested:
            return "the input is a nested tensor"
        if query.layout is not torch.strided:
            return f"the input's layout is {query.layout}"
        dims = query.dim()
        if (dims != 3 and dims != 2) or query.shape[-1] != self.embed_dim:
            return f"the input's shape is {list(query.shape)}"
        dtype, device = query.dtype, query.device
        if device.type not in _DEVICES or dtype not in _DTYPES:
            return f"the input is {dtype} on {device}"
        for weight in weights:
            if weight is None:
                continue
            if type(weight) not in _PLAIN and _foreign(weight):
                return f"a parameter is a {type(weight).__name__}"
            if weight.device != device:
                return f"the input is on {device}, a parameter on {weight.device}"
            if weight.dtype is not dtype and not _autocast_aligns(weight, query):
                return f"the input is {dtype}, a parameter {weight.dtype}"
        if not tracing:
            if torch._C._are_functorch_transforms_active():
                return "inside a transform of torch.func"
            if forward_ad._current_level >= 0:
                return "inside forward-mode differentiation"
        return ""

    def _unfit_mask(self, query: Tensor, mask: Tensor, is_causal: bool) -> str:
        """Nothing where the mask is the causal one; otherwise why it is not known to be."""
        length = query.shape[0 if query.dim() == 2 or not self.batch_first else 1]
        if mask.dim() != 2 or mask.shape[0] != length or mask.shape[1] != length:
            return f"the attn_mask's shape is {list(mask.shape)}"
        if mask.dtype is not torch.bool and mask.dtype is not query.dtype:
            return f"the attn_mask is {mask.dtype}"
        if mask.requires_grad and torch.is_grad_enabled():
            return "the attn_mask wants a gradient"
        if is_causal:  # the caller's promise, which native relies on as well
            return ""
        if not _may_look_at(mask):
            return "the attn_mask may be any: is_causal=True would say that it is the causal one"
        return "" if _is_causal(mask) else "the attn_mask is not the causal one"


def _foreign(tensor: Any) -> bool:
    """Whether it is a tensor subclass (or no tensor), other than those that torch's own tracing calls with."""
    from torch._subclasses.fake_tensor import FakeTensor
    from torch._subclasses.functional_tensor import FunctionalTensor

    return not isinstance(tensor, (FakeTensor, FunctionalTensor))


def _autocast_aligns(weight: Tensor, query: Tensor) -> bool:
    """Whether autocast brings the two, of different types, to one. It leaves float64 alone."""
    if weight.dtype not in _DTYPES or torch.float64 in (weight.dtype, query.dtype):
        return False
    return torch.is_autocast_enabled(query.device.type)


def _may_look_at(mask: Tensor) -> bool:
    """Whether reading the mask's values is legal (not while something traces) and cheap (no device waits)."""
    if torch.compiler.is_compiling() or torch._C._get_tracing_state() is not None:
        return False
    return mask.device.type == "cpu" and type(mask) in _PLAIN and not torch._C._len_torch_dispatch_stack()


def _is_causal(mask: Tensor) -> bool:
    """Whether it hides, for each position, exactly those after it: [L, L] of bool or of 0 and -inf."""
    length = mask.shape[0]
    hidden: Any = True if mask.dtype is torch.bool else float("-inf")
    return torch.equal(mask, torch.full((length, length), hidden, dtype=mask.dtype).triu_(1))
