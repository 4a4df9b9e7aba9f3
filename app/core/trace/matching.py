"""Device work and the calls that asked for it, matched by correlation id."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.core.trace.model import Bools, Ints, Trace
from app.core.trace.vocabulary import DEVICE_WORK, Kind, Launch, launch_of


@dataclass(frozen=True, eq=False)
class Matching:
    """Indices into `Trace.complete`. `call_of_work` is the call of each piece of work, -1 for none.

    Where several calls share an id, a kernel launch wins over a graph launch, and that over another call.
    `launch` says what each of `calls` launches.
    """

    calls: Ints
    launch: npt.NDArray[np.uint8]
    work: Ints
    call_of_work: Ints

    def of(self, launch: Launch) -> Ints:
        """The calls that launch this."""
        chosen: Ints = self.calls[self.launch == launch]
        return chosen


def match(trace: Trace) -> Matching:
    events = trace.complete
    calls = events.of(Kind.RUNTIME)
    launches = np.array([launch_of(name) for name in trace.names] or [Launch.NONE], dtype=np.uint8)
    launch = launches[events.name[calls]] if len(calls) else np.empty(0, dtype=np.uint8)
    work = events.of(*DEVICE_WORK)

    found = np.full(len(work), -1, dtype=np.int64)
    wanted = events.correlation[work]
    for kind in (Launch.KERNEL, Launch.GRAPH, Launch.NONE):
        candidates = calls[launch == kind]
        candidates = candidates[events.correlation[candidates] != 0]
        if not len(candidates):
            continue
        ids, first = np.unique(events.correlation[candidates], return_index=True)
        at = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
        hit = (ids[at] == wanted) & (wanted != 0) & (found < 0)
        found[hit] = candidates[first[at[hit]]]
    return Matching(calls, launch, work, found)


def with_work(trace: Trace, calls: Ints, work: Ints) -> Bools:
    """Which of `calls` have an id that one of `work` has too."""
    ids = trace.complete.correlation[calls]
    found: Bools = np.isin(ids, trace.complete.correlation[work]) & (ids != 0)
    return found
