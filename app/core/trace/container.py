"""From a file or bytes to JSON text, within a limit on memory."""

from __future__ import annotations

import io
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from app.core.trace.model import TraceError

MAX_EXPANDED_BYTES = 512 * 1024 * 1024
"""Largest JSON text read by default: some two million events."""

_PIECE = 1 << 18
_CRUMB = 256
_SUSPICIOUS_RATIO = 200
"""Traces compress 10- to 30-fold; far beyond that, most of the text says nothing."""


@dataclass(frozen=True)
class Text:
    """JSON text, and how it lay on disk."""

    name: str
    json: bytes
    bytes_on_disk: int
    gzipped: bool
    cut: bool
    """The compressed stream ends, or breaks, before its end."""
    warnings: tuple[str, ...]


def megabytes(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"


def load(source: bytes | str | os.PathLike[str], name: str, limit: int) -> Text:
    """Read and, where the first two bytes say gzip, expand. `TraceError` past `limit` bytes of text."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        return _expand(io.BytesIO(source), name or "the trace", len(source), limit)
    path = Path(source)
    name = name or path.name
    try:
        with path.open("rb") as file:
            return _expand(file, name, os.fstat(file.fileno()).st_size, limit)
    except OSError as error:
        raise TraceError(f"{name} cannot be read: {error.strerror or error}.") from None


def _expand(file: io.BufferedIOBase | io.BytesIO, name: str, size: int, limit: int) -> Text:
    head = file.read(2)
    if not head:
        raise TraceError(f"{name} is empty: it has 0 bytes.")
    if head != b"\x1f\x8b":
        text = head + file.read(limit + 1 - len(head))
        if len(text) > limit:
            raise TraceError(
                f"{name} has {megabytes(size)} of text ({size:,} bytes), more than the limit "
                f"of {megabytes(limit)}."
            )
        return _checked(Text(name, text, size, False, False, ()))
    out = io.BytesIO()
    trouble = ""
    for piece, trouble in _gunzip(head, file):  # noqa: B007 (the last trouble is what counts)
        out.write(piece)
        if out.tell() > limit:
            raise TraceError(
                f"{name} expands from {size:,} bytes to more than {out.tell():,} bytes, "
                f"beyond the limit of {megabytes(limit)}."
            )
    text = out.getvalue()
    warnings = []
    if trouble:
        warnings.append(f"{name} ends early: {trouble}.")
    if len(text) > _SUSPICIOUS_RATIO * size:
        warnings.append(
            f"{name} expands from {size:,} to {len(text):,} bytes, far more than traces do: most of it is "
            "repetition or blanks."
        )
    return _checked(Text(name, text, size, True, bool(trouble), tuple(warnings)))


def _checked(text: Text) -> Text:
    if not text.json.strip():
        what = "nothing can be expanded from it" if text.gzipped and text.cut else "it holds no text"
        raise TraceError(f"{text.name} is empty: {what}.")
    return text


def _gunzip(head: bytes, file: io.BufferedIOBase | io.BytesIO) -> Iterator[tuple[bytes, str]]:
    """Pieces of text, each with what is known to be wrong with the stream ("" for nothing)."""
    member = zlib.decompressobj(wbits=31)
    pending = head
    while True:
        data = pending or file.read(_PIECE)
        pending = b""
        if not data:
            if not member.eof:
                # The bound on pieces can leave the last bytes inside the decompressor.
                yield member.flush(), "" if member.eof else "the gzip stream is cut off"
            return
        if member.eof:
            # Another member may follow (concatenated gzip); anything else is padding.
            if not data.strip(b"\0"):
                continue
            if not data.startswith(b"\x1f"):
                return
            member = zlib.decompressobj(wbits=31)
        before = member.copy()
        try:
            # Bounded, since a quarter of a megabyte can hold hundreds; what is left over waits its turn.
            piece = member.decompress(data, 16 * _PIECE)
            pending = member.unconsumed_tail or (member.unused_data if member.eof else b"")
        except zlib.error as error:
            yield _up_to_damage(before, data), f"the gzip stream is damaged ({error})"
            return
        yield piece, ""


def _up_to_damage(member: zlib._Decompress, data: bytes) -> bytes:
    """What can be expanded of `data` before the place that cannot, to within a few bytes."""
    found = bytearray()
    try:
        for start in range(0, len(data), _CRUMB):
            found += member.decompress(data[start : start + _CRUMB])
    except zlib.error:
        pass
    return bytes(found)
