"""`report`: a recording as a document."""

from __future__ import annotations

import argparse

from app.commands import streams
from app.commands.exits import INPUT, OK, CommandError
from app.core import files
from app.exports import formats


def report(arguments: argparse.Namespace) -> int:
    """Write `arguments.recording` in `arguments.format` to a file or stdout."""
    try:
        recording = files.load(arguments.recording)
    except files.RecordingError as error:
        raise CommandError(INPUT, str(error)) from None
    for fault in recording.faults:
        streams.complain(f"attnscope: {arguments.recording}: {fault}")
    data = formats.FORMATS[arguments.format](recording)
    if arguments.out is None:
        streams.show_bytes(data)
        return OK
    try:
        files.write_atomically(arguments.out, data)
    except OSError as error:
        raise CommandError(
            INPUT, f"--out {arguments.out}: cannot be written: {error.strerror or error}"
        ) from None
    return OK
