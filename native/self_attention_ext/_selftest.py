"""A library proves itself before it is used: output and nine gradients against the readable twin."""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import Tensor

from . import reference

BATCH, SEQ_LEN, EMBED_DIM, NUM_HEADS = 2, 5, 12, 3


def bound(exact: Tensor, native: Tensor, factor: float, unit: Tensor | None = None) -> float:
    """The largest error allowed: `factor` times native's, which counts as at least one rounding unit.

    `exact` is float64, `native` the twin's result at the precision under test. The unit is that of the
    largest magnitude in `exact`, or in `unit`, for a result that is zero in exact arithmetic.
    """
    magnitude = (exact if unit is None else unit).abs().max().item() if exact.numel() else 0.0
    error = (native.double() - exact).abs().max().item() if exact.numel() else 0.0
    return factor * max(error, torch.finfo(native.dtype).eps * magnitude)


def run() -> dict[str, Any]:
    """Runs it; `passed`, how many `tensors` were held against the twin, the `worst` share of its bound,
    `seconds`.

    Leaves random state, gradient mode and default type as they were.
    """
    begun = time.perf_counter()
    generator = torch.Generator().manual_seed(20)
    shapes = [(BATCH, SEQ_LEN, EMBED_DIM), *[(EMBED_DIM, EMBED_DIM), (EMBED_DIM,)] * 4]
    exact = [torch.randn(shape, generator=generator, dtype=torch.float64) * 0.4 for shape in shapes]
    dy = torch.randn(shapes[0], generator=generator, dtype=torch.float64)
    worst, worst_name, count = 0.0, "", 0
    for dtype in (torch.float32, torch.float64):
        for causal in (False, True):
            for name, share in _shares([t.to(dtype) for t in exact], dy.to(dtype), causal):
                count += 1
                if not share <= worst:  # a NaN is worse than anything
                    worst, worst_name = share, f"{name}, {str(dtype).removeprefix('torch.')}"
    return {
        "passed": worst <= 1.0,
        "tensors": count,
        "worst": worst if worst == worst else None,
        "worst_tensor": worst_name,
        "seconds": time.perf_counter() - begun,
        "at": time.time(),
    }


def _shares(tensors: list[Tensor], dy: Tensor, causal: bool) -> list[tuple[str, float]]:
    """Each result's error as a share of its bound."""
    operator = torch.ops.attnscope.self_attention.default
    exact = _twin([t.double() for t in tensors], dy.double(), causal)
    native = _twin(tensors, dy, causal)
    with torch.enable_grad():
        leaves = [t.clone().requires_grad_() for t in tensors]
        y = operator(*leaves, NUM_HEADS, causal)
        found = dict(zip(reference.GRADIENTS, torch.autograd.grad(y, leaves, dy), strict=True))
    found["output"] = y.detach()
    result = []
    for name, value in found.items():
        unit = exact["q_bias"] if name == "k_bias" else None
        # float64 has nothing finer to be held against: the twin's sums run in another order, some units
        # apart.
        factor = (2.0 if name == "output" else 3.0) * (4.0 if dy.dtype == torch.float64 else 1.0)
        limit = bound(exact[name], native[name], factor, unit)
        result.append((name, (value.double() - exact[name]).abs().max().item() / limit))
    return result


def _twin(tensors: list[Tensor], dy: Tensor, causal: bool) -> dict[str, Tensor]:
    x, q_weight, q_bias, k_weight, k_bias, v_weight, v_bias, out_weight, out_bias = tensors
    nine = (x, q_weight, q_bias, k_weight, k_bias, v_weight, v_bias, out_weight, out_bias)
    output = reference.self_attention(*nine, NUM_HEADS, causal)
    return {"output": output, **reference.gradients(dy, *nine, NUM_HEADS, causal)}
