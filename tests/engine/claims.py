"""One short run of `native` beside a contender that is known to be as fast, or slower by a known share.

Prints the verdict as JSON. A process of its own for each: what differs from process to process (where memory lies, what
the machine does meanwhile) must not lead to a claim either.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable

from app.engine.processes import keep_freed_memory

keep_freed_memory()

import torch  # noqa: E402

from app.core import messages as m  # noqa: E402
from app.core.environment import Device  # noqa: E402
from app.core.plan import Measure, Plan  # noqa: E402
from app.core.recording import Recording  # noqa: E402
from app.core.results import entries_of  # noqa: E402
from app.core.workload import Workload  # noqa: E402
from app.engine.background import Background  # noqa: E402
from app.engine.headless import HeadlessRun  # noqa: E402
from app.engine.implementations import Implementation, native  # noqa: E402
from app.engine.inputs import Forward, Inputs  # noqa: E402
from app.engine.shop import Shop  # noqa: E402
from app.engine.stopwatch import stopwatch_for  # noqa: E402
from app.engine.telemetry import Readings, TelemetryThread  # noqa: E402
from tests.engine.support import FakeExtension, FakeProfiler  # noqa: E402

WORKLOAD = Workload(batch=8, seq_len=64, embed_dim=128, num_heads=4, device="cpu")


def delayed(share: float) -> Callable[[Workload, Inputs], Forward]:
    """Native, and then idle turns of the processor for `share` of what native takes here."""

    def prepare(workload: Workload, inputs: Inputs) -> Forward:
        call = native.prepare(workload, inputs)
        if not share:
            return call
        with torch.no_grad():
            took = []
            for _ in range(300):
                begin = time.perf_counter()
                call()
                took.append(time.perf_counter() - begin)
        delay = share * statistics.median(took)

        def forward() -> torch.Tensor:
            output = call()
            end = time.perf_counter() + delay
            while time.perf_counter() < end:
                pass
            return output

        return forward

    return prepare


def main(share: float, seconds: float) -> None:
    recording = Recording()
    recording.apply(m.Telemetry(time.time()))
    shop = Shop(
        send=lambda message: recording.apply(message) and None,
        registry={
            "native": native.IMPLEMENTATION,
            "other": Implementation(id="other", prepare=delayed(share)),
        },
        extension=FakeExtension(),  # type: ignore[arg-type]
        profiler=FakeProfiler(),
        background=Background(lambda token, error: None),
        resolve=lambda workload: (workload, Device("cpu", "a processor")),
        stopwatch=lambda device: stopwatch_for(torch.device(device)),
        pid=os.getpid(),
        wall=time.time,
    )
    measure = Measure(max_seconds=seconds, counts=False, accuracy=False)
    start = m.Start(1, Plan((WORKLOAD,), ("native", "other"), "native", measure=measure))
    recording.begin(start)
    telemetry = TelemetryThread(Readings(lambda: False, lambda: None), shop.send)  # type: ignore[arg-type]
    telemetry.start()
    for _ in HeadlessRun(start, shop).units():
        pass
    telemetry.stop()
    record = recording.records[0]
    (entry,) = [e for e in entries_of(record, "native", ("native", "other")) if e.implementation == "other"]
    speed = entry.speed_up
    print(
        json.dumps(
            {
                "verdict": entry.verdict,
                "reason": entry.verdict_reason,
                "stopped": record.stopped_because,
                "strained": entry.strained,
                "speed_up": None
                if speed is None
                else [speed.median, speed.low, speed.high, speed.noise_floor],
                "rounds": None if speed is None else [speed.rounds, speed.independent_rounds],
            }
        )
    )


if __name__ == "__main__":
    main(float(sys.argv[1]), float(sys.argv[2]))
