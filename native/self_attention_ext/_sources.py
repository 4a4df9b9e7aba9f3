"""Where the C++ lies: beside the package in a checkout, inside it once installed."""

from __future__ import annotations

from pathlib import Path

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
