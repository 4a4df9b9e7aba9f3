"""A workload on the bench: its inputs, and one lane per contender."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import psutil
import torch

from app.core.catalog import TWIN
from app.core.measurements import Accuracy, State
from app.core.messages import Counted
from app.core.own import OwnFile
from app.core.plan import Cache
from app.core.workload import Workload
from app.engine import accuracy, process_state, sampling
from app.engine.caches import CacheFlush
from app.engine.failures import Failure, explain
from app.engine.implementations import Implementation, Registry
from app.engine.inputs import Inputs, make_inputs
from app.engine.inspection import Inspection, has_denormals, inspect_call
from app.engine.sampling import Block, Call, Pace
from app.engine.stopwatch import Stopwatch

MEMORY_SHARE = 0.9
"""Of the free memory: above it a system with overcommit kills the process instead of refusing."""


@dataclass
class Lane:
    """Where one contender stands in one workload. `to_prepare`: it has not been tried yet."""

    id: str
    implementation: Implementation | None
    state: State = "waiting"
    reason: str = ""
    remedy: str = ""
    path: str = ""
    to_prepare: bool = True
    call: Call | None = None
    pace: Pace = field(default_factory=lambda: Pace(1, rehearse=False))
    turn_s: float = 0.0
    """What a turn of an own implementation in its guest should take."""
    sampled: bool = False
    inspected: bool = False
    checked: bool = False
    asked_counts: bool = False
    accuracy: Accuracy | None = None
    counted: Counted | None = None
    blamed: set[str] = field(default_factory=set)

    @property
    def is_ready(self) -> bool:
        return self.state == "ready"

    @property
    def own(self) -> OwnFile | None:
        """The user's file, for a lane that runs in a guest."""
        return None if self.implementation is None else self.implementation.own

    @property
    def needs_extension(self) -> bool:
        return self.implementation is not None and self.implementation.needs == "extension"

    @property
    def is_slow(self) -> bool:
        return self.implementation is not None and self.implementation.slow_to_prepare

    def settle(self, state: State, reason: str = "", remedy: str = "") -> None:
        """Leave the lane in `state`, to be tried no more; without its call unless it is ready."""
        self.state, self.reason, self.remedy = state, reason, remedy
        self.to_prepare = False
        if state != "ready":
            self.call = None
            self.path = ""

    def fail(self, failure: Failure) -> None:
        self.settle(failure.state, failure.reason, failure.remedy)

    def again(self) -> None:
        """Try it again as if new."""
        self.state, self.reason, self.remedy, self.to_prepare = "waiting", "", "", True


class Bench:
    """One workload (its device resolved) with inputs, and the lanes prepared for it.

    All work is done in the calling thread, which keeps the bench's process state (thread count, gradient
    mode) until `close`. `notice` is told what a person should know, once per lane and matter.
    """

    def __init__(
        self,
        workload: Workload,
        registry: Registry,
        watch: Stopwatch,
        notice: Callable[[str], None],
        threads: int = 0,
        seed: int = 0,
        cache: Cache = "warm",
    ) -> None:
        self.workload = workload
        self.watch = watch
        self.threads = threads
        """0: torch's own choice."""
        self.seed = seed
        self.cache = cache
        self.inputs: Inputs | None = None
        self._flush: CacheFlush | None = None
        self.reference: accuracy.Reference | None = None
        self.reference_tried = False
        self.registry = registry
        self._notice = notice
        self._lanes: dict[str, Lane] = {}
        self._outside = process_state.capture()
        self.state = replace(
            self._outside, threads=threads or self._outside.threads, gradients=workload.backward
        )
        process_state.restore(self.state)

    def lane(self, name: str) -> Lane:
        if name not in self._lanes:
            self._lanes[name] = Lane(name, self.registry.get(name))
        return self._lanes[name]

    def twin_of(self, baseline: Lane) -> Lane:
        """The baseline's call once more, as a lane of its own, for the noise floor."""
        twin = self.lane(TWIN)
        twin.call, twin.pace = baseline.call, baseline.pace
        twin.state = "ready" if baseline.is_ready else "waiting"
        return twin

    def open(self) -> Failure | None:
        """Make the inputs. A failure holds for every contender."""
        if self.inputs is not None:
            return None
        # At least: what is drawn in float32 first, and what a call makes, comes on top.
        missing = self._lacks(self.workload.working_set_bytes)
        if missing:
            return Failure("unavailable", missing, "a smaller batch, sequence or embedding")
        try:
            with self._steady(None):
                if self.cache == "cold":
                    self._flush = CacheFlush(self.workload.device)
                self.inputs = make_inputs(self.workload, self.seed)
        except Exception as error:
            return explain(error)
        return None

    def obstacle(self, lane: Lane) -> Failure | None:
        """Why `lane` cannot run this workload at all, before anything is tried."""
        implementation = lane.implementation
        if implementation is None:
            return Failure("unavailable", f"there is no implementation called {lane.id}")
        unsupported = implementation.unsupported(self.workload)
        if unsupported is not None:
            return Failure("unavailable", unsupported.reason, unsupported.remedy)
        missing = self._lacks(implementation.scratch_bytes(self.workload))
        if missing:
            return Failure("unavailable", missing, "a smaller batch, sequence or head count")
        return None

    def prepare(self, lane: Lane, before: Callable[[str], None]) -> Failure | None:
        """Prepare, call first, warm up and calibrate. `before` is told each step's name ahead of it."""
        assert self.inputs is not None
        assert lane.implementation is not None
        try:
            with self._steady(lane):
                before("prepare")
                forward = lane.implementation.prepare(self.workload, self.inputs)
                lane.call = self.inputs.call(forward)
                before("first call")
                output = lane.call()
                self.watch.synchronise()
                denormal = has_denormals(output)
                del output
                seconds = sampling.warm_up(lane.call, self.watch)
                lane.pace = sampling.COLD if self.cache == "cold" else sampling.pace_for(seconds)
        except (Exception, SystemExit) as error:
            return self._failed(lane, error)
        if denormal:
            self._tell_denormals(lane, "the output")
        lane.settle("ready")
        return None

    def sample(self, lane: Lane) -> Block | Failure:
        assert lane.call is not None
        try:
            with self._steady(lane):
                return sampling.time_block(lane.call, lane.pace, self.watch, self._flush)
        except (Exception, SystemExit) as error:
            return self._failed(lane, error)

    def run_up(self, lane: Lane) -> Failure | None:
        """Call `lane` for a while, untimed: another process ran before."""
        assert lane.call is not None
        try:
            with self._steady(lane):
                sampling.run_up(lane.call, self.watch)
        except (Exception, SystemExit) as error:
            return self._failed(lane, error)
        return None

    def inspect(self, lane: Lane) -> Failure | None:
        """Learn which way `lane` takes, and whether denormals slow it."""
        assert lane.implementation is not None
        assert lane.call is not None
        assert self.inputs is not None
        lane.inspected = True
        # A watched call of a compiled function would not run what was compiled.
        if lane.is_slow:
            return None
        tensors = (self.inputs.x, *self.inputs.parts.values())
        try:
            with self._steady(lane):
                seen: Inspection = inspect_call(lane.call, tensors)
        except (Exception, SystemExit) as error:
            return self._failed(lane, error)
        lane.path = lane.implementation.path(seen.operators)
        if seen.denormal_in:
            self._tell_denormals(lane, seen.denormal_in)
        return None

    def make_reference(self, max_flops: float) -> None:
        """The float64 values that accuracy is held against; a notice where the workload is too large."""
        assert self.inputs is not None
        self.reference_tried = True
        try:
            with self._steady(None):
                checked = accuracy.inputs_for_check(self.inputs, max_flops)
                if checked is None:
                    self._notice(
                        f"accuracy is not checked at {self.workload.label}: "
                        "its float64 reference would take too much memory or time"
                    )
                    return
                self.reference = accuracy.make_reference(checked, self.workload.batch, self.seed)
        except Exception as error:
            self._notice(f"accuracy is not checked: {explain(error).reason}")

    def check(self, lane: Lane) -> Failure | None:
        """Hold `lane` against the reference; `lane.accuracy` stays None where that is not possible."""
        assert lane.implementation is not None
        lane.checked = True
        if self.reference is None:
            return None
        if lane.is_slow and self.reference.inputs is not self.inputs:
            self._notice(f"accuracy of {lane.id} is not checked: it would have to be compiled once more")
            return None
        try:
            with self._steady(lane):
                measured = accuracy.run_once(lane.implementation.prepare, self.reference.inputs)
        except (Exception, SystemExit) as error:
            return self._failed(lane, error)
        lane.accuracy = accuracy.compare(measured, self.reference)
        return None

    def close(self) -> None:
        """Give the memory back, and the process its own state."""
        self._lanes.clear()
        self.inputs = self.reference = self._flush = None
        process_state.restore(self._outside)
        if self.workload.device.startswith("cuda"):
            torch.cuda.empty_cache()

    def _failed(self, lane: Lane, error: BaseException) -> Failure:
        failure = explain(error)
        if self.inputs is not None:
            self.inputs.clear_gradients()
        lane.fail(failure)
        # The traceback's frames hold the tensors that did not fit.
        error.__traceback__ = None
        if self.workload.device.startswith("cuda") and not failure.device_lost:
            torch.cuda.empty_cache()
        return failure

    def _lacks(self, needed: int) -> str:
        """A sentence if `needed` bytes are not free, else ""."""
        if self.workload.device.startswith("cuda"):
            free, _ = torch.cuda.mem_get_info(torch.device(self.workload.device))
        else:
            free = psutil.virtual_memory().available
        if needed <= MEMORY_SHARE * free:
            return ""
        return f"it needs at least {needed / 1e9:,.1f} GB of memory, and {free / 1e9:,.1f} GB are free"

    @contextmanager
    def _steady(self, lane: Lane | None) -> Iterator[None]:
        """The same process state before and after, and a notice if the contender changed it."""
        try:
            yield
        finally:
            for change in process_state.restore(self.state):
                self._tell(lane, f"changed {change}; it was put back")

    def _tell_denormals(self, lane: Lane, where: str) -> None:
        self._tell(
            lane, f"computes with denormal numbers ({where}), which a CPU may take 100 times as long for"
        )

    def _tell(self, lane: Lane | None, text: str) -> None:
        if lane is None or text in lane.blamed:
            return
        lane.blamed.add(text)
        self._notice(f"{lane.id} {text}")
