"""What the window remembers: a small TOML file. A broken one is set aside, never a reason to stop."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, Literal

import msgspec

from app.core.catalog import CONTENDERS, DEFAULT_CONTENDERS
from app.core.fields import FieldError, UnknownKeyError, read_struct
from app.core.files import write_atomically
from app.core.folders import config_folder as folder
from app.core.own import is_own
from app.core.workload import Workload

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE = "preferences.toml"
MAX_BYTES = 100_000
ThemeChoice = Literal["system", "dark", "light"]


class Preferences(msgspec.Struct):
    """`geometry`: x, y, width, height of the window, null before its first time. `own`: files by path.

    `theme` is the one in effect, `kept_theme` the one that is written: a start may ask for another.
    `notice` says what was wrong with the file, if anything was.
    """

    geometry: tuple[int, int, int, int] | None = None
    maximised: bool = False
    theme: ThemeChoice = "system"
    motion: bool = True
    tab: int = 0
    window_span: Literal["60", "300", "all"] = "60"
    left_panel: bool = True
    workload: Workload = Workload()
    enabled: tuple[str, ...] = DEFAULT_CONTENDERS
    baseline: str = "native"
    own: tuple[str, ...] = ()
    export_folder: str = ""
    kept_theme: ThemeChoice = "system"
    notice: str = ""

    @classmethod
    def load(cls, path: Path | None = None) -> Preferences:
        """What was remembered. Never fails: a file that cannot be used is set aside and named in `notice`."""
        preferences, notice = load(path)
        preferences.kept_theme = preferences.theme
        preferences.notice = notice
        return preferences

    def save(self, path: Path | None = None) -> str:
        """Write them; returns a notice where that fails, "" where it does not."""
        return save(self, path)

    def choose_theme(self, theme: ThemeChoice) -> None:
        """A person chose it: it is kept."""
        self.theme = self.kept_theme = theme

    @property
    def window_s(self) -> float | None:
        """The span of the latency chart in seconds; None for all."""
        return None if self.window_span == "all" else float(self.window_span)


def load(path: Path | None = None) -> tuple[Preferences, str]:
    """Preferences, and a notice where the file could not be used ("" for none).

    A file that cannot be used is renamed to `preferences.toml.broken` and the defaults take over.
    """
    path = path or folder() / FILE
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return Preferences(), ""
    except OSError as error:
        return Preferences(), f"Preferences cannot be read from {path}: {error.strerror or error}"
    try:
        if len(raw) > MAX_BYTES:
            raise ValueError(f"larger than {MAX_BYTES:,} bytes")
        return _read(tomllib.loads(raw.decode("utf-8"))), ""
    except (ValueError, RecursionError, msgspec.ValidationError) as error:
        return Preferences(), _set_aside(path, " ".join(str(error).split()))


def save(preferences: Preferences, path: Path | None = None) -> str:
    """Write the preferences; returns a notice where that fails, "" where it does not."""
    path = path or folder() / FILE
    try:
        write_atomically(path, as_toml(preferences).encode())
    except OSError as error:
        return f"Preferences cannot be written to {path}: {error.strerror or error}"
    return ""


def as_toml(preferences: Preferences) -> str:
    """The preferences as TOML: flat, but for the workload's table."""
    data = msgspec.to_builtins(preferences)
    workload = data.pop("workload")
    data["theme"] = data.pop("kept_theme")
    del data["notice"]
    lines = [f"{key} = {_value(value)}" for key, value in data.items() if value is not None]
    lines += ["", "[workload]", *(f"{key} = {_value(value)}" for key, value in workload.items())]
    return "\n".join(lines) + "\n"


def _read(document: dict[str, Any]) -> Preferences:
    table = document.pop("workload", {})
    try:
        workload = read_struct(Workload, table, "workload")
    except (FieldError, UnknownKeyError) as error:
        raise ValueError(str(error)) from None
    for name in ("kept_theme", "notice"):
        document.pop(name, None)
    read = msgspec.convert(document, Preferences)
    shipped = tuple(name for name in CONTENDERS if name in read.enabled) or DEFAULT_CONTENDERS
    baseline = read.baseline if read.baseline in shipped else shipped[0]
    # Whether these may run, and whether their files are still there, is found out elsewhere.
    enabled = (*shipped, *(name for name in read.enabled if is_own(name)))
    # Combinations that cannot run are left to no one: the window would start with an explanation.
    usable = workload if not workload.problems else Workload()
    return msgspec.structs.replace(read, workload=usable, enabled=enabled, baseline=baseline)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_value(item) for item in value)}]"
    if isinstance(value, str):
        # A JSON string is a TOML basic string, but for the one control character that JSON lets through,
        # and for halves of characters, as a file's name may have them, which TOML has no way to write.
        whole = value.encode("utf-8", "replace").decode()
        return json.dumps(whole, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value)


def _set_aside(path: Path, cause: str) -> str:
    aside = path.with_name(path.name + ".broken")
    try:
        os.replace(path, aside)
    except OSError:
        return f"Preferences were not used ({cause}); the defaults are"
    return f"Preferences were not used ({cause}); the defaults are. The old file is now {aside.name}"
