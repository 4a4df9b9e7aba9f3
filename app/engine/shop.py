"""What a run works with: where its messages go, and the services of the worker around it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Literal, Protocol

from app.core.environment import Device
from app.core.messages import Message, Notice, PeaksMeasured, PeaksRefused, PeaksStarted
from app.core.peaks import Peaks, find, merged
from app.core.workload import Workload
from app.engine import peaks as peaks_engine
from app.engine.background import Background
from app.engine.implementations import Registry
from app.engine.own.guests import Guests
from app.engine.profiler_protocol import CountRequest
from app.engine.stopwatch import Stopwatch

ExtensionState = Literal["absent", "building", "loaded", "failed"]


class Extension(Protocol):
    """The extension's library, as far as a run needs to know."""

    state: ExtensionState
    reason: str
    remedy: str
    library: str | None
    key: str

    @property
    def building(self) -> bool:
        """Whether a build runs, be it for this process or for the next."""

    def start(self, clean: bool = False) -> None:
        """Build it, or take it from the cache, in a process of its own; then load it here."""


class Profiler(Protocol):
    """The profiler child, as far as a run needs to know."""

    @property
    def busy(self) -> bool:
        """Whether the child starts or works: then latencies are disturbed."""

    def request(self, request: CountRequest) -> None:
        """Queue a pass; its outcome arrives as an event."""

    def forget(self) -> None:
        """Drop what is queued; what runs is finished and ignored."""


@dataclass
class Shop:
    """Services shared by all runs of one worker."""

    send: Callable[[Message], None]
    registry: Registry
    extension: Extension
    profiler: Profiler
    background: Background
    guests: Guests
    resolve: Callable[[Workload], tuple[Workload, Device]]
    stopwatch: Callable[[str], Stopwatch]
    pid: int
    wall: Callable[[], float]
    seed: int = 0
    next_request: int = field(default=0)
    known_peaks: tuple[Peaks, ...] = ()

    def disturbance(self) -> str:
        """What else goes on now that a latency would show; "" for nothing."""
        if self.extension.building:
            return "build"
        if self.profiler.busy:
            return "profiling"
        if self.guests.busy:
            return "preparing"
        return "compiling" if self.background.running else ""

    def notice(self, text: str, level: Literal["info", "warning", "error"] = "info") -> None:
        self.send(Notice(level, text, self.wall()))

    def measure_peaks(
        self, device: Device, dtype: str, threads: int, again: bool = False
    ) -> Generator[None, None, None]:
        """Measure a device's peaks in small units, or tell what is known of them; about three seconds.

        For the thread that samples, which drives it and nothing else until it ends.
        """
        if not device.usable:
            self.send(PeaksRefused(device.id, dtype, f"{device.title}: {device.reason}"))
            return
        known = find(self.known_peaks, device.id, dtype, threads or peaks_engine.thread_count())
        if known is not None and not again:
            self.send(PeaksMeasured(known))
            return
        self.send(PeaksStarted(device.id, dtype))
        try:
            found = yield from peaks_engine.measure(device, dtype, threads, self.stopwatch(device.id))
        except peaks_engine.PeaksError as error:
            self.send(PeaksRefused(device.id, dtype, str(error)))
            return
        self.known_peaks = merged(self.known_peaks, found)
        peaks_engine.keep(found)
        self.send(PeaksMeasured(found))

    def request_id(self) -> int:
        self.next_request += 1
        return self.next_request
