"""From the text of events to columns. Events become objects only a slice at a time."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import msgspec
import numpy as np

from app.core.trace.document import Piece
from app.core.trace.model import ABSENT, Bools, Ints

SLICE = 20_000

_EXACT = 2.0**43
"""Microseconds up to which a double still tells nanoseconds apart."""
_LARGEST = 9.0e15
"""Microseconds (285 years) beyond which a time is no time, and nanoseconds leave 64 bits."""


class Args(msgspec.Struct, gc=False):
    """The arguments read; anything goes as their value, since writers differ."""

    device: Any = ABSENT
    stream: Any = ABSENT
    correlation: Any = 0
    external: Any = msgspec.field(name="External id", default=ABSENT)
    external_old: Any = msgspec.field(name="external id", default=ABSENT)
    sequence: Any = msgspec.field(name="Sequence number", default=ABSENT)
    bytes: Any = msgspec.field(name="Bytes", default=0)
    address: Any = msgspec.field(name="Addr", default=ABSENT)
    device_type: Any = msgspec.field(name="Device Type", default=ABSENT)


NO_ARGS = Args()


class Event(msgspec.Struct, gc=False):
    ph: Any = ""
    cat: Any = ""
    name: Any = ""
    pid: Any = ""
    tid: Any = ""
    ts: Any = None
    dur: Any = None
    id: Any = None
    args: Args | None = None


_decode_slice = msgspec.json.Decoder(list[Event]).decode
_decode_event = msgspec.json.Decoder(Event).decode

_BAD_ESCAPE = re.compile(rb'\\(?:(["\\/bfnrt]|u[0-9a-fA-F]{4})|)', re.DOTALL)
_STRING_OR_CONSTANT = re.compile(rb'("[^"\\]*(?:\\.[^"\\]*)*")|-?\b(?:NaN|Infinity|inf|nan)\b', re.DOTALL)
_CONTROL = re.compile(rb"[\x00-\x1f]")


class Repairs:
    """What had to be mended, event by event, and the first place of each kind."""

    def __init__(self) -> None:
        self.escapes = 0
        self.constants = 0
        self.controls = 0
        self.encodings = 0
        self.unreadable = 0

    def sentences(self, name: str) -> list[str]:
        found = (
            (self.escapes, "a backslash that is no JSON escape, as in Windows paths; read as a backslash"),
            (self.constants, "NaN or Infinity as a number, which JSON does not have; read as unknown"),
            (self.controls, "a control character inside a name; read as it is"),
            (self.encodings, "bytes that are no UTF-8; read as replacement characters"),
            (self.unreadable, "no readable text; left out"),
        )
        return [
            f"{name}: {count:,} {'event has' if count == 1 else 'events have'} {what}."
            for count, what in found
            if count
        ]

    def mend(self, piece: Piece) -> Event | None:
        """The event, repaired if need be; None, counted as unreadable, if that does not help."""
        text = bytes(piece)
        if (event := _try(text)) is not None:
            return event
        decoded = text.decode("utf-8", "replace").encode()
        escaped = _BAD_ESCAPE.sub(lambda m: m[0] if m[1] else rb"\\", decoded)
        cleaned = _STRING_OR_CONSTANT.sub(_clean_token, escaped)
        if (event := _try(cleaned)) is None:
            self.unreadable += 1
            return None
        self.encodings += decoded != text
        self.escapes += escaped != decoded
        with_constants = _STRING_OR_CONSTANT.sub(lambda m: m[1] or b"null", escaped)
        self.constants += with_constants != escaped
        self.controls += cleaned != with_constants
        return event


def _clean_token(match: re.Match[bytes]) -> bytes:
    if match[1] is None:
        return b"null"
    return _CONTROL.sub(lambda control: b"\\u%04x" % control[0][0], match[1])


def _try(text: bytes) -> Event | None:
    try:
        return _decode_event(text)
    except msgspec.ValidationError:
        return _loose(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def slices(pieces: Sequence[Piece], repairs: Repairs) -> Iterator[tuple[list[Event], Sequence[Piece] | None]]:
    """Events a slice at a time, with the text of each, or without where some had to be mended."""
    for start in range(0, len(pieces), SLICE):
        part = pieces[start : start + SLICE]
        try:
            yield _decode_slice(b"[" + b",".join(part) + b"]"), part
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            yield [event for piece in part if (event := repairs.mend(piece)) is not None], None


def _loose(text: bytes) -> Event | None:
    """Legal JSON of another shape: `args` that are no object, a number that no double holds."""
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(raw, dict):
        return None
    if not isinstance(raw.get("args"), dict):
        raw["args"] = None
    return msgspec.convert(raw, Event)


# ---- columns -------------------------------------------------------------------------------------------


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def integers(values: list[Any]) -> Ints:
    """Numbers, and text that ends in one ("stream 7"), as 64-bit integers; anything else `ABSENT`."""
    if set(map(type, values)) <= {int}:
        try:
            return np.array(values, dtype=np.int64)
        except OverflowError:
            pass
    return np.array([_integer(value) for value in values], dtype=np.int64)


_LAST_NUMBER = re.compile(r"-?\d{1,18}$")


def _integer(value: Any) -> int:
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else ABSENT
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**63:
        return int(value)
    if isinstance(value, str) and (found := _LAST_NUMBER.search(value)):
        return int(found[0])
    return ABSENT


def nanoseconds(values: list[Any]) -> tuple[Ints, Bools]:
    """Microseconds as integers of nanoseconds, 0 where unusable; and which are usable.

    Where a double cannot hold nanoseconds, the value is rounded to what it can hold; see `needs_exact`.
    """
    try:
        micro = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        micro = np.array([_number(value) for value in values], dtype=np.float64)
    usable = np.abs(micro) < _LARGEST  # false for NaN too
    micro = np.where(usable, micro, 0.0)
    whole = np.floor(micro)
    fraction = np.rint((micro - whole) * 1000.0)
    return whole.astype(np.int64) * 1000 + fraction.astype(np.int64), usable


def _number(value: Any) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value) if abs(value) < 1e300 else float("nan")
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            pass
    return float("nan")


def needs_exact(values: list[Any]) -> bool:
    """Whether some value is a fraction too large for a double to tell its nanoseconds."""
    return any(type(value) is float and abs(value) >= _EXACT for value in values)


class _Times(msgspec.Struct, gc=False):
    ts: Decimal | None = None
    dur: Decimal | None = None


def exact_times(piece: Piece) -> tuple[int | None, int | None]:
    """Start and duration of one event in nanoseconds, read as decimals."""
    try:
        times = msgspec.json.decode(piece, type=_Times)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None, None
    return _decimal(times.ts), _decimal(times.dur)


def _decimal(number: Decimal | None) -> int | None:
    if number is None or not number.is_finite() or abs(number) >= Decimal(_LARGEST):
        return None
    return int((number * 1000).to_integral_value())
