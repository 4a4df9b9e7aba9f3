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
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from app.core.own import OwnFile
from app.engine import processes
from app.engine.own.protocol import (
    Check,
    Checked,
    GuestReady,
    Prepare,
    Prepared,
    Refused,
    Reply,
    Request,
    Take,
    Timed,
    decode_request,
    encode,
)

if TYPE_CHECKING:
    from app.engine.implementations import Implementation
    from app.engine.inputs import Forward, Inputs
    from app.engine.own.conduct import Conduct
    from app.engine.own.loading import OwnImplementation
    from app.engine.sampling import Pace
    from app.engine.stopwatch import Stopwatch

LOOK_EVERY, LOOK_SELDOM = 20, 200
"""Blocks between two close looks, the second where one takes long."""


class Guest:
    """Answers requests. Guards what was prepared last."""

    def __init__(self) -> None:
        self._maker: OwnImplementation | Implementation | None = None
        self._file: OwnFile | None = None
        self._conduct: Conduct | None = None
        self._inputs: Inputs | None = None
        self._call: Forward | None = None
        self._other: Forward | None = None
        self._pace: Pace | None = None
        self._watch: Stopwatch | None = None
        self._blocks = 0

    def answer(self, request: Request) -> Reply:
        from app.engine.own.loading import explained

        try:
            if isinstance(request, Prepare):
                return self._prepare(request)
            if isinstance(request, Take):
                return self._take(request)
            return self._check(request)
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            failure = explained(error, self._file)
            error.__traceback__ = None
            return Refused(request.id, failure.state, failure.reason, failure.remedy)

    def _prepare(self, request: Prepare) -> Reply:
        import torch

        from app.engine import process_state, sampling
        from app.engine.implementations import sdpa
        from app.engine.inputs import make_inputs
        from app.engine.inspection import has_denormals
        from app.engine.own.conduct import Conduct, check_output
        from app.engine.stopwatch import stopwatch_for

        workload = request.workload
        self._inputs = self._call = self._pace = None
        process_state.fix_threads()
        if request.threads:
            torch.set_num_threads(request.threads)
        torch.set_grad_enabled(workload.backward)
        # The state of PyTorch before any of the user's code ran: every later look is held against it.
        self._conduct = conduct = self._conduct or Conduct()
        maker = self._load(request)
        maker.unsupported(workload)
        inputs = make_inputs(workload, request.seed)
        conduct.begin(inputs)
        forward = maker.prepare(workload, inputs)
        denormal = ""
        output = check_output(forward(), inputs)
        if has_denormals(output):
            denormal = "the output"
        del output
        call = inputs.call(forward)
        call()
        self._watch = watch = stopwatch_for(torch.device(workload.device))
        watch.synchronise()
        conduct.look_closely()
        if request.own is not None and not denormal:
            denormal = _denormals_inside(call, inputs)
        seconds = sampling.warm_up(call, watch)
        conduct.look_closely()
        self._other = inputs.call(sdpa.prepare(workload, inputs))
        self._inputs, self._call, self._pace = inputs, call, sampling.pace_for(seconds)
        self._blocks = 0
        return Prepared(request.id, seconds, self._pace.calls, denormal)

    def _load(self, request: Prepare) -> OwnImplementation | Implementation:
        if self._maker is None:
            if request.own is None:
                from app.engine.implementations import shipped

                self._maker = shipped()[request.implementation]
            else:
                from app.engine.own.loading import OwnImplementation

                self._file = request.own
                self._maker = OwnImplementation(request.own)
        return self._maker

    def _take(self, request: Take) -> Reply:
        from app.engine import sampling
        from app.engine.own.conduct import check_output

        assert self._call is not None
        assert self._other is not None
        assert self._pace is not None
        assert self._watch is not None
        assert self._conduct is not None
        assert self._inputs is not None
        sampling.run_up(self._other, self._watch)
        block = sampling.time_block(self._call, self._pace, self._watch)
        self._blocks += 1
        self._conduct.look()
        if (
            self._file is not None
            and self._blocks % (LOOK_EVERY if self._conduct.is_cheap else LOOK_SELDOM) == 0
        ):
            check_output(self._call(), self._inputs)
            self._conduct.look_closely()
        return Timed(request.id, block.calls, block.seconds, block.at_s, block.device_seconds)

    def _check(self, request: Check) -> Reply:
        from app.engine import accuracy
        from app.engine.inputs import on_batch_slice

        assert self._inputs is not None
        assert self._maker is not None
        assert self._conduct is not None
        inputs = self._inputs
        if request.batch != inputs.workload.batch:
            inputs = on_batch_slice(inputs, request.batch)
        measured = accuracy.run_once(self._maker.prepare, inputs)
        self._conduct.look()
        with open(request.path, "wb") as file:
            for tensor in measured.values():
                tensor.contiguous().numpy().tofile(file)
        return Checked(request.id, [(name, list(tensor.shape)) for name, tensor in measured.items()])


def _denormals_inside(call: Callable[[], object], inputs: Inputs) -> str:
    """Where denormals pass through a call, as far as it can be watched: a compiled one cannot."""
    from app.engine.inspection import inspect_call

    if "torch._dynamo" in sys.modules:
        return ""
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
