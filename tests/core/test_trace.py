"""Reading traces: well-formed ones."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.trace import count_calls, diff, facts, read
from app.core.trace.nesting import busy, inside, top_level
from tests.core.synthetic_trace import Maker


def small() -> Maker:
    return Maker().op("aten::mm", 1000, 60).launch(1, 1020).op("aten::add", 1100, 20).launch(2, 1105)


def test_object_array_and_gzipped_forms_say_the_same() -> None:
    maker = small()
    as_object = facts(read(maker.json()))
    as_array = facts(read(json.dumps(maker.events).encode()))
    packed = facts(read(gzip.compress(maker.json())))
    assert packed == as_object
    assert as_array == as_object | {"top_level_keys": [], "devices_listed": None}


def test_gzip_is_known_by_its_first_bytes_not_by_the_name(tmp_path) -> None:
    plain = tmp_path / "a.json.gz"
    plain.write_bytes(small().json())
    packed = tmp_path / "a.json"
    packed.write_bytes(gzip.compress(small().json()))
    assert read(plain).source.container == "plain"
    assert read(packed).source.container == "gzip"
    assert facts(read(plain)) == facts(read(packed))


def test_gzip_of_several_members_is_read_to_the_end() -> None:
    text = small().json()
    halves = gzip.compress(text[:100]) + gzip.compress(text[100:]) + b"\0" * 512
    assert facts(read(halves)) == facts(read(text))


def test_keys_may_follow_the_events() -> None:
    events = json.dumps(small().events)
    text = f'{{"traceEvents": {events}, "deviceProperties": [{{"id": 0, "name": "Some GPU"}}]}}'
    assert read(text.encode()).devices_listed == ["Some GPU"]


def test_nanoseconds_survive_beside_a_large_clock() -> None:
    # As a double, 1.7e15 microseconds are a quarter of one apart.
    kernel = '"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7'
    text = (
        Maker()
        .json()
        .decode()
        .replace(
            '"traceEvents": []',
            f'"traceEvents": [{{{kernel}, "ts": 1700000000000000.101, "dur": 0.002}},'
            f'{{{kernel}, "ts": 1700000000000001.104, "dur": 0.007}}]',
        )
    )
    found = facts(read(text.encode()))
    assert found["first_event_ts_us"] == "1700000000000000.101"
    assert found["gpu"][0]["kernel_window_us"] == 1.010
    assert found["kernels"]["time_us"] == 0.009
    assert found["timestamp_resolution"] == "1 ns"


def test_ids_may_be_numbers_or_text() -> None:
    maker = Maker().op("aten::mm", 0, 10, tid=5).op("aten::mm", 20, 10, tid="5").op("aten::mm", 40, 1, tid=-3)
    rows = facts(maker.trace())["cpu_threads"]
    assert [(row["tid"], row["cpu_ops"]) for row in rows] == [("-3", 1), ("5", 2)]


def test_a_stream_named_in_text_counts_by_its_number() -> None:
    maker = Maker().add("kernel", "k", 0, 5, pid=0, tid="stream 7")
    assert facts(maker.trace())["streams"][0]["stream"] == 7


def test_a_stream_argument_makes_no_gpu_work() -> None:
    maker = Maker().add("cpu_op", "triton_poi", 0, 5, args={"stream": 0}).add("cuda_sync", "s", 0, 5)
    found = facts(maker.trace())
    assert found["streams"] == []
    assert found["kernels"]["total"] == 0


def test_overlapping_kernels_are_busy_once() -> None:
    maker = Maker().work("a", 1, 0, 10).work("b", 2, 5, 10, stream=8).work("c", 3, 30, 10)
    row = facts(maker.trace())["gpu"][0]
    assert row["kernel_sum_us"] == 30
    assert row["kernel_busy_us"] == 25
    assert row["kernel_idle_us"] == 15
    assert row["kernel_window_us"] == 40


def test_durations_of_zero_and_below_are_counted_and_said() -> None:
    maker = small()
    for number in range(3):
        maker.work("empty", 50 + number, 2000 + number, 0)
    trace = maker.work("backwards", 60, 2010, -40).trace()
    found = facts(trace)
    assert trace.oddities.zero_duration == 3
    assert trace.oddities.negative_duration == 1
    assert any("negative duration" in warning and "backwards" in warning for warning in trace.warnings)
    assert found["kernels"]["total"] == 6
    assert found["kernels"]["time_us"] == 10
    assert found["kernels"]["zero_duration"] == 4
    assert found["gpu"][0]["kernel_sum_us"] >= 0
    assert found["span_us"] == 2010 - 1000


def test_an_event_at_time_zero_does_not_stretch_the_span() -> None:
    maker = Maker().op("aten::mm", 5e12, 10).op("aten::add", 5e12 + 20, 10).op("aten::lost", 0, 10)
    trace = maker.trace()
    assert facts(trace)["span_us"] == 30
    assert facts(trace)["cpu_ops"]["total"] == 3
    assert any("aten::lost" in warning for warning in trace.warnings)


def test_a_difference_names_what_came_went_and_changed() -> None:
    old = Maker().op("aten::a", 0, 10).op("aten::b", 20, 5).op("aten::b", 30, 5).op("aten::same", 40, 1)
    new = Maker().op("aten::b", 0, 50).op("aten::c", 60, 5).op("aten::same", 70, 1).work("k", 1, 80)
    found = diff(old.trace(), new.trace())
    assert found["summary"]["cpu_op"] == {
        "names": 4, "added": 1, "removed": 1, "more": 0, "fewer": 1, "same": 1,
        "control_count": 4, "test_count": 3, "control_time_us": 21, "test_time_us": 56,
    }  # fmt: skip
    assert [(e["name"], e["change"]) for e in found["entries"]] == [
        ("aten::b", "fewer"),
        ("aten::a", "removed"),
        ("aten::c", "added"),
        ("aten::same", "same"),
        ("k", "added"),
    ]


intervals = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=30)


def arrays(pairs: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    table = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


@given(intervals)
def test_busy_is_the_number_of_instants_that_some_interval_covers(pairs: list[tuple[int, int]]) -> None:
    start, duration = arrays(pairs)
    covered = {instant for s, d in pairs for instant in range(s, s + d)}
    assert busy(start, start + duration) == len(covered)


@given(intervals)
def test_top_level_agrees_with_walking_the_intervals_in_order(pairs: list[tuple[int, int]]) -> None:
    start, duration = arrays(pairs)
    latest, expected = None, [False] * len(pairs)
    for index in sorted(range(len(pairs)), key=lambda i: (pairs[i][0], -pairs[i][1], i)):
        begin, length = pairs[index]
        expected[index] = latest is None or begin >= latest
        latest = begin + length if latest is None else max(latest, begin + length)
    assert top_level(start, duration).tolist() == expected


@given(intervals, st.lists(st.integers(1, 9), max_size=8))
def test_inside_agrees_with_comparing_each_pair(pairs: list[tuple[int, int]], lengths: list[int]) -> None:
    start, duration = arrays(pairs)
    edges = np.cumsum([0, *lengths])
    range_start, range_end = edges[:-1][::2], edges[1:][::2]
    expected = [
        any(a <= s and s + d <= b and s < b for a, b in zip(range_start, range_end, strict=True))
        for s, d in pairs
    ]
    # An empty interval on the very end of a range belongs to neither reading.
    decided = [s not in set(range_end.tolist()) for s, _ in pairs]
    found = inside(start, start + duration, range_start, range_end).tolist()
    assert [f for f, d in zip(found, decided, strict=True) if d] == [
        e for e, d in zip(expected, decided, strict=True) if d
    ]


@st.composite
def any_event(draw: st.DrawFn) -> dict[str, object]:
    cat = draw(st.sampled_from(["kernel", "gpu_memcpy", "gpu_memset", "cpu_op", "cuda_runtime", "Trace", ""]))
    names = ["aten::mm", "cudaLaunchKernel", "cudaGraphLaunch", "INVALID", "gemm"]
    event: dict[str, object] = {
        "ph": draw(st.sampled_from("XXXXXXsfiM")),
        "cat": cat,
        "name": draw(st.sampled_from(names)),
        "pid": draw(st.integers(-1, 1)),
        "tid": draw(st.integers(-5, 4)),
        "ts": draw(st.integers(0, 40) | st.decimals(0, 40, places=3).map(float)),
        "id": draw(st.integers(0, 5)),
    }
    if draw(st.booleans()) or cat == "kernel":
        event["dur"] = draw(st.integers(-3, 15))
    if draw(st.booleans()):
        event["args"] = {
            "correlation": draw(st.integers(0, 4)),
            "device": 0,
            "stream": draw(st.integers(-1, 2)),
        }
    return event


@given(st.lists(any_event(), max_size=60))
def test_facts_of_any_events_are_consistent(events: list[dict[str, object]]) -> None:
    trace = read(json.dumps({"traceEvents": events}).encode())
    found = facts(trace)
    json.dumps(found, allow_nan=False)
    matching, kernels = found["matching"], found["kernels"]
    assert found["events"]["total"] == len(events)
    origins = ("from_kernel_launch", "from_graph_launch", "from_other_call", "without_call")
    assert sum(matching[f"kernels_{origin}"] for origin in origins) == kernels["total"]
    assert sum(matching["kernels_by_call"].values()) == kernels["total"]
    launches = matching["kernel_launches_matched"] + matching["kernel_launches_unmatched"]
    assert launches == found["launch_calls"]["kernel_launch_total"]
    assert sum(row["kernels"] for row in found["streams"]) == kernels["total"]
    for row in found["gpu"]:
        assert 0 <= row["kernel_busy_us"] <= min(row["kernel_sum_us"], row["kernel_window_us"]) + 1e-6
        assert row["work_idle_us"] >= 0
    assert 0 <= found["cpu_ops"]["top_level"] <= found["cpu_ops"]["total"]
    assert found["span_us"] <= found["span_with_profiler_marker_us"]
    counted = count_calls(trace, device=True, backward=True)
    if counted.kernel_launches is not None:
        assert counted.kernel_launches.forward >= found["launch_calls"]["kernel_launch_total"]
        assert counted.graph_launches == found["launch_calls"]["graph_launch_total"]
    assert diff(trace, trace)["summary"]["kernel"]["same"] == kernels["distinct_names"]


@pytest.mark.slow
def test_a_million_events_open_in_bounded_time_and_memory() -> None:
    import time

    maker = Maker()
    for number in range(1000):
        maker.op("aten::mm", number * 10.001, 5.123).launch(number + 1, number * 10.001)
    block = json.dumps(maker.events)[1:-1]
    text = ('{"traceEvents": [' + ",".join([block] * 334) + "]}").encode()
    begun = time.perf_counter()
    trace = read(text)
    assert trace.events == 1_002_000
    assert time.perf_counter() - begun < 20
