"""The C++ extension, level `fused`: packed projections and one attention kernel, on CUDA one of ATen's own."""

from __future__ import annotations

from torch import Tensor

from app.core.workload import DTYPE_BYTES, Workload
from app.engine.implementations import sdpa
from app.engine.implementations.base import Implementation
from app.engine.inputs import Forward, Inputs


def prepare(workload: Workload, inputs: Inputs) -> Forward:
    """Share the workload's parameters with the extension's layer; the extension is loaded already."""
    from self_attention_ext import SelfAttention

    layer = SelfAttention.from_multihead_attention(inputs.layer, causal=workload.causal, kernel="fused")
    x = inputs.x

    def forward() -> Tensor:
        output: Tensor = layer(x)
        return output

    return forward


def path(operators: frozenset[str]) -> str:
    """On CUDA the backend that ran, or that none took the input; "" on the CPU, where there is one way."""
    backend = sdpa.path(operators)
    return "composed, as Extension (ATen)" if backend == "math" else backend


def scratch_bytes(workload: Workload) -> int:
    """As SDPA's, scores not counted: a lower bound, since on CUDA an input that no fused attention takes runs composed,
    with one [B, H, S, S] of scores. That is certain in float64 alone.
    """
    scores = 0
    if workload.device.startswith("cuda") and workload.dtype == "float64":
        scores = workload.batch * workload.num_heads * workload.seq_len**2 * DTYPE_BYTES[workload.dtype]
    return sdpa.scratch_bytes(workload) + scores


IMPLEMENTATION = Implementation(
    id="extension-fused", prepare=prepare, path=path, scratch_bytes=scratch_bytes, needs="extension"
)
