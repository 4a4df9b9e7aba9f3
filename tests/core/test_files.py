"""`recording.json`: equal after a round trip, refused or opened as far as it is whole where it is damaged."""

from __future__ import annotations

import base64
import json
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core import files
from app.core import messages as m
from app.core.opening import open_file
from app.core.recording import Recording
from app.core.results import all_entries
from app.core.series import Column, RawSamples, Series
from app.core.workload import Workload
from tests import factories

OLD = Path(__file__).parents[1] / "data" / "schema_1"


def written(recording: Recording) -> bytes:
    return b"".join(files.pieces(recording))


def small() -> Recording:
    made = factories.recording(rounds=12, implementations=("native", "sdpa"))
    factories.telemetry(made, 3)
    made.note(factories.START_S, "worker restarted")
    return made


SMALL = written(small())


def same_content(opened: Recording, original: Recording) -> None:
    """Every series and figure that `opened` has is the original's, to the bit."""
    for record in opened.records:
        other = original.record_for(record.workload)
        assert other is not None
        for name, series in record.series.items():
            for column in ("rounds", "at_s", "seconds", "calls", "undisturbed"):
                np.testing.assert_array_equal(getattr(series, column), getattr(other.series[name], column))
        for table in ("counts", "memory", "accuracy", "profiled_seconds", "traces_gz"):
            for name, value in getattr(record, table).items():
                assert getattr(other, table)[name] == value
    assert opened.environment in (original.environment, None)
    assert opened.plan == original.plan
    assert opened.events in (original.events, [])
    assert opened.telemetry in (original.telemetry, [])


# ---- round trips -------------------------------------------------------------------------------------------


def test_a_large_recording_saves_and_opens_with_equal_columns(tmp_path: Path) -> None:
    recording = factories.recording(rounds=3000)
    files.save(recording, tmp_path / "r.json")
    opened = files.load(tmp_path / "r.json")
    same_content(opened, recording)
    assert opened.faults == []


@pytest.mark.slow
def test_a_million_samples_are_saved_and_opened_in_a_second_each_and_no_step_is_long(tmp_path: Path) -> None:
    recording = factories.recording(rounds=20)
    record = recording.records[0]
    count = 1_000_000 // len(record.series)
    chance = np.random.default_rng(1)
    for name in record.series:
        columns = RawSamples(
            round=Column.of(np.arange(count), "<i4"),
            at_s=Column.of(factories.START_S + np.arange(count) * 3e-3, "<f8"),
            seconds=Column.of(5e-4 * np.exp(chance.normal(0, 0.05, count)), "<f8"),
            calls=Column.of(np.full(count, 4), "<i4"),
        )
        record.series[name] = Series.from_raw(columns)
    assert recording.sample_count == 1_000_000
    path = tmp_path / "r.json"
    begun = time.perf_counter()
    files.save(recording, path)
    saved = time.perf_counter()
    assert files.load(path).sample_count == 1_000_000
    opened = time.perf_counter()
    assert saved - begun < 1.0
    assert opened - saved < 1.0
    steps = []
    opening = open_file(path)
    going_on = True
    while going_on:
        start = time.perf_counter()
        going_on = opening.step()
        steps.append(time.perf_counter() - start)
    assert max(steps) < 0.1


def test_the_file_is_json_whose_columns_numpy_reads_in_one_line() -> None:
    recording = small()
    document = json.loads(written(recording))
    assert document["schema"] == files.SCHEMA
    for result in document["results"]:
        column = result["raw"]["samples"]["seconds"]
        seconds = np.frombuffer(base64.b64decode(column["base64"]), column["type"])
        expected = recording.records[0].series[result["implementation"]].seconds
        np.testing.assert_array_equal(seconds, expected)


def test_disturbances_and_device_times_come_back() -> None:
    recording = small()
    pair = tuple(
        m.Sample(k, i, 2.0 + k, 2e-4, 5, "build" if k == 1 else "", 1e-4 if k % 2 else None)
        for k in range(12, 18)
        for i in range(2)
    )
    recording.apply(m.Samples(1, 0, 4242, ("native", "sdpa"), pair))
    opened = files.parse(written(recording), "r.json")
    mine, other = recording.records[0].series["sdpa"], opened.records[0].series["sdpa"]
    np.testing.assert_array_equal(mine.device_seconds, other.device_seconds)
    assert [other.disturbance(i) for i in range(18)] == [mine.disturbance(i) for i in range(18)]


def test_what_joins_while_the_file_is_written_is_not_half_in_it() -> None:
    recording = factories.recording(rounds=20)
    whole = written(recording)
    going_on = files.pieces(recording)
    first = [next(going_on) for _ in range(3)]
    factories.measure(recording, ("native", "sdpa"), "native", 300, 20.0, {}, 9, first_round=20)
    recording.note(1.0, "later")
    recording.records[0].forget()
    assert b"".join(first + list(going_on)) == whole


def test_a_save_that_fails_leaves_the_older_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "recording.json"
    files.save(factories.recording(rounds=5), path)
    old = path.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        files.save(factories.recording(rounds=50), path)
    assert path.read_bytes() == old
    assert [p.name for p in tmp_path.iterdir()] == ["recording.json"]


# ---- older and newer schemas -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["measured", "made_up"])
def test_a_file_of_the_first_schema_opens_with_everything_it_had(name: str) -> None:
    path = OLD / f"{name}.json"
    stored = json.loads(path.read_text())
    assert stored["schema"] == 1
    opened = files.load(path)
    assert opened.faults == []
    assert opened.plan is not None
    assert opened.plan.title == stored["profile"]["title"]
    assert [s.reason for s in opened.plan.skipped] == [s["reason"] for s in stored["profile"]["skipped"]]
    assert msgspec.to_builtins(opened.events) == stored["events"]
    assert len(opened.notices) == len(stored["notices"])
    assert len(opened.telemetry) == len(stored["telemetry"])
    for result in stored["results"] + stored["hidden"]:
        record = opened.record_for(msgspec.convert(result["workload"], Workload))
        assert record is not None
        implementation, raw = result["implementation"], result["raw"]
        samples = raw["samples"]
        if samples["seconds"]:
            series = record.series[implementation]
            assert series.seconds.tolist() == samples["seconds"]
            assert series.rounds.tolist() == samples["round"]
            assert series.at_s.tolist() == samples["at_s"]
            assert series.calls.tolist() == samples["calls"]
            words = [samples["disturbances"][k] for k in samples["disturbed"]]
            assert [series.disturbance(k) for k in range(len(series))] == words
            device = samples["device_seconds"] or [None] * len(series)
            assert [None if v != v else v for v in series.device_seconds.tolist()] == device
        assert implementation in record.series or not samples["seconds"]
        assert (record.counts.get(implementation) is not None) == (raw["counts"] is not None)
        assert record.traces_gz.get(implementation, b"") == base64.b64decode(raw["trace_gz"])
        if implementation in record.status:
            assert record.status[implementation].reason == raw["status"]["reason"]
        if result["accuracy"] is not None:
            assert record.accuracy[implementation].ok == result["accuracy"]["ok"]


@pytest.mark.parametrize("name", ["measured", "made_up"])
def test_a_file_of_the_first_schema_saved_anew_is_of_the_latest_and_says_the_same(name: str) -> None:
    opened = files.load(OLD / f"{name}.json")
    again = files.parse(written(opened), "again.json")
    assert files.document_of(again) == files.document_of(opened)
    assert all_entries(again) == all_entries(opened)


def test_a_newer_schema_is_refused_by_a_sentence_that_names_both(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    for text in ('{"schema":99,\n"environment":null}', '{ "schema" : 99, "results": [] }'):
        path.write_text(text)
        with pytest.raises(files.RecordingError) as caught:
            files.load(path)
        assert "has schema 99" in str(caught.value)
        assert f"reads up to {files.SCHEMA}" in str(caught.value)


def test_a_file_written_anew_by_another_program_opens_and_says_that_it_cannot_be_checked() -> None:
    pretty = json.dumps(json.loads(SMALL), indent=2).encode()
    opened = files.parse(pretty, "r.json")
    same_content(opened, small())
    (fault,) = opened.faults
    assert "another program" in fault


# ---- damage ------------------------------------------------------------------------------------------------


def changed(data: bytes, change: Callable[[Any], object]) -> bytes:
    document = json.loads(data)
    change(document)
    return json.dumps(document).encode()


def column(values: list[float], type_: str = "<f8") -> dict[str, str]:
    return {"type": type_, "base64": base64.b64encode(np.array(values, type_).tobytes()).decode()}


def samples_of(document: Any) -> dict[str, Any]:
    return document["results"][0]["raw"]["samples"]


def refused() -> dict[str, bytes]:
    old = (OLD / "made_up.json").read_bytes()
    return {
        "empty": b"",
        "blank": b"  \n ",
        "binary": bytes(range(256)),
        "another JSON": b'{"traceEvents": []}',
        "a list": b"[1, 2]",
        "no results": changed(SMALL, lambda d: d.pop("results")),
        "only its first line": SMALL[:13],
        "cut off in its environment": SMALL[:200],
        "cut off before a sample": SMALL[: SMALL.index(b'"results"') + 14],
        "negative time": changed(SMALL, lambda d: samples_of(d).update(seconds=column([-1.0] * 12))),
        "not finite": changed(SMALL, lambda d: samples_of(d).update(seconds=column([float("nan")] * 12))),
        "unequal columns": changed(SMALL, lambda d: samples_of(d).update(seconds=column([1.0]))),
        "half a number": changed(
            SMALL, lambda d: samples_of(d).update(seconds={"type": "<f8", "base64": "AAAA"})
        ),
        "code for a type": changed(
            SMALL, lambda d: samples_of(d).update(seconds={"type": "|O", "base64": "AAAAAAAAAAA="})
        ),
        "unordered rounds": changed(SMALL, lambda d: samples_of(d).update(round=column([0] * 12, "<i4"))),
        "unknown disturbance": changed(
            SMALL, lambda d: samples_of(d).update(disturbed=column([7] * 12, "<u2"))
        ),
        "deep nesting": b'{"schema":2,"results":' + b"[" * 100_000,
        "not a workload": changed(SMALL, lambda d: d["results"][0]["workload"].update(batch=-4)),
        "first schema, cut off": old[: len(old) // 2],
        "first schema, text for a time": changed(old, lambda d: samples_of(d)["seconds"].insert(0, "x")),
        "first schema, NaN": old.replace(b'"seconds":[', b'"seconds":[NaN,', 1),
        "first schema, unequal": changed(old, lambda d: samples_of(d)["round"].pop()),
        "first schema, a number of 400 digits": changed(
            old, lambda d: samples_of(d)["round"].__setitem__(0, 10**400)
        ),
        "first schema, a round beyond all": changed(
            old, lambda d: samples_of(d)["round"].__setitem__(-1, 2**63 - 1)
        ).replace(b"9223372036854775807", b"9223372036854775808"),
    }


@pytest.mark.parametrize("kind", list(refused()))
def test_what_cannot_be_used_is_refused_by_one_sentence_that_names_the_file(
    tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "r.json"
    path.write_bytes(refused()[kind])
    with pytest.raises(files.RecordingError) as caught:
        files.load(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_a_file_that_is_cut_off_opens_as_far_as_it_is_whole_and_says_what_is_missing() -> None:
    original = small()
    place = SMALL.index(b'\n,{"workload"') + 40  # within the second result
    opened = files.parse(SMALL[:place], "r.json")
    same_content(opened, original)
    assert set(opened.records[0].series) == {"native"}
    (fault,) = opened.faults
    assert "its end is missing" in fault
    assert "without SDPA at 8×64×128" in fault


def test_a_damaged_line_is_left_out_and_named() -> None:
    place = SMALL.index(b'"base64":"', SMALL.index(b'\n,{"workload"')) + 50
    flipped = SMALL[:place] + (b"A" if SMALL[place : place + 1] != b"A" else b"B") + SMALL[place + 1 :]
    opened = files.parse(flipped, "r.json")
    same_content(opened, small())
    assert opened.faults == ["a result of sdpa is damaged and left out"]
    assert "sdpa" not in opened.records[0].series
    title = SMALL.index(b'"events":[') + 12
    opened = files.parse(SMALL[:title] + b"#" + SMALL[title + 1 :], "r.json")
    assert opened.faults == ["its events is damaged and left out"]
    assert len(opened.records[0].series) == 3


def test_a_line_that_was_taken_out_is_missed() -> None:
    lines = SMALL.splitlines(keepends=True)
    without = [line for line in lines if b'"implementation":"sdpa"' not in line[:400]]
    assert len(without) == len(lines) - 1
    opened = files.parse(b"".join(without), "r.json")
    assert len(opened.faults) == 1
    assert "1 line is missing" in opened.faults[0]
    assert "SDPA" in opened.faults[0]


def test_lines_out_of_their_order_are_told() -> None:
    lines = SMALL.splitlines(keepends=True)
    start = lines.index(b'"hidden":[\n')
    lines[start + 1], lines[start + 2] = lines[start + 2], lines[start + 1]
    opened = files.parse(b"".join(lines), "r.json")
    assert "not in their order" in opened.faults[0]
    same_content(opened, small())


def test_a_forged_check_does_not_let_a_bad_value_in() -> None:
    """Checks find damage, not malice: what is forged is still read as data of a type."""
    lines = SMALL.splitlines(keepends=True)
    index = next(i for i, line in enumerate(lines) if b'"implementation":"native"' in line)
    lines[index] = lines[index].replace(b'"type":"<f8"', b'"type":"<O8"', 1)
    checks = [f"{zlib.crc32(line):08x}" for line in lines[:-1]]
    lines[-1] = b'"checks":' + json.dumps(checks).encode() + b"}\n"
    with pytest.raises(files.RecordingError, match="damaged"):
        files.parse(b"".join(lines), "r.json")


@st.composite
def mutations(draw: st.DrawFn) -> bytes:
    """The small file with a few bytes changed, put in, taken out, or parts of it moved or doubled."""
    data = bytearray(SMALL)
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["change", "insert", "delete", "cut", "double", "swap"]))
        at = draw(st.integers(0, len(data)))
        length = draw(st.integers(1, 400))
        if kind == "change" and at < len(data):
            data[at] = draw(st.integers(0, 255))
        elif kind == "insert":
            data[at:at] = draw(st.binary(min_size=1, max_size=8))
        elif kind == "delete":
            del data[at : at + length]
        elif kind == "cut":
            del data[at:]
        elif kind == "double":
            data[at:at] = data[at : at + length]
        elif kind == "swap":
            lines = bytes(data).splitlines(keepends=True)
            if len(lines) > 1:
                i, j = draw(st.integers(0, len(lines) - 1)), draw(st.integers(0, len(lines) - 1))
                lines[i], lines[j] = lines[j], lines[i]
                data = bytearray(b"".join(lines))
    return bytes(data)


def opened(data: bytes) -> Recording | None:
    """The recording, or None where it was refused by a sentence."""
    try:
        return files.parse(data, "r.json")
    except files.RecordingError as error:
        sentence = str(error)
    assert sentence.startswith("r.json: ")
    assert "\n" not in sentence
    return None


@settings(max_examples=300, deadline=None)
@given(mutations())
def test_a_mutated_file_is_refused_or_holds_nothing_but_what_was_written(data: bytes) -> None:
    recording, original = opened(data), small()
    if recording is None:
        return
    told = [
        fault for fault in recording.faults if "another program" in fault or "its end is missing" in fault
    ]
    if not told:
        same_content(recording, original)
    if not recording.faults:
        assert files.document_of(recording) == files.document_of(original)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, len(SMALL) - 2))
def test_a_file_cut_off_anywhere_is_refused_or_opens_with_the_truth_and_a_fault(place: int) -> None:
    recording = opened(SMALL[:place])
    if recording is not None:
        assert recording.faults
        same_content(recording, small())


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200), st.integers(0, 40_000))
def test_a_mutated_file_of_the_first_schema_opens_or_is_refused(junk: bytes, place: int) -> None:
    old = (OLD / "made_up.json").read_bytes()
    place %= len(old)
    opened(old[:place] + junk + old[place + len(junk) :])


def test_a_file_beyond_the_limit_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from app.core import opening

    path = tmp_path / "r.json"
    path.write_bytes(SMALL)
    monkeypatch.setattr(opening, "MAX_BYTES", 100)
    with pytest.raises(files.RecordingError, match="the largest opened"):
        files.load(path)
    monkeypatch.setattr(opening, "MAX_BYTES", 10**9)
    monkeypatch.setattr(opening, "MAX_UNLINED_BYTES", 100)
    assert files.load(path).faults == []
    path.write_bytes((OLD / "made_up.json").read_bytes())
    with pytest.raises(files.RecordingError, match="the largest opened"):
        files.load(path)


def test_a_folder_and_a_missing_file_are_sentences(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.json"):
        with pytest.raises(files.RecordingError, match="cannot be read"):
            files.load(path)
