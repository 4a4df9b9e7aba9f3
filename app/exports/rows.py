"""Results as flat rows: what the CSV, the Markdown and the HTML tables show alike."""

from __future__ import annotations

from app.core import text
from app.core.catalog import contender
from app.core.environment import Environment
from app.core.latencies import LATENCIES, NOT_ON_A_CPU
from app.core.plan import Plan, Skipped
from app.core.results import Entry
from app.exports.accuracy_rows import slice_note

METHOD = (
    "Every contender runs once per round, in rotating order, a block of calls per sample; latency comes from "
    "a process in which no profiler ever ran. The speed-up is the median over rounds of baseline time over "
    "contender time in the same round, with a distribution-free 95 % interval; the noise floor is the same "
    "figure for the baseline against itself, and nothing below it is claimed. Counts come from profiled "
    "passes in a process of their own; accuracy, where it is shown, is of outputs and gradients against float64."
)


LATENCY_WORDS = " ".join(
    f"{LATENCIES[name].title}: {LATENCIES[name].description}." for name in ("wall_s", "device_s", "kernels_s")
)
CPU_WORDS = (
    f"Times are host wall: {LATENCIES['wall_s'].description}. Time between device events "
    f"{NOT_ON_A_CPU}; nor is there a sum of kernel times."
)


def latency_words(on_device: bool) -> str:
    """What the latencies in the table are, and on a CPU that two of three do not apply."""
    cost = LATENCIES["profiled_s"]
    words = LATENCY_WORDS if on_device else CPU_WORDS
    return f"{words} {cost.title}: {cost.description}; {LATENCIES['profiling_cost'].description}."


def has_device(entries: tuple[Entry, ...]) -> bool:
    """Whether any workload ran on a device that has kernel launches."""
    return any(entry.workload.device.startswith("cuda") for entry in entries)


def columns(on_device: bool) -> tuple[str, ...]:
    """Titles of the result table; times in µs."""
    launches = ("Kernel launches",) if on_device else ()
    device = ("Device events, µs", "Sum of kernels, µs") if on_device else ()
    return (
        "Implementation",
        "Median, µs",
        *device,
        "IQR, µs",
        "p99, µs",
        "Speed-up",
        "95 % interval",
        "Noise floor",
        "Verdict",
        "Python calls",
        "Operator calls",
        *launches,
        "Peak memory",
        "Accuracy, max |Δ|",
        "Profiled, µs",
        "n",
    )


def cells(entry: Entry, on_device: bool) -> tuple[str, ...]:
    """One row of the result table, as text."""
    latency, speed = entry.latency, entry.speed_up
    title = contender(entry.implementation).title
    width = len(columns(on_device))
    if latency is None:
        reason = entry.reason or "the run ended before it was measured"
        return (title, f"{entry.status}: {reason}", *([""] * (width - 2)))
    iqr = None if latency.q1_s is None or latency.q3_s is None else latency.q3_s - latency.q1_s
    is_baseline = entry.implementation == entry.baseline
    floor = None if speed is None else speed.noise_floor
    launches = (phases(entry.counts.kernel_launches),) if on_device else ()
    return (
        title,
        text.micros(latency.median_s),
        *(
            (text.micros(entry.latencies.device_s), text.micros(entry.latencies.kernels_s))
            if on_device
            else ()
        ),
        text.micros(iqr),
        text.micros(latency.p99_s),
        _speed(entry, is_baseline),
        interval(entry),
        text.NOTHING if floor is None else f"±{text.percent(floor, 1)}",
        verdict(entry),
        phases(entry.counts.python_calls),
        phases(entry.counts.operator_calls),
        *launches,
        text.size(entry.memory.peak_bytes),
        accuracy(entry),
        profiled(entry),
        text.number(latency.n),
    )


def _speed(entry: Entry, is_baseline: bool) -> str:
    if entry.withheld is not None:
        return "withheld"
    if is_baseline:
        return text.NOTHING if entry.accuracy is not None and not entry.accuracy.ok else "1.00×"
    return text.times(None if entry.speed_up is None else entry.speed_up.median)


def profiled(entry: Entry) -> str:
    """A call under the profiler, and how much longer it takes than one that is not."""
    cost = entry.latencies.profiling_cost
    beside = "" if cost is None else f" ({text.longer(cost)})"
    return f"{text.micros(entry.latencies.profiled_s)}{beside}"


def overview(plan: Plan, parts: list[tuple[Entry, ...]]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """A line per workload with the speed-up of each contender: titles, then rows."""
    names = [name for name in plan.implementations if name != plan.baseline]
    titles = ("Workload", *(contender(name).title for name in names))
    body = []
    for entries in parts:
        found = {entry.implementation: entry for entry in entries}
        workload = entries[0].workload
        cold = ", cold cache" if entries[0].cache == "cold" else ""
        cells = [brief(found.get(name)) for name in names]
        body.append((f"{workload.label}{cold}, {workload.device}", *cells))
    return titles, body


def brief(entry: Entry | None) -> str:
    """A speed-up with its verdict, or why there is none, in two words."""
    if entry is None or entry.latency is None:
        return text.NOTHING if entry is None else entry.status
    if entry.accuracy is not None and not entry.accuracy.ok:
        return "WRONG RESULT"
    if entry.withheld is not None:
        return "withheld"
    speed = entry.speed_up
    if speed is None or speed.low is None or speed.high is None:
        return "UNSURE"
    return f"{text.times(speed.median)} {(entry.verdict or '').upper()}"


def skipped(cell: Skipped) -> str:
    """A cell of a sweep that cannot run, and why."""
    values = ", ".join(f"{key} {value}" for key, value in cell.values.items())
    return f"{values}: {cell.reason}"


def verdict(entry: Entry) -> str:
    """FASTER, SAME, SLOWER, UNSURE, BASELINE or WRONG RESULT."""
    if entry.accuracy is not None and not entry.accuracy.ok:
        return "WRONG RESULT"
    if entry.implementation == entry.baseline:
        return "BASELINE"
    return (entry.verdict or text.NOTHING).upper()


def interval(entry: Entry) -> str:
    speed = entry.speed_up
    if speed is None or speed.low is None or speed.high is None:
        return text.NOTHING
    return f"{speed.low:.2f}–{speed.high:.2f}"


def phases(counts: dict[str, int | None] | None) -> str:
    """`58 + 90` for forward and backward, one number where there is only one."""
    if counts is None:
        return text.NOTHING
    known = [value for value in counts.values() if value is not None]
    return " + ".join(text.number(value) for value in known) or text.NOTHING


def accuracy(entry: Entry) -> str:
    if entry.accuracy is None:
        return text.NOTHING
    sign = "✓" if entry.accuracy.ok else "✗"
    note = slice_note(entry)
    return f"{sign} {text.error(entry.accuracy.worst)}" + (f" ({note})" if note else "")


def environment_rows(environment: Environment | None) -> list[tuple[str, str]]:
    """The machine as titled lines; what it did not offer is left out."""
    if environment is None:
        return []
    cuda = f" · CUDA {environment.torch_cuda}" if environment.torch_cuda else ""
    cores = f"{environment.physical_cores or '?'} cores, {environment.logical_cores or '?'} threads"
    rows = [
        ("AttnScope", environment.attnscope),
        ("System", f"{environment.system} · {environment.machine}"),
        ("Python", environment.python),
        ("PyTorch", f"{environment.torch}{cuda}"),
        ("CPU", f"{environment.cpu} · {cores} · {', '.join(environment.cpu_features)}"),
        ("Threads", f"{environment.threads} within, {environment.interop_threads} between operators"),
        ("Memory", text.size(environment.memory_bytes)),
        ("Allocator", "keeps freed memory" if environment.freed_memory_kept else ""),
        ("Driver", environment.driver or ""),
        ("Extension", environment.extension_key or ""),
    ]
    rows += [
        ("Device", device.title if device.usable else f"{device.title}: {device.reason}")
        for device in environment.devices
    ]
    return [(title, value) for title, value in rows if value and value != text.NOTHING]
