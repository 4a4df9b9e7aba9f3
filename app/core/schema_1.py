"""Recordings of the first schema, as the second: lists of digits become columns of bytes."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec
import numpy as np

from app.core.series import Column, RawSamples

Part: TypeAlias = tuple[str, bytes]
"""A part's name and its JSON; `results` and `hidden` come once for each of their entries."""

_NULL = msgspec.Raw(b"null")


class _Samples(msgspec.Struct, frozen=True):
    round: list[int] = []
    at_s: list[float] = []
    seconds: list[float] = []
    calls: list[int] = []
    disturbed: list[int] = []
    disturbances: list[str] = msgspec.field(default_factory=lambda: [""])
    device_seconds: list[float | None] | None = None


class _Raw(msgspec.Struct, frozen=True):
    samples: _Samples = _Samples()
    status: msgspec.Raw = msgspec.Raw(b"{}")
    counts: msgspec.Raw = _NULL
    count_failure: msgspec.Raw = _NULL
    memory: msgspec.Raw = msgspec.Raw(b"{}")
    profiled_seconds: msgspec.Raw = _NULL
    trace_gz: msgspec.Raw = msgspec.Raw(b'""')


class _Entry(msgspec.Struct, frozen=True):
    """What a reader takes from a result; the derived figures are computed anew."""

    workload: msgspec.Raw
    implementation: msgspec.Raw
    baseline: msgspec.Raw
    accuracy: msgspec.Raw = _NULL
    stopped_because: msgspec.Raw = _NULL
    raw: _Raw = _Raw()


_decoder = msgspec.json.Decoder(_Entry)


def to_2(part: Part) -> Part:
    """One part of a file of schema 1 as it is in schema 2. Raises ValueError (msgspec's errors are such)."""
    name, data = part
    if name not in ("results", "hidden"):
        return part
    entry = _decoder.decode(data)
    samples = entry.raw.samples
    packed = RawSamples(
        round=_column(samples.round, "<i8"),
        at_s=_column(samples.at_s, "<f8"),
        seconds=_column(samples.seconds, "<f8"),
        calls=_column(samples.calls, "<i8"),
        disturbed=_column(samples.disturbed, "<i8"),
        disturbances=samples.disturbances,
        device_seconds=None
        if samples.device_seconds is None
        else _column([np.nan if value is None else value for value in samples.device_seconds], "<f8"),
    )
    old = msgspec.structs.asdict(entry.raw) | {"samples": packed}
    return name, msgspec.json.encode(msgspec.structs.asdict(entry) | {"raw": old})


def _column(values: list[int] | list[float], type_: Literal["<f8", "<i8"]) -> Column:
    try:
        return Column.of(np.array(values, dtype=np.dtype(type_)), type_)
    except OverflowError:
        raise ValueError("a number of a sample is too large") from None
