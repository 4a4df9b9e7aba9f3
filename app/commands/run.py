"""`run`: measure a profile without a window, by the same worker, into the same recording."""

from __future__ import annotations

import argparse
from pathlib import Path

from app.commands import against, streams
from app.commands.exits import INPUT, INTERRUPTED, MISSING, OK, WRONG, CommandError
from app.commands.measuring import Measuring
from app.commands.progress import Progress, table
from app.commands.run_journal import RunJournal
from app.core.catalog import introduce
from app.core.change import Basis
from app.core.comparison import compare
from app.core.files import document_of, write_atomically
from app.core.launch import find_profile
from app.core.plan import Plan, ProfileError, read_profile
from app.core.recording import Recording
from app.core.trust import Trust

TRACES_NAMED = 12


def run(arguments: argparse.Namespace) -> int:
    """Measure `arguments.profile`, write what `--out` and `--json` ask for, return the exit code."""
    try:
        plan = read_profile(find_profile(arguments.profile), arguments.set or (), arguments.add or ())
    except ProfileError as error:
        raise CommandError(INPUT, str(error)) from None
    unkept = confirm(plan, arguments.trust)
    limit = against.bound_of(arguments)
    control = against.control_for(arguments, plan)
    out: Path | None = arguments.out
    if out is not None:
        _make_folder(out)
    progress = Progress(quiet=arguments.quiet)
    for notice in unkept:
        progress.line(f"warning: {notice}")
    journal = RunJournal(out, arguments.resume or arguments.resume_anyway, arguments.resume_anyway, progress)
    recording = journal.earlier or Recording()
    interrupted = completed = False
    try:
        with streams.ends_are_interrupts():
            completed = Measuring(plan, recording, progress, journal).run()
    except KeyboardInterrupt:
        interrupted = True
    except CommandError:
        journal.close(remove=False)
        raise
    with streams.no_interrupts():
        if interrupted:
            kept = "keeping what was measured" if recording.sample_count else "nothing was measured yet"
            progress.line(f"interrupted; {kept}")
        # An earlier recording in the folder is worth more than an empty one.
        worth = recording.sample_count > 0 or not interrupted
        unwritten = write_all(recording, out, progress) if out is not None and worth else []
        held = (
            _Held(control, recording, against.basis_of(arguments), limit)
            if control is not None and worth
            else None
        )
        if held is not None and out is not None:
            unwritten += held.write(out, progress)
        if journal.close(remove=completed and not unwritten):
            progress.line("the same command with --resume goes on from here")
        # Last what may fail, and said after the result is on stdout: that must not be lost as well.
        if arguments.json:
            more = held.document() if held is not None else {}
            streams.show_json(document_of(recording, raw=False) | more)
        else:
            streams.show(table(recording))
            if held is not None:
                streams.show("\n" + held.text())
    if held is not None:
        held.tell(progress)
    if unwritten:
        raise CommandError(INPUT, "; ".join(unwritten))
    if interrupted:
        return INTERRUPTED
    regression = held.exit_code if held is not None else OK
    return exit_code(recording) or regression or (OK if completed else MISSING)


class _Held:
    """A run held against an earlier recording."""

    def __init__(self, control: Recording, recording: Recording, basis: Basis, limit: float | None) -> None:
        self.comparison = compare(control, recording)
        self.basis = basis
        self.bound = None if limit is None else against.check(self.comparison, limit, basis)

    @property
    def exit_code(self) -> int:
        return against.exit_code(self.bound)

    def document(self) -> dict[str, object]:
        """What `--json` tells beside the run itself."""
        return {"comparison": self.comparison, "bound": self.bound}

    def text(self) -> str:
        return against.table(self.comparison, self.basis)

    def tell(self, progress: Progress) -> None:
        for sentence in against.sentences(self.bound) if self.bound is not None else ():
            progress.line(sentence)

    def write(self, folder: Path, progress: Progress) -> list[str]:
        """`comparison.html` in the folder of results; a clause where it could not be written."""
        from app.exports import comparison_html

        path = folder / "comparison.html"
        try:
            write_atomically(path, comparison_html.render(self.comparison, self.basis))
        except OSError as error:
            return [f"{path}: cannot be written: {error.strerror or error}"]
        progress.line(f"wrote {path}")
        return []


def confirm(plan: Plan, trusted: bool) -> list[str]:
    """See to it that the code of own implementations was confirmed, `trusted` being the confirmation now.

    Returns a notice for each that cannot be remembered. Raises `CommandError` before anything is run.
    """
    introduce(plan.own)
    trust = Trust()
    unknown = trust.missing(plan.own)
    if not trusted and unknown:
        named = "; ".join(
            f"{file.path} ({file.size_bytes:,} bytes, SHA-256 {file.sha256[:16]}…)" for file in unknown
        )
        raise CommandError(
            INPUT,
            f"{named}: is code that was not confirmed yet, or was changed since. Read it, then run this again "
            "with --trust: it will run on this machine with your rights",
        )
    return [notice for file in unknown if (notice := trust.confirm(file))]


def write_all(recording: Recording, folder: Path, progress: Progress) -> list[str]:
    """Write the recording, the samples, a trace per contender and the report; tell of each.

    Each is written whatever became of the others. Returns a clause for each that could not be.
    """
    from app.exports import chrome_trace, csv_samples, html_report, recording_file

    unwritten = []
    for name, write in (
        ("recording.json", recording_file.write),
        ("samples.csv", csv_samples.write),
        ("report.html", html_report.write),
    ):
        path = folder / name
        try:
            write(recording, path)
            progress.line(f"wrote {path}")
        except OSError as error:
            unwritten.append(f"{path}: cannot be written: {error.strerror or error}")
    try:
        paths = list(chrome_trace.write_all(recording, folder / "traces"))
        if len(paths) > TRACES_NAMED:
            progress.line(f"wrote {folder / 'traces'} ({len(paths)} traces)")
        for path in paths if len(paths) <= TRACES_NAMED else ():
            progress.line(f"wrote {path}")
    except chrome_trace.TraceExportError as error:
        unwritten.append(str(error).rstrip("."))
    return unwritten


def exit_code(recording: Recording) -> int:
    """1 where a result is wrong, 3 where the extension was asked for and could not be built."""
    if any(not accuracy.ok for record in recording.records for accuracy in record.accuracy.values()):
        return WRONG
    if recording.build.state == "failed" or not any(record.series for record in recording.records):
        return MISSING
    return OK


def _make_folder(folder: Path) -> None:
    """Before anything is measured: a folder that cannot be written would lose all of it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".attnscope-probe"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise CommandError(INPUT, f"--out {folder}: cannot be written: {error.strerror or error}") from None
