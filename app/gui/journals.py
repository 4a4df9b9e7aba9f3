"""Where unsaved recordings live: a journal per session, offered again after a crash."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import platformdirs
from PySide6.QtCore import QLockFile

from app.core.journal import Journal

RECENT_KEPT = 10
RECENT_BYTES = 500_000_000
_NAME = re.compile(r"(\d{8}-\d{6})-\d+\.jsonl")


@dataclass(frozen=True)
class Found:
    """A journal on disk, and when its session began."""

    path: Path
    began: datetime
    bytes: int


class Journals:
    """The folder of journals. A lock beside each, held by the living, tells them from the dead's."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or data_folder()
        self._lock: QLockFile | None = None
        self._journal: Journal | None = None

    def take_over(self, path: Path, now: datetime) -> Journal:
        """A new journal for this process that goes on with what is in `path`, where that is a journal.

        One that an ended session left behind is moved, any other stays where it is.
        """
        target = self._new_path(now)
        if path.suffix == ".jsonl":
            target.parent.mkdir(parents=True, exist_ok=True)
            if path.parent == self.folder / "unsaved":
                os.replace(path, target)
                Path(str(path) + ".lock").unlink(missing_ok=True)
            else:
                shutil.copyfile(path, target)
        return self._open(target)

    def begin(self, now: datetime) -> Journal:
        """A new journal for this process."""
        return self._open(self._new_path(now))

    def _new_path(self, now: datetime) -> Path:
        path = self.folder / "unsaved" / f"{now:%Y%m%d-%H%M%S}-{os.getpid()}.jsonl"
        number = os.getpid()
        while path.exists():
            number += 1
            path = path.with_name(f"{now:%Y%m%d-%H%M%S}-{number}.jsonl")
        return path

    def _open(self, path: Path) -> Journal:
        self._journal = Journal(path)
        self._lock = _lock_of(path)
        self._lock.tryLock(0)
        return self._journal

    def end(self, keep: bool) -> None:
        """Close this process's journal, among the recent ones if it is to be kept."""
        if self._journal is None:
            return
        journal, self._journal = self._journal, None
        journal.close(remove=not keep)
        if keep:
            recent = self.folder / "recent"
            recent.mkdir(parents=True, exist_ok=True)
            os.replace(journal.path, recent / journal.path.name)
            self._prune()
        if self._lock is not None:
            self._lock.unlock()
            self._lock = None

    def abandoned(self) -> list[Found]:
        """Journals of sessions that did not end by themselves, the newest first; empty ones are removed."""
        found = []
        for path in sorted((self.folder / "unsaved").glob("*.jsonl"), reverse=True):
            if self._journal is not None and path == self._journal.path:
                continue
            lock = _lock_of(path)
            if not lock.tryLock(0):
                continue
            lock.unlock()
            if b'"type":"Samples"' not in _beginning(path):
                path.unlink(missing_ok=True)
                continue
            found.append(_found(path))
        return found

    def recent(self) -> list[Found]:
        """Journals of sessions that were closed without saving, the newest first."""
        return [_found(path) for path in sorted((self.folder / "recent").glob("*.jsonl"), reverse=True)]

    def _prune(self) -> None:
        total = 0
        for index, found in enumerate(self.recent()):
            total += found.bytes
            if index >= RECENT_KEPT or (index > 0 and total > RECENT_BYTES):
                found.path.unlink(missing_ok=True)


def data_folder() -> Path:
    """Where this user's sessions are kept; ATTNSCOPE_DATA_DIR says otherwise."""
    override = os.environ.get("ATTNSCOPE_DATA_DIR")
    return Path(override) if override else Path(platformdirs.user_data_dir("attnscope", appauthor=False))


def _lock_of(path: Path) -> QLockFile:
    lock = QLockFile(str(path) + ".lock")
    # Never by age: a session may run for days. Qt frees the lock of a process that is gone.
    lock.setStaleLockTime(0)
    return lock


def _beginning(path: Path, limit: int = 4_000_000) -> bytes:
    with path.open("rb") as file:
        return file.read(limit)


def _found(path: Path) -> Found:
    match = _NAME.fullmatch(path.name)
    stat = path.stat()
    began = datetime.strptime(match[1], "%Y%m%d-%H%M%S") if match else datetime.fromtimestamp(stat.st_mtime)
    return Found(path, began, stat.st_size)
