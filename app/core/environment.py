"""The record of a machine and its software, and the difference between two of them."""

from __future__ import annotations

import msgspec

from app.core.peaks import Peaks


class Device(msgspec.Struct, frozen=True):
    """Something to run on. An unusable one carries the reason and the way out."""

    id: str
    title: str
    usable: bool = True
    detail: str = ""
    reason: str = ""
    remedy: str = ""
    command: str = ""
    caution: str = ""
    total_bytes: int | None = None
    free_bytes: int | None = None
    capability: tuple[int, int] | None = None
    cache_bytes: int | None = None
    """What the last cache before its memory holds."""


class Environment(msgspec.Struct, frozen=True):
    """What can move a figure. Fields that this machine does not offer are null or empty."""

    attnscope: str = ""
    system: str = ""
    machine: str = ""
    python: str = ""
    torch: str = ""
    torch_cuda: str | None = None
    torch_architectures: tuple[str, ...] = ()
    driver: str | None = None
    cpu: str = ""
    cpu_features: tuple[str, ...] = ()
    physical_cores: int | None = None
    logical_cores: int | None = None
    threads: int | None = None
    interop_threads: int | None = None
    memory_bytes: int | None = None
    devices: tuple[Device, ...] = ()
    extension_key: str | None = None
    denormals_flushed: bool | None = None
    freed_memory_kept: bool | None = None
    """Whether the sampler's allocator keeps freed memory, so that no call pays for getting it anew."""
    peaks: tuple[Peaks, ...] = ()
    """What was measured of these devices' compute and memory ceilings, at any time before."""


MOVES: dict[str, str] = {
    "cpu": "everything measured on the CPU",
    "cpu_features": "which vector code runs",
    "torch": "every implementation, the baseline too",
    "torch_cuda": "which kernels a GPU is given",
    "threads": "CPU latency; unequal counts are never compared",
    "python": "Python overhead per call",
    "extension_key": "the extension's curves",
    "driver": "launch overhead on a GPU",
    "denormals_flushed": "CPU latency where numbers come near 1e-38",
    "freed_memory_kept": "CPU latency of whatever allocates: without it page faults come and go by chance",
    "memory_bytes": "large workloads",
}


class Difference(msgspec.Struct, frozen=True):
    """One field in which two environments differ, and what that can move."""

    field: str
    ours: object
    theirs: object
    moves: str


def differences(ours: Environment, theirs: Environment) -> tuple[Difference, ...]:
    """Fields in which two environments differ, the ones that can move a figure first."""
    # When and how well the peaks were measured is no property of the machine.
    names = [info.name for info in msgspec.structs.fields(Environment) if info.name != "peaks"]
    names.sort(key=lambda name: name not in MOVES)
    found = []
    for name in names:
        mine, other = getattr(ours, name), getattr(theirs, name)
        if name == "devices":
            # Free memory differs between any two moments; the device does not.
            mine = tuple(device.title for device in mine)
            other = tuple(device.title for device in other)
        if mine != other:
            found.append(Difference(name, mine, other, MOVES.get(name, "")))
    return tuple(found)
