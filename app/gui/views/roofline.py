"""Roofline: the device's measured ceilings, where each contender lies under them, and by which formulas."""

from __future__ import annotations

import time

from PySide6.QtCore import QRectF, Signal
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.core import messages as m
from app.core import text
from app.core.peaks import Peaks, bandwidth, rate
from app.core.roofline import Formula, Roofline, roofline_of
from app.gui.charts.host import ChartCard
from app.gui.charts.roofline import RooflineChart
from app.gui.icons import draw_icon
from app.gui.parts.buttons import Button
from app.gui.parts.card import Card
from app.gui.parts.look import Look, Part
from app.gui.parts.text import Label, Paragraph
from app.gui.snapshot import Snapshot
from app.gui.theme import Theme, Type
from app.gui.views.facts import Fact, FactList
from app.gui.views.frame import FlushCard, View, scrolled, slim_bars
from app.gui.views.share_table import ShareTable

_EVERY_S = 1.0
"""Points change little from one moment to the next, and their medians cost time."""


class RooflineView(View):
    """`peaks_requested`: the ceilings are wanted; True for measuring them again though they are known."""

    peaks_requested = Signal(bool)

    def __init__(self, theme: Theme, type_: Type) -> None:
        super().__init__(theme, type_)
        look = self.look
        self._asked: set[tuple[object, ...]] = set()
        self._roofline: Roofline | None = None
        self._subject: tuple[object, ...] = ()
        self._made_s = -1e18
        self.chart = RooflineChart(look)
        self.card = ChartCard(look, self.chart, 6)
        self.formulas_card = Card(look, "Formulas", "with the numbers of this workload")
        self.formulas = FactList(look, "Formulas", 104, 22)
        self.formulas_card.body.addWidget(self.formulas)
        self.formulas_card.body.addStretch(1)
        self.ceilings_card = Card(look, "Ceilings")
        self.ceilings = FactList(look, "Ceilings", 70, 24)
        self.ceilings_card.body.addWidget(self.ceilings)
        self.again = Button(look, "Measure again", "restart", "raised")
        self.again.clicked.connect(lambda: self.peaks_requested.emit(True))
        self.age = Label(look, "", 12, 400, "text_tertiary", may_elide=True)
        line = QHBoxLayout()
        line.setContentsMargins(0, 6, 0, 0)
        line.setSpacing(12)
        line.addWidget(self.again)
        line.addWidget(self.age, 1)
        self.ceilings_card.body.addLayout(line)
        self.share_card = FlushCard(look, "Share of the roof", "achieved ÷ attainable at its intensity")
        self.shares = ShareTable(look)
        self.share_card.body.addWidget(self.shares)
        self.remarks_card = Card(look, "How to read it")
        self._remark_column = QVBoxLayout()
        self._remark_column.setSpacing(5)
        self._said: tuple[str, ...] = ()
        self.remarks_card.hide()
        self.remarks_card.body.addLayout(self._remark_column)
        self.remarks_card.body.addStretch(1)
        self._lay_out()

    def _lay_out(self) -> None:
        content = QWidget()
        self._columns = QHBoxLayout(content)
        self._columns.setContentsMargins(0, 0, 0, 0)
        self._left, self._right = QVBoxLayout(), QVBoxLayout()
        self._left.addWidget(self.card, 1)
        self._left.addWidget(self.formulas_card)
        self._right.addWidget(self.ceilings_card)
        self._right.addWidget(self.share_card)
        self._right.addWidget(self.remarks_card, 1)
        self._right.addStretch(1)
        self._columns.addLayout(self._left, 64)
        self._columns.addLayout(self._right, 36)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        self._scroll = scrolled(content)
        outer.addWidget(self._scroll)
        self._restyled()

    def chart_widgets(self) -> dict[str, QWidget]:
        return {self.chart.title: self.chart}

    @property
    def remarks(self) -> tuple[str, ...]:
        """How to read the points, a sentence each."""
        return self._said

    def _restyled(self) -> None:
        slim_bars(self._scroll, self.look)
        gap = self.look.sizes.gap
        for layout in (self._columns, self._left, self._right):
            layout.setSpacing(gap)
        small = self.look.small
        self.share_card.subtitle.setText("" if small else "achieved ÷ attainable at its intensity")
        self.card.setMinimumHeight(250 if small else 300)
        for index, share in enumerate((60, 40) if small else (64, 36)):
            self._columns.setStretch(index, share)

    def _show_remarks(self, said: tuple[str, ...]) -> None:
        if said == self._said:
            return
        self._said = said
        self.remarks_card.setVisible(bool(said))
        # Without remarks the cards above them keep their height, and what is left stays empty.
        self._right.setStretch(self._right.count() - 1, 0 if said else 1)
        empty(self._remark_column)
        for words in said:
            self._remark_column.addWidget(Remark(self.look, words))

    # ---- showing ---------------------------------------------------------------------------------------

    def _take(self, snapshot: Snapshot) -> None:
        roofline = self._current(snapshot)
        state = snapshot.recording.peaks_state
        peaks = roofline.peaks if roofline is not None else None
        self._ask(snapshot, peaks)
        names = tuple(e.implementation for e in snapshot.entries)
        named = [n for n in (snapshot.challenger, snapshot.baseline) if n is not None]
        message = self._message(snapshot, state)
        self.chart.show_roofline(roofline if peaks is not None else None, named, message)
        self.card.refresh()
        self.shares.show_roofline(roofline, names, snapshot.challenger or "")
        self._show_ceilings(snapshot, peaks, state)
        formulas = roofline.formulas if roofline is not None else ()
        self.formulas.show_facts([fact for f in formulas for fact in _facts(f, self.look.small)])
        said = list(roofline.remarks) if roofline is not None else []
        if roofline is not None and roofline.missing and peaks is not None:
            said.insert(0, roofline.missing)
        self._show_remarks(tuple(said))

    def _current(self, snapshot: Snapshot) -> Roofline | None:
        """Made anew once a second, or at once where another workload, file or ceiling is shown."""
        record = snapshot.record
        if record is None:
            return None
        environment = snapshot.recording.environment
        measured = tuple(e.implementation for e in snapshot.entries if e.latency is not None)
        peaks = environment.peaks if environment is not None else ()
        subject = (id(snapshot.recording), id(record), measured, peaks)
        now = time.monotonic()
        if subject != self._subject or now - self._made_s >= _EVERY_S:
            names = tuple(e.implementation.partition("@")[0] for e in snapshot.entries)
            self._roofline = roofline_of(snapshot.recording, record, tuple(dict.fromkeys(names)))
            self._subject, self._made_s = subject, now
        return self._roofline

    def _ask(self, snapshot: Snapshot, peaks: Peaks | None) -> None:
        """The first look at a device without ceilings has them measured; a file's are never replaced."""
        environment, record = snapshot.recording.environment, snapshot.record
        if peaks is not None or environment is None or record is None or snapshot.recorded:
            return
        if not snapshot.running and not snapshot.paused:
            return
        key = (record.workload.device, record.workload.dtype, environment.threads)
        if key not in self._asked:
            self._asked.add(key)
            self.peaks_requested.emit(False)

    def _message(self, snapshot: Snapshot, state: object) -> str:
        if isinstance(state, m.PeaksRefused):
            return state.reason
        if snapshot.recorded:
            return "This recording has no ceilings: its machine's peaks were not measured."
        if snapshot.recording.build.is_running:
            return "The ceilings are measured when the build is done: nothing may run beside it."
        return "Measuring this device's ceilings, about three seconds; nothing is sampled meanwhile."

    def _show_ceilings(self, snapshot: Snapshot, peaks: Peaks | None, state: object) -> None:
        small = self.look.small
        device = "this machine" if snapshot.recorded is False else "the machine of this recording"
        self.ceilings_card.subtitle.setText(f"measured on {device}" if peaks is not None else "")
        measuring = isinstance(state, m.PeaksStarted)
        self.again.set_content("Measure again" if peaks is not None else "Measure", "restart")
        self.again.setEnabled(not measuring and not snapshot.recorded)
        self.again.setVisible(not snapshot.recorded)
        if peaks is None:
            waits = snapshot.recording.build.is_running and not snapshot.recorded
            said = "measuring" if measuring else "after the build" if waits else "not measured"
            self.ceilings.show_facts([Fact("Compute", said), Fact("Memory", said)])
            self.age.setText("about 3 s" if measuring else "")
            return
        how = not small
        facts = [
            Fact("Compute", rate(peaks.compute), _short_compute(peaks) if how else "", bold=True,
                 trailing_role="text_secondary", trailing_bold=False),
            Fact("Memory", bandwidth(peaks.memory), _short_memory(peaks) if how else "", bold=True,
                 trailing_role="text_secondary", trailing_bold=False),
            Fact("Held for", f"{peaks.dtype}, {_threads(peaks)}"),
        ]  # fmt: skip
        if peaks.clock_hz is not None:
            facts.append(Fact("Clock then", f"{text.number(peaks.clock_hz / 1e9, 1)}{text.THIN}GHz"))
        self.ceilings.show_facts(facts)
        took = f"took {text.duration(peaks.took_s)}, "
        self.age.setText("measuring" if measuring else f"{'' if small else took}{peaks.when}")
        self.age.setToolTip(f"{peaks.how_compute}; {peaks.how_memory}; {peaks.when}")


class Remark(QWidget, Part):
    """A sentence behind an icon."""

    def __init__(self, look: Look, words: str) -> None:
        super().__init__()
        self.look = look
        column = QVBoxLayout(self)
        column.setContentsMargins(22, 0, 0, 0)
        column.addWidget(Paragraph(look, words, 12, 400, "text_secondary"))

    def paintEvent(self, event: QPaintEvent) -> None:
        draw_icon(QPainter(self), "info", QRectF(0, 1, 14, 14), self.look.colour("text_tertiary"))


def empty(column: QVBoxLayout) -> None:
    """Take all widgets out of a column, for good."""
    while column.count():
        item = column.takeAt(0)
        widget = item.widget() if item is not None else None
        if widget is not None:
            widget.hide()
            widget.deleteLater()


def _facts(one: Formula, narrow: bool) -> list[Fact]:
    """A formula and its numbers at the end of the line, or below it where both do not fit."""
    if narrow:
        return [Fact(one.title, one.formula, mono=True), Fact("", one.numbers)]
    return [
        Fact(
            one.title,
            one.formula,
            one.numbers,
            trailing_bold=False,
            trailing_role="text_secondary",
            mono=True,
        )
    ]


def _threads(peaks: Peaks) -> str:
    if peaks.device.startswith("cuda"):
        return peaks.processor
    return f"{text.number(peaks.threads)} thread{'s' if peaks.threads != 1 else ''}"


def _short_compute(peaks: Peaks) -> str:
    return f"matmul {text.number(peaks.matmul_size)}³, best of {text.number(peaks.tries)}"


def _short_memory(peaks: Peaks) -> str:
    return f"copy of {text.size(peaks.copy_bytes)}, best of {text.number(peaks.tries)}"
