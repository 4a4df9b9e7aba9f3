"""The build cache: per user, keyed by content, published by one rename, guarded by a lock the kernel frees.

<root>/<key>/                  an entry: the library, manifest.json, build.log
<root>/<key>.lock              held while its entry is built; removed afterwards
<root>/<key>.building-…/       a build in progress; one left behind is cleared by the next build
<root>/<key>.stale-…/          an entry that did not load, set aside
<root>/compilers.json          version texts of compilers seen, by content
<root>/last_build.json         how long the last full build took, and its sources
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ._events import BuildError
from ._lock import Busy, Lock

MANIFEST = "manifest.json"
LOG = "build.log"
SCHEMA = 1
PARTS = ("sources", "torch", "python", "compiler", "flags")
_KEY = re.compile(r"[0-9a-f]{16}")
_OURS = re.compile(r"[0-9a-f]{16}(\.(building|stale)-[0-9a-z-]+)?")


@dataclass(frozen=True)
class Part:
    """One part of a key: the digest of its content, and what a person calls it."""

    digest: str
    text: str


Parts = dict[str, Part]


@dataclass(frozen=True)
class Entry:
    """A finished build. `size` is its folder's in bytes, `built_at` seconds since 1970."""

    key: str
    folder: Path
    library: Path
    size: int
    built_at: float
    parts: Parts
    manifest: dict[str, Any]


def digest(*pieces: str | bytes) -> str:
    """A digest of pieces in order; where one ends and the next begins counts."""
    total = hashlib.sha256()
    for piece in pieces:
        data = piece.encode() if isinstance(piece, str) else piece
        total.update(len(data).to_bytes(8, "little"))
        total.update(data)
    return total.hexdigest()[:16]


def sources_part(sources: Iterable[Path], headers: Iterable[Path]) -> Part:
    """Every source and header by name and content; file times mean nothing."""
    sources, headers = list(sources), list(headers)
    pieces: list[str | bytes] = []
    for path in (*sources, *headers):
        pieces += [path.name, path.read_bytes()]
    return Part(digest(*pieces), f"{len(sources)} files and {len(headers)} headers, by content")


def torch_part(facts: Mapping[str, Any]) -> Part:
    """The full version with its local tag, the CUDA tag and the ABI: a library often loads under the wrong
    one.
    """
    version, cuda = facts["torch_version"], facts["cuda"]
    return Part(
        digest("torch", version, str(cuda), str(facts["cxx11_abi"])),
        version.replace("+", " + ") + (f", CUDA {cuda}" if cuda else ""),
    )


def python_part(facts: Mapping[str, Any]) -> Part:
    return Part(
        digest("python", facts["python_tag"], facts["machine"]), f"{facts['python_tag']}, {facts['machine']}"
    )


def compiler_part(path: str, version_text: str, name: str) -> Part:
    return Part(digest("compiler", path, version_text), name)


def flags_part(flags: Iterable[str]) -> Part:
    flags = list(flags)
    return Part(digest("flags", *flags), f"{len(flags)} flags")


def key_of(parts: Parts) -> str:
    return digest(*(f"{name}={parts[name].digest}" for name in PARTS))


def changed_parts(parts: Parts, before: Parts) -> tuple[str, ...]:
    """Names of the parts that differ, in order."""
    return tuple(
        name
        for name in PARTS
        if name in parts and parts[name].digest != getattr(before.get(name), "digest", None)
    )


# ---- where it lies ---------------------------------------------------------------------------------------


def default_root(environ: Mapping[str, str], platform: str = sys.platform) -> Path:
    """The user's cache folder by the platform's convention; never inside the installed package."""
    home = Path(os.path.expanduser("~"))
    if platform == "win32":
        base = Path(environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
        return base / "attnscope" / "Cache" / "extension"
    if platform == "darwin":
        return home / "Library" / "Caches" / "attnscope" / "extension"
    named = environ.get("XDG_CACHE_HOME", "")
    return Path(named if os.path.isabs(named) else home / ".cache") / "attnscope" / "extension"


def open_root(asked: str | None, environ: Mapping[str, str]) -> tuple[Path, str]:
    """A cache folder that can be written, and a note where it is not the first choice.

    `asked`, or ATTNSCOPE_CACHE_DIR, is taken or refused; the default gives way to a private temporary folder.
    Raises BuildError of kind cache_unusable, naming the folder.
    """
    named = asked or environ.get("ATTNSCOPE_CACHE_DIR") or ""
    if named:
        root = Path(os.path.abspath(os.path.expanduser(named)))
        problem = _make_writable(root)
        if problem:
            raise BuildError(
                "cache_unusable",
                f"The build cache {root} cannot be used: {problem}.",
                remedies=(
                    "Name another folder in ATTNSCOPE_CACHE_DIR.",
                    f"Or make {root} a folder you can write to.",
                ),
            )
        return root, ""
    root = default_root(environ)
    problem = _make_writable(root)
    if not problem:
        return root, ""
    owner = str(os.getuid()) if hasattr(os, "getuid") else "user"
    fallback = Path(tempfile.gettempdir()) / f"attnscope-extension-{owner}"
    second = _make_writable(fallback) or _not_private(fallback)
    if second:
        raise BuildError(
            "cache_unusable",
            f"The build cache {root} cannot be used: {problem}; nor can {fallback}: {second}.",
            remedies=("Name a folder you can write to in ATTNSCOPE_CACHE_DIR.",),
        )
    return fallback, f"the cache {root} cannot be used ({problem}); using {fallback} instead"


def _make_writable(root: Path) -> str:
    """Makes the folder and a file in it; the reason if that fails, otherwise nothing."""
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=root):
            pass
    except FileExistsError:
        return "it is not a folder"
    except NotADirectoryError:
        return "a part of its path is not a folder"
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _not_private(root: Path) -> str:
    """A shared temporary folder holds code we are about to run: it must be ours alone."""
    if not hasattr(os, "getuid"):
        return ""
    status = os.lstat(root)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o022:
        return "others can write to it"
    return ""


# ---- entries ---------------------------------------------------------------------------------------------


def read_json(path: Path) -> dict[str, Any]:
    """The file's object, or an empty one: a record that cannot be read is one that is not there."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Replaces the file in one step. Raises OSError."""
    scratch = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    try:
        scratch.write_text(json.dumps(value, indent=1), encoding="utf-8")
        os.replace(scratch, path)
    finally:
        scratch.unlink(missing_ok=True)


def read_entry(folder: Path) -> Entry | None:
    """The entry in this folder, or None if it is no entry. Does not check the library."""
    manifest = read_json(folder / MANIFEST)
    try:
        parts = {name: Part(*manifest["parts"][name]) for name in PARTS}
        if manifest["schema"] != SCHEMA or manifest["key"] != folder.name:
            return None
        # Read further on without a look: an entry that lacks them is none.
        _ = manifest["compiler"]["name"], manifest["flags"][:0], manifest["timings"]["jobs"]
        return Entry(
            folder.name,
            folder,
            folder / os.path.basename(manifest["library"]["name"]),
            sum(file.stat().st_size for file in folder.iterdir() if file.is_file()),
            float(manifest["built_at"]),
            parts,
            manifest,
        )
    except (KeyError, TypeError, ValueError, OSError):
        return None


def damage(entry: Entry) -> str:
    """Why the entry's library must not be loaded, or nothing: it is the file that the build wrote."""
    try:
        content = entry.library.read_bytes()
    except OSError as error:
        return f"{entry.library.name} cannot be read: {error.strerror}"
    if hashlib.sha256(content).hexdigest() != entry.manifest["library"].get("sha256"):
        return f"{entry.library.name} is not the file that was built: its checksum differs"
    return ""


def entries(root: str | Path) -> list[Entry]:
    """All entries, the newest first."""
    root = Path(root)
    try:
        folders = [folder for folder in root.iterdir() if _KEY.fullmatch(folder.name)]
    except OSError:
        return []
    found = [entry for entry in map(read_entry, folders) if entry is not None]
    return sorted(found, key=lambda entry: entry.built_at, reverse=True)


def remove_entries(root: str | Path, keep: Iterable[str] = ()) -> list[Entry]:
    """Removes entries and abandoned builds, except those of the keys kept or locked. Returns the entries
    removed.
    """
    root = Path(root)
    kept = set(keep)
    removed = []
    for entry in entries(root):
        if entry.key in kept:
            continue
        with contextlib.suppress(Busy), Lock(root, entry.key):
            shutil.rmtree(entry.folder, ignore_errors=True)
            removed.append(entry)
    remove_abandoned(root, *kept)
    return removed


def remove_abandoned(root: Path, *keep: str) -> None:
    """Removes what builds that were killed left behind, except of the keys kept or being built."""
    for path in sorted(root.iterdir()) if root.is_dir() else []:
        match = _OURS.fullmatch(path.name)
        if match and match.group(1) and path.name[:16] not in keep:
            with contextlib.suppress(Busy, OSError), Lock(root, path.name[:16]):
                shutil.rmtree(path, ignore_errors=True)


def set_aside(entry_folder: Path) -> None:
    """Takes an entry out of use. Its files may still be mapped by a process, so it is moved, then removed."""
    aside = entry_folder.with_name(f"{entry_folder.name}.stale-{secrets.token_hex(4)}")
    try:
        os.rename(entry_folder, aside)
    except FileNotFoundError:
        return
    shutil.rmtree(aside, ignore_errors=True)
