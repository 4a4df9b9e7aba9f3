"""The contenders that ship: what every room needs to know of them without importing torch."""

from __future__ import annotations

from typing import Literal

import msgspec

Shape = Literal["circle", "diamond", "square", "plus", "hexagon", "triangle", "cross"]

TWIN = "@twin"
"""The baseline once more, hidden, in the same rounds: its ratio to the baseline is the noise floor."""


def twin_of(baseline: str) -> str:
    """The name under which a recording files the twin of `baseline`."""
    return f"{TWIN}:{baseline}"


def is_hidden(implementation: str) -> bool:
    """Whether a series is shown in no table or chart of its own."""
    return implementation.startswith(TWIN)


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


def contender(implementation: str) -> Contender:
    """The catalog's entry, or a neutral one for an id that an older or newer version recorded."""
    known = CONTENDERS.get(implementation)
    if known is not None:
        return known
    return Contender(implementation, implementation, implementation, "#D55E00", "#D55E00", "cross", "")
