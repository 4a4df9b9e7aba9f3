"""The worker's main loop: one unit of a run at a time, events in between. Imports torch."""

from __future__ import annotations

import os
import time
from collections.abc import Generator

from app.core import messages as m
from app.core.environment import Device, Environment
from app.core.plan import made_out_device
from app.core.workload import Workload
from app.engine import devices, process_state
from app.engine.background import Background
from app.engine.channel import BadLine, ClientGone, CommandArrived, Deliver, Event, Inbox, Outbox
from app.engine.extension_link import ExtensionLink
from app.engine.headless import HeadlessRun
from app.engine.implementations import Registry, shipped
from app.engine.lanes import Bench
from app.engine.live import LiveRun
from app.engine.own.guests import Guests
from app.engine.peaks import known_peaks
from app.engine.processes import end_descendants
from app.engine.profiler_link import ProfilerLink
from app.engine.profiler_protocol import CountPassed, CountRefused
from app.engine.run import DeviceLostError, Run, Units
from app.engine.shop import Shop
from app.engine.stopwatch import stopwatch_for
from app.engine.telemetry import Readings, TelemetryThread

EXIT_OK = 0
EXIT_DEVICE_LOST = 4
LONGEST_WAIT_S = 3600.0


class Scheduler:
    """Owns the services of one worker process and drives the current run. Not for use by threads."""

    def __init__(self, inbox: Inbox, outbox: Outbox, registry: Registry | None = None) -> None:
        process_state.fix_threads()
        self._inbox = inbox
        self._send = outbox.send
        self._devices: tuple[Device, ...] = devices.list_devices()
        self._run: Run | None = None
        self._units: Units | None = None
        self._is_paused = False
        self._leaving = False
        extension = ExtensionLink(outbox.send, self._extension_changed)
        profiler = ProfilerLink(
            inbox, self._counted, lambda text, level: outbox.send(m.Notice(level, text, time.time()))
        )
        background = Background(lambda token, error: inbox.deliver(lambda: self._prepared(token, error)))
        self._extension, self._profiler = extension, profiler
        self._peaks: Generator[None, None, None] | None = None
        self._guests = guests = Guests(inbox)
        self._shop = Shop(
            send=outbox.send,
            registry=shipped() if registry is None else registry,
            extension=extension,
            profiler=profiler,
            background=background,
            guests=guests,
            resolve=self._resolve,
            stopwatch=lambda device: stopwatch_for(_torch_device(device)),
            pid=os.getpid(),
            wall=time.time,
            known_peaks=known_peaks(self._devices),
        )
        readings = Readings(
            has_children=lambda: (
                profiler.pid is not None or guests.are_there or self._shop.disturbance() != ""
            ),
            gpu=self._measured_gpu,
        )
        self._telemetry = TelemetryThread(readings, outbox.send)

    def environment(self) -> Environment:
        return devices.environment(self._devices)

    def run(self) -> int:
        """Work until the client leaves; return the exit code."""
        self._telemetry.start()
        step_at = time.monotonic()
        while True:
            event = self._inbox.take(self._wait(step_at))
            while event is not None:
                self._heed(event)
                if self._leaving:
                    return EXIT_OK
                step_at = 0.0
                event = self._inbox.take(0.0)
            self._profiler.look()
            if self._guests.seconds_left() is not None:
                step_at = 0.0
            if self._extension.look():
                step_at = 0.0
            if time.monotonic() < step_at:
                continue
            try:
                step_at = time.monotonic() + self._step()
            except DeviceLostError as error:
                self._shop.notice(f"{error}; a new worker is needed", "error")
                return EXIT_DEVICE_LOST

    @property
    def is_compiling(self) -> bool:
        """Whether a thread is inside torch, where nothing can stop it."""
        return self._shop.background.running

    def close(self) -> None:
        self._telemetry.stop()
        if self._run is not None:
            self._run.close()
        # From the leaves up: a compiler whose parent dies first is nobody's child any more.
        self._extension.close()
        self._guests.close()
        end_descendants()
        self._profiler.close()

    # ---- one unit --------------------------------------------------------------------------------------

    def _step(self) -> float:
        """Do one unit; return how long there is nothing to do after it."""
        # Between two units of a run, so that no sample is being taken; and alone, as samples are.
        if self._peaks is not None and not self._shop.disturbance():
            try:
                next(self._peaks)
            except StopIteration:
                self._peaks = None
            return 0.0
        if self._units is None or self._is_paused:
            return LONGEST_WAIT_S
        try:
            return next(self._units)
        except StopIteration:
            self._units = None
            return LONGEST_WAIT_S

    def _measure_peaks(self, asked: m.MeasurePeaks) -> None:
        if isinstance(self._run, HeadlessRun) and self._units is not None:
            # The time of its workloads must not be spent on anything else.
            reason = "a plan is being measured; ask again when it is done"
            self._send(m.PeaksRefused(asked.device, asked.dtype, reason))
        elif self._peaks is None:
            _, device = self._resolve(Workload(device=asked.device))
            self._peaks = self._shop.measure_peaks(device, asked.dtype, asked.threads, asked.again)

    def _wait(self, step_at: float) -> float:
        """Seconds until something is due if no event comes first."""
        idle = max(0.0, step_at - time.monotonic())
        limits = (
            self._profiler.seconds_left(),
            self._extension.seconds_left(),
            self._guests.seconds_left(),
        )
        return min([idle, *(limit for limit in limits if limit is not None)])

    def _heed(self, event: Event) -> None:
        if isinstance(event, Deliver):
            event.action()
        elif isinstance(event, CommandArrived):
            self._obey(event.command)
        elif isinstance(event, BadLine):
            self._shop.notice(f"ignored what the client said: {event.reason}", "warning")
        elif isinstance(event, ClientGone):
            self._leaving = True

    def _obey(self, command: m.Command) -> None:
        if isinstance(command, m.Start):
            self._start(command)
        elif isinstance(command, m.Pause):
            self._is_paused = True
            if self._run is not None:
                self._run.flush()
        elif isinstance(command, m.Resume):
            self._is_paused = False
        elif isinstance(command, m.Profile):
            if isinstance(self._run, LiveRun):
                self._run.recount()
        elif isinstance(command, m.Build):
            self._extension.start(command.clean)
        elif isinstance(command, m.CancelBuild):
            self._extension.cancel()
        elif isinstance(command, m.MeasurePeaks):
            self._measure_peaks(command)
        elif isinstance(command, m.Shutdown):
            self._leaving = True

    def _start(self, start: m.Start) -> None:
        """Replace the current run. A pause holds over it, until `Resume`."""
        # Said before anything that takes long: the client must know a slow start from a worker that hangs.
        for name in start.plan.implementations:
            self._send(m.ContenderState(start.generation, start.first_workload, name, "waiting"))
        bench = self._end_run()
        self._guests.keep_only({file.id for file in start.plan.own})
        self._profiler.forget()
        if start.live:
            self._run = LiveRun(start, self._shop, bench)
        else:
            if bench is not None:
                bench.close()
            self._run = HeadlessRun(start, self._shop)
        self._units = self._run.units()

    def _end_run(self) -> Bench | None:
        """Stop the run; return its bench, since the next may go on with it."""
        if self._run is None:
            return None
        if self._units is not None:
            self._units.close()
        run, self._run, self._units = self._run, None, None
        run.close()
        return run.bench

    # ---- what the services deliver ---------------------------------------------------------------------

    def _extension_changed(self) -> None:
        if self._run is not None:
            self._run.extension_changed()

    def _counted(self, reply: CountPassed | CountRefused) -> None:
        if self._run is not None:
            self._run.counted(reply)

    def _prepared(self, token: object, error: BaseException | None) -> None:
        if self._run is not None:
            self._run.prepared_in_background(token, error)

    def _resolve(self, workload: Workload) -> tuple[Workload, Device]:
        return made_out_device(workload, self._devices)

    def _measured_gpu(self) -> str | None:
        """The GPU that is being measured on now. Read by the telemetry thread."""
        run = self._run
        bench = run.bench if run is not None else None
        if bench is None or self._is_paused or self._units is None:
            return None
        return bench.workload.device if bench.workload.device.startswith("cuda") else None


def _torch_device(name: str):  # type: ignore[no-untyped-def]
    import torch

    return torch.device(name)
