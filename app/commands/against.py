"""`--against`: a recording held against an earlier one, and the bound on how much slower it may be."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import msgspec

from app.commands import streams
from app.commands.exits import INPUT, OK, WRONG, CommandError
from app.core import files
from app.core.catalog import contender
from app.core.change import Basis, Change, against_bound, signed
from app.core.comparison import Comparison, compare
from app.core.fields import shorten
from app.core.plan import Plan
from app.core.recording import Recording
from app.core.text import micros

MOST = 100.0
"""A bound of more than 10,000 % is a slip of the keyboard."""


class Finding(msgspec.Struct, frozen=True):
    """A contender that exceeds the bound, or may."""

    workload: str
    implementation: str
    change: float
    low: float | None
    high: float | None
    reason: str


class Bound(msgspec.Struct, frozen=True):
    """What became of `--max-slowdown`: a share, and who exceeds it, who may, and of whom nothing could be said."""

    max_slowdown: float
    basis: Basis
    exceeded: tuple[Finding, ...] = ()
    unsure: tuple[Finding, ...] = ()
    not_compared: tuple[Finding, ...] = ()


def bound_of(arguments: argparse.Namespace) -> float | None:
    """`--max-slowdown` as a share. Raises CommandError where a flag makes no sense."""
    if arguments.against is None:
        for flag, value in (("--max-slowdown", arguments.max_slowdown), ("--by", arguments.by)):
            if value is not None:
                raise CommandError(INPUT, f"{flag}: needs --against RECORDING to compare with")
        return None
    text = arguments.max_slowdown
    if text is None:
        return None
    found = re.fullmatch(r"\s*(\d{1,9}(?:\.\d{1,9})?)\s*%\s*", text, re.ASCII)
    share = float(found[1]) / 100 if found else None
    if share is None or share > MOST:
        raise CommandError(
            INPUT, f"--max-slowdown {shorten(text)}: expected a percentage of 0% or more, such as 5%"
        )
    return share


def basis_of(arguments: argparse.Namespace) -> Basis:
    """On what the verdicts rest."""
    basis: Basis = arguments.by or "net"
    return basis


def load(path: Path, flag: str = "") -> Recording:
    """Open a recording; what of it is missing goes to stderr. Raises CommandError."""
    try:
        recording = files.load(path)
    except files.RecordingError as error:
        raise CommandError(INPUT, f"{flag} {error}".strip()) from None
    for fault in recording.faults:
        streams.complain(f"attnscope: {path}: {fault}")
    return recording


def control_for(arguments: argparse.Namespace, plan: Plan) -> Recording | None:
    """The recording to compare a run of `plan` with: found fit before anything is measured."""
    if arguments.against is None:
        return None
    control = load(arguments.against, "--against")
    measured = {msgspec.structs.replace(record.workload, device="auto") for record in control.records}
    if not any(msgspec.structs.replace(workload, device="auto") in measured for workload in plan.workloads):
        raise CommandError(INPUT, f"--against {arguments.against}: has none of the workloads of this profile")
    return control


def hold(control: Recording, recording: Recording) -> Comparison:
    """`recording` held against `control`. Raises CommandError where they have nothing in common."""
    comparison = compare(control, recording)
    if not any(change.latency is not None for change in comparison.changes):
        raise CommandError(
            INPUT, "--against: the two recordings have no workload and implementation in common"
        )
    return comparison


def check(comparison: Comparison, max_slowdown: float, basis: Basis) -> Bound:
    """Which contenders exceed the bound, which may, and which could not be judged."""
    found: dict[str, list[Finding]] = {"exceeded": [], "unsure": [], "within": [], "not_compared": []}
    for change in comparison.changes:
        if (
            change.a is None
            or change.b is None
            or (basis == "net" and change.implementation == comparison.baseline)
        ):
            continue
        outcome = against_bound(change, max_slowdown, basis) or "not_compared"
        found[outcome].append(_finding(change, basis))
    return Bound(
        max_slowdown,
        basis,
        exceeded=tuple(found["exceeded"]),
        unsure=tuple(found["unsure"]),
        not_compared=tuple(found["not_compared"]),
    )


def exit_code(bound: Bound | None) -> int:
    """1 where the bound is exceeded; what is only unsure fails nothing."""
    return WRONG if bound is not None and bound.exceeded else OK


def sentences(bound: Bound) -> list[str]:
    """What became of the bound, a line for each contender that needs one."""
    limit = f"{100 * bound.max_slowdown:g} %"
    lines = [f"slower by more than {limit}: {_words(finding)}" for finding in bound.exceeded]
    lines += [f"unsure whether slower by more than {limit}: {_words(finding)}" for finding in bound.unsure]
    lines += [f"not compared: {_words(finding)}" for finding in bound.not_compared]
    return lines or [f"nothing is slower by more than {limit}"]


def table(comparison: Comparison, basis: Basis) -> str:
    """The comparison as a plain table for a terminal."""
    lines = []
    for row in comparison.moving:
        lines.append(f"the machines differ in {row.title}: {row.a} in A, {row.b} in B")
    for workload in comparison.workloads:
        lines += ["", f"{workload.label}, {workload.device}"]
        lines += [_row(change, basis) for change in comparison.changes if change.workload == workload]
    return "\n".join(lines).strip()


def _row(change: Change, basis: Basis) -> str:
    title = contender(change.implementation).title.ljust(24)
    if change.a is None or change.b is None:
        return f"  {title}only in {'B' if change.a is None else 'A'}"
    times = f"{micros(change.a.median_s)} → {micros(change.b.median_s)} µs".rjust(24)
    claim, ratio = change.claim(basis), change.ratio(basis)
    latency = f"latency {signed(change.latency.change)}".ljust(16) if change.latency else ""
    if basis == "net" and change.implementation == change.baseline:
        return f"  {title}{times}  {latency}baseline"
    net = "" if basis == "latency" or ratio is None else f"net {signed(ratio.change)} "
    span = (
        f"({signed(ratio.low - 1)} to {signed(ratio.high - 1)}) "
        if ratio and ratio.low and ratio.high
        else ""
    )
    word = "" if claim is None else claim.verdict.upper()
    return f"  {title}{times}  {latency}{net}{span}{word}".rstrip()


def _finding(change: Change, basis: Basis) -> Finding:
    ratio, claim = change.ratio(basis), change.claim(basis)
    return Finding(
        workload=f"{change.workload.label}, {change.workload.device}",
        implementation=change.implementation,
        change=0.0 if ratio is None else ratio.change,
        low=None if ratio is None or ratio.low is None else ratio.low - 1,
        high=None if ratio is None or ratio.high is None else ratio.high - 1,
        reason="" if claim is None else claim.reason,
    )


def _words(finding: Finding) -> str:
    span = ""
    if finding.low is not None and finding.high is not None:
        span = f" {signed(finding.change)} ({signed(finding.low)} to {signed(finding.high)})"
    why = f": {finding.reason}" if finding.reason else ""
    return f"{contender(finding.implementation).title} at {finding.workload}{span}{why}"
