"""A recording as one HTML file: no script, nothing fetched, readable without network."""

from __future__ import annotations

from html import escape
from pathlib import Path

from app.core.files import write_atomically
from app.core.recording import Recording
from app.core.results import Entry, all_entries, entries_of
from app.core.workload import Workload
from app.exports import rows, svg_charts

CSS = """
:root{--bg:#EEF1F5;--card:#FFF;--text:#141A21;--soft:#465261;--line:#DCE2E9;--bad:#B3261E}
@media (prefers-color-scheme: dark){:root{--bg:#0D1014;--card:#171C23;--text:#EBEFF4;--soft:#AAB5C2;
--line:#262E39;--bad:#FF8E86}}
body{background:var(--bg);color:var(--text);font:14px/1.5 Inter,system-ui,sans-serif;margin:0;padding:24px;
font-variant-numeric:tabular-nums}
main{max-width:1200px;margin:auto}h1{font-size:24px;margin:0 0 4px}h2{font-size:16px;margin:0 0 12px}
section{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:16px;margin:16px 0}
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%}
th{color:var(--soft);font-weight:500;font-size:12px;text-align:right;white-space:nowrap;padding:6px 8px}
td{border-top:1px solid var(--line);padding:6px 8px;text-align:right;white-space:nowrap}
th:first-child,td:first-child{text-align:left}td:first-child{font-weight:600}
tr.wrong td{color:var(--bad)}tr.reason td{color:var(--soft);text-align:left;white-space:normal}
p,dd{color:var(--soft)}dl{display:grid;grid-template-columns:max-content 1fr;gap:4px 16px;margin:0}
dd{margin:0;color:var(--text)}dt{color:var(--soft)}
figure{margin:16px 0 0}figcaption{color:var(--soft);font-size:12px}svg{width:100%;max-width:760px}
svg text{fill:var(--text);font-size:12px}svg .value{text-anchor:end}svg .tick{text-anchor:middle;
fill:var(--soft);font-size:11px}svg .grid{stroke:var(--line)}svg .band{fill-opacity:.35;stroke:none}
svg .median{stroke-width:3}svg rect{stroke:none}svg .backward{fill-opacity:.5}
"""


def render(recording: Recording) -> bytes:
    """The whole report; figures come from the recording alone."""
    plan = recording.plan
    entries = all_entries(recording)
    on_device = rows.has_device(entries)
    title = plan.title if plan is not None else "AttnScope recording"
    body = [f"<h1>{escape(title)}</h1>"]
    if plan is not None and plan.about:
        body.append(f"<p>{escape(plan.about)}</p>")
    for record in recording.records if plan is not None else ():
        assert plan is not None
        part = entries_of(record, plan.baseline, plan.implementations)
        body.append(_workload(record.workload, part, on_device))
    if plan is not None and plan.skipped:
        items = "".join(f"<li>{escape(str(s.values))}: {escape(s.reason)}</li>" for s in plan.skipped)
        body.append(f"<section><h2>Skipped</h2><ul>{items}</ul></section>")
    body.append(_environment(recording))
    body.append(f"<section><h2>Method</h2><p>{escape(rows.METHOD)}</p></section>")
    style = CSS + svg_charts.series_css(entries)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)} · AttnScope</title><style>{style}</style></head>"
        f"<body><main>{''.join(body)}</main></body></html>\n"
    ).encode()


def write(recording: Recording, path: Path) -> Path:
    """Write the report; raises OSError."""
    write_atomically(path, render(recording))
    return path


def _workload(workload: Workload, entries: tuple[Entry, ...], on_device: bool) -> str:
    title = f"{workload.label}, {workload.device}"
    phases = ", forward and backward" if workload.backward else ""
    counted = ("kernel_launches", "Kernel launches per call") if on_device else None
    charts = [("Latency per call, µs: median and quartiles", svg_charts.latency_chart(entries))]
    for what, caption in filter(
        None,
        (
            counted,
            ("operator_calls", f"Operator calls per call{phases}"),
            ("python_calls", f"Python calls per call{phases}"),
        ),
    ):
        charts.append((caption, svg_charts.calls_chart(entries, what, caption)))
    figures = "".join(
        f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>" for caption, svg in charts if svg
    )
    return f"<section><h2>{escape(title)}</h2>{_table(entries, on_device)}{figures}</section>"


def _table(entries: tuple[Entry, ...], on_device: bool) -> str:
    titles = rows.columns(on_device)
    head = "".join(f"<th>{escape(title)}</th>" for title in titles)
    body = []
    for entry in entries:
        cells = rows.cells(entry, on_device)
        if entry.latency is None:
            body.append(
                f'<tr class="reason"><td>{escape(cells[0])}</td>'
                f'<td colspan="{len(titles) - 1}">{escape(cells[1])}</td></tr>'
            )
            continue
        wrong = ' class="wrong"' if entry.accuracy is not None and not entry.accuracy.ok else ""
        body.append(f"<tr{wrong}>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>")
    return (
        f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{"".join(body)}</tbody></table></div>'
    )


def _environment(recording: Recording) -> str:
    lines = "".join(
        f"<dt>{escape(title)}</dt><dd>{escape(value)}</dd>"
        for title, value in rows.environment_rows(recording.environment)
    )
    return f"<section><h2>Environment</h2><dl>{lines}</dl></section>"
