"""The one library of this process. Python never unloads one, and a second one with the same operators ends
the process.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ._events import BuildError
from ._sources import PACKAGE

AHEAD_OF_TIME = "ahead-of-time"


@dataclass(frozen=True)
class Loaded:
    """Which library: its file and the key of its cache entry, or `ahead-of-time`."""

    path: str
    key: str


_loaded: Loaded | None = None


def loaded() -> Loaded | None:
    """The library in this process, if there is one."""
    return _loaded


def load(path: Path, key: str) -> Loaded:
    """Loads the library into this process for good.

    Raises OSError if the system cannot load it, BuildError if another one is loaded or it is not the one it
    should be.
    """
    global _loaded
    import torch

    if _loaded is not None:
        if _loaded.key == key:
            return _loaded
        raise BuildError(
            "loaded_other",
            f"This process has already loaded {_loaded.path}; a library cannot be replaced while its "
            "process lives.",
            remedies=("Start a new process to use the new library.",),
        )
    if hasattr(torch.ops.attnscope, "self_attention_packed"):
        raise BuildError(
            "loaded_other",
            "Operators named attnscope:: are already registered in this process by another library; "
            "loading a second one would end the process.",
            remedies=("Start a new process to use the new library.",),
        )
    if sys.platform == "win32":
        os.add_dll_directory(str(Path(torch.__file__).resolve().parent / "lib"))
    torch.ops.load_library(str(path))  # type: ignore[no-untyped-call]
    reported = torch.ops.attnscope.build_id()
    if reported != key:
        raise BuildError("load_error", f"{path} reports the build {reported}; expected {key}.")
    _loaded = Loaded(str(path), key)
    return _loaded


def withdraw() -> None:
    """The library that is loaded must not be used: it computes wrong results. It cannot be unloaded."""
    global _loaded
    _loaded = None


def ahead_of_time() -> tuple[Path | None, str]:
    """The library that `pip install` built beside this package, or why there is none that fits this torch."""
    import torch

    for pattern in ("_C*.so", "_C*.pyd", "_C*.dylib"):
        for path in sorted(PACKAGE.glob(pattern)):
            built_for = _read(PACKAGE / "_C.json").get("torch_version")
            if built_for != torch.__version__:
                return None, f"{path.name} was built for torch {built_for}, this is {torch.__version__}"
            return path, ""
    return None, ""


def _read(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
