"""A user's own implementations in the window: added, confirmed, loaded anew, removed, remembered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from app.core.own import Examined, OwnFile, OwnFileError, examine
from app.core.trust import Trust
from app.gui.confirm_sheet import ask
from app.gui.parts.overlay import Overlay

if TYPE_CHECKING:
    from app.gui.window import MainWindow

KINDS = "Python files (*.py);;All files (*)"


class OwnFiles(QObject):
    """Nothing of a file runs before its very content was confirmed, here or on the command line."""

    def __init__(
        self, window: MainWindow, ask_file: Callable[[str, str], Path | None], trust: Trust | None = None
    ) -> None:
        super().__init__(window)
        self._window = window
        self._ask_file = ask_file
        self._trust = trust or Trust()
        self.sheet: Overlay | None = None
        """The question that is open."""

    def choose(self) -> None:
        """Ask for a file and add it."""
        path = self._ask_file("Add an implementation of your own", KINDS)
        if path is not None:
            self.add(path)

    def add(self, path: Path) -> None:
        """Add a file: at once where its content is known, after a question where it is not."""
        examined = self._examine(path)
        if examined is not None:
            self._admit(examined)

    def add_all(self, files: Sequence[OwnFile]) -> None:
        """Those that a profile names, one question after the other."""
        if not files:
            return
        first, rest = files[0], files[1:]
        examined = self._examine(Path(first.path))
        if examined is None:
            self.add_all(rest)
        else:
            self._admit(examined, lambda: self.add_all(rest))

    def reload(self, implementation: str) -> None:
        """Take the file as it is now. What it was before stays in the recording."""
        file = self._window.session.own.get(implementation)
        if file is None:
            return
        examined = self._examine(Path(file.path))
        if examined is None:
            return
        if examined.file.id == implementation:
            self._window.session.try_again(implementation)
            self._window.notify("info", f"{file.name} is as it was; it starts anew")
        else:
            self._admit(examined)

    def remove(self, implementation: str) -> None:
        self._window.session.remove_own(implementation)

    def restore(self, paths: Sequence[str], enabled: Sequence[str]) -> None:
        """Take up what the window had when it was last closed. A file that changed waits to be looked at."""
        for text in paths:
            examined = self._examine(Path(text))
            if examined is None:
                continue
            if self._trust.holds(examined.file):
                self._window.session.add_own(examined.file, examined.file.id in enabled)
                continue
            self._window.banners.show_notice(
                self._window.look,
                "warning",
                f"{examined.file.name} was changed since it was confirmed, so it does not run",
                (("Look at it", partial(self.add, Path(text))),),
            )

    def _admit(self, examined: Examined, then: Callable[[], None] = lambda: None) -> None:
        if self._trust.holds(examined.file):
            self._take(examined)
            then()
            return

        def answered(yes: bool) -> None:
            self.sheet = None
            if yes:
                notice = self._trust.confirm(examined.file)
                if notice:
                    self._window.notify("warning", notice)
                self._take(examined)
            then()

        self.sheet = ask(self._window, self._window.look, examined, answered)

    def _take(self, examined: Examined) -> None:
        self._window.session.add_own(examined.file)
        self._window.refresh()

    def _examine(self, path: Path) -> Examined | None:
        try:
            return examine(path)
        except OwnFileError as error:
            self._window.notify("error", str(error))
            return None
