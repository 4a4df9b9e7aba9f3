"""A sweep as CSV: a row per cell and implementation, those included of which nothing is claimed."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from app.core.files import write_atomically
from app.core.recording import Recording
from app.core.results import entries_of
from app.core.sweep import grid_of, result_of

FIGURES = ("median", "low", "high", "noise_floor", "rounds")


def render(recording: Recording) -> bytes:
    """Times in seconds, memory in bytes; `state` and `reason` say what became of each cell."""
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    plan = recording.sweep
    grid = grid_of(plan)
    axes = [axis.field for axis in grid.axes] if grid is not None else []
    writer.writerow(
        [
            *axes,
            "implementation",
            "baseline",
            "state",
            "reason",
            "latency_median_s",
            "latency_q1_s",
            "latency_q3_s",
            *(f"speed_up_{name}" for name in FIGURES),
            "peak_bytes",
        ]
    )
    records = {record.workload: record for record in recording.records}
    for cell in grid.cells if grid is not None else ():
        assert plan is not None
        record = records.get(cell.workload) if cell.workload is not None else None
        entries = entries_of(record, plan.baseline, plan.implementations) if record is not None else ()
        known = {entry.implementation: entry for entry in entries}
        for name in plan.implementations:
            entry = known.get(name)
            result = result_of(cell, name, record, entry)
            latency = entry.latency if entry is not None else None
            speed = entry.speed_up if entry is not None else None
            writer.writerow(
                [
                    *cell.values,
                    name,
                    plan.baseline,
                    result.state,
                    result.reason,
                    *(getattr(latency, key, None) for key in ("median_s", "q1_s", "q3_s")),
                    *(getattr(speed, key, None) for key in FIGURES),
                    entry.memory.peak_bytes if entry is not None else None,
                ]
            )
    return out.getvalue().encode()


def write(recording: Recording, path: Path) -> None:
    """Write it whole or not at all. Raises OSError."""
    write_atomically(path, render(recording))
