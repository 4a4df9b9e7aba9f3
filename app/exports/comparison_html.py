"""A comparison as one HTML file: no script, nothing fetched, readable without network."""

from __future__ import annotations

import math

from app.core import ticks
from app.core.change import Basis, Change, signed
from app.core.comparison import About, Comparison
from app.exports import comparison_rows as rows
from app.exports.html_parts import bullets, esc, figure, page, section, table
from app.exports.svg_charts import LABEL, TOP, VALUE, WIDTH, label, series_css, slug, svg

ROW = 26
AXIS = 26
LEAST_SPAN = 0.05
MOST_SPAN = 1.0


def render(comparison: Comparison, basis: Basis = "net") -> bytes:
    """The whole comparison; figures come from it alone."""
    heading = rows.title(comparison)
    body = [f"<h1>{esc(heading)}</h1>"]
    body += [f"<p>{esc(line)}</p>" for line in rows.summary(comparison, basis)]
    body.append(f"<p>{esc(rows.basis_line(comparison, basis))}</p>")
    if comparison.moving:
        what = ", ".join(row.title for row in comparison.moving)
        body.append(f'<p class="warning">The machines differ in {esc(what)}.</p>')
    for workload in comparison.workloads:
        changes = tuple(change for change in comparison.changes if change.workload == workload)
        caption = f"Change of the {basis} latency, A to B, with its 95 % interval; grey: nothing is claimed"
        plot = figure(chart(changes, basis), caption.replace("latency latency", "latency"))
        cells = table(rows.COLUMNS, [rows.cells(change, basis) for change in changes])
        body.append(section(f"{workload.label}, {workload.device}", cells + plot))
    unsure = rows.reasons(comparison, basis)
    if unsure:
        body.append(section("Not claimed", bullets([f"{what}: {why}" for what, why in unsure])))
    alone = rows.missing(comparison)
    if alone:
        body.append(section("Not compared", bullets(alone)))
    body.append(section("Environments", _machines(comparison)))
    body.append(section("Method", f"<p>{esc(rows.METHOD)}</p>"))
    names = tuple(dict.fromkeys(change.implementation for change in comparison.changes))
    return page(heading, "".join(body), series_css(names))


def chart(changes: tuple[Change, ...], basis: Basis) -> str:
    """Change of each contender as a mark with its interval, on one axis about no change. Empty if nothing changed."""
    shown = [(change, ratio) for change in changes if (ratio := change.ratio(basis)) is not None]
    if not shown:
        return ""
    ends = [abs(value - 1) for _, ratio in shown for value in (ratio.median, ratio.low, ratio.high) if value]
    span = min(max(*ends, LEAST_SPAN), MOST_SPAN)
    step = ticks.nice_step(2 * span, 6)
    span = step * math.ceil(span / step - 1e-9)
    plot = WIDTH - LABEL - VALUE

    def x(value: float) -> float:
        share = min(max((value - 1) / span, -1.0), 1.0)
        return LABEL + plot * (share + 1) / 2

    height = TOP + len(shown) * ROW + AXIS
    parts = []
    zero = round(span / step)
    for index in range(2 * zero + 1):
        at = -span + index * step
        place = x(1 + at)
        parts.append(
            f'<line class="grid" x1="{place:.1f}" x2="{place:.1f}" y1="{TOP}" y2="{height - AXIS}"/>'
        )
        words = "0" if index == zero else signed(at, 0 if step >= 0.01 else 1)
        parts.append(f'<text class="tick" x="{place:.1f}" y="{height - 8}">{words}</text>')
    for index, (change, ratio) in enumerate(shown):
        y = TOP + index * ROW + ROW / 2
        claim, name = change.claim(basis), slug(change.implementation)
        parts.append(label(change.implementation, y))
        if claim is not None and claim.band is not None:
            left, right = x(1 / (1 + claim.band)), x(1 + claim.band)
            parts.append(
                f'<rect class="noise" x="{left:.1f}" y="{y - ROW / 2:.1f}" width="{right - left:.1f}" height="{ROW}"/>'
            )
        if ratio.low is not None and ratio.high is not None:
            parts.append(
                f'<line class="s-{name} whisker" x1="{x(ratio.low):.1f}" x2="{x(ratio.high):.1f}" '
                f'y1="{y:.1f}" y2="{y:.1f}"/>'
            )
        parts.append(f'<circle class="s-{name}" cx="{x(ratio.median):.1f}" cy="{y:.1f}" r="4"/>')
        parts.append(f'<text class="value" x="{WIDTH}" y="{y + 4:.1f}">{signed(ratio.change)}</text>')
    return svg(height, "Change from A to B", "".join(parts))


def _machines(comparison: Comparison) -> str:
    body = [(row.title, row.a, row.b, rows.machine_note(row)) for row in comparison.machines]
    classes = [
        "differs" if row.differs and row.moves and not row.follows else "" for row in comparison.machines
    ]
    about = "".join(
        f"<p>{esc(side)}: {esc(_about(of))}</p>" for side, of in (("A", comparison.a), ("B", comparison.b))
    )
    return about + table(("", "A", "B", ""), body, classes, left=True)


def _about(about: About) -> str:
    duration = ""
    if about.began_s is not None and about.ended_s is not None:
        duration = f", {(about.ended_s - about.began_s) / 60:,.1f} min"
    return f"{about.title or 'untitled'}, {about.workloads:,} workloads, {about.rounds:,} rounds{duration}"
