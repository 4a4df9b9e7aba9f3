"""Distributions as SVG text: a hill per contender over one logarithmic axis."""

from __future__ import annotations

import math

import numpy as np

from app.core import ticks
from app.core.evidence import kept
from app.core.recording import WorkloadRecord
from app.core.results import Entry
from app.core.series import Array
from app.exports.svg_charts import AXIS, LABEL, TOP, VALUE, WIDTH, label, slug, svg

ROW = 38
BINS = 90
EDGE = 0.005
"""The axis leaves out this share at either end: a single hiccup would squeeze everything else."""

MIN_SAMPLES = 20


def distribution_chart(record: WorkloadRecord, entries: tuple[Entry, ...]) -> str:
    """How often each latency came, of the samples that enter the figures; empty where there are too few."""
    samples: list[tuple[str, Array]] = []
    for entry in entries:
        series = record.series.get(entry.implementation)
        if series is not None:
            seconds = series.seconds[kept(series, record.strains)[0]]
            if seconds.size >= MIN_SAMPLES:
                samples.append((entry.implementation, seconds * 1e6))
    if not samples:
        return ""
    low = min(float(np.quantile(values, EDGE)) for _, values in samples) / 1.02
    high = max(float(np.quantile(values, 1 - EDGE)) for _, values in samples) * 1.02
    edges = np.geomspace(low, high, BINS + 1)
    plot = WIDTH - LABEL - VALUE
    height = TOP + len(samples) * ROW + AXIS

    def x(value: float) -> float:
        return LABEL + plot * math.log(value / low) / math.log(high / low)

    parts = []
    for value in ticks.logarithmic(low, high, 8):
        parts.append(
            f'<line class="grid" x1="{x(value):.1f}" x2="{x(value):.1f}" y1="{TOP}" y2="{height - AXIS}"/>'
            f'<text class="tick" x="{x(value):.1f}" y="{height - 8}">{ticks.value_label(value)}</text>'
        )
    for index, (name, values) in enumerate(samples):
        bottom = TOP + (index + 1) * ROW
        heights = _hill(values, edges)
        points = [f"M{x(low):.1f} {bottom}"]
        for k, share in enumerate(heights):
            middle = math.sqrt(edges[k] * edges[k + 1])
            points.append(f"L{x(middle):.1f} {bottom - share * (ROW - 6):.1f}")
        points.append(f"L{x(high):.1f} {bottom}Z")
        parts.append(label(name, bottom - 8))
        parts.append(f'<path class="s-{slug(name)} hill" d="{"".join(points)}"/>')
        beyond = int((values > high).sum())
        if beyond:
            words = f"{beyond:,} beyond"
            parts.append(f'<text class="value" x="{WIDTH}" y="{bottom - 4}">{words}</text>')
    return svg(height, "Distribution of the latency, µs", "".join(parts))


def _hill(values: Array, edges: Array) -> Array:
    """Counts per bin, smoothed over three, the highest 1."""
    counts, _ = np.histogram(values, edges)
    smooth = np.convolve(counts, (0.25, 0.5, 0.25), mode="same")
    return smooth / max(float(smooth.max()), 1e-12)
