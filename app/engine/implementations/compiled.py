"""The native steps, compiled by `torch.compile`."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Callable

import torch
from torch import Tensor

from app.core.workload import DTYPE_BYTES, Workload
from app.engine.implementations import native
from app.engine.implementations.base import Implementation, Unsupported
from app.engine.inputs import Forward, Inputs

_lock = threading.Lock()
_compiled: dict[Workload, Callable[..., Tensor]] = {}
"""The last workload's function. Only one: torch keeps what it compiled per code object and, past a few
shapes, silently runs the plain steps instead."""


def unsupported(workload: Workload) -> Unsupported | None:
    device = torch.device(workload.device)
    if device.type == "cpu":
        if _cpp_compiler() is None:
            return Unsupported(
                "torch.compile needs a C++ compiler for the CPU, and none was found",
                "install one (g++, clang++ or Visual Studio's cl) or set CXX to its path",
            )
        return None
    capability = torch.cuda.get_device_capability(device)
    if capability < (7, 0):
        return Unsupported(
            "torch.compile generates code with Triton, which needs compute capability 7.0; "
            f"this device has {capability[0]}.{capability[1]}"
        )
    if not _has_triton():
        return Unsupported(
            "torch.compile generates code with Triton, which is not installed",
            "on Linux it comes with torch's CUDA builds; on Windows: pip install triton-windows",
        )
    return None


def prepare(workload: Workload, inputs: Inputs) -> Forward:
    with _lock:
        if workload not in _compiled:
            _compiled.clear()
            torch._dynamo.reset()
            # A whole graph or an error: half-compiled steps would pass for compiled ones.
            steps = native.decoding_step if workload.decode else native.self_attention
            _compiled[workload] = torch.compile(steps, dynamic=False, fullgraph=True)
        compiled = _compiled[workload]
    x, parts = inputs.x, tuple(inputs.parts.values())
    num_heads, causal = workload.num_heads, workload.causal
    if inputs.cached is not None:
        keys, values = inputs.cached.with_room()
        position = workload.seq_len

        def step() -> Tensor:
            return compiled(x, keys, values, *parts, position=position, num_heads=num_heads)

        return step

    def forward() -> Tensor:
        return compiled(x, *parts, num_heads=num_heads, causal=causal)

    return forward


def scratch_bytes(workload: Workload) -> int:
    """One buffer of scores [B, H, S, S], in decode mode [B, H, 1, S + 1] and a cache of its own.

    How much more the compiler fuses away is its choice.
    """
    rows, columns = (1, workload.seq_len + 1) if workload.decode else (workload.seq_len, workload.seq_len)
    scores = workload.batch * workload.num_heads * rows * columns
    return scores * DTYPE_BYTES[workload.dtype] + workload.cache_bytes


def _cpp_compiler() -> str | None:
    named = os.environ.get("CXX")
    if named:
        return shutil.which(named.split()[0])
    candidates = ("cl",) if sys.platform == "win32" else ("g++", "clang++", "c++")
    return next((found for name in candidates if (found := shutil.which(name))), None)


def _has_triton() -> bool:
    import importlib.util

    return importlib.util.find_spec("triton") is not None


IMPLEMENTATION = Implementation(
    id="compiled",
    prepare=prepare,
    unsupported=unsupported,
    scratch_bytes=scratch_bytes,
    slow_to_prepare=True,
)
