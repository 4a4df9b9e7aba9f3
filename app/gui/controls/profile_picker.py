"""The picker of profiles that ship, and of one opened from elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.core.launch import profiles
from app.core.plan import Plan, ProfileError, read_profile
from app.core.workload import Workload
from app.gui.parts.look import Look
from app.gui.parts.menu import MenuItem
from app.gui.parts.picker import Picker

CUSTOM = "Custom workload"


class ProfilePicker(Picker):
    """Shows which profile the workload is from, or that it is nobody's."""

    picked = Signal(object, object)
    """The plan, and the file it was read from."""

    def __init__(
        self,
        look: Look,
        find: Callable[[], Sequence[Path]] = profiles,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(look, "Profile", parent=parent)
        self._find = find
        self._plans: dict[str, Plan] = {}
        self._errors: dict[str, str] = {}
        self._current: str | None = None
        self.set_items(self._entries)
        self.chosen.connect(self._choose)
        self.read()
        self.set_text(CUSTOM)

    def read(self) -> None:
        """Read the profiles again; one that cannot be read is listed with its reason."""
        for path in self._find():
            self._read(path)

    def add(self, path: Path) -> Plan:
        """Offer a profile from elsewhere. Raises `ProfileError`."""
        plan = read_profile(path)
        self._plans[str(path)] = plan
        return plan

    def show_workload(self, workload: Workload) -> None:
        """Name the profile that this workload is from: the one last picked, else the one most its own."""
        order = sorted(
            self._plans, key=lambda path: (path != self._current, len(self._plans[path].workloads))
        )
        hit = next((path for path in order if _same(self._plans[path], workload)), None)
        self._current = hit or self._current
        self.set_text(self._plans[hit].title if hit is not None else CUSTOM)

    @property
    def profile(self) -> str:
        """The file of the profile last picked; empty if none was."""
        return self._current or ""

    def _read(self, path: Path) -> None:
        try:
            self._plans[str(path)] = read_profile(path)
            self._errors.pop(str(path), None)
        except ProfileError as error:
            self._plans.pop(str(path), None)
            self._errors[str(path)] = str(error)

    def _entries(self) -> list[MenuItem]:
        self.read()
        items = []
        for path, plan in self._plans.items():
            count = len(plan.workloads)
            items.append(
                MenuItem(
                    path,
                    plan.title,
                    plan.about,
                    trailing=f"{count:,} workloads" if count > 1 else "",
                    checked=plan.title == self.text(),
                )
            )
        for path, reason in self._errors.items():
            items.append(MenuItem(path, Path(path).name, reason, enabled=False))
        return items

    def _choose(self, path: str) -> None:
        plan = self._plans.get(path)
        if plan is not None:
            self._current = path
            self.picked.emit(plan, Path(path))


def _same(plan: Plan, workload: Workload) -> bool:
    return any(msgspec.structs.replace(w, device=workload.device) == workload for w in plan.workloads)
