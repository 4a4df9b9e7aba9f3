"""A comparison as flat rows of text: what its Markdown and HTML tables show alike."""

from __future__ import annotations

from app.core import text
from app.core.catalog import contender
from app.core.change import BASES, Basis, Change, Ratio, signed
from app.core.comparison import About, Comparison
from app.core.machines import MachineRow

METHOD = (
    "The two recordings were measured at different times, so nothing is paired between them: the net change is the "
    "ratio of a contender's speed-ups over the same baseline in A and in B, from which what moved the baseline as "
    "well is taken out; the change of the latency alone stands beside it. The interval combines the distribution-free "
    "95 % intervals of both sides by square-and-add on a log scale. FASTER, SLOWER or SAME is claimed only where the "
    "whole interval lies beyond, or within, a band made of the noise floors of both and of what unchanged code moves "
    "from one run to the next."
)

COLUMNS = (
    "Implementation",
    "A, µs",
    "B, µs",
    "Latency",
    "Baseline",
    "Net",
    "95 % interval",
    "Band",
    "Verdict",
    "n in A",
    "n in B",
)


def title(comparison: Comparison) -> str:
    return f"{name_of(comparison.b, 'B')} against {name_of(comparison.a, 'A')}"


def name_of(about: About, otherwise: str) -> str:
    return about.title or otherwise


def cells(change: Change, basis: Basis = "net") -> tuple[str, ...]:
    """One row; what a side lacks is an en dash."""
    claim = change.claim(basis)
    sides = [text.NOTHING if side is None else text.micros(side.median_s) for side in (change.a, change.b)]
    numbers = [text.NOTHING if side is None else text.number(side.n) for side in (change.a, change.b)]
    return (
        contender(change.implementation).title,
        *sides,
        change_text(change.latency),
        change_text(change.baseline_latency),
        change_text(change.net),
        interval(change.ratio(basis)),
        text.NOTHING if claim is None or claim.band is None else f"±{text.percent(claim.band, 1)}",
        verdict(change, basis),
        *numbers,
    )


def change_text(ratio: Ratio | None) -> str:
    return text.NOTHING if ratio is None else signed(ratio.change)


def interval(ratio: Ratio | None) -> str:
    if ratio is None or ratio.low is None or ratio.high is None:
        return text.NOTHING
    return f"{signed(ratio.low - 1)} to {signed(ratio.high - 1)}"


def verdict(change: Change, basis: Basis) -> str:
    if change.a is None or change.b is None:
        return "ONLY IN B" if change.a is None else "ONLY IN A"
    if basis == "net" and change.implementation == change.baseline:
        return "BASELINE"
    word = change.word(basis)
    return text.NOTHING if word is None else word.upper()


def reasons(comparison: Comparison, basis: Basis = "net") -> list[tuple[str, str]]:
    """Why nothing is claimed where it is not: which contender in which workload, and the reason."""
    found = []
    for change in comparison.changes:
        claim = change.claim(basis)
        if claim is not None and claim.verdict == "unsure":
            name = contender(change.implementation).title
            found.append((f"{name} at {change.workload.label}, {change.workload.device}", claim.reason))
    return found


def missing(comparison: Comparison) -> list[str]:
    """What only one of the two has, a line each."""
    lines = [f"Only in A: {workload.label}, {workload.device}" for workload in comparison.only_a]
    lines += [f"Only in B: {workload.label}, {workload.device}" for workload in comparison.only_b]
    lines += [f"Only in A: {contender(name).title}" for name in comparison.implementations_only_a]
    lines += [f"Only in B: {contender(name).title}" for name in comparison.implementations_only_b]
    return lines


def machine_note(row: MachineRow) -> str:
    """What a difference means, after its two values."""
    if not row.differs:
        return "equal"
    return f"follows from {row.follows}" if row.follows else row.moves or "moves no figure that is known of"


def summary(comparison: Comparison, basis: Basis = "net") -> list[str]:
    """A sentence per contender: in how many workloads it got faster and slower."""
    lines = []
    for name in comparison.implementations:
        if basis == "net" and name == comparison.baseline:
            continue
        of = len(
            [change for change in comparison.of(name) if change.ratio(basis) is not None or change.fault]
        )
        parts = [
            f"{count} {word}"
            for word in ("faster", "slower", "same", "unsure")
            if (count := comparison.count(name, word, basis))
        ]
        plural = "" if of == 1 else "s"
        lines.append(
            f"{contender(name).title}: {', '.join(parts) or 'nothing claimed'} of {of} workload{plural}"
        )
    return lines


def basis_line(comparison: Comparison, basis: Basis) -> str:
    """On what the verdicts rest."""
    base = f" ({contender(comparison.baseline).title})" if basis == "net" else ""
    return f"Verdicts on {BASES[basis]}{base}."
