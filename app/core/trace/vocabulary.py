"""The words of Kineto's traces: which category is what, and which call launches work on a device.

Spellings differ between versions and vendors; this is the one place that knows them.
"""

from __future__ import annotations

import re
from enum import IntEnum


class Kind(IntEnum):
    """What a complete event is. Only kernels, copies and memsets are work of a device."""

    OTHER = 0
    KERNEL = 1
    MEMCPY = 2
    MEMSET = 3
    CPU_OP = 4
    RUNTIME = 5
    ANNOTATION = 6
    PYTHON = 7
    PROFILER = 8
    """The profiler's own marker: how long it recorded."""
    GPU_ANNOTATION = 9


DEVICE_WORK = (Kind.KERNEL, Kind.MEMCPY, Kind.MEMSET)

KIND_OF_CATEGORY: dict[str, Kind] = {
    "kernel": Kind.KERNEL,
    "Kernel": Kind.KERNEL,
    "gpu_memcpy": Kind.MEMCPY,
    "Memcpy": Kind.MEMCPY,
    "gpu_memset": Kind.MEMSET,
    "Memset": Kind.MEMSET,
    "cpu_op": Kind.CPU_OP,
    "Operator": Kind.CPU_OP,
    "user_annotation": Kind.ANNOTATION,
    "python_function": Kind.PYTHON,
    "Trace": Kind.PROFILER,
    "gpu_user_annotation": Kind.GPU_ANNOTATION,
    **dict.fromkeys(
        (
            "cuda_runtime",
            "cuda_driver",
            "Runtime",
            "hip_runtime",
            "hip_driver",
            "xpu_runtime",
            "xpu_driver",
            "mtia_runtime",
            "privateuse1_runtime",
            "privateuse1_driver",
        ),
        Kind.RUNTIME,
    ),
}

KIND_NAMES: dict[Kind, str] = {
    Kind.CPU_OP: "cpu_op",
    Kind.KERNEL: "kernel",
    Kind.MEMCPY: "memcpy",
    Kind.MEMSET: "memset",
    Kind.RUNTIME: "runtime",
}
"""Names in facts and differences, in the order they are listed there."""

# cudaLaunchHostFunc runs a function on the host: it is deliberately neither.
_KERNEL_LAUNCH = re.compile(
    r"cudaLaunch(Cooperative)?Kernel"
    r"|cuLaunch(Cooperative)?Kernel"
    r"|hip(Ext|Hcc)?(Module)?Launch(Cooperative)?Kernel"
    r"|urEnqueueKernelLaunch"
)
_GRAPH_LAUNCH = re.compile(r"(cuda|cu|hip)GraphLaunch")


class Launch(IntEnum):
    NONE = 0
    KERNEL = 1
    GRAPH = 2


def launch_of(call: str) -> Launch:
    """What a runtime or driver call of this name launches."""
    if _KERNEL_LAUNCH.match(call):
        return Launch.KERNEL
    if _GRAPH_LAUNCH.match(call):
        return Launch.GRAPH
    return Launch.NONE


ENGINE_RANGE = "autograd::engine::evaluate_function: "
"""The range that the autograd engine opens, in whichever thread, around each node it runs."""

# One `namespace::name`. Node names (`MmBackward0`, `torch::autograd::AccumulateGrad`,
# `torch::autograd::CppNode<…>`) and the engine's ranges have none or two of the colons.
_OPERATOR = re.compile(r"[A-Za-z_]\w*::[A-Za-z_]\w*(\.\w+)?")


def is_operator(name: str) -> bool:
    """Whether a cpu_op of this name is an operator of the dispatcher, such as `aten::mm`."""
    return _OPERATOR.fullmatch(name) is not None
