"""Which own implementations a person has confirmed: by content, so that an edited file is asked for again."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from app.core.files import write_atomically
from app.core.folders import config_folder
from app.core.own import OwnFile

FILE = "confirmed.json"


class _Store(msgspec.Struct):
    """`confirmed`: a content's SHA-256, and the path at which it was confirmed, for who reads the file."""

    schema: int = 1
    confirmed: dict[str, str] = {}


_here: set[str] = set()
"""Contents confirmed in this process: they hold even where the store cannot be written."""


class Trust:
    """Confirmations of this user. A store that cannot be read confirms nothing."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or config_folder() / FILE

    def holds(self, file: OwnFile) -> bool:
        """Whether this very content was confirmed."""
        return not self.missing((file,))

    def missing(self, files: Iterable[OwnFile]) -> tuple[OwnFile, ...]:
        """Those that must be confirmed first."""
        files = tuple(files)
        known = self._read().confirmed if files else {}
        return tuple(file for file in files if file.sha256 not in known and file.sha256 not in _here)

    def confirm(self, file: OwnFile) -> str:
        """Remember a confirmation. Returns a notice where it could not be kept, "" where it was."""
        _here.add(file.sha256)
        store = self._read()
        store.confirmed[file.sha256] = file.path
        try:
            write_atomically(self.path, msgspec.json.format(msgspec.json.encode(store)))
        except (OSError, UnicodeEncodeError) as error:
            reason = getattr(error, "strerror", None) or error
            return f"the confirmation of {file.name} is not kept for the next time: {reason}"
        return ""

    def _read(self) -> _Store:
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=_Store)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return _Store()
