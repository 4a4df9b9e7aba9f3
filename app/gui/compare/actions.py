"""What a person can do with two recordings: open one beside the other, write the comparison, go back."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from app.exports.formats import COMPARISON_FORMATS
from app.gui.compare.opener import Side, name_of
from app.gui.parts.menu import Menu, MenuItem, open_menu

if TYPE_CHECKING:
    from app.gui.export_menu import Exporter
    from app.gui.window import MainWindow

KINDS = {
    "html": ("Report (HTML)", "HTML (*.html)"),
    "md": ("Markdown", "Markdown (*.md)"),
    "csv": ("CSV", "CSV (*.csv)"),
    "json": ("JSON", "JSON (*.json)"),
}
PICTURE = "picture"


class Comparing(QObject):
    """Acts on a window's comparison. Measuring pauses while it is shown, and goes on after it if it did before."""

    def __init__(self, window: MainWindow, exporter: Exporter) -> None:
        super().__init__(window)
        self._window = window
        self._exporter = exporter
        self._paused_for_it = False
        window.compare.comparer.compared.connect(self._shown)

    def run(self, command: str) -> bool:
        """A key pressed while the comparison is in sight. False: it means the same as elsewhere."""
        if command == "keys":
            return False
        if command == "run":
            self._window.compare.leave()
        elif command in ("open", "compare"):
            self.ask("a")
        elif command in ("export", "save"):
            self.open_menu()
        # What another would change is out of sight.
        return True

    def begin(self) -> None:
        """Ask for a recording to compare the one shown with."""
        if not self._window.session.recording.sample_count:
            self._window.notify("info", "Nothing is measured yet, so there is nothing to compare.")
            return
        path = self._exporter.ask_open()
        if path is not None:
            self.compare_with(path)

    def compare_with(self, path: Path) -> None:
        """Hold the recording that is shown against that of a file."""
        session = self._window.session
        name = name_of(session.recording, session.viewing)
        self._window.compare.compare(Side(name, session.recording, session.viewing), path)

    def compare_files(self, first: Path, second: Path) -> None:
        """Hold two files against each other: the first is opened, the second beside it."""
        self._window.commands.open_path(first)
        if self._window.session.viewing == first:
            self.compare_with(second)

    def ask(self, which: str) -> None:
        """Another file for side `a` or `b`."""
        path = self._exporter.ask_open()
        if path is not None:
            self._window.compare.comparer.open(which, path)

    def ended(self) -> None:
        """Back to live: measuring goes on where it was paused for the comparison."""
        session = self._window.session
        if self._paused_for_it and session.viewing is None:
            session.resume()
        self._paused_for_it = False
        self._window.show_rest(True)
        self._window.refresh()
        self._window.setFocus()

    def open_menu(self) -> Menu:
        """What can be written of the comparison."""
        window = self._window
        items = [MenuItem(key, title, icon="file") for key, (title, _) in KINDS.items()]
        items.append(MenuItem(PICTURE, "Whole window", trailing="PNG", icon="camera", line_before=True))
        items.append(MenuItem("command", "Copy as command", icon="terminal"))
        return open_menu(window.compare.export, window.look, items, self.export)

    def export(self, choice: str) -> None:
        """Do what an entry of that menu says."""
        comparison, basis = self._window.compare.comparison, self._window.compare.basis_shown
        if choice == "command":
            self.copy_command()
        elif choice == PICTURE:
            self._exporter.write_picture("comparison.png")
        elif comparison is not None:
            title, kinds = KINDS[choice]
            render = COMPARISON_FORMATS[choice]
            self._exporter.write_report(
                f"Export the comparison: {title}",
                f"comparison.{choice}",
                kinds,
                lambda: render(comparison, basis),
            )

    def copy_command(self) -> None:
        """The command that makes this comparison without a window, where both are files."""
        a, b = self._window.compare.comparer.a, self._window.compare.comparer.b
        if a is None or b is None:
            return
        if a.path is None or b.path is None:
            self._window.compare.notice.emit("info", "Save this session first: the command compares files.")
            return
        by = "" if self._window.compare.basis_shown == "net" else " --by latency"
        report = f"report {shlex.quote(str(b.path))} --against {shlex.quote(str(a.path))}"
        self._exporter.copy_text(f"python main.py {report}{by} --format md")

    def _shown(self, comparison: object) -> None:
        """Nothing is measured while the result is out of sight."""
        session = self._window.session
        if session.viewing is None and not session.paused:
            session.pause()
            self._paused_for_it = True
        self._window.compare.setGeometry(self._window.rect())
        self._window.show_rest(False)
