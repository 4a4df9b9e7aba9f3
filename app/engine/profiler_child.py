"""The profiler's own process.

Requests come as lines on stdin, replies go as lines to stdout (`profiler_protocol`). It lives through
requests that fail, and ends with exit code 0 when its stdin does. Its worker replaces it now and then,
since sessions leave memory behind.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from app.engine import processes
from app.engine.profiler_protocol import (
    CountPassed,
    CountRefused,
    CountRequest,
    ProfilerReady,
    ProfilerReply,
    decode_request,
    encode,
)

if TYPE_CHECKING:
    from app.core.own import OwnFile
    from app.core.workload import Workload
    from app.engine.inputs import Forward, Inputs
    from app.engine.profiling import Profiler

QUIET = {"KINETO_LOG_LEVEL": "6", "TORCH_CPP_LOG_LEVEL": "ERROR"}
"""Kineto writes lines to stderr for every session, and torch one for memory older than it.

A user's own setting wins."""

MAX_LINE_BYTES = 1_000_000


class Refusal(Exception):  # noqa: N818
    """Why a request has no counts: one sentence."""


class Child:
    """Answers requests. Guards what a process has once: its profiler and the extension it loaded."""

    def __init__(self, profiler: Profiler) -> None:
        self._profiler = profiler
        self._library: Path | None = None

    def answer(self, request: CountRequest) -> ProfilerReply:
        try:
            return self._count(request)
        except (Exception, SystemExit) as error:
            return CountRefused(request.id, os.getpid(), sentence_of(error))
        finally:
            gc.collect()

    def _count(self, request: CountRequest) -> CountPassed:
        import torch

        from app.core.catalog import contender, introduce
        from app.engine.implementations.registry import shipped
        from app.engine.inputs import make_inputs
        from app.engine.profiling import environment_facts

        workload = request.workload
        prepare: Callable[[Workload, Inputs], Forward]
        if request.own is not None:
            introduce((request.own,))
            prepare = self._own(request.own)
        else:
            implementation = shipped().get(request.implementation)
            if implementation is None:
                raise Refusal(f"There is no implementation {request.implementation!r} to count.")
            if (unsupported := implementation.unsupported(workload)) is not None:
                raise Refusal(unsupported.reason)
            if implementation.needs == "extension":
                self._load(request.library, request.library_key)
            prepare = implementation.prepare
        if request.threads:
            torch.set_num_threads(request.threads)
        inputs = make_inputs(workload, request.seed)
        title = f"{contender(request.implementation).title} · {workload.label}"
        # As the sampler has it: some implementations take another path where a gradient might be wanted.
        with torch.set_grad_enabled(workload.backward):
            profiled = self._profiler.profile(
                inputs.call(prepare(workload, inputs)),
                backward=workload.backward,
                device=workload.device,
                title=title,
                origin={
                    "implementation": request.implementation,
                    "workload": msgspec.to_builtins(workload),
                    "environment": environment_facts(),
                },
                release=inputs.clear_gradients,
            )
        return CountPassed(
            id=request.id,
            pid=os.getpid(),
            counts=profiled.counts,
            memory=profiled.memory,
            profiled_seconds=profiled.seconds,
            trace_gz=profiled.trace_gz,
        )

    @staticmethod
    def _own(file: OwnFile) -> Callable[[Workload, Inputs], Forward]:
        """Run a user's file: the last thing this process does."""
        from app.engine.own.loading import OwnImplementation

        # What it prints was shown when it was sampled, and may be without end.
        null = os.open(os.devnull, os.O_WRONLY)
        for descriptor in (1, 2):
            os.dup2(null, descriptor)
        os.close(null)
        return OwnImplementation(file).prepare

    def _load(self, library: str | None, key: str) -> None:
        """Load the built extension, once: a process can never unload or replace one."""
        from self_attention_ext import BuildError
        from self_attention_ext._library import load

        if library is None:
            raise Refusal("The extension is not built, so there is nothing of it to count.")
        path = Path(library)
        if self._library == path:
            return
        if self._library is not None:
            raise Refusal(
                "The extension was rebuilt: this process still holds the old one, a new one is needed."
            )
        try:
            load(path, key)
        except (OSError, BuildError) as error:
            raise Refusal(f"The extension {path.name} does not load: {shortened(error)}") from None
        self._library = path


def sentence_of(error: BaseException) -> str:
    """One sentence for what a request raised."""
    from app.core.trace import TraceError
    from app.engine.failures import explain
    from app.engine.profiling import ProfilingError

    if isinstance(error, (Refusal, ProfilingError, TraceError)):
        return str(error)
    failure = explain(error)
    return f"{failure.reason}; {failure.remedy}" if failure.remedy else failure.reason


def shortened(error: Exception) -> str:
    from app.engine.failures import shorten

    return shorten(" ".join(str(error).split()) or type(error).__name__)


def serve(requests: BinaryIO, replies: BinaryIO, answer: Callable[[CountRequest], ProfilerReply]) -> None:
    """Answer each line of `requests` until they end; a line that is no request is refused."""
    while line := requests.readline(MAX_LINE_BYTES):
        if not line.strip():
            continue
        try:
            reply = answer(decode_request(line))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            reply = CountRefused(_id_of(line), os.getpid(), f"The request cannot be read: {error}.")
        replies.write(encode(reply))
        replies.flush()


class _Identified(msgspec.Struct):
    id: int = -1


def _id_of(line: bytes) -> int:
    """The id in a line that is no request otherwise, so that who waits for it hears; -1 without one."""
    try:
        return msgspec.json.decode(line, type=_Identified).id
    except (msgspec.DecodeError, UnicodeDecodeError):
        return -1


def main() -> int:
    processes.die_with_parent()
    processes.give_way()
    processes.keep_freed_memory()
    # An interrupt is for the worker, which ends this process by closing its stdin.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    incoming, outgoing = processes.claim_stdio()
    # Imported late: the protocol must be out of every library's reach first.
    from app.engine.profiling import Profiler

    child = Child(Profiler())
    try:
        with os.fdopen(incoming, "rb") as requests, os.fdopen(outgoing, "wb") as replies:
            replies.write(encode(ProfilerReady(os.getpid())))
            replies.flush()
            serve(requests, replies, child.answer)
    except BrokenPipeError:
        pass  # whoever asked is gone
    return 0


if __name__ == "__main__":
    sys.exit(main())
