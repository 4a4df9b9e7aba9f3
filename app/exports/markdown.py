"""A recording as Markdown, for an issue or a chat."""

from __future__ import annotations

import re
from collections.abc import Sequence

from app.core.recording import Recording, WorkloadRecord
from app.core.results import Entry, entries_of
from app.exports import accuracy_rows, roofline_rows, rows

_SIGNS = re.compile(r"([\\`*_\[\]<>|#~&])")
"""What Markdown, or the HTML that it lets through, would act on."""


def render(recording: Recording) -> bytes:
    """An overview where there are several workloads, a table for each, the environment, the method."""
    plan = recording.plan
    lines = [f"# {escape(plan.title if plan else 'AttnScope recording')}", ""]
    on_device = False
    if plan is not None:
        if plan.about:
            lines += [escape(plan.about), ""]
        parts = [entries_of(record, plan.baseline, plan.implementations) for record in recording.records]
        on_device = rows.has_device(tuple(entry for part in parts for entry in part))
        if len(parts) > 1:
            lines += ["## Speed-up in every workload", "", *table(*rows.overview(plan, parts)), ""]
        for record, part in zip(recording.records, parts, strict=True):
            lines += [f"## {escape(record.label)}, {escape(record.workload.device)}", ""]
            lines += table(rows.columns(on_device), [rows.cells(entry, on_device) for entry in part])
            lines += ["", *accuracy(part), *roofline(recording, record)]
        if plan.skipped:
            lines += ["## Skipped", "", *(f"- {escape(rows.skipped(cell))}" for cell in plan.skipped), ""]
    if recording.faults:
        lines += ["## Missing from this recording", "", *(f"- {escape(f)}" for f in recording.faults), ""]
    lines += ["## Environment", ""]
    lines += [f"- {what}: {escape(value)}" for what, value in rows.environment_rows(recording.environment)]
    lines += ["", "## Method", "", rows.METHOD, "", rows.latency_words(on_device), ""]
    return "\n".join(lines).encode("utf-8", "replace")


def accuracy(entries: tuple[Entry, ...]) -> list[str]:
    """The errors of every tensor, folded away; nothing where none was checked."""
    body = accuracy_rows.body(entries)
    if not body:
        return []
    said = accuracy_rows.slice_sentence(entries)
    return [
        "<details><summary>Accuracy per tensor</summary>",
        "",
        *table(accuracy_rows.COLUMNS, body),
        "",
        *([said, ""] if said else []),
        escape(accuracy_rows.LEGEND),
        "",
        "</details>",
        "",
    ]


def roofline(recording: Recording, record: WorkloadRecord) -> list[str]:
    """Where every contender lies under the roof, folded away; nothing where no peaks were measured."""
    found = roofline_rows.of(recording, record)
    if found is None:
        return []
    return [
        "<details><summary>Roofline</summary>",
        "",
        *table(roofline_rows.COLUMNS, roofline_rows.body(found)),
        "",
        escape(roofline_rows.ceilings(found)),
        "",
        *(f"- {escape(line)}" for line in (*roofline_rows.formulas(found), *found.remarks)),
        "",
        "</details>",
        "",
    ]


def table(titles: Sequence[str], body: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table, first column left, the others right."""
    head = "| " + " | ".join(escape(title) for title in titles) + " |"
    rule = "|---|" + "---:|" * (len(titles) - 1)
    return [head, rule, *("| " + " | ".join(escape(cell) for cell in row) + " |" for row in body)]


def escape(cell: str) -> str:
    """`cell` as text on one line, whatever is in it."""
    return _SIGNS.sub(r"\\\1", "".join(c if c.isprintable() else " " for c in cell))
