"""A worker without torch: speaks the protocol, samples made-up numbers, misbehaves on request.

ATTNSCOPE_FAKE is a comma list: `slow-start`, `silent` (never samples), `segfault:NAME` (dies while NAME is
prepared), `segfault:NAME:LENGTH` (in that cell of a sweep only), `stuck` (answers nothing but its first
Start), `fatal`, `garbage`, `deaf` (ignores Shutdown and the end of input), `rebuild` (a clean build wants a
new worker). A run that is not live measures each workload for a few rounds.
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT)

from app.core import messages as m  # noqa: E402
from app.core.catalog import TWIN  # noqa: E402
from tests import factories  # noqa: E402

SWEEP_ROUNDS = 12
FAULTS = [part for part in os.environ.get("ATTNSCOPE_FAKE", "").split(",") if part]


def send(message: m.Message) -> None:
    sys.stdout.buffer.write(m.encode(message))
    sys.stdout.buffer.flush()


def read(commands: queue.Queue[m.Command | None]) -> None:
    for line in sys.stdin.buffer:
        commands.put(m.decode_command(line))
    commands.put(None)


def prepare(start: m.Start, cell: int = 0) -> None:
    length = start.plan.workloads[cell].seq_len
    for name in start.plan.implementations:
        if name in start.excluded:
            send(m.ContenderState(start.generation, cell, name, "failed", start.excluded[name]))
            continue
        send(m.Active(start.generation, cell, name, "prepare"))
        if f"segfault:{name}" in FAULTS or f"segfault:{name}:{length}" in FAULTS:
            os.kill(os.getpid(), signal.SIGSEGV)
        send(m.ContenderState(start.generation, cell, name, "ready"))


def sample(start: m.Start, number: int, cell: int = 0) -> None:
    names = tuple(n for n in start.plan.implementations if n not in start.excluded)
    twin = (*names, TWIN)
    made = []
    for index, name in enumerate(twin):
        median = factories.MEDIANS_S.get(start.plan.baseline if name == TWIN else name, 5e-4)
        made.append(m.Sample(number, index, time.time(), median * (1 + 0.01 * ((number * 7 + index) % 5)), 4))
    send(m.Samples(start.generation, cell, os.getpid(), twin, tuple(made)))
    if number == 5:
        for name in names:
            send(m.Checked(start.generation, cell, name, factories.accuracy()))


def main() -> int:
    commands: queue.Queue[m.Command | None] = queue.Queue()
    threading.Thread(target=read, args=(commands,), daemon=True).start()
    send(m.Hello(os.getpid(), m.PROTOCOL, time.time()))
    if "slow-start" in FAULTS:
        time.sleep(1.0)
    if "fatal" in FAULTS:
        send(m.Fatal("torch cannot be imported: made up.", "Install it again."))
        return 3
    send(m.Ready(factories.environment(), time.time()))
    if "garbage" in FAULTS:
        sys.stdout.buffer.write(b'Hello from a library\n{"type":"Nothing"}\n')
        sys.stdout.buffer.flush()
    start: m.Start | None = None
    number, cell, paused = 0, 0, False
    while True:
        try:
            command = commands.get(timeout=0.02)
        except queue.Empty:
            if start is not None and not paused and "silent" not in FAULTS:
                sample(start, number, cell)
                number += 1
                if not start.live and number == SWEEP_ROUNDS:
                    send(m.WorkloadDone(start.generation, cell, "max_seconds"))
                    number, cell = 0, cell + 1
                    if cell == len(start.plan.workloads):
                        send(m.RunDone(start.generation))
                        start = None
                    else:
                        prepare(start, cell)
            continue
        if command is None or isinstance(command, m.Shutdown):
            if "deaf" in FAULTS:
                continue
            return 0
        if isinstance(command, m.Start):
            if "stuck" in FAULTS and start is not None:
                time.sleep(60)
            start, number, cell, paused = command, 0, command.first_workload, False
            prepare(start, cell)
        elif isinstance(command, m.Pause):
            paused = True
        elif isinstance(command, m.Resume):
            paused = False
        elif isinstance(command, m.Build) and "rebuild" in FAULTS and command.clean:
            send(m.BuildFinished("/x.so", "second00", False, 1.0, needs_new_worker=True))
        elif isinstance(command, m.Build):
            send(m.BuildFinished("/x.so", "first000", True, 0.2))


if __name__ == "__main__":
    sys.exit(main())
