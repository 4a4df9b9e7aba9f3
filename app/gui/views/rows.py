"""The results table as plain rows: what stands in each cell, worked out of a snapshot without Qt."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Literal

from msgspec.structs import replace

from app.core import text
from app.core.catalog import contender
from app.core.curves import drawable
from app.core.latencies import LATENCIES
from app.core.recording import Status
from app.core.results import Entry
from app.core.statistics import STATISTICS, SpeedUp, summarise
from app.gui.snapshot import Snapshot

RowKind = Literal["figures", "reason", "error", "spinner"]
MIB = 2**20


@dataclass(frozen=True)
class Column:
    """`id`, head, tooltip, and whether figures are right-aligned; `key` ones are bold."""

    id: str
    title: str
    about: str
    right: bool = True
    key: bool = False


_FLOOR = STATISTICS["noise_floor"]
_COUNTED = "per call, from a profiled pass of its own; a training step's forward and backward together"
COLUMNS: dict[str, Column] = {
    c.id: c
    for c in (
        Column("name", "Implementation", "what is measured", right=False),
        Column("median", "Median", f"µs per call: {STATISTICS['median_s'].description}", key=True),
        Column("device", "Events", f"µs per call: {LATENCIES['device_s'].description}"),
        Column("kernels", "Kernels", f"µs per call: {LATENCIES['kernels_s'].description}"),
        Column("profiled", "Profiled", f"µs per call: {LATENCIES['profiled_s'].description}"),
        Column("iqr", "IQR", "µs: from the first quartile to the third; half of all samples lie within"),
        Column("p99", "p99", f"µs per call: {STATISTICS['p99_s'].description}"),
        Column("speed_up", "Speed-up, 95 % CI", STATISTICS["speed_up"].description, right=False),
        Column("verdict", "Verdict", f"{_FLOOR.title}: {_FLOOR.description}", right=False),
        Column("operators", "Operator calls", f"operators dispatched, nested ones included, {_COUNTED}", key=True),
        Column("python", "Python calls", f"operators entered from Python, {_COUNTED}"),
        Column("launches", "Launches", f"kernels launched on the device, {_COUNTED}", key=True),
        Column("peak", "Peak MiB", "memory of one call at its peak, inputs and parameters not counted"),
        Column("accuracy", "Accuracy", "largest error of output and gradients, against float64", right=False),
    )
}  # fmt: skip

ON_CPU = (
    "name", "median", "iqr", "p99", "speed_up", "verdict",
    "operators", "python", "peak", "profiled", "accuracy",
)  # fmt: skip
ON_GPU = (
    "name", "median", "device", "kernels", "iqr", "p99", "speed_up", "verdict",
    "python", "operators", "launches", "peak", "profiled", "accuracy",
)  # fmt: skip
HIDDEN_WHEN_SMALL = ("device", "kernels", "iqr", "python", "operators", "peak", "profiled")


@dataclass(frozen=True)
class Row:
    """One contender's line. `cells` by column id; `sentence` stands across a line without figures."""

    name: str
    kind: RowKind
    cells: dict[str, str]
    sentence: str = ""
    detail: str = ""
    verdict: str = ""
    speed: SpeedUp | None = None
    accurate: bool | None = None
    is_baseline: bool = False
    is_challenger: bool = False
    disturbed: bool = False
    tips: tuple[tuple[str, str], ...] = ()

    def tip(self, column: str) -> str:
        return dict(self.tips).get(column, "")


def columns_of(snapshot: Snapshot, small: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Column ids shown, and those left out. On a CPU no column speaks of launches."""
    every = ON_GPU if snapshot.on_gpu else ON_CPU
    # On a CPU operator calls are the key count, as launches are on a GPU: it stays.
    stays = () if snapshot.on_gpu else ("operators",)
    hidden = tuple(c for c in every if small and c in HIDDEN_WHEN_SMALL and c not in stays)
    return tuple(c for c in every if c not in hidden), hidden


def rows_of(snapshot: Snapshot) -> tuple[Row, ...]:
    """A row for each entry, in the recording's order, which does not change while it runs."""
    return tuple(_row(entry, snapshot) for entry in snapshot.entries)


def _row(entry: Entry, snapshot: Snapshot) -> Row:
    name = entry.implementation
    row = _told(entry, snapshot)
    is_baseline = name == snapshot.baseline
    return dataclasses.replace(
        row, is_baseline=is_baseline, is_challenger=name == snapshot.challenger and not is_baseline
    )


def _told(entry: Entry, snapshot: Snapshot) -> Row:
    name = entry.implementation
    status = snapshot.record.status.get(name, Status()) if snapshot.record is not None else Status()
    if entry.status in ("unavailable", "failed"):
        reason = entry.reason or "no reason was given"
        word = "Not run" if entry.status == "unavailable" else "Failed"
        kind: RowKind = "reason" if entry.status == "unavailable" else "error"
        said = [status.remedy] if status.remedy else []
        if entry.latency is not None:
            said.append(f"before that {text.micros(entry.latency.median_s)} µs")
        return Row(name, kind, {}, f"{word}: {reason}", "; ".join(said))
    if entry.latency is None:
        beside = _beside(entry, snapshot)
        if beside is not None:
            return beside
        kind, sentence = waiting(entry, snapshot, status)
        return Row(name, kind, {}, sentence)
    return _figures(entry, entry.implementation == snapshot.baseline)


def _beside(entry: Entry, snapshot: Snapshot) -> Row | None:
    """Figures of a contender that has only run beside something else, such as the first build.

    They are shown, as disturbed, because they move; no speed-up is made of them.
    """
    series = snapshot.record.series.get(entry.implementation) if snapshot.record is not None else None
    if series is None or not len(series):
        return None
    seconds = series.seconds[drawable(series.seconds)]
    if not seconds.size:
        return None
    what = series.disturbance(len(series) - 1) or "something else"
    row = _figures(replace(entry, latency=summarise(seconds)), entry.implementation == snapshot.baseline)
    said = f"measured beside other work ({what}): no speed-up is made of it"
    tips = {**dict(row.tips), **dict.fromkeys(("median", "iqr", "p99", "speed_up", "verdict"), said)}
    return dataclasses.replace(row, disturbed=True, tips=tuple(tips.items()))


def waiting(entry: Entry, snapshot: Snapshot, status: Status) -> tuple[RowKind, str]:
    """What a contender without a sample is doing."""
    known = contender(entry.implementation.partition("@")[0])
    build = snapshot.recording.build
    if known.needs_extension and build.is_running:
        return "spinner", "Compiling, joins by itself when the build ends"
    if known.needs_extension and build.state == "failed":
        return "error", "No build: the extension did not compile, see Build"
    if status.state == "preparing":
        if known.slow_to_prepare:
            return "spinner", "Compiling, takes 5 to 30 s the first time"
        return "spinner", "Preparing"
    if not snapshot.running:
        return "reason", "Not measured: the run ended before its turn"
    if snapshot.paused:
        return "reason", "Waits: the run is paused"
    return "spinner", "Waiting for its first sample"


def _figures(entry: Entry, is_baseline: bool) -> Row:
    latency = entry.latency
    assert latency is not None
    spread = None if latency.q1_s is None or latency.q3_s is None else latency.q3_s - latency.q1_s
    wrong = entry.accuracy is not None and not entry.accuracy.ok
    counts = entry.counts
    cells = {
        "name": title_of(entry.implementation),
        "median": text.micros(latency.median_s),
        "device": _whole_micros(entry.latencies.device_s),
        "kernels": _whole_micros(entry.latencies.kernels_s),
        "profiled": _whole_micros(entry.latencies.profiled_s),
        "iqr": text.micros(spread),
        "p99": _whole_micros(latency.p99_s),
        "speed_up": _speed(entry, is_baseline, wrong),
        "verdict": _verdict(entry, is_baseline, wrong),
        "operators": text.number(_total(counts.operator_calls)),
        "python": text.number(_total(counts.python_calls)),
        "launches": text.number(_total(counts.kernel_launches)),
        "peak": _mib(entry.memory.peak_bytes),
        "accuracy": _accuracy(entry, is_baseline),
    }
    return Row(
        entry.implementation,
        "figures",
        cells,
        verdict="wrong" if wrong else "baseline" if is_baseline else entry.verdict or "",
        speed=entry.speed_up,
        accurate=None if entry.accuracy is None else entry.accuracy.ok,
        tips=_tips(entry),
    )


def title_of(implementation: str) -> str:
    """A contender's title, with the key of the build where it is an earlier one's."""
    name, _, key = implementation.partition("@")
    title = contender(name).title
    return f"{title}, build {key[:4]}" if key else title


def _total(count: dict[str, int | None] | None) -> int | None:
    parts = [part for part in (count or {}).values() if part is not None]
    return sum(parts) if parts else None


def _whole_micros(seconds: float | None) -> str:
    if seconds is None:
        return text.NOTHING
    return text.number(seconds * 1e6, 0 if seconds >= 100e-6 else 1)


def _mib(count: int | None) -> str:
    if count is None:
        return text.NOTHING
    mib = count / MIB
    return text.number(mib, 0 if mib >= 1000 else 1 if mib >= 0.1 or not mib else 3)


def _speed(entry: Entry, baseline: bool, wrong: bool) -> str:
    if wrong or entry.withheld is not None:
        return "withheld"
    if baseline:
        return text.times(1.0)
    return text.times(entry.speed_up.median) if entry.speed_up is not None else text.NOTHING


def _verdict(entry: Entry, baseline: bool, wrong: bool) -> str:
    if wrong:
        return "WRONG"
    if baseline:
        return "BASELINE"
    return entry.verdict.upper() if entry.verdict else text.NOTHING


def _accuracy(entry: Entry, baseline: bool) -> str:
    if entry.accuracy is None:
        return "not checked"
    part = "" if entry.accuracy.checked_batch is None else " in part"
    return f"{text.error(entry.accuracy.worst)}{part}"


def _latencies(entry: Entry) -> str:
    """The three latencies and what profiling costs, each with its figure or why there is none."""
    said = []
    for name, declared in LATENCIES.items():
        value = getattr(entry.latencies, name)
        if value is None:
            figure = entry.latencies.absent.get(name, text.NOTHING)
        else:
            figure = text.times(value) if declared.unit == "×" else f"{text.micros(value)} µs"
        said.append(f"{declared.title}: {figure}")
    return "\n".join(said)


def _tips(entry: Entry) -> tuple[tuple[str, str], ...]:
    tips: dict[str, str] = {}
    latency = entry.latency
    if latency is not None:
        tips["median"] = (
            f"{text.number(latency.n)} samples, {text.number(entry.disturbed)} disturbed ones left out"
            f"\n{_latencies(entry)}"
        )
        if entry.strained:
            done = "left out too" if entry.strained_left_out else "kept: most were"
            tips["median"] += f"; {text.number(entry.strained)} taken under strain {done}"
        if latency.q1_s is not None and latency.q3_s is not None:
            tips["iqr"] = f"{text.micros(latency.q1_s)} to {text.micros(latency.q3_s)} µs"
    speed = entry.speed_up
    if speed is not None and speed.low is not None and speed.high is not None:
        floor = "" if speed.noise_floor is None else f", noise floor ±{text.percent(speed.noise_floor, 1)}"
        tips["speed_up"] = (
            f"{text.times(speed.median)}, {text.percent(speed.confidence)} CI {text.number(speed.low, 3)}–"
            f"{text.number(speed.high, 3)}{floor}, {text.number(speed.rounds)} paired rounds"
        )
    if entry.verdict_reason:
        tips["verdict"] = entry.verdict_reason
        if entry.withheld is not None:
            tips["speed_up"] = (
                f"{entry.verdict_reason}. A speed-up is shown once every tensor is within its bound"
            )
    if entry.latencies.profiling_cost is not None:
        cost = text.longer(entry.latencies.profiling_cost)
        tips["profiled"] = f"{cost} to unprofiled: counting costs that much, and no comparison uses it"
    for column, count in (
        ("operators", entry.counts.operator_calls),
        ("python", entry.counts.python_calls),
        ("launches", entry.counts.kernel_launches),
    ):
        if count is not None and count.get("backward") is not None:
            tips[column] = (
                f"{text.number(count.get('forward'))} forward, {text.number(count.get('backward'))} backward"
            )
        elif entry.counts.note:
            tips[column] = entry.counts.note
    if entry.accuracy is not None and entry.accuracy.tensors:
        tensors = entry.accuracy.tensors
        name = entry.accuracy.first_wrong or max(tensors, key=lambda tensor: tensors[tensor].max_abs)
        off, bound = text.error(tensors[name].max_abs), text.error(tensors[name].bound)
        tips["accuracy"] = f"{name}: off by {off}, the bound is {bound}"
        if entry.accuracy.checked_batch is not None:
            part = f"{text.number(entry.accuracy.checked_batch)} of {text.number(entry.workload.batch)}"
            tips["accuracy"] += f". Checked on {part} sequences: all would take too much memory or time"
    if entry.path:
        tips["name"] = f"takes the way {entry.path}"
    return tuple(tips.items())


def as_table(rows: tuple[Row, ...], columns: tuple[str, ...]) -> list[list[str]]:
    """Heads and cells as text; a row without figures has its sentence in the second column."""
    table = [[COLUMNS[c].title for c in columns]]
    for row in rows:
        if row.kind == "figures":
            table.append([row.cells[c] for c in columns])
        else:
            table.append([title_of(row.name), row.sentence, *[""] * (len(columns) - 2)])
    return table


def as_tsv(rows: tuple[Row, ...], columns: tuple[str, ...]) -> str:
    """For a spreadsheet: tabs between cells, a line a row. A sentence's tabs and newlines become spaces."""
    return "\n".join("\t".join(" ".join(cell.split()) for cell in line) for line in as_table(rows, columns))


def as_markdown(rows: tuple[Row, ...], columns: tuple[str, ...]) -> str:
    """A pipe table, figures right-aligned."""

    def line(cells: list[str]) -> str:
        return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"

    table = as_table(rows, columns)
    rule = "|" + "|".join("--:" if COLUMNS[c].right else ":--" for c in columns) + "|"
    return "\n".join([line(table[0]), rule, *map(line, table[1:])])
