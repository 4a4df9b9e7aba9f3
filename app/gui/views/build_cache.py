"""What the cache on this machine says of a build: read as data, never written."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import msgspec

_MANIFEST = "manifest.json"
_MAX_BYTES = 1_000_000
_KEY = re.compile(r"[0-9a-f]{8,64}")


class SourceTime(msgspec.Struct, frozen=True):
    """One compiled source: seconds from the start of compiling, and seconds taken."""

    source: str
    job: int
    started_s: float
    seconds: float


class Timings(msgspec.Struct, frozen=True):
    """A full build: seconds a step, seconds of work in all, and what each source took."""

    check_s: float = 0.0
    compile_s: float = 0.0
    link_s: float = 0.0
    work_s: float = 0.0
    jobs: int = 1
    sources: tuple[SourceTime, ...] = ()


class _Library(msgspec.Struct, frozen=True):
    name: str = ""
    bytes: int = 0


class _Manifest(msgspec.Struct, frozen=True):
    built_at: float
    timings: Timings
    library: _Library = _Library()


@dataclass(frozen=True)
class CacheEntry:
    """A finished build on disk. `built_at` is seconds since 1970, `library_bytes` the library alone."""

    built_at: float
    library: str
    library_bytes: int
    timings: Timings
    others: int
    others_bytes: int


def read_entry(folder: str) -> CacheEntry | None:
    """The entry in `folder`; None where it lies on another machine, or is no entry of ours."""
    path = Path(folder)
    try:
        file = path / _MANIFEST
        if not folder or file.stat().st_size > _MAX_BYTES:
            return None
        manifest = msgspec.json.decode(file.read_bytes(), type=_Manifest)
    except (OSError, ValueError, msgspec.DecodeError):
        return None
    others, size = _others(path)
    return CacheEntry(
        manifest.built_at, manifest.library.name, manifest.library.bytes, manifest.timings, others, size
    )


def _others(folder: Path) -> tuple[int, int]:
    """How many other entries lie beside this one, and their bytes."""
    count = size = 0
    try:
        for other in folder.parent.iterdir():
            if other.name != folder.name and _KEY.fullmatch(other.name) and (other / _MANIFEST).is_file():
                count += 1
                size += sum(file.stat().st_size for file in other.iterdir() if file.is_file())
    except OSError:
        pass
    return count, size
