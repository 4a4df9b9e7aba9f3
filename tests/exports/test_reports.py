"""Reports: figures from the recording, nothing of its text taken for markup, no word out of place."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from html import unescape as html_unescape
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest

from app.core import messages as m
from app.core.comparison import compare
from app.core.environment import Device
from app.core.files import save
from app.core.plan import Plan, Skipped
from app.core.recording import Recording
from app.core.results import all_entries
from app.core.workload import Workload
from app.exports import comparison_rows, csv_samples, svg_charts
from app.exports.formats import COMPARISON_FORMATS, FORMATS
from app.exports.rows import METHOD
from app.exports.svg_hills import distribution_chart
from tests import factories
from tests.two_recordings import WORKLOADS
from tests.two_recordings import recording as two


class Checker(HTMLParser):
    """Collects text and tags, and what is left open."""

    VOID = ("meta", "rect", "line", "br", "circle", "path")

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


NASTY = (
    "<script>alert(1)</script>",
    "a & b < c > d \"e\" 'f'",
    "| pipe | `code` *bold* _under_ [link](http://x) # head ~~gone~~",
    "\u202eright to left\u202c שלום עולם مرحبا",
    "🙂 emoji and \u0000 control \u001b[31m",
    "line\nbreak\r\n# not a heading\n- not an item",
    "</title></style></svg><img src=x onerror=alert(1)>",
    "&lt;already&gt;",
)


def nasty(text: str) -> Recording:
    """A recording whose every free text is `text`."""
    made = Recording()
    told = factories.environment()
    bad = Device("cuda:0", text, usable=False, reason=text, remedy=text)
    made.apply(m.Ready(msgspec.structs.replace(told, cpu=text, devices=(*told.devices, bad)), 1.0))
    plan = Plan(
        (Workload(device="cpu"),), ("native", "mha", text), title=text, about=text,
        skipped=(Skipped({"seq_len": 8, text: text}, text),),
    )  # fmt: skip
    made.begin(m.Start(1, plan))
    made.apply(m.ContenderState(1, 0, "mha", "failed", text, text))
    samples = tuple(m.Sample(k, i, 1.0 + k, 1e-4, 1) for k in range(30) for i in range(2))
    made.apply(m.Samples(1, 0, 7, ("native", text), samples))
    made.faults.append(text)
    return made


@pytest.mark.parametrize("text", NASTY)
@pytest.mark.parametrize("kind", ["report", "comparison"])
def test_whatever_a_text_holds_it_stays_text(text: str, kind: str) -> None:
    recording = nasty(text)
    if kind == "report":
        html, md, csv_, json_ = (FORMATS[name](recording) for name in ("html", "md", "csv", "json"))
    else:
        held = compare(nasty("before"), recording)
        html, md, csv_, json_ = (
            COMPARISON_FORMATS[name](held, "net") for name in ("html", "md", "csv", "json")
        )
    checker = parsed(html)
    assert checker.sources == []
    for tag in (b"<script", b"<img", b"onerror=alert(1)>"):
        assert tag not in html
    words = "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text)
    assert words in "".join(checker.words)
    # In a browser each line of text is a paragraph of its own: what turns it round ends with it.
    assert b"unicode-bidi:plaintext" in html
    lines = md.decode().splitlines()
    assert not any(line.startswith(("# not", "- not")) for line in lines)
    for line in lines:
        bare = re.sub(r"\\.", "", line)
        assert "<" not in bare
        assert "](" not in bare
        if line.startswith("|"):
            assert line.endswith("|")
    tables = [re.sub(r"\\.", "", line) for line in lines if line.startswith("|")]
    head = tables[0].count("|")
    assert all(line.count("|") in (head, 3 + 2) or kind == "report" for line in tables)
    assert list(csv.DictReader(io.StringIO(csv_.decode(), newline="")))
    assert json.loads(json_)


def test_every_svg_is_well_formed_on_its_own() -> None:
    from xml.etree import ElementTree

    for html in (
        FORMATS["html"](nasty(NASTY[6])),
        FORMATS["html"](factories.recording(rounds=60)),
        COMPARISON_FORMATS["html"](compare(two(seed=1), two({"sdpa": 1.3}, seed=2)), "latency"),
    ):
        pictures = re.findall(r"<svg .*?</svg>", html.decode(), re.S)
        assert pictures
        for picture in pictures:
            ElementTree.fromstring(picture)


def test_a_report_is_light_or_dark_as_the_reader_is_and_light_on_paper() -> None:
    html = FORMATS["html"](factories.recording(rounds=60)).decode()
    assert html.index("prefers-color-scheme: dark") < html.index("@media print")
    assert "@media screen and (prefers-color-scheme: dark){.s-native{fill:#C9D1DB" in html
    assert ".s-native{fill:#4A5563" in html


def test_the_distributions_cover_every_sample_or_say_how_many_lie_beyond() -> None:
    recording = factories.recording(rounds=800)
    record = recording.records[0]
    record.series["sdpa"].seconds[:3] *= 50
    chart = distribution_chart(record, all_entries(recording))
    assert chart.count('class="s-') == 4
    assert "3 beyond" in chart
    assert distribution_chart(factories.recording(rounds=5).records[0], ()) == ""


@pytest.mark.parametrize("name", ["html", "md", "csv", "json"])
def test_every_report_carries_the_machine_the_method_in_three_sentences_and_the_counts(name: str) -> None:
    text = FORMATS[name](factories.recording(rounds=60)).decode()
    assert "2.13.0+cpu" in text
    assert METHOD in html_unescape(text).replace("\\~", "~")
    assert len(re.findall(r"\.(?: |$)", METHOD)) == 3
    counts = {"html": "58 + 90", "md": "58 + 90", "csv": ",58,90,", "json": '"forward": 58'}[name]
    assert counts in text


@pytest.mark.parametrize("name", ["html", "md", "csv", "json"])
def test_every_comparison_carries_both_machines_and_the_method_in_three_sentences(name: str) -> None:
    b = two({"sdpa": 1.3}, seed=2)
    assert b.environment is not None
    b.environment = msgspec.structs.replace(b.environment, torch="2.14.1")
    text = COMPARISON_FORMATS[name](compare(two(seed=1), b), "net").decode()
    assert "2.13.0+cpu" in text
    assert "2.14.1" in text
    assert comparison_rows.METHOD in html_unescape(text)
    assert len(re.findall(r"\.(?: |$)", comparison_rows.METHOD)) == 3
    assert "slower" in text.lower()
    if name in ("html", "md"):
        assert "The machines differ in PyTorch" in text
        assert "every implementation, the baseline too" in text


def test_a_sweep_has_its_speed_ups_in_one_table_and_stays_readable() -> None:
    sweep = two({"sdpa": 0.5}, seed=1)
    html, md = FORMATS["html"](sweep), FORMATS["md"](sweep).decode()
    parsed(html)
    assert b"Speed-up in every workload" in html
    lines = md[md.index("## Speed-up in every") :].splitlines()
    rows = lines[4 : 4 + len(WORKLOADS)]
    assert len(rows) == len(WORKLOADS)
    assert all("FASTER" in row for row in rows)
    assert html.count(b"<svg") == len(WORKLOADS)  # of a sweep the latencies alone are drawn
    assert len(html) < 200_000


def test_what_is_missing_from_a_damaged_recording_stands_in_its_report() -> None:
    recording = factories.recording(rounds=30)
    recording.faults.append("a result of sdpa is damaged and left out")
    for name in ("html", "md"):
        assert b"a result of sdpa is damaged and left out" in FORMATS[name](recording)


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
