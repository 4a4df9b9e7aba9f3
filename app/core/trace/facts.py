"""What is true of a trace, as plain data: the document that `attnscope trace FILE --json` prints.

Times are microseconds. What describes the file on disk is in `Trace.source`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from app.core.trace.matching import Matching, match, with_work
from app.core.trace.model import Ints, Trace
from app.core.trace.nesting import busy, starting_early, top_level
from app.core.trace.vocabulary import DEVICE_WORK, Kind, Launch

MOST_COMMON_CALLS = 8
TOP_KERNELS = 5
NO_CALL = "(no call)"


def microseconds(ns: int) -> int | float:
    """Exact to the nanosecond; whole numbers stay whole."""
    return ns // 1000 if ns % 1000 == 0 else ns / 1000


def counts_by_name(trace: Trace, events: Ints) -> list[tuple[str, int]]:
    """Names with their counts, most frequent first, then by name."""
    ids, counts = np.unique(trace.complete.name[events], return_counts=True)
    named = [(trace.names[i], int(count)) for i, count in zip(ids, counts, strict=True)]
    return sorted(named, key=lambda item: (-item[1], item[0]))


def sums_by_name(trace: Trace, events: Ints) -> dict[str, tuple[int, int]]:
    """Name -> (count, sum of durations in nanoseconds)."""
    if not len(events):
        return {}
    ids, inverse = np.unique(trace.complete.name[events], return_inverse=True)
    counts = np.bincount(inverse)
    # Not bincount's weights, which are doubles.
    sums = np.zeros(len(ids), dtype=np.int64)
    np.add.at(sums, inverse, trace.complete.duration[events])
    return {trace.names[i]: (int(n), int(t)) for i, n, t in zip(ids, counts, sums, strict=True)}


def facts(trace: Trace) -> dict[str, Any]:
    """Counts, times and matches of the whole trace."""
    matching = match(trace)
    timed = np.flatnonzero(trace.complete.timed)
    without_marker = timed[trace.complete.kind[timed] != Kind.PROFILER]
    return {
        "top_level_keys": [key for key in trace.header if key != "traceEvents"],
        "devices_listed": trace.devices_listed,
        "events": _events(trace),
        "timestamp_resolution": "1 us" if trace.whole_microseconds else "1 ns",
        "distinct_pids": trace.process_ids,
        "span_us": _span(trace, without_marker),
        "span_with_profiler_marker_us": _span(trace, timed),
        "first_event_ts_us": _first_start(trace, without_marker),
        "kernels": _kernels(trace),
        "memcpy": _copies(trace, Kind.MEMCPY),
        "memset": _copies(trace, Kind.MEMSET),
        "streams": _streams(trace),
        "gpu": _devices(trace),
        "top_kernels": _top_kernels(trace),
        "launch_calls": _launch_calls(trace, matching),
        "matching": _matching(trace, matching),
        "runtime_calls": _runtime_calls(trace, matching.calls),
        **_operators(trace, matching),
        "flows": _flows(trace),
        "memory_instants": len(trace.memory),
        "profiler_steps": _profiler_steps(trace),
    }


def _first_start(trace: Trace, events: Ints) -> str | None:
    """Text, since a double cannot hold it; null without events."""
    if not len(events):
        return None
    ns = trace.origin_ns + int(trace.complete.start[events].min())
    return f"{ns // 1000}.{ns % 1000:03d}" if ns % 1000 else str(ns // 1000)


def _span(trace: Trace, events: Ints) -> int | float:
    if not len(events):
        return 0
    return microseconds(int(trace.complete.end[events].max() - trace.complete.start[events].min()))


def _events(trace: Trace) -> dict[str, Any]:
    categories = np.bincount(trace.complete.category, minlength=len(trace.categories))
    return {
        "total": trace.events,
        "by_phase": trace.phases,
        "complete_by_category": {
            trace.categories[i]: int(categories[i])
            for i in np.argsort(-categories, kind="stable")
            if categories[i]
        },
    }


def _kernels(trace: Trace) -> dict[str, Any]:
    events = trace.complete
    kernels = events.of(Kind.KERNEL)
    timed = kernels[events.timed[kernels]]
    early = sum(
        starting_early(events.start[group], events.end[group]) for _, group in _by_stream(trace, timed)
    )
    return {
        "total": len(kernels),
        "distinct_names": len(np.unique(events.name[kernels])),
        "time_us": microseconds(int(events.duration[kernels].sum())),
        "zero_duration": int(((events.duration[kernels] == 0) & events.measured[kernels]).sum()),
        "starting_before_an_earlier_one_on_the_same_stream_ends": early,
    }


def _copies(trace: Trace, kind: Kind) -> dict[str, Any]:
    chosen = trace.complete.of(kind)
    return {
        "total": len(chosen),
        "time_us": microseconds(int(trace.complete.duration[chosen].sum())),
        "by_name": dict(counts_by_name(trace, chosen)),
    }


def _by_stream(trace: Trace, events: Ints) -> list[tuple[tuple[int, int], Ints]]:
    """((device, stream), events), in order of device and stream."""
    rows = np.stack([trace.complete.device[events], trace.complete.stream[events]], axis=1)
    keys, inverse = np.unique(rows, axis=0, return_inverse=True)
    inverse = inverse.reshape(-1)
    return [((int(d), int(s)), events[inverse == i]) for i, (d, s) in enumerate(keys)]


def _streams(trace: Trace) -> list[dict[str, Any]]:
    events = trace.complete
    rows = []
    for (device, stream), group in _by_stream(trace, events.of(*DEVICE_WORK)):
        row: dict[str, Any] = {"device": device, "stream": stream}
        for kind, count, time in (
            (Kind.KERNEL, "kernels", "kernel_time_us"),
            (Kind.MEMCPY, "memcpy", "memcpy_time_us"),
            (Kind.MEMSET, "memset", "memset_time_us"),
        ):
            chosen = group[events.kind[group] == kind]
            row[count] = len(chosen)
            row[time] = microseconds(int(events.duration[chosen].sum()))
        rows.append(row)
    return rows


def _devices(trace: Trace) -> list[dict[str, Any]]:
    events = trace.complete
    work = events.of(*DEVICE_WORK)
    rows = []
    for device in np.unique(events.device[work]):
        mine = work[events.device[work] == device]
        row: dict[str, Any] = {"device": int(device)}
        for word, chosen in (("kernel", mine[events.kind[mine] == Kind.KERNEL]), ("work", mine)):
            timed = chosen[events.timed[chosen]]
            start, end = events.start[timed], events.end[timed]
            window = int(end.max() - start.min()) if len(timed) else 0
            union = busy(start, end)
            row[f"{word}_window_us"] = microseconds(window)
            row[f"{word}_busy_us"] = microseconds(union)
            row[f"{word}_idle_us"] = microseconds(window - union)
            row[f"{word}_sum_us"] = microseconds(int(events.duration[timed].sum()))
        rows.append(row)
    return rows


def _top_kernels(trace: Trace) -> list[dict[str, Any]]:
    sums = sums_by_name(trace, trace.complete.of(Kind.KERNEL))
    longest = sorted(sums.items(), key=lambda item: (-item[1][1], item[0]))[:TOP_KERNELS]
    return [{"name": name, "count": count, "time_us": microseconds(time)} for name, (count, time) in longest]


def _launch_calls(trace: Trace, matching: Matching) -> dict[str, Any]:
    kernel, graph = matching.of(Launch.KERNEL), matching.of(Launch.GRAPH)
    return {
        "kernel_launch_by_name": dict(counts_by_name(trace, kernel)),
        "kernel_launch_total": len(kernel),
        "graph_launch_by_name": dict(counts_by_name(trace, graph)),
        "graph_launch_total": len(graph),
        "total": len(kernel) + len(graph),
    }


def _matching(trace: Trace, matching: Matching) -> dict[str, Any]:
    events = trace.complete
    work, call = matching.work, matching.call_of_work
    launch_by_event = np.zeros(len(events), dtype=np.uint8)
    launch_by_event[matching.calls] = matching.launch
    launch = np.where(call >= 0, launch_by_event[call], 255) if len(events) else call
    kind = events.kind[work]
    is_kernel = kind == Kind.KERNEL
    kernels = work[is_kernel]
    kernel_launches, graph_launches = matching.of(Launch.KERNEL), matching.of(Launch.GRAPH)
    matched = int(with_work(trace, kernel_launches, kernels).sum())
    per_graph = np.unique(call[is_kernel & (launch == Launch.GRAPH)], return_counts=True)[1]
    by_call = dict(counts_by_name(trace, call[is_kernel & (call >= 0)]))
    if orphans := int((is_kernel & (call < 0)).sum()):
        by_call[NO_CALL] = orphans
    return {
        "kernel_launches_matched": matched,
        "kernel_launches_unmatched": len(kernel_launches) - matched,
        "graph_launches_with_kernels": int(with_work(trace, graph_launches, kernels).sum()),
        "graph_launches_with_any_gpu_work": int(with_work(trace, graph_launches, work).sum()),
        "kernels_from_kernel_launch": int((is_kernel & (launch == Launch.KERNEL)).sum()),
        "kernels_from_graph_launch": int((is_kernel & (launch == Launch.GRAPH)).sum()),
        "kernels_from_other_call": int((is_kernel & (launch == Launch.NONE)).sum()),
        "kernels_without_call": orphans,
        "kernels_without_correlation_id": int((events.correlation[kernels] == 0).sum()),
        "max_kernels_per_graph_launch": int(per_graph.max()) if len(per_graph) else 0,
        "memcpy_from_graph_launch": int(((kind == Kind.MEMCPY) & (launch == Launch.GRAPH)).sum()),
        "memset_from_graph_launch": int(((kind == Kind.MEMSET) & (launch == Launch.GRAPH)).sum()),
        "memcpy_without_call": int(((kind == Kind.MEMCPY) & (call < 0)).sum()),
        "memset_without_call": int(((kind == Kind.MEMSET) & (call < 0)).sum()),
        "kernels_by_call": by_call,
    }


def _runtime_calls(trace: Trace, calls: Ints) -> dict[str, Any]:
    by_name = counts_by_name(trace, calls)
    return {
        "total": len(calls),
        "distinct_names": len(by_name),
        "most_common": [{"name": name, "count": count} for name, count in by_name[:MOST_COMMON_CALLS]],
    }


def _operators(trace: Trace, matching: Matching) -> dict[str, Any]:
    events = trace.complete
    operators = events.of(Kind.CPU_OP)
    launches = {Launch.KERNEL: matching.of(Launch.KERNEL), Launch.GRAPH: matching.of(Launch.GRAPH)}
    shown = events.of(Kind.CPU_OP, Kind.RUNTIME, Kind.ANNOTATION, Kind.PYTHON)
    rows = []
    for thread in np.unique(events.thread[shown]):
        pid, tid = trace.threads[thread]
        mine = shown[events.thread[shown] == thread]
        own = mine[events.kind[mine] == Kind.CPU_OP]
        timed = own[events.timed[own]]
        start, duration = events.start[timed], events.duration[timed]
        rows.append(
            {
                "pid": pid,
                "tid": tid,
                "cpu_ops": len(own),
                "cpu_ops_top_level": int(top_level(start, duration).sum()),
                "cpu_ops_top_level_by_containment": int(top_level(start, duration, contained=True).sum()),
                "runtime_calls": int((events.kind[mine] == Kind.RUNTIME).sum()),
                "kernel_launches": int((events.thread[launches[Launch.KERNEL]] == thread).sum()),
                "graph_launches": int((events.thread[launches[Launch.GRAPH]] == thread).sum()),
                "annotations": int((events.kind[mine] == Kind.ANNOTATION).sum()),
                "python_functions": int((events.kind[mine] == Kind.PYTHON).sum()),
            }
        )
    rows.sort(key=lambda row: (_id_order(row["pid"]), _id_order(row["tid"])))
    return {
        "cpu_ops": {
            "total": len(operators),
            "top_level": sum(row["cpu_ops_top_level"] for row in rows),
            "top_level_by_containment": sum(row["cpu_ops_top_level_by_containment"] for row in rows),
            "distinct_names": len(np.unique(events.name[operators])),
        },
        "cpu_threads": rows,
    }


def _id_order(text: str) -> tuple[bool, int, str]:
    """Ids that are plain numbers by size, after those that are not."""
    plain = text.isascii() and text.isdigit()
    return plain, int(text) if plain else 0, text


def _flows(trace: Trace) -> dict[str, Any]:
    flows = trace.flows
    pairs = np.stack([flows.category, flows.identity], axis=1)
    starts = {(int(c), int(i)) for c, i in pairs[flows.is_start]}
    ends = {(int(c), int(i)) for c, i in pairs[~flows.is_start]}
    return {
        "starts": int(flows.is_start.sum()),
        "ends": int((~flows.is_start).sum()),
        "ids_with_start_and_end": len(starts & ends),
        "ids_with_start_only": len(starts - ends),
        "ids_with_end_only": len(ends - starts),
    }


def _profiler_steps(trace: Trace) -> int:
    events = trace.complete
    elsewhere = np.unique(events.name[events.kind != Kind.GPU_ANNOTATION])
    return sum(trace.names[i].startswith("ProfilerStep") for i in elsewhere)
