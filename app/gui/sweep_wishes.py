"""What the Sweep tab asks for, done: sweeps begun, paused and gone on with, cells opened."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from app.core.plan import DeviceError, Plan
from app.core.sweep import remeasured
from app.core.workload import Workload
from app.gui.tab_area import LIVE, SWEEP

if TYPE_CHECKING:
    from app.gui.window import MainWindow


class SweepWishes(QObject):
    """Connects a window's Sweep tab with its session."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        view, session = window.sweep, window.session
        view.start_requested.connect(self.start)
        view.pause_requested.connect(lambda: self._do(session.pause))
        view.cancel_requested.connect(lambda: self._do(session.cancel_sweep))
        view.resume_requested.connect(lambda: self._do(session.resume_sweep))
        view.longer_requested.connect(self.measure_longer)
        view.cell_chosen.connect(lambda workload: self._do(lambda: session.show_cell(workload)))
        view.cell_opened.connect(self.open_cell)
        view.command_requested.connect(self.copy_command)
        view.implementation_selected.connect(session.set_challenger)
        session.sweep_found.connect(lambda: window.tabs.go_to(SWEEP))

    def start(self, plan: Plan) -> None:
        self._do(lambda: self._window.session.start_sweep(plan))

    def measure_longer(self, cells: list[Workload]) -> None:
        """Measure cells of which nothing is known yet, for longer than before."""
        session = self._window.session
        status = session.snapshot(None).sweep
        if status is not None:
            plan, first = remeasured(status.plan, session.recording, cells)
            self._do(lambda: session.start_sweep(plan, first))

    def open_cell(self, workload: Workload) -> None:
        """Leave the sweep where it is and measure a cell live."""
        self._do(lambda: self._window.session.set_workload(workload))
        self._window.tabs.go_to(LIVE)

    def copy_command(self, workload: Workload) -> None:
        session = self._window.session
        self._window.commands.exporter.copy_command(
            workload, session.enabled, session.baseline, session.profile
        )

    def _do(self, act: Callable[[], object]) -> None:
        try:
            act()
        except DeviceError as error:
            self._window.notify("error", str(error))
        self._window.refresh()
