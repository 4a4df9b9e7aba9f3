"""Two recordings of several workloads, made up: what a test of comparing needs."""

from __future__ import annotations

import math
import random

from app.core import messages as m
from app.core.catalog import TWIN
from app.core.plan import Plan
from app.core.recording import Recording
from app.core.workload import Workload
from tests import factories

NAMES = ("native", "mha", "sdpa", "extension-aten")
WORKLOADS = tuple(
    Workload(batch=8, seq_len=seq_len, mode=mode, device="cpu")  # type: ignore[arg-type]
    for seq_len in (16, 32, 64, 128, 256, 512)
    for mode in ("forward", "forward_backward")
)


def recording(
    scale: dict[str, float] | None = None,
    everything: float = 1.0,
    between_runs: float = 0.0,
    workloads: tuple[Workload, ...] = WORKLOADS,
    names: tuple[str, ...] = NAMES,
    baseline: str = "native",
    rounds: int = 60,
    noise: float = 0.01,
    seed: int = 1,
    title: str = "Made up",
    at_s: float = factories.START_S,
    wrong: str = "",
) -> Recording:
    """`scale` multiplies a contender's latency, `everything` all of them; `between_runs` is how far each contender's
    level in each workload is off for as long as the process lives (a standard deviation); `wrong` names one
    whose results are."""
    chance = random.Random(seed)
    made = Recording()
    made.apply(m.Ready(factories.environment(), at_s))
    made.begin(m.Start(1, Plan(workloads, names, baseline, title=title)))
    sampled = (*names, TWIN)
    for index, workload in enumerate(workloads):
        size = workload.seq_len / 64 * (3 if workload.backward else 1)
        levels = {name: math.exp(chance.gauss(0, between_runs)) for name in names}
        for name in names:
            made.apply(m.ContenderState(1, index, name, "ready"))
            made.apply(
                m.Checked(1, index, name, factories.accuracy("output" if name == wrong else None, False))
            )
        samples = []
        for number in range(rounds):
            common = math.exp(chance.gauss(0, noise))
            for place, name in enumerate(sampled):
                own = baseline if name == TWIN else name
                level = factories.MEDIANS_S.get(own, 5e-4) * size * everything * levels[own]
                seconds = level * (scale or {}).get(own, 1.0) * common * math.exp(chance.gauss(0, noise))
                samples.append(m.Sample(number, place, at_s + index + number / 100, seconds, 4))
        made.apply(m.Samples(1, index, 42, sampled, tuple(samples)))
        made.apply(m.WorkloadDone(1, index, "max_seconds"))
    made.apply(m.RunDone(1))
    return made
