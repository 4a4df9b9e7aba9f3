"""What every view is: a widget that keeps the newest snapshot and draws it when it can be seen."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QElapsedTimer, Qt, QTimer
from PySide6.QtGui import QPainter, QPaintEvent, QShowEvent
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QScrollArea, QWidget

from app.gui.charts.host import environment_line
from app.gui.parts.card import Card
from app.gui.parts.look import Look, Part, prefers_motion
from app.gui.snapshot import Snapshot
from app.gui.theme import NORMAL, SMALL, TABLE_INTERVAL_MS, Theme, Type


class View(QWidget, Part):
    """Subclasses draw in `_take`, and in `_tick` what may change faster than figures can be read.

    A view that is hidden draws nothing: what it was shown last is drawn when it comes into sight.
    """

    def __init__(self, theme: Theme, type_: Type) -> None:
        super().__init__()
        self.look = Look(theme, type_, NORMAL, prefers_motion())
        self.snapshot: Snapshot | None = None
        self._taken: Snapshot | None = None
        self._age = QElapsedTimer()
        self._late = QTimer(self, singleShot=True)
        self._late.timeout.connect(self._catch_up)

    def show_snapshot(self, snapshot: Snapshot) -> None:
        """Draw a moment. Figures change at most four times a second, curves with every call."""
        before, self.snapshot = self.snapshot, snapshot
        if not self.isVisible():
            return
        self._tick(snapshot)
        age = self._age.elapsed() if self._age.isValid() else TABLE_INTERVAL_MS
        if age >= TABLE_INTERVAL_MS or before is None or _shape(before) != _shape(snapshot):
            self._draw(snapshot)
        elif not self._late.isActive():
            # The last snapshot before a pause must not be the one that is skipped.
            self._late.start(max(1, TABLE_INTERVAL_MS - age))

    def set_theme(self, theme: Theme) -> None:
        self.set_look(replace(self.look, theme=theme))

    def set_small(self, small: bool) -> None:
        self.set_look(self.look.with_sizes(SMALL if small else NORMAL))

    def set_look(self, look: Look) -> None:
        """Take over colours, sizes and whether things move, with everything inside."""
        if look == self.look:
            return
        self.look = look
        for part in self.findChildren(QWidget):
            if isinstance(part, Part):
                part.set_look(look)
        self._restyled()
        if self.snapshot is not None and self.isVisible():
            self._tick(self.snapshot)
            self._draw(self.snapshot)
        self.update()

    def chart_widgets(self) -> dict[str, QWidget]:
        """Charts that can be exported as pictures, by title."""
        return {}

    def picture_line(self, snapshot: Snapshot) -> str:
        """What was measured, and on what: the last line of every picture."""
        return environment_line(snapshot)

    def head_tools(self) -> tuple[QWidget, ...]:
        """What stands beside the tabs while this view is in sight."""
        return ()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self.snapshot is not None and self.snapshot is not self._taken:
            self._tick(self.snapshot)
            self._draw(self.snapshot)

    def paintEvent(self, event: QPaintEvent) -> None:
        QPainter(self).fillRect(self.rect(), self.look.colour("window"))

    def _catch_up(self) -> None:
        if self.snapshot is not None and self.isVisible() and self.snapshot is not self._taken:
            self._draw(self.snapshot)

    def _draw(self, snapshot: Snapshot) -> None:
        self._late.stop()
        self._age.start()
        self._taken = snapshot
        self._take(snapshot)
        line = self.picture_line(snapshot)
        for chart in self.chart_widgets().values():
            chart.environment_line = line  # type: ignore[attr-defined]

    def _tick(self, snapshot: Snapshot) -> None:
        """Draw what moves: at most ten times a second."""

    def _take(self, snapshot: Snapshot) -> None:
        raise NotImplementedError

    def _restyled(self) -> None:
        """Called after a change of theme or size, before the next drawing."""


class FlushCard(Card):
    """A card whose body reaches its edges: tables and lists with lines across."""

    def restyle(self) -> None:
        sizes = self.look.sizes
        self._outer.setContentsMargins(1, 0, 1, 1)
        side, above = sizes.card_padding, (sizes.card_head - 24) // 2
        self._head.setContentsMargins(side - 1, above, side - 1, above)


def scrolled(content: QWidget) -> QScrollArea:
    """`content` in a frame that scrolls up and down, never sideways."""
    area = QScrollArea()
    area.setWidget(content)
    area.setWidgetResizable(True)
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    area.viewport().setAutoFillBackground(False)
    content.setAutoFillBackground(False)
    return area


def slim_bars(area: QAbstractScrollArea, look: Look) -> None:
    """Scroll bars of 8 px, 4 px beside what they move, without arrows, in the theme's lines."""
    style = (
        "QScrollBar { background: transparent; margin: 0; border: none; }"
        "QScrollBar:vertical { width: 12px; } QScrollBar:horizontal { height: 12px; }"
        f"QScrollBar::handle {{ background: {look.colour('strong_line').name()}; border-radius: 4px; }}"
        "QScrollBar::handle:vertical { min-height: 24px; margin-left: 4px; }"
        "QScrollBar::handle:horizontal { min-width: 24px; margin-top: 4px; }"
        "QScrollBar::add-line, QScrollBar::sub-line { width: 0; height: 0; }"
        "QScrollBar::add-page, QScrollBar::sub-page { background: none; }"
    )
    for bar in (area.verticalScrollBar(), area.horizontalScrollBar()):
        if bar.styleSheet() != style:
            bar.setStyleSheet(style)


def _shape(snapshot: Snapshot) -> tuple[object, ...]:
    """What must be drawn at once when it changes."""
    entries = tuple((e.implementation, e.status) for e in snapshot.entries)
    build = snapshot.recording.build
    return (
        id(snapshot.record),
        id(snapshot.recording),
        None if snapshot.sweep is None else (snapshot.sweep.state, snapshot.sweep.done),
        snapshot.baseline,
        snapshot.challenger,
        snapshot.running,
        snapshot.paused,
        snapshot.stale_s is None,
        snapshot.window_s,
        entries,
        build.state,
    )
