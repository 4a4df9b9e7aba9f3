"""What a guest may not do: looked at after its code ran, in the guest itself.

Others are safe without this, since they live elsewhere. It is the guest's own figure that would mislead: of
other inputs, another thread count, another PyTorch than the one it is compared with.
"""

from __future__ import annotations

import builtins
import math
import os
import time
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from app.engine import process_state
from app.engine.inputs import Inputs
from app.engine.own.loading import Misuse
from app.engine.own.rest import wait_for_rest

SMALL_BYTES = 64 << 20
QUIET_S = 0.01
RESTS_WITHIN_S = 1.0

SAME_FOR_ALL = "every implementation is measured under the same settings"


def check_output(output: object, inputs: Inputs) -> Tensor:
    """The output, if it is one: [B, S, E], in the dtype and on the device of `x`, without NaN."""
    x = inputs.x
    if not isinstance(output, Tensor):
        kind = "nothing" if output is None else f"an object of type {type(output).__name__}"
        raise Misuse(f"forward returned {kind}, not a tensor")
    for what, found, wanted in (
        ("shape", list(output.shape), list(x.shape)),
        ("dtype", str(output.dtype).removeprefix("torch."), str(x.dtype).removeprefix("torch.")),
        ("device", str(output.device), str(x.device)),
    ):
        if found != wanted:
            raise Misuse(f"returned {what} {found}; expected {wanted}")
    if inputs.workload.backward and not output.requires_grad:
        raise Misuse(
            "its output has no gradient",
            "in mode forward_backward autograd must be able to follow forward: no detach, no no_grad",
        )
    wrong = int((~torch.isfinite(output.detach())).sum())
    if wrong:
        raise Misuse(f"its output has {wrong:,} of {output.numel():,} values that are NaN or infinite")
    return output


class Conduct:
    """Remembers how things were before the user's code ran. Each method raises `Misuse`."""

    def __init__(self) -> None:
        self._torch = {place: dict(vars(holder)) for place, holder in _PLACES.items()}
        self._settings: Mapping[str, Any] = {}
        self._inputs: Inputs | None = None
        self._sums: dict[str, int] = {}
        self._versions: dict[str, int] = {}

    def begin(self, inputs: Inputs) -> None:
        """From here on `inputs` and the process's settings must stay as they are."""
        self._inputs = inputs
        self._settings = _settings()
        self._versions = {name: tensor._version for name, tensor in _tensors(inputs).items()}
        self._sums = _sums(inputs)

    def look(self) -> None:
        """What costs microseconds: after every block."""
        found = _settings()
        for name, before in self._settings.items():
            if found[name] != before:
                raise Misuse(f"changed {name} from {before} to {found[name]}; {SAME_FOR_ALL}")
        assert self._inputs is not None
        for name, tensor in _tensors(self._inputs).items():
            if tensor._version != self._versions[name]:
                raise Misuse(f"changed {_called(name)} in place; work on a copy")

    def look_closely(self) -> None:
        """What costs milliseconds: after preparing, and now and then."""
        self.look()
        for place, before in self._torch.items():
            now = vars(_PLACES[place])
            # What is added is none of ours: torch itself loads parts of itself late.
            changed = next((n for n, v in before.items() if _is_replaced(v, now.get(n, v))), None)
            if changed is not None:
                raise Misuse(f"replaced {place}.{changed}; what it is compared with uses that too")
        assert self._inputs is not None
        for name, total in _sums(self._inputs).items():
            if total != self._sums[name]:
                raise Misuse(f"changed {_called(name)}; work on a copy")
        share = wait_for_rest(QUIET_S, RESTS_WITHIN_S, slices=3)
        if share:
            raise Misuse(
                f"keeps {share:.0%} of a processor busy between calls",
                "end its threads, or let them wait, before forward returns",
            )

    @property
    def is_cheap(self) -> bool:
        """Whether `look_closely` takes a few milliseconds at most."""
        return self._inputs is not None and self._inputs.workload.working_set_bytes <= SMALL_BYTES


_PLACES: dict[str, Any] = {
    "torch": torch,
    "torch.Tensor": torch.Tensor,
    "torch.autograd": torch.autograd,
    "torch.nn": torch.nn,
    "torch.nn.Linear": torch.nn.Linear,
    "torch.nn.Module": torch.nn.Module,
    "torch.nn.MultiheadAttention": torch.nn.MultiheadAttention,
    "torch.nn.functional": torch.nn.functional,
    "torch.cuda": torch.cuda,
    "builtins": builtins,
    "math": math,
    "time": time,
}


_TORCH = str(Path(torch.__file__).parent)


def _is_replaced(before: object, now: object) -> bool:
    """Whether somebody else put `now` there: torch.compile wraps functions of torch itself, with its own code."""
    if now is before:
        return False
    code = getattr(getattr(now, "__func__", now), "__code__", None)
    return code is None or not code.co_filename.startswith(_TORCH)


def _settings() -> dict[str, Any]:
    """By the words they have in a sentence. What this torch does not tell is left out by both sides."""
    state = process_state.capture()
    found: dict[str, Any] = {
        "the thread count": state.threads,
        "the flushing of denormal numbers": state.flushes_denormals,
        "the gradient mode": state.gradients,
        "the default dtype": str(state.dtype),
    }
    for words, read in _READINGS.items():
        try:
            found[words] = read()
        except (AttributeError, RuntimeError):
            found[words] = None
    return found


_READINGS: dict[str, Callable[[], Any]] = {
    "deterministic algorithms": torch.are_deterministic_algorithms_enabled,
    "the precision of float32 products": torch.get_float32_matmul_precision,
    "inference mode": torch.is_inference_mode_enabled,
    "autocast": lambda: torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda"),
    "the default device": lambda: str(torch.get_default_device()),
    "oneDNN": lambda: torch._C._get_mkldnn_enabled(),
    "cuDNN": lambda: (torch.backends.cudnn.enabled, torch.backends.cudnn.benchmark),
    "SDPA's backends": lambda: (
        torch._C._get_flash_sdp_enabled(),
        torch._C._get_mem_efficient_sdp_enabled(),
        torch._C._get_math_sdp_enabled(),
    ),
    "the processors it may use": lambda: len(os.sched_getaffinity(0)),
}


def _tensors(inputs: Inputs) -> dict[str, Tensor]:
    packed = dict(inputs.layer.named_parameters())
    return {"x": inputs.x, **packed, **inputs.parts}


def _sums(inputs: Inputs) -> dict[str, int]:
    """A checksum of each tensor's bytes; the separate parameters share the packed ones' memory."""
    tensors = {"x": inputs.x, **dict(inputs.layer.named_parameters())}
    return {name: _crc(tensor) for name, tensor in tensors.items()}


def _crc(tensor: Tensor) -> int:
    if tensor.numel() == 0:
        return 0
    return zlib.crc32(tensor.detach().contiguous().view(torch.uint8).cpu().numpy().data)


def _called(name: str) -> str:
    return "the input x" if name == "x" else f"the parameter {name}"
