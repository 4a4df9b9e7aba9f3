"""A session's messages, written as they come, so that a crash loses at most the last second."""

from __future__ import annotations

import contextlib
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from app.core import messages as m
from app.core.recording import Recording


class Journal:
    """Appends every command that starts a run and every message to a file, a line each."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        torn = _is_torn(path)
        self._file: BinaryIO = path.open("ab")
        if torn:
            # What a crash cut off must not swallow the first line that follows.
            self._file.write(b"\n")
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


def _is_torn(path: Path) -> bool:
    """Whether a file ends in the middle of a line."""
    with contextlib.suppress(OSError), path.open("rb") as file:
        if file.seek(0, 2):
            file.seek(-1, 2)
            return file.read(1) != b"\n"
    return False


class Replay:
    """The recording that a journal's messages make, piece by piece. Raises OSError.

    A journal cut off in the middle of a line, as a crash leaves it, gives all whole ones; `unreadable`
    counts those that could not be read.
    """

    def __init__(self, path: Path) -> None:
        self.recording = Recording()
        self.unreadable = 0
        self._file = path.open("rb")

    def step(self, lines: int = 100) -> bool:
        """Read on. False: that was all, and the recording is complete."""
        for line in islice(self._file, lines):
            if line.strip():
                self._take(line)
            lines -= 1
        if lines:
            self.recording.finished = True
            self.close()
        return not lines

    def close(self) -> None:
        """Leave the rest unread."""
        self._file.close()

    def _take(self, line: bytes) -> None:
        try:
            if line.startswith(b'{"type":"Start"'):
                command = m.decode_command(line)
                assert isinstance(command, m.Start)
                self.recording.begin(command)
            else:
                self.recording.apply(m.decode_message(line))
        except (m.ProtocolError, IndexError):
            self.unreadable += 1


def replay(path: Path) -> tuple[Recording, int]:
    """A journal's whole recording, and how many lines could not be read. Raises OSError."""
    whole = Replay(path)
    while whole.step():
        pass
    return whole.recording, whole.unreadable
