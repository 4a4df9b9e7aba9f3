"""Measuring one workload for as long as it is shown."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec

from app.core.messages import Checked, Start, WorkloadDone
from app.core.workload import Workload
from app.engine import accuracy
from app.engine.failures import explain
from app.engine.inputs import make_inputs
from app.engine.lanes import Bench, Lane
from app.engine.run import Run, Units
from app.engine.shop import Shop

CHECKS_AFTER_S = 0.3
COUNTS_AFTER_S = 0.5
"""Since the last change: while a key is held down, no check and no pass is begun in vain."""

FIRST_ROUNDS = 20
FULL_SPEED_ROUNDS = 400
ROUND_EVERY_S = 0.04
"""After the first rounds one every so often is enough for the eye, and leaves the processor to the window
and to whatever disturbs."""

DISTURBED_ROUND_EVERY_S = 0.1
"""What is sampled beside a build enters no figure; the sooner the build is done, the better."""

FOREVER = 3600.0

Job = Callable[[], None]


class LiveRun(Run):
    """Native is sampled at once; the others join one by one, between rounds.

    `inherited` is the bench of the run before: lanes prepared for the same workload are kept.
    """

    def __init__(self, start: Start, shop: Shop, inherited: Bench | None = None) -> None:
        super().__init__(start, shop)
        self.index = min(start.first_workload, len(start.plan.workloads) - 1)
        self._inherited = inherited
        self._began = 0.0
        self._round_began = 0.0
        self._undisturbed_rounds = 0
        self._compiled: list[Lane] = []
        self._said_no_contender = False

    def units(self) -> Units:
        workload, device = self.shop.resolve(self.start.plan.workloads[self.index])
        if not device.usable:
            self._leave_inherited()
            self.refuse_all(device.reason, device.remedy)
            self._say_no_contender()
            return
        self._take_bench(workload)
        if not self.open_bench():
            self._say_no_contender()
            return
        assert self.bench is not None
        self._began = self.bench.watch.now()
        while True:
            self.own.look()
            job = self._next_job()
            if job is not None:
                job()
                yield 0.0
            self._round_began = self.bench.watch.now()
            yield from self.run_round()
            if not self.shop.disturbance():
                self._undisturbed_rounds += 1
            if job is None:
                yield self._rest()

    def extension_changed(self) -> None:
        if self.bench is None:
            return
        for lane in self.lanes:
            if lane.needs_extension and lane.state in ("waiting", "unavailable"):
                lane.again()
            elif lane.own is not None and lane.is_ready and not self.own.is_prepared(lane, self.bench):
                # The baseline that runs beside it is there now.
                lane.again()

    def prepared_in_background(self, token: object, error: BaseException | None) -> None:
        if self.bench is None or not isinstance(token, tuple) or token[0] != self.bench.workload:
            return
        lane = self.bench.lane(token[1])
        if lane not in self.lanes or lane.state != "preparing":
            return
        if error is None:
            self._compiled.append(lane)
        else:
            self._settle(lane, explain(error))

    def recount(self) -> None:
        """Count every ready contender again, now."""
        if self.bench is not None:
            self.shop.profiler.forget()
            self._requests.clear()
            self.request_counts(self.ready)

    # ---- the bench -------------------------------------------------------------------------------------

    def _take_bench(self, workload: Workload) -> None:
        kept = self._inherited
        measure = self.start.plan.measure
        asked = (workload, measure.threads, measure.cache)
        if kept is None or (kept.workload, kept.threads, kept.cache) != asked:
            self._leave_inherited()
            self.bench = self.new_bench(workload)
        else:
            self.bench, self._inherited = kept, None
            self.bench.registry = self.registry
            for lane in self.lanes:
                self._keep_lane(lane)

    def _keep_lane(self, lane: Lane) -> None:
        """Report under this generation what is known of `lane`, or have it tried again."""
        lane.sampled = False
        lane.asked_counts = lane.counted is not None
        assert self.bench is not None
        if lane.own is not None and not (lane.is_ready and self.own.is_prepared(lane, self.bench)):
            lane.again()
            return
        if lane.id in self.start.excluded or lane.state != "ready":
            # What the background still prepares joins when it is done.
            if lane.state != "preparing" or not self.shop.background.running:
                lane.again()
            return
        self.report(lane)
        generation = self.start.generation
        if lane.accuracy is not None:
            self.shop.send(Checked(generation, self.index, lane.id, lane.accuracy))
        if lane.counted is not None:
            counted = msgspec.structs.replace(lane.counted, generation=generation, workload=self.index)
            self.shop.send(counted)

    def _leave_inherited(self) -> None:
        """The old workload's memory goes before the new one's comes."""
        if self._inherited is not None:
            self._inherited.close()
            self._inherited = None

    # ---- between rounds --------------------------------------------------------------------------------

    def _next_job(self) -> Job | None:
        """The most urgent thing to do beside sampling. Lanes that cannot run are settled on the way."""
        for lane in self._by_urgency():
            if lane.to_prepare and not lane.is_slow and self.admit(lane):
                return partial(self.prepare, lane)
        if self._compiled:
            # Prepared once more, with this bench's own tensors, from what is compiled already.
            return partial(self.prepare, self._compiled.pop())
        if not self.shop.background.running:
            for lane in self._by_urgency():
                if lane.to_prepare and self.admit(lane):
                    return partial(self._prepare_in_background, lane)
        return self._next_check()

    def _next_check(self) -> Job | None:
        bench = self.bench
        assert bench is not None
        age = bench.watch.now() - self._began
        ready = self.ready
        if age >= CHECKS_AFTER_S:
            for lane in ready:
                if not lane.inspected:
                    return partial(self.inspect, lane)
            if self.start.plan.measure.accuracy and ready:
                if not bench.reference_tried:
                    return lambda: bench.make_reference(accuracy.LIVE_FLOPS)
                for lane in ready:
                    if not lane.checked:
                        return partial(self.check, lane)
        if age >= COUNTS_AFTER_S and self.start.plan.measure.counts:
            uncounted = [lane for lane in ready if not lane.asked_counts]
            if uncounted:
                return lambda: self.request_counts(uncounted)
        return None

    def _by_urgency(self) -> list[Lane]:
        """The baseline, native, the others in the plan's order."""
        return sorted(self.lanes, key=lambda lane: (lane is not self.baseline, lane.id != "native"))

    def _prepare_in_background(self, lane: Lane) -> None:
        bench = self.bench
        assert bench is not None
        assert lane.implementation is not None
        prepare, workload, seed = lane.implementation.prepare, bench.workload, bench.seed

        def work() -> None:
            # Tensors of its own: a training step would mix its gradients into those being sampled.
            inputs = make_inputs(workload, seed)
            call = inputs.call(prepare(workload, inputs))
            call()
            call()

        lane.state, lane.to_prepare = "preparing", False
        self.report(lane)
        self.announce(lane, "prepare")
        self.shop.background.start((workload, lane.id), work, bench.state)

    def _rest(self) -> float:
        """Seconds until the next round. Commands and events are answered meanwhile."""
        if not self.ready:
            self.flush()
            if not any(lane.state in ("waiting", "preparing") for lane in self.lanes):
                self._say_no_contender()
            return FOREVER
        disturbed = self.shop.disturbance() != ""
        if self.round < FIRST_ROUNDS or not (disturbed or self._undisturbed_rounds >= FULL_SPEED_ROUNDS):
            return 0.0
        assert self.bench is not None
        every = DISTURBED_ROUND_EVERY_S if disturbed else ROUND_EVERY_S
        return max(0.0, self._round_began + every - self.bench.watch.now())

    def _say_no_contender(self) -> None:
        if not self._said_no_contender:
            self._said_no_contender = True
            self.shop.send(WorkloadDone(self.start.generation, self.index, "no_contender"))
