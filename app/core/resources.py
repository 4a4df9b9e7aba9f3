"""Where what ships with the application lies: in a checkout, or in the installed packages."""

from __future__ import annotations

import importlib.util
from pathlib import Path


def profiles() -> list[Path]:
    """The profiles that ship, by name; empty where there are none."""
    folder = profile_folder()
    return sorted(folder.glob("*.toml")) if folder is not None else []


def profile_folder() -> Path | None:
    """`profiles/` of a checkout, else the installed package's."""
    checkout = Path(__file__).resolve().parents[2] / "profiles"
    if checkout.is_dir():
        return checkout
    spec = importlib.util.find_spec("app.profiles")
    for place in (spec.submodule_search_locations or ()) if spec is not None else ():
        if Path(place).is_dir():
            return Path(place)
    return None
