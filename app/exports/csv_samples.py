"""Every sample, a row each."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np

from app.core.catalog import is_hidden
from app.core.fields import fields_of
from app.core.files import write_atomically
from app.core.recording import Recording
from app.core.workload import Workload

COLUMNS = ("implementation", "round", "at_s", "seconds", "calls", "device_seconds", "disturbed")


def render(recording: Recording) -> bytes:
    """One row per sample: the workload's fields, then `COLUMNS`. Times in seconds, per call.

    The hidden repetition of the baseline stands under its own name, since the noise floor rests on it.
    """
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    names = list(fields_of(Workload))
    writer.writerow([*names, *COLUMNS])
    for record in recording.records:
        workload = [getattr(record.workload, name) for name in names]
        for implementation in sorted(record.series, key=is_hidden):
            series = record.series[implementation]
            columns = zip(
                series.rounds.tolist(),
                series.at_s.tolist(),
                series.seconds.tolist(),
                series.calls.astype(np.int64).tolist(),
                series.device_seconds.tolist(),
                strict=True,
            )
            writer.writerows(
                [
                    *workload,
                    implementation,
                    number,
                    f"{at_s:.6f}",
                    repr(seconds),
                    calls,
                    "" if device != device else repr(device),
                    series.disturbance(index),
                ]
                for index, (number, at_s, seconds, calls, device) in enumerate(columns)
            )
    return out.getvalue().encode()


def write(recording: Recording, path: Path) -> Path:
    """Write the samples; raises OSError."""
    write_atomically(path, render(recording))
    return path
