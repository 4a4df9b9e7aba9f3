"""Where the C++ lies: beside the package in a checkout, inside it once installed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

_OWN_HEADER = re.compile(r'^#include "([^"]+)"', re.M)

PACKAGE = Path(__file__).resolve().parent


def source_folder() -> Path:
    """The folder `csrc`. Raises FileNotFoundError naming the places it looked in."""
    candidates = (PACKAGE / "csrc", PACKAGE.parent / "csrc")
    for folder in candidates:
        if folder.is_dir():
            return folder
    places = " and ".join(str(folder) for folder in candidates)
    raise FileNotFoundError(f"the operator's C++ sources are missing: looked in {places}")


def sources(folder: Path) -> list[Path]:
    """The translation units, by name."""
    return sorted(folder.glob("*.cpp"))


def headers(folder: Path) -> list[Path]:
    """The headers they share, by name."""
    return sorted(folder.glob("*.h"))


def weights(folder: Path, names: Iterable[str]) -> dict[str, int]:
    """How long each source promises to take, before one was ever timed: its length with our headers in it."""
    return {name: sum(len(text) for text in _texts(folder, name, {}).values()) for name in names}


def _texts(folder: Path, name: str, found: dict[str, str]) -> dict[str, str]:
    path = folder / name
    if name not in found and path.is_file():
        found[name] = path.read_text("utf-8")
        for header in _OWN_HEADER.findall(found[name]):
            _texts(folder, header, found)
    return found
