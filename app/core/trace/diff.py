"""What differs between two traces, by name: how many, and for how long."""

from __future__ import annotations

from typing import Any

from app.core.trace.facts import microseconds, sums_by_name
from app.core.trace.model import Trace
from app.core.trace.vocabulary import KIND_NAMES

CHANGES = ("added", "removed", "more", "fewer", "same")


def diff(control: Trace, test: Trace) -> dict[str, Any]:
    """`{control, test, summary, entries}` over whole traces; times in microseconds.

    Names are compared exactly, within each kind. `change` looks at counts only. Entries are sorted by kind,
    then by size of the difference in time, then by name.
    """
    summary: dict[str, Any] = {}
    entries: list[dict[str, Any]] = []
    for kind, title in KIND_NAMES.items():
        old = sums_by_name(control, control.complete.of(kind))
        new = sums_by_name(test, test.complete.of(kind))
        rows = []
        for name in old.keys() | new.keys():
            (old_count, old_ns), (new_count, new_ns) = old.get(name, (0, 0)), new.get(name, (0, 0))
            rows.append((-abs(new_ns - old_ns), name, old_count, new_count, old_ns, new_ns))
        rows.sort()
        changes = dict.fromkeys(CHANGES, 0)
        for _, name, old_count, new_count, old_ns, new_ns in rows:
            change = _change(old_count, new_count)
            changes[change] += 1
            entries.append(
                {
                    "kind": title,
                    "name": name,
                    "change": change,
                    "control_count": old_count,
                    "test_count": new_count,
                    "count_diff": new_count - old_count,
                    "control_time_us": microseconds(old_ns),
                    "test_time_us": microseconds(new_ns),
                    "time_diff_us": microseconds(new_ns - old_ns),
                }
            )
        summary[title] = {
            "names": len(rows),
            **changes,
            "control_count": sum(row[2] for row in rows),
            "test_count": sum(row[3] for row in rows),
            "control_time_us": microseconds(sum(row[4] for row in rows)),
            "test_time_us": microseconds(sum(row[5] for row in rows)),
        }
    return {"control": control.source.name, "test": test.source.name, "summary": summary, "entries": entries}


def _change(control: int, test: int) -> str:
    if control == 0:
        return "added"
    if test == 0:
        return "removed"
    if test == control:
        return "same"
    return "more" if test > control else "fewer"
