"""The C++ extension, level `aten`: the whole layer behind one operator, composed of ATen calls."""

from __future__ import annotations

from app.core.workload import Workload
from app.engine.implementations.base import Implementation
from app.engine.implementations.extension import layer_call
from app.engine.implementations.native import scratch_bytes
from app.engine.inputs import Forward, Inputs


def prepare(workload: Workload, inputs: Inputs) -> Forward:
    """Share the workload's parameters with the extension's layer; the extension is loaded already."""
    return layer_call(workload, inputs, kernel="aten")


IMPLEMENTATION = Implementation(
    id="extension-aten", prepare=prepare, scratch_bytes=scratch_bytes, needs="extension"
)
