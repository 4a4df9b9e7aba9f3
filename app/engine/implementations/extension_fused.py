"""The C++ extension, level `fused`: packed projections and one vectorised attention kernel."""

from __future__ import annotations

from app.core.workload import Workload
from app.engine.implementations.base import Implementation, Unsupported
from app.engine.implementations.extension import layer_call
from app.engine.implementations.sdpa import scratch_bytes
from app.engine.inputs import Forward, Inputs


def unsupported(workload: Workload) -> Unsupported | None:
    if workload.device.startswith("cuda"):
        return Unsupported("its kernels are for the CPU", "Extension (ATen) runs on CUDA devices.")
    return None


def prepare(workload: Workload, inputs: Inputs) -> Forward:
    """Share the workload's parameters with the extension's layer; the extension is loaded already."""
    return layer_call(workload, inputs, kernel="fused")


IMPLEMENTATION = Implementation(
    id="extension-fused",
    prepare=prepare,
    unsupported=unsupported,
    scratch_bytes=scratch_bytes,
    needs="extension",
)
