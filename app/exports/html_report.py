"""A recording as one HTML file: no script, nothing fetched, readable without network."""

from __future__ import annotations

from pathlib import Path

from app.core.files import write_atomically
from app.core.plan import Plan
from app.core.recording import Recording, WorkloadRecord
from app.core.results import Entry, entries_of
from app.exports import accuracy_rows, roofline_rows, rows, svg_charts, svg_roofline
from app.exports.html_parts import bullets, esc, figure, page, section, table
from app.exports.svg_hills import distribution_chart

DETAILED = 8
"""Of more workloads than this, as of a sweep, each has its table and its latencies, but no further charts."""


def render(recording: Recording) -> bytes:
    """The whole report; figures come from the recording alone."""
    plan = recording.plan
    title = plan.title if plan is not None else "AttnScope recording"
    body = [f"<h1>{esc(title)}</h1>"]
    names: dict[str, None] = {}
    on_device = False
    if plan is not None:
        if plan.about:
            body.append(f"<p>{esc(plan.about)}</p>")
        parts = [(r, entries_of(r, plan.baseline, plan.implementations)) for r in recording.records]
        entries = tuple(entry for _, part in parts for entry in part)
        names = dict.fromkeys(entry.implementation for entry in entries)
        on_device = rows.has_device(entries)
        if len(parts) > 1:
            body.append(_overview(plan, [part for _, part in parts]))
        for record, part in parts:
            below = _accuracy(part) + _roofline(recording, record)
            body.append(_workload(record, part, on_device, len(parts) <= DETAILED, below))
        if plan.skipped:
            body.append(section("Skipped", bullets([rows.skipped(s) for s in plan.skipped])))
    if recording.faults:
        body.append(section("Missing from this recording", bullets(recording.faults)))
    lines = rows.environment_rows(recording.environment)
    facts = "".join(f"<dt>{esc(what)}</dt><dd>{esc(value)}</dd>" for what, value in lines)
    body.append(section("Environment", f"<dl>{facts}</dl>" if facts else "<p>not recorded</p>"))
    words = f"<p>{esc(rows.METHOD)}</p><p>{esc(rows.latency_words(on_device))}</p>"
    body.append(section("Method", words))
    return page(title, "".join(body), svg_charts.series_css(tuple(names)))


def write(recording: Recording, path: Path) -> Path:
    """Write the report; raises OSError."""
    write_atomically(path, render(recording))
    return path


def _overview(plan: Plan, parts: list[tuple[Entry, ...]]) -> str:
    titles, body = rows.overview(plan, parts)
    return section("Speed-up in every workload", table(titles, body))


def _workload(
    record: WorkloadRecord, entries: tuple[Entry, ...], on_device: bool, detailed: bool, below: str
) -> str:
    charts = [figure(svg_charts.latency_chart(entries), "Latency per call, µs: median and quartiles")]
    if detailed:
        charts.append(
            figure(
                distribution_chart(record, entries),
                "Distribution of the latency, µs, log axis, equal heights",
            )
        )
        if on_device:
            caption = "Kernel launches per call"
            charts.append(figure(svg_charts.calls_chart(entries, "kernel_launches", caption), caption))
        for what, kind in (("operator_calls", "Operator"), ("python_calls", "Python")):
            caption = f"{kind} calls per call{', forward and backward' if record.workload.backward else ''}"
            charts.append(figure(svg_charts.calls_chart(entries, what, caption), caption))
    title = f"{record.label}, {record.workload.device}"
    return section(title, _table(entries, on_device) + "".join(charts) + below)


def _roofline(recording: Recording, record: WorkloadRecord) -> str:
    """Where every contender lies under the roof; nothing where no peaks were measured."""
    found = roofline_rows.of(recording, record)
    if found is None:
        return ""
    notes = (roofline_rows.ceilings(found), *roofline_rows.formulas(found), *found.remarks)
    rows_of_points = table(roofline_rows.COLUMNS, roofline_rows.body(found))
    return (
        f"<details><summary>Roofline</summary><figure>{svg_roofline.chart(found)}</figure>{rows_of_points}"
        f"{''.join(f'<p>{esc(note)}</p>' for note in notes)}</details>"
    )


def _accuracy(entries: tuple[Entry, ...]) -> str:
    """The errors of every tensor, folded away while all are within their bounds."""
    body = accuracy_rows.body(entries)
    if not body:
        return ""
    kinds = ["wrong" if cells[-1] == "✗" else "" for cells in body]
    said = accuracy_rows.slice_sentence(entries)
    notes = "".join(f"<p>{esc(note)}</p>" for note in (said, accuracy_rows.LEGEND) if note)
    is_open = " open" if any(kinds) else ""
    return (
        f"<details{is_open}><summary>Accuracy per tensor</summary>"
        f"{table(accuracy_rows.COLUMNS, body, kinds)}{notes}</details>"
    )


def _table(entries: tuple[Entry, ...], on_device: bool) -> str:
    body: list[tuple[str, ...]] = []
    classes = []
    for entry in entries:
        cells = rows.cells(entry, on_device)
        if entry.latency is None:
            body.append(cells[:2])
            classes.append("reason")
        else:
            body.append(cells)
            classes.append("wrong" if entry.accuracy is not None and not entry.accuracy.ok else "")
    return table(rows.columns(on_device), body, classes)
