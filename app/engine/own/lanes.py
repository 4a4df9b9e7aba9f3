"""The lanes of own implementations in a run: their guests asked, their answers turned into states."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Generator
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from app.core.own import OwnFile
from app.engine import accuracy
from app.engine.failures import Failure
from app.engine.implementations import Implementation, Registry
from app.engine.own.guest_link import GuestLink
from app.engine.own.guests import Guests
from app.engine.own.protocol import (
    Check,
    Checked,
    Prepare,
    Prepared,
    Refused,
    Reply,
    Take,
    Timed,
    TimedBlock,
)
from app.engine.own.rest import wait_for_rest
from app.engine.sampling import Block

if TYPE_CHECKING:
    from app.engine.lanes import Bench, Lane

SLICE_S = 0.05
"""How long the worker waits at most before it looks at its commands again."""

GIVEN_UP = "its process had to be ended several times in this session"
AGAIN = "switch it off and on again to try once more"


class Beside(NamedTuple):
    """The baseline that runs in a guest too ("" for none), and the built extension where it needs that."""

    implementation: str
    library: str | None = None
    library_key: str = ""


def entries_for(files: tuple[OwnFile, ...]) -> Registry:
    """Registry entries that say whose code it is; nothing of it ever runs in this process."""
    return {file.id: Implementation(file.id, _elsewhere, own=file) for file in files}


class OwnLanes:
    """What a run asks of its guests. `settled` is told each lane whose preparing or check has ended.

    `baseline` says what runs beside each.
    """

    def __init__(
        self,
        guests: Guests,
        baseline: Callable[[], Beside],
        next_id: Callable[[], int],
        settled: Callable[[Lane, Failure | None], None],
        checked: Callable[[Lane], None],
        notice: Callable[[str], None],
    ) -> None:
        self._guests = guests
        self._baseline = baseline
        self._next_id = next_id
        self._settled = settled
        self._checked = checked
        self._notice = notice
        self._waiting: dict[str, tuple[Lane, Bench, Path | None]] = {}

    def is_waiting_for(self, lane: Lane) -> bool:
        """Whether `lane`'s guest prepares or checks: then it cannot be sampled."""
        return lane.id in self._waiting

    @property
    def are_waiting(self) -> bool:
        return bool(self._waiting)

    def is_prepared(self, lane: Lane, bench: Bench) -> bool:
        """Whether `lane`'s guest has this very workload ready, beside this baseline."""
        link = self._guests.existing(lane.id)
        asked = link.prepared if link is not None and link.current is None else None
        return asked is not None and asked == self._request(lane, bench, asked.id)

    def obstacle(self, lane: Lane) -> Failure | None:
        if self._guests.is_given_up(lane.id):
            return Failure("failed", GIVEN_UP, AGAIN)
        return None

    def prepare(self, lane: Lane, bench: Bench) -> None:
        """Begin; `look` collects the answer."""
        assert lane.own is not None
        try:
            link = self._guests.link(lane.own)
            # What an earlier run still had it do is of no use to this one.
            link.abandon()
            link = self._guests.link(lane.own)
        except OSError as error:
            self._settled(lane, Failure("failed", f"its process does not start: {error.strerror or error}"))
            return
        lane.state, lane.to_prepare = "preparing", False
        self._waiting[lane.id] = (lane, bench, None)
        link.ask(self._request(lane, bench, self._next_id()))

    def check(self, lane: Lane, bench: Bench) -> None:
        """Begin to compute what accuracy is judged by; the judging is done here, not by the guest."""
        lane.checked = True
        link = self._guests.existing(lane.id)
        if bench.reference is None or link is None:
            return
        # The guest writes numbers into a file: too many for a line.
        folder = Path(tempfile.mkdtemp(prefix="attnscope-"))
        path = folder / "tensors"
        self._waiting[lane.id] = (lane, bench, path)
        link.ask(Check(self._next_id(), bench.reference.inputs.workload.batch, str(path)))

    def look(self) -> None:
        """Collect what has come, without waiting."""
        self._collect(0.0)

    def wait(self) -> Generator[float, None, None]:
        """Wait until nothing is prepared or checked any more; commands are answered meanwhile."""
        while self._waiting:
            self._collect(SLICE_S)
            yield 0.0

    def sample(self, lane: Lane) -> Generator[float, None, tuple[Block, Block | None] | Failure]:
        """Let the guest time a block, and one of the baseline beside it. Nothing else of the worker's runs."""
        link = self._guests.existing(lane.id)
        if link is None:
            return self._failure(lane, Refused(0, "failed", "its process is gone"))
        wait_for_rest()
        link.ask(Take(self._next_id()), expected_s=lane.turn_s)
        try:
            while True:
                reply = link.take(SLICE_S)
                if isinstance(reply, Timed):
                    return _block(reply.own), None if reply.beside is None else _block(reply.beside)
                if reply is not None:
                    return self._failure(lane, reply)
                yield 0.0
        finally:
            # A run that ends in the middle of a turn must not leave it running.
            link.abandon()

    def close(self) -> None:
        """The run ends: nobody waits any more."""
        for lane, _, path in self._waiting.values():
            link = self._guests.existing(lane.id)
            if link is not None:
                link.abandon()
            _remove(path)
            lane.again()
        self._waiting.clear()

    # ---- inside ----------------------------------------------------------------------------------------

    def _collect(self, timeout_s: float) -> None:
        for name in list(self._waiting):
            lane, bench, path = self._waiting[name]
            link = self._guests.existing(name)
            reply: Reply | None = Refused(0, "failed", "its process is gone")
            if link is not None and link.current is not None:
                reply = link.take(timeout_s)
            if reply is None:
                continue
            del self._waiting[name]
            if path is None:
                self._prepared(lane, link, reply)
            else:
                self._judge(lane, bench, path, reply)

    def _prepared(self, lane: Lane, link: GuestLink | None, reply: Reply) -> None:
        if not isinstance(reply, Prepared):
            self._settled(lane, self._failure(lane, reply))
            return
        lane.turn_s = reply.seconds
        lane.inspected = True
        lane.settle("ready")
        if reply.denormal_in:
            self._notice(
                f"{_title(lane)} computes with denormal numbers ({reply.denormal_in}), "
                "which a CPU may take 100 times as long for"
            )
        if reply.without_baseline:
            self._notice(
                f"{_title(lane)} has no speed-up: the baseline does not run beside it: {reply.without_baseline}"
            )
        self._settled(lane, None)

    def _request(self, lane: Lane, bench: Bench, number: int) -> Prepare:
        assert lane.own is not None
        beside = self._baseline()
        return Prepare(
            id=number,
            workload=bench.workload,
            own=lane.own,
            baseline=beside.implementation,
            library=beside.library,
            library_key=beside.library_key,
            seed=bench.seed,
            threads=bench.state.threads,
        )

    def _judge(self, lane: Lane, bench: Bench, path: Path, reply: Reply) -> None:
        try:
            if not isinstance(reply, Checked):
                self._settled(lane, self._failure(lane, reply))
                return
            if bench.reference is None:
                return
            measured = read_tensors(path, reply.tensors)
            lane.accuracy = accuracy.compare(measured, bench.reference)
            self._checked(lane)
        except (OSError, ValueError) as error:
            self._settled(lane, Failure("failed", f"its tensors cannot be read: {error}"))
        finally:
            _remove(path)

    def _failure(self, lane: Lane, reply: Reply) -> Failure:
        if isinstance(reply, Refused):
            if reply.state == "failed":
                self._guests.lost(lane.id)
            return Failure(reply.state, reply.reason, reply.remedy)
        self._guests.lost(lane.id)
        return Failure("failed", "its process gave another answer than was asked for")


def read_tensors(path: Path, tensors: list[tuple[str, list[int]]]) -> dict[str, torch.Tensor]:
    """Tensors [float64] that a guest wrote, by name. Raises ValueError where the file is too short."""
    found = {}
    with path.open("rb") as file:
        for name, shape in tensors:
            values = np.fromfile(file, dtype=np.float64, count=prod(shape))
            if values.size != prod(shape):
                raise ValueError(f"{name} is not whole")
            found[name] = torch.from_numpy(values).reshape(shape)
    return found


def _title(lane: Lane) -> str:
    return lane.own.title if lane.own is not None else lane.id


def _block(block: TimedBlock) -> Block:
    return Block(block.calls, block.seconds, block.at_s, block.device_seconds)


def _remove(path: Path | None) -> None:
    if path is not None:
        path.unlink(missing_ok=True)
        path.parent.rmdir()


def _elsewhere(workload: object, inputs: object) -> Callable[[], torch.Tensor]:
    raise AssertionError("a user's code runs in its own process only")
