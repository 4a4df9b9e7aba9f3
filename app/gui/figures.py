"""The figures of the record shown: made anew where samples came, and not more often than can be afforded."""

from __future__ import annotations

import time

from app.core.recording import WorkloadRecord
from app.core.results import Entry, entries_of

SHARE = 0.1
"""The figures of hours of samples take long to make: no more than this share of the time goes to them."""


class Figures:
    """Remembers what was made of which version of which record."""

    def __init__(self) -> None:
        self._entries: tuple[Entry, ...] = ()
        self._subject: tuple[object, ...] = ()
        self._version = 0
        self._due_s = 0.0
        self.are_behind = False
        """Whether samples came that the entries do not know of yet."""

    def entries(
        self, record: WorkloadRecord | None, baseline: str, enabled: tuple[str, ...]
    ) -> tuple[Entry, ...]:
        """Entries of the contenders that are switched on; what others measured is kept, and out of sight."""
        subject = (record, baseline, enabled)
        version = record.version if record is not None else 0
        self.are_behind = False
        if subject == self._subject and version == self._version:
            return self._entries
        begun = time.perf_counter()
        if subject == self._subject and begun < self._due_s:
            self.are_behind = True
            return self._entries
        self._subject, self._version = subject, version
        found = entries_of(record, baseline, enabled) if record is not None else ()
        self._entries = tuple(e for e in found if e.implementation.partition("@")[0] in enabled)
        now = time.perf_counter()
        self._due_s = now + (now - begun) * (1 - SHARE) / SHARE
        return self._entries


def best_challenger(entries: tuple[Entry, ...], baseline: str) -> str | None:
    """Whom the verdict speaks of by itself: the extension where it is measured, else the fastest."""
    measured = [e for e in entries if e.status == "measured" and e.implementation != baseline and e.latency]
    extensions = [
        e for e in measured if e.implementation.startswith("extension") and "@" not in e.implementation
    ]
    candidates = extensions or measured
    best = min(candidates, key=lambda e: e.latency.median_s if e.latency else 0.0, default=None)
    return best.implementation if best else None
