"""Export: what can be written from here, and the writing of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QApplication, QFileDialog, QWidget

from app.core import files
from app.core.catalog import contender
from app.core.files import AtomicFile
from app.core.own import OwnFile
from app.core.plan import Cache, copy_as_command
from app.core.recording import Recording, WorkloadRecord
from app.core.workload import Workload
from app.gui.gradual_file import GradualFile
from app.gui.parts.menu import MenuItem

TRACE, PICTURE = "trace:", "picture:"
RECORDING_FILTER = "Recordings (*.json)"


def export_items(
    recording: Recording, record: WorkloadRecord | None, charts: Mapping[str, QWidget]
) -> list[MenuItem]:
    """What can be written now; what cannot is greyed with its reason."""
    measured = recording.sample_count > 0
    nothing = "" if measured else "nothing is measured yet"
    items = [
        MenuItem("recording", "Recording", nothing, "Ctrl+S", "file", enabled=measured),
        MenuItem("report", "Report (HTML)", nothing, icon="file", enabled=measured),
        MenuItem("samples", "All samples (CSV)", nothing, icon="file", enabled=measured),
    ]
    if recording.sweep is not None:
        items.append(MenuItem("sweep", "Sweep, a row per cell (CSV)", icon="file"))
    items += [
        MenuItem("heading-traces", "Chrome traces", heading=True, line_before=True),
    ]
    traces = record.traces_gz if record is not None else {}
    if not traces:
        items.append(
            MenuItem("no-traces", "None yet", "a profile pass writes them: Profile now", enabled=False)
        )
    for name in traces:
        entry = contender(name)
        items.append(MenuItem(TRACE + name, entry.title, shape=entry.shape, series=name))
    items.append(MenuItem("heading-pictures", "Pictures of this tab", heading=True, line_before=True))
    items += picture_items(charts)
    items.append(
        MenuItem(
            "command",
            "Copy as command",
            trailing="measures this without a window",
            icon="terminal",
            line_before=True,
        )
    )
    return items


def picture_items(charts: Mapping[str, QWidget]) -> list[MenuItem]:
    """The charts in sight, and the window as a whole."""
    items = [MenuItem(PICTURE + name, name, trailing="PNG or SVG", icon="camera") for name in charts]
    return [*items, MenuItem("window", "Whole window", trailing="PNG", icon="camera")]


def write_chart(widget: QWidget, path: Path) -> None:
    """Write a chart as PNG or SVG. Raises OSError."""
    from app.gui.charts.export import export_widget

    export_widget(widget, path)


def write_window(widget: QWidget, path: Path) -> None:
    """Write what the window shows as PNG. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not widget.grab().save(str(path), "PNG"):
        raise OSError(f"{path} cannot be written as PNG")


def _write_trace(recording: Recording, record: WorkloadRecord | None, name: str, path: Path) -> None:
    from app.exports import chrome_trace

    chrome_trace.export(record.traces_gz.get(name, b"") if record is not None else b"", path)


class Exporter(QObject):
    """Asks where to, writes, and says how it went. `folder_changed` tells the folder last used."""

    notice = Signal(str, str)
    folder_changed = Signal(str)

    def __init__(self, window: QWidget, folder: str = "", native_dialogs: bool = True) -> None:
        super().__init__(window)
        self._window = window
        self.folder = folder
        self._native = native_dialogs

    def ask_save(self, title: str, name: str, kinds: str) -> Path | None:
        """Where to write, with `name`'s ending if none was typed; None where the person thinks better of it."""
        start = str(Path(self.folder) / name) if self.folder else name
        text, _ = QFileDialog.getSaveFileName(self._window, title, start, kinds, options=self._options())
        path = self._remember(text)
        if path is not None and not path.suffix:
            path = path.with_name(path.name + Path(name).suffix)
        return path

    def ask_open(self) -> Path | None:
        """Which file to open."""
        return self.ask_file("Open", "Recordings and profiles (*.json *.jsonl *.toml);;All files (*)")

    def ask_file(self, title: str, kinds: str) -> Path | None:
        """Which file to read; None where the person thinks better of it."""
        text, _ = QFileDialog.getOpenFileName(
            self._window, title, self.folder, kinds, options=self._options()
        )
        return self._remember(text)

    def run(
        self,
        choice: str,
        recording: Recording,
        record: WorkloadRecord | None,
        charts: Mapping[str, QWidget],
        saved: Callable[[int], None],
    ) -> None:
        """Do what an entry of the menu says. `saved` is told how many samples are in a recording's file."""
        stem = file_stem(record.workload) if record is not None else "attnscope"
        if choice == "recording":
            self._save(recording, f"{stem}.json", saved)
        elif choice == "report":
            from app.exports import html_report

            self._write(
                "Export the report",
                f"{stem}.html",
                "HTML (*.html)",
                lambda p: html_report.write(recording, p),
            )
        elif choice == "samples":
            self._write_samples(recording, f"{stem}.csv")
        elif choice == "sweep":
            from app.exports import csv_sweep

            self._write(
                "Export the sweep", "sweep.csv", "CSV (*.csv)", lambda p: csv_sweep.write(recording, p)
            )
        elif choice.startswith(TRACE):
            name = choice.removeprefix(TRACE)
            kinds = "Chrome traces (*.json.gz *.json)"
            self._write(
                f"Export the trace of {contender(name).title}",
                f"{name}.json.gz",
                kinds,
                lambda p: _write_trace(recording, record, name, p),
            )
        elif choice.startswith(PICTURE):
            name = choice.removeprefix(PICTURE)
            widget = charts[name]
            kinds = "Pictures (*.png *.svg)"
            self._write(f"Export {name}", f"{slug(name)}.png", kinds, lambda p: write_chart(widget, p))
        elif choice == "window":
            self.write_picture(f"{stem}.png")

    def write_picture(self, name: str) -> None:
        """Ask where to, and write what the window shows."""
        self._write("Export the window", name, "PNG (*.png)", lambda path: write_window(self._window, path))

    def write_report(self, title: str, name: str, kinds: str, data: Callable[[], bytes]) -> None:
        """Ask where to, and write what `data` gives."""
        self._write(title, name, kinds, lambda path: files.write_atomically(path, data()))

    def copy_text(self, text: str) -> None:
        """Put a command on the clipboard."""
        QApplication.clipboard().setText(text)
        self.notice.emit("info", "The command is on the clipboard.")

    def copy_command(
        self,
        workload: Workload,
        enabled: tuple[str, ...],
        baseline: str,
        profile: str,
        cache: Cache = "warm",
        own: tuple[OwnFile, ...] = (),
    ) -> str:
        """Put the command that measures this without a window on the clipboard."""
        command = copy_as_command(workload, enabled, baseline, profile, cache, own)
        self.copy_text(command)
        return command

    def _write(self, title: str, name: str, kinds: str, write: Callable[[Path], object]) -> None:
        path = self.ask_save(title, name, kinds)
        if path is None:
            return
        try:
            write(path)
        except OSError as error:
            self._written(path, error.strerror or str(error))
        except ValueError as error:
            # Our own writers' errors: a sentence that names the file.
            self.notice.emit("error", str(error))
        else:
            self._written(path)

    def _save(self, recording: Recording, name: str, saved: Callable[[int], None]) -> None:
        path = self.ask_save("Save the recording", name, RECORDING_FILTER)
        if path is not None:
            count = recording.sample_count
            self._write_gradually(path, files.pieces(recording), lambda: saved(count))

    def _write_samples(self, recording: Recording, name: str) -> None:
        from app.exports import csv_samples

        path = self.ask_save("Export all samples", name, "CSV (*.csv)")
        if path is not None:
            self._write_gradually(path, csv_samples.pieces(recording))

    def _write_gradually(
        self, path: Path, pieces: Iterator[bytes], written: Callable[[], None] | None = None
    ) -> None:
        """Hours of samples take seconds to write: the window goes on meanwhile."""
        try:
            scratch = AtomicFile(path)
        except OSError as error:
            self._written(path, error.strerror or str(error))
            return

        def ended(error: str) -> None:
            if not error and written is not None:
                written()
            self._written(path, error)

        file = GradualFile(scratch, pieces, self)
        file.ended.connect(ended)
        file.start()
        if file.is_going_on:
            self.notice.emit("info", f"Writing {path}")

    def close(self) -> None:
        """Give up what is not written yet: the window closes."""
        for file in self.findChildren(GradualFile):
            file.cancel()

    def _written(self, path: Path, error: str = "") -> None:
        if error:
            self.notice.emit("error", f"{path} was not written: {error}")
        else:
            self.notice.emit("info", f"Written: {path}")

    def _remember(self, text: str) -> Path | None:
        if not text:
            return None
        path = Path(text)
        self.folder = str(path.parent)
        self.folder_changed.emit(self.folder)
        return path

    def _options(self) -> QFileDialog.Option:
        return QFileDialog.Option(0) if self._native else QFileDialog.Option.DontUseNativeDialog


def file_stem(workload: Workload) -> str:
    """A file's name that says what was measured: `attention-8x64x128-4h-forward-float32`."""
    shape = f"{workload.batch}x{workload.seq_len}x{workload.embed_dim}-{workload.num_heads}h"
    return f"attention-{shape}-{workload.mode.replace('_', '-')}-{workload.dtype}"


def slug(name: str) -> str:
    """A title as a file's name."""
    return "-".join("".join(c if c.isalnum() else " " for c in name.lower()).split()) or "chart"
