"""What both levels of the C++ extension have in common: the layer on the workload's parameters, and its call."""

from __future__ import annotations

from torch import Tensor

from app.core.workload import Workload
from app.engine.inputs import Forward, Inputs


def layer_call(workload: Workload, inputs: Inputs, kernel: str) -> Forward:
    """A forward pass of the extension's layer, or a decoding step; no parameter is copied.

    The extension is loaded already. Each step starts from the workload's cached tokens, so that any number of
    calls does the same work.
    """
    from self_attention_ext import SelfAttention

    layer = SelfAttention.from_multihead_attention(inputs.layer, causal=workload.causal, kernel=kernel)
    x, cached = inputs.x, inputs.cached
    if cached is None:
        return lambda: layer(x)
    seq_len = workload.seq_len
    cache = layer.new_cache(workload.batch, seq_len + 1)
    cache.append(cached.keys, cached.values)

    def step() -> Tensor:
        cache.rewind(seq_len)
        return layer.step(x, cache)

    return step
