"""A session's messages, written as they come, so that a crash loses at most the last second."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import BinaryIO

from app.core import messages as m
from app.core.recording import Recording


class Journal:
    """Appends every command that starts a run and every message to a file, a line each."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._file: BinaryIO = path.open("ab")
        self._samples = 0

    @property
    def has_samples(self) -> bool:
        return self._samples > 0

    def write(self, message: m.Start | m.Message) -> None:
        """Add a message. It is on its way to the disk at the next `flush`."""
        if isinstance(message, m.Samples):
            self._samples += len(message.samples)
        self._file.write(m.encode(message))

    def flush(self) -> None:
        self._file.flush()

    def close(self, remove: bool) -> None:
        """End the journal; `remove` it where the recording was saved or holds nothing."""
        # A full disk refuses what was not flushed yet, at the last moment as well.
        with contextlib.suppress(OSError):
            self._file.close()
        if remove:
            self.path.unlink(missing_ok=True)


def replay(path: Path) -> tuple[Recording, int]:
    """The recording that a journal's messages make, and how many lines could not be read.

    A journal cut off in the middle of a line, as a crash leaves it, gives all whole ones.
    """
    recording = Recording()
    unreadable = 0
    with path.open("rb") as file:
        for line in file:
            if not line.strip():
                continue
            try:
                if line.startswith(b'{"type":"Start"'):
                    command = m.decode_command(line)
                    assert isinstance(command, m.Start)
                    recording.begin(command)
                else:
                    recording.apply(m.decode_message(line))
            except (m.ProtocolError, IndexError):
                unreadable += 1
    recording.finished = True
    return recording, unreadable
