"""A comparison as CSV: a row per workload and implementation, figures unrounded."""

from __future__ import annotations

import csv
import io

from app.core.change import Basis, Change, Ratio
from app.core.comparison import Comparison
from app.core.fields import fields_of
from app.core.workload import Workload
from app.exports import comparison_rows as rows
from app.exports.csv_results import ENVIRONMENT, environment_cells

RATIO = ("median", "low", "high")


def render(comparison: Comparison, basis: Basis = "net") -> bytes:
    """Times in seconds, ratios B over A; an empty cell where there is nothing to say."""
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    names = list(fields_of(Workload))
    writer.writerow(
        [
            *names,
            "implementation",
            "baseline",
            *(
                f"{side}_{figure}"
                for side in "ab"
                for figure in ("median_s", "low_s", "high_s", "n", "noise_floor")
            ),
            *(f"{kind}_{bound}" for kind in ("latency", "baseline_latency", "net") for bound in RATIO),
            *(f"{kind}_{what}" for kind in ("net", "latency") for what in ("verdict", "reason", "band")),
            *(f"{side}_{name}" for side in "ab" for name in ENVIRONMENT),
            "method",
        ]
    )
    machines = [*environment_cells(comparison.a.environment), *environment_cells(comparison.b.environment)]
    for change in comparison.changes:
        workload = [getattr(change.workload, name) for name in names]
        writer.writerow([*workload, *_figures(change), *machines, rows.METHOD])
    return out.getvalue().encode("utf-8", "replace")


def _figures(change: Change) -> list[object]:
    cells: list[object] = [change.implementation, change.baseline]
    for side in (change.a, change.b):
        cells += [getattr(side, name, None) for name in ("median_s", "low_s", "high_s", "n", "noise_floor")]
    for ratio in (change.latency, change.baseline_latency, change.net):
        cells += _bounds(ratio)
    for claim in (change.net_claim, change.latency_claim):
        cells += [getattr(claim, name, None) for name in ("verdict", "reason", "band")]
    return cells


def _bounds(ratio: Ratio | None) -> list[float | None]:
    return [None] * 3 if ratio is None else [ratio.median, ratio.low, ratio.high]
