"""The toolbar: run, restart, profile, the build's state, export, and the machine's readings."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QWidget

from app.core.recording import Recording
from app.gui.controls.build_chip import BuildChip
from app.gui.controls.telemetry_line import TelemetryLine, readings_of
from app.gui.icons import draw_logo
from app.gui.parts.buttons import Button
from app.gui.parts.look import Look, Part
from app.gui.parts.text import width_of

_LEVELS = 5


class RunBar(QWidget, Part):
    """Says less where it is narrow: first the readings' names go, then the buttons' words."""

    menu_requested = Signal()
    run_toggled = Signal()
    restart_requested = Signal()
    profile_requested = Signal()
    sweep_requested = Signal()
    build_requested = Signal()
    export_requested = Signal()

    def __init__(self, look: Look, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.look = look
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.menu = Button(look, icon="menu", kind="quiet", name="Menu")
        self.logo = Logo(look)
        self.run = Button(look, "Pause", "pause", name="Run or pause (Space)")
        self.restart = Button(look, "Restart", "restart", name="Measure this workload anew (Ctrl+R)")
        self.profile = Button(look, "Profile now", "target", name="Count calls again, now (P)")
        self.sweep = Button(look, "Sweep", "sweep", name="Sweep over two or three axes (Ctrl+Shift+S)")
        self.chip = BuildChip(look)
        self.export = Button(look, "Export", "export", chevron=True, name="Export (Ctrl+E)")
        self.telemetry = TelemetryLine(look)
        self._words = {
            self.restart: ("Restart", "restart"),
            self.profile: ("Profile now", "target"),
            self.sweep: ("Sweep", "sweep"),
            self.export: ("Export", "export"),
        }
        self._row = QHBoxLayout(self)
        self._row.setSpacing(8)
        left: tuple[QWidget, ...] = (
            self.menu,
            self.logo,
            _Divider(look),
            self.run,
            self.restart,
            self.profile,
            self.sweep,
        )
        for widget in (*left, _Divider(look), self.chip, self.export):
            self._row.addWidget(widget)
        self._row.addStretch(1)
        self._row.addWidget(self.telemetry)
        self.menu.clicked.connect(self.menu_requested)
        self.run.clicked.connect(self.run_toggled)
        self.restart.clicked.connect(self.restart_requested)
        self.profile.clicked.connect(self.profile_requested)
        self.sweep.clicked.connect(self.sweep_requested)
        self.chip.clicked.connect(self.build_requested)
        self.export.clicked.connect(self.export_requested)
        self.restyle()

    def show_state(self, recording: Recording, stopped: bool, can_run: bool, can_profile: bool) -> None:
        """`stopped`: nothing is measured, and Run is what to do next."""
        self.run.set_content("Run" if stopped else "Pause", "play" if stopped else "pause")
        self.run.set_kind("primary" if stopped and can_run else "raised")
        self.run.setEnabled(can_run)
        self.restart.setEnabled(can_profile)
        self.profile.setEnabled(can_profile)
        self.chip.show_build(recording.build)
        latest = recording.telemetry[-1] if recording.telemetry else None
        self.telemetry.show_readings(readings_of(latest, recording.environment))
        self._fit()

    def restyle(self) -> None:
        gap = self.look.sizes.gap
        self.setFixedHeight(self.look.sizes.toolbar)
        self._row.setContentsMargins(gap - 8, 0, gap, 1)
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._fit()

    def _fit(self) -> None:
        for level in range(_LEVELS):
            self._shorten(level)
            if self._needed() <= self.width():
                return

    def _needed(self) -> int:
        margins = self._row.contentsMargins()
        width, count = margins.left() + margins.right(), 0
        for index in range(self._row.count()):
            item = self._row.itemAt(index)
            widget = item.widget() if item is not None else None
            if widget is not None and not widget.isHidden():
                width += widget.sizeHint().width()
                count += 1
        return width + self._row.spacing() * count

    def _shorten(self, level: int) -> None:
        small = self.look.small
        self.telemetry.set_compact(0 if level == 0 and not small else 1 if level < 3 else 2)
        wordless = level >= 2 or (small and level >= 0)
        for button, (word, icon) in self._words.items():
            button.chevron = not wordless and button is self.export
            button.set_content("" if wordless else word, icon)
        self.chip.set_compact(wordless)
        self.logo.set_named(not wordless)
        if level >= 4:
            self.run.set_content("", self.run.icon_name)
        self._row.invalidate()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), self.look.colour("panel"))
        painter.setPen(QPen(self.look.colour("hairline"), 1))
        y = self.height() - 0.5
        painter.drawLine(QPointF(0, y), QPointF(self.width(), y))


class Logo(QWidget, Part):
    """The sign and, where there is room, the name."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._named = True
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setAccessibleName("AttnScope")
        self.set_look(look)

    def set_named(self, named: bool) -> None:
        if named != self._named:
            self._named = named
            self.updateGeometry()
            self.update()

    def sizeHint(self) -> QSize:
        width = 20 + (8 + width_of("AttnScope", self.look.font(15, 600)) if self._named else 0)
        return QSize(int(width + 1), 24)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        look = self.look
        draw_logo(painter, QRectF(0, 5, 20, 14), look.colour("text_secondary"), logo_block(look))
        if self._named:
            painter.setFont(look.font(15, 600))
            painter.setPen(look.colour("text"))
            painter.drawText(QRectF(28, 0, self.width() - 28, 24), Qt.AlignmentFlag.AlignVCenter, "AttnScope")


def logo_block(look: Look) -> QColor:
    """The block of the sign: the one spot of colour in the chrome."""
    return look.colour("focus")


class _Divider(QWidget, Part):
    def __init__(self, look: Look) -> None:
        super().__init__()
        self.look = look
        self.setFixedSize(17, 24)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setPen(QPen(self.look.colour("strong_line"), 1))
        painter.drawLine(QPointF(8.5, 2), QPointF(8.5, self.height() - 2))
