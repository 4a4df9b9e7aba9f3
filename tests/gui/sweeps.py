"""Sweeps made of messages, in every state of a cell."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from app.core import messages as m
from app.core.measurements import Counts, Memory, Phased
from app.core.plan import Plan
from app.core.recording import Recording
from app.core.sweep import sweep_plan
from app.core.workload import Workload
from app.gui.sweep_run import SweepState, SweepStatus
from tests import factories
from tests.gui.fakes import FakeSession

NAMES = ("native", "mha", "sdpa", "extension-aten", "extension-fused")
AXES = {"seq_len": [16, 32, 64, 128, 256, 512, 1024, 2048], "embed_dim": [64, 128, 256, 512, 1024, 2048]}
THREE = {"seq_len": [16, 64, 256], "embed_dim": [64, 128], "mode": ["forward", "forward_backward"]}


def plan_of(axes: dict[str, list[object]] | None = None, **base: object) -> Plan:
    return sweep_plan(Workload(**{"device": "cpu", "batch": 1, **base}), axes or AXES, NAMES, "native")  # type: ignore[arg-type]


def seconds_of(name: str, workload: Workload) -> float:
    """Overhead that each contender pays once, and work that grows with the shape."""
    overhead = {"native": 800e-6, "mha": 620e-6, "sdpa": 430e-6, "extension-aten": 260e-6}.get(name, 170e-6)
    rate = {"native": 30e9, "mha": 31e9, "sdpa": 40e9, "extension-aten": 30e9}.get(name, 28.5e9)
    return overhead + workload.flops / rate


def measured(plan: Plan, upto: int | None = None, rounds: int = 80, seed: int = 5) -> Recording:
    """The first `upto` cells done; one that is too large has no memory, one contender fails at one cell."""
    chance = np.random.default_rng(seed)
    made = Recording()
    made.apply(m.Ready(factories.environment(), factories.START_S))
    factories.built(made)
    made.begin(m.Start(1, plan))
    names = (*plan.implementations, "@twin")
    for index, workload in enumerate(plan.workloads[: upto if upto is not None else len(plan.workloads)]):
        for name in plan.implementations:
            made.apply(m.ContenderState(1, index, name, "ready"))
        if workload.seq_len * workload.embed_dim >= 2048 * 1024:
            reason = "needs 26.0 GiB of memory, 3.1 GiB are free"
            for name in plan.implementations:
                made.apply(m.ContenderState(1, index, name, "unavailable", reason))
            made.apply(m.WorkloadDone(1, index, "no_contender"))
            continue
        common = np.exp(chance.normal(0, 0.05, rounds))
        columns = []
        for name in names:
            seconds = seconds_of("native" if name == "@twin" else name, workload)
            columns.append(seconds * common * np.exp(np.abs(chance.normal(0, 0.02, rounds))))
        samples = [
            m.Sample(n, i, factories.START_S + 6 * index + 0.02 * n, float(columns[i][n]), 4)
            for n in range(rounds)
            for i in range(len(names))
        ]
        made.apply(m.Samples(1, index, 4242, names, tuple(samples)))
        for name in plan.implementations:
            made.apply(m.Checked(1, index, name, factories.accuracy(backward=workload.backward)))
            calls = {"native": 58, "mha": 20, "sdpa": 12}.get(name, 4)
            made.apply(
                m.Counted(
                    1, index, name, Counts(Phased(calls // 2, None), Phased(calls, None), verified=True),
                    Memory(int(4 * workload.batch * workload.seq_len * workload.embed_dim)), 4243,
                )
            )  # fmt: skip
        if (workload.seq_len, workload.embed_dim) == (1024, 1024):
            made.apply(
                m.ContenderState(1, index, "extension-fused", "failed", "the worker crashed (SIGSEGV)")
            )
        if (workload.seq_len, workload.embed_dim) == (512, 1024):
            wrong = factories.accuracy("output", workload.backward)
            made.apply(m.Checked(1, index, "extension-fused", wrong))
        made.apply(m.WorkloadDone(1, index, "target_ci" if math.isfinite(common[0]) else "max_seconds"))
    if upto is not None and upto < len(plan.workloads):
        made.apply(m.Active(1, upto, "native", "sample"))
    else:
        made.apply(m.RunDone(1))
    return made


def session(
    state: SweepState = "done",
    upto: int | None = None,
    axes: dict[str, list[object]] | None = None,
    selected: Workload | None = None,
    **base: object,
) -> FakeSession:
    """A fake session that shows a sweep, or a moment of one."""
    plan = plan_of(axes, **base)
    recording = measured(plan, upto)
    made = FakeSession(recording)
    made.challenger = "extension-fused"
    done = len(plan.workloads) if upto is None else upto
    active = plan.workloads[done] if state == "running" and done < len(plan.workloads) else None
    made.sweep = SweepStatus(plan, state, done, 190.0 if state == "running" else None, active)
    record = recording.record_for(selected) if selected is not None else recording.records[0]
    assert record is not None
    recording.show(record)
    made.workload = record.workload
    factories.telemetry(recording, 30)
    return made


def elsewhere(made: FakeSession) -> FakeSession:
    """The same from a file of another machine."""
    assert made.sweep is not None
    made.sweep = replace(made.sweep, state="recorded", obstacle="cpu is A now, was B")
    return made
