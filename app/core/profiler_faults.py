"""What a profiler's error means, and what helps."""

from __future__ import annotations

import re

_FAULTS: tuple[tuple[str, str], ...] = (
    (
        r"CUPTI_ERROR_MULTIPLE_SUBSCRIBERS|MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED|CUPTI\w* error\D*39\b"
        r"|another (tool|profiler).{0,40}(CUPTI|subscrib)|CUPTI.{0,60}(in use|busy)",
        "Another tool is using the GPU's profiling interface (CUPTI), which serves one at a time. Close it "
        "(Nsight, a debugger, another profiler) and count again.",
    ),
    (
        r"INSUFFICIENT_PRIVILEGES|ERR_NVGPUCTRPERM|ERR_NVGPU_?CTR_?PERM|CUPTI\w* error\D*35\b",
        "The driver keeps its hardware counters to itself. They are not needed here: launches and kernels "
        "are traced without them, and no special rights are asked for.",
    ),
    (
        r"CUPTI_ERROR_NOT_INITIALIZED|CUPTI_ERROR_NOT_COMPATIBLE|CUPTI\w* error\D*15\b"
        r"|CUPTI initialization failed|(cannot|could not|failed to) (load|find|open).{0,60}cupti"
        r"|libcupti.{0,60}(not found|cannot open)",
        "The GPU's profiling library (CUPTI) did not start, so kernels are not recorded. It comes with the "
        "CUDA build of torch: reinstalling torch restores it.",
    ),
    (
        r"out of memory|OutOfMemoryError|DefaultCPUAllocator: (can't|cannot) allocate",
        "There was not enough memory for a call under the profiler, which needs more than a plain one. A "
        "smaller workload fits.",
    ),
    (
        r"(profiler|kineto).{0,40}already (running|enabled|active|in progress)|Profiler is already enabled",
        "Another profiler session is open in this process, and two at once record nothing.",
    ),
    (
        r"CUPTI",
        "The GPU's profiling interface (CUPTI) reported an error, so kernels may be missing.",
    ),
)
_PATTERNS = tuple((re.compile(pattern, re.IGNORECASE | re.DOTALL), sentence) for pattern, sentence in _FAULTS)

LOST_RECORDS = (
    "Launches were seen but their kernels were not recorded. The likely cause is another tool that holds the "
    "GPU's profiling interface, or records dropped after idling."
)


def explain(text: str) -> str | None:
    """One or two sentences for the text of a profiler's error; None if it is none of the known ones."""
    for pattern, sentence in _PATTERNS:
        if pattern.search(text):
            return sentence
    return None
