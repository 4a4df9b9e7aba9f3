"""Exceptions of contenders turned into one sentence each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import torch

from app.core.fields import one_line

OUT_OF_MEMORY = ("can't allocate memory", "not enough memory", "out of memory", "cudaerrormemoryallocation")
DEVICE_RESET = ("launch timed out", "cudaerrorlaunchtimeout")
DEVICE_LOST = (
    "illegal memory access",
    "device-side assert",
    "unspecified launch failure",
    "misaligned address",
    "illegal instruction was encountered",
    "cudaerrorecc",
    "device is lost",
)
ADVICE = re.compile(r"Set TORCHDYNAMO_VERBOSE|CUDA kernel errors might be|For debugging consider")
"""Where torch's messages turn from what happened to advice for its own developers."""

LONGEST = 240
LONGEST_READ = 20_000


@dataclass(frozen=True)
class Failure:
    """`device_lost`: the CUDA context is of no use any more, only a new process gets another."""

    state: Literal["failed", "unavailable"]
    reason: str
    remedy: str = ""
    device_lost: bool = False


def explain(error: BaseException) -> Failure:
    """What went wrong, for a reader, from an exception that preparing or calling a contender raised."""
    # A contender's own words may hold what a terminal would act on.
    text = ADVICE.split(one_line(str(error), LONGEST_READ), maxsplit=1)[0].strip()
    lower = text.lower()
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)) or _mentions(lower, OUT_OF_MEMORY):
        return Failure(
            "failed", f"out of memory{_asked_for(text)}", "a smaller batch, sequence or head count needs less"
        )
    if _mentions(lower, DEVICE_RESET):
        return Failure(
            "failed",
            "the driver was reset: one piece of work took longer than the display allows; "
            "the worker was restarted",
            "a smaller workload, or a device without a display",
            device_lost=True,
        )
    if _mentions(lower, DEVICE_LOST):
        return Failure("failed", f"the device failed: {shorten(_first_sentence(text))}", device_lost=True)
    if isinstance(error, NotImplementedError) or "not implemented for" in lower:
        return Failure("unavailable", f"this torch has no kernel for it: {shorten(_first_sentence(text))}")
    if isinstance(error, SystemExit):
        return Failure("failed", f"it asked the process to end (exit status {error.code})")
    return Failure("failed", shorten(f"{type(error).__name__}: {text}" if text else type(error).__name__))


def shorten(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _mentions(text: str, phrases: tuple[str, ...]) -> bool:
    return any(phrase in text for phrase in phrases)


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=[.!?])\s", text, maxsplit=1)[0]


def _asked_for(text: str) -> str:
    """The size in torch's message, as a clause."""
    in_bytes = re.search(r"allocate (\d+) bytes", text)
    if in_bytes:
        return f": {int(in_bytes[1]) / 1e9:,.1f} GB were asked for"
    named = re.search(r"allocate ([\d.]+ [KMGT]iB)", text)
    return f": {named[1]} were asked for" if named else ""
