"""Errors of outputs and gradients against float64, beside native's own.

The rule: an error of at most twice native's at the same precision (three times for gradients), where
native's counts as at least one rounding unit of the tensor's largest magnitude. The gradient of `k_bias` is
zero in exact arithmetic, so its unit is that of the terms it sums: `q_bias`'s gradient. With a single token
the same holds of all gradients of q and k, whose terms are as large as v's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import torch
from torch import Tensor

from app.core.measurements import BEYOND, Accuracy, TensorError, factor_of
from app.core.workload import Workload
from app.engine.implementations import native
from app.engine.inputs import PARTS, Forward, Inputs, on_batch_slice

MAX_BYTES = 1 << 30
MAX_FLOPS = 4e10
LIVE_FLOPS = 6e9
"""While something is shown live, a check must not hold the next sample up for long."""

Tensors = dict[str, Tensor]
Prepare = Callable[[Workload, Inputs], Forward]


@dataclass(frozen=True)
class Reference:
    """The exact values [float64, on the CPU] on `inputs`, and native's own errors.

    `checked_batch`: how many sequences `inputs` hold where the workload has more; None: all of them.
    """

    inputs: Inputs
    exact: Tensors
    native: dict[str, _Errors]
    checked_batch: int | None = None
    seed: int | None = None


@dataclass(frozen=True)
class _Errors:
    """Of one tensor; all but the first null where there is nothing to divide by."""

    max_abs: float
    rel_l2: float | None = None
    cosine: float | None = None
    one_minus_cosine: float | None = None
    bias: float | None = None


def checked_batch(workload: Workload, max_flops: float = MAX_FLOPS) -> int:
    """How many sequences of the batch can be checked within the limits; 0 if not even one."""
    per_sequence = msgspec.structs.replace(workload, batch=1)
    rows, columns = (1, workload.seq_len + 1) if workload.decode else (workload.seq_len, workload.seq_len)
    scores = workload.num_heads * rows * columns * 8
    # Of a decode workload the cache in float64, filled and with room, is the larger part by far.
    activations = columns * workload.embed_dim * 8
    # Scores, their masked copy, probabilities and, backward, a gradient of each or so.
    needed = (scores * 4 + activations * 10) * (2 if workload.backward else 1)
    parameters = 4 * workload.embed_dim**2 * 8 * (3 if workload.backward else 1)
    if parameters > MAX_BYTES:
        return 0
    fit = min((MAX_BYTES - parameters) // needed, int(max_flops // per_sequence.flops))
    return max(0, min(workload.batch, fit))


def run_once(prepare: Prepare, inputs: Inputs) -> Tensors:
    """The output and, in forward_backward mode, nine gradients: float64 copies on the CPU."""
    workload = inputs.workload
    before = torch.is_grad_enabled()
    torch.set_grad_enabled(workload.backward)
    try:
        output = inputs.call(prepare(workload, inputs))()
        found = {"output": _exact_copy(output)}
        if workload.backward:
            found |= {f"grad_{name}": _exact_copy(tensor) for name, tensor in inputs.gradients().items()}
    finally:
        inputs.clear_gradients()
        torch.set_grad_enabled(before)
    return found


def make_reference(inputs: Inputs, whole_batch: int | None = None, seed: int | None = None) -> Reference:
    """The float64 values for `inputs`, and how far native at `inputs`' precision is from them.

    `whole_batch` is the workload's, of which `inputs` may be a slice; `seed` what they were drawn with.
    """
    exact = _exact(inputs)
    measured = run_once(native.prepare, inputs)
    batch = inputs.workload.batch
    return Reference(
        inputs,
        exact,
        {
            name: _errors(measured[name], value, _is_zero(name, inputs.workload))
            for name, value in exact.items()
        },
        checked_batch=None if whole_batch in (None, batch) else batch,
        seed=seed,
    )


def compare(measured: Tensors, reference: Reference) -> Accuracy:
    """Hold `measured` against `reference` by the rule."""
    info = torch.finfo(getattr(torch, reference.inputs.workload.dtype))
    tensors = {}
    for name, exact in reference.exact.items():
        scale = reference.exact[_summed_in(name, reference.inputs.workload)]
        # Below the normal numbers, which float16 reaches soon, the unit shrinks no further.
        unit = info.eps * max(_max_abs(scale), info.tiny)
        bound = min(BEYOND, factor_of(name) * max(reference.native[name].max_abs, unit))
        is_zero = _is_zero(name, reference.inputs.workload)
        tensors[name] = _judged(measured.get(name), exact, reference.native[name], bound, unit, is_zero)
    return Accuracy(
        ok=all(tensor.ok for tensor in tensors.values()),
        tensors=tensors,
        checked_batch=reference.checked_batch,
        seed=reference.seed,
    )


def _is_zero(name: str, workload: Workload) -> bool:
    """Whether a tensor is zero in exact arithmetic, being a sum of terms that cancel out."""
    return _summed_in(name, workload) != name


def _summed_in(name: str, workload: Workload) -> str:
    """The tensor whose magnitude is that of the terms summed in `name`: itself, unless they cancel out."""
    if workload.seq_len == 1 and name.startswith(("grad_q", "grad_k")):
        # The softmax of a single score is 1 whatever q and k are.
        return name.replace("_q_", "_v_").replace("_k_", "_v_")
    return "grad_q_bias" if name == "grad_k_bias" else name


def inputs_for_check(inputs: Inputs, max_flops: float = MAX_FLOPS) -> Inputs | None:
    """`inputs`, or as much of their batch as can be checked; None if not even one sequence can."""
    batch = checked_batch(inputs.workload, max_flops)
    if batch == 0:
        return None
    return inputs if batch == inputs.workload.batch else on_batch_slice(inputs, batch)


def _exact(inputs: Inputs) -> Tensors:
    """The native steps in float64 on the CPU.

    For a float64 workload there is nothing more exact to be had from torch. It is computed on permuted
    features instead: equal in exact arithmetic, other sums in floating point, so that what native rounds
    away shows, and is not hidden by rounding alike.
    """
    workload = msgspec.structs.replace(inputs.workload, dtype="float64", device="cpu")
    backward = workload.backward
    x = _exact_copy(inputs.x)
    parts = {name: _exact_copy(part) for name, part in inputs.parts.items()}
    permute = inputs.workload.dtype == "float64"
    if permute:
        across, within = _flips(workload)
        x = x[..., across]
        for letter in "qkv":
            parts[f"{letter}_weight"] = parts[f"{letter}_weight"][within][:, across]
            parts[f"{letter}_bias"] = parts[f"{letter}_bias"][within]
        parts["out_weight"] = parts["out_weight"][:, within]
    if inputs.cached is not None:
        keys, values = map(_exact_copy, inputs.cached.with_room())
        if permute:
            in_head = within[: workload.head_dim]
            keys, values = keys[..., in_head], values[..., in_head]
        leaves = [parts[name].contiguous() for name in PARTS]
        with torch.no_grad():
            output = native.decoding_step(
                x, keys, values, *leaves, position=workload.seq_len, num_heads=workload.num_heads
            )
        return {"output": output}
    x = x.contiguous().requires_grad_(backward)
    leaves = [parts[name].contiguous().requires_grad_(backward) for name in PARTS]
    with torch.set_grad_enabled(backward):
        output = native.self_attention(x, *leaves, num_heads=workload.num_heads, causal=workload.causal)
        exact = {"output": output.detach()}
        if not backward:
            return exact
        assert inputs.output_gradient is not None
        output.backward(_exact_copy(inputs.output_gradient))  # type: ignore[no-untyped-call]
    named = zip(("x", *PARTS), (x, *leaves), strict=True)
    gradients = {name: leaf.grad for name, leaf in named if leaf.grad is not None}
    if permute:
        back_across, back_within = torch.argsort(across), torch.argsort(within)
        gradients["x"] = gradients["x"][..., back_across]
        for letter in "qkv":
            gradients[f"{letter}_weight"] = gradients[f"{letter}_weight"][back_within][:, back_across]
            gradients[f"{letter}_bias"] = gradients[f"{letter}_bias"][back_within]
        gradients["out_weight"] = gradients["out_weight"][:, back_within]
    return exact | {f"grad_{name}": gradient for name, gradient in gradients.items()}


def _flips(workload: Workload) -> tuple[Tensor, Tensor]:
    """Permutations of E: over the whole embedding, and within and among heads; each head stays whole."""
    width, head_dim = workload.embed_dim, workload.head_dim
    across = torch.arange(width).flip(0)
    # Interleaved rather than flipped: a flip alone may keep the pairs that a vectorised sum adds first.
    across = torch.cat([across[0::2], across[1::2]])
    within_head = torch.cat([torch.arange(head_dim)[1::2], torch.arange(head_dim)[0::2]]).flip(0)
    within = torch.arange(width).view(-1, head_dim)[:, within_head].reshape(-1)
    return across, within


def _judged(
    measured: Tensor | None, exact: Tensor, of_native: _Errors, bound: float, unit: float, is_zero: bool
) -> TensorError:
    # Another shape has no difference to it: nothing is measured but that it is wrong.
    comparable = measured is not None and measured.shape == exact.shape
    found = _errors(measured, exact, is_zero) if comparable and measured is not None else _Errors(BEYOND)
    return TensorError(
        max_abs=found.max_abs,
        native_max_abs=of_native.max_abs,
        bound=bound,
        # Where native gave no number either, being as bad is not being right.
        ok=found.max_abs <= bound and found.max_abs < BEYOND,
        rel_l2=found.rel_l2,
        cosine=found.cosine,
        bias=found.bias,
        one_minus_cosine=found.one_minus_cosine,
        native_rel_l2=of_native.rel_l2,
        native_one_minus_cosine=of_native.one_minus_cosine,
        native_bias=of_native.bias,
        unit=unit,
        shape=tuple(exact.shape),
    )


def _errors(measured: Tensor, exact: Tensor, is_zero: bool) -> _Errors:
    """`is_zero`: the true value is, and what stands in `exact` is rounding, no measure of anything."""
    difference = measured - exact
    norm, own_norm = 0.0 if is_zero else float(exact.norm()), float(measured.norm())
    cosine = apart = None
    if norm > 0 and own_norm > 0 and math.isfinite(own_norm):
        # Normalised first: the product of two small norms may be zero.
        ours, theirs = (measured / own_norm).flatten(), (exact / norm).flatten()
        cosine = _finite(float(torch.dot(ours, theirs)))
        # Half the squared distance of unit vectors: 1 − cosine without taking two near numbers apart.
        apart = _finite(float((ours - theirs).square().sum()) / 2)
    return _Errors(
        max_abs=_max_abs(difference),
        rel_l2=_finite(float(difference.norm()) / norm) if norm > 0 else None,
        cosine=cosine,
        one_minus_cosine=apart,
        bias=_finite(float(difference.mean())) if difference.numel() else None,
    )


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _max_abs(tensor: Tensor) -> float:
    """The largest magnitude; `BEYOND` where there is a NaN or an infinity."""
    if tensor.numel() == 0:
        return 0.0
    largest = float(tensor.abs().max())
    return largest if math.isfinite(largest) else BEYOND


def _exact_copy(tensor: Tensor) -> Tensor:
    return tensor.detach().to(device="cpu", dtype=torch.float64, copy=True)
