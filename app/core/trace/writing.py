"""Makes a trace that torch wrote fit to be kept: names as given, where it comes from, and valid JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from app.core.trace.document import escape_quotes
from app.core.trace.model import TraceError

_NAME = re.compile(rb'"name"\s*:\s*"([A-Za-z_][\w.]*)"')
_TRACE_NAME = re.compile(rb'"traceName"\s*:\s*"[^"\\]*(?:\\.[^"\\]*)*"')


def relabel(json: bytes, names: Mapping[str, str], origin: Mapping[str, Any], title: str) -> bytes:
    """`json` with the ranges called by an id in `names` called by their display name instead.

    torch spoils quotes, backslashes and letters beyond ASCII in a range's name, so ranges are recorded under
    plain ids. `origin` becomes the top-level entry "attnscope", and `title` replaces the path that torch
    notes as the trace's name. Raises `TraceError` if the result is no JSON.
    """
    known = {name.encode("ascii"): b'"name": ' + msgspec.json.encode(shown) for name, shown in names.items()}
    renamed = _NAME.sub(lambda found: known.get(found[1], found[0]), json)
    renamed = _TRACE_NAME.sub(lambda _: b'"traceName": ' + msgspec.json.encode(title), renamed)
    start = renamed.find(b"{")
    if start < 0:
        raise TraceError("torch wrote a trace that is no JSON object.")
    written = b'{"attnscope": ' + msgspec.json.encode(origin) + b"," + renamed[start + 1 :]
    if _is_json(written):
        return written
    repaired, _ = escape_quotes(written)
    if not _is_json(repaired):
        raise TraceError("torch wrote a trace that is not valid JSON, most likely because of a range's name.")
    return repaired


def _is_json(data: bytes) -> bool:
    try:
        msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True
