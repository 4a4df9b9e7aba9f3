"""`recording.json`: written whole or not at all, read back as far as it is whole."""

from __future__ import annotations

import io
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from app.core.opening import Opening, open_file
from app.core.recording import Recording
from app.core.stored import SCHEMA, RecordingError, document_of, pieces

__all__ = [
    "SCHEMA",
    "AtomicFile",
    "RecordingError",
    "document_of",
    "load",
    "parse",
    "pieces",
    "save",
    "write_atomically",
]


def save(recording: Recording, path: Path) -> None:
    """Write `recording.json`. The file appears whole; an older one stays until then."""
    file = AtomicFile(path)
    try:
        for piece in pieces(recording):
            file.write(piece)
        file.commit()
    except BaseException:
        file.discard()
        raise


def load(path: Path) -> Recording:
    """Open `recording.json`. What of it is damaged or missing stands in `faults`.

    Raises `RecordingError` with one sentence where nothing can be used.
    """
    return _whole(open_file(path))


def parse(data: bytes, source: str) -> Recording:
    """Read a recording from bytes, as `load`; `source` opens every error."""
    return _whole(Opening(io.BytesIO(data), source))


def _whole(opening: Opening) -> Recording:
    try:
        while opening.step():
            pass
    except OSError as error:
        raise RecordingError(f"{opening.source}: cannot be read: {error.strerror or error}") from None
    finally:
        opening.close()
    return opening.recording


class AtomicFile:
    """A file of which a reader, or a crash, never sees half: it is written beside its place. Makes the folder.

    Ends with `commit` or `discard`; everything but `discard` raises OSError.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, self._scratch = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        self._file = os.fdopen(handle, "wb")

    def write(self, data: bytes) -> None:
        self._file.write(data)

    def commit(self) -> None:
        """Put the file in its place; an older one stays until then."""
        with self._file:
            self._file.flush()
            os.fsync(self._file.fileno())
        os.chmod(self._scratch, 0o666 & ~_umask())
        os.replace(self._scratch, self._path)

    def discard(self) -> None:
        """Leave nothing behind."""
        with suppress(OSError):
            self._file.close()
        Path(self._scratch).unlink(missing_ok=True)


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file whole or not at all. Makes the folder; raises OSError."""
    file = AtomicFile(path)
    try:
        file.write(data)
        file.commit()
    except BaseException:
        file.discard()
        raise


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
