"""What one call did, from its trace: operators, launches, copies, memory."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np

from app.core.measurements import Counts, Phased
from app.core.trace.matching import match, with_work
from app.core.trace.model import Bools, Ints, Trace, TraceError
from app.core.trace.nesting import inside, top_level
from app.core.trace.vocabulary import ENGINE_RANGE, Kind, Launch, is_operator

_NAMED = 3

NO_RECORD = "no device record"
NOTHING_RECORDED = (
    "neither a call to the device nor work of it was recorded, so there is nothing to count: the profiler "
    "did not reach the device, or the call computed elsewhere"
)


@dataclass(frozen=True)
class Window:
    """The part of a trace that is one call: nanoseconds as in `Complete.start`."""

    start: int
    end: int


def window_of(trace: Trace, label: str) -> Window:
    """The range recorded under `label`. `TraceError` unless there is exactly one."""
    events = trace.complete
    annotations = events.of(Kind.ANNOTATION)
    chosen = [i for i in annotations if trace.name_of(i) == label and events.timed[i]]
    if len(chosen) != 1:
        raise TraceError(
            f"{trace.source.name} has {len(chosen)} ranges “{label}” where one marks the call to count."
        )
    return Window(int(events.start[chosen[0]]), int(events.end[chosen[0]]))


def whole(trace: Trace) -> Window:
    timed = trace.complete.timed
    if not timed.any():
        return Window(0, 0)
    return Window(int(trace.complete.start[timed].min()), int(trace.complete.end[timed].max()))


def operators(trace: Trace, window: Window) -> Ints:
    """Dispatched operators within `window`, in every recorded thread, nested ones included."""
    is_op = np.array([is_operator(name) for name in trace.names] or [False], dtype=np.bool_)
    chosen = trace.complete.of(Kind.CPU_OP)
    return _within(trace, chosen[is_op[trace.complete.name[chosen]]], window)


def operator_names(trace: Trace, window: Window) -> frozenset[str]:
    return frozenset(trace.names[i] for i in np.unique(trace.complete.name[operators(trace, window)]))


def count_calls(
    trace: Trace,
    window: Window | None = None,
    *,
    backward: bool = False,
    device: bool = False,
    engine_entries: int | None = None,
) -> Counts:
    """Counts of the one call in `window` (by default the whole trace).

    The backward part is what runs inside the autograd engine's own ranges, in whichever thread; the forward
    part is everything else, so a gradient that Python seeds before it enters the engine counts as forward.
    The two add up to the whole. `python_calls.forward` are operators that lie in no other operator of the
    forward part; `python_calls.backward` is how often Python entered the engine: `engine_entries` where the
    caller counted them, else the least number that explains the engine's ranges. Backward counts are null for
    a call without a backward pass (`backward` false) that never entered the engine.

    With `device`, launches are counted too: calls that launch a kernel, matched to device records by
    correlation id. `verified` says that every launch has a record and every kernel a call; `note` names what
    has not. Without, all of that is null: there is no such thing on a CPU.
    """
    window = window or whole(trace)
    ops = operators(trace, window)
    in_engine = _in_engine(trace, ops)
    forward, engine = ops[~in_engine], ops[in_engine]
    entries = engine_entries or _engine_entries(trace, window)
    has_backward = backward or entries > 0 or len(engine) > 0
    counts = Counts(
        python_calls=Phased(_top_level(trace, forward), entries if has_backward else None),
        operator_calls=Phased(len(forward), len(engine) if has_backward else None),
    )
    return _with_device(trace, window, counts, has_backward) if device else counts


def _within(trace: Trace, events: Ints, window: Window) -> Ints:
    start, end = trace.complete.start[events], trace.complete.end[events]
    return events[trace.complete.timed[events] & (start >= window.start) & (end <= window.end)]


def _by_thread(trace: Trace, events: Ints) -> list[Ints]:
    threads = trace.complete.thread[events]
    return [events[threads == thread] for thread in np.unique(threads)]


def _top_level(trace: Trace, events: Ints) -> int:
    start, duration = trace.complete.start, trace.complete.duration
    return sum(int(top_level(start[own], duration[own]).sum()) for own in _by_thread(trace, events))


# ---- the autograd engine -------------------------------------------------------------------------------


def _engine_ranges(trace: Trace) -> Ints:
    """The outermost ranges: a backward pass started within another one belongs to it."""
    events = trace.complete
    is_range = np.array([name.startswith(ENGINE_RANGE) for name in trace.names] or [False], dtype=np.bool_)
    chosen = events.of(Kind.CPU_OP)
    chosen = chosen[is_range[events.name[chosen]] & events.timed[chosen]]
    outer = [own[top_level(events.start[own], events.duration[own])] for own in _by_thread(trace, chosen)]
    return np.concatenate(outer) if outer else chosen


def _in_engine(trace: Trace, chosen: Ints) -> Bools:
    events = trace.complete
    ranges = _engine_ranges(trace)
    found = np.zeros(len(chosen), dtype=np.bool_)
    for own in _by_thread(trace, ranges):
        mine = events.thread[chosen] == events.thread[own[0]]
        at = chosen[mine]
        found[mine] = inside(events.start[at], events.end[at], events.start[own], events.end[own])
    return found


def _engine_entries(trace: Trace, window: Window) -> int:
    """The least number of entries that explains the ranges.

    Within one backward pass a thread runs its nodes by falling sequence number, since a node's inputs were
    made before it; nodes without a number (accumulation into a leaf) run as soon as they can. So a number
    that does not fall belongs to a new entry.
    """
    events = trace.complete
    most = 0
    for own in _by_thread(trace, _within(trace, _engine_ranges(trace), window)):
        ordered = own[np.argsort(events.start[own], kind="stable")]
        sequence = events.sequence[ordered]
        sequence = sequence[sequence >= 0]
        most = max(most, 1 + int((np.diff(sequence) >= 0).sum()))
    return most


# ---- the device ----------------------------------------------------------------------------------------


def _with_device(trace: Trace, window: Window, counts: Counts, has_backward: bool) -> Counts:
    events = trace.complete
    matching = match(trace)
    work, call = matching.work, matching.call_of_work
    kernels = work[events.kind[work] == Kind.KERNEL]

    started = (events.start[matching.calls] >= window.start) & (events.start[matching.calls] <= window.end)
    started &= events.timed[matching.calls]
    calls, launch = matching.calls[started], matching.launch[started]
    # CUPTI names calls it does not know INVALID: what owns a kernel has launched it, whatever its name.
    launches = calls[(launch == Launch.KERNEL) | ((launch == Launch.NONE) & with_work(trace, calls, kernels))]
    graphs = calls[launch == Launch.GRAPH]

    own = np.isin(call, calls)
    unasked = (call < 0) & (events.start[work] >= window.start) & (events.start[work] <= window.end)
    mine = work[own | unasked]
    orphans = work[unasked & (events.kind[work] == Kind.KERNEL)]
    my_kernels = mine[events.kind[mine] == Kind.KERNEL]
    in_graphs = int(np.isin(call[events.kind[work] == Kind.KERNEL], graphs).sum())

    if not (len(calls) or len(mine)):
        return msgspec.structs.replace(counts, note=NOTHING_RECORDED)
    lost = np.concatenate(
        [launches[~with_work(trace, launches, kernels)], graphs[~with_work(trace, graphs, work)]]
    )
    in_engine = _in_engine(trace, launches)
    backward = int(in_engine.sum())
    notes = []
    if len(lost):
        total = len(launches) + len(graphs)
        notes.append(f"{len(lost)} of {total} launches have {NO_RECORD}: {_named(trace, lost)}")
    if len(orphans):
        which = ", ".join(trace.name_of(int(i))[:60] for i in orphans[:_NAMED])
        one = len(orphans) == 1
        notes.append(
            f"{len(orphans)} {'kernel has' if one else 'kernels have'} no launch call, unattributed: {which}"
            + (" …" if len(orphans) > _NAMED else "")
        )
    if in_graphs:
        notes.append(
            f"{len(graphs)} graph launch{'' if len(graphs) == 1 else 'es'} started {in_graphs} kernels more"
        )
    if trace.incomplete:
        notes.append("the trace is incomplete")
    return Counts(
        python_calls=counts.python_calls,
        operator_calls=counts.operator_calls,
        kernel_launches=Phased(len(launches) - backward, backward if has_backward else None),
        memcpys=int((events.kind[mine] == Kind.MEMCPY).sum()),
        memsets=int((events.kind[mine] == Kind.MEMSET).sum()),
        graph_launches=len(graphs),
        kernel_time_s=int(events.duration[my_kernels].sum()) / 1e9 if len(my_kernels) else None,
        verified=not (len(lost) or len(orphans) or trace.incomplete),
        note="; ".join(notes),
    )


def _named(trace: Trace, calls: Ints) -> str:
    shown = []
    for event in calls[:_NAMED]:
        operator = launching_operator(trace, int(event))
        where = f" in {operator}" if operator else ""
        correlation = int(trace.complete.correlation[event])
        shown.append(f"{trace.name_of(event)}{where} (correlation {correlation})")
    return ", ".join(shown) + (" …" if len(calls) > _NAMED else "")


def launching_operator(trace: Trace, call: int) -> str:
    """The innermost operator around a call in its thread; "" if there is none."""
    events = trace.complete
    around = (
        (events.kind == Kind.CPU_OP)
        & events.timed
        & (events.thread == events.thread[call])
        & (events.start <= events.start[call])
        & (events.end >= events.end[call])
    )
    candidates = [i for i in np.flatnonzero(around).tolist() if is_operator(trace.name_of(i))]
    return trace.name_of(max(candidates, key=lambda i: (events.start[i], i))) if candidates else ""


# ---- memory --------------------------------------------------------------------------------------------

CPU = 0


def peak_bytes(trace: Trace, window: Window | None = None, device_type: int = CPU) -> int | None:
    """Most bytes that the call had allocated at one time; null if the trace did not record memory.

    Only what the call itself allocated: a block from before it counts neither while it lives nor when it is
    freed.
    """
    records = trace.memory
    if not len(records) and not trace.header.get("profile_memory"):
        return None
    window = window or whole(trace)
    chosen = (records.time >= window.start) & (records.time <= window.end)
    chosen &= records.device_type == device_type
    alive: dict[int, int] = {}
    now = peak = 0
    for address, size in zip(records.address[chosen].tolist(), records.bytes[chosen].tolist(), strict=True):
        if size > 0:
            alive[address] = size
            now += size
            peak = max(peak, now)
        else:
            now -= alive.pop(address, 0)
    return peak
