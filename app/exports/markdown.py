"""A recording as Markdown, for an issue or a chat."""

from __future__ import annotations

from app.core.recording import Recording, WorkloadRecord
from app.core.results import Entry, all_entries, entries_of
from app.exports import accuracy_rows, roofline_rows, rows


def render(recording: Recording) -> bytes:
    """A table per workload, the environment, the method."""
    plan = recording.plan
    lines = [f"# {plan.title if plan else 'AttnScope recording'}", ""]
    if plan is not None and plan.about:
        lines += [plan.about, ""]
    on_device = rows.has_device(all_entries(recording))
    for record in recording.records if plan is not None else ():
        assert plan is not None
        entries = entries_of(record, plan.baseline, plan.implementations)
        lines += [f"## {record.label}, {record.workload.device}", ""]
        lines += table(rows.columns(on_device), [rows.cells(entry, on_device) for entry in entries])
        lines += ["", *accuracy(entries), *roofline(recording, record)]
    lines += ["## Environment", ""]
    lines += [f"- {title}: {value}" for title, value in rows.environment_rows(recording.environment)]
    lines += ["", "## Method", "", rows.METHOD, "", rows.latency_words(on_device), ""]
    return "\n".join(lines).encode()


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
        accuracy_rows.LEGEND,
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
        roofline_rows.ceilings(found),
        "",
        *(f"- {escape(line)}" for line in (*roofline_rows.formulas(found), *found.remarks)),
        "",
        "</details>",
        "",
    ]


def table(titles: tuple[str, ...], body: list[tuple[str, ...]]) -> list[str]:
    """A Markdown table, first column left, the others right."""
    head = "| " + " | ".join(escape(title) for title in titles) + " |"
    rule = "|---|" + "---:|" * (len(titles) - 1)
    return [head, rule, *("| " + " | ".join(escape(cell) for cell in row) + " |" for row in body)]


def escape(cell: str) -> str:
    return cell.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")
