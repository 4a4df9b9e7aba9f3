"""A wrong tensor blocks the speed-up everywhere it would be shown: each place, with a wrong contender and with a
wrong baseline."""

from __future__ import annotations

import csv
import io
import json
import re

import msgspec
import pytest

from app.commands.progress import table
from app.core import messages as m
from app.core.files import document_of, parse
from app.core.recording import Recording
from app.core.results import entries_of, floor_of, pairs_of, speed_up_of, withheld_because
from app.exports.formats import FORMATS
from app.gui.charts.latency import LatencyChart
from app.gui.theme import NORMAL, SMALL
from app.gui.verdict_text import Writer
from app.gui.views.rows import as_markdown, as_tsv, columns_of, rows_of
from tests import factories
from tests.gui import scenes

NAMES = ("native", "sdpa", "extension-aten")
RATIO = re.compile(r"\d\.\d\d×")


def recorded(*wrong: str) -> Recording:
    made = factories.recording(implementations=NAMES, rounds=80)
    for name in wrong:
        made.apply(m.Checked(1, 0, name, factories.accuracy("grad_x")))
    return made


@pytest.fixture(params=["contender", "baseline"])
def case(request: pytest.FixtureRequest) -> tuple[Recording, tuple[str, ...]]:
    """A recording, and the contenders whose speed-up must not be seen in it."""
    if request.param == "contender":
        return recorded("extension-aten"), ("extension-aten",)
    return recorded("native"), ("sdpa", "extension-aten")


def test_where_nothing_is_wrong_every_place_shows_a_speed_up() -> None:
    """Without this the tests below could pass for a reason of their own."""
    made = recorded()
    assert len(RATIO.findall(table(made))) == 2
    assert len(RATIO.findall(FORMATS["md"](made).decode())) == 3
    snapshot = scenes.snapshot(made)
    assert any(isinstance(p.text, str) and RATIO.search(p.text) for p in texts_of(snapshot))


def test_the_one_function_that_makes_it_makes_none(case: tuple[Recording, tuple[str, ...]]) -> None:
    made, blocked = case
    record = made.records[0]
    floor = floor_of(record, "native")
    for name in NAMES[1:]:
        found = speed_up_of(record, name, "native", floor)
        assert (found is None) == (name in blocked)
        assert (pairs_of(record, name, "native") is None) == (name in blocked)


def test_entries_say_why(case: tuple[Recording, tuple[str, ...]]) -> None:
    made, blocked = case
    for entry in entries_of(made.records[0], "native", NAMES):
        if entry.implementation in blocked:
            assert entry.speed_up is None
            assert entry.verdict == "unsure"
            assert entry.withheld == entry.verdict_reason
            assert "grad_x is off by" in (entry.withheld or "")
        else:
            assert entry.withheld is None


def test_whose_result_is_wrong_is_named() -> None:
    by_baseline = withheld_because(recorded("native").records[0], "sdpa", "native")
    own = withheld_because(recorded("sdpa").records[0], "sdpa", "native")
    assert (by_baseline or "").startswith("wrong result of Native")
    assert (own or "").startswith("wrong result: grad_x")


def test_json_has_null(case: tuple[Recording, tuple[str, ...]]) -> None:
    made, blocked = case
    for document in (FORMATS["json"](made), m.encoded(document_of(made))):
        for result in json.loads(document)["results"]:
            if result["implementation"] in blocked:
                assert result["speed_up"] is None
                assert result["verdict"] != "faster"
                assert result["withheld"]
            elif result["implementation"] != "native":
                assert result["speed_up"]["median"] > 1


def test_a_file_opened_again_blocks_as_well(case: tuple[Recording, tuple[str, ...]]) -> None:
    made, blocked = case
    opened = parse(m.encoded(document_of(made)), "file")
    entries = entries_of(opened.records[0], "native", NAMES)
    assert {e.implementation for e in entries if e.withheld} == set(blocked)


def test_csv_is_empty_there(case: tuple[Recording, tuple[str, ...]]) -> None:
    made, blocked = case
    for row in csv.DictReader(io.StringIO(FORMATS["csv"](made).decode())):
        if row["implementation"] == "native":
            continue
        assert (row["speed_up_median"] == "") == (row["implementation"] in blocked)
        assert (row["speed_up_low"] == "") == (row["implementation"] in blocked)
        assert (row["withheld"] != "") == (row["implementation"] in blocked)


@pytest.mark.parametrize("form", ["md", "html"])
def test_reports_say_withheld(case: tuple[Recording, tuple[str, ...]], form: str) -> None:
    made, blocked = case
    text = FORMATS[form](made).decode()
    start = r"\| " if form == "md" else "<td>"
    end = "\n" if form == "md" else "</tr>"
    for name, title in (("sdpa", "SDPA"), ("extension-aten", r"Extension \(ATen\)")):
        row = re.search(f"{start}{title}.*?{end}", text)
        assert row is not None
        assert (RATIO.search(row[0]) is None) == (name in blocked)
        assert ("withheld" in row[0]) == (name in blocked)


def test_the_terminal_says_withheld(case: tuple[Recording, tuple[str, ...]]) -> None:
    made, blocked = case
    for line in table(made).splitlines():
        for name, title in (("sdpa", "SDPA"), ("extension-aten", "Extension (ATen)")):
            if line.strip().startswith(title):
                assert (RATIO.search(line) is None) == (name in blocked)
                assert ("withheld: wrong result" in line) == (name in blocked)


@pytest.mark.gui
def test_the_results_table_and_its_copies_say_withheld(
    case: tuple[Recording, tuple[str, ...]], qapp: object
) -> None:
    made, blocked = case
    snapshot = scenes.snapshot(made)
    rows = rows_of(snapshot)
    for row in rows:
        if row.name in blocked:
            assert row.cells["speed_up"] == "withheld"
            assert row.speed is None
            assert "wrong result" in row.tip("speed_up")
    columns = columns_of(snapshot, False)[0]
    for text in (as_tsv(rows, columns), as_markdown(rows, columns)):
        assert len(RATIO.findall(text)) == len(NAMES) - len(blocked) - (1 if "sdpa" in blocked else 0)


def texts_of(snapshot: object) -> list[object]:
    said = []
    for sizes in (NORMAL, SMALL):
        verdict = Writer(sizes).verdict(snapshot)  # type: ignore[arg-type]
        said += [piece for level in (*verdict.sentence, *verdict.evidence) for piece in level]
    return [piece for piece in said if hasattr(piece, "text")]


@pytest.mark.gui
def test_the_verdict_bar_withholds_it(case: tuple[Recording, tuple[str, ...]], qapp: object) -> None:
    made, blocked = case
    for name in NAMES[1:]:
        snapshot = scenes.snapshot(made, name)
        verdict = Writer(NORMAL).verdict(snapshot)
        assert (verdict.kind == "wrong") == (name in blocked)
        assert (verdict.withheld is not None) == (name in blocked)
        ratios = [p for p in texts_of(snapshot) if RATIO.search(p.text)]  # type: ignore[attr-defined]
        assert (not ratios) == (name in blocked)


@pytest.mark.gui
def test_the_live_charts_labels_are_times_and_the_difference_is_not_drawn(qapp: object) -> None:
    made = factories.recording(rounds=100, scale={"extension-aten": 1.475})
    look = scenes.look_of()
    from app.gui.charts.distribution import DistributionChart

    chart, distribution = LatencyChart(look), DistributionChart(look)
    for is_wrong in (False, True):
        if is_wrong:
            made.apply(m.Checked(1, 0, "extension-aten", factories.accuracy("output")))
        snapshot = scenes.snapshot(made)
        distribution.show_snapshot(snapshot)
        assert distribution.title.startswith("Difference") == (not is_wrong)
        chart.show_snapshot(snapshot)
        assert "×" not in chart.accessibleDescription()


def test_right_again_the_speed_up_comes_back() -> None:
    made = recorded("extension-aten")
    made.apply(m.Checked(1, 0, "extension-aten", factories.accuracy()))
    assert all(e.withheld is None for e in entries_of(made.records[0], "native", NAMES))
    assert "withheld" not in table(made)


def test_a_part_of_a_batch_is_marked_in_every_export() -> None:
    made = recorded()
    checked = msgspec.structs.replace(factories.accuracy(), checked_batch=2)
    made.apply(m.Checked(1, 0, "sdpa", checked))
    for form in ("md", "html"):
        text = FORMATS[form](made).decode()
        assert "2 of 8 sequences" in text
        assert "Checked on 2 of 8 sequences alone" in text
    rows = {r["implementation"]: r for r in csv.DictReader(io.StringIO(FORMATS["csv"](made).decode()))}
    assert rows["sdpa"]["accuracy_checked_batch"] == "2"
    assert rows["native"]["accuracy_checked_batch"] == ""
    results = {r["implementation"]: r for r in json.loads(FORMATS["json"](made))["results"]}
    assert results["sdpa"]["accuracy"]["checked_batch"] == 2
    assert results["native"]["accuracy"]["checked_batch"] is None
    assert "accuracy of 2 of 8 sequences" in table(made)
    opened = parse(m.encoded(document_of(made)), "file")
    assert opened.records[0].accuracy["sdpa"].checked_batch == 2
