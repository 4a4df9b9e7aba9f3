"""The smaller words of the verdict: whom it is about, what matched, how long something takes."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from app.core.build import BuildState
from app.core.catalog import contender
from app.core.results import Entry
from app.core.statistics import half_width
from app.core.text import number, percent
from app.gui.parts.line import Glyph, Level, Piece, Text
from app.gui.snapshot import Snapshot

RECENT_SAMPLES = 60


def subject_of(snapshot: Snapshot, picked: bool) -> str | None:
    """Whom the verdict is about: the one picked, else an extension under way or failed, else the best."""
    waiting = waiting_extension(snapshot)
    build = snapshot.recording.build
    if not picked and waiting is not None and (build.is_running or build.state == "failed"):
        return waiting
    return snapshot.challenger or waiting


def waiting_extension(snapshot: Snapshot) -> str | None:
    """The extension that was asked for and is not there yet."""
    for entry in snapshot.entries:
        name = entry.implementation
        if name != snapshot.baseline and contender(name).needs_extension and entry.status != "measured":
            return name
    return None


def plain_title(implementation: str) -> str:
    """The title without what stands in brackets for the list's sake."""
    return contender(implementation).title.removesuffix(" (step by step)")


def match_texts(entry: Entry) -> tuple[str, ...]:
    """What the accuracy check found, from long to short; one empty text before it was made."""
    accuracy = entry.accuracy
    if accuracy is None:
        return ("not checked yet",)
    gradients = sum(1 for name in accuracy.tensors if name.startswith("grad_"))
    worst = f" (max |Δ| {accuracy.worst:.1e})"
    if not gradients:
        return (f"output matches{worst}", "output matches")
    words = "1 gradient matches" if gradients == 1 else f"{gradients} gradients match"
    both = f"output and {gradients} gradients match"
    return (f"{both}{worst}", both, words)


def match_pieces(entry: Entry, text: str) -> Level:
    if entry.accuracy is None:
        return (Text(text, 12, 400, "text_tertiary"),)
    return (Glyph("tick", "ok", 14, gap=5), Text(text))


def tensor_title(tensor: str) -> str:
    """`grad_v_weight` as `the gradient of v_weight`."""
    match = re.fullmatch(r"grad_(\w+)", tensor)
    return f"the gradient of {match[1]}" if match else f"the {tensor}"


def recent_median(snapshot: Snapshot, implementation: str) -> float | None:
    """Seconds per call now. While a build disturbs every sample there is no other figure than theirs."""
    entry = snapshot.entry(implementation)
    if entry is not None and entry.latency is not None:
        return entry.latency.median_s
    series = snapshot.record.series.get(implementation) if snapshot.record is not None else None
    if series is None or not len(series):
        return None
    return float(np.median(series.seconds[-RECENT_SAMPLES:]))


def has_latency(entry: Entry | None) -> bool:
    return entry is not None and entry.latency is not None


def floor_of(entry: Entry) -> float:
    return entry.speed_up.noise_floor or 0.0 if entry.speed_up is not None else 0.0


def clause(text: str, limit: int = 110) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes:,}:{rest:02d}"


def rough(seconds: float) -> str:
    """To ten seconds above half a minute: an estimate is not a stop-watch."""
    if seconds < 30:
        return f"{seconds:.0f} s"
    seconds = round(seconds / 10) * 10
    minutes, rest = divmod(int(seconds), 60)
    return " ".join(
        part for part in (f"{minutes} min" if minutes else "", f"{rest} s" if rest else "") if part
    )


def progress_of(build: BuildState) -> tuple[str, str, float | None, str]:
    progress = build.progress
    if build.waiting is not None:
        return "Waiting for another build", clock(build.waiting.elapsed_s), None, ""
    source = next((s.source for s in reversed(list(build.sources.values())) if s.state == "started"), "")
    if progress is None or not progress.total:
        return "Looking for a build", "", None, source
    return f"Compiled {progress.done} of {progress.total}", clock(progress.elapsed_s), build.share, source


def greyed(level: Level, keep: int = 0) -> Level:
    """The same words in text secondary; the first `keep` pieces stay as they are."""
    pieces: list[Piece] = []
    for index, piece in enumerate(level):
        if isinstance(piece, Text) and index >= keep and piece.role not in ("text_tertiary",):
            piece = replace(piece, role="text_secondary")
        pieces.append(piece)
    return tuple(pieces)


def known_words(entry: Entry) -> str:
    """How well the speed-up is known, and how many rounds the machine's own strain marked."""
    width = half_width(entry.speed_up)
    known = "" if width is None else f"known to ±{percent(width, 1)}"
    if not entry.strained:
        return known
    return f"{known}, {number(entry.strained)} disturbed {'left out' if entry.strained_left_out else 'kept'}"
