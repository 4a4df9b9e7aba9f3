"""Reports: figures from the recording, nothing of its text taken for markup, no word out of place."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from app.core import messages as m
from app.core.files import save
from app.core.plan import Plan
from app.core.results import all_entries
from app.core.workload import Workload
from app.exports import csv_samples, svg_charts
from app.exports.formats import FORMATS
from tests import factories


class Checker(HTMLParser):
    """Collects text and tags, and what is left open."""

    VOID = ("meta", "rect", "line", "br")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []
        self.sources: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.sources += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def parsed(html: bytes) -> Checker:
    checker = Checker()
    checker.feed(html.decode())
    assert checker.open == []
    return checker


def test_the_report_is_one_file_that_fetches_and_runs_nothing() -> None:
    html = FORMATS["html"](factories.recording(rounds=60))
    checker = parsed(html)
    assert checker.sources == []
    assert b"<script" not in html
    assert html.count(b"<svg") == 4  # latencies, distributions, operator calls, Python calls
    text = " ".join(checker.words)
    for word in ("Native (step by step)", "Extension (ATen)", "FASTER", "1 + 1", "2.13.0+cpu", "noise floor"):
        assert word in text


def test_a_charts_axis_counts_in_even_steps_however_short_the_calls() -> None:
    tiny = factories.recording(rounds=60, scale=dict.fromkeys(factories.MEDIANS_S, 0.003))
    axis = svg_charts.latency_chart(all_entries(tiny))
    labels = re.findall(r'class="tick"[^>]*>([^<]+)<', axis)
    values = [float(label) for label in labels]
    steps = {round(after - before, 9) for before, after in itertools.pairwise(values)}
    assert values[0] == 0
    assert len(steps) == 1
    assert 2 < values[-1] < 5  # 812.4 µs times 0.003


@pytest.mark.parametrize("name", ["html", "md"])
def test_no_report_of_a_cpu_speaks_of_launches(name: str) -> None:
    assert b"launch" not in FORMATS[name](factories.recording(rounds=60)).lower()


def test_names_and_reasons_are_text_not_markup() -> None:
    recording = factories.recording(rounds=10, counts=False)
    recording.begin(m.Start(2, Plan((Workload(),), ("native", "mha"), title="<script>alert(1)</script>|x")))
    recording.apply(m.ContenderState(2, 0, "mha", "failed", "<b>raised</b> | \n `x`"))
    html = FORMATS["html"](recording)
    parsed(html)
    assert b"<script>" not in html
    assert b"<b>raised" not in html
    table = [line for line in FORMATS["md"](recording).decode().splitlines() if "raised" in line]
    assert len(table) == 1
    assert r"\|" in table[0]


def test_a_wrong_result_is_named_and_its_speed_up_withheld() -> None:
    recording = factories.recording(rounds=60, wrong="output")
    line = next(s for s in FORMATS["md"](recording).decode().splitlines() if s.startswith("| Extension"))
    assert "WRONG RESULT" in line
    assert "×" not in line


def test_a_sample_file_has_every_sample_with_its_workload() -> None:
    recording = factories.recording(rounds=7)
    rows = list(csv.DictReader(io.StringIO(csv_samples.render(recording).decode())))
    assert len(rows) == recording.sample_count
    assert {row["implementation"] for row in rows} >= {"native", "sdpa", "@twin:native"}
    series = recording.records[0].series["sdpa"]
    assert [float(r["seconds"]) for r in rows if r["implementation"] == "sdpa"] == series.seconds.tolist()
    assert rows[0]["seq_len"] == "64"


def test_csv_and_json_agree() -> None:
    recording = factories.recording(rounds=40)
    rows = list(csv.DictReader(io.StringIO(FORMATS["csv"](recording).decode())))
    results = json.loads(FORMATS["json"](recording))["results"]
    assert len(rows) == len(results)
    for row, result in zip(rows, results, strict=True):
        assert row["implementation"] == result["implementation"]
        assert float(row["latency_median_s"]) == result["latency"]["median_s"]


def test_a_recording_without_a_sample_still_reports_why(tmp_path: Path) -> None:
    from app.core.recording import Recording

    empty = Recording()
    for render in FORMATS.values():
        assert render(empty)
    save(empty, tmp_path / "r.json")
    recording = factories.recording(rounds=0)
    recording.apply(m.ContenderState(1, 0, "sdpa", "unavailable", "needs another device"))
    for name in ("html", "md", "csv"):
        assert re.search(rb"needs another device", FORMATS[name](recording))


def test_samples_in_pieces_are_those_that_were_there_when_they_were_asked_for() -> None:
    made = factories.recording(rounds=700)
    whole = csv_samples.render(made)
    pieces = csv_samples.pieces(made)
    first = next(pieces)
    factories.measure(made, ("native",), "native", 5, 20.0, {}, 9, first_round=700)
    assert first + b"".join(pieces) == whole
