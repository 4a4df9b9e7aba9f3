"""How much a device's last-level cache holds, and emptying it of what a contender would find there."""

from __future__ import annotations

import ctypes
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import torch

LINUX = Path("/sys/devices/system/cpu")
ASSUMED_BYTES = 64 << 20
"""Where a system does not tell: more than the last-level cache of nearly every processor people sit at."""

OVER = 2
"""The flush touches so many times the cache: none replaces strictly the oldest line first, and a buffer of
just its size would leave a good part of the old lines in."""

MAX_FLUSH_BYTES = 1 << 30


def last_level_bytes(device: str) -> int | None:
    """Bytes of the last cache before the memory of `device` ("cpu" or "cuda:N"); None where it is not told.

    On a CPU the sum over all caches of the highest level, on CUDA the L2.
    """
    if device.startswith("cuda"):
        properties = torch.cuda.get_device_properties(torch.device(device))
        found = getattr(properties, "L2_cache_size", None)
        return int(found) if found else None
    try:
        if sys.platform == "linux":
            return _from_linux(LINUX) or _from_sysconf()
        if sys.platform == "darwin":
            return _from_darwin(_sysctl)
        if sys.platform == "win32":
            return from_windows_records(_windows_records())
    except (OSError, ValueError, struct.error, subprocess.SubprocessError):
        return None
    return None


def flush_bytes(device: str) -> int:
    """How large a buffer empties the cache of `device`."""
    return min(OVER * (last_level_bytes(device) or ASSUMED_BYTES), MAX_FLUSH_BYTES)


class CacheFlush:
    """Call it to leave the device's caches full of something else. Owns the buffer for that.

    Every line is read and written, by all threads, so that the private caches of each core go too. Raises
    what torch raises where the memory does not suffice, when it is made.
    """

    def __init__(self, device: str, size_bytes: int | None = None) -> None:
        self.size_bytes = flush_bytes(device) if size_bytes is None else size_bytes
        self._buffer = torch.zeros(max(1, self.size_bytes // 4), dtype=torch.float32, device=device)

    def __call__(self) -> None:
        self._buffer.add_(1.0)


def _from_linux(folder: Path) -> int | None:
    """From sysfs: a line for each cache of each core, those that cores share named once per core."""
    largest: dict[tuple[int, str], int] = {}
    for entry in folder.glob("cpu[0-9]*/cache/index[0-9]*"):
        try:
            level = int((entry / "level").read_text())
            kind = (entry / "type").read_text().strip()
            size = _in_bytes((entry / "size").read_text().strip())
            shared = (entry / "shared_cpu_list").read_text().strip()
        except (OSError, ValueError):
            continue
        if kind != "Instruction":
            largest[level, shared] = size
    return _of_last_level([(level, size) for (level, _), size in largest.items()])


def _of_last_level(caches: list[tuple[int, int]]) -> int | None:
    """Of (level, bytes) pairs, a cache each, the sum of the last level's."""
    last = max((level for level, _ in caches), default=0)
    return sum(size for level, size in caches if level == last) or None


def _in_bytes(text: str) -> int:
    """`32768K` as sysfs writes it."""
    factor = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1:], 1)
    return int(text.rstrip("KMG")) * factor


def _from_sysconf() -> int | None:
    for name in ("SC_LEVEL4_CACHE_SIZE", "SC_LEVEL3_CACHE_SIZE", "SC_LEVEL2_CACHE_SIZE"):
        if name in os.sysconf_names and (size := os.sysconf(name)) > 0:
            return size
    return None


def _from_darwin(read: Callable[[str], int | None]) -> int | None:
    """L3 on Intel; on Apple silicon the largest cluster's L2, since the system tells of no other."""
    return read("hw.l3cachesize") or read("hw.perflevel0.l2cachesize") or read("hw.l2cachesize")


def _sysctl(name: str) -> int | None:
    told = subprocess.run(["sysctl", "-n", name], capture_output=True, timeout=5, check=False)
    text = told.stdout.decode("ascii", "replace").strip()
    return int(text) or None if told.returncode == 0 and text.isdigit() else None


_RELATION_CACHE = 2
_HEADER = struct.Struct("<II")
_CACHE = struct.Struct("<BBHII")
_INSTRUCTION = 1


def from_windows_records(data: bytes) -> int | None:
    """From what GetLogicalProcessorInformationEx(RelationCache) writes: a record for each cache."""
    found, place = [], 0
    while place + _HEADER.size <= len(data):
        relation, length = _HEADER.unpack_from(data, place)
        if length < _HEADER.size or place + length > len(data):
            raise ValueError("a record of a cache is cut off")
        if relation == _RELATION_CACHE:
            level, _, _, size, kind = _CACHE.unpack_from(data, place + _HEADER.size)
            if kind != _INSTRUCTION:
                found.append((level, size))
        place += length
    return _of_last_level(found)


def _windows_records() -> bytes:
    ask = ctypes.windll.kernel32.GetLogicalProcessorInformationEx  # type: ignore[attr-defined]
    length = ctypes.c_uint32(0)
    ask(_RELATION_CACHE, None, ctypes.byref(length))
    buffer = ctypes.create_string_buffer(length.value)
    if not ask(_RELATION_CACHE, buffer, ctypes.byref(length)):
        raise OSError("the system does not tell of its caches")
    return buffer.raw[: length.value]
