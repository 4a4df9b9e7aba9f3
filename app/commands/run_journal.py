"""The journal of a run in its folder: what it has measured so far, so that a run cut off can go on."""

from __future__ import annotations

import time
from pathlib import Path

from app.commands.exits import INPUT, CommandError
from app.commands.progress import Progress
from app.core import messages as m
from app.core import resuming
from app.core.environment import Environment
from app.core.journal import Journal, replay
from app.core.plan import Plan
from app.core.recording import Recording
from app.core.sweep import finished_cells

NAME = "journal.jsonl"
FLUSH_S = 0.5
ANYWAY = "--resume-anyway goes on all the same, and notes it in the recording"


class RunJournal:
    """Writes what a run sends and receives to `DIR/journal.jsonl`, where there is a folder.

    `earlier` is the recording of a run that broke off and is gone on with; None for a fresh one.
    """

    def __init__(self, folder: Path | None, resume: bool, anyway: bool, progress: Progress) -> None:
        self.earlier: Recording | None = None
        self._anyway = anyway
        self._before: Environment | None = None
        self._journal: Journal | None = None
        self._path: Path | None = None
        self._held: list[m.Start | m.Message] = []
        """What came before it was clear that the run may go on: a refused one leaves the journal as it is."""
        self._flushed_s = 0.0
        self._progress = progress
        if folder is None:
            if resume:
                raise CommandError(INPUT, "--resume: needs --out DIR, the folder of the run that broke off")
            return
        path = folder / NAME
        try:
            if path.exists():
                self._take_up(path, resume)
            elif resume:
                progress.line(f"{folder}: no run broke off here; measuring from the start")
            self._path = path
        except OSError as error:
            raise CommandError(INPUT, f"{path}: cannot be used: {error.strerror or error}") from None

    def start_with(self, plan: Plan, now: Environment) -> int:
        """The workload to begin with. Raises CommandError where the earlier run was of something else."""
        earlier = self.earlier
        if earlier is None or earlier.plan is None:
            self._open()
            return 0
        changes = resuming.plan_changes(earlier.plan, plan)
        if changes:
            raise CommandError(
                INPUT,
                f"--resume: the run that broke off was of another plan: {'; '.join(changes)}. "
                "Use its profile, or run without --resume to measure all anew",
            )
        moved = resuming.environment_changes(self._before, now, plan)
        if moved and not self._anyway:
            raise CommandError(
                INPUT,
                f"--resume: not the machine or software of the run that broke off: "
                f"{resuming.sentence(moved)}. {ANYWAY}",
            )
        done = finished_cells(plan, earlier)
        count = len(plan.workloads)
        self._progress.line(
            f"resuming: {done} of {count} workloads are measured, {count - done} are left"
            if done < count
            else f"resuming: all {count} workloads are measured already"
        )
        self._open()
        if moved:
            note = m.Notice("warning", f"resumed although {resuming.sentence(moved)}", time.time())
            self._progress.message(note, earlier)
            earlier.apply(note)
            self.write(note)
        return done

    def check_build(self, message: m.BuildFinished) -> None:
        """Raises CommandError where figures of another build are there already."""
        if self.earlier is None or self._anyway or not resuming.is_other_build(self._before, message.key):
            return
        before = self._before.extension_key if self._before is not None else ""
        raise CommandError(
            INPUT,
            f"--resume: the extension is build {message.key[:8]} now, was {str(before)[:8]}. {ANYWAY}",
        )

    def write(self, message: m.Start | m.Message) -> None:
        """Keep a message. A disk that is full ends the keeping, not the run."""
        if self._journal is None:
            if self._path is not None:
                self._held.append(message)
            return
        try:
            self._journal.write(message)
            now = time.monotonic()
            if isinstance(message, m.WorkloadDone) or now - self._flushed_s >= FLUSH_S:
                self._flushed_s = now
                self._journal.flush()
        except OSError as error:
            self._progress.line(f"warning: the run could not be resumed from here on: {error}")
            self._journal = self._path = None

    def _open(self) -> None:
        if self._path is None:
            return
        try:
            self._journal = Journal(self._path)
        except OSError as error:
            raise CommandError(INPUT, f"{self._path}: cannot be written: {error.strerror or error}") from None
        held, self._held = self._held, []
        for message in held:
            self.write(message)

    def close(self, remove: bool) -> bool:
        """End it; `remove` it where all is written elsewhere. True: a later run can go on from it."""
        journal, self._journal = self._journal, None
        if journal is None:
            return False
        worthless = not journal.has_samples and self.earlier is None
        journal.close(remove=remove or worthless)
        return not (remove or worthless)

    def _take_up(self, path: Path, resume: bool) -> None:
        recording, _ = replay(path)
        plan = recording.plan
        if plan is None or not recording.sample_count:
            path.unlink()
            return
        done, count = finished_cells(plan, recording), len(plan.workloads)
        told = f"{done} of {count} workloads measured"
        if not resume:
            kept = _free_name(path)
            path.rename(kept)
            self._progress.line(
                f"{path}: a run broke off here ({told}); measuring anew, as --resume was not given. "
                f"It is kept as {kept.name}"
            )
            return
        recording.finished = False
        recording.active = None
        self._before = recording.environment
        self.earlier = recording


def _free_name(path: Path) -> Path:
    number = 1
    while (kept := path.with_name(f"journal-{number}.jsonl")).exists():
        number += 1
    return kept
