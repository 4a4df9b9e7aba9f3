"""What a build is of: sources, flags, the parts of its key, and the finished entry that answers to them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import _cache, _flags, _sources
from ._events import BuildError
from ._toolchain import Compiler, find_compiler, fingerprint, short_version

LIBRARY = "self_attention_ext"
COMPILERS = "compilers.json"


@dataclass(frozen=True)
class Plan:
    """Everything but the compiler, which may be missing where a finished entry will do."""

    root: Path
    source_folder: Path
    sources: tuple[str, ...]
    headers: tuple[str, ...]
    facts: Mapping[str, Any]
    compile_flags: tuple[str, ...]
    parts: _cache.Parts

    @property
    def library(self) -> str:
        suffix = ".dll" if self.facts["machine"].startswith("win32") else ".so"
        return LIBRARY + suffix


def make_plan(root: Path, facts: Mapping[str, Any]) -> Plan:
    """Reads the sources. Raises BuildError of kind no_sources."""
    try:
        folder = _sources.source_folder()
        sources, headers = _sources.sources(folder), _sources.headers(folder)
        part = _cache.sources_part(sources, headers)
    except OSError as error:
        raise BuildError("no_sources", f"The operator's C++ sources cannot be read: {error}.") from None
    flags = _flags.compile_flags(cxx11_abi=facts["cxx11_abi"])
    standard = facts["standard"] or ""
    return Plan(
        root,
        folder,
        tuple(path.name for path in sources),
        tuple(path.name for path in headers),
        facts,
        flags,
        {
            "sources": part,
            "torch": _cache.torch_part(facts),
            "python": _cache.python_part(facts),
            "flags": _cache.flags_part([*flags, standard, *_flags.link_flags(), *_flags.LIBRARIES]),
        },
    )


def copy_sources(plan: Plan, folder: Path) -> bool:
    """Copies the sources into the folder; False if they were edited since the plan read them."""
    for name in (*plan.sources, *plan.headers):
        shutil.copyfile(plan.source_folder / name, folder / name)
    copied = _cache.sources_part(
        [folder / name for name in plan.sources], [folder / name for name in plan.headers]
    )
    return copied.digest == plan.parts["sources"].digest


def known_version(root: Path, compiler: Compiler) -> str | None:
    """The version text of a compiler seen before, by its content, without starting it."""
    mark = fingerprint(compiler)
    text = _cache.read_json(root / COMPILERS).get(mark or "")
    return text if isinstance(text, str) else None


def remember_version(root: Path, compiler: Compiler, text: str) -> None:
    mark = fingerprint(compiler)
    if mark is not None:
        _cache.write_json(root / COMPILERS, {**_cache.read_json(root / COMPILERS), mark: text})


def with_compiler(plan: Plan, compiler: Compiler, version: str) -> _cache.Parts:
    part = _cache.compiler_part(compiler.path, version, short_version(version, compiler.path))
    return {name: {**plan.parts, "compiler": part}[name] for name in _cache.PARTS}


def find_entry(plan: Plan, environ: Mapping[str, str]) -> tuple[_cache.Entry | None, str]:
    """A finished entry for this plan, found without starting any process, and a note about the compiler.

    A compiler seen before takes part in the key. One that is missing or never seen cannot have built
    anything yet, and asking it for its version would start it: the newest entry that agrees in all other
    parts is taken then.
    """
    try:
        compiler = find_compiler(environ)
    except BuildError:
        compiler = None
    version = known_version(plan.root, compiler) if compiler is not None else None
    if compiler is not None and version is not None:
        key = _cache.key_of(with_compiler(plan, compiler, version))
        return _cache.read_entry(plan.root / key), ""
    for entry in _cache.entries(plan.root):
        if all(entry.parts[name].digest == plan.parts[name].digest for name in plan.parts):
            who = (
                "no compiler was found"
                if compiler is None
                else f"{compiler.command[0]} has not been seen before"
            )
            return entry, f"{who}: taking the entry that {entry.parts['compiler'].text} built"
    return None, ""
