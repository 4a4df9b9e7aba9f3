"""Three latencies that are never mixed, and what profiling costs: declared once, with the words for none."""

from __future__ import annotations

import msgspec

from app.core.statistics import Statistic

LATENCIES: dict[str, Statistic] = {
    s.id: s
    for s in (
        Statistic(
            "wall_s",
            "Host wall",
            "s",
            "median by the host's clock, from before a call until its result is there, in a process in which "
            "no profiler ever ran",
        ),
        Statistic(
            "device_s",
            "Device events",
            "s",
            "median between two events in the device's own queue, around the same calls: what the device was "
            "busy or waited for, without the host's way there and back",
        ),
        Statistic(
            "kernels_s",
            "Sum of kernels",
            "s",
            "the kernels' own times of one profiled call added up: without the gaps between them",
        ),
        Statistic(
            "profiled_s",
            "Profiled",
            "s",
            "median by the host's clock of the same call under the profiler, in the profiler's own process: "
            "never part of a comparison",
        ),
        Statistic(
            "profiling_cost",
            "Cost of profiling",
            "×",
            "profiled over host wall: how much longer a call takes while it is counted",
        ),
    )
}

NOT_ON_A_CPU = "does not apply on a CPU: there a call has ended when it returns, with no queue and no kernels"
NOT_YET = "not measured yet"


class Latencies(msgspec.Struct, frozen=True):
    """Seconds per call of one contender; null where there is none, and why stands in `absent` by name."""

    wall_s: float | None = None
    device_s: float | None = None
    kernels_s: float | None = None
    profiled_s: float | None = None
    profiling_cost: float | None = None
    absent: dict[str, str] = {}


def latencies_of(
    device: str,
    wall_s: float | None,
    device_s: float | None,
    kernels_s: float | None,
    profiled_s: float | None,
    note: str = "",
) -> Latencies:
    """The latencies side by side. `note` is why there are no counts, where there are none."""
    on_device = device.startswith("cuda")
    cost = profiled_s / wall_s if profiled_s is not None and wall_s else None
    if not on_device:
        # Whatever a file says: without a device there is no such time.
        device_s = kernels_s = None
    uncounted = note or NOT_YET
    absent = {
        "wall_s": NOT_YET if wall_s is None else "",
        "device_s": "" if device_s is not None else NOT_YET if on_device else NOT_ON_A_CPU,
        "kernels_s": "" if kernels_s is not None else uncounted if on_device else NOT_ON_A_CPU,
        "profiled_s": uncounted if profiled_s is None else "",
        "profiling_cost": "" if cost is not None else uncounted if profiled_s is None else NOT_YET,
    }
    return Latencies(
        wall_s, device_s, kernels_s, profiled_s, cost, {name: why for name, why in absent.items() if why}
    )
