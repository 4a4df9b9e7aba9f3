"""The contenders that ship, by the catalog's id."""

from __future__ import annotations

from app.engine.implementations import compiled, extension_aten, extension_fused, mha, native, sdpa
from app.engine.implementations.base import Implementation

Registry = dict[str, Implementation]


def shipped() -> Registry:
    """A fresh registry, so that a caller may add to it."""
    entries = (
        native.IMPLEMENTATION,
        mha.IMPLEMENTATION,
        sdpa.IMPLEMENTATION,
        compiled.IMPLEMENTATION,
        extension_aten.IMPLEMENTATION,
        extension_fused.IMPLEMENTATION,
    )
    return {entry.id: entry for entry in entries}
