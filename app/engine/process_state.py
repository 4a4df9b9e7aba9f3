"""What contenders share of the process: thread count, denormal mode, gradient mode, default dtype.

A contender that changes one of them would change the figures of every contender after it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

_smallest = 5e-324


@dataclass(frozen=True)
class ProcessState:
    threads: int
    flushes_denormals: bool
    gradients: bool
    dtype: torch.dtype


def fix_threads() -> None:
    """Set the calling thread's count to what it is, which is not nothing: until somebody sets it, MKL takes
    fewer threads for small products as it sees fit.

    That choice cannot be read, and any contender that sets the count would end it for those after it.
    torch.utils.benchmark ends it too; differences of 10 % at batch 1 came from this alone.
    """
    torch.set_num_threads(torch.get_num_threads())


def capture() -> ProcessState:
    """The state of the calling thread. About a microsecond."""
    return ProcessState(
        threads=torch.get_num_threads(),
        # torch sets the mode but does not tell it; the processor does.
        flushes_denormals=_smallest * 1.0 == 0.0,
        gradients=torch.is_grad_enabled(),
        dtype=torch.get_default_dtype(),
    )


def restore(wanted: ProcessState) -> tuple[str, ...]:
    """Put `wanted` back, and say what had been changed, as in `the thread count from 2 to 1`."""
    found = capture()
    if found == wanted:
        return ()
    changed = []
    if found.threads != wanted.threads:
        changed.append(f"the thread count from {wanted.threads} to {found.threads}")
        torch.set_num_threads(wanted.threads)
    if found.flushes_denormals != wanted.flushes_denormals:
        on = "on" if found.flushes_denormals else "off"
        changed.append(f"the flushing of denormal numbers to {on}")
        torch.set_flush_denormal(wanted.flushes_denormals)
    if found.gradients != wanted.gradients:
        changed.append(f"the gradient mode to {'on' if found.gradients else 'off'}")
        torch.set_grad_enabled(wanted.gradients)
    if found.dtype != wanted.dtype:
        changed.append(f"the default dtype to {str(found.dtype).removeprefix('torch.')}")
        torch.set_default_dtype(wanted.dtype)
    return tuple(changed)
