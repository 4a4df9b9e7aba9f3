"""A workload's roofline worked out of a recording: ceilings, every contender's points, formulas, words."""

from __future__ import annotations

import msgspec

from app.core import text
from app.core.catalog import contender, is_hidden
from app.core.evidence import kept
from app.core.peaks import Peaks, bandwidth, find, rate
from app.core.recording import Recording, WorkloadRecord
from app.core.statistics import summarise
from app.core.work import (
    OVERHEAD_BOUND,
    PHASES,
    Phase,
    Point,
    flops_of,
    is_decode,
    phase_of,
    place,
    work_of,
)
from app.core.workload import DTYPE_BYTES, Workload


class Formula(msgspec.Struct, frozen=True):
    """A quantity, its formula, and the formula with this workload's numbers."""

    title: str
    formula: str
    numbers: str


class Roofline(msgspec.Struct, frozen=True):
    """`phases`: those that any point has, in order. `missing`: what could be measured as well, and how.
    `remarks`: how to read it here. Without `peaks` there are no points."""

    workload: Workload
    peaks: Peaks | None
    points: tuple[Point, ...]
    phases: tuple[Phase, ...]
    formulas: tuple[Formula, ...]
    remarks: tuple[str, ...]
    missing: str = ""

    def point(self, implementation: str, phase: Phase) -> Point | None:
        wanted = (implementation, phase)
        return next((p for p in self.points if (p.implementation, p.work.phase) == wanted), None)

    @property
    def implementations(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(point.implementation for point in self.points))


def roofline_of(
    recording: Recording, record: WorkloadRecord, implementations: tuple[str, ...] | None = None
) -> Roofline:
    """The roofline of `record`'s shape: forward, training step and decode from whichever of them the recording
    has. The backward pass alone is the step less the forward pass, where both were measured."""
    environment = recording.environment
    workload = record.workload
    peaks = (
        None
        if environment is None
        else find(environment.peaks, workload.device, workload.dtype, environment.threads)
    )
    medians = {
        mode: _medians(sibling)
        for mode in ("forward", "forward_backward", "decode")
        if (sibling := _sibling(recording, record, mode)) is not None
    }
    names = [
        name
        for name in dict.fromkeys(name for found in medians.values() for name in found)
        if implementations is None or name.partition("@")[0] in implementations
    ]
    if implementations is not None:
        names.sort(key=lambda n: implementations.index(n.partition("@")[0]))
    points: list[Point] = []
    for name in names if peaks is not None else ():
        assert peaks is not None
        for phase, seconds in _seconds(name, medians).items():
            points.append(place(name, work_of(workload, name, phase), seconds, peaks))
    phases = tuple(phase for phase in PHASES if any(p.work.phase == phase for p in points))
    return Roofline(
        workload=workload,
        peaks=peaks,
        points=tuple(points),
        phases=phases,
        formulas=formulas_of(workload, peaks, points),
        remarks=remarks_of(recording, workload, peaks, points),
        missing=_missing(medians, workload),
    )


def _sibling(recording: Recording, record: WorkloadRecord, mode: str) -> WorkloadRecord | None:
    """The record of the same shape in another mode, caches alike."""
    ours = msgspec.structs.asdict(record.workload)
    for other in recording.records:
        theirs = msgspec.structs.asdict(other.workload)
        if (
            theirs["mode"] == mode
            and other.cache == record.cache
            and {**theirs, "mode": ours["mode"]} == ours
        ):
            return other
    return None


def _medians(record: WorkloadRecord) -> dict[str, float]:
    found = {}
    for name, series in record.series.items():
        if is_hidden(name):
            continue
        summary = summarise(series.seconds[kept(series, record.strains)[0]])
        if summary is not None:
            found[name] = summary.median_s
    return found


def _seconds(name: str, medians: dict[str, dict[str, float]]) -> dict[Phase, float]:
    """Seconds per call of each phase that is known of a contender."""
    forward = medians.get("forward", {}).get(name)
    step = medians.get("forward_backward", {}).get(name)
    decode = medians.get("decode", {}).get(name)
    found: dict[Phase, float] = {}
    if forward is not None:
        found["forward"] = forward
    if step is not None:
        # A step that took no longer than its forward pass was measured in another state of the machine.
        if forward is not None and step > forward:
            found["backward"] = step - forward
        else:
            found["step"] = step
    if decode is not None:
        found["decode"] = decode
    return found


def _missing(medians: dict[str, dict[str, float]], workload: Workload) -> str:
    has_forward, has_step = bool(medians.get("forward")), bool(medians.get("forward_backward"))
    if is_decode(workload):
        return ""
    if has_forward and not has_step:
        return "Measure forward + backward of this shape as well to see the backward pass."
    if has_step and not has_forward:
        return "Measure forward of this shape as well to tell the backward pass from the step."
    return ""


def formulas_of(workload: Workload, peaks: Peaks | None, points: list[Point]) -> tuple[Formula, ...]:
    """Arithmetic, traffic and roof, as formulas and with this workload's numbers."""
    causal = workload.causal
    found = []
    if is_decode(workload):
        count = flops_of(workload, "decode")
        projections = 8 * workload.batch * workload.embed_dim**2
        found.append(
            Formula("FLOP decode", "8·B·E² + 4·B·(T+1)·E", _sum(projections, count - projections, count))
        )
    else:
        count = flops_of(workload, "forward")
        projections = 8 * workload.batch * workload.seq_len * workload.embed_dim**2
        attention = "2·B·S·(S+1)·E" if causal else "4·B·S²·E"
        found.append(
            Formula("FLOP forward", f"8·B·S·E² + {attention}", _sum(projections, count - projections, count))
        )
        found.append(Formula("FLOP backward", "2 × forward", f"= {short(flops_of(workload, 'backward'))}"))
    width = DTYPE_BYTES[workload.dtype]
    seen: set[str] = set()
    phases = [point.work.phase for point in points]
    shown = phase_of(workload) if phase_of(workload) in phases else next(iter(phases), None)
    for point in sorted(points, key=lambda p: -p.work.intensity):
        if point.work.phase != shown:
            continue
        formula = point.work.traffic.formula(point.work.phase == "decode")
        # Contenders that move the same need one line.
        if formula in seen:
            continue
        seen.add(formula)
        name = contender(point.implementation.partition("@")[0]).short
        of = PHASES[point.work.phase]
        found.append(
            Formula(
                f"Bytes {name}",
                f"{width} × ({formula})",
                f"{of}: {short(point.work.bytes)}B, {intensity(point.work.intensity)} FLOP per byte",
            )
        )
    if peaks is not None:
        roof = f"min({rate(peaks.compute)}, {bandwidth(peaks.memory)} × intensity)"
        letter = "T" if is_decode(workload) else "S"
        sizes = (("B", workload.batch), (letter, workload.seq_len), ("E", workload.embed_dim))
        shape = " · ".join(
            f"{name} {text.number(size)}" for name, size in (*sizes, ("H", workload.num_heads))
        )
        found.append(Formula("Roof", roof, shape))
    return tuple(found)


def remarks_of(
    recording: Recording, workload: Workload, peaks: Peaks | None, points: list[Point]
) -> tuple[str, ...]:
    """What a reader should know of these points before believing them."""
    if peaks is None:
        return ()
    said = []
    above = [point for point in points if point.share > 1]
    device = next(
        (
            d
            for d in (recording.environment.devices if recording.environment else ())
            if d.id == workload.device
        ),
        None,
    )
    cache = device.cache_bytes if device is not None else None
    fits = cache is not None and workload.working_set_bytes < cache
    if above and all(point.memory_bound for point in above) and fits:
        said.append("Above the memory roof: what one operator wrote, the next one found in the cache.")
    elif above:
        said.append("Above the roof: the ceilings were measured while the machine was busier. Measure again.")
    if fits and cache is not None:
        said.append(
            f"{text.size(workload.working_set_bytes)} of input, output and parameters fit into the "
            f"{text.size(cache)} of cache: points may pass memory by."
        )
    low = [point for point in points if point.share < OVERHEAD_BOUND]
    if low:
        names = dict.fromkeys(contender(p.implementation.partition("@")[0]).short for p in low)
        cause = "launches and Python" if workload.device.startswith("cuda") else "calls and Python"
        said.append(
            f"Far below the roof: {', '.join(names)}. As a rule {cause} take the time there, and not arithmetic "
            "or memory."
        )
    if any(point.work.is_least for point in points):
        said.append("Your own implementation's steps are not known: its bytes are the least possible.")
    if workload.causal and not is_decode(workload):
        said.append("A causal mask counts as the half that it saves, whether a contender saves it or not.")
    said.append("Less traffic lifts the roof too: rank by time, not by share.")
    return tuple(said)


def short(count: float) -> str:
    """`83.9 M`, `1.84 M`: three digits and a power of ten."""
    for threshold, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= threshold:
            value = count / threshold
            return f"{text.number(value, 0 if value >= 100 else 1 if value >= 10 else 2)}{text.THIN}{unit}"
    return text.number(count)


def intensity(value: float) -> str:
    return text.number(value, 0 if value >= 100 else 1 if value >= 10 else 2)


def _sum(first: float, second: float, both: float) -> str:
    return f"= {short(first)} + {short(second)} = {short(both)}"
