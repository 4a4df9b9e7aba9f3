"""The worker process: commands in, messages out, torch in between.

`run_worker` answers before torch is loaded, then does one small unit of work at a time and looks at its
inbox between two units, so that a new `Start` waits for one block at most.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import TYPE_CHECKING

import msgspec

from app.core.messages import PROTOCOL, Fatal, Hello, Ready
from app.engine.channel import CommandReader, Inbox, Outbox, heed_signals
from app.engine.processes import claim_stdio, end_descendants, keep_freed_memory

if TYPE_CHECKING:
    from app.engine.implementations import Registry

EXIT_MISSING = 3
PATIENCE_S = 1.5
"""How long the main thread may take to end of itself before the process is ended under it."""


def run_worker(stdin_fd: int = 0, stdout_fd: int = 1, registry: Registry | None = None) -> int:
    """Serve one client over two descriptors until it goes; return the exit code.

    0: the client left or asked for it. 3: torch does not import. 4: the GPU's context is lost, and a new
    worker is needed. `registry` replaces the contenders that ship.
    """
    incoming, outgoing = claim_stdio(stdin_fd, stdout_fd)
    _set_defaults()
    keeps_memory = keep_freed_memory()
    inbox, outbox = Inbox(), Outbox(outgoing)
    outbox.send(Hello(os.getpid(), PROTOCOL, time.time()))
    heed_signals(inbox, _leave_soon)
    CommandReader(incoming, inbox, _leave_soon).start()
    try:
        import torch  # noqa: F401
    except BaseException as error:
        outbox.send(Fatal(f"torch does not import: {_one_line(error)}", _import_remedy(error)))
        return EXIT_MISSING
    from app.engine.scheduler import Scheduler

    scheduler = Scheduler(inbox, outbox, registry)
    environment = msgspec.structs.replace(scheduler.environment(), freed_memory_kept=keeps_memory)
    outbox.send(Ready(environment, time.time()))
    try:
        code = scheduler.run()
    finally:
        scheduler.close()
    if scheduler.is_compiling:
        # The interpreter's own cleaning up would take torch away from under that thread.
        sys.stderr.flush()
        os._exit(code)
    return code


def _set_defaults() -> None:
    """Quiet and frugal, unless the user said otherwise; before torch reads them."""
    os.environ.setdefault("KINETO_LOG_LEVEL", "6")
    # Compiling in a pool of processes would keep them alive, and the sampler from its cores.
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")


def _leave_soon() -> None:
    """End the process in `PATIENCE_S` if it has not ended by then; its children first."""

    def end() -> None:
        end_descendants()
        os._exit(0)

    timer = threading.Timer(PATIENCE_S, end)
    timer.daemon = True
    timer.start()


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _import_remedy(error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name == "torch":
        return f"install it for {sys.executable}: pip install torch"
    if sys.platform == "win32":
        return (
            "install the Microsoft Visual C++ Redistributable (x64), or torch once more: "
            "pip install --force-reinstall torch"
        )
    return f"install torch once more for {sys.executable}: pip install --force-reinstall torch"


if __name__ == "__main__":
    sys.exit(run_worker())
