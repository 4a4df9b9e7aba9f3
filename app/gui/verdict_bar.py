"""The verdict: one sentence, the evidence below it, the causes at its right. It stays on every tab."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from app.core.catalog import CONTENDERS, contender
from app.gui.controls.contender_state import contender_items
from app.gui.parts.buttons import Button
from app.gui.parts.chips import hatch
from app.gui.parts.line import PieceLine
from app.gui.parts.look import Look, Part
from app.gui.parts.menu import Menu, open_menu
from app.gui.snapshot import Snapshot
from app.gui.theme import CARD_RADIUS
from app.gui.verdict_model import Verdict
from app.gui.verdict_parts import BuildPanel, Buttons, Figures, NamePicker, WithheldPanel
from app.gui.verdict_text import FIRST_PICKER, SECOND_PICKER, Writer
from app.gui.verdict_words import plain_title, subject_of

_EDGE = 4
_PILLS = 2


class VerdictBar(QWidget, Part):
    """`acted` tells what a person wants done; the window does it."""

    acted = Signal(str)
    challenger_picked = Signal(str)
    baseline_picked = Signal(str)

    def __init__(self, look: Look, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.look = look
        self._snapshot: Snapshot | None = None
        self._context: tuple[bool, str, float | None, bool] = (False, "", None, False)
        self.verdict: Verdict | None = None
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.sentence, self.evidence = PieceLine(look), PieceLine(look)
        self.challenger = NamePicker(look, "challenger")
        self.baseline = NamePicker(look, "baseline")
        self.challenger.clicked.connect(self.open_challengers)
        self.baseline.clicked.connect(self.open_baselines)
        self.sentence.host(FIRST_PICKER, self.challenger)
        self.sentence.host(SECOND_PICKER, self.baseline)
        self.pills = [Button(look, "…", kind="pill") for _ in range(_PILLS)]
        for index, pill in enumerate(self.pills):
            pill.clicked.connect(lambda _=False, i=index: self._pressed(i))
            self.evidence.host(f"pill{index}", pill)
        self.figures = Figures(look)
        self.build_panel = BuildPanel(look)
        self.build_panel.cancelled.connect(lambda: self.acted.emit("cancel-build"))
        self.withheld = WithheldPanel(look)
        self.buttons = Buttons(look)
        self.buttons.acted.connect(self.acted)
        self._row = QHBoxLayout(self)
        self._row.setSpacing(12)
        self._lines = QVBoxLayout()
        self._lines.addWidget(self.sentence)
        self._lines.addWidget(self.evidence, 1)
        self._row.addLayout(self._lines, 1)
        for panel in (self.figures, self.build_panel, self.withheld, self.buttons):
            panel.hide()
            self._row.addWidget(panel)
        self.restyle()

    def show_snapshot(
        self,
        snapshot: Snapshot,
        viewing: bool = False,
        stopped: str = "",
        waiting_s: float | None = None,
        picked: bool = False,
    ) -> None:
        """Say what the snapshot says; the rest as `Writer.verdict` has it."""
        self._snapshot, self._context = snapshot, (viewing, stopped, waiting_s, picked)
        said = Writer(self.look.sizes).verdict(snapshot, viewing, stopped, waiting_s, picked)
        self._name_pickers(snapshot, subject_of(snapshot, picked))
        changed = said != self.verdict
        self.verdict = said
        if changed:
            self._show(said)

    def text(self) -> str:
        """All that is said now, as one text."""
        parts = [self.sentence.text(), self.evidence.text()]
        if not self.figures.isHidden():
            parts += self.figures.texts()
        return " | ".join(parts)

    def restyle(self) -> None:
        sizes = self.look.sizes
        self.setFixedHeight(sizes.verdict)
        small = self.look.small
        self._row.setContentsMargins(24 if not small else 20, 0, 16 if not small else 8, 0)
        # The sentence stands where the design has it: 35 of 96 px from the top, the evidence at 68.
        self._lines.setContentsMargins(0, 14 if not small else 10, 0, 16 if not small else 10)
        self.sentence.setFixedHeight(42 if not small else 36)
        self._lines.setSpacing(0)
        if self._snapshot is not None:
            self.verdict = None
            self.show_snapshot(self._snapshot, *self._context)

    def open_challengers(self) -> Menu:
        """The menu of whom the verdict may be about."""
        snapshot = self._snapshot
        names = [e.implementation for e in snapshot.entries] if snapshot is not None else []
        current = snapshot.challenger if snapshot is not None else None
        taken = snapshot.baseline if snapshot is not None else None
        items = contender_items(names, current, taken)
        return open_menu(self.challenger, self.look, items, self.challenger_picked.emit)

    def open_baselines(self) -> Menu:
        """The menu of what it is compared with."""
        snapshot = self._snapshot
        measured = [e.implementation for e in snapshot.entries] if snapshot is not None else []
        names = [name for name in CONTENDERS if name in measured]
        current = snapshot.baseline if snapshot is not None else None
        items = contender_items(names, current)
        return open_menu(self.baseline, self.look, items, self.baseline_picked.emit)

    # ---- inside ----------------------------------------------------------------------------------------

    def _name_pickers(self, snapshot: Snapshot, first: str | None) -> None:
        for picker, name in ((self.challenger, first), (self.baseline, snapshot.baseline)):
            title = plain_title(name) if name else ""
            if self.look.small and name and len(title) > 18:
                title = contender(name).short
            picker.set_name(title)

    def _show(self, said: Verdict) -> None:
        for picker in (self.challenger, self.baseline):
            picker.set_dimmed(said.dimmed)
        for pill, action in zip(self.pills, said.pills, strict=False):
            pill.set_content(action.title, action.icon)
        self.figures.show_figures(said.figures, said.dimmed)
        self.figures.setVisible(bool(said.figures))
        self.build_panel.setVisible(said.progress is not None)
        if said.progress is not None:
            self.build_panel.show_progress(said.progress)
        self.withheld.setVisible(said.withheld is not None)
        if said.withheld is not None:
            self.withheld.show_withheld(said.withheld)
        own = said.buttons if said.progress is None else ()
        self.buttons.show_actions(self.look, own)
        self.buttons.setVisible(bool(own))
        self.sentence.set_levels(said.sentence)
        self.evidence.set_levels(said.evidence)
        self.setAccessibleName(f"Verdict: {self.sentence.text(0)}. {self.evidence.text(0)}")
        self._fit()
        self.sentence.arrange()
        self.evidence.arrange()
        self.update()

    def _fit(self) -> None:
        """Show as many figures as leave the shortest sentence and evidence whole."""
        margins = self._row.contentsMargins()
        room = self.width() - margins.left() - margins.right() - self._row.spacing()
        evidence = self.evidence.levels
        # Down to the third version the evidence may shrink before a figure goes: rounds, then max |Δ|.
        least = self.evidence.width_of(evidence[min(2, len(evidence) - 1)])
        whole = max(least, self.sentence.width_of(self.sentence.levels[0]))
        short = max(least, self.sentence.width_of(self.sentence.levels[-1]))
        count = len(self.figures.figures)
        while count > 1 and self.figures.width_for(count) + whole > room:
            count -= 1
        if count and self.figures.width_for(count) + short > room:
            count = 0
        self.figures.set_shown(count)
        self.figures.setVisible(count > 0)
        self._row.activate()

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._fit()

    def _pressed(self, index: int) -> None:
        if self.verdict is not None and index < len(self.verdict.pills):
            self.acted.emit(self.verdict.pills[index].id)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        look = self.look
        rect = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        card = QPainterPath()
        card.addRoundedRect(rect, CARD_RADIUS, CARD_RADIUS)
        painter.fillPath(card, look.colour("card"))
        painter.setPen(QPen(look.colour("hairline"), 1))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawPath(card)
        if self.verdict is None:
            return
        strip = QPainterPath()
        strip.addRect(QRectF(0, 0, _EDGE, self.height()))
        edge = card.intersected(strip)
        if self.verdict.edge == "hatched":
            painter.fillPath(edge, look.colour("hairline"))
            hatch(painter, edge, look.colour("text_secondary"), spacing=4, width=1.4)
        else:
            painter.fillPath(edge, edge_colour(look, self.verdict))


def edge_colour(look: Look, said: Verdict) -> QColor:
    """A verdict's edge: the colour of its state, greyed where it is no verdict."""
    return look.colour(said.edge)
