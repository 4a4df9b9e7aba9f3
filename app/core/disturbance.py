"""What of the machine's readings says that the rounds of that second were disturbed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from app.core.messages import Telemetry

OTHERS_BUSY = 20.0
"""Percent of the machine used by others, above which a round is disturbed more often than not."""

LONGEST_S = 5.0
"""A reading speaks for the time since the one before, but for no longer than this: the machine may have slept."""


class Strain(NamedTuple):
    """A stretch of time, seconds since 1970, in which something else than the contenders shaped the samples."""

    begin_s: float
    end_s: float
    what: str


def strain_of(reading: Telemetry, before: Telemetry | None) -> Strain | None:
    """The strain that a reading tells of since the one before it; None for a quiet machine."""
    if before is None or not 0 < reading.at_s - before.at_s <= LONGEST_S:
        return None
    if reading.gpu_throttled:
        what = f"the GPU was throttled ({reading.gpu_throttled})"
    elif reading.others_percent is not None and reading.others_percent > OTHERS_BUSY:
        what = "other programs used the processor"
    else:
        return None
    return Strain(before.at_s, reading.at_s, what)


def strained(at_s: npt.NDArray[np.float64], strains: Sequence[Strain]) -> npt.NDArray[np.bool_]:
    """Which of these moments, seconds since 1970 and growing, lie in a strain."""
    if not strains:
        return np.zeros(at_s.size, bool)
    begins = np.array([strain.begin_s for strain in strains])
    ends = np.array([strain.end_s for strain in strains])
    place = np.searchsorted(begins, at_s, side="right") - 1
    return (place >= 0) & (at_s < ends[np.maximum(place, 0)])
