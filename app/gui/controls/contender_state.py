"""What the list of implementations says of each, read from a recording."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from app.core.catalog import CONTENDERS, contender
from app.core.recording import Recording, Status, WorkloadRecord
from app.gui.parts.menu import MenuItem


@dataclass(frozen=True)
class RowState:
    """`note` stands at the right of the row, `reason` below it with the whole of it behind `why`."""

    implementation: str
    title: str
    checked: bool
    is_baseline: bool
    note: str = ""
    reason: str = ""
    why: str = ""
    remedy: str = ""
    level: Literal["", "unavailable", "failed", "wrong"] = ""

    @property
    def hollow(self) -> bool:
        """Whether its mark is drawn hollow: it does not run."""
        return not self.checked or self.level in ("unavailable", "failed")


def row_states(
    recording: Recording,
    record: WorkloadRecord | None,
    enabled: Sequence[str],
    baseline: str,
    own: Sequence[str] = (),
) -> tuple[RowState, ...]:
    """All contenders, the catalog's and then `own` ones: one that cannot run is greyed, never hidden."""
    names = (*CONTENDERS, *own)
    return tuple(_row(recording, record, name, name in enabled, name == baseline) for name in names)


def ready_count(
    recording: Recording, record: WorkloadRecord | None, enabled: Sequence[str], own: Sequence[str] = ()
) -> tuple[int, int]:
    """How many of all contenders are measured, and how many there are."""
    names = (*CONTENDERS, *own)
    ready = sum(
        1
        for name in enabled
        if record is not None and record.status.get(name, Status()).state == "ready" and name in names
    )
    return ready, len(names)


def count_text(
    recording: Recording, record: WorkloadRecord | None, enabled: Sequence[str], own: Sequence[str] = ()
) -> str:
    """`4 of 5`, or `3 of 5 ready` while chosen ones are not."""
    ready, total = ready_count(recording, record, enabled, own)
    chosen = sum(1 for name in enabled if name in (*CONTENDERS, *own))
    return f"{chosen} of {total}" if ready == chosen else f"{ready} of {total} ready"


def contender_items(names: Sequence[str], current: str | None, excluded: str | None = None) -> list[MenuItem]:
    """Entries of a menu that picks a contender; the one on the other side is greyed."""
    items = []
    for name in names:
        entry = contender(name)
        taken = name == excluded
        items.append(
            MenuItem(
                name,
                entry.title,
                trailing="baseline" if taken else "",
                shape=entry.shape,
                series=name,
                enabled=not taken,
                checked=name == current,
            )
        )
    return items


def _row(
    recording: Recording, record: WorkloadRecord | None, name: str, checked: bool, is_baseline: bool
) -> RowState:
    title = contender(name).title
    status = record.status.get(name, Status()) if record is not None else Status()
    base = RowState(name, title, checked, is_baseline)
    if status.state == "unavailable":
        no_build = contender(name).needs_extension and recording.build.state == "failed"
        said = "the build failed" if no_build else short(status.reason)
        return _with(base, reason=said, status=status, level="unavailable")
    if not checked:
        return base
    if status.state == "failed":
        return _with(base, reason=short(status.reason), status=status, level="failed")
    accuracy = record.accuracy.get(name) if record is not None else None
    if accuracy is not None and not accuracy.ok:
        return RowState(name, title, checked, is_baseline, note="wrong", level="wrong")
    return RowState(name, title, checked, is_baseline, note=_note(recording, name, status))


def _note(recording: Recording, name: str, status: Status) -> str:
    if status.state == "ready":
        return ""
    if contender(name).needs_extension:
        if recording.build.is_running:
            return "compiling"
        if recording.build.state == "failed":
            return "no build"
    return "preparing" if status.state == "preparing" else "waiting"


def _with(base: RowState, reason: str, status: Status, level: Literal["unavailable", "failed"]) -> RowState:
    return RowState(
        base.implementation,
        base.title,
        base.checked,
        base.is_baseline,
        reason=reason,
        why=status.reason,
        remedy=status.remedy,
        level=level,
    )


def short(reason: str, limit: int = 30) -> str:
    """The first clause of a reason, for the narrow place below a title."""
    first = reason.strip().splitlines()[0] if reason.strip() else "cannot run here"
    for stop in (": ", "; ", ", ", ". "):
        head = first.partition(stop)[0]
        if len(head) <= limit:
            return head.rstrip(".")
    return first[: limit - 1].rstrip() + "…"
