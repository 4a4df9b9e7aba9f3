"""What keys, menus and banners stand for: commands by name, files opened and written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QObject

from app.core.files import RecordingError
from app.core.plan import Plan, ProfileError
from app.core.text import size
from app.gui.compare.actions import Comparing
from app.gui.export_menu import Exporter, export_items, picture_items
from app.gui.journals import Found
from app.gui.keys import show_keys
from app.gui.main_menu import menu_items
from app.gui.own_files import OwnFiles
from app.gui.parts.menu import Menu, open_menu

if TYPE_CHECKING:
    from app.gui.window import MainWindow

RECOVERED_SHOWN = 2


class Commands(QObject):
    """Acts on a window and its session. `run` takes a name of the keyboard map."""

    def __init__(self, window: MainWindow, native_dialogs: bool = True) -> None:
        super().__init__(window)
        self._window = window
        self.exporter = Exporter(window, window.preferences.export_folder, native_dialogs)
        self.exporter.notice.connect(window.notify)
        self.exporter.folder_changed.connect(self._remember_folder)
        self.own = OwnFiles(window, self.exporter.ask_file)
        self.comparing = Comparing(window, self.exporter)

    def run(self, command: str, index: int = 0) -> None:
        """What a key of the map stands for; `index` is the tab's or the contender's."""
        window, session = self._window, self._window.session
        if window.compare.isVisible() and self.comparing.run(command):
            return
        act: Callable[[], object] = {
            "run": window.toggle_run,
            "restart": session.restart,
            "profile": session.profile_now,
            "build": lambda: session.build(False),
            "sweep": window.open_sweep,
            "export": self.open_export_menu,
            "open": self.open_file,
            "compare": self.comparing.begin,
            "save": self.save,
            "tab": lambda: window.tabs.go_to(index),
            "panel": window.body.toggle_panel,
            "toggle": lambda: window.contenders.toggle(index),
            "baseline": lambda: window.contenders.make_baseline(index),
            "next-baseline": window.contenders.next_baseline,
            "keys": lambda: show_keys(window, window.look),
        }[command]
        act()

    # ---- files -----------------------------------------------------------------------------------------

    def open_file(self) -> None:
        path = self.exporter.ask_open()
        if path is not None:
            self.open_path(path)

    def open_path(self, path: Path) -> None:
        """Open a recording or a profile; what cannot be opened is a notice."""
        window = self._window
        try:
            if path.suffix == ".toml":
                self.take_plan(window.form.profile.add(path), path)
            elif path.suffix == ".py":
                self.own.add(path)
            else:
                window.session.open_recording(path)
        except (RecordingError, ProfileError) as error:
            window.notify("error", str(error))
        except OSError as error:
            window.notify("error", f"{path} cannot be read: {error.strerror or error}")
        window.refresh()

    def open_paths(self, paths: Sequence[Path]) -> None:
        """Open a file; hold two against each other. While two are compared, a recording takes the place of A."""
        if self._window.compare.isVisible() and paths[0].suffix != ".toml":
            self._window.compare.comparer.open("a", paths[0])
        elif len(paths) > 1 and all(path.suffix != ".toml" for path in paths[:2]):
            self.comparing.compare_files(paths[0], paths[1])
        else:
            self.open_path(paths[0])

    def take_plan(self, plan: Plan, path: Path) -> None:
        """Measure what a profile says, its first workload."""
        session = self._window.session
        workload = plan.workloads[0]
        if workload.device == "auto":
            # "auto" in a profile means whatever is right here, and that is known already.
            workload = msgspec.structs.replace(workload, device=session.workload.device)
        session.profile = str(path)
        session.set_cache(plan.measure.cache)
        session.set_baseline(plan.baseline)
        session.set_enabled(plan.implementations)
        session.set_workload(workload)
        self.own.add_all(plan.own)
        self._window.refresh()

    def save(self) -> None:
        if self._window.session.recording.sample_count:
            self.export("recording")
        else:
            self._window.notify("info", "Nothing is measured yet, so there is nothing to save.")

    def export(self, choice: str) -> None:
        """Do what an entry of the export menu says."""
        session = self._window.session
        if choice == "command":
            profile = session.profile
            cache = session.measure.cache
            own = tuple(session.own.values())
            self.exporter.copy_command(
                session.workload, session.enabled, session.baseline, profile, cache, own
            )
            return
        recording = session.recording
        charts = self._window.tabs.charts()
        self.exporter.run(choice, recording, recording.current, charts, session.recording_saved)

    def offer_recovered(self, found: Sequence[Found]) -> None:
        """A line for each recording that an ended session left behind."""
        window = self._window
        for journal in list(found)[:RECOVERED_SHOWN]:
            when = f"{journal.began:%H:%M} on {journal.began.day} {journal.began:%B}"
            window.banners.show_notice(
                window.look,
                "info",
                f"An unsaved recording of {when} ({size(journal.bytes)})",
                (
                    ("Open", partial(self.open_path, journal.path)),
                    ("Discard", partial(window.session.discard_journal, journal)),
                ),
            )

    # ---- menus -----------------------------------------------------------------------------------------

    def open_export_menu(self) -> Menu:
        window = self._window
        recording = window.session.recording
        items = export_items(recording, recording.current, window.tabs.charts())
        return open_menu(window.run_bar.export, window.look, items, self.export)

    def open_picture_menu(self) -> Menu:
        window = self._window
        items = picture_items(window.tabs.charts())
        return open_menu(window.tabs.camera, window.look, items, self.export)

    def open_main_menu(self) -> Menu:
        window, preferences = self._window, self._window.preferences
        recent = window.session.recent_journals()
        items = menu_items(preferences.theme, preferences.motion, window.body.panel_shown, recent)
        return open_menu(window.run_bar.menu, window.look, items, self.menu_chosen)

    def menu_chosen(self, choice: str) -> None:
        """Do what an entry of the main menu says."""
        kind, _, value = choice.partition(":")
        if kind == "theme":
            self._window.set_theme(value)
        elif kind == "motion":
            self._window.set_motion(not self._window.preferences.motion)
        elif kind == "recent":
            self.open_path(Path(value))
        else:
            self.run(kind)

    def _remember_folder(self, folder: str) -> None:
        self._window.preferences.export_folder = folder
