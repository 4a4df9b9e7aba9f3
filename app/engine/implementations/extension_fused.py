"""The C++ extension, level `fused`: packed projections and one vectorised attention kernel."""

from __future__ import annotations

from torch import Tensor

from app.core.workload import Workload
from app.engine.implementations.base import Implementation, Unsupported
from app.engine.implementations.sdpa import scratch_bytes
from app.engine.inputs import Forward, Inputs


def unsupported(workload: Workload) -> Unsupported | None:
    if workload.device.startswith("cuda"):
        return Unsupported("its kernels are for the CPU", "Extension (ATen) runs on CUDA devices.")
    return None


def prepare(workload: Workload, inputs: Inputs) -> Forward:
    """Share the workload's parameters with the extension's layer; the extension is loaded already."""
    from self_attention_ext import SelfAttention

    layer = SelfAttention.from_multihead_attention(inputs.layer, causal=workload.causal, kernel="fused")
    x = inputs.x

    def forward() -> Tensor:
        output: Tensor = layer(x)
        return output

    return forward


IMPLEMENTATION = Implementation(
    id="extension-fused",
    prepare=prepare,
    unsupported=unsupported,
    scratch_bytes=scratch_bytes,
    needs="extension",
)
