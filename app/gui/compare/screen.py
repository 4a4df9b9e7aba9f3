"""The comparison of two recordings, in the place of everything else: nothing is measured meanwhile."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from app.core.catalog import contender
from app.core.change import Basis
from app.core.comparison import Comparison
from app.core.files import SCHEMA
from app.core.text import number
from app.gui.compare import words
from app.gui.compare.cards import MachineList, MeanBars, heading
from app.gui.compare.opener import Comparer, Side
from app.gui.compare.panel import ComparePanel
from app.gui.compare.table import ChangeTable
from app.gui.controls.run_bar import Logo
from app.gui.parts.banner import BannerStack
from app.gui.parts.buttons import Button, TextLink
from app.gui.parts.card import Card, draw_card
from app.gui.parts.line import Dot, PieceLine, Text
from app.gui.parts.look import Look, Part
from app.gui.parts.menu import MenuItem
from app.gui.parts.picker import Picker
from app.gui.parts.tabs import TabStrip
from app.gui.parts.text import RIGHT, Label, Paragraph
from app.gui.parts.toggles import Segmented
from app.gui.theme import CARD_RADIUS
from app.gui.views.frame import FlushCard, scrolled, slim_bars

_SIDE_WIDTH = 348
_SMALL_SIDE_WIDTH = 252


class CompareScreen(QWidget, Part):
    """Over the whole window while it is shown.

    `left`: back to measuring. `asked_for`: another file for side `a` or `b`. `export_requested` and
    `command_requested` are for whoever writes files and knows the clipboard.
    """

    left = Signal()
    asked_for = Signal(str)
    export_requested = Signal()
    command_requested = Signal()
    notice = Signal(str, str)

    def __init__(self, look: Look, parent: QWidget) -> None:
        super().__init__(parent)
        self.look = look
        self.comparer = Comparer(self)
        self.comparison: Comparison | None = None
        self.chosen = words.Chosen("native")
        self.comparer.compared.connect(self._take)
        self.comparer.failed.connect(lambda sentence: self.notice.emit("error", sentence))
        self.panel = ComparePanel(look)
        self.banners = BannerStack()
        self.verdict = CompareVerdict(look)
        self._make_bar()
        self._make_content()
        self.status = PieceLine(look)
        self._lay_out()
        self._connect()
        self.hide()

    # ---- what is compared ------------------------------------------------------------------------------

    def compare(self, side: Side, beside: Path) -> None:
        """Hold a recording against that of a file. The screen appears when there is something to show."""
        self.comparer.hold(side, beside)

    def leave(self) -> None:
        """Back to where the window was."""
        self.comparer.stop()
        self.comparison = None
        self.hide()
        self.left.emit()

    @property
    def basis_shown(self) -> Basis:
        """On what the verdicts in sight rest."""
        return "net" if self.comparison is None else words.basis_of(self.comparison, self.chosen)

    def _take(self, comparison: Comparison) -> None:
        a, b = self.comparer.a, self.comparer.b
        assert a is not None
        assert b is not None
        self.comparison = comparison
        if self.chosen.implementation not in comparison.implementations or not self.isVisible():
            self.chosen = words.first_choice(comparison)
        self._show()
        self.show()
        self.raise_()

    def _choose(self, **changes: object) -> None:
        self.chosen = replace(self.chosen, **changes)  # type: ignore[arg-type]
        self._show()

    def _show(self) -> None:
        comparison, a, b = self.comparison, self.comparer.a, self.comparer.b
        if comparison is None or a is None or b is None:
            return
        chosen = self.chosen
        basis = words.basis_of(comparison, chosen)
        self.panel.show_comparison(comparison, chosen, a, b)
        self.verdict.show_comparison(comparison, chosen, a.name)
        base = contender(comparison.baseline).short
        self.basis.segment("net").setText(f"Net of {base}")
        self.basis.segment("net").setEnabled(chosen.implementation != comparison.baseline)
        self.basis.set_value(basis)
        self.basis.restyle()
        self.name.set_text(contender(chosen.implementation).title)
        order = words.SORTS[chosen.sort]
        self.sort.set_text(order.removeprefix("Sort: ").capitalize() if self.look.small else order)
        rows = words.rows_of(comparison, chosen)
        self.table.show_rows(rows, basis, base)
        hidden = self.table.hidden_columns
        left_out = f", {hidden} column{'' if hidden == 1 else 's'} hidden" if hidden else ""
        what = (
            f"{contender(chosen.implementation).title}, µs per call, A → B" if not hidden else "µs per call"
        )
        self.changes.subtitle.setText(what + left_out)
        self.footer.set_levels(tuple((Text(line),) for line in words.footer(comparison, chosen)))
        self.environment.subtitle.setText(heading(comparison))
        self.machines.show_rows(comparison.machines, self._everything)
        hidden = self.machines.hidden
        self.more.setText(f"and {hidden} more equal" if hidden else "")
        self.all.setText("Show all" if hidden else "Show fewer")
        self.all.updateGeometry()
        self.all.setVisible(hidden > 0 or self._everything)
        count = len(comparison.workloads)
        self.means.subtitle.setText(f"geometric mean of {count} workload{'' if count == 1 else 's'}")
        self.bars.show_means(comparison.means)
        self.advice.setText(words.advice(comparison, chosen))
        rounds = comparison.a.rounds + comparison.b.rounds
        self.status.set_levels(
            (
                (
                    Dot("text_tertiary", gap=10),
                    Text("Reading", 12, 600, "text", gap=16),
                    Text(f"2 recordings, schema {SCHEMA}", gap=16),
                    Text(f"{number(rounds)} rounds"),
                ),
                (Dot("text_tertiary", gap=10), Text("Reading", 12, 600, "text")),
            )
        )

    # ---- putting together ------------------------------------------------------------------------------

    def _make_bar(self) -> None:
        look = self.look
        self.logo = Logo(look)
        self.back = Button(look, "Back to live", "play", name="Back to measuring (Esc)")
        self.open = Button(look, "Open…", "folder", name="Compare with another recording (Ctrl+O)")
        self.export = Button(look, "Export", "export", name="Export the comparison (Ctrl+E)")
        self.state = Label(
            look, "Two recordings, nothing is running", 12, 600, "text_secondary", RIGHT, may_elide=True
        )

    def _make_content(self) -> None:
        look = self.look
        self._everything = False
        self.tabs = TabStrip(look, ("Compare",))
        self.basis = Segmented(look, (("net", "Net of Native"), ("latency", "Latency")), "Verdict on")
        self.name = Picker(look, "Implementation shown", compact=True)
        self.name.set_items(self._name_items)
        self.sort = Picker(look, "Order", compact=True)
        self.sort.set_items(
            lambda: [MenuItem(k, v, checked=k == self.chosen.sort) for k, v in words.SORTS.items()]
        )
        self.changes = FlushCard(look, "Change per workload")
        self.changes.tools.addWidget(self.sort)
        self.table = ChangeTable(look)
        self.footer = PieceLine(look)
        self.footer.setFixedHeight(32)
        self.changes.body.setSpacing(0)
        self.changes.body.addWidget(self.table, 1)
        foot = QHBoxLayout()
        foot.setContentsMargins(16, 0, 16, 0)
        foot.addWidget(self.footer)
        self.changes.body.addLayout(foot)
        self.environment = Card(look, "Environment")
        self.machines = MachineList(look)
        self.more = Label(look, "", 12, 400, "text_secondary")
        self.all = TextLink(look, "Show all")
        row = QHBoxLayout()
        row.setContentsMargins(32, 4, 6, 0)
        row.addWidget(self.more)
        row.addStretch(1)
        row.addWidget(self.all)
        self.environment.body.addWidget(self.machines)
        self.environment.body.addLayout(row)
        self.means = Card(look, "Latency, A → B")
        self.bars = MeanBars(look)
        self.means.body.addWidget(self.bars)
        self.todo = Card(look, "What to do")
        self.advice = Paragraph(look)
        self.command = Button(look, "Copy as command", "copy", name="The command that makes this comparison")
        self.todo.body.setSpacing(12)
        self.todo.body.addWidget(self.advice)
        self.todo.body.addWidget(self.command, 0, Qt.AlignmentFlag.AlignLeft)

    def _lay_out(self) -> None:
        self._bar = QHBoxLayout()
        self._bar.setSpacing(8)
        for widget in (self.logo, self.back, self.open, self.export):
            self._bar.addWidget(widget)
        self._bar.addStretch(1)
        self._bar.addWidget(self.state)
        self._bar_box = QWidget()
        self._bar_box.setLayout(self._bar)
        side = QWidget()
        self._side = QVBoxLayout(side)
        self._side.setContentsMargins(0, 0, 0, 0)
        for card in (self.environment, self.means, self.todo):
            self._side.addWidget(card)
        self._side.addStretch(1)
        self._area = scrolled(side)
        head = QHBoxLayout()
        head.setSpacing(8)
        head.addWidget(self.tabs)
        head.addStretch(1)
        head.addWidget(self.basis)
        head.addWidget(self.name)
        self._cards = QHBoxLayout()
        self._cards.addWidget(self.changes, 1)
        self._cards.addWidget(self._area)
        self._content = QVBoxLayout()
        self._content.addWidget(self.banners)
        self._content.addWidget(self.verdict)
        self._content.addLayout(head)
        self._content.addLayout(self._cards, 1)
        middle = QHBoxLayout()
        middle.setSpacing(0)
        middle.addWidget(self.panel)
        middle.addLayout(self._content, 1)
        self._foot = QHBoxLayout()
        self._foot.addWidget(self.status)
        self._foot_box = QWidget()
        self._foot_box.setLayout(self._foot)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self._bar_box)
        column.addLayout(middle, 1)
        column.addWidget(self._foot_box)
        self.restyle()

    def _connect(self) -> None:
        self.back.clicked.connect(self.leave)
        self.open.clicked.connect(lambda: self.asked_for.emit("a"))
        self.export.clicked.connect(self.export_requested)
        self.command.clicked.connect(self.command_requested)
        self.panel.side_pressed.connect(self.asked_for)
        self.panel.swapped.connect(self.comparer.swap)
        self.panel.shown.connect(lambda name: self._choose(implementation=name))
        self.panel.filtered.connect(lambda show: self._choose(show=show))
        self.basis.chosen.connect(lambda basis: self._choose(basis=basis))
        self.name.chosen.connect(lambda name: self._choose(implementation=name))
        self.sort.chosen.connect(lambda sort: self._choose(sort=sort))
        self.all.clicked.connect(self._toggle_everything)

    def _name_items(self) -> list[MenuItem]:
        names = self.comparison.implementations if self.comparison is not None else ()
        return [
            MenuItem(
                name, contender(name).title, shape=contender(name).shape, series=name,
                checked=name == self.chosen.implementation,
            )
            for name in names
        ]  # fmt: skip

    def _toggle_everything(self) -> None:
        self._everything = not self._everything
        self._show()

    def restyle(self) -> None:
        sizes, small = self.look.sizes, self.look.small
        gap = sizes.gap
        self._bar_box.setFixedHeight(sizes.toolbar)
        self._bar.setContentsMargins(gap, 0, gap, 1)
        self._foot_box.setFixedHeight(sizes.status)
        self._foot.setContentsMargins(gap, 1, gap, 0)
        self._content.setContentsMargins(gap, gap, gap, gap)
        self._content.setSpacing(gap - 4)
        self._cards.setSpacing(gap)
        self._side.setSpacing(gap)
        self._area.setFixedWidth(_SMALL_SIDE_WIDTH if small else _SIDE_WIDTH)
        self.tabs.setFixedHeight(sizes.tabs)
        slim_bars(self._area, self.look)
        self._show()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        look = self.look
        painter.fillRect(self.rect(), look.colour("window"))
        bar, foot = self._bar_box.geometry(), self._foot_box.geometry()
        painter.fillRect(bar, look.colour("panel"))
        painter.fillRect(foot, look.colour("panel"))
        painter.setPen(QPen(look.colour("hairline"), 1))
        for y in (bar.bottom() + 0.5, foot.top() + 0.5):
            painter.drawLine(QPointF(0, y), QPointF(self.width(), y))
        tabs, left = self.tabs.geometry(), self.verdict.geometry()
        y = tabs.bottom() + 0.5
        painter.drawLine(QPointF(left.left(), y), QPointF(left.right(), y))


class CompareVerdict(QWidget, Part):
    """One sentence first: where the contender got faster and slower. Its edge tells of unequal machines."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self.look = look
        self._state = "same"
        self.sentence, self.evidence = PieceLine(look), PieceLine(look)
        self.caption = Label(look, "", 12, 400, "text_secondary")
        self.figure = Label(look, "", 20, 600)
        self.beside = Label(look, "", 12, 400, "text_secondary")
        lines = QVBoxLayout()
        lines.setSpacing(0)
        lines.addWidget(self.sentence)
        lines.addWidget(self.evidence)
        self._right = QWidget()
        right = QVBoxLayout(self._right)
        right.setContentsMargins(22, 0, 22, 0)
        right.setSpacing(2)
        for label in (self.caption, self.figure, self.beside):
            right.addWidget(label)
        self._row = QHBoxLayout(self)
        self._row.addLayout(lines, 1)
        self._row.addWidget(self._right)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.restyle()

    def show_comparison(self, comparison: Comparison, chosen: words.Chosen, a: str) -> None:
        self._state, sentence = words.sentence(comparison, chosen)
        self.sentence.set_levels(sentence)
        self.evidence.set_levels(words.evidence(comparison, chosen, a))
        caption, figure, beside = words.medians(comparison, chosen)
        self.caption.setText(caption)
        self.figure.setText(figure)
        self.beside.setText(beside)
        self.setAccessibleName(self.text())
        self.update()

    def text(self) -> str:
        """All that is said, as one text."""
        return " | ".join(
            (
                self.sentence.text(),
                self.evidence.text(),
                self.caption.text(),
                self.figure.text(),
                self.beside.text(),
            )
        )

    def restyle(self) -> None:
        small = self.look.small
        self.setFixedHeight(self.look.sizes.verdict)
        self._row.setContentsMargins(
            24 if not small else 20, 12 if not small else 6, 0, 12 if not small else 6
        )

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        look = self.look
        rect = QRectF(self.rect())
        draw_card(painter, look, rect)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        shape = QPainterPath()
        shape.addRoundedRect(rect, CARD_RADIUS, CARD_RADIUS)
        painter.setClipPath(shape)
        painter.fillRect(QRectF(0, 0, 4, rect.height()), look.colour(self._state))
        painter.setClipping(False)
        painter.setPen(QPen(look.colour("hairline"), 1))
        x = self._right.geometry().left() + 0.5
        painter.drawLine(QPointF(x, 14), QPointF(x, rect.height() - 14))
