"""Exports one contender's Chrome trace, for chrome://tracing, Perfetto or this application."""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path

import msgspec

from app.core.files import write_atomically
from app.core.recording import Recording
from app.core.trace.container import MAX_EXPANDED_BYTES
from app.core.workload import Workload

ENDINGS = (".json.gz", ".json")
DEFAULT_ENDING = ".json.gz"


class TraceExportError(ValueError):
    """Why no file was written: one sentence that names it."""


def file_name(implementation: str) -> str:
    """What the trace of an implementation is called in a folder of results."""
    return f"{implementation}{DEFAULT_ENDING}"


def write_all(recording: Recording, folder: Path) -> list[Path]:
    """Write every trace of a recording; a folder per workload where there are several. Paths written."""
    traced = [record for record in recording.records if record.traces_gz]
    written = []
    for record in traced:
        inside = (
            folder
            if len(recording.records) == 1
            else folder / (folder_name(record.workload) + ("-cold" if record.cache == "cold" else ""))
        )
        written += [
            export(trace, inside / file_name(name)) for name, trace in sorted(record.traces_gz.items())
        ]
    return written


def folder_name(workload: Workload) -> str:
    """A workload as the name of a folder, such as `8x64x128-4heads-causal-forward-float32-cpu`."""
    shape = f"{workload.batch}x{workload.seq_len}x{workload.embed_dim}-{workload.num_heads}heads"
    # A new token sees all before it: in decode mode there is no causal or full to tell apart.
    causal = "" if workload.decode else "causal-" if workload.causal else "full-"
    device = workload.device.replace(":", "")
    return f"{shape}-{causal}{workload.mode}-{workload.dtype}-{device}"


def export(trace_gz: bytes, path: Path) -> Path:
    """Write a trace, given as gzipped Chrome JSON, to `path`: `.json` expanded, `.json.gz` as it is.

    Makes the folder. The content is read through before anything is written, and the file appears whole or
    not at all; an older one of that name is replaced. Returns `path`.

    Raises:
        TraceExportError: no trace was kept, it is damaged, the ending is another, or the file cannot be
            written.
    """
    if not path.name.endswith(ENDINGS):
        raise TraceExportError(f"{path.name} has an unknown ending: a trace is written as .json or .json.gz.")
    if not trace_gz:
        raise TraceExportError(f"There is no trace to write to {path.name}: no profile pass has kept one.")
    text = _checked(trace_gz, path)
    try:
        write_atomically(path, trace_gz if path.name.endswith(".gz") else text)
        written = path.stat().st_size
    except OSError as error:
        raise TraceExportError(f"{path} cannot be written: {error.strerror or error}.") from None
    if written == 0:
        raise TraceExportError(f"{path} was written empty.")
    return path


def _expanded(trace_gz: bytes) -> bytes:
    """A recording may come from anywhere: what expands beyond all measure is not expanded."""
    with gzip.open(io.BytesIO(trace_gz)) as file:
        text = file.read(MAX_EXPANDED_BYTES + 1)
    if len(text) > MAX_EXPANDED_BYTES:
        raise OSError(f"it expands to more than {MAX_EXPANDED_BYTES / 1e6:,.0f} MB")
    return text


def _checked(trace_gz: bytes, path: Path) -> bytes:
    try:
        text = _expanded(trace_gz)
        events = msgspec.json.decode(text)["traceEvents"]
    except (
        OSError,
        EOFError,
        zlib.error,
        msgspec.DecodeError,
        UnicodeDecodeError,
        KeyError,
        TypeError,
    ) as error:
        raise TraceExportError(
            f"{path.name} was not written: the stored trace is damaged ({error or type(error).__name__})."
        ) from None
    if not isinstance(events, list) or not events:
        raise TraceExportError(f"{path.name} was not written: the stored trace holds no events.")
    return text
