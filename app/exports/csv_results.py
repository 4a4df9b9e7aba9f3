"""Results as CSV: a row per workload and implementation, figures unrounded."""

from __future__ import annotations

import csv
import io

from app.core.environment import Environment
from app.core.fields import fields_of
from app.core.latencies import LATENCIES
from app.core.recording import Recording
from app.core.results import Entry, all_entries
from app.core.workload import Workload
from app.exports import accuracy_rows
from app.exports.rows import METHOD

LATENCY = ("median_s", "q1_s", "q3_s", "p90_s", "p99_s", "min_s", "n")
ENVIRONMENT = (
    "attnscope",
    "system",
    "python",
    "torch",
    "torch_cuda",
    "driver",
    "cpu",
    "threads",
    "extension_key",
)
SPEED_UP = ("median", "low", "high", "noise_floor", "rounds")


def render(recording: Recording) -> bytes:
    """Times in seconds, memory in bytes; an empty cell where nothing was measured."""
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    names = list(fields_of(Workload))
    entries = all_entries(recording)
    tensors = accuracy_rows.csv_columns(entries)
    writer.writerow(
        [
            *names,
            "cache",
            "implementation",
            "baseline",
            "status",
            "reason",
            *(f"latency_{name}" for name in LATENCY),
            *(f"speed_up_{name}" for name in SPEED_UP),
            "verdict",
            "python_calls_forward",
            "python_calls_backward",
            "operator_calls_forward",
            "operator_calls_backward",
            "kernel_launches_forward",
            "kernel_launches_backward",
            "peak_bytes",
            "accuracy_ok",
            "accuracy_max_abs",
            "accuracy_checked_batch",
            "withheld",
            *(f"latencies_{name}" for name in LATENCIES),
            *(f"accuracy_{name}_{field}" for name, field in tensors),
            *ENVIRONMENT,
            "method",
        ]
    )
    machine = environment_cells(recording.environment)
    for entry in entries:
        workload = [getattr(entry.workload, name) for name in names]
        errors = accuracy_rows.csv_figures(entry.accuracy, tensors)
        writer.writerow([*workload, entry.cache, *_figures(entry), *errors, *machine, METHOD])
    return out.getvalue().encode("utf-8", "replace")


def environment_cells(environment: Environment | None) -> list[object]:
    """The columns `ENVIRONMENT`: a row says by itself where it was measured."""
    return [None if environment is None else getattr(environment, name) for name in ENVIRONMENT]


def _figures(entry: Entry) -> list[object]:
    counts, accuracy = entry.counts, entry.accuracy
    return [
        entry.implementation,
        entry.baseline,
        entry.status,
        entry.reason,
        *(getattr(entry.latency, name, None) for name in LATENCY),
        *(getattr(entry.speed_up, name, None) for name in SPEED_UP),
        entry.verdict,
        *_phases(counts.python_calls),
        *_phases(counts.operator_calls),
        *_phases(counts.kernel_launches),
        entry.memory.peak_bytes,
        None if accuracy is None else accuracy.ok,
        None if accuracy is None else accuracy.worst,
        None if accuracy is None else accuracy.checked_batch,
        entry.withheld,
        *(getattr(entry.latencies, name) for name in LATENCIES),
    ]


def _phases(counts: dict[str, int | None] | None) -> tuple[int | None, int | None]:
    return (None, None) if counts is None else (counts["forward"], counts["backward"])
