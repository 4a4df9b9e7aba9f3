"""What the window or the command line and the worker say to each other.

Newline-delimited JSON of tagged structs. Data, never code: the worker may be on another machine.
Every message about a run carries the generation of the `Start` that caused it; older ones are dropped.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

import msgspec

from app.core.environment import Environment
from app.core.measurements import Accuracy, Counts, Memory, Standing, State, StoppedBecause
from app.core.peaks import Peaks
from app.core.plan import Plan

PROTOCOL = 1

T = TypeVar("T")


class _Tagged(msgspec.Struct, frozen=True, tag_field="type", tag=True, omit_defaults=True):
    pass


# ---- to the worker -------------------------------------------------------------------------------------


class Start(_Tagged, frozen=True):
    """Measure this plan. `live` measures its first workload until something else is said.

    `careful` announces each contender before every block, so that a death can be blamed on one.
    `excluded` maps contenders that must not run again to the reason. `anew` is for the recording, and so for
    who replays it: what was sampled of these workloads before is forgotten.
    """

    generation: int
    plan: Plan
    live: bool = False
    careful: bool = False
    excluded: dict[str, str] = {}
    first_workload: Annotated[int, msgspec.Meta(ge=0)] = 0
    anew: bool = False


class Pause(_Tagged, frozen=True):
    pass


class Resume(_Tagged, frozen=True):
    pass


class Profile(_Tagged, frozen=True):
    """Count the current workload's calls again, now."""


class Build(_Tagged, frozen=True):
    """Build the extension, or load it from the cache. `clean` compiles even if it is cached."""

    clean: bool = False


class CancelBuild(_Tagged, frozen=True):
    pass


class MeasurePeaks(_Tagged, frozen=True):
    """Measure the compute and memory peaks of a device now, or as soon as nothing disturbs.

    `device` is made out ("cpu" or "cuda:N"). `threads`: 0 leaves torch's own choice. Answered by
    `PeaksMeasured` or `PeaksRefused`. What is known already is answered at once, unless `again`.
    """

    device: str
    dtype: str
    threads: int = 0
    again: bool = False


class Shutdown(_Tagged, frozen=True):
    pass


Command = Start | Pause | Resume | Profile | Build | CancelBuild | MeasurePeaks | Shutdown

# ---- from the worker -----------------------------------------------------------------------------------


class Hello(_Tagged, frozen=True):
    """The worker is up; torch is still loading."""

    pid: int
    protocol: int
    at_s: float


class Ready(_Tagged, frozen=True):
    """torch is loaded: what there is to run on."""

    environment: Environment
    at_s: float


class Fatal(_Tagged, frozen=True):
    """The worker cannot go on (torch does not import, the protocol is another). Exit code 3."""

    reason: str
    remedy: str = ""

    @property
    def sentence(self) -> str:
        return f"{self.reason.rstrip('.')}; {self.remedy}" if self.remedy else self.reason


class Active(_Tagged, frozen=True):
    """What is about to be done, said before it is: if the worker dies, this is what it died of."""

    generation: int
    workload: int
    implementation: str
    step: Literal["prepare", "first call", "accuracy", "sample", "count"]


class ContenderState(_Tagged, frozen=True):
    generation: int
    workload: int
    implementation: str
    state: State
    reason: str = ""
    remedy: str = ""
    path: str = ""
    """Which way the implementation takes where it has several, such as `flash` for SDPA."""


class Sample(msgspec.Struct, frozen=True, array_like=True):
    """One block of `calls` calls: `seconds` per call, ended at `at_s` (seconds since 1970).

    `disturbed` is what else went on meanwhile ("" for nothing); such a sample enters no speed-up.
    """

    round: int
    implementation: int
    at_s: float
    seconds: float
    calls: int
    disturbed: str = ""
    device_seconds: float | None = None


class Samples(_Tagged, frozen=True):
    """Samples of one workload in the order taken; `implementations` resolves their index."""

    generation: int
    workload: int
    pid: int
    implementations: tuple[str, ...]
    samples: tuple[Sample, ...]


class Counted(_Tagged, frozen=True):
    """Counts from a profiled pass in process `pid`, and its trace as gzipped Chrome JSON.

    `profiled_seconds`: median wall time of a call under the profiler, of several where time allowed.
    """

    generation: int
    workload: int
    implementation: str
    counts: Counts
    memory: Memory
    pid: int
    profiled_seconds: float | None = None
    trace_gz: bytes = b""


class CountFailed(_Tagged, frozen=True):
    generation: int
    workload: int
    implementation: str
    reason: str


class Checked(_Tagged, frozen=True):
    generation: int
    workload: int
    implementation: str
    accuracy: Accuracy


class WorkloadDone(_Tagged, frozen=True):
    generation: int
    workload: int
    stopped_because: StoppedBecause


class Progress(_Tagged, frozen=True):
    """Where measuring a workload stands, at every look at the intervals."""

    generation: int
    workload: int
    standing: Standing


class RunDone(_Tagged, frozen=True):
    generation: int


class Notice(_Tagged, frozen=True):
    """Something a person should know: a child restarted, a sample discarded."""

    level: Literal["info", "warning", "error"]
    text: str
    at_s: float


class PeaksStarted(_Tagged, frozen=True):
    """The peaks of a device are being measured: nothing is sampled for about three seconds."""

    device: str
    dtype: str


class PeaksMeasured(_Tagged, frozen=True):
    peaks: Peaks


class PeaksRefused(_Tagged, frozen=True):
    """No peaks: why, as a sentence."""

    device: str
    dtype: str
    reason: str


class Telemetry(_Tagged, frozen=True):
    """Readings of the worker's machine, about once a second; null where the machine offers none.

    Loads are percentages of the whole machine: `cpu_percent` all, `others_percent` without the worker
    and its children. Clock in Hz, temperature in °C, battery as a fraction of full.
    """

    at_s: float
    cpu_percent: float | None = None
    others_percent: float | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    worker_bytes: int | None = None
    clock_hz: float | None = None
    temperature_c: float | None = None
    battery: float | None = None
    on_mains: bool | None = None
    gpu_percent: float | None = None
    gpu_temperature_c: float | None = None
    gpu_clock_hz: float | None = None
    gpu_throttled: str = ""


# ---- the build -----------------------------------------------------------------------------------------


class BuildKey(_Tagged, frozen=True):
    """The cache entry asked for: its key and the hash and text of each part of it."""

    key: str
    parts: dict[str, tuple[str, str]]
    changed: tuple[str, ...] = ()
    folder: str = ""


class BuildStep(_Tagged, frozen=True):
    step: Literal["check", "compile", "link", "load", "self-test"]
    state: Literal["started", "done", "cached", "failed"]
    seconds: float | None = None
    detail: str = ""


class BuildSource(_Tagged, frozen=True):
    source: str
    state: Literal["started", "done", "failed"]
    index: int
    total: int
    job: int
    started_s: float
    seconds: float | None = None


class BuildProgress(_Tagged, frozen=True):
    done: int
    total: int
    elapsed_s: float
    expected_s: float | None = None


class BuildWaiting(_Tagged, frozen=True):
    """Another process builds the same entry."""

    path: str
    pid: int | None
    elapsed_s: float


class BuildLog(_Tagged, frozen=True):
    at_s: float
    text: str
    level: Literal["info", "warning", "error"] = "info"


class BuildFinished(_Tagged, frozen=True):
    library: str
    key: str
    cached: bool
    seconds: float
    compiler: str = ""
    flags: tuple[str, ...] = ()
    jobs: int | None = None
    needs_new_worker: bool = False


class BuildFailed(_Tagged, frozen=True):
    kind: str
    sentence: str
    first_error: str = ""
    source: str = ""
    log_path: str = ""
    remedies: tuple[str, ...] = ()


BuildMessage = (
    BuildKey | BuildStep | BuildSource | BuildProgress | BuildWaiting | BuildLog | BuildFinished | BuildFailed
)

Message = (
    Hello
    | Ready
    | Fatal
    | Active
    | ContenderState
    | Samples
    | Counted
    | CountFailed
    | Checked
    | Progress
    | WorkloadDone
    | RunDone
    | Notice
    | PeaksStarted
    | PeaksMeasured
    | PeaksRefused
    | Telemetry
    | BuildKey
    | BuildStep
    | BuildSource
    | BuildProgress
    | BuildWaiting
    | BuildLog
    | BuildFinished
    | BuildFailed
)

MAX_LINE_BYTES = 64_000_000

_encoder = msgspec.json.Encoder()
_command_decoder: msgspec.json.Decoder[Command] = msgspec.json.Decoder(Command)
_message_decoder: msgspec.json.Decoder[Message] = msgspec.json.Decoder(Message)


class ProtocolError(ValueError):
    """A line that is no message of this protocol."""


def encode(message: Command | Message) -> bytes:
    """One line, newline included."""
    return encoded(message) + b"\n"


def encoded(value: Any) -> bytes:
    """`value` as JSON. What of a text is no text, as in a file name that is not UTF-8, becomes `?`."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        return _encoder.encode(_as_text(msgspec.to_builtins(value)))


def _as_text(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {_as_text(key): _as_text(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_as_text(item) for item in value]
    return value


def decode_command(line: bytes) -> Command:
    return _decode(_command_decoder, line)


def decode_message(line: bytes) -> Message:
    return _decode(_message_decoder, line)


def _decode(decoder: msgspec.json.Decoder[T], line: bytes) -> T:
    if len(line) > MAX_LINE_BYTES:
        raise ProtocolError(f"a line of {len(line):,} bytes; the longest allowed is {MAX_LINE_BYTES:,}")
    try:
        return decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        start = line[:80].decode("utf-8", "replace").strip()
        raise ProtocolError(f"not a message of protocol {PROTOCOL}: {error} in {start!r}") from None


class LineSplitter:
    """Cuts a byte stream into lines, whatever pieces it arrives in."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """The whole lines that `data` completes. A line without end in sight is a `ProtocolError`."""
        self._rest += data
        if b"\n" not in data:
            if len(self._rest) > MAX_LINE_BYTES:
                raise ProtocolError(f"a line of more than {MAX_LINE_BYTES:,} bytes")
            return []
        *lines, rest = bytes(self._rest).split(b"\n")
        self._rest = bytearray(rest)
        return [line for line in lines if line.strip()]
