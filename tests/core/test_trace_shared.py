"""Recorded traces of real programs, where a copy of them lies beside the repository."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from app.core.trace import Trace, TraceError, diff, facts, read

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "traces"
ABOUT_THE_FILE = {"sha256", "bytes_on_disk", "bytes_json", "container", "json_form"}

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason=f"no recorded traces in {FOLDER}")


def load(name: str) -> dict[str, Any]:
    path = FOLDER / name
    return json.loads(path.read_text()) if path.is_file() else {}


FACTS: dict[str, dict[str, Any]] = load("facts.json").get("files", {})
BROKEN = load("broken/expected.json")


@pytest.mark.parametrize("name", FACTS)
def test_the_facts_of_a_recorded_trace_are_exact(name: str) -> None:
    expected = FACTS[name]
    trace = read(FOLDER / name)
    found = facts(trace)
    assert json.loads(json.dumps(found)) == {k: v for k, v in expected.items() if k not in ABOUT_THE_FILE}
    for key in ABOUT_THE_FILE - {"sha256"}:
        assert getattr(trace.source, key) == expected[key]
    assert trace.warnings == ()


@pytest.mark.parametrize("path", sorted(FOLDER.glob("diff_*.json")), ids=lambda path: path.stem)
def test_the_difference_of_two_recorded_traces_is_exact(path: Path) -> None:
    expected = json.loads(path.read_text())
    found = diff(read(FOLDER / expected["control"]), read(FOLDER / expected["test"]))
    assert json.loads(json.dumps(found)) == expected


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_or_odd_file_gets_what_it_deserves(name: str) -> None:
    expected = BROKEN[name]
    if expected["expect"] == "refuse":
        with pytest.raises(TraceError) as refused:
            read(FOLDER / "broken" / name)
        assert name in str(refused.value)
        assert "\n" not in str(refused.value)
        return
    trace = read(FOLDER / "broken" / name)
    if expected["expect"] == "open":
        assert trace.warnings == ()
    else:
        assert trace.warnings
        assert all(name in warning and warning.endswith(".") for warning in trace.warnings)
    check_counts(trace, expected)


def check_counts(trace: Trace, expected: dict[str, Any]) -> None:
    found = facts(trace)
    json.dumps(found, allow_nan=False)
    counted = {
        "events": found["events"]["total"],
        "kernels": found["kernels"]["total"],
        "kernel_launch_calls": found["launch_calls"]["kernel_launch_total"],
        "kernel_time_us": found["kernels"]["time_us"],
        "launches_matched": found["matching"]["kernel_launches_matched"],
        "cpu_ops": found["cpu_ops"]["total"],
    }
    for key, value in counted.items():
        wanted = expected.get(key, value)
        assert value in (wanted if isinstance(wanted, list) else [wanted]), key


@pytest.mark.skipif(not BROKEN, reason="no broken traces")
def test_a_stream_cut_short_gives_its_whole_events_and_says_that_it_is_a_part() -> None:
    trace = read(FOLDER / "broken" / "truncated.json.gz")
    assert trace.events == 1173
    assert trace.incomplete
    assert any("1,173" in warning for warning in trace.warnings)
