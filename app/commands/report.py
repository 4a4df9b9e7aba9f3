"""`report`: a recording as a document, or two held against each other."""

from __future__ import annotations

import argparse

from app.commands import against, streams
from app.commands.exits import INPUT, OK, CommandError
from app.core import files
from app.exports import formats


def report(arguments: argparse.Namespace) -> int:
    """Write `arguments.recording`, or what changed in it since `arguments.against`, to a file or stdout."""
    limit = against.bound_of(arguments)
    recording = against.load(arguments.recording)
    bound = None
    if arguments.against is None:
        data = formats.FORMATS[arguments.format](recording)
    else:
        basis = against.basis_of(arguments)
        comparison = against.hold(against.load(arguments.against, "--against"), recording)
        data = formats.COMPARISON_FORMATS[arguments.format](comparison, basis)
        bound = None if limit is None else against.check(comparison, limit, basis)
    if arguments.out is None:
        streams.show_bytes(data)
    else:
        try:
            files.write_atomically(arguments.out, data)
        except OSError as error:
            raise CommandError(
                INPUT, f"--out {arguments.out}: cannot be written: {error.strerror or error}"
            ) from None
    if bound is None:
        return OK
    for sentence in against.sentences(bound):
        streams.complain(f"attnscope: {sentence}")
    return against.exit_code(bound)
