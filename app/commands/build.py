"""`build`: the extension, built or found in the cache."""

from __future__ import annotations

import argparse
import time
from typing import Any

import msgspec

from app.commands import streams
from app.commands.exits import INTERRUPTED, MISSING, OK, WRONG, CommandError
from app.commands.progress import Progress
from app.core import messages as m
from app.core.launch import make_extension_importable
from app.core.recording import Recording

POLL_S = 0.05


def build(arguments: argparse.Namespace) -> int:
    """Build the extension and load it once; say how it went. Returns the exit code."""
    make_extension_importable()
    try:
        from app.engine.extension import ExtensionBuild, exit_code
    except ImportError as error:
        raise CommandError(MISSING, f"{error}; install AttnScope again: pip install -e .") from None
    progress = Progress()
    told = Recording()
    work = ExtensionBuild(clean=arguments.clean)
    interrupted = False
    try:
        _tell(work.start(), told, progress)
    except (ImportError, OSError) as error:
        # What torch raises where one of its libraries is missing or does not fit.
        raise CommandError(MISSING, f"torch does not import: {type(error).__name__}: {error}") from None
    while work.is_running:
        try:
            time.sleep(POLL_S)
            _tell(work.poll(), told, progress)
        except KeyboardInterrupt:
            interrupted = True
            work.cancel()
    outcome = work.finished or work.failure
    if outcome is None:
        raise CommandError(WRONG, "the build ended without a result")
    if arguments.json:
        streams.show_json(document(outcome, told))
    elif isinstance(outcome, m.BuildFinished):
        streams.show(outcome.library)
    else:
        _explain(outcome)
    if interrupted:
        return INTERRUPTED
    if isinstance(outcome, m.BuildFailed):
        return exit_code(outcome)
    return OK


def document(outcome: m.BuildFinished | m.BuildFailed, told: Recording) -> dict[str, Any]:
    """What `--json` prints: the outcome, the steps with their seconds, the parts of the key."""
    data: dict[str, Any] = {"ok": isinstance(outcome, m.BuildFinished)}
    data |= {k: v for k, v in msgspec.to_builtins(outcome).items() if k != "type"}
    steps = told.build.steps.values()
    data["steps"] = [{"step": s.step, "state": s.state, "seconds": s.seconds} for s in steps]
    key = told.build.key
    data["key_parts"] = {name: text for name, (_, text) in key.parts.items()} if key is not None else {}
    data["changed"] = list(key.changed) if key is not None else []
    return data


def _tell(messages: list[m.BuildMessage], told: Recording, progress: Progress) -> None:
    for message in messages:
        told.apply(message)
        if isinstance(message, m.BuildLog):
            progress.log(message)
        elif not isinstance(message, m.BuildFailed):
            progress.message(message, told)


def _explain(failure: m.BuildFailed) -> None:
    lines = [f"attnscope: {failure.sentence}"]
    if failure.first_error:
        lines += ["", failure.first_error, ""]
    lines += [f"  {number}. {remedy}" for number, remedy in enumerate(failure.remedies, 1)]
    if failure.log_path:
        lines.append(f"  The compiler's whole output: {failure.log_path}")
    streams.complain("\n".join(lines))
