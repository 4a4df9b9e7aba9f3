"""Chrome traces of torch.profiler: reading any of them, and what is true of one or differs between two."""

from app.core.trace.counts import (
    NO_RECORD,
    Window,
    count_calls,
    operator_names,
    peak_bytes,
    whole,
    window_of,
)
from app.core.trace.diff import diff
from app.core.trace.facts import facts
from app.core.trace.model import Oddities, Source, Trace, TraceError
from app.core.trace.reader import read
from app.core.trace.writing import relabel

__all__ = [
    "NO_RECORD",
    "Oddities",
    "Source",
    "Trace",
    "TraceError",
    "Window",
    "count_calls",
    "diff",
    "facts",
    "operator_names",
    "peak_bytes",
    "read",
    "relabel",
    "whole",
    "window_of",
]
