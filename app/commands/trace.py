"""`trace`: what is true of a Chrome trace of torch.profiler, or differs between two."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import msgspec

from app.commands.exits import INPUT, OK, CommandError
from app.core import text
from app.core.trace import Trace, TraceError, diff, facts, read

SHOWN = 20
"""Differences listed without --json, the largest in time of each kind first."""


def trace(arguments: argparse.Namespace) -> int:
    """Print the facts of `arguments.file`, or what it has more or less of than `arguments.against`."""
    opened = _read(arguments.file)
    if arguments.against is None:
        found = facts(opened)
        lines = _summary(found)
    else:
        found = diff(_read(arguments.against), opened)
        lines = _differences(found)
    if arguments.json:
        print(msgspec.json.format(msgspec.json.encode(found)).decode())
    else:
        print("\n".join(lines))
    return OK


def _read(path: Path) -> Trace:
    """Open a trace; what is odd about it goes to stderr."""
    try:
        opened = read(path)
    except TraceError as error:
        raise CommandError(INPUT, str(error)) from None
    for warning in opened.warnings:
        print(f"attnscope: {warning}", file=sys.stderr)
    return opened


def _summary(found: dict[str, Any]) -> list[str]:
    matching = found["matching"]
    rows = [
        ("events", text.number(found["events"]["total"])),
        ("span", _us(found["span_us"])),
        (
            "operators",
            f"{found['cpu_ops']['total']:,}, {found['cpu_ops']['top_level']:,} of them at top level",
        ),
    ]
    launches = found["launch_calls"]
    # A trace of a CPU alone has no device to speak of.
    if found["kernels"]["total"] or launches["total"]:
        rows += [
            (
                "launches",
                f"{launches['kernel_launch_total']:,} of kernels, {launches['graph_launch_total']:,} of graphs",
            ),
            (
                "matched",
                f"{matching['kernel_launches_matched']:,} launches with a kernel, "
                f"{matching['kernel_launches_unmatched']:,} without",
            ),
            ("kernels", f"{found['kernels']['total']:,} in {_us(found['kernels']['time_us'])}"),
            ("copies", f"{found['memcpy']['total']:,}, memsets {found['memset']['total']:,}"),
        ]
        rows += [("", f"{k['count']:>6,} × {k['name'][:90]}") for k in found["top_kernels"]]
    return [f"{title:<10} {value}" for title, value in rows]


def _differences(found: dict[str, Any]) -> list[str]:
    lines = []
    for entry in found["entries"][:SHOWN]:
        change = f"{entry['control_count']:,} → {entry['test_count']:,}"
        lines.append(f"{entry['change']:<8} {entry['kind']:<8} {change:>16}  {entry['name'][:80]}")
    left = len(found["entries"]) - SHOWN
    return [*lines, f"and {left:,} more; --json has all"] if left > 0 else lines


def _us(microseconds: float) -> str:
    return text.duration(microseconds / 1e6)
