"""Measuring a plan headless: workers one after the other, until every workload is done."""

from __future__ import annotations

from app.commands.exits import MISSING, CommandError
from app.commands.progress import Progress
from app.commands.run_journal import RunJournal
from app.commands.worker_process import WorkerProcess
from app.core import messages as m
from app.core.plan import DeviceError, Plan, on_devices
from app.core.recording import Recording
from app.core.supervision import Exclusions, Supervisor, describe_exit


class Measuring:
    """Measures `plan` into `recording`, from where an earlier run broke off if the journal has one."""

    def __init__(self, plan: Plan, recording: Recording, progress: Progress, journal: RunJournal) -> None:
        self._plan = plan
        self._recording, self._progress, self._journal = recording, progress, journal
        self._supervisor, self._exclusions = Supervisor(), Exclusions()
        self._generation = recording.generation
        self._careful = False
        self._next: int | None = None
        """The workload that is due; None before the first worker told what there is to run on."""

    def run(self) -> bool:
        """False where it was given up, since the workers died again and again. Raises CommandError."""
        recording = self._recording
        while not recording.finished:
            with WorkerProcess() as worker:
                self._progress.status("loading torch")
                while (message := worker.next()) is not None:
                    if self._take(message, worker):
                        return True
                recording.build.abandoned()
                decision = self._supervisor.worker_died(worker.exit_status, recording.active)
                if recording.environment is None and not decision.restart:
                    last = next(iter(reversed(worker.stderr_lines)), "")
                    raise CommandError(MISSING, f"the worker {describe_exit(worker.exit_status)}: {last}")
            self._progress.line(f"warning: {decision.sentence}")
            self._careful = decision.careful
            if decision.blamed is not None:
                workload = self._plan.workloads[self._next or 0]
                self._exclusions.blame(decision.blamed, workload, decision.sentence)
            if not decision.restart:
                recording.finished = True
        return False

    def _take(self, message: m.Message, worker: WorkerProcess) -> bool:
        """Take a message in and answer it; True when all is measured."""
        if isinstance(message, m.BuildFinished):
            self._journal.check_build(message)
        taken = self._recording.apply(message)
        if taken:
            self._journal.write(message)
        self._progress.message(message, self._recording)
        if isinstance(message, m.Ready):
            self._plan = _on_devices(self._plan, message)
            if self._next is None:
                self._next = self._journal.start_with(self._plan, message.environment)
            if self._next == len(self._plan.workloads):
                self._recording.finished = True
            else:
                self._start(worker)
        elif isinstance(message, m.Fatal):
            raise CommandError(MISSING, message.sentence)
        elif isinstance(message, m.WorkloadDone) and taken:
            self._next = message.workload + 1
            if self._is_other_company(message.workload):
                self._start(worker)
        return self._recording.finished

    def _start(self, worker: WorkerProcess) -> None:
        assert self._next is not None
        self._generation += 1
        start = m.Start(
            self._generation,
            self._plan,
            careful=self._careful,
            excluded=self._exclusions.at(self._plan.workloads[self._next]),
            first_workload=self._next,
        )
        self._recording.begin(start)
        self._journal.write(start)
        self._progress.begin(self._plan, self._next)
        worker.send(start)

    def _is_other_company(self, done: int) -> bool:
        """Whether a contender that could not run in the workload just done may run in the next, or not."""
        workloads = self._plan.workloads[done : done + 2]
        return len(workloads) == 2 and self._exclusions.at(workloads[0]) != self._exclusions.at(workloads[1])


def _on_devices(plan: Plan, ready: m.Ready) -> Plan:
    try:
        return on_devices(plan, ready.environment)
    except DeviceError as error:
        raise CommandError(MISSING, str(error)) from None
