"""Measuring every workload of a plan in turn, until each is known well enough."""

from __future__ import annotations

from collections.abc import Generator
from typing import Literal

import numpy as np

from app.core.messages import RunDone, Sample, WorkloadDone
from app.core.series import Series, paired
from app.core.statistics import is_precise, median_interval, speed_up
from app.engine import accuracy
from app.engine.lanes import Lane
from app.engine.run import Run, Units

LOOK_EVERY = 10
"""Rounds between two looks at the intervals."""

WAIT_S = 3600.0

StoppedBecause = Literal["target_ci", "max_seconds", "no_contender"]


class HeadlessRun(Run):
    """Per workload: prepare, check accuracy, sample with no child working, then count."""

    def units(self) -> Units:
        yield from self._await_extension()
        workloads = self.start.plan.workloads
        for index in range(min(self.start.first_workload, len(workloads)), len(workloads)):
            self.index = index
            self.round = 0
            reason = yield from self._measure()
            self.flush()
            self.shop.send(WorkloadDone(self.start.generation, self.index, reason))
            if self.bench is not None:
                self.bench.close()
                self.bench = None
        self.shop.send(RunDone(self.start.generation))

    def took(self, lane: Lane, sample: Sample) -> None:
        if not sample.disturbed:
            self._series.setdefault(lane.id, Series()).append(sample, sample.round)

    # ---- one workload ----------------------------------------------------------------------------------

    def _measure(self) -> Generator[float, None, StoppedBecause]:
        self._series: dict[str, Series] = {}
        workload, device = self.shop.resolve(self.start.plan.workloads[self.index])
        if not device.usable:
            self.refuse_all(device.reason, device.remedy)
            return "no_contender"
        self.bench = self.new_bench(workload)
        if not self.open_bench():
            return "no_contender"
        yield 0.0
        for lane in sorted(self.lanes, key=lambda lane: lane.is_slow):
            if self.admit(lane):
                self.prepare(lane)
                yield 0.0
                yield from self.own.wait()
        yield from self._check_accuracy()
        while self.shop.disturbance():
            yield WAIT_S
        reason = yield from self._sample_until_known()
        self.flush()
        if self.start.plan.measure.counts:
            self.request_counts(self.ready)
            while self.counts_pending:
                yield WAIT_S
        return reason

    def _check_accuracy(self) -> Units:
        bench = self.bench
        assert bench is not None
        for lane in self.ready:
            if not lane.inspected:
                self.inspect(lane)
                yield 0.0
        if not self.start.plan.measure.accuracy or not self.ready:
            return
        bench.make_reference(accuracy.MAX_FLOPS)
        yield 0.0
        for lane in self.ready:
            self.check(lane)
            yield 0.0
            yield from self.own.wait()

    def _sample_until_known(self) -> Generator[float, None, StoppedBecause]:
        measure = self.start.plan.measure
        bench = self.bench
        assert bench is not None
        spent = 0.0
        while self.ready:
            began = bench.watch.now()
            for idle in self.run_round():
                # What the worker does between two units (a pause, a command) is not measuring time.
                spent += bench.watch.now() - began
                yield idle
                began = bench.watch.now()
            if spent >= measure.max_seconds:
                return "max_seconds"
            if self.round >= measure.min_rounds and self.round % LOOK_EVERY == 0 and self._is_known():
                return "target_ci"
        return "no_contender"

    def _is_known(self) -> bool:
        """Whether every speed-up (without a baseline or a rival, every latency) is known to `target_ci`."""
        target = self.start.plan.measure.target_ci
        baseline = self.baseline
        rivals = [lane for lane in self.ready if lane is not baseline]
        if baseline is None or not baseline.is_ready or not rivals:
            return all(self._latency_is_known(lane, target) for lane in self.ready)
        base = self._series.get(baseline.id, Series())
        for lane in rivals:
            ours, theirs = paired(base, self._series.get(lane.id, Series()))
            if not is_precise(speed_up(ours, theirs, None) if ours.size else None, target):
                return False
        return True

    def _latency_is_known(self, lane: Lane, target: float) -> bool:
        seconds = self._series.get(lane.id, Series()).seconds
        interval = median_interval(np.asarray(seconds))
        if interval is None or interval.low is None or interval.high is None:
            return False
        return (interval.high - interval.low) / 2 <= target * interval.median

    # ---- the extension ---------------------------------------------------------------------------------

    def _await_extension(self) -> Units:
        """Build or load the extension before anything is measured, if a contender needs it."""
        extension = self.shop.extension
        registry = self.shop.registry
        wanted = any(
            name in registry and registry[name].needs == "extension" and name not in self.start.excluded
            for name in self.start.plan.implementations
        )
        if wanted and extension.state == "absent":
            extension.start()
        while extension.state == "building":
            yield WAIT_S
        # A preparation that an earlier live run left behind cannot be stopped.
        while self.shop.background.running:
            yield WAIT_S
