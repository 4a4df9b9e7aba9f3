"""Charts of a report as SVG text: no library, no script, readable for good."""

from __future__ import annotations

from app.core import text, ticks
from app.core.catalog import contender
from app.core.results import Entry
from app.exports.html_parts import esc

WIDTH = 720
ROW = 30
LABEL = 170
VALUE = 90
TOP = 8
AXIS = 26
LABEL_LETTERS = 24


def latency_chart(entries: tuple[Entry, ...]) -> str:
    """Median as a mark, quartiles as a band; axis in µs from zero to the largest p90. Empty if nothing ran."""
    measured = [entry for entry in entries if entry.latency is not None]
    tops = [e.latency.p90_s or e.latency.median_s for e in measured if e.latency is not None]
    if not tops:
        return ""
    axis = ticks.from_zero(max(tops) * 1e6)
    top = axis[-1] / 1e6
    plot = WIDTH - LABEL - VALUE
    rows = []
    for index, entry in enumerate(measured):
        latency = entry.latency
        assert latency is not None
        y = TOP + index * ROW + ROW / 2
        x = [
            LABEL + plot * min(v, top) / top for v in (latency.q1_s or 0, latency.median_s, latency.q3_s or 0)
        ]
        name = entry.implementation
        rows.append(label(entry.implementation, y))
        if latency.q1_s is not None:
            rows.append(
                f'<rect class="s-{slug(name)} band" x="{x[0]:.1f}" y="{y - 8:.1f}" '
                f'width="{max(x[2] - x[0], 1):.1f}" height="16"/>'
            )
        rows.append(
            f'<line class="s-{slug(name)} median" x1="{x[1]:.1f}" x2="{x[1]:.1f}" '
            f'y1="{y - 10:.1f}" y2="{y + 10:.1f}"/>'
        )
        rows.append(_value(text.micros(latency.median_s) + " µs", y))
    height = TOP + len(measured) * ROW + AXIS
    return svg(height, "Median latency with quartiles, µs", _axis(axis, height, plot) + "".join(rows))


def calls_chart(entries: tuple[Entry, ...], what: str, title: str) -> str:
    """Bars of a count per call, forward solid and backward lighter. Empty if nothing was counted.

    `what` names the field of `ResultCounts`.
    """
    counted = []
    for entry in entries:
        phases: dict[str, int | None] | None = getattr(entry.counts, what)
        if phases is not None and any(value is not None for value in phases.values()):
            counted.append((entry, phases["forward"] or 0, phases["backward"] or 0))
    if not counted:
        return ""
    top = max(forward + backward for _, forward, backward in counted) or 1
    plot = WIDTH - LABEL - VALUE
    rows = []
    for index, (entry, forward, backward) in enumerate(counted):
        y = TOP + index * ROW + ROW / 2
        split, end = plot * forward / top, plot * (forward + backward) / top
        own = slug(entry.implementation)
        rows.append(label(entry.implementation, y))
        rows.append(f'<rect class="s-{own}" x="{LABEL}" y="{y - 8:.1f}" width="{split:.1f}" height="16"/>')
        rows.append(
            f'<rect class="s-{own} backward" x="{LABEL + split:.1f}" y="{y - 8:.1f}" '
            f'width="{end - split:.1f}" height="16"/>'
        )
        parts = f" ({forward} + {backward})" if backward else ""
        rows.append(_value(f"{forward + backward}{parts}", y))
    return svg(TOP + len(counted) * ROW + 4, title, "".join(rows))


def series_css(names: tuple[str, ...]) -> str:
    """Colours of the contenders in both schemes; on paper the light ones."""
    light = "".join(f".s-{slug(n)}{{fill:{contender(n).light};stroke:{contender(n).light}}}" for n in names)
    dark = "".join(f".s-{slug(n)}{{fill:{contender(n).dark};stroke:{contender(n).dark}}}" for n in names)
    return f"{light}@media screen and (prefers-color-scheme: dark){{{dark}}}"


def svg(height: float, title: str, body: str) -> str:
    """A picture of `WIDTH`; `body` is markup already."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" role="img" '
        f'aria-label="{esc(title)}"><title>{esc(title)}</title>{body}</svg>'
    )


def label(implementation: str, y: float) -> str:
    """A contender's name at the left, cut to its room; the whole is its tooltip."""
    title = contender(implementation).title
    short = title if len(title) <= LABEL_LETTERS else title[: LABEL_LETTERS - 1] + "…"
    return f'<text class="label" x="0" y="{y + 4:.1f}"><title>{esc(title)}</title>{esc(short)}</text>'


def slug(name: str) -> str:
    """A contender's id as the name of a class, one of its own whatever letters it has."""
    return "".join(c if c.isascii() and c.isalnum() else f"_{ord(c):x}" for c in name)


def _value(words: str, y: float) -> str:
    return f'<text class="value" x="{WIDTH}" y="{y + 4:.1f}">{esc(words)}</text>'


def _axis(values: list[float], height: float, plot: float) -> str:
    parts = []
    for value in values:
        x = LABEL + plot * value / values[-1]
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{height - AXIS}"/>')
        parts.append(
            f'<text class="tick" x="{x:.1f}" y="{height - 8:.0f}">{ticks.tick_label(value, values[1])}</text>'
        )
    return "".join(parts)
