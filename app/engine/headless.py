"""Measuring every workload of a plan in turn, until each is known well enough."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from app.core.catalog import BESIDE
from app.core.criteria import WARM_UP_LIMIT, moved, standing, warm_up_of
from app.core.environment import Device
from app.core.evidence import kept, pairs
from app.core.measurements import Standing, StoppedBecause
from app.core.messages import Progress, RunDone, Sample, WorkloadDone
from app.core.series import Series
from app.core.statistics import SpeedUp, median_interval, speed_up
from app.core.workload import Workload
from app.engine import accuracy
from app.engine.lanes import Lane
from app.engine.run import Run, Units

LOOK_EVERY = 10
"""Rounds between two looks at the intervals."""

WAIT_S = 3600.0


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

    def took(self, name: str, sample: Sample) -> None:
        if not sample.disturbed:
            self._series.setdefault(name, Series()).append(sample, sample.round)

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
        yield from self._know_peaks(workload, device)
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

    def _know_peaks(self, workload: Workload, device: Device) -> Units:
        """Measure the device's peaks where the plan asks for them; known ones are only told."""
        if not self.start.plan.measure.roofline:
            return
        while self.shop.disturbance():
            yield WAIT_S
        for _ in self.shop.measure_peaks(device, workload.dtype, self.start.plan.measure.threads):
            yield 0.0

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
            if spent >= measure.max_seconds or (
                self.round >= measure.min_rounds and self.round % LOOK_EVERY == 0
            ):
                stands = self._standing(spent)
                self.shop.send(Progress(self.start.generation, self.index, stands))
                if stands.stop is not None:
                    return stands.stop
        return "no_contender"

    def _standing(self, spent: float) -> Standing:
        """How well every speed-up (without a baseline or a rival, every latency) is known."""
        measure = self.start.plan.measure
        baseline = self.baseline
        rivals = [lane for lane in self.ready if lane is not baseline]
        speeds: list[SpeedUp | None] = []
        has_moved = False
        assert self.bench is not None
        if baseline is None or not baseline.is_ready or not rivals:
            speeds = [self._latency(lane) for lane in self.ready]
        else:
            base = self._series.get(baseline.id, Series())
            # The noise floor must be known as well: a claim is as good as the worse of the two.
            for lane in (*rivals, self.bench.twin_of(baseline)):
                beside = self._series.get(f"{BESIDE}{lane.id}", base)
                found = pairs(beside, self._series.get(lane.id, Series()), ())
                speeds.append(speed_up(found.first, found.second, None) if found.first.size else None)
                has_moved = has_moved or (
                    found.first.size > 0 and moved(found.first / found.second) is not None
                )
        return standing(speeds, measure.target_ci, spent, measure.max_seconds, self._is_warm(), has_moved)

    def _is_warm(self) -> bool:
        """Whether every contender's level is steady, or restless for so long that it will not become so."""
        return all(
            len(series) >= WARM_UP_LIMIT or warm_up_of(series.seconds).steady
            for series in (self._series.get(lane.id, Series()) for lane in self.ready)
        )

    def _latency(self, lane: Lane) -> SpeedUp | None:
        """A latency's interval, in the form of a speed-up's."""
        series = self._series.get(lane.id, Series())
        interval = median_interval(np.asarray(series.seconds[kept(series, ())[0]]))
        return (
            None
            if interval is None
            else SpeedUp(interval.median, interval.low, interval.high, 0.95, None, interval.n)
        )

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
