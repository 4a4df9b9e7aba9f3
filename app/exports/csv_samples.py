"""Every sample, a row each."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from app.core.catalog import is_hidden
from app.core.fields import fields_of
from app.core.files import write_atomically
from app.core.recording import Recording
from app.core.series import Series
from app.core.workload import Workload

COLUMNS = ("implementation", "round", "at_s", "seconds", "calls", "device_seconds", "disturbed")
ROWS_A_PIECE = 500


def pieces(recording: Recording) -> Iterator[bytes]:
    """One row per sample: the workload's fields, `cache`, then `COLUMNS`. Times in seconds, per call.

    The hidden repetition of the baseline stands under its own name, since the noise floor rests on it.
    A piece holds at most `ROWS_A_PIECE` rows. What the recording holds now is written, whatever joins it
    before the last piece is asked for.
    """
    names = list(fields_of(Workload))
    parts = [
        (
            [*(getattr(record.workload, name) for name in names), record.cache, implementation],
            record.series[implementation],
        )
        for record in recording.records
        for implementation in sorted(record.series, key=is_hidden)
    ]
    held = [(first, series, len(series)) for first, series in parts]
    return _written([*names, "cache", *COLUMNS], held)


def _written(head: list[str], held: list[tuple[list[object], Series, int]]) -> Iterator[bytes]:
    yield _lines([[*head]])
    for first, series, count in held:
        for start in range(0, count, ROWS_A_PIECE):
            yield _lines(_rows(first, series, start, min(start + ROWS_A_PIECE, count)))


def _rows(first: list[object], series: Series, start: int, stop: int) -> Iterator[list[object]]:
    columns = zip(
        series.rounds[start:stop].tolist(),
        series.at_s[start:stop].tolist(),
        series.seconds[start:stop].tolist(),
        series.calls[start:stop].astype(np.int64).tolist(),
        series.device_seconds[start:stop].tolist(),
        strict=True,
    )
    for index, (number, at_s, seconds, calls, device) in enumerate(columns, start):
        yield [
            *first,
            number,
            f"{at_s:.6f}",
            repr(seconds),
            calls,
            "" if device != device else repr(device),
            series.disturbance(index),
        ]


def _lines(rows: Iterable[list[object]]) -> bytes:
    out = io.StringIO(newline="")
    csv.writer(out).writerows(rows)
    return out.getvalue().encode()


def render(recording: Recording) -> bytes:
    """The whole file."""
    return b"".join(pieces(recording))


def write(recording: Recording, path: Path) -> Path:
    """Write the samples; raises OSError."""
    write_atomically(path, render(recording))
    return path
