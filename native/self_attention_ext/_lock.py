"""One lock per cache entry. The kernel frees it when its holder dies, so no lock outlives a killed build.

The lock is on the open file, not on the file's existence: a file left behind by anybody blocks nobody.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from types import TracebackType

if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> bool:
        # Beyond the text that waiters read: a locked region cannot be read by others on Windows.
        os.lseek(descriptor, 1 << 20, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        # Any other OSError is raised: a file system without locks would look like one that is held for ever.
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


class Busy(Exception):  # noqa: N818
    """Somebody else holds the lock."""


class Lock:
    """`with Lock(root, key):` holds it or raises Busy at once; `try_acquire` says which."""

    def __init__(self, root: Path, key: str) -> None:
        self.path = root / f"{key}.lock"
        self._descriptor: int | None = None

    def try_acquire(self) -> bool:
        """Takes the lock if nobody holds it. Raises OSError where the file cannot be made."""
        while True:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                held = _try_lock(descriptor)
            except OSError as error:
                os.close(descriptor)
                raise OSError(error.errno, error.strerror, str(self.path)) from None
            if not held:
                os.close(descriptor)
                return False
            # The last holder may have removed the file between our opening and our locking it.
            try:
                same = os.path.samestat(os.fstat(descriptor), os.stat(self.path))
            except FileNotFoundError:
                same = False
            if same:
                break
            os.close(descriptor)
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.truncate(self.path, 0)
        os.write(descriptor, str(os.getpid()).encode())
        self._descriptor = descriptor
        return True

    def holder(self) -> int | None:
        """The process that holds it, by its own word; None while it is taking hold or letting go."""
        try:
            text = self.path.read_text(encoding="ascii")
        except (OSError, UnicodeDecodeError):
            return None
        return int(text) if text.isdecimal() else None

    def release(self) -> None:
        if self._descriptor is None:
            return
        if sys.platform == "win32":  # an open file cannot be removed there
            os.close(self._descriptor)
            with contextlib.suppress(OSError):
                self.path.unlink()
        else:
            with contextlib.suppress(OSError):
                self.path.unlink()
            os.close(self._descriptor)
        self._descriptor = None

    def __enter__(self) -> Lock:
        if not self.try_acquire():
            raise Busy(str(self.path))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
