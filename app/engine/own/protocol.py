"""What the worker and a guest say to each other: newline-delimited JSON over the guest's stdio.

One request at a time, one reply each. The guest ends when its stdin does. Knows neither torch nor the
user's file, so both ends import it before either is loaded.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from app.core.messages import encoded
from app.core.own import OwnFile
from app.core.workload import Workload


class _Tagged(msgspec.Struct, frozen=True, tag_field="type", tag=True, omit_defaults=True):
    pass


class Prepare(_Tagged, frozen=True):
    """Build the implementation for a workload whose device is resolved, call it, check it, warm it up.

    `baseline` is run beside it ("" for none), with the built extension's `library` where it needs that.
    `threads` is what the sampler computes with.
    """

    id: int
    workload: Workload
    own: OwnFile
    baseline: str = ""
    library: str | None = None
    library_key: str = ""
    seed: int = 0
    threads: int = 0


class Take(_Tagged, frozen=True):
    """Time one block of calls of what was prepared, and one of the baseline, in turn first and second."""

    id: int


class Check(_Tagged, frozen=True):
    """Run once on the first `batch` sequences and write output and gradients to `path`."""

    id: int
    batch: int
    path: str


Request = Prepare | Take | Check


class GuestReady(_Tagged, frozen=True):
    """torch is loaded and nothing of the user's; requests are read from now on."""

    pid: int


class Prepared(_Tagged, frozen=True):
    """`seconds` is what a turn should take, its run-up included. `denormal_in`: where denormals were seen.

    `without_baseline` says why the baseline does not run there, where it does not.
    """

    id: int
    seconds: float
    denormal_in: str = ""
    without_baseline: str = ""


class TimedBlock(msgspec.Struct, frozen=True):
    """As `sampling.Block`."""

    calls: int
    seconds: float
    at_s: float
    device_seconds: float | None = None


class Timed(_Tagged, frozen=True):
    """A block of the own implementation, and one of the baseline where it was prepared too."""

    id: int
    own: TimedBlock
    beside: TimedBlock | None = None


class Checked(_Tagged, frozen=True):
    """`path` holds these tensors one after the other, as float64 in C order: name and shape."""

    id: int
    tensors: list[tuple[str, list[int]]]


class Refused(_Tagged, frozen=True):
    """Why a request has no other answer. After `failed` the guest is not used again."""

    id: int
    state: Literal["failed", "unavailable"]
    reason: str
    remedy: str = ""


Reply = GuestReady | Prepared | Timed | Checked | Refused

_requests: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)
_replies: msgspec.json.Decoder[Reply] = msgspec.json.Decoder(Reply)


def encode(message: Request | Reply) -> bytes:
    """One line, newline included."""
    return encoded(message) + b"\n"


def decode_request(line: bytes) -> Request:
    """Raises `msgspec.DecodeError` on anything else."""
    return _requests.decode(line)


def decode_reply(line: bytes) -> Reply:
    """Raises `msgspec.DecodeError` on anything else."""
    return _replies.decode(line)
