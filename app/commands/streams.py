"""Standard streams as they are found: closed, full, or speaking an alphabet without our signs."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator

import msgspec

from app.commands.exits import INPUT, CommandError
from app.core.messages import encoded

STREAMS = ((0, "stdin", os.O_RDONLY), (1, "stdout", os.O_WRONLY), (2, "stderr", os.O_WRONLY))


def settle() -> None:
    """Make the three streams usable. Call before anything opens a file.

    A descriptor that was closed at the start would be given to the next file or pipe that is opened, and
    what is printed would end up there: it becomes the null device. Signs that the stream's encoding lacks
    are written as escapes, since `×` must not end a run on a terminal that knows no `×`.
    """
    for number, name, mode in STREAMS:
        if getattr(sys, name) is None:
            with contextlib.suppress(OSError):
                _open_null(number, mode)
                way = "r" if mode == os.O_RDONLY else "w"
                setattr(sys, name, os.fdopen(number, way, encoding="utf-8", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def show(text: str) -> None:
    """Print `text` and a line end on stdout. Raises CommandError where that cannot be written."""
    with _writing():
        print(text, flush=True)


def show_bytes(data: bytes) -> None:
    """Write `data`, a document in UTF-8 whatever stdout's own encoding. Raises CommandError as `show`."""
    with _writing():
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def show_json(value: object) -> None:
    """One JSON document, indented."""
    show_bytes(msgspec.json.format(encoded(value)) + b"\n")


def complain(text: str) -> None:
    """Print `text` on stderr, if anybody can hear it."""
    with contextlib.suppress(OSError, ValueError):
        print(text, file=sys.stderr, flush=True)


@contextlib.contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        # The reader of our output has gone, as `| head` does: no fault, and nobody to tell.
        _abandon_stdout()
    except OSError as error:
        _abandon_stdout()
        raise CommandError(INPUT, f"stdout: cannot be written: {error.strerror or error}") from None


def _abandon_stdout() -> None:
    """Python writes what is left once more at its end, and would complain of the same fault again."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


@contextlib.contextmanager
def ends_are_interrupts() -> Iterator[None]:
    """A closed terminal or a plain `kill` is taken as Ctrl+C: what was measured is saved."""
    with _handling(_interrupt, ("SIGTERM", "SIGHUP")):
        yield


@contextlib.contextmanager
def no_interrupts() -> Iterator[None]:
    """For writing results: a second Ctrl+C of an impatient hand must not leave half of them."""
    with _handling(signal.SIG_IGN, ("SIGINT", "SIGTERM", "SIGHUP")):
        yield


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


@contextlib.contextmanager
def _handling(handler: object, names: tuple[str, ...]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {}
    for name in names:
        number = getattr(signal, name, None)
        # Who started us with a signal ignored, as nohup does, wants it ignored.
        if number is not None and signal.getsignal(number) not in (signal.SIG_IGN, None):
            before[number] = signal.signal(number, handler)  # type: ignore[arg-type]
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def _open_null(number: int, mode: int) -> None:
    try:
        os.fstat(number)
    except OSError:
        null = os.open(os.devnull, mode)
        if null != number:
            os.dup2(null, number)
            os.close(null)
