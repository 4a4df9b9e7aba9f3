"""The roofline of a report as SVG text."""

from __future__ import annotations

from html import escape

from app.core.catalog import contender
from app.core.peaks import bandwidth, rate
from app.core.roofline import Roofline
from app.core.roofline_axes import Axes, axes_of, label, ticks
from app.core.work import PHASES, Point
from app.exports.svg_charts import WIDTH, slug, svg

HEIGHT = 360
LEFT, RIGHT, TOP, BOTTOM = 56, 12, 12, 40


def chart(roofline: Roofline) -> str:
    """Ceilings and points on log axes; forward filled, backward and training step hollow, decode ringed."""
    peaks, axes = roofline.peaks, axes_of(roofline)
    if peaks is None or axes is None:
        return ""
    return svg(
        HEIGHT,
        "Roofline, GFLOP/s over FLOP per byte",
        _grid(axes) + _roof(roofline, axes) + _points(roofline, axes),
    )


def _x(axes: Axes, value: float) -> float:
    return LEFT + axes.x(value) * (WIDTH - LEFT - RIGHT)


def _y(axes: Axes, value: float) -> float:
    return HEIGHT - BOTTOM - axes.y(value) * (HEIGHT - TOP - BOTTOM)


def _grid(axes: Axes) -> str:
    parts = []
    for value in ticks(axes.x_low, axes.x_high):
        x = _x(axes, value)
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>')
        parts.append(f'<text class="tick" x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}">{label(value)}</text>')
    for value in ticks(axes.y_low / 1e9, axes.y_high / 1e9):
        y = _y(axes, value * 1e9)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="tick" x="{LEFT - 26}" y="{y + 4:.1f}">{label(value)}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text class="tick" x="{middle:.0f}" y="{HEIGHT - 6}">FLOP per byte</text>')
    return "".join(parts)


def _roof(roofline: Roofline, axes: Axes) -> str:
    peaks = roofline.peaks
    assert peaks is not None
    corners = [
        (axes.x_low, peaks.roof(axes.x_low)),
        (peaks.ridge, peaks.compute),
        (axes.x_high, peaks.compute),
    ]
    line = " ".join(f"{_x(axes, x):.1f},{_y(axes, y):.1f}" for x, y in corners)
    top = _y(axes, peaks.compute) - 6
    return (
        f'<polyline class="roof" points="{line}"/>'
        f'<text class="value" x="{WIDTH - RIGHT}" y="{top:.1f}">compute {rate(peaks.compute)}</text>'
        f'<text x="{LEFT + 8}" y="{top:.1f}">memory {bandwidth(peaks.memory)}</text>'
    )


def _points(roofline: Roofline, axes: Axes) -> str:
    return "".join(
        _point(point, _x(axes, point.work.intensity), _y(axes, point.achieved)) for point in roofline.points
    )


def _point(point: Point, x: float, y: float) -> str:
    phase = point.work.phase
    name = contender(point.implementation).title
    words = f"{name}, {PHASES[phase]}: {rate(point.achieved)}, {point.words}"
    hollow = ' fill-opacity="0.25"' if phase in ("backward", "step") else ""
    ring = f'<circle class="ring" cx="{x:.1f}" cy="{y:.1f}" r="9"/>' if phase == "decode" else ""
    return (
        f'<circle class="s-{slug(point.implementation)}" cx="{x:.1f}" cy="{y:.1f}" r="5"{hollow}>'
        f"<title>{escape(words)}</title></circle>{ring}"
    )
