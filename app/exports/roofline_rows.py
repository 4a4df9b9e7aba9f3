"""The roofline as flat rows and sentences, for every report alike."""

from __future__ import annotations

from app.core import text
from app.core.catalog import contender
from app.core.peaks import bandwidth, rate
from app.core.recording import Recording, WorkloadRecord
from app.core.roofline import Roofline, intensity, roofline_of, short
from app.core.work import PHASES

COLUMNS = ("Implementation", "Phase", "FLOP", "Bytes", "FLOP per byte", "Achieved", "Of the roof")


def of(recording: Recording, record: WorkloadRecord) -> Roofline | None:
    """The roofline of a record; None where no peaks were measured or nothing ran."""
    names = recording.plan.implementations if recording.plan is not None else None
    found = roofline_of(recording, record, names)
    return found if found.points else None


def body(roofline: Roofline) -> list[tuple[str, ...]]:
    return [
        (
            contender(point.implementation).title,
            PHASES[point.work.phase],
            short(point.work.flops),
            ("≥ " if point.work.is_least else "") + f"{short(point.work.bytes)}B",
            ("≤ " if point.work.is_least else "") + intensity(point.work.intensity),
            rate(point.achieved),
            point.words,
        )
        for point in roofline.points
    ]


def ceilings(roofline: Roofline) -> str:
    """The ceilings in two sentences: what they are, how and when they were measured."""
    peaks = roofline.peaks
    assert peaks is not None
    clock = "" if peaks.clock_hz is None else f" at {text.number(peaks.clock_hz / 1e9, 1)}{text.THIN}GHz"
    return (
        f"Ceilings of {peaks.processor} at {peaks.dtype}, measured {peaks.when}{clock}: "
        f"compute {rate(peaks.compute)} ({peaks.how_compute}), memory {bandwidth(peaks.memory)} "
        f"({peaks.how_memory})."
    )


def formulas(roofline: Roofline) -> list[str]:
    return [f"{one.title}: {one.formula} {one.numbers}" for one in roofline.formulas]
