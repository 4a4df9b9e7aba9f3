"""The panel at the left: workload above, implementations below, scrolling before anything overlaps."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QFrame, QScrollArea, QSizePolicy, QVBoxLayout, QWidget

from app.core.catalog import contender
from app.core.recording import Recording, WorkloadRecord
from app.gui.controls.contender_list import ContenderList
from app.gui.controls.contender_state import RowState, row_states
from app.gui.controls.workload_form import WorkloadForm
from app.gui.marks import draw_mark
from app.gui.parts.buttons import Button
from app.gui.parts.look import Look, Part

STRIP_WIDTH = 48


class LeftPanel(QWidget, Part):
    """Form and list in one scroll area, with the hairlines of the design."""

    def __init__(
        self, look: Look, form: WorkloadForm, contenders: ContenderList, below_form: QWidget | None = None
    ) -> None:
        super().__init__()
        self.look = look
        self.form, self.contenders = form, contenders
        content = QWidget()
        column = QVBoxLayout(content)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        self._sections: list[QVBoxLayout] = []
        for section in (form, contenders):
            if self._sections:
                column.addWidget(Hairline(look))
            box = QVBoxLayout()
            box.addWidget(section)
            if section is form and below_form is not None:
                box.addWidget(below_form)
            column.addLayout(box)
            self._sections.append(box)
        column.addStretch(1)
        self.scroll_area = QScrollArea(self)
        self.scroll_area.setFrameShape(QFrame.Shape.NoFrame)
        self.scroll_area.setWidgetResizable(True)
        self.scroll_area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.scroll_area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.scroll_area.viewport().setAutoFillBackground(False)
        self.scroll_area.setWidget(content)
        content.setAutoFillBackground(False)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 1, 0)
        outer.addWidget(self.scroll_area)
        self.restyle()

    def restyle(self) -> None:
        gap = self.look.sizes.gap
        above = gap if not self.look.small else 10
        for box in self._sections:
            box.setContentsMargins(gap, above, gap - 1, above)
        self.scroll_area.verticalScrollBar().setStyleSheet(scroll_bar_style(self.look))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), self.look.colour("panel"))
        painter.setPen(QPen(self.look.colour("hairline"), 1))
        painter.drawLine(QPointF(self.width() - 0.5, 0), QPointF(self.width() - 0.5, self.height()))


class PanelStrip(QWidget, Part):
    """What is left of the panel in a narrow window: a button that opens it, and the marks as a legend."""

    opened = Signal()

    def __init__(self, look: Look) -> None:
        super().__init__()
        self.look = look
        self._states: tuple[RowState, ...] = ()
        self.setFixedWidth(STRIP_WIDTH)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Expanding)
        self.open_button = Button(look, icon="sliders", kind="quiet", name="Workload (Ctrl+L)", parent=self)
        self.open_button.clicked.connect(self.opened)
        self.open_button.move((STRIP_WIDTH - self.open_button.sizeHint().width()) // 2, 8)

    def show_recording(
        self,
        recording: Recording,
        record: WorkloadRecord | None,
        enabled: Sequence[str],
        baseline: str,
        own: Sequence[str] = (),
    ) -> None:
        """Show the marks of what runs."""
        states = row_states(recording, record, enabled, baseline, own)
        if states != self._states:
            self._states = states
            self.setToolTip("\n".join(state.title for state in states if state.checked))
            self.update()

    def restyle(self) -> None:
        self.open_button.resize(self.open_button.sizeHint())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), self.look.colour("panel"))
        painter.setPen(QPen(self.look.colour("hairline"), 1))
        painter.drawLine(QPointF(self.width() - 0.5, 0), QPointF(self.width() - 0.5, self.height()))
        y = 60.0
        for state in self._states:
            series = self.look.series(state.implementation)
            colour = series if state.checked else self.look.colour("disabled")
            shape = contender(state.implementation).shape
            draw_mark(painter, shape, QPointF(self.width() / 2, y), 10, colour, state.hollow)
            y += 24


class Hairline(QWidget, Part):
    """A line between two sections, from edge to edge."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self.look = look
        self.setFixedHeight(1)

    def paintEvent(self, event: QPaintEvent) -> None:
        QPainter(self).fillRect(self.rect(), self.look.colour("hairline"))


def scroll_bar_style(look: Look) -> str:
    """A thin scroll bar without arrows."""
    return (
        "QScrollBar:vertical { background: transparent; width: 8px; margin: 2px; }"
        f"QScrollBar::handle:vertical {{ background: {look.colour('strong_line').name()};"
        " border-radius: 2px; min-height: 24px; }"
        "QScrollBar::add-line, QScrollBar::sub-line { height: 0; }"
        "QScrollBar::add-page, QScrollBar::sub-page { background: none; }"
    )
