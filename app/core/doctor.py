"""What the doctor looks at: for each thing what was found, and the one thing to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from app.core import text
from app.core.build import BuildState
from app.core.environment import Device, Environment
from app.core.messages import Telemetry

Level = Literal["fail", "warning", "ok", "optional"]

LEVELS: tuple[Level, ...] = ("fail", "warning", "ok", "optional")
"""Failed: what was asked for cannot work. Warning: numbers get worse. Optional: missing and not needed."""

BUSY_PERCENT = 15.0
SLOWED = 0.85
HOT_C = 90.0
RECENT_S = 60.0
LOW_MEMORY_BYTES = 2**30


class Check(msgspec.Struct, frozen=True):
    """One line. `found` is a clause, `action` one sentence, empty where nothing is to be done.

    `command` is what the action copies, where it is a command.
    """

    id: str
    title: str
    level: Level
    found: str
    action: str = ""
    command: str = ""


def checks(
    environment: Environment | None,
    build: BuildState | None = None,
    telemetry: Sequence[Telemetry] = (),
    device: str = "auto",
) -> tuple[Check, ...]:
    """Every check that can be made from what is known, failures first. `device` is what was asked for."""
    found: list[Check] = []
    if environment is None:
        found.append(Check("torch", "PyTorch", "warning", "the worker has not told of its machine yet"))
    else:
        found.append(_torch(environment))
        found += _devices(environment, device)
        found.append(_threads(environment))
        found.append(_denormals(environment))
        found += _memory(environment, telemetry)
        found += _peaks(environment)
    if build is not None:
        found.append(_extension(build))
    recent = _recent(telemetry)
    for one in (_power(recent), _clock(telemetry), _load(recent), _heat(recent), _throttle(recent)):
        if one is not None:
            found.append(one)
    return tuple(sorted(found, key=lambda check: LEVELS.index(check.level)))


def head_counts(found: Sequence[Check]) -> dict[Level, int]:
    """How many of each level, all four, in their order."""
    return {level: sum(check.level == level for check in found) for level in LEVELS}


def _torch(environment: Environment) -> Check:
    if not environment.torch:
        return Check("torch", "PyTorch", "fail", "not found", "Install PyTorch 2.6 or newer.")
    built = f"built for CUDA {environment.torch_cuda}" if environment.torch_cuda else "built for the CPU"
    return Check("torch", "PyTorch", "ok", f"{environment.torch}, {built}")


def _devices(environment: Environment, asked: str) -> list[Check]:
    found = []
    gpus = [d for d in environment.devices if d.id != "cpu"]
    for gpu in gpus:
        title = "GPU" if len(gpus) == 1 else gpu.id
        if gpu.usable:
            found.append(Check(f"gpu-{gpu.id}", title, "ok", gpu.title))
        else:
            level: Level = "fail" if _asked_for(asked, gpu) else "optional"
            action = gpu.remedy or gpu.caution
            found.append(Check(f"gpu-{gpu.id}", title, level, gpu.reason, action, gpu.command))
    if asked.startswith("cuda") and not any(_asked_for(asked, gpu) for gpu in gpus):
        found.append(
            Check("gpu", "GPU", "fail", f"{asked} was asked for and is not here", "Choose another device.")
        )
    elif not gpus:
        found.append(Check("gpu", "GPU", "optional", "none found; operator and Python calls are counted"))
    return found


def _asked_for(asked: str, device: Device) -> bool:
    return asked == device.id or (asked == "cuda" and device.id.startswith("cuda"))


def _threads(environment: Environment) -> Check:
    threads, cores = environment.threads, environment.physical_cores
    if threads is None:
        return Check("threads", "Threads", "optional", "the number of threads is not known")
    found = f"{text.number(threads)} within an operator"
    if environment.interop_threads is not None:
        found += f", {text.number(environment.interop_threads)} between operators"
    if environment.logical_cores is not None and threads > environment.logical_cores:
        return Check(
            "threads",
            "Threads",
            "warning",
            f"{found}, for {text.number(environment.logical_cores)} processors",
            f"Set OMP_NUM_THREADS={environment.logical_cores}.",
        )
    if cores is not None:
        found += f", {text.number(cores)} core{'s' if cores != 1 else ''}"
    return Check("threads", "Threads", "ok", found)


def _denormals(environment: Environment) -> Check:
    flushed = environment.denormals_flushed
    if flushed is None:
        return Check("denormals", "Denormals", "optional", "whether they are flushed is not known")
    found = "flushed to zero" if flushed else "kept; numbers near 1e-38 are slow on a CPU"
    return Check("denormals", "Denormals", "ok", found)


def _memory(environment: Environment, telemetry: Sequence[Telemetry]) -> list[Check]:
    last = telemetry[-1] if telemetry else None
    if last is None or last.memory_used_bytes is None or last.memory_total_bytes is None:
        if environment.memory_bytes is None:
            return []
        return [Check("memory", "Memory", "ok", f"{text.size(environment.memory_bytes)} in all")]
    free = last.memory_total_bytes - last.memory_used_bytes
    found = f"{text.size(free)} of {text.size(last.memory_total_bytes)} free"
    if free < LOW_MEMORY_BYTES:
        return [
            Check("memory", "Memory", "warning", found, "Close other programs, or choose smaller shapes.")
        ]
    return [Check("memory", "Memory", "ok", found)]


def _peaks(environment: Environment) -> list[Check]:
    if not environment.peaks:
        action = "Look at the Roofline, or run doctor --peaks."
        return [Check("peaks", "Peaks", "optional", "compute and memory are not measured yet", action)]
    return [
        Check(f"peaks-{one.device}-{one.dtype}", "Peaks", "ok", f"{one.sentence}, measured {one.when}")
        for one in environment.peaks
    ]


def _extension(build: BuildState) -> Check:
    if build.state == "failed" and build.failed is not None:
        if build.failed.kind == "cancelled":
            return Check("extension", "Extension", "warning", "the build was cancelled", "Build it again.")
        remedy = build.failed.remedies[0] if build.failed.remedies else "Read the build log."
        return Check("extension", "Extension", "fail", build.failed.sentence.rstrip("."), remedy)
    if build.state == "running":
        waits = build.waiting is not None
        found = "waits for another process that builds it" if waits else "is being built"
        return Check("extension", "Extension", "ok", found)
    if build.state == "built" and build.finished is not None:
        how = "loaded from the cache" if build.finished.cached else "built"
        test = build.steps.get("self-test")
        passed = ", self-test passed" if test is not None and test.state in ("done", "cached") else ""
        return Check(
            "extension", "Extension", "ok", f"{how} in {text.duration(build.finished.seconds)}{passed}"
        )
    return Check("extension", "Extension", "optional", "not built yet; it is built when it is first needed")


def _recent(telemetry: Sequence[Telemetry]) -> tuple[Telemetry, ...]:
    if not telemetry:
        return ()
    since = telemetry[-1].at_s - RECENT_S
    return tuple(reading for reading in telemetry if reading.at_s >= since)


def _power(recent: Sequence[Telemetry]) -> Check | None:
    if not recent or recent[-1].on_mains is None:
        return None
    if recent[-1].on_mains:
        return Check("power", "Power", "ok", "on mains")
    charge = recent[-1].battery
    found = "on battery" + (f", {text.percent(charge)} left" if charge is not None else "")
    return Check("power", "Power", "warning", found, "Plug in the charger.")


def _clock(telemetry: Sequence[Telemetry]) -> Check | None:
    clocks = [reading.clock_hz for reading in telemetry if reading.clock_hz]
    if not clocks:
        return (
            Check("clock", "Clock", "optional", "this machine does not tell its clock") if telemetry else None
        )
    now, most = clocks[-1], max(clocks)
    found = f"{text.number(now / 1e9, 1)}{text.THIN}GHz"
    if now < SLOWED * most:
        down = text.percent(1 - now / most)
        return Check(
            "clock", "Clock", "warning", f"{found}, down {down} from {text.number(most / 1e9, 1)}{text.THIN}GHz",
            "Let the machine cool, or choose its performance profile.",
        )  # fmt: skip
    return Check("clock", "Clock", "ok", found)


def _load(recent: Sequence[Telemetry]) -> Check | None:
    loads = [reading.others_percent for reading in recent if reading.others_percent is not None]
    if not loads:
        return None
    mean = sum(loads) / len(loads)
    found = f"{text.number(mean)}{text.THIN}% by other processes"
    if mean > BUSY_PERCENT:
        return Check("load", "Other load", "warning", found, "Close other programs.")
    return Check("load", "Other load", "ok", found)


def _heat(recent: Sequence[Telemetry]) -> Check | None:
    heats = [reading.temperature_c for reading in recent if reading.temperature_c is not None]
    if not heats:
        return None
    found = f"{text.number(heats[-1])}{text.THIN}°C"
    if heats[-1] >= HOT_C:
        return Check("heat", "Temperature", "warning", found, "Let the machine cool down.")
    return Check("heat", "Temperature", "ok", found)


def _throttle(recent: Sequence[Telemetry]) -> Check | None:
    reasons = [reading.gpu_throttled for reading in recent if reading.gpu_throttled]
    if not reasons:
        return None
    return Check("gpu-clock", "GPU clock", "warning", f"held down: {reasons[-1]}", "Let the card cool down.")
