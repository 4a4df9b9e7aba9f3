"""Errors per tensor as flat rows: what the Markdown and the HTML show alike, and the CSV's columns."""

from __future__ import annotations

from collections.abc import Sequence

from app.core import text
from app.core.catalog import contender
from app.core.measurements import Accuracy, TensorError
from app.core.results import Entry

COLUMNS = (
    "Implementation",
    "Tensor",
    "Max |Δ|",
    "Native's",
    "Bound",
    "Used",
    "Rel. L2",
    "1 − cosine",
    "Bias",
    "Within",
)

LEGEND = (
    "Max |Δ|: largest difference to float64; native's is that of the native steps at the same precision. "
    "Bound: 2 × native's, 3 × for gradients, native's counting as at least one rounding unit. Used: max |Δ| ÷ "
    "bound. Rel. L2: norm of the difference ÷ norm of the exact values. Bias: mean signed difference. "
    "A dash stands where the true value is zero. While a tensor is beyond its bound, no speed-up is shown."
)

CSV_FIELDS = (
    "max_abs", "native_max_abs", "bound", "rel_l2", "native_rel_l2", "cosine", "one_minus_cosine", "bias",
    "native_bias",
)  # fmt: skip


def slice_note(entry: Entry) -> str:
    """`2 of 64 sequences` where only so many were checked, else ""."""
    accuracy = entry.accuracy
    if accuracy is None or accuracy.checked_batch is None:
        return ""
    batch = entry.workload.batch
    return f"{text.number(accuracy.checked_batch)} of {text.number(batch)} sequences"


def slice_sentence(entries: Sequence[Entry]) -> str:
    """What is to be said where not the whole batch was checked, else ""."""
    notes = sorted({note for entry in entries if (note := slice_note(entry))})
    if not notes:
        return ""
    return (
        f"Checked on {' or '.join(notes)} alone: float64 values of all would take too much memory or time. "
        "Gradients of parameters are those of that part of the batch."
    )


def body(entries: Sequence[Entry]) -> list[tuple[str, ...]]:
    """A row per contender and tensor, in the order of both; nothing for what was not checked."""
    return [
        (contender(entry.implementation).title, name, *_figures(tensor))
        for entry in entries
        if entry.accuracy is not None
        for name, tensor in entry.accuracy.tensors.items()
    ]


def _figures(tensor: TensorError) -> tuple[str, ...]:
    return (
        magnitude(tensor.max_abs),
        magnitude(tensor.native_max_abs),
        magnitude(tensor.bound),
        text.used(tensor.used),
        text.error(tensor.rel_l2),
        text.error(tensor.one_minus_cosine),
        text.signed_error(tensor.bias),
        "✓" if tensor.ok else "✗",
    )


def magnitude(value: float) -> str:
    """An error; in words where it is no number."""
    return "no number" if text.is_beyond(value) else text.error(value)


def csv_columns(entries: Sequence[Entry]) -> list[tuple[str, str]]:
    """(tensor, field) of every tensor that was checked anywhere, in their order."""
    names = dict.fromkeys(
        name for entry in entries if entry.accuracy is not None for name in entry.accuracy.tensors
    )
    return [(name, field) for name in names for field in CSV_FIELDS]


def csv_figures(accuracy: Accuracy | None, columns: Sequence[tuple[str, str]]) -> list[object]:
    """The values of `csv_columns`, unrounded; empty where there is none."""
    tensors = {} if accuracy is None else accuracy.tensors
    return [getattr(tensors.get(name), field, None) for name, field in columns]
