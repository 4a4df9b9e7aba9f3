"""The contenders that ship: what every room needs to know of them without importing torch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from app.core.own import OwnFile, file_title, is_own

Shape = Literal[
    "circle", "diamond", "square", "plus", "hexagon", "triangle", "cross",
    "ring", "hollow-diamond", "hollow-square", "hollow-triangle",
]  # fmt: skip

TWIN = "@twin"
"""The baseline once more, hidden, in the same rounds: its ratio to the baseline is the noise floor."""


def twin_of(baseline: str) -> str:
    """The name under which a recording files the twin of `baseline`."""
    return f"{TWIN}:{baseline}"


BESIDE = "@beside:"
"""Before an own implementation's id: the baseline in that one's process, hidden. The speed-up of what runs in
another process is held against it."""


def beside_of(baseline: str, implementation: str) -> str:
    """The name under which a recording files the baseline as it ran in an own implementation's process."""
    return f"{BESIDE}{baseline}:{implementation}"


def is_hidden(implementation: str) -> bool:
    """Whether a series is shown in no table or chart of its own."""
    return implementation.startswith((TWIN, BESIDE))


class Contender(msgspec.Struct, frozen=True):
    """An implementation's identity. Colours are fixed so that a curve looks the same in every export."""

    id: str
    title: str
    short: str
    dark: str
    light: str
    shape: Shape
    about: str
    needs_extension: bool = False
    slow_to_prepare: bool = False


CONTENDERS: dict[str, Contender] = {
    c.id: c
    for c in (
        Contender(
            "native",
            "Native (step by step)",
            "Native",
            "#C9D1DB",
            "#4A5563",
            "circle",
            "projections, scores, mask, softmax, weighted sum and output projection, a line of Python each",
        ),
        Contender(
            "mha",
            "nn.MultiheadAttention",
            "nn.MHA",
            "#CC79A7",
            "#B0538A",
            "diamond",
            "PyTorch's own layer, with its fast path where it takes it",
        ),
        Contender(
            "sdpa",
            "SDPA",
            "SDPA",
            "#009E73",
            "#00875F",
            "square",
            "one packed projection and F.scaled_dot_product_attention; decoding, over a cache written in place",
        ),
        Contender(
            "compiled",
            "torch.compile",
            "torch.compile",
            "#F0E442",
            "#8F8500",
            "plus",
            "the native steps compiled by torch.compile",
            slow_to_prepare=True,
        ),
        Contender(
            "extension-aten",
            "Extension (ATen)",
            "Ext. (ATen)",
            "#E69F00",
            "#B87800",
            "hexagon",
            "the whole layer behind one C++ operator, composed of ATen calls, with a hand-derived backward",
            needs_extension=True,
        ),
        Contender(
            "extension-fused",
            "Extension (fused)",
            "Ext. (fused)",
            "#56B4E9",
            "#0072B2",
            "triangle",
            "the same operator with one attention kernel between the two projections, and no score matrix: its own "
            "on the CPU, PyTorch's fused attention on CUDA",
            needs_extension=True,
        ),
    )
}

DEFAULT_CONTENDERS = ("native", "mha", "sdpa", "extension-aten", "extension-fused")
"""What a window starts with: torch.compile takes 5 to 30 s to prepare and is asked for by hand."""


OWN_MARKS: tuple[tuple[str, str, Shape], ...] = (
    ("#D55E00", "#D55E00", "cross"),
    ("#CC79A7", "#B0538A", "hollow-diamond"),
    ("#009E73", "#00875F", "hollow-square"),
    ("#56B4E9", "#0072B2", "hollow-triangle"),
    ("#E69F00", "#B87800", "ring"),
)
"""Colours [dark, light] and shape of a user's own implementations, in the order in which they appear. The
first has a colour of its own; further ones reuse colours with hollow shapes."""

_own: dict[str, Contender] = {}


def introduce(files: Iterable[OwnFile]) -> None:
    """Let `contender` know these own implementations in this process: what a plan or a recording names.

    Their marks are given in the order of introduction and kept.
    """
    for file in files:
        if file.id in _own or not is_own(file.id):
            continue
        titles = {entry.title for entry in (*CONTENDERS.values(), *_own.values())}
        title = file.title
        for suffix in (file.name, file.sha256[:8]):
            if title in titles:
                title = f"{file.title} ({suffix})"
        dark, light, shape = OWN_MARKS[len(_own) % len(OWN_MARKS)]
        short = title if len(title) <= 14 else file.name
        _own[file.id] = Contender(
            file.id, title, short if len(short) <= 18 else f"{short[:17]}…", dark, light, shape,
            f"your own, from {file.path}",
        )  # fmt: skip


def contender(implementation: str) -> Contender:
    """The catalog's entry, or a neutral one for an id that an older or newer version recorded."""
    known = CONTENDERS.get(implementation) or _own.get(implementation)
    if known is not None:
        return known
    title = file_title(implementation) if is_own(implementation) else implementation
    return Contender(implementation, title, title, *OWN_MARKS[0], "")
