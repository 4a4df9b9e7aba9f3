"""From JSON text to the pieces of text that are events, strictly or, where it is no JSON, with repairs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from app.core.trace.container import Text
from app.core.trace.model import TraceError

MAX_OBJECTS = 12_000_000
"""Bound on `{` in one file: memory is spent per object, and a text of 3 bytes each is no trace."""

Piece = msgspec.Raw | memoryview


@dataclass(frozen=True)
class Document:
    """`pieces`: the text of each event. `header`: what stands beside them, in the file's order."""

    form: str
    pieces: Sequence[Piece]
    header: dict[str, Any]
    warnings: tuple[str, ...] = ()
    incomplete: bool = False


def split(text: Text) -> Document:
    """`TraceError` if this is JSON but no trace, or neither JSON nor repairable."""
    data = text.json.removeprefix(b"\xef\xbb\xbf")
    if data.count(b"{") > MAX_OBJECTS:
        raise TraceError(
            f"{text.name} holds {data.count(b'{'):,} JSON objects, more than the limit of {MAX_OBJECTS:,}."
        )
    if text.cut:
        return _recover(text, data, "")
    try:
        return _strict(text, data)
    except RecursionError:
        raise TraceError(f"{text.name} is no trace: its JSON is nested too deeply.") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return _recover(text, data, str(error))


def _strict(text: Text, data: bytes) -> Document:
    first = data.lstrip()[:1]
    if first == b"[":
        pieces = msgspec.json.decode(data, type=list[msgspec.Raw])
        if pieces and not any(bytes(piece)[:1] == b"{" for piece in pieces[:100]):
            raise TraceError(f"{text.name} is JSON but no trace: it is a list, and not one of events.")
        return Document("array", pieces, {})
    if first != b"{":
        msgspec.json.decode(data)  # not JSON at all is said elsewhere
        raise TraceError(
            f"{text.name} is JSON but no trace: it holds a single value where an object with "
            '"traceEvents" or a list of events was looked for.'
        )
    parts = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    if "traceEvents" not in parts:
        found = ", ".join(f'"{key[:40]}"' for key in list(parts)[:5]) or "nothing"
        raise TraceError(
            f'{text.name} is JSON but no trace: a list "traceEvents" was looked for and not found '
            f"(there is {found})."
        )
    try:
        pieces = msgspec.json.decode(parts["traceEvents"], type=list[msgspec.Raw])
    except msgspec.ValidationError:
        raise TraceError(f'{text.name} is no trace: its "traceEvents" is not a list.') from None
    return Document("object", pieces, _header(parts))


def _header(parts: dict[str, msgspec.Raw]) -> dict[str, Any]:
    return {key: msgspec.json.decode(raw) for key, raw in parts.items() if key != "traceEvents"}


# ---- text that is no JSON ------------------------------------------------------------------------------

_EVENTS_KEY = re.compile(rb'"traceEvents"\s*:\s*\[')
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]', re.DOTALL)

# Kineto writes either one key a line, or a line that opens with ph, cat and name.
_KEY_LINE = re.compile(rb'^([ \t]*"[^"\n]+": ")([^"\n]*"[^\n]*)("(?:,[ \t]*)?)$', re.MULTILINE)
_EVENT_LINE = re.compile(
    rb'^([ \t]*"ph": "\w", "cat": "[^"\n]*", "name": ")([^"\n]*"[^\n]*)(", "pid": [^\n]*)$', re.MULTILINE
)
_BARE_QUOTE = re.compile(rb'(\\.)|"')
_BYTE = re.compile(r"\(byte (\d+)\)")


def _recover(text: Text, data: bytes, error: str) -> Document:
    place = _place(data, error)
    repaired, quotes = escape_quotes(data)
    form, start = _find_events(text, repaired, error, place)
    pieces: list[Piece] = []
    view = memoryview(repaired)
    end = start
    closed = False
    for begin, stop in _elements(repaired, start):
        if begin == stop:
            closed, end = True, stop
            break
        pieces.append(view[begin:stop])
        end = stop
    rest = repaired[end:].strip(b" \t\r\n,")
    if not pieces and not closed:
        raise TraceError(_refusal(text, place, "it breaks off before the first whole event"))
    warnings = []
    incomplete = text.cut or (not closed and bool(rest))
    if incomplete:
        warnings.append(
            f"{text.name} is incomplete: it ends early, and {len(pieces):,} whole events were recovered "
            "from it. Counts and times are of that part only."
        )
    elif not closed:
        warnings.append(
            f"{text.name} lacks the end of its list of events, as a writer that was stopped leaves it; "
            f"all {len(pieces):,} events in it were read."
        )
    elif quotes:
        warnings.append(
            f"{text.name} is not valid JSON at {place}: a quotation mark in a name is not escaped, as "
            f"torch 2.13 writes it for a range whose name has one. {_count(quotes, 'name')} read as meant."
        )
    elif error:
        warnings.append(f"{text.name} is not valid JSON at {place}; its events were read one by one.")
    header = {} if form == "array" else _recover_header(repaired, start, end if closed else len(repaired))
    return Document(form, pieces, header, tuple(warnings), incomplete)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun} was" if number == 1 else f"{number:,} {noun}s were"


def _refusal(text: Text, place: str, why: str) -> str:
    where = f" (not valid JSON at {place})" if place else ""
    return f"{text.name} cannot be read as a trace{where}: {why}."


def _place(data: bytes, error: str) -> str:
    """Line and column of msgspec's byte offset."""
    found = _BYTE.search(error)
    offset = min(int(found[1]), len(data)) if found else len(data)
    before = data.rfind(b"\n", 0, offset) + 1
    return f"line {data.count(bytes([10]), 0, offset) + 1}, column {offset - before + 1}"


def _find_events(text: Text, data: bytes, error: str, place: str) -> tuple[str, int]:
    first = data.lstrip()[:1]
    if first == b"[":
        return "array", data.index(b"[") + 1
    found = _EVENTS_KEY.search(data) if first == b"{" else None
    if found is None:
        why = 'no list "traceEvents" was found'
        raise TraceError(_refusal(text, place if error else "", why))
    return "object", found.end()


def _elements(data: bytes, start: int) -> Iterator[tuple[int, int]]:
    """Spans of the objects in a list that is open at `start`; an empty span where the list is closed."""
    depth = 0
    begin = start
    for token in _TOKEN.finditer(data, start):
        mark = data[token.start()]
        if mark in b"{[":
            if depth == 0:
                begin = token.start()
            depth += 1
        elif mark in b"}]":
            if depth == 0:
                yield token.start(), token.start()
                return
            depth -= 1
            if depth == 0:
                yield begin, token.end()


def escape_quotes(data: bytes) -> tuple[bytes, int]:
    """Escape quotation marks inside a value that takes the rest of its line; also the number of such lines.

    Only where Kineto's layout leaves no doubt about where the value ends, and the line is no JSON as it is.
    """
    repaired = 0

    def line(match: re.Match[bytes]) -> bytes:
        nonlocal repaired
        whole = match[0].strip().rstrip(b",")
        try:
            # The older layout breaks the line within the event.
            msgspec.json.decode(b"{" + whole + b"}")
            return match[0]
        except (msgspec.DecodeError, UnicodeDecodeError):
            inner = _BARE_QUOTE.sub(lambda quote: quote[1] or b'\\"', match[2])
            if inner == match[2]:
                return match[0]
            repaired += 1
            return match[1] + inner + match[3]

    return _EVENT_LINE.sub(line, _KEY_LINE.sub(line, data)), repaired


def _recover_header(data: bytes, start: int, end: int) -> dict[str, Any]:
    """The keys before and after the events, or, where the end is missing, those before."""
    key = data.rindex(b'"traceEvents"', 0, start)
    head = data[data.index(b"{") : key]
    for candidate in (head + b'"traceEvents": []' + data[end + 1 :], head.rstrip().rstrip(b",") + b"}"):
        try:
            return _header(msgspec.json.decode(candidate, type=dict[str, msgspec.Raw]))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
    return {}
