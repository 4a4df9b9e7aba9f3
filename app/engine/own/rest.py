"""Waiting until this process's threads rest: who hands over must leave the processors free.

OpenMP keeps its threads spinning after a parallel region, in case another follows: for some 15 ms with GNU's
library, 200 ms with Intel's and LLVM's. On a machine of two cores a contender in another process took 2.4
times as long beside them.
"""

from __future__ import annotations

import time

SLICE_S = 5e-4
RESTS_WITHIN_S = 0.3
BUSY = 0.1
"""Share of one processor from which a process does not rest."""


def wait_for_rest(slice_s: float = SLICE_S, within_s: float = RESTS_WITHIN_S, slices: int = 1) -> float:
    """Sleep until the process rests: 0.0; if it does not, the share of a processor that it uses.

    It rests after so many `slices` in a row; on a busy machine a thread that spins may be left out of one.
    """
    end = time.perf_counter() + within_s
    quiet = 0
    while True:
        began, used = time.perf_counter(), time.process_time()
        time.sleep(slice_s)
        took = time.perf_counter() - began
        share = (time.process_time() - used) / max(took, 1e-9)
        quiet = quiet + 1 if share <= BUSY else 0
        if quiet == slices:
            return 0.0
        if began + took >= end:
            return share
