"""Whether a run that broke off may go on: the same plan, on the same machine with the same software."""

from __future__ import annotations

import msgspec

from app.core.environment import Difference, Environment, differences
from app.core.plan import Plan


def plan_changes(before: Plan, now: Plan) -> tuple[str, ...]:
    """In which parts two plans differ, as clauses; titles do not count."""
    found = []
    if before.workloads != now.workloads:
        added = len(set(now.workloads) - set(before.workloads))
        removed = len(set(before.workloads) - set(now.workloads))
        what = f"{added} added, {removed} removed" if added or removed else "in another order"
        found.append(f"workloads ({what})")
    if before.implementations != now.implementations:
        was, are = ", ".join(before.implementations), ", ".join(now.implementations)
        found.append(f"implementations ({was} before, {are} now)")
    if before.baseline != now.baseline:
        found.append(f"baseline ({before.baseline} before, {now.baseline} now)")
    old, new = msgspec.structs.asdict(before.measure), msgspec.structs.asdict(now.measure)
    found += [f"measure.{key} ({old[key]} before, {new[key]} now)" for key in old if old[key] != new[key]]
    return tuple(found)


def environment_changes(before: Environment | None, now: Environment, plan: Plan) -> tuple[Difference, ...]:
    """What of the machine and its software is another than when the run broke off.

    `now` is what a fresh worker tells: it knows neither the plan's thread count nor which build of the
    extension it will load, so the one is filled in and the other is left to `is_other_build`.
    """
    if before is None:
        return ()
    complete = msgspec.structs.replace(
        now, threads=plan.measure.threads or now.threads, extension_key=before.extension_key
    )
    return differences(complete, before)


def is_other_build(before: Environment | None, key: str) -> bool:
    """Whether the extension loaded now is not the one whose figures are there already."""
    return before is not None and before.extension_key not in (None, key)


def sentence(changes: tuple[Difference, ...]) -> str:
    """`torch is 2.13.0 now, was 2.12.1`; the ones that can move a figure come first."""
    return "; ".join(f"{c.field} is {_short(c.ours)} now, was {_short(c.theirs)}" for c in changes)


def _short(value: object) -> str:
    text = ", ".join(str(v) for v in value) if isinstance(value, tuple) else str(value)
    return text if len(text) <= 60 else text[:59] + "…"
