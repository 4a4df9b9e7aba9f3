"""What live and headless runs of a plan have in common: lanes reported, rounds sampled, results sent."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Literal

from app.core.catalog import BESIDE, TWIN
from app.core.messages import (
    Active,
    Checked,
    ContenderState,
    Counted,
    CountFailed,
    Sample,
    Samples,
    Start,
)
from app.core.workload import Workload
from app.engine.failures import Failure
from app.engine.implementations import Registry
from app.engine.lanes import Bench, Lane
from app.engine.own.lanes import Beside, OwnLanes, entries_for
from app.engine.profiler_protocol import CountPassed, CountRefused, CountRequest
from app.engine.sampling import Block, round_order
from app.engine.shop import Shop

BATCH_S = 0.08
"""Samples are sent together this often: often enough for the eye, seldom enough to cost nothing."""

NOT_BUILT = "the extension is not built yet"
BEING_BUILT = "the extension is being built"

Step = Literal["prepare", "first call", "accuracy", "sample", "count"]
Units = Generator[float, None, None]
"""A run as small units of work. After each it yields how many seconds it has nothing to do: 0 for none."""


class DeviceLostError(Exception):
    """The device's context is of no use any more: a new worker is needed."""


class Run:
    """A run of one `Start`. `units` is driven by the worker's main thread, which looks at commands between
    two units; the other methods are called by it in between.
    """

    def __init__(self, start: Start, shop: Shop) -> None:
        self.start = start
        self.shop = shop
        self.index = 0
        self.bench: Bench | None = None
        self.round = 0
        self._batch: list[Sample] = []
        self._batch_since = 0.0
        self._is_cold = False
        """Whether another process ran since the last block here."""
        self._requests: dict[int, tuple[int, str]] = {}
        self.own = OwnLanes(
            shop.guests,
            self._beside,
            shop.request_id,
            self._own_settled,
            self._tell_accuracy,
            lambda text: shop.notice(text, "warning"),
        )

    # ---- to be driven ----------------------------------------------------------------------------------

    def units(self) -> Units:
        raise NotImplementedError

    def extension_changed(self) -> None:
        """The build went on, ended or failed."""

    def prepared_in_background(self, token: object, error: BaseException | None) -> None:
        """A preparation in the background ended."""

    def counted(self, reply: CountPassed | CountRefused) -> None:
        """The profiler answered one of this run's requests; those of others are ignored."""
        if reply.id not in self._requests:
            return
        index, name = self._requests.pop(reply.id)
        generation = self.start.generation
        if isinstance(reply, CountRefused):
            self.shop.send(CountFailed(generation, index, name, reply.reason))
            return
        message = Counted(
            generation,
            index,
            name,
            reply.counts,
            reply.memory,
            reply.pid,
            reply.profiled_seconds,
            reply.trace_gz,
        )
        if self.bench is not None and index == self.index:
            self.bench.lane(name).counted = message
        self.shop.send(message)

    def close(self) -> None:
        """Send what is left. The bench stays, for whoever takes it over."""
        self.own.close()
        self.flush()

    # ---- lanes -----------------------------------------------------------------------------------------

    @property
    def lanes(self) -> list[Lane]:
        """The plan's contenders in its order."""
        assert self.bench is not None
        return [self.bench.lane(name) for name in self.start.plan.implementations]

    @property
    def baseline(self) -> Lane | None:
        name = self.start.plan.baseline
        if self.bench is None or name not in self.start.plan.implementations:
            return None
        return self.bench.lane(name)

    @property
    def ready(self) -> list[Lane]:
        return [lane for lane in self.lanes if lane.is_ready]

    @property
    def counts_pending(self) -> bool:
        return bool(self._requests)

    @property
    def registry(self) -> Registry:
        """The contenders that ship, and the plan's own."""
        return self.shop.registry | entries_for(self.start.plan.own)

    def new_bench(self, workload: Workload) -> Bench:
        """A bench for `workload`, whose device is resolved."""
        plan = self.start.plan
        watch = self.shop.stopwatch(workload.device)
        return Bench(
            workload,
            self.registry,
            watch,
            lambda text: self.shop.notice(text, "warning"),
            plan.measure.threads,
            self.shop.seed,
            plan.measure.cache,
        )

    def report(self, lane: Lane) -> None:
        self.shop.send(
            ContenderState(
                self.start.generation, self.index, lane.id, lane.state, lane.reason, lane.remedy, lane.path
            )
        )

    def announce(self, lane: Lane, step: Step) -> None:
        """Say what is about to be done. What was sampled before is sent first, so that it survives."""
        self.flush()
        self.shop.send(Active(self.start.generation, self.index, lane.id, step))

    def open_bench(self) -> bool:
        """Make the inputs; where that fails, every lane is left with the reason."""
        assert self.bench is not None
        failure = self.bench.open()
        if failure is None:
            return True
        for lane in self.lanes:
            self._settle(lane, failure)
        return False

    def refuse_all(self, reason: str, remedy: str = "") -> None:
        for name in self.start.plan.implementations:
            self.shop.send(
                ContenderState(self.start.generation, self.index, name, "unavailable", reason, remedy)
            )

    def admit(self, lane: Lane) -> bool:
        """Whether `lane` may be prepared now; if not, its state says why and was reported."""
        assert self.bench is not None
        excluded = self.start.excluded.get(lane.id)
        failure: Failure | None = None
        if excluded is not None:
            failure = Failure("failed", excluded)
        elif lane.needs_extension and self.shop.extension.state != "loaded":
            self._wait_for_extension(lane)
            return False
        else:
            failure = self.bench.obstacle(lane) or self.own.obstacle(lane)
        if failure is None:
            return True
        self._settle(lane, failure)
        return False

    def prepare(self, lane: Lane) -> None:
        """Prepare `lane` here and now, and report how it ended; one in a guest settles later."""
        assert self.bench is not None
        if lane.own is not None:
            self.own.prepare(lane, self.bench)
            if lane.state == "preparing":
                self.report(lane)
            return
        lane.state = "preparing"
        self.report(lane)
        failure = self.bench.prepare(lane, lambda step: self.announce(lane, step))  # type: ignore[arg-type]
        if failure is not None:
            self._settle(lane, failure)
            return
        if lane is self.baseline:
            self.bench.twin_of(lane)
        self.report(lane)

    def inspect(self, lane: Lane) -> None:
        assert self.bench is not None
        self.announce(lane, "accuracy")
        failure = self.bench.inspect(lane)
        if failure is not None:
            self._settle(lane, failure)
        elif lane.path:
            self.report(lane)

    def check(self, lane: Lane) -> None:
        assert self.bench is not None
        if lane.own is not None:
            self.own.check(lane, self.bench)
            return
        self.announce(lane, "accuracy")
        failure = self.bench.check(lane)
        if failure is not None:
            self._settle(lane, failure)
        else:
            self._tell_accuracy(lane)

    def _tell_accuracy(self, lane: Lane) -> None:
        if lane.accuracy is not None:
            self.shop.send(Checked(self.start.generation, self.index, lane.id, lane.accuracy))

    def _beside(self) -> Beside:
        """The baseline as it runs in the guests: none while it cannot."""
        baseline, extension = self.baseline, self.shop.extension
        if baseline is None or baseline.implementation is None or baseline.own is not None:
            return Beside("")
        if not baseline.needs_extension:
            return Beside(baseline.id)
        if extension.state != "loaded":
            return Beside("")
        return Beside(baseline.id, extension.library, extension.key)

    def _own_settled(self, lane: Lane, failure: Failure | None) -> None:
        if failure is None:
            self.report(lane)
        else:
            self._settle(lane, failure)

    def request_counts(self, lanes: Sequence[Lane]) -> None:
        assert self.bench is not None
        for lane in lanes:
            lane.asked_counts = True
            request = CountRequest(
                id=self.shop.request_id(),
                workload=self.bench.workload,
                implementation=lane.id,
                library=self.shop.extension.library if lane.needs_extension else None,
                library_key=self.shop.extension.key if lane.needs_extension else "",
                own=lane.own,
                seed=self.bench.seed,
                threads=self.bench.state.threads,
            )
            self._requests[request.id] = (self.index, lane.id)
            self.shop.profiler.request(request)

    # ---- rounds ----------------------------------------------------------------------------------------

    def run_round(self) -> Units:
        """One block of every ready contender, and of the baseline's twin; a unit each.

        Those in guests come after the others: between two processes lies a wait and a run-up.
        """
        assert self.bench is not None
        here = [lane for lane in self.ready if lane.own is None]
        elsewhere = [
            lane for lane in self.ready if lane.own is not None and not self.own.is_waiting_for(lane)
        ]
        if self.baseline is not None and self.baseline.is_ready:
            here.append(self.bench.twin_of(self.baseline))
        number = self.round
        self.round += 1
        lanes = [here[place] for place in round_order(len(here), number)]
        if lanes and self._is_cold:
            self._is_cold = False
            failure = self.bench.run_up(lanes[-1])
            if failure is not None:
                self._settle(lanes[-1], failure)
            yield 0.0
        lanes += [elsewhere[place] for place in round_order(len(elsewhere), number)]
        for lane in lanes:
            if lane.is_ready:
                yield from self._sample(lane, number)
                yield 0.0

    def took(self, name: str, sample: Sample) -> None:
        """A sample was taken of a contender, or of a hidden one: for runs that decide by them."""

    @property
    def _names(self) -> tuple[str, ...]:
        """What a sample's index stands for."""
        plan = self.start.plan
        return (*plan.implementations, TWIN, *(f"{BESIDE}{file.id}" for file in plan.own))

    def flush(self) -> None:
        if not self._batch:
            return
        batch = tuple(self._batch)
        self.shop.send(Samples(self.start.generation, self.index, self.shop.pid, self._names, batch))
        self._batch.clear()

    def _sample(self, lane: Lane, number: int) -> Units:
        assert self.bench is not None
        # The worker cannot die of what runs elsewhere.
        if self.start.careful and lane.own is None:
            self.announce(lane if lane.id != TWIN or self.baseline is None else self.baseline, "sample")
        before = self.shop.disturbance()
        beside: Block | None = None
        if lane.own is None:
            block = self.bench.sample(lane)
        else:
            self._is_cold = True
            taken = yield from self.own.sample(lane)
            block, beside = taken if isinstance(taken, tuple) else (taken, None)
        if isinstance(block, Failure):
            if lane.id == TWIN and self.baseline is not None:
                self._settle(self.baseline, block)
            else:
                self._settle(lane, block)
            return
        disturbed = before or self.shop.disturbance()
        if beside is not None:
            self._keep(lane, f"{BESIDE}{lane.id}", number, beside, disturbed)
        self._keep(lane, lane.id, number, block, disturbed)

    def _keep(self, lane: Lane, name: str, number: int, block: Block, disturbed: str) -> None:
        sample = Sample(
            round=number,
            implementation=self._names.index(name),
            at_s=block.at_s,
            seconds=block.seconds,
            calls=block.calls,
            disturbed=disturbed,
            device_seconds=block.device_seconds,
        )
        assert self.bench is not None
        now = self.bench.watch.now()
        if not self._batch:
            self._batch_since = now
        self._batch.append(sample)
        self.took(name, sample)
        # The first is waited for: somebody turned a knob.
        if not lane.sampled or now - self._batch_since >= BATCH_S:
            lane.sampled = True
            self.flush()

    def _settle(self, lane: Lane, failure: Failure) -> None:
        lane.fail(failure)
        if lane is self.baseline and self.bench is not None:
            self.bench.twin_of(lane)
        self.flush()
        self.report(lane)
        if failure.device_lost:
            raise DeviceLostError(failure.reason)

    def _wait_for_extension(self, lane: Lane) -> None:
        extension = self.shop.extension
        if extension.state == "failed":
            lane.settle("unavailable", extension.reason, extension.remedy)
        else:
            lane.settle("waiting", BEING_BUILT if extension.state == "building" else NOT_BUILT)
        self.report(lane)
