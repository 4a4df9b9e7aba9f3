"""Two recordings' machines side by side: what differs, what that can move, and what only follows from it."""

from __future__ import annotations

import statistics

import msgspec

from app.core.environment import MOVES, Environment, differences
from app.core.recording import Recording
from app.core.text import size

TITLES: dict[str, str] = {
    "power": "Power",
    "clock": "Clock",
    "torch": "PyTorch",
    "torch_cuda": "CUDA",
    "torch_architectures": "GPU kernels",
    "driver": "Driver",
    "cpu": "CPU",
    "cpu_features": "Vector code",
    "threads": "Threads",
    "interop_threads": "Between operators",
    "python": "Python",
    "extension_key": "Extension",
    "physical_cores": "Cores",
    "logical_cores": "Logical cores",
    "memory_bytes": "Memory",
    "denormals_flushed": "Denormals",
    "freed_memory_kept": "Allocator",
    "devices": "Devices",
    "system": "System",
    "machine": "Machine",
    "attnscope": "AttnScope",
}
"""In the order in which they are shown; what is new in an environment comes last, under its own name."""

CONDITIONS = {
    "power": "moves every latency, by its clock",
    "clock": "every latency in the same proportion",
}

CAUSES: dict[str, tuple[str, ...]] = {
    "clock": ("power", "cpu"),
    "torch_architectures": ("torch", "torch_cuda"),
    "torch_cuda": ("torch",),
    "extension_key": ("attnscope", "torch", "torch_cuda", "python", "cpu"),
    "cpu_features": ("cpu",),
    "physical_cores": ("cpu",),
    "logical_cores": ("cpu",),
    "interop_threads": ("cpu",),
    "devices": ("cpu", "threads"),
}
"""Where a cause differs, this differs because of it and says nothing more."""

CLOCK_TOLERANCE = 0.03


class MachineRow(msgspec.Struct, frozen=True):
    """One thing of both machines in words; `follows`: the title of another that explains the difference."""

    field: str
    title: str
    a: str
    b: str
    differs: bool = False
    moves: str = ""
    follows: str = ""


def machine_rows(a: Recording, b: Recording) -> tuple[MachineRow, ...]:
    """What can move a figure and differs first, then other differences, then what is equal."""
    rows = [*_conditions(a, b)]
    if a.environment is not None and b.environment is not None:
        unequal = {difference.field for difference in differences(a.environment, b.environment)}
        fields = [info.name for info in msgspec.structs.fields(Environment)]
        for name in fields:
            ours, theirs = _words(a.environment, name), _words(b.environment, name)
            if ours or theirs:
                rows.append(
                    MachineRow(
                        name, TITLES.get(name, name), ours, theirs, name in unequal, MOVES.get(name, "")
                    )
                )
    differing = {row.field: row.title for row in rows if row.differs}
    found = []
    for row in rows:
        causes = CAUSES.get(row.field, ()) if row.differs else ()
        cause = next((differing[name] for name in causes if name in differing), "")
        found.append(msgspec.structs.replace(row, follows=cause))
    order = list(TITLES)
    place = {name: index for index, name in enumerate(order)}
    found.sort(key=lambda r: (not r.differs, bool(r.follows), not r.moves, place.get(r.field, len(order))))
    return tuple(found)


def _conditions(a: Recording, b: Recording) -> list[MachineRow]:
    """What is no property of the machine but of the hour: power and clock, as the telemetry has them."""
    rows = []
    ours, theirs = _power(a), _power(b)
    if ours and theirs:
        rows.append(MachineRow("power", TITLES["power"], ours, theirs, ours != theirs, CONDITIONS["power"]))
    clock, other = _clock(a), _clock(b)
    if clock and other:
        differs = abs(other / clock - 1) > CLOCK_TOLERANCE
        words = f"{clock / 1e6:,.0f} MHz", f"{other / 1e6:,.0f} MHz"
        rows.append(MachineRow("clock", TITLES["clock"], *words, differs, CONDITIONS["clock"]))
    return rows


def _power(recording: Recording) -> str:
    told = {reading.on_mains for reading in recording.telemetry if reading.on_mains is not None}
    if not told:
        return ""
    return "on mains" if told == {True} else "on battery" if told == {False} else "partly on battery"


def _clock(recording: Recording) -> float | None:
    told = [reading.clock_hz for reading in recording.telemetry if reading.clock_hz]
    return statistics.median(told) if told else None


def _words(environment: Environment, name: str) -> str:
    value = getattr(environment, name)
    if name == "devices":
        return ", ".join(device.title for device in environment.devices)
    if name == "memory_bytes":
        return size(value) if value is not None else ""
    if name == "freed_memory_kept":
        return {True: "keeps freed memory", False: "hands memory back", None: ""}[value]
    if name == "denormals_flushed":
        return {True: "flushed to zero", False: "computed", None: ""}[value]
    if isinstance(value, tuple):
        return ", ".join(str(part) for part in value)
    return "" if value is None else str(value)
