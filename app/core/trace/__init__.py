"""Chrome traces of torch.profiler: reading any of them, and what is true of one or differs between two."""

from app.core.trace.diff import diff
from app.core.trace.facts import facts
from app.core.trace.model import Oddities, Source, Trace, TraceError
from app.core.trace.reader import read

__all__ = ["Oddities", "Source", "Trace", "TraceError", "diff", "facts", "read"]
