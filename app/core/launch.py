"""How AttnScope starts its own processes, from a checkout or installed."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
ROOT = PACKAGE.parent


def command(*arguments: str) -> list[str]:
    """The command line for one of our own commands.

    Never `-m app`: that would look in the current folder first, and run whatever `app` lies there.
    """
    script = ROOT / "main.py"
    if script.is_file():
        return [sys.executable, str(script), *arguments]
    start = f"import sys; sys.path[0] = {str(ROOT)!r}; from app.cli import main; sys.exit(main())"
    return [sys.executable, "-c", start, *arguments]


def sibling(name: str) -> Path:
    """A folder of data that ships: beside the package in a checkout, inside it when installed."""
    inside = PACKAGE / name
    return inside if inside.is_dir() else ROOT / name


def profiles() -> list[Path]:
    """The profiles that ship, by name."""
    return sorted(sibling("profiles").glob("*.toml"))


def find_profile(text: str) -> Path:
    """A path as given, or, where there is no such file, the shipped profile of that name."""
    path = Path(text)
    # Not `exists`, which raises for a name that is too long or in a folder that may not be read.
    if os.path.exists(path):
        return path
    for shipped in profiles():
        if text in (shipped.stem, shipped.name, f"profiles/{shipped.name}"):
            return shipped
    return path


def make_extension_importable() -> None:
    """Let a checkout that nobody installed find the extension's package, after all that is installed."""
    folder = ROOT / "native"
    if importlib.util.find_spec("self_attention_ext") is None and folder.is_dir():
        sys.path.append(str(folder))
