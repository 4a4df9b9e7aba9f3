"""The accuracy view as plain rows, worked out of a snapshot without Qt."""

from __future__ import annotations

import math
from dataclasses import dataclass

from app.core import text
from app.core.catalog import contender
from app.core.measurements import TensorError, factor_of
from app.core.results import Entry
from app.exports.accuracy_rows import magnitude
from app.gui.snapshot import Snapshot
from app.gui.views.rows import title_of


@dataclass(frozen=True)
class TensorRow:
    """One tensor of one contender, as text and as the numbers that the strip draws."""

    implementation: str
    name: str
    shape: str
    ours: str
    native: str
    factor: str
    bound: str
    used: str
    rel_l2: str
    one_minus_cosine: str
    bias: str
    ok: bool
    error: TensorError

    @property
    def sentence(self) -> str:
        """The whole row in words, for a tooltip and for who cannot see it."""
        state = "within its bound" if self.ok else "beyond its bound"
        zero = "" if self.error.rel_l2 is not None else ". The true value is 0: no relative error, no cosine"
        return (
            f"{self.name}: {state}. Max |Δ| {self.ours}, native's own {self.native}, bound {self.bound} "
            f"({self.used} used). Relative L2 {self.rel_l2}, 1 − cosine {self.one_minus_cosine}, bias {self.bias}"
            f"{zero}"
        )


@dataclass(frozen=True)
class Standing:
    """One contender among all: the tensor that uses most of its bound, and its largest error."""

    name: str
    title: str
    tensor: str
    share: float | None
    worst: str
    word: str = ""
    ok: bool = True


def title_of_tensor(name: str) -> str:
    """`grad_q_weight` as `grad q_weight`."""
    return name.replace("grad_", "grad ", 1)


def rows_of(entry: Entry | None) -> tuple[TensorRow, ...]:
    """One contender's tensors."""
    if entry is None or entry.accuracy is None:
        return ()
    name = entry.implementation
    return tuple(_row(name, title_of_tensor(t), t, error) for t, error in entry.accuracy.tensors.items())


def output_rows(snapshot: Snapshot) -> tuple[TensorRow, ...]:
    """The output of every contender: forward alone has nothing else to be wrong in."""
    return tuple(
        _row(entry.implementation, title_of(entry.implementation), "output", entry.accuracy.tensors["output"])
        for entry in snapshot.entries
        if entry.accuracy is not None and "output" in entry.accuracy.tensors
    )


def _row(implementation: str, title: str, name: str, error: TensorError) -> TensorRow:
    return TensorRow(
        implementation=implementation,
        name=title,
        shape=" × ".join(str(size) for size in error.shape),
        ours=magnitude(error.max_abs),
        native=magnitude(error.native_max_abs),
        factor=f"{factor_of(name):.0f} ×",
        bound=text.error(error.bound),
        used=text.used(error.used),
        rel_l2=_apart(error.rel_l2),
        one_minus_cosine=_apart(error.one_minus_cosine),
        bias=text.signed_error(error.bias),
        ok=error.ok,
        error=error,
    )


def _apart(value: float | None) -> str:
    """Small ones as powers, large ones as they are: 1.39 is a relative error that anyone reads."""
    if value is None:
        return text.NOTHING
    return f"{value:.2f}" if 0.01 <= value < 1000 else "0" if value == 0 else text.error(value)


def decades(rows: tuple[TensorRow, ...]) -> tuple[int, int]:
    """The strip's axis in whole powers of ten, shared by all rows: from below the least mark to above all."""
    shown = [
        value
        for row in rows
        for value in (row.error.max_abs, row.error.native_max_abs, row.error.bound)
        if value > 0 and not text.is_beyond(value)
    ]
    if not shown:
        return (-9, -5)
    low, high = math.floor(math.log10(min(shown))), math.ceil(math.log10(max(shown)) + 1e-9)
    return (low, max(high, low + 2))


def standings_of(snapshot: Snapshot) -> tuple[Standing, ...]:
    """Every contender in the recording's order."""
    return tuple(_standing(entry) for entry in snapshot.entries)


def _standing(entry: Entry) -> Standing:
    title = title_of(entry.implementation)
    accuracy = entry.accuracy
    if accuracy is None or accuracy.tightest is None:
        word = "not checked"
        if entry.status in ("failed", "unavailable"):
            word = "failed" if entry.status == "failed" else "not run"
        return Standing(entry.implementation, title, "", None, text.NOTHING, word)
    worst = magnitude(accuracy.worst)
    if entry.implementation == "native" and accuracy.ok:
        return Standing(entry.implementation, title, "", None, worst, "sets the bound")
    tensor = accuracy.first_wrong or accuracy.tightest
    share = accuracy.tensors[tensor].used
    return Standing(entry.implementation, title, title_of_tensor(tensor), share, worst, ok=accuracy.ok)


def subject_of(snapshot: Snapshot, wanted: str | None) -> Entry | None:
    """Whose tensors are shown: the one asked for, the first that is wrong, the challenger, any checked."""
    if wanted is not None and (entry := snapshot.entry(wanted)) is not None:
        return entry
    challenger = snapshot.entry(snapshot.challenger)
    others = [e for e in snapshot.entries if e is not challenger]
    candidates = [e for e in (challenger, *others) if e is not None and e.accuracy is not None]
    wrong = next((e for e in candidates if e.accuracy is not None and not e.accuracy.ok), None)
    if wrong is not None:
        return wrong
    if challenger is not None and challenger.accuracy is not None:
        return challenger
    return next((e for e in snapshot.entries if e.accuracy is not None), challenger)


def zero_note(rows: tuple[TensorRow, ...]) -> str:
    """One line for tensors whose true value is zero."""
    zero = [row for row in rows if row.error.rel_l2 is None and row.ok and row.name.startswith("grad ")]
    names = [row.name.removeprefix("grad ") for row in zero]
    if not names:
        return ""
    if len(names) == 1:
        return f"{names[0]}: the true gradient is 0, no rel. L2 or cosine"
    return (
        f"{', '.join(names[:2])}{' and others' if len(names) > 2 else ''}: true gradients are 0, no rel. L2"
    )


def caption_of(entry: Entry | None, dtype: str, device: str) -> str:
    if entry is None or entry.accuracy is None:
        return ""
    wrong = len(entry.accuracy.wrong)
    total = len(entry.accuracy.tensors)
    said = ["max |Δ| against float64"]
    if wrong:
        said.append(f"{wrong} of {total} exceed{'s' if wrong == 1 else ''} its bound".replace(
            "exceed its", "exceed their"))  # fmt: skip
    else:
        said.append(f"{dtype} on {device.upper()}")
        if total == 1:
            said.append("forward + backward checks nine gradients as well")
            return " · ".join(said)
    return " · ".join([*said, "log scale"])


def why_none(snapshot: Snapshot, entry: Entry | None) -> str:
    """What stands in the place of the table where nothing was checked."""
    if entry is None:
        return "Nothing is measured yet."
    title = contender(entry.implementation).title
    if entry.status in ("failed", "unavailable"):
        return f"{title}: {entry.reason or entry.status}"
    plan = snapshot.recording.plan
    if plan is not None and not plan.measure.accuracy:
        return "Accuracy is switched off in this plan (measure.accuracy = false)."
    told = [n.text for n in snapshot.recording.notices if "accuracy" in n.text and "not checked" in n.text]
    if told:
        return told[-1][0].upper() + told[-1][1:] + "."
    return f"{title} is not checked yet."


def report_text(snapshot: Snapshot) -> str:
    """Every contender's tensors as text, for a message to someone else."""
    from app.core.fields import fields_of
    from app.core.workload import Workload
    from app.exports.accuracy_rows import COLUMNS, body, slice_sentence

    record = snapshot.record
    lines = []
    if record is not None:
        lines.append(f"{record.label}, {record.workload.device}")
        lines += [f"{name} = {getattr(record.workload, name)}" for name in fields_of(Workload)]
    table = [COLUMNS, *body(snapshot.entries)]
    lines += ["", *("\t".join(cells) for cells in table)]
    note = slice_sentence(snapshot.entries)
    return "\n".join([*lines, *(["", note] if note else [])]) + "\n"
