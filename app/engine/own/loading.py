"""A user's file turned into a forward pass. Runs the file's code: only in a process made for it."""

from __future__ import annotations

import linecache
import sys
import types
from collections.abc import Callable
from typing import Any

import attnscope
from app.core.own import OwnFile, OwnFileError, read_confirmed
from app.core.workload import Workload
from app.engine.failures import Failure, explain
from app.engine.inputs import PARTS, Forward, Inputs


class Misuse(Exception):  # noqa: N818
    """What a user's implementation did wrong: a clause without subject, as in `returned no tensor`."""

    def __init__(self, reason: str, remedy: str = "") -> None:
        self.remedy = remedy
        super().__init__(reason)


class Cannot(Misuse):
    """It says itself that it cannot run this workload."""


class OwnImplementation:
    """A loaded file: `unsupported` and `prepare` as every implementation has them."""

    def __init__(self, file: OwnFile) -> None:
        """Run the file, whose content must be the one that was confirmed.

        Raises `OwnFileError`, `Misuse`, and what the file raises.
        """
        self.file = file
        self._build, self._declaration = _declared_in(_run(file))

    def unsupported(self, workload: Workload) -> None:
        """Raises `Cannot` where it says so itself."""
        if workload.mode not in self._declaration.modes:
            raise Cannot(
                f"does not declare mode {workload.mode}",
                f'name it in the decorator: modes=(…, "{workload.mode}")',
            )
        supports = self._declaration.supports
        answer = True if supports is None else supports(workload)
        if isinstance(answer, str):
            raise Cannot(answer or "does not support this workload")
        if answer is False:
            raise Cannot("does not support this workload")

    def prepare(self, workload: Workload, inputs: Inputs) -> Forward:
        cache = () if inputs.cached is None else inputs.cached.with_room()
        forward = self._build(workload, parameters_of(inputs), *cache)
        if not callable(forward):
            raise Misuse(
                f"build returned {_kind(forward)}", "return a function forward(x) that returns a tensor"
            )
        x = inputs.x
        return lambda: forward(x)


def parameters_of(inputs: Inputs) -> attnscope.Parameters:
    parts = {name: inputs.parts[name] for name in PARTS}
    layer = inputs.layer
    return attnscope.Parameters(**parts, in_proj_weight=layer.in_proj_weight, in_proj_bias=layer.in_proj_bias)


def explained(error: BaseException, file: OwnFile | None) -> Failure:
    """What went wrong, with the line of the user's file where it did."""
    if isinstance(error, Misuse):
        state = "unavailable" if isinstance(error, Cannot) else "failed"
        return Failure(state, str(error), error.remedy)  # type: ignore[arg-type]
    if isinstance(error, OwnFileError):
        return Failure("failed", str(error), "reload it, and confirm what it holds now")
    failure = explain(error)
    line = _line_in(error, file) if file is not None else 0
    reason = failure.reason
    if file is not None and line and f"line {line}" not in reason:
        reason = f"{reason} ({file.name}, line {line})"
    remedy = failure.remedy
    if isinstance(error, ModuleNotFoundError) and not remedy:
        remedy = f"install it for {sys.executable}; a file beside it is not found, since one file is one implementation"
    # A missing operator is what this torch lacks; anything else unimplemented is the user's own.
    return Failure("failed", reason, remedy)


def _run(file: OwnFile) -> types.ModuleType:
    source = read_confirmed(file)
    # Registered as dataclasses, pickling and torch.compile expect of a module.
    module = types.ModuleType(file.id.replace("-", "_"))
    module.__file__ = file.path
    sys.modules[module.__name__] = module
    text = source.decode("utf-8", "replace")
    # Tracebacks and the compiler read lines by name: those that run, not those that an editor just saved.
    linecache.cache[file.path] = (len(source), None, text.splitlines(keepends=True), file.path)
    exec(compile(source, file.path, "exec", dont_inherit=True), module.__dict__)
    return module


def _declared_in(module: types.ModuleType) -> tuple[Callable[..., Any], attnscope.Declaration]:
    found = {
        id(value): value
        for value in vars(module).values()
        if isinstance(getattr(value, attnscope.MARK, None), attnscope.Declaration)
    }
    if not found:
        raise Misuse(
            "has no function decorated with @implementation",
            'decorate one: @implementation(title="My attention")',
        )
    if len(found) > 1:
        names = ", ".join(getattr(value, "__name__", "?") for value in found.values())
        raise Misuse(
            f"has {len(found)} functions decorated with @implementation ({names})",
            "one file is one implementation: move the others to files of their own",
        )
    build = next(iter(found.values()))
    return build, getattr(build, attnscope.MARK)


def _line_in(error: BaseException, file: OwnFile) -> int:
    line, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file.path:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _kind(value: object) -> str:
    return "nothing" if value is None else f"an object of type {type(value).__name__}"
