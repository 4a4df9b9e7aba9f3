"""What the comparison says, as plain data for the parts that draw it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from app.core.catalog import contender
from app.core.change import Basis, Change, signed
from app.core.comparison import About, Comparison
from app.core.text import NOTHING, THIN, micros, number
from app.core.workload import Workload
from app.gui.parts.line import Glyph, Level, Mark, Text, joined

Show = Literal["all", "changed", "unsure"]
Sort = Literal["change", "workload"]

DIRECTIONS = {"forward": "Forward", "forward_backward": "Forward + backward", "decode": "Decode"}
SORTS: dict[Sort, str] = {"change": "Sort: largest change", "workload": "Sort: as measured"}


@dataclass(frozen=True)
class Chosen:
    """How a person looks at a comparison."""

    implementation: str
    basis: Basis = "net"
    show: Show = "all"
    sort: Sort = "change"


@dataclass(frozen=True)
class ChangeRow:
    """A line of the table: one workload, for the contender that is shown."""

    title: str
    detail: str
    change: Change


def first_choice(comparison: Comparison) -> Chosen:
    """The extension where both have it, else the first that is not the baseline."""
    names = [name for name in comparison.implementations if name != comparison.baseline]
    extensions = [name for name in names if name.startswith("extension")]
    if not names:
        return Chosen(comparison.baseline, "latency")
    return Chosen((extensions or names)[-1])


def basis_of(comparison: Comparison, chosen: Chosen) -> Basis:
    """Of the baseline only the latency speaks."""
    return "latency" if chosen.implementation == comparison.baseline else chosen.basis


def rows_of(comparison: Comparison, chosen: Chosen) -> tuple[ChangeRow, ...]:
    """The lines to show, in the order to show them."""
    basis = basis_of(comparison, chosen)
    titles = titles_of(comparison.workloads)
    changes = [c for c in comparison.of(chosen.implementation) if c.a is not None and c.b is not None]
    changes = [change for change in changes if _is_shown(change, basis, chosen.show)]
    if chosen.sort == "change":
        changes.sort(key=lambda change: -_size(change, basis))
    return tuple(ChangeRow(*titles[change.workload], change) for change in changes)


def counts(comparison: Comparison, chosen: Chosen) -> dict[Show, int]:
    """How many lines each choice would show."""
    basis = basis_of(comparison, chosen)
    both = [c for c in comparison.of(chosen.implementation) if c.a is not None and c.b is not None]
    shows: tuple[Show, ...] = ("all", "changed", "unsure")
    return {show: sum(_is_shown(change, basis, show) for change in both) for show in shows}


def titles_of(workloads: Sequence[Workload]) -> dict[Workload, tuple[str, str]]:
    """A title and a second line for each workload: what tells it from the others stands first."""

    def varies(field: str) -> bool:
        return len({getattr(workload, field) for workload in workloads}) > 1

    titles = {}
    for workload in workloads:
        decode = workload.mode not in ("forward", "forward_backward")
        first = [
            f"{number(workload.seq_len)} cached tokens" if decode else f"Sequence {number(workload.seq_len)}"
        ]
        if varies("embed_dim"):
            first.append(f"embedding {number(workload.embed_dim)}")
        if varies("num_heads"):
            first.append(f"{workload.num_heads} heads")
        second = [DIRECTIONS.get(workload.mode, workload.mode), f"batch {number(workload.batch)}"]
        if varies("causal"):
            second.append("causal" if workload.causal else "full")
        if varies("dtype"):
            second.append(workload.dtype)
        if varies("device"):
            second.append(workload.device)
        titles[workload] = (", ".join(first), " · ".join(second))
    return titles


def percent(value: float | None) -> str:
    """A change as the table has it: `−8.1 %`."""
    return NOTHING if value is None else signed(value).replace("%", f"{THIN}%")


def cells(row: ChangeRow, basis: Basis) -> dict[str, str]:
    """The figures of a line, by column."""
    change = row.change
    ratio, base = change.ratio(basis), change.baseline_latency
    return {
        "a": NOTHING if change.a is None else micros(change.a.median_s),
        "b": NOTHING if change.b is None else micros(change.b.median_s),
        "latency": percent(None if change.latency is None else change.latency.change),
        "base": percent(None if base is None else base.change),
        "net": percent(None if ratio is None else ratio.change),
        "verdict": (change.word(basis) or "").upper(),
    }


def tip(row: ChangeRow, basis: Basis) -> str:
    """The whole of a line in words."""
    change, claim, ratio = row.change, row.change.claim(basis), row.change.ratio(basis)
    lines = [f"{change.workload.label}, {change.workload.device}"]
    if change.a is not None and change.b is not None:
        lines.append(f"{number(change.a.n)} samples in A, {number(change.b.n)} in B")
    if ratio is not None and ratio.low is not None and ratio.high is not None:
        lines.append(f"95 % interval {percent(ratio.low - 1)} to {percent(ratio.high - 1)}")
    if claim is not None:
        lines.append(claim.reason)
    return "\n".join(lines)


def band_of(comparison: Comparison, chosen: Chosen) -> float | None:
    """The widest band of the lines shown, so that the sentence under the table is true of all."""
    basis = basis_of(comparison, chosen)
    claims = [change.claim(basis) for change in comparison.of(chosen.implementation)]
    return max((claim.band for claim in claims if claim is not None and claim.band is not None), default=None)


def footer(comparison: Comparison, chosen: Chosen) -> tuple[str, ...]:
    """The sentence under the table, from the longest to the shortest."""
    band = band_of(comparison, chosen)
    if band is None:
        return ("no noise floor for this baseline: nothing is claimed",)
    basis = basis_of(comparison, chosen)
    what = f"noise floors and what unchanged code moves between two runs, up to ±{percent_of(band)}"
    short = f"what unchanged code moves between two runs, up to ±{percent_of(band)}"
    base = contender(comparison.baseline).short
    formula = f"Net = (1 + latency) ÷ (1 + {base}) − 1" if basis == "net" else "Latency alone"
    return (
        f"{what}  ·  {formula}, bars are 95 % intervals",
        f"{short}  ·  {formula}",
        short,
        f"noise ±{percent_of(band)}",
    )


def percent_of(share: float) -> str:
    return f"{100 * share:.1f}{THIN}%"


def when(about: About) -> str:
    """`24 Nov 14:10`; nothing where no sample says so."""
    if about.began_s is None:
        return ""
    began = datetime.fromtimestamp(about.began_s)
    return f"{began.day} {began:%b %H:%M}"


def about_lines(about: About, power: str) -> tuple[str, str]:
    """Two lines under a recording's name."""
    first = " · ".join(part for part in (when(about), power) if part)
    parts = [f"{number(about.workloads)} workload{'' if about.workloads == 1 else 's'}"]
    if about.began_s is not None and about.ended_s is not None:
        minutes = (about.ended_s - about.began_s) / 60
        parts.append(f"{number(minutes)} min" if minutes >= 1 else f"{number(60 * minutes)} s")
    if about.environment is not None and about.environment.torch:
        parts.append(f"torch {about.environment.torch.partition('+')[0]}")
    return first, " · ".join(parts)


def sentence(comparison: Comparison, chosen: Chosen) -> tuple[str, tuple[Level, ...]]:
    """The state that colours the verdict's edge, and its sentence, from the longest to the shortest."""
    name, basis = chosen.implementation, basis_of(comparison, chosen)
    of = counts(comparison, chosen)["all"]
    faster, slower = (comparison.count(name, word, basis) for word in ("faster", "slower"))
    entry = contender(name)
    head: Level = (Mark(entry.shape, name, 12, gap=10), Text(entry.title, 20, 600, "text", gap=7))
    short: Level = (Mark(entry.shape, name, 12, gap=8), Text(entry.short, 16, 600, "text", gap=6))
    workloads = "workload" if of == 1 else "workloads"
    state = (
        "warning"
        if comparison.moving
        else "faster"
        if faster and not slower
        else "slower"
        if slower
        else "same"
    )
    if not of:
        return "unsure", (
            (*head, Text("is not in both recordings", 20, 400)),
            (*short, Text("not in both", 16)),
        )
    if not faster and not slower:
        known = comparison.count(name, "same", basis)
        words = f"is the same in {known}" if known else "shows no change that can be believed"
        rest = f" of {of} {workloads}" if known else f" in {of} {workloads}"
        return (
            state if known or state == "warning" else "unsure",
            ((*head, Text(words + rest, 20, 400)), (*short, Text(words, 16, 400))),
        )
    parts: list[Text] = []
    for count, word in ((faster, "faster"), (slower, "slower")):
        if count:
            if parts:
                parts.append(Text("and", 20, 400, gap=7))
            parts.append(Text(f"{word} in {count}", 20, 600, "text", gap=7))
    got = Text("got", 20, 400, gap=7)
    small = tuple(Text(part.text, 16, part.weight, part.role, gap=5) for part in parts)
    return state, (
        (*head, got, *parts, Text(f"of {of} {workloads}", 20, 400)),
        (*short, *small, Text(f"of {of}", 16, 400)),
        (*short, *small),
    )


def evidence(comparison: Comparison, chosen: Chosen, a: str) -> tuple[Level, ...]:
    """The line under the sentence; what may be dropped stands where it is dropped first."""
    name, basis = chosen.implementation, basis_of(comparison, chosen)
    base = contender(comparison.baseline).short
    kind: Level = (Text(f"net of {base}" if basis == "net" else "latency alone", 12, 600, "text"),)
    since: Level = (Text(f"since {a}", 12, 600, "text"),)
    same, unsure = comparison.count(name, "same", basis), comparison.count(name, "unsure", basis)
    rest: Level = (Text(", ".join(f"{n} {word}" for n, word in ((same, "same"), (unsure, "unsure")) if n)),)
    band = band_of(comparison, chosen)
    noise: Level = (Text(f"noise between runs ±{percent_of(band)}"),) if band is not None else ()
    differs: Level = ()
    if comparison.moving:
        what = [
            row.title if row.title in ("PyTorch", "CPU") else row.title.lower() for row in comparison.moving
        ]
        listed = f"{', '.join(what[:-1])} and {what[-1]}" if len(what) > 1 else what[0]
        differs = (Glyph("warning", "warning", 14), Text(f"the machines differ in {listed}", role="warning"))
    short: Level = (
        (Glyph("warning", "warning", 14), Text("machines differ", role="warning")) if differs else ()
    )
    counted = rest if same or unsure else ()
    return (
        joined(kind, since, counted, noise, differs),
        joined(kind, counted, noise, differs),
        joined(kind, noise, differs),
        joined(kind, noise, short),
        joined(kind, short),
        kind,
    )


def medians(comparison: Comparison, chosen: Chosen) -> tuple[str, str, str]:
    """The figure at the right: how the latency alone moved, and the baseline's."""
    own = [c.latency.median for c in comparison.of(chosen.implementation) if c.latency is not None]
    base = [c.latency.median for c in comparison.of(comparison.baseline) if c.latency is not None]
    if not own:
        return "", "", ""
    moved = percent(_middle(own) - 1)
    if chosen.implementation == comparison.baseline or not base:
        return "Latency alone, median", moved, ""
    return (
        "Latency alone, median",
        moved,
        f"{contender(comparison.baseline).short} moved {percent(_middle(base) - 1)}",
    )


def advice(comparison: Comparison, chosen: Chosen) -> str:
    """What to do with what was found."""
    base = contender(comparison.baseline).short
    basis = basis_of(comparison, chosen)
    unsure = comparison.count(chosen.implementation, "unsure", basis)
    parts = []
    if comparison.moving:
        names = {row.field for row in comparison.moving}
        if "torch" in names:
            parts.append(
                f"Net takes out what moved {base} too. If torch changed {base} itself, read Latency on one machine."
            )
        elif "power" in names:
            parts.append("Repeat the one that ran on battery on mains.")
        else:
            parts.append(f"Net takes out what moved {base} too; the latency alone compares the machines.")
    if unsure:
        parts.append(
            "Unsure ones may be real: measure both longer, with other programs closed, and in more than one run."
        )
    if not parts:
        parts.append(
            "Nothing stands against these verdicts: the machines are alike and the intervals narrow."
        )
    return " ".join(parts)


def _middle(values: list[float]) -> float:
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def _is_shown(change: Change, basis: Basis, show: Show) -> bool:
    word = change.word(basis)
    if show == "changed":
        return word in ("faster", "slower")
    return show == "all" or word == "unsure"


def _size(change: Change, basis: Basis) -> float:
    ratio = change.ratio(basis)
    return 0.0 if ratio is None else abs(math.log(ratio.median))
