"""A comparison as Markdown."""

from __future__ import annotations

from app.core.change import Basis
from app.core.comparison import Comparison
from app.exports import comparison_rows as rows
from app.exports.markdown import escape, table


def render(comparison: Comparison, basis: Basis = "net") -> bytes:
    """A table per workload, the machines side by side, the method."""
    lines = [f"# {escape(rows.title(comparison))}", ""]
    lines += [f"- {escape(line)}" for line in rows.summary(comparison, basis)]
    lines += ["", rows.basis_line(comparison, basis), ""]
    if comparison.moving:
        what = ", ".join(row.title for row in comparison.moving)
        lines += [f"**The machines differ in {escape(what)}.**", ""]
    for workload in comparison.workloads:
        changes = [change for change in comparison.changes if change.workload == workload]
        lines += [f"## {escape(workload.label)}, {escape(workload.device)}", ""]
        lines += table(rows.COLUMNS, [rows.cells(change, basis) for change in changes])
        lines.append("")
    unsure = rows.reasons(comparison, basis)
    if unsure:
        lines += ["## Not claimed", "", *(f"- {escape(what)}: {escape(why)}" for what, why in unsure), ""]
    alone = rows.missing(comparison)
    if alone:
        lines += ["## Not compared", "", *(f"- {escape(line)}" for line in alone), ""]
    lines += ["## Environments", ""]
    body = [(row.title, row.a, row.b, rows.machine_note(row)) for row in comparison.machines]
    lines += table(("", "A", "B", ""), body)
    lines += ["", "## Method", "", rows.METHOD, ""]
    return "\n".join(lines).encode("utf-8", "replace")
