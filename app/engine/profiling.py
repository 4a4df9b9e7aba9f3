"""Profile passes: one call under torch.profiler, its counts, its memory and its trace.

For a process of its own (see `profiler_child`): one that has profiled is slower ever after.
"""

from __future__ import annotations

import contextlib
import gc
import gzip
import platform
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch.autograd import Variable
from torch.autograd.profiler import record_function
from torch.profiler import ProfilerActivity, profile

from app.core.measurements import Counts, Memory
from app.core.profiler_faults import LOST_RECORDS, explain
from app.core.trace import (
    NO_RECORD,
    Trace,
    TraceError,
    count_calls,
    operator_names,
    peak_bytes,
    read,
    relabel,
    window_of,
)

MARKER = "attnscope.call"
WARMUP_CALLS = 3
ATTEMPTS = 3
"""Passes before launches without a device record are shown as such."""
SACRIFICIAL_LAUNCHES = 16
"""The first records of a session can be lost: these are launched to be."""
COLLECT_EVERY = 10
TIMED_CALLS = 11
TIMED_S = 0.25
"""What profiling costs is the median of as many calls under the profiler as fit, at least one."""
MAX_TRACE_BYTES = 24_000_000
"""Largest gzipped trace kept; counts do not depend on keeping it."""


class ProfilingError(RuntimeError):
    """A pass that gave nothing to count, in one or two sentences."""


@dataclass(frozen=True)
class Profiled:
    """One call, profiled. `seconds` is the median wall time of a call under the profiler, of `timed` calls;
    `trace_gz` gzipped Chrome JSON.

    `operators` are the names of all operators it dispatched.
    """

    counts: Counts
    memory: Memory
    seconds: float
    trace_gz: bytes
    operators: frozenset[str] = frozenset()
    timed: int = 1


@dataclass(frozen=True)
class _Pass:
    json: bytes
    trace: Trace
    seconds: float
    engine_entries: int
    labels: dict[str, str]


class Profiler:
    """Runs profile passes one after the other, whoever asks, each wholly in the thread that asks.

    Guards what belongs to the process: that the first pass is thrown away, that sessions never overlap (torch
    would return an empty one without a word), and that what sessions leave behind is collected.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions = 0

    def profile(
        self,
        call: Callable[[], object],
        *,
        backward: bool = False,
        device: str = "cpu",
        title: str = "one call",
        origin: Mapping[str, Any] | None = None,
        stacks: bool = False,
        release: Callable[[], object] = lambda: None,
    ) -> Profiled:
        """Warm `call` up outside the profiler, then profile one call of it.

        `backward` says that it includes a backward pass, `device` ("cpu" or "cuda:N") where it computes. In
        the trace the call is named `title`, and `origin` (plain data, such as the environment) stands beside
        the events. `stacks` records Python frames too, which slows the call down a lot. `release` frees what
        the last call left behind for its caller, such as gradients: it belongs to the next call's memory.

        Raises:
            ProfilingError: another session is open in this process, or the pass recorded nothing.
            Exception: whatever `call` raises.
        """
        with self._lock:
            _refuse_open_session()
            on_device = device.startswith("cuda")
            for _ in range(WARMUP_CALLS):
                call()
            _synchronise(device, on_device)
            if self._sessions == 0:
                self._session(call, device)
            counts, taken = self._counted(call, device, on_device, backward, stacks)
            memory = self._memory(call, device, on_device, release)
            timed = [taken.seconds, *self._timed(call, device, taken.seconds)]
            window = window_of(taken.trace, MARKER)
            names = {MARKER: title, **taken.labels}
            written = relabel(taken.json, names, {**(origin or {}), "call": title}, title)
            return Profiled(
                counts=counts,
                memory=memory,
                seconds=statistics.median(timed),
                timed=len(timed),
                trace_gz=_compressed(written),
                operators=operator_names(taken.trace, window),
            )

    def _counted(
        self, call: Callable[[], object], device: str, on_device: bool, backward: bool, stacks: bool
    ) -> tuple[Counts, _Pass]:
        for _ in range(ATTEMPTS):
            taken = self._session(call, device, stacks=stacks)
            window = window_of(taken.trace, MARKER)
            if not operator_names(taken.trace, window):
                raise ProfilingError(
                    "The profiled call ran no operator in its own thread: work of other threads is not "
                    "recorded, so there is nothing to count."
                )
            counts = count_calls(
                taken.trace, window, backward=backward, device=on_device, engine_entries=taken.engine_entries
            )
            if counts.verified or not on_device:
                return counts, taken
        note = f"{counts.note}; after {ATTEMPTS} passes."
        if NO_RECORD in counts.note:
            note = f"{note} {LOST_RECORDS}"
        return msgspec.structs.replace(counts, note=note), taken

    def _timed(self, call: Callable[[], object], device: str, seconds: float) -> list[float]:
        """Wall times of more calls under the profiler, in a session whose events nobody reads."""
        on_device = device.startswith("cuda")
        calls = min(TIMED_CALLS - 1, int(TIMED_S / max(seconds, 1e-9)))
        if calls < 1:
            return []
        activities = self._begin(on_device)
        found = []
        with profile(activities=activities):
            for _ in range(calls):
                _synchronise(device, on_device)
                begun = time.perf_counter()
                call()
                _synchronise(device, on_device)
                found.append(time.perf_counter() - begun)
        return found

    def _memory(
        self, call: Callable[[], object], device: str, on_device: bool, release: Callable[[], object]
    ) -> Memory:
        if on_device:
            release()
            return Memory(peak_bytes=_allocator_peak(call, device))
        taken = self._session(call, device, memory=True)
        return Memory(peak_bytes=peak_bytes(taken.trace, window_of(taken.trace, MARKER)))

    def _begin(self, on_device: bool) -> list[ProfilerActivity]:
        """Count a session; what it is to record."""
        self._sessions += 1
        if self._sessions % COLLECT_EVERY == 0:
            gc.collect()
        return [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * on_device

    def _session(
        self, call: Callable[[], object], device: str, *, memory: bool = False, stacks: bool = False
    ) -> _Pass:
        """One session around one call, exported once and read back."""
        on_device = device.startswith("cuda")
        activities = self._begin(on_device)
        try:
            session = profile(activities=activities, profile_memory=memory, with_stack=stacks)
            with _plain_labels() as labels, _engine_entries() as entries, session:
                if on_device:
                    _sacrifice(device)
                with record_function(MARKER):
                    entries.count = 0
                    begun = time.perf_counter()
                    result = call()
                    _synchronise(device, on_device)
                    seconds = time.perf_counter() - begun
                    entered = entries.count
                    # Freed inside the range, as by a caller that does not keep it.
                    del result
        except RuntimeError as error:
            if (sentence := explain(str(error))) is not None:
                raise ProfilingError(sentence) from error
            raise
        text = _exported(session)
        try:
            trace = read(text, "the profiler's trace")
        except TraceError as error:
            raise ProfilingError(str(error)) from None
        if not len(trace.complete):
            raise ProfilingError(
                "The profiler recorded no event at all: another session may be open in this process."
            )
        return _Pass(text, trace, seconds, entered, labels)


def _refuse_open_session() -> None:
    enabled = getattr(torch.autograd, "_profiler_enabled", None)
    if enabled is not None and enabled():
        raise ProfilingError(
            "Another profiler session is open in this process, and two at once record nothing."
        )


def _synchronise(device: str, on_device: bool) -> None:
    if on_device:
        torch.cuda.synchronize(device)


def _sacrifice(device: str) -> None:
    number = torch.zeros(1, device=device)
    for _ in range(SACRIFICIAL_LAUNCHES):
        number.add_(1)
    torch.cuda.synchronize(device)


def _exported(session: profile) -> bytes:
    """The session's trace as JSON. Exported exactly once: a second export raises."""
    with tempfile.TemporaryDirectory(prefix="attnscope-") as folder:
        path = Path(folder) / "trace.json"
        session.export_chrome_trace(str(path))
        try:
            text = path.read_bytes()
        except OSError:
            text = b""
    if not text:
        raise ProfilingError("The profiler's export wrote nothing.")
    return text


def _compressed(text: bytes) -> bytes:
    """Gzipped; empty if too large to keep."""
    packed = gzip.compress(text, compresslevel=6, mtime=0)
    return packed if len(packed) <= MAX_TRACE_BYTES else b""


def _allocator_peak(call: Callable[[], object], device: str) -> int | None:
    """Bytes that the device's allocator gave out at the peak of one call beyond those before it."""
    try:
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        result = call()
        torch.cuda.synchronize(device)
        peak = torch.cuda.max_memory_allocated(device)
    except (RuntimeError, AttributeError):
        # Other allocators keep no statistics.
        return None
    del result
    return max(peak - before, 0)


@dataclass
class _Entries:
    count: int = 0
    depth: int = field(default=0, repr=False)


class _CountingEngine:
    """The autograd engine's door from Python, with a counter; a pass inside another is not counted."""

    def __init__(self, engine: Any, entries: _Entries) -> None:
        self._engine = engine
        self._entries = entries

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def run_backward(self, *args: Any, **kwargs: Any) -> Any:
        entries = self._entries
        entries.count += entries.depth == 0
        entries.depth += 1
        try:
            return self._engine.run_backward(*args, **kwargs)
        finally:
            entries.depth -= 1


@contextlib.contextmanager
def _engine_entries() -> Iterator[_Entries]:
    """Counts how often Python enters the autograd engine. Stays 0 where torch has another door."""
    entries = _Entries()
    engine = getattr(Variable, "_execution_engine", None)
    if engine is None:
        yield entries
        return
    Variable._execution_engine = _CountingEngine(engine, entries)  # type: ignore[assignment]
    try:
        yield entries
    finally:
        Variable._execution_engine = engine


@contextlib.contextmanager
def _plain_labels() -> Iterator[dict[str, str]]:
    """Gives ranges whose name torch would spoil a plain id; yields id -> name.

    Depending on its version torch breaks the file on a quote, turns a backslash around, drops a newline and
    makes of a name with any letter beyond ASCII "unknown".
    """
    labels: dict[str, str] = {}
    original = record_function.__init__

    def named_plainly(self: record_function, name: str, args: str | None = None) -> None:
        if isinstance(name, str) and not _is_plain(name):
            # Numbered by name, so that one name stays one name.
            identity = next((known for known, given in labels.items() if given == name), None)
            if identity is None:
                identity = f"attnscope.label_{len(labels) + 1}"
                labels[identity] = name
            name = identity
        original(self, name, args)

    record_function.__init__ = named_plainly  # type: ignore[method-assign]
    try:
        yield labels
    finally:
        record_function.__init__ = original  # type: ignore[method-assign]


def _is_plain(name: str) -> bool:
    return name.isascii() and name.isprintable() and not set(name) & {'"', "\\"}


def environment_facts() -> dict[str, Any]:
    """What a reader of a trace wants to know of where it was recorded; plain data."""
    return {
        "torch": str(torch.__version__),
        "cuda": torch.version.cuda,
        "python": platform.python_version(),
        "system": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        "threads": torch.get_num_threads(),
    }
