"""The formats of a report, by name: recording in, bytes out."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from app.core.files import document_of
from app.core.messages import encoded
from app.core.recording import Recording
from app.exports import csv_results, html_report, markdown


def _json(recording: Recording) -> bytes:
    return msgspec.json.format(encoded(document_of(recording, raw=False))) + b"\n"


FORMATS: dict[str, Callable[[Recording], bytes]] = {
    "html": html_report.render,
    "md": markdown.render,
    "csv": csv_results.render,
    "json": _json,
}
