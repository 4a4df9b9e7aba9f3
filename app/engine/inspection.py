"""One watched call: which ATen operators it dispatches, and whether denormal numbers pass through it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

MAX_NUMBERS = 1 << 22
"""Of larger tensors only a leading slice is looked at: a sample tells as well, and costs less."""

SLOW_WHEN_DENORMAL = (torch.float32, torch.float64, torch.bfloat16)
"""float16 is converted before arithmetic on a CPU, so its denormals cost nothing."""

EXTENSION = "attnscope"
"""The namespace of the extension's operators."""


@dataclass(frozen=True)
class Inspection:
    """`operators`: names without namespace and overload. `denormal_in`: where denormals were first seen."""

    operators: frozenset[str]
    denormal_in: str | None


class _Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # The default imports the compiler (a second, 800 modules) to keep it out of watched calls; none is
        # compiled here.
        return False

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operators: set[str] = set()
        self.denormal_in: str | None = None

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = self._run(func, args, kwargs or {})
        name = func._schema.name.rpartition("::")[2]
        self.operators.add(name)
        # What is not written yet holds whatever the memory held.
        if (
            self.denormal_in is None
            and "empty" not in name
            and any(has_denormals(t) for t in _tensors(result))
        ):
            self.denormal_in = f"the result of {name}"
        return result

    def _run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the extension's operator calls in turn is seen too: it tells which attention ran."""
        if func.namespace != EXTENSION:
            return func(*args, **kwargs)
        # Called again it would only come back here; below the watch is the device's kernel.
        device = next(t.device.type for t in _tensors((args, kwargs)))
        key = torch._C.DispatchKey.CUDA if device == "cuda" else torch._C.DispatchKey.CPU
        with self:
            return func.redispatch(torch._C.DispatchKeySet(key), *args, **kwargs)


def inspect_call(call: Callable[[], Any], inputs: Iterable[Tensor]) -> Inspection:
    """Run `call` once, watched. Its time means nothing."""
    with torch.no_grad():
        denormal_input = any(has_denormals(tensor) for tensor in inputs)
    with _Watch() as watch:
        call()
    return Inspection(
        frozenset(watch.operators), "the input or the parameters" if denormal_input else watch.denormal_in
    )


def has_denormals(tensor: Tensor) -> bool:
    """Whether any number is denormal: not zero, and nearer to it than the smallest normal one."""
    if tensor.device.type != "cpu" or tensor.dtype not in SLOW_WHEN_DENORMAL or tensor.numel() == 0:
        return False
    seen = tensor.detach()
    while seen.numel() > MAX_NUMBERS and seen.dim():
        seen = seen[: max(1, seen.shape[0] // 2)] if seen.shape[0] > 1 else seen[0]
    size = seen.abs()
    return bool(((size < torch.finfo(tensor.dtype).tiny) & (size != 0)).any())


def _tensors(result: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]
