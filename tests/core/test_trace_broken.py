"""Reading traces: broken, odd and hostile ones."""

from __future__ import annotations

import gzip
import json
import re

import pytest

from app.core.trace import TraceError, facts, read, relabel
from tests.core.synthetic_trace import Maker


def many(count: int = 200) -> Maker:
    maker = Maker()
    for number in range(count):
        maker.launch(number + 1, 20 * number)
    return maker


def refusal(data: bytes, **options: int) -> str:
    with pytest.raises(TraceError) as caught:
        read(data, "given.json", **options)
    sentence = str(caught.value)
    assert "given.json" in sentence
    assert "\n" not in sentence
    assert sentence.endswith(".")
    return sentence


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is empty"),
        (b" \n\t ", "is empty"),
        (gzip.compress(b""), "is empty"),
        (b'{"name": "x", "scripts": {}}', '"traceEvents" was looked for and not found'),
        (b'{"traceEvents": {}}', "not a list"),
        (b"[1, 2, 3]", "not one of events"),
        (b"17", "a single value"),
        (b"PK\x03\x04 no JSON at all", "line 1, column 1"),
        (b'{"a": "cut he', 'no list "traceEvents"'),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"traceEvents": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_what_is_no_trace_is_refused_with_its_cause(data: bytes, says: str) -> None:
    assert says in refusal(data)


def test_a_missing_file_is_refused_with_its_name(tmp_path) -> None:
    with pytest.raises(TraceError, match=r"gone\.json cannot be read"):
        read(tmp_path / "gone.json")


@pytest.mark.parametrize("share", [0.2, 0.6, 0.95])
def test_a_cut_gzip_stream_gives_its_whole_events(share: float) -> None:
    packed = gzip.compress(many().json())
    trace = read(packed[: int(len(packed) * share)], "given.json")
    assert 0 < trace.events < 400
    assert trace.incomplete
    assert any(f"{trace.events:,} whole events" in warning for warning in trace.warnings)
    assert facts(trace)["kernels"]["total"] <= 200


def test_a_damaged_gzip_stream_is_treated_as_cut() -> None:
    packed = bytearray(gzip.compress(many(2000).json()))
    # An illegal block type where the next block is decoded: nothing after it can be trusted.
    packed[-8:] = bytes(8)
    trace = read(bytes(packed), "given.json")
    assert trace.incomplete
    assert "damaged" in trace.warnings[0]
    assert 3900 < trace.events <= 4000


def test_a_list_without_its_end_is_whole_if_its_last_event_is() -> None:
    lines = ",\n".join(json.dumps(event) for event in many(11).events)
    trace = read(f"[\n{lines},\n".encode(), "given.json")
    assert trace.events == 22
    assert not trace.incomplete
    assert len(trace.warnings) == 1
    cut = read(f"[\n{lines[:-5]}".encode(), "given.json")
    assert cut.events == 21
    assert cut.incomplete


def test_times_that_are_no_numbers_never_reach_a_total() -> None:
    maker = many(4)
    maker.events[1]["dur"] = float("nan")
    maker.op("aten::mm", float("-inf"), 10).op("aten::add", 100, 10)
    maker.events[-1]["args"] = {"scale": float("inf")}
    trace = read(maker.json(), "given.json")
    found = facts(trace)
    json.dumps(found, allow_nan=False)
    assert found["kernels"]["total"] == 4
    assert found["kernels"]["time_us"] == 15
    assert found["matching"]["kernel_launches_matched"] == 4
    assert any("aten::mm" in warning for warning in trace.warnings)
    assert any("kernel_1" in warning for warning in trace.warnings)


def test_an_event_without_duration_counts_with_its_time_unknown() -> None:
    maker = many(4)
    del maker.events[1]["dur"]
    trace = maker.trace()
    assert facts(trace)["matching"]["kernel_launches_matched"] == 4
    assert facts(trace)["kernels"]["zero_duration"] == 0
    assert trace.oddities.without_duration == 1
    assert len(trace.warnings) == 1


@pytest.mark.parametrize("value", ["1e999", "-1e300", '"soon"', "null", "[]"])
def test_absurd_times_are_unusable_not_fatal(value: str) -> None:
    text = many(2).json().replace(b'"ts": 20,', b'"ts": ' + value.encode() + b",")
    trace = read(text, "given.json")
    assert facts(trace)["events"]["total"] == 4
    assert trace.oddities.without_start == 1


def test_backslashes_that_are_no_escapes_are_read_as_backslashes() -> None:
    text = Maker().op("PLACE", 0, 10).json().replace(b"PLACE", rb"torch\cuda\__init__.py(219): _lazy_init")
    trace = read(text, "given.json")
    assert trace.names == ("torch\\cuda\\__init__.py(219): _lazy_init",)
    assert any("line 1, column" in warning for warning in trace.warnings)


PRETTY = """{
  "traceEvents": [
  {
    "ph": "X",
    "cat": "user_annotation",
    "name": "%s",
    "pid": 1, "tid": 1,
    "ts": 1.500, "dur": 2.250
    ,
    "args": { "External id": 1 }
  },
  { "ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 2.0, "dur": 1 }
  ], "traceName": "a.json"
}
"""

ONE_LINE = """{
  "traceEvents": [
  {
    "ph": "X", "cat": "user_annotation", "name": "%s", "pid": 1, "tid": 1,
    "ts": 1.500, "dur": 2.250
  },
  { "ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 2.0, "dur": 1 }
  ]
}
"""


@pytest.mark.parametrize("layout", [PRETTY, ONE_LINE], ids=["a key a line", "keys on one line"])
@pytest.mark.parametrize("name", ['a "quoted" name', 'an odd " one', '"', 'brace } and " quote {'])
def test_unescaped_quotes_in_a_name_are_read_as_meant(layout: str, name: str) -> None:
    trace = read((layout % name).encode(), "given.json")
    assert trace.names == (name, "aten::mm")
    assert any("quotation mark" in warning and "line " in warning for warning in trace.warnings)


def test_control_characters_and_foreign_bytes_in_names_are_read() -> None:
    text = Maker().op("PLACE", 0, 10).op("aten::mm", 20, 1).json()
    assert read(text.replace(b"PLACE", b"a\tb\x01c")).names[0] == "a\tb\x01c"
    assert read(text.replace(b"PLACE", b"caf\xd3")).names[0] == "caf\N{REPLACEMENT CHARACTER}"


def test_events_of_another_shape_are_left_out_or_read_as_far_as_they_go() -> None:
    events = [
        *many(2).events,
        17,
        None,
        {"ph": "X", "cat": "cpu_op", "name": 5, "ts": 1, "dur": 1, "args": []},
    ]
    trace = read(json.dumps({"traceEvents": events}).encode(), "given.json")
    assert trace.events == 5
    assert trace.oddities.unreadable == 2
    assert facts(trace)["cpu_ops"]["total"] == 1


def test_a_trace_of_nothing_says_so() -> None:
    trace = read(b'{"schemaVersion": 1, "traceEvents": []}', "given.json")
    assert "nothing in it" in trace.warnings[0]
    assert facts(trace)["span_us"] == 0
    assert facts(trace)["first_event_ts_us"] is None


def test_a_text_beyond_the_limit_is_refused_with_its_size() -> None:
    text = many().json()
    assert f"{len(text):,} bytes" in refusal(text, max_expanded_bytes=1000)
    bomb = gzip.compress(text[:-1] + b" " * 20_000_000 + b"}")
    said = refusal(bomb, max_expanded_bytes=5_000_000)
    assert int(re.search(r"more than ([\d,]+) bytes", said)[1].replace(",", "")) > 5_000_000
    assert "5.0 MB" in said


def test_a_text_that_is_mostly_blank_opens_with_a_warning() -> None:
    trace = read(gzip.compress(many(4).json()[:-1] + b" " * 20_000_000 + b"}"), "given.json")
    assert facts(trace)["kernels"]["total"] == 4
    assert "20,0" in trace.warnings[0]


def test_more_objects_than_memory_should_hold_are_refused() -> None:
    assert "12,000,000" in refusal(b'{"traceEvents": [' + b"{}," * 12_000_001 + b"{}]}")


def test_names_are_put_back_as_they_were_given() -> None:
    shown = 'a "b" \\ \U0001f642 é\t\n'
    text = Maker().mark(0, 10, "attnscope.call").op("aten::mm", 1, 2).json(traceName="/tmp/private/x.json")
    written = relabel(text, {"attnscope.call": shown}, {"torch": "2.x"}, "title")
    document = json.loads(written)
    assert document["traceEvents"][0]["name"] == shown
    assert document["traceName"] == "title"
    assert document["attnscope"] == {"torch": "2.x"}
    assert read(written).names == (shown, "aten::mm")


def test_what_torch_wrote_without_escaping_is_written_as_valid_json() -> None:
    written = relabel((PRETTY % 'a "quoted" name').encode(), {}, {}, "title")
    assert json.loads(written)["traceEvents"][0]["name"] == 'a "quoted" name'
