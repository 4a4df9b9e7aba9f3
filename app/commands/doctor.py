"""`doctor`: what works here, what does not, and the way out."""

from __future__ import annotations

import argparse
import os
import queue
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app.commands import streams
from app.commands.exits import MISSING, OK
from app.commands.window import HEADLESS, what_is_missing, why_unreachable
from app.commands.worker_process import WorkerProcess
from app.core import messages as m
from app.core.doctor import LEVELS, Check, checks, head_counts
from app.core.launch import make_extension_importable
from app.core.recording import Recording
from app.core.supervision import describe_exit
from app.exports.rows import environment_rows

READY_S = 120.0
TELEMETRY_S = 3.0
GLYPHS = {"fail": "✗", "warning": "!", "ok": "✓", "optional": "–"}


def doctor(arguments: argparse.Namespace) -> int:
    """Ask a worker what there is, look at the rest, print it. 3 if something that is needed cannot work."""
    recording, trouble = _examine(arguments.peaks)
    found = [*checks(recording.environment, None, recording.telemetry), *trouble]
    if recording.environment is None:
        # Without a worker there is nothing to say of torch but why.
        found = [check for check in found if check.id != "torch"] + [_no_worker(recording)]
    found += [compiler(), nvcc(os.environ), _screen()]
    found.sort(key=lambda check: LEVELS.index(check.level))
    if arguments.json:
        streams.show_json(_document(recording, found))
    else:
        streams.show(_text(recording, found))
    return MISSING if any(check.level == "fail" for check in found) else OK


def compiler() -> Check:
    """Which C++ compiler would build the extension."""
    make_extension_importable()
    try:
        from self_attention_ext._events import BuildError
        from self_attention_ext._toolchain import find_compiler
    except ImportError as error:
        return Check("compiler", "Compiler", "fail", f"{error}", "Install AttnScope again: pip install -e .")
    try:
        return Check("compiler", "Compiler", "ok", find_compiler(os.environ).path)
    except BuildError as error:
        remedy = error.remedies[0] if error.remedies else ""
        return Check("compiler", "Compiler", "fail", str(error).rstrip("."), remedy)


def nvcc(environ: Mapping[str, str]) -> Check:
    """Whether the CUDA compiler is there, and where it was looked for. The extension does without it."""
    home = environ.get("CUDA_HOME") or environ.get("CUDA_PATH")
    places = ["PATH", *([f"CUDA_HOME ({home})"] if home else [])]
    path = shutil.which("nvcc", path=environ.get("PATH"))
    if path is None and home:
        inside = Path(home) / "bin" / "nvcc"
        path = str(inside) if inside.is_file() else None
    if path is not None:
        return Check("nvcc", "nvcc", "ok", path)
    return Check(
        "nvcc", "nvcc", "optional",
        f"not found in {' or '.join(places)}: CUDA kernels cannot be compiled; the extension and native "
        "PyTorch need none",
    )  # fmt: skip


PEAKS_S = 120.0


def _examine(measure_peaks: str | None = None) -> tuple[Recording, list[Check]]:
    """What a worker tells; with a dtype in `measure_peaks` it measures every usable device's peaks anew."""
    recording = Recording()
    awaited = 0
    end = time.monotonic() + READY_S
    refused: list[Check] = []
    with WorkerProcess() as worker:
        try:
            while recording.environment is None or not recording.telemetry or awaited:
                message = worker.next(timeout=max(0.0, end - time.monotonic()))
                if message is None:
                    break
                recording.apply(message)
                if isinstance(message, m.Ready):
                    end = time.monotonic() + TELEMETRY_S
                    for device in message.environment.devices if measure_peaks else ():
                        if device.usable:
                            worker.send(m.MeasurePeaks(device.id, measure_peaks or "", again=True))
                            awaited += 1
                            end = time.monotonic() + PEAKS_S
                elif isinstance(message, (m.PeaksMeasured, m.PeaksRefused)):
                    awaited -= 1
                    if isinstance(message, m.PeaksRefused):
                        refused.append(Check("peaks", "Peaks", "warning", message.reason))
        except queue.Empty:
            pass
        if recording.environment is None and recording.fatal is None:
            worker.stop()
            last = next(iter(reversed(worker.stderr_lines)), "it said nothing")
            how = describe_exit(worker.exit_status)
            return recording, [Check("worker", "Worker", "fail", f"{how}: {last}")]
    if awaited:
        late = f"not measured within {PEAKS_S:.0f} s"
        refused.append(Check("peaks", "Peaks", "warning", late, "Close other programs and try again."))
    return recording, refused


def _no_worker(recording: Recording) -> Check:
    if recording.fatal is not None:
        return Check("torch", "PyTorch", "fail", recording.fatal.reason, recording.fatal.remedy)
    return Check("torch", "PyTorch", "fail", "the measuring process did not start")


def _screen() -> Check:
    import sys

    missing = what_is_missing(os.environ, sys.platform) or why_unreachable(os.environ, sys.platform)
    if missing:
        return Check("screen", "Window", "optional", missing.split(". ")[0], f"Without a window: {HEADLESS}")
    return Check("screen", "Window", "ok", "can open here")


def _document(recording: Recording, found: list[Check]) -> dict[str, Any]:
    return {
        "ok": not any(check.level == "fail" for check in found),
        "counts": head_counts(found),
        "checks": found,
        "environment": recording.environment,
    }


def _text(recording: Recording, found: list[Check]) -> str:
    counts = head_counts(found)
    lines = [" · ".join(f"{counts[level]} {level}" for level in LEVELS), ""]
    for check in found:
        lines.append(f"{GLYPHS[check.level]} {check.title:<12} {check.found}")
        lines += [f"  {'':<12} {line}" for line in (check.action, check.command) if line]
    lines.append("")
    lines += [f"  {title:<12} {value}" for title, value in environment_rows(recording.environment)]
    return "\n".join(lines)
