"""What the worker and its profiler child say to each other: newline-delimited JSON over the child's stdio.

The worker sends one `CountRequest` at a time and waits for its `CountPassed` or `CountRefused`. The child
says `ProfilerReady` once torch is loaded, and ends when its stdin ends: that pipe is its lifeline.
Knows neither torch nor the profiler, so both ends import it before either is loaded.
"""

from __future__ import annotations

import msgspec

from app.core.measurements import Counts, Memory
from app.core.messages import encoded
from app.core.own import OwnFile
from app.core.workload import Workload


class _Tagged(msgspec.Struct, frozen=True, tag_field="type", tag=True, omit_defaults=True):
    pass


class CountRequest(_Tagged, frozen=True):
    """Profile one implementation on one workload.

    `workload.device` is resolved already ("cpu" or "cuda:N", never "auto"). `library` is the built
    extension's file and `library_key` the key it was built under, where the implementation needs it. `seed`
    and `threads` are the sampler's own, so that both processes do the same work; `threads` 0 leaves torch's
    choice. `own` is the file of a user's own implementation: whoever answers such a request answers no other.
    """

    id: int
    workload: Workload
    implementation: str
    library: str | None = None
    library_key: str = ""
    seed: int = 0
    threads: int = 0
    own: OwnFile | None = None


class ProfilerReady(_Tagged, frozen=True):
    """torch is loaded in process `pid`; requests are read from now on."""

    pid: int


class CountPassed(_Tagged, frozen=True):
    """The counts of request `id`. `trace_gz` is its trace as gzipped Chrome JSON (base64 on the wire).

    `profiled_seconds` is one call's wall time under the profiler: shown beside the plain latency as the
    profiler's cost, never in its place.
    """

    id: int
    pid: int
    counts: Counts
    memory: Memory = Memory()
    profiled_seconds: float | None = None
    trace_gz: bytes = b""


class CountRefused(_Tagged, frozen=True):
    """Request `id` has no counts: one sentence that says why."""

    id: int
    pid: int
    reason: str


ProfilerReply = ProfilerReady | CountPassed | CountRefused

_request_decoder: msgspec.json.Decoder[CountRequest] = msgspec.json.Decoder(CountRequest)
_reply_decoder: msgspec.json.Decoder[ProfilerReply] = msgspec.json.Decoder(ProfilerReply)


def encode(message: CountRequest | ProfilerReply) -> bytes:
    """One line, newline included."""
    return encoded(message) + b"\n"


def decode_request(line: bytes) -> CountRequest:
    """Raises `msgspec.DecodeError` (or its subclass `ValidationError`) on anything else."""
    return _request_decoder.decode(line)


def decode_reply(line: bytes) -> ProfilerReply:
    """Raises `msgspec.DecodeError` (or its subclass `ValidationError`) on anything else."""
    return _reply_decoder.decode(line)
