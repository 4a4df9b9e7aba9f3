"""`run`: measure a profile without a window, by the same worker, into the same recording."""

from __future__ import annotations

import argparse
from pathlib import Path

from app.commands import streams
from app.commands.exits import INPUT, INTERRUPTED, MISSING, OK, WRONG, CommandError
from app.commands.measuring import Measuring
from app.commands.progress import Progress, table
from app.commands.run_journal import RunJournal
from app.core.files import document_of
from app.core.launch import find_profile
from app.core.plan import ProfileError, read_profile
from app.core.recording import Recording

TRACES_NAMED = 12


def run(arguments: argparse.Namespace) -> int:
    """Measure `arguments.profile`, write what `--out` and `--json` ask for, return the exit code."""
    try:
        plan = read_profile(find_profile(arguments.profile), arguments.set or ())
    except ProfileError as error:
        raise CommandError(INPUT, str(error)) from None
    out: Path | None = arguments.out
    if out is not None:
        _make_folder(out)
    progress = Progress(quiet=arguments.quiet)
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
        if journal.close(remove=completed and not unwritten):
            progress.line("the same command with --resume goes on from here")
        # Last what may fail, and said after the result is on stdout: that must not be lost as well.
        if arguments.json:
            streams.show_json(document_of(recording, raw=False))
        else:
            streams.show(table(recording))
    if unwritten:
        raise CommandError(INPUT, "; ".join(unwritten))
    if interrupted:
        return INTERRUPTED
    return exit_code(recording) or (OK if completed else MISSING)


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
