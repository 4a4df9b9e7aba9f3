"""A guest: the process in which one own implementation is built, called and timed.

It stops nothing and watches nobody: its worker stops it between turns, and ends it when it takes too long,
too much memory, or prints without end.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from app.core.own import OwnFile
from app.engine import processes
from app.engine.own import protocol
from app.engine.own.protocol import (
    Checked,
    GuestReady,
    Refused,
    Reply,
    Request,
    Timed,
    decode_request,
    encode,
)

if TYPE_CHECKING:
    from app.engine.inputs import Forward, Inputs
    from app.engine.own.conduct import Conduct
    from app.engine.own.loading import OwnImplementation
    from app.engine.sampling import Block, Pace
    from app.engine.stopwatch import Stopwatch

COMPILER = "torch._dynamo"
"""Loaded by a file that compiles: a watched call would not run what was compiled."""

LOOK_EVERY, LOOK_SELDOM = 20, 200
"""Turns between two close looks, the second where one takes long."""


@dataclass
class Prepared:
    """A workload with what is called for it: the user's, the baseline (None for none), and one to run up with."""

    inputs: Inputs
    watch: Stopwatch
    call: Forward
    pace: Pace
    beside: tuple[Forward, Pace] | None
    other: Forward
    turns: int = 0


class Guest:
    """Answers requests. Guards the user's file, once it is loaded, and what was prepared last."""

    def __init__(self) -> None:
        self._file: OwnFile | None = None
        self._own: OwnImplementation | None = None
        self._had_compiler = False
        self._library: str | None = None
        self._conduct: Conduct | None = None
        self._prepared: Prepared | None = None

    def answer(self, request: Request) -> Reply:
        from app.engine.own.loading import explained

        try:
            if isinstance(request, protocol.Prepare):
                return self._prepare(request)
            if isinstance(request, protocol.Take):
                return self._take(request)
            return self._check(request)
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            failure = explained(error, self._file)
            # The traceback's frames hold the tensors that did not fit.
            error.__traceback__ = None
            return Refused(request.id, failure.state, failure.reason, failure.remedy)

    def _prepare(self, request: protocol.Prepare) -> Reply:
        import torch

        from app.engine import process_state, sampling
        from app.engine.implementations import native, sdpa
        from app.engine.inputs import make_inputs
        from app.engine.inspection import has_denormals
        from app.engine.own.conduct import Conduct, check_output
        from app.engine.own.loading import OwnImplementation
        from app.engine.stopwatch import stopwatch_for

        workload = request.workload
        self._prepared = None
        process_state.fix_threads()
        if request.threads:
            torch.set_num_threads(request.threads)
        torch.set_grad_enabled(workload.backward)
        # PyTorch as it is before any of the user's code ran: every later look is held against it.
        self._conduct = conduct = self._conduct or Conduct()
        if self._own is None:
            self._file = request.own
            self._had_compiler = COMPILER in sys.modules
            self._own = OwnImplementation(request.own)
        self._own.unsupported(workload)
        inputs = make_inputs(workload, request.seed)
        conduct.begin(inputs)
        forward = self._own.prepare(workload, inputs)
        output = check_output(forward(), inputs)
        denormal = "the output" if has_denormals(output) else ""
        del output
        call = inputs.call(forward)
        call()
        watch = stopwatch_for(torch.device(workload.device))
        watch.synchronise()
        conduct.look_closely()
        if not denormal and (self._had_compiler or COMPILER not in sys.modules):
            denormal = _denormals_inside(call, inputs)
        seconds = sampling.warm_up(call, watch)
        conduct.look_closely()
        pace = sampling.pace_for(seconds)
        beside, without = self._baseline(request, inputs, watch)
        other = native if request.baseline == "sdpa" else sdpa
        run_up = inputs.call(other.prepare(workload, inputs))
        self._prepared = Prepared(inputs, watch, call, pace, beside, run_up)
        turn_s = 4 * (pace.calls + 1) * seconds + sampling.RUN_UP_S
        return protocol.Prepared(request.id, turn_s, denormal, without)

    def _baseline(
        self, request: protocol.Prepare, inputs: Inputs, watch: Stopwatch
    ) -> tuple[tuple[Forward, Pace] | None, str]:
        """The baseline ready to be timed, or why it is not: its failure is not the user's."""
        from app.engine import sampling
        from app.engine.failures import explain
        from app.engine.implementations import shipped

        if not request.baseline:
            return None, ""
        implementation = shipped()[request.baseline]
        try:
            if implementation.needs == "extension":
                self._load_extension(request.library, request.library_key)
            call = inputs.call(implementation.prepare(request.workload, inputs))
            call()
            return (call, sampling.pace_for(sampling.warm_up(call, watch))), ""
        except Exception as error:
            return None, explain(error).reason

    def _load_extension(self, library: str | None, key: str) -> None:
        from self_attention_ext._library import load

        if library is None:
            raise RuntimeError("the extension is not built yet")
        if self._library is None:
            load(Path(library), key)
            self._library = library
        elif self._library != library:
            raise RuntimeError("the extension was rebuilt, and this process holds the old one")

    def _take(self, request: protocol.Take) -> Reply:
        from app.engine import sampling
        from app.engine.own.conduct import check_output

        prepared, conduct = self._prepared, self._conduct
        assert prepared is not None
        assert conduct is not None
        watch = prepared.watch
        sampling.run_up(prepared.other, watch)
        own = beside = None
        # Whoever comes first finds other caches than whoever comes second.
        for mine in (True, False) if prepared.turns % 2 else (False, True):
            if mine:
                own = sampling.time_block(prepared.call, prepared.pace, watch)
            elif prepared.beside is not None:
                beside = sampling.time_block(*prepared.beside, watch)
        assert own is not None
        prepared.turns += 1
        conduct.look()
        if prepared.turns % (LOOK_EVERY if conduct.is_cheap else LOOK_SELDOM) == 0:
            check_output(prepared.call(), prepared.inputs)
            conduct.look_closely()
        return Timed(request.id, _block(own), None if beside is None else _block(beside))

    def _check(self, request: protocol.Check) -> Reply:
        from app.engine import accuracy
        from app.engine.inputs import on_batch_slice

        assert self._prepared is not None
        assert self._own is not None
        assert self._conduct is not None
        inputs = self._prepared.inputs
        if request.batch != inputs.workload.batch:
            inputs = on_batch_slice(inputs, request.batch)
        measured = accuracy.run_once(self._own.prepare, inputs)
        self._conduct.look()
        with open(request.path, "wb") as file:
            for tensor in measured.values():
                tensor.contiguous().numpy().tofile(file)
        return Checked(request.id, [(name, list(tensor.shape)) for name, tensor in measured.items()])


def _block(block: Block) -> protocol.TimedBlock:
    return protocol.TimedBlock(block.calls, block.seconds, block.at_s, block.device_seconds)


def _denormals_inside(call: Callable[[], object], inputs: Inputs) -> str:
    """Where denormals pass through a call, as far as it can be watched."""
    from app.engine.inspection import inspect_call

    try:
        return inspect_call(call, (inputs.x, *inputs.parts.values())).denormal_in or ""
    except Exception:
        # Not every operator of a user's own can be watched; that is no fault.
        return ""


def serve(requests: BinaryIO, replies: BinaryIO, answer: Callable[[Request], Reply]) -> None:
    """Answer each line of `requests` until they end."""
    while line := requests.readline():
        reply = answer(decode_request(line))
        replies.write(encode(reply))
        replies.flush()


def _keep_apart() -> None:
    """A group of its own, so that it can be stopped with all its children; the first to go without memory.

    Not a session of its own: a group whose worker died while it was stopped is then ended by the system.
    """
    if sys.platform == "win32":
        return
    with contextlib.suppress(OSError):
        os.setpgid(0, 0)
    import resource

    # Gigabytes of core file for a crash that is expected would fill the disk.
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if sys.platform == "linux":
        # What its children leave behind stays below it, where it is found and stopped.
        import ctypes

        pr_set_child_subreaper = 36
        ctypes.CDLL(None).prctl(pr_set_child_subreaper, 1, 0, 0, 0)
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")


def main() -> int:
    processes.die_with_parent()
    _keep_apart()
    processes.keep_freed_memory()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    incoming, outgoing = processes.claim_stdio()
    # Whatever is printed goes to one pipe, which the worker reads; a crash says there where it was.
    import faulthandler

    faulthandler.enable(all_threads=False)
    import torch  # noqa: F401

    # Loaded before any of the user's code: what is patched later is not what measures.
    import app.engine.accuracy
    import app.engine.implementations
    import app.engine.inputs
    import app.engine.inspection
    import app.engine.own.conduct
    import app.engine.own.loading
    import app.engine.sampling
    import app.engine.stopwatch  # noqa: F401

    guest = Guest()
    gone = contextlib.suppress(BrokenPipeError, msgspec.DecodeError)
    with gone, os.fdopen(incoming, "rb") as requests, os.fdopen(outgoing, "wb") as replies:
        replies.write(encode(GuestReady(os.getpid())))
        replies.flush()
        serve(requests, replies, guest.answer)
    # Threads that the user left behind must not hold the process.
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
