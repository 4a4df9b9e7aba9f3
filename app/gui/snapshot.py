"""What the views are given to draw: a recording at one moment, and how to look at it."""

from __future__ import annotations

from dataclasses import dataclass

from app.core.recording import Recording, WorkloadRecord
from app.core.results import Entry
from app.gui.sweep_run import SweepStatus


@dataclass(frozen=True)
class Snapshot:
    """The recording is shared and goes on growing; a view reads it only while it draws.

    `now_s` is seconds since 1970 by the worker's clock, `window_s` the span of the latency chart (None:
    everything), `stale_s` how long the worker has been silent (None: it is not), `recorded` that it is from
    a file: nothing runs, and nothing is waited for.
    """

    recording: Recording
    record: WorkloadRecord | None
    entries: tuple[Entry, ...]
    baseline: str
    challenger: str | None
    now_s: float
    window_s: float | None = 60.0
    running: bool = True
    paused: bool = False
    stale_s: float | None = None
    recorded: bool = False
    sweep: SweepStatus | None = None

    @property
    def dimmed(self) -> bool:
        """Whether figures are greyed: they are of a moment that has passed, and others are due."""
        return self.paused or self.stale_s is not None

    @property
    def on_gpu(self) -> bool:
        """Whether the workload runs on a device that has kernel launches."""
        return self.record is not None and self.record.workload.device.startswith("cuda")

    def entry(self, implementation: str | None) -> Entry | None:
        return next((e for e in self.entries if e.implementation == implementation), None)
