"""Multi-head self-attention behind one C++ operator.

Importing this compiles nothing, starts no process and does not even import torch: `load()` takes the
operator's library from the cache or builds it, and `pip install ./native` builds it ahead of time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import reference
    from ._cache import Entry, entries, remove_entries
    from ._decoding import KeyValueCache
    from ._driver import Builder, load
    from ._drop_in import Calls, ReplacedMultiheadAttention
    from ._events import BuildError, Event
    from ._module import SelfAttention
    from ._operator import KERNELS, self_attention
    from ._replace import Replacement, replace_self_attention, restore_self_attention

__all__ = [
    "KERNELS",
    "BuildError",
    "Builder",
    "Calls",
    "Entry",
    "Event",
    "KeyValueCache",
    "ReplacedMultiheadAttention",
    "Replacement",
    "SelfAttention",
    "build_id",
    "cache_root",
    "entries",
    "is_loaded",
    "load",
    "reference",
    "remove_entries",
    "replace_self_attention",
    "restore_self_attention",
    "self_attention",
]

_HOMES = {
    "KERNELS": "_operator",
    "BuildError": "_events",
    "Builder": "_driver",
    "Calls": "_drop_in",
    "Entry": "_cache",
    "Event": "_events",
    "KeyValueCache": "_decoding",
    "ReplacedMultiheadAttention": "_drop_in",
    "Replacement": "_replace",
    "SelfAttention": "_module",
    "entries": "_cache",
    "load": "_driver",
    "reference": "reference",
    "remove_entries": "_cache",
    "replace_self_attention": "_replace",
    "restore_self_attention": "_replace",
    "self_attention": "_operator",
}


def is_loaded() -> bool:
    """Whether the operator can be called in this process."""
    from . import _library

    return _library.loaded() is not None


def build_id() -> str | None:
    """Which library is loaded here: the key of its cache entry, `ahead-of-time`, or None for none."""
    from . import _library

    current = _library.loaded()
    return current.key if current is not None else None


def cache_root(cache_dir: str | None = None) -> str:
    """The folder that holds built libraries. Raises BuildError if none can be used."""
    import os

    from ._cache import open_root

    return str(open_root(cache_dir, os.environ)[0])


def __getattr__(name: str) -> Any:
    # Names that need torch are resolved when first used: the build process imports this package without
    # torch.
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module = import_module(f".{home}", __name__)
    value = module if home == name else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
