"""The formats of a report, by name: a recording or a comparison in, bytes out."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from app.core.change import Basis
from app.core.comparison import Comparison
from app.core.files import document_of
from app.core.messages import encoded
from app.core.recording import Recording
from app.exports import (
    comparison_csv,
    comparison_html,
    comparison_markdown,
    comparison_rows,
    csv_results,
    html_report,
    markdown,
    rows,
)


def _json(recording: Recording) -> bytes:
    return _document(document_of(recording, raw=False) | {"method": rows.METHOD})


def _comparison_json(comparison: Comparison, basis: Basis = "net") -> bytes:
    return _document({"comparison": comparison, "basis": basis, "method": comparison_rows.METHOD})


def _document(value: object) -> bytes:
    return msgspec.json.format(encoded(value)) + b"\n"


FORMATS: dict[str, Callable[[Recording], bytes]] = {
    "html": html_report.render,
    "md": markdown.render,
    "csv": csv_results.render,
    "json": _json,
}

COMPARISON_FORMATS: dict[str, Callable[[Comparison, Basis], bytes]] = {
    "html": comparison_html.render,
    "md": comparison_markdown.render,
    "csv": comparison_csv.render,
    "json": _comparison_json,
}
