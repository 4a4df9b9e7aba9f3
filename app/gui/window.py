"""The main window: puts the parts together, and lets wishes go one way and snapshots the other."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import msgspec
from PySide6.QtCore import QEvent, QRect, Qt, QTimer
from PySide6.QtGui import (
    QCloseEvent,
    QDragEnterEvent,
    QDropEvent,
    QGuiApplication,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QApplication, QVBoxLayout, QWidget

from app.core.plan import on_device
from app.core.workload import Workload
from app.gui.body import Body
from app.gui.commands import Commands
from app.gui.compare.screen import CompareScreen
from app.gui.controls.cache_choice import CacheChoice
from app.gui.controls.contender_list import ContenderList
from app.gui.controls.left_panel import LeftPanel
from app.gui.controls.run_bar import RunBar
from app.gui.controls.workload_form import WorkloadForm
from app.gui.keys import Keys
from app.gui.parts.banner import BannerStack
from app.gui.parts.focus_ring import FocusRing
from app.gui.parts.look import Look, dress, dress_application, prefers_motion
from app.gui.preferences import Preferences
from app.gui.session import Session
from app.gui.snapshot import Snapshot
from app.gui.status_bar import StatusBar
from app.gui.sweep_wishes import SweepWishes
from app.gui.tab_area import BUILD, SWEEP, SYSTEM, TITLES, TabArea
from app.gui.theme import (
    DARK,
    LIGHT,
    NORMAL,
    PLOT_INTERVAL_MS,
    SMALL,
    SMALL_BELOW_WIDTH,
    TABLE_INTERVAL_MS,
    Theme,
    Type,
)
from app.gui.verdict_actions import VerdictActions
from app.gui.verdict_bar import VerdictBar
from app.gui.views.accuracy import AccuracyView
from app.gui.views.build import BuildView
from app.gui.views.live import LiveView
from app.gui.views.roofline import RooflineView
from app.gui.views.sweep import SweepView
from app.gui.views.system import SystemView

MINIMUM = (900, 600)
DEFAULT = (1440, 900)
AGE_INTERVAL_S = 1.0
OPENABLE = (".json", ".jsonl", ".toml", ".py")


class MainWindow(QWidget):
    """Draws at most ten times a second, figures at most four times, and only the tab in sight."""

    def __init__(self, session: Session, preferences: Preferences, native_dialogs: bool = True) -> None:
        super().__init__()
        self.session, self.preferences = session, preferences
        self.look = Look(self._theme(), Type(), NORMAL, preferences.motion and prefers_motion())
        self._dirty = True
        self._figures_at = self._aged_at = 0.0
        self._known_workload: Workload = session.workload
        self._closed = False
        self.setWindowTitle("AttnScope")
        self.setMinimumSize(*MINIMUM)
        self.setAcceptDrops(True)
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self._make_parts(native_dialogs)
        self._lay_out()
        self._connect()
        self.keys = Keys(self, self.commands.run, len(TITLES))
        self.ring = FocusRing(self, self.look)
        self._restore()
        self._timer = QTimer(self)
        self._timer.setInterval(PLOT_INTERVAL_MS)
        self._timer.timeout.connect(self._tick)
        self._timer.start()
        if preferences.notice:
            self.notify("warning", preferences.notice)
        self.refresh()
        self.setFocus()

    # ---- putting together ------------------------------------------------------------------------------

    def _make_parts(self, native_dialogs: bool) -> None:
        look, preferences = self.look, self.preferences
        self.run_bar = RunBar(look)
        self.form = WorkloadForm(look, self.session.workload)
        self.cache = CacheChoice(look)
        self.contenders = ContenderList(look)
        self.panel = LeftPanel(look, self.form, self.contenders, self.cache)
        self.banners = BannerStack()
        self.verdict = VerdictBar(look)
        self.live = LiveView(look.theme, look.type)
        self.sweep = SweepView(look.theme, look.type)
        self.accuracy = AccuracyView(look.theme, look.type)
        self.roofline = RooflineView(look.theme, look.type)
        self.build = BuildView(look.theme, look.type)
        self.system = SystemView(look.theme, look.type)
        views = (self.live, self.sweep, self.accuracy, self.roofline, self.build, self.system)
        self.tabs = TabArea(look, views, preferences.window_span)
        self.status = StatusBar(look)
        self.compare = CompareScreen(look, self)
        self.commands = Commands(self, native_dialogs)
        self.sweep_wishes = SweepWishes(self)
        self.actions_of_verdict = VerdictActions(self.session, self.tabs, self)

    def _lay_out(self) -> None:
        content = QWidget()
        self._content = QVBoxLayout(content)
        self._content.addWidget(self.banners)
        self._content.addWidget(self.verdict)
        self._content.addWidget(self.tabs, 1)
        self.body = Body(self.look, self.panel, content, self.preferences.left_panel)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.run_bar)
        column.addWidget(self.body, 1)
        column.addWidget(self.status)
        self._space_content()

    def _space_content(self) -> None:
        gap = self.look.sizes.gap
        self._content.setContentsMargins(gap, gap, gap, gap)
        self._content.setSpacing(8)

    def _connect(self) -> None:
        session = self.session
        for signal in (session.changed, session.run_state_changed, session.contenders_changed):
            signal.connect(self._mark)
        session.devices_changed.connect(self._mark)
        session.build_changed.connect(self._mark)
        session.notice.connect(self.notify)
        session.recovered_available.connect(self.commands.offer_recovered)
        self.form.workload_changed.connect(self._measure)
        self.form.plan_chosen.connect(self.commands.take_plan)
        self.form.system_requested.connect(lambda: self.tabs.go_to(SYSTEM))
        self.contenders.enabled_changed.connect(session.set_enabled)
        self.contenders.baseline_changed.connect(session.set_baseline)
        self.contenders.challenger_changed.connect(session.set_challenger)
        self.contenders.add_requested.connect(self.commands.own.choose)
        self.contenders.reload_requested.connect(self.commands.own.reload)
        self.contenders.remove_requested.connect(self.commands.own.remove)
        self.verdict.challenger_picked.connect(session.set_challenger)
        self.verdict.baseline_picked.connect(session.set_baseline)
        self.verdict.acted.connect(self.actions_of_verdict.act)
        bar = self.run_bar
        bar.menu_requested.connect(self.commands.open_main_menu)
        bar.run_toggled.connect(self.toggle_run)
        bar.restart_requested.connect(session.restart)
        bar.profile_requested.connect(session.profile_now)
        bar.sweep_requested.connect(self.open_sweep)
        bar.build_requested.connect(lambda: self.tabs.go_to(BUILD))
        bar.export_requested.connect(self.commands.open_export_menu)
        self.tabs.tab_changed.connect(self._tab_changed)
        self.tabs.span_changed.connect(self._span_changed)
        self.tabs.picture_requested.connect(self.commands.open_picture_menu)
        self.cache.chosen.connect(session.set_cache)
        self.live.implementation_selected.connect(self._select)
        self.accuracy.implementation_selected.connect(self._select)
        self.accuracy.command_requested.connect(lambda: self.commands.export("command"))
        self.roofline.peaks_requested.connect(session.measure_peaks)
        self.compare.notice.connect(self.notify)
        self.compare.left.connect(self.commands.comparing.ended)
        self.compare.asked_for.connect(self.commands.comparing.ask)
        self.compare.export_requested.connect(self.commands.comparing.open_menu)
        self.compare.command_requested.connect(self.commands.comparing.copy_command)
        self.build.rebuild_requested.connect(session.build)
        self.build.cancel_requested.connect(session.cancel_build)
        self.build.retry_requested.connect(lambda: session.build(False))
        self.system.check_again_requested.connect(session.restart_worker)
        self.body.panel_changed.connect(lambda shown: setattr(self.preferences, "left_panel", shown))
        hints = QGuiApplication.styleHints()
        hints.colorSchemeChanged.connect(self._system_theme_changed)

    def _restore(self) -> None:
        self.resize(*DEFAULT)
        geometry = self.preferences.geometry
        if geometry is not None:
            rect = QRect(*geometry)
            screens = [screen.availableGeometry() for screen in QGuiApplication.screens()]
            # A window that was on a screen that is gone would open where nobody sees it.
            if any(screen.intersected(rect).width() > 100 for screen in screens):
                self.setGeometry(rect)
        if self.preferences.maximised:
            self.setWindowState(Qt.WindowState.WindowMaximized)
        status = self.session.snapshot(None).sweep
        broke_off = status is not None and status.state == "recorded" and not status.is_complete
        self.tabs.go_to(SWEEP if broke_off else self.preferences.tab)
        self._apply_look(self.look)

    # ---- looks -----------------------------------------------------------------------------------------

    def _theme(self) -> Theme:
        choice = self.preferences.theme
        if choice == "system":
            scheme = QGuiApplication.styleHints().colorScheme()
            return LIGHT if scheme == Qt.ColorScheme.Light else DARK
        return LIGHT if choice == "light" else DARK

    def set_theme(self, choice: str) -> None:
        """`system`, `dark` or `light`; kept for the next start."""
        self.preferences.choose_theme(choice)  # type: ignore[arg-type]
        self._system_theme_changed()

    def set_motion(self, motion: bool) -> None:
        """Whether things move where the system leaves animations on."""
        self.preferences.motion = motion
        self._apply_look(replace(self.look, motion=motion and prefers_motion()))

    def _system_theme_changed(self) -> None:
        theme = self._theme()
        if theme is not self.look.theme:
            self._apply_look(replace(self.look, theme=theme))

    def _apply_look(self, look: Look) -> None:
        self.look = look
        application = QApplication.instance()
        assert isinstance(application, QApplication)
        dress_application(application, look)
        dress(self, look)
        self._space_content()
        self.refresh()
        self.update()

    # ---- showing ---------------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        return self.session.snapshot(self.preferences.window_s)

    def refresh(self) -> None:
        """Draw everything in sight now."""
        snapshot = self.snapshot()
        self._dirty = False
        self._show_figures(snapshot)
        self.tabs.current.show_snapshot(snapshot)

    def notify(self, level: str, text: str) -> None:
        """A line in the window; nothing waits for it."""
        banners = self.compare.banners if self.compare.isVisible() else self.banners
        banners.show_notice(self.look, level, text[:1].upper() + text[1:])

    def show_rest(self, shown: bool) -> None:
        """Show what is measured, or leave the place, and the focus, to a comparison."""
        for part in (self.run_bar, self.body, self.status):
            part.setVisible(shown)

    def _mark(self) -> None:
        self._dirty = True

    def _tick(self) -> None:
        if not self.isVisible() or self.isMinimized() or self.compare.isVisible():
            return
        now = time.monotonic()
        if not self._dirty:
            # What only grows older: how long ago the last round was, how long a build takes.
            if now - self._aged_at >= AGE_INTERVAL_S:
                self._aged_at = now
                self._show_figures(self.snapshot())
            return
        self._dirty = False
        snapshot = self.snapshot()
        self.tabs.current.show_snapshot(snapshot)
        if now - self._figures_at >= TABLE_INTERVAL_MS / 1000:
            self._show_figures(snapshot)
        else:
            # Figures that were left out are drawn with the next tick, even if nothing more comes.
            self._aged_at = now - AGE_INTERVAL_S + TABLE_INTERVAL_MS / 1000

    def _show_figures(self, snapshot: Snapshot) -> None:
        self._figures_at = self._aged_at = time.monotonic()
        session = self.session
        if session.workload != self._known_workload:
            self._known_workload = session.workload
            self.form.set_workload(session.workload)
        viewing, stopped = session.viewing, session.stopped_because
        recording = snapshot.recording
        self.form.set_environment(recording.environment or session.environment)
        listing = (recording, snapshot.record, session.enabled, session.baseline, session.own_listed)
        self.contenders.show_recording(*listing)
        self.body.strip.show_recording(*listing)
        idle = session.paused or viewing is not None
        live = session.environment is not None and viewing is None
        self.run_bar.show_state(recording, idle, not stopped, live and not stopped)
        waiting = self.actions_of_verdict.waiting_s(snapshot.stale_s)
        picked = session.challenger is not None
        self.verdict.show_snapshot(snapshot, viewing is not None, stopped, waiting, picked)
        self.status.show_snapshot(snapshot, viewing.name if viewing is not None else "", stopped)
        self.tabs.show_build(recording.build)
        self.tabs.show_wrong(any(e.accuracy is not None and not e.accuracy.ok for e in snapshot.entries))
        self.cache.show_cache(snapshot.record.cache if snapshot.record is not None else session.measure.cache)
        name = f"{viewing.name} · " if viewing is not None else ""
        self.setWindowTitle(f"{name}AttnScope")

    # ---- wishes ----------------------------------------------------------------------------------------

    def toggle_run(self) -> None:
        """Run or pause; from a recording, go back to measuring."""
        if self.session.paused or self.session.viewing is not None:
            self.session.resume()
        else:
            self.session.pause()
        self.refresh()

    def open_sweep(self) -> None:
        """The Sweep tab, with the focus on what is most likely wanted there."""
        self.tabs.go_to(SWEEP)
        self.sweep.next_step().setFocus(Qt.FocusReason.TabFocusReason)

    def _measure(self, workload: Workload) -> None:
        self._known_workload = workload
        self.session.set_workload(workload)

    def _select(self, implementation: str) -> None:
        if implementation != self.session.baseline:
            self.session.set_challenger(implementation)

    def _tab_changed(self, index: int) -> None:
        self.preferences.tab = index
        self.tabs.current.show_snapshot(self.snapshot())

    def _span_changed(self, span: str) -> None:
        self.preferences.window_span = span  # type: ignore[assignment]
        self.refresh()

    # ---- events ----------------------------------------------------------------------------------------

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            if self.compare.isVisible():
                self.compare.leave()
                return
            if self.body.close_drawer():
                return
        super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        # A click beside everything leaves the field that has the focus.
        self.setFocus()
        super().mousePressEvent(event)

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.WindowStateChange and not self.isMinimized():
            self._dirty = True
        super().changeEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        sizes = SMALL if self.width() < SMALL_BELOW_WIDTH else NORMAL
        if sizes is not self.look.sizes:
            self._apply_look(self.look.with_sizes(sizes))
        self.compare.setGeometry(self.rect())
        super().resizeEvent(event)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        urls = event.mimeData().urls()
        if urls and Path(urls[0].toLocalFile()).suffix in OPENABLE:
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        event.acceptProposedAction()
        self.commands.open_paths([Path(url.toLocalFile()) for url in event.mimeData().urls()])

    def paintEvent(self, event: QPaintEvent) -> None:
        QPainter(self).fillRect(self.rect(), self.look.colour("window"))

    def closeEvent(self, event: QCloseEvent) -> None:
        if not self._closed:
            self._closed = True
            self._timer.stop()
            self._remember()
            self.hide()
            self.commands.exporter.close()
            self.compare.comparer.stop()
            self.session.close()
        event.accept()

    def _workload_to_keep(self) -> Workload:
        """With `auto` for a device that it would choose anyway: next time there may be a better one."""
        workload, environment = self.session.workload, self.session.environment
        automatic = msgspec.structs.replace(workload, device="auto")
        if environment is not None and on_device(automatic, environment) == workload:
            return automatic
        return workload

    def _remember(self) -> None:
        preferences = self.preferences
        frame = self.normalGeometry() if self.isMaximized() else self.geometry()
        preferences.geometry = (frame.x(), frame.y(), frame.width(), frame.height())
        preferences.maximised = self.isMaximized()
        if self.session.viewing is None:
            preferences.workload = self._workload_to_keep()
            preferences.enabled, preferences.baseline = self.session.enabled, self.session.baseline
            preferences.own = tuple(file.path for file in self.session.own.values())
        preferences.save()
