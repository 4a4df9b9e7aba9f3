"""A device whose clock moves only when it is waited for, and a shop whose services are played by hand."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
import torch

from app.core import messages as m
from app.core.environment import Device
from app.core.plan import Measure, Plan
from app.core.workload import Workload
from app.engine.background import Background
from app.engine.channel import Inbox
from app.engine.implementations import Implementation, native
from app.engine.own.guests import Guests
from app.engine.profiler_protocol import CountRequest
from app.engine.run import Run
from app.engine.shop import Shop

TINY = Workload(batch=2, seq_len=8, embed_dim=16, num_heads=2, device="cpu")

T = TypeVar("T")


class FakeDevice:
    """Work is queued and costs nothing until it is waited for, as on a GPU."""

    def __init__(self) -> None:
        self.time = 100.0
        self.queued = 0.0
        self.synchronised = 0

    def now(self) -> float:
        return self.time

    def wall(self) -> float:
        return 1.7e9 + self.time

    def synchronise(self) -> None:
        self.synchronised += 1
        self.time += self.queued
        self.queued = 0.0

    def mark(self) -> float:
        return self.time + self.queued

    def between(self, first: float, second: float) -> float:
        return second - first

    def work(self, seconds: float) -> Callable[[], None]:
        """A call that queues `seconds` of work."""

        def call() -> None:
            self.queued += seconds

        return call


class FakeExtension:
    def __init__(self) -> None:
        self.state = "absent"
        self.reason = self.remedy = ""
        self.library: str | None = None
        self.key = ""
        self.starts = 0

    @property
    def building(self) -> bool:
        return self.state == "building"

    def start(self, clean: bool = False) -> None:
        self.starts += 1
        self.state = "building"


class FakeProfiler:
    def __init__(self) -> None:
        self.busy = False
        self.requests: list[CountRequest] = []
        self.forgotten = 0

    def request(self, request: CountRequest) -> None:
        self.requests.append(request)

    def forget(self) -> None:
        self.forgotten += 1
        self.requests.clear()


class Stage:
    """A shop with fakes around it, the messages it sent, and contenders made up for a test."""

    def __init__(self) -> None:
        self.device = FakeDevice()
        self.sent: list[Any] = []
        self.extension = FakeExtension()
        self.profiler = FakeProfiler()
        self.finished: list[tuple[object, BaseException | None]] = []
        self.registry = {"native": self.contender("native", 1e-4)}
        self.shop = Shop(
            send=self.send,
            registry=self.registry,
            extension=self.extension,  # type: ignore[arg-type]
            profiler=self.profiler,
            guests=Guests(Inbox()),
            background=Background(lambda token, error: self.finished.append((token, error))),
            resolve=lambda workload: (workload, Device("cpu", "a processor")),
            stopwatch=lambda device: self.device,
            pid=os.getpid(),
            wall=self.device.wall,
        )

    def send(self, message: m.Message) -> None:
        # Through the wire's form, so that what cannot be written fails here.
        self.sent.append(m.decode_message(m.encode(message)))

    def contender(self, name: str, seconds: float = 1e-4, **changes: Any) -> Implementation:
        """Gives what native gives, computed once, and takes `seconds` of the fake device."""

        def prepare(workload: Workload, inputs: Any) -> Callable[[], torch.Tensor]:
            output = native.prepare(workload, inputs)()

            def call() -> torch.Tensor:
                self.device.queued += seconds
                return output

            return call

        return Implementation(**{"id": name, "prepare": prepare, **changes})

    def add(self, name: str, seconds: float = 1e-4, **changes: Any) -> None:
        self.registry[name] = self.contender(name, seconds, **changes)

    def start(self, *names: str, generation: int = 1, **changes: Any) -> m.Start:
        measure = changes.pop("measure", Measure(max_seconds=5.0, target_ci=0.01, min_rounds=30))
        workloads = changes.pop("workloads", (TINY,))
        baseline = changes.pop("baseline", "native")
        plan = Plan(workloads=workloads, implementations=names, baseline=baseline, measure=measure)
        return m.Start(generation=generation, plan=plan, **changes)

    def drive(self, run: Run, until: Callable[[], bool] = lambda: False, units: int = 5000) -> None:
        """Do units of `run` until something holds, it waits for an event, or it ends."""
        stepping = self.units_of(run)
        for _ in range(units):
            if until():
                return
            try:
                idle = next(stepping)
            except StopIteration:
                return
            if idle >= 60.0:
                return
            self.device.time += max(idle, 1e-5)
        raise AssertionError(f"{units:,} units of work were not enough")

    def units_of(self, run: Run) -> Any:
        if not hasattr(run, "_driven"):
            run._driven = run.units()  # type: ignore[attr-defined]
        return run._driven  # type: ignore[attr-defined]

    def all(self, kind: type[T]) -> list[T]:
        return [message for message in self.sent if isinstance(message, kind)]

    def samples(self, name: str) -> list[m.Sample]:
        """What was sent of one contender, in order."""
        return [
            sample
            for batch in self.all(m.Samples)
            for sample in batch.samples
            if batch.implementations[sample.implementation] == name
        ]

    def state_of(self, name: str) -> m.ContenderState:
        return [state for state in self.all(m.ContenderState) if state.implementation == name][-1]


def with_(workload: Workload, **changes: Any) -> Workload:
    return msgspec.structs.replace(workload, **changes)
