"""The C++ extension, level `fused`: packed projections and one attention kernel, on CUDA one of ATen's own."""

from __future__ import annotations

from app.core.workload import DTYPE_BYTES, Workload
from app.engine.implementations import sdpa
from app.engine.implementations.base import Implementation
from app.engine.implementations.extension import layer_call
from app.engine.inputs import Forward, Inputs


def prepare(workload: Workload, inputs: Inputs) -> Forward:
    """Share the workload's parameters with the extension's layer; the extension is loaded already."""
    return layer_call(workload, inputs, kernel="fused")


def path(operators: frozenset[str]) -> str:
    """On CUDA the backend that ran, or that none took the input; "" on the CPU, where there is one way."""
    backend = sdpa.path(operators)
    return "composed, as Extension (ATen)" if backend == "math" else backend


def scratch_bytes(workload: Workload) -> int:
    """As SDPA's, scores not counted: a lower bound, since on CUDA an input that no fused attention takes runs composed,
    with one [B, H, S, S] of scores. That is certain in float64 alone.
    """
    scores = 0
    if workload.device.startswith("cuda") and workload.dtype == "float64" and not workload.decode:
        scores = workload.batch * workload.num_heads * workload.seq_len**2 * DTYPE_BYTES[workload.dtype]
    return sdpa.scratch_bytes(workload) + scores


IMPLEMENTATION = Implementation(
    id="extension-fused", prepare=prepare, path=path, scratch_bytes=scratch_bytes, needs="extension"
)
