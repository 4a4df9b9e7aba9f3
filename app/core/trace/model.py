"""A trace as columns: plain numpy arrays, one element per event."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from app.core.trace.vocabulary import Kind

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

ABSENT = -(2**63)
"""In an integer column: the event does not say."""


class TraceError(ValueError):
    """A file that cannot be read as a trace, in one or two sentences that name the file and the cause."""


@dataclass(frozen=True)
class Source:
    """The file or bytes a trace came from. Sizes in bytes."""

    name: str
    container: str
    """`gzip` or `plain`, by the first two bytes."""
    json_form: str
    """`object` or `array`."""
    bytes_on_disk: int
    bytes_json: int


@dataclass(frozen=True, eq=False)
class Complete:
    """Complete events (`ph` X) in file order; every array has one element for each.

    `start` and `duration` are nanoseconds, `start` relative to `Trace.origin_ns`. Where `timed` is false
    the file has no usable start, and `start` is 0; where `measured` is false it has no usable duration, and
    `duration` is 0. `name`, `category` and `thread` index the trace's tables. `device` and `stream` fall
    back to the event's process and thread, as Kineto lays its rows out.
    """

    kind: npt.NDArray[np.uint8]
    category: Ints
    name: Ints
    thread: Ints
    start: Ints
    duration: Ints
    timed: Bools
    measured: Bools
    device: Ints
    stream: Ints
    correlation: Ints
    """Ties a device's work to the call that asked for it; 0: no id."""
    external: Ints
    sequence: Ints
    """Autograd's sequence number: the same for a forward operator and the node that undoes it."""

    def __len__(self) -> int:
        return len(self.kind)

    @cached_property
    def end(self) -> Ints:
        return self.start + self.duration

    def of(self, *kinds: Kind) -> Ints:
        """Indices of the events of these kinds, in file order."""
        return np.flatnonzero(np.isin(self.kind, np.array(kinds, dtype=np.uint8)))


@dataclass(frozen=True, eq=False)
class Flows:
    """Flow events (`ph` s and f): arrows between events. An id counts within its category."""

    is_start: Bools
    category: Ints
    identity: Ints


@dataclass(frozen=True, eq=False)
class MemoryRecords:
    """`[memory]` instants in order of time: bytes allocated (or, negative, freed) at `address` of a device.

    `device_type` is torch's number: 0 the CPU, 1 CUDA. `time` as `Complete.start`.
    """

    time: Ints
    bytes: Ints
    address: Ints
    device_type: Ints

    def __len__(self) -> int:
        return len(self.time)


@dataclass(frozen=True)
class Oddities:
    """How many events are not as they should be, and what was done about it."""

    without_start: int = 0
    """Left out of every time; still counted."""
    without_duration: int = 0
    """Counted; their time is unknown and enters sums as 0."""
    negative_duration: int = 0
    """Counted as 0."""
    zero_duration: int = 0
    unreadable: int = 0
    """Left out altogether."""


@dataclass(frozen=True, eq=False)
class Trace:
    """What one file says, unchanged but for the repairs that `warnings` name."""

    source: Source
    names: tuple[str, ...]
    categories: tuple[str, ...]
    threads: tuple[tuple[str, str], ...]
    """(process id, thread id) as text: some files write one id both as a number and as text."""
    complete: Complete
    flows: Flows
    memory: MemoryRecords
    phases: dict[str, int]
    process_ids: int
    origin_ns: int
    """Start of the earliest complete event on the file's own clock."""
    whole_microseconds: bool
    header: dict[str, Any]
    """What stands beside the events, in the file's order."""
    oddities: Oddities = Oddities()
    warnings: tuple[str, ...] = ()
    incomplete: bool = False
    """The file ends early: what is here is a part of what was recorded."""

    @property
    def events(self) -> int:
        return sum(self.phases.values())

    @property
    def devices_listed(self) -> list[str] | None:
        """Names in `deviceProperties`; null if the file has no such list. It need not name those in use."""
        listed = self.header.get("deviceProperties")
        if not isinstance(listed, list):
            return None
        return [str(entry.get("name", "")) for entry in listed if isinstance(entry, dict)]

    def name_of(self, event: int) -> str:
        return self.names[int(self.complete.name[event])]
