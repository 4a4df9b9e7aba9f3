"""Live: latency over time, calls, the distribution, and the table of results."""

from __future__ import annotations

from PySide6.QtCore import QSize, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QWidget

from app.core.build import BuildState
from app.core.text import number
from app.gui.charts.counts import CountsChart
from app.gui.charts.distribution import DistributionChart
from app.gui.charts.host import ChartCard
from app.gui.charts.latency import LatencyChart
from app.gui.parts.buttons import Button
from app.gui.parts.card import Card
from app.gui.parts.menu import MenuItem, open_menu
from app.gui.snapshot import Snapshot
from app.gui.theme import Theme, Type
from app.gui.views.build_steps import ROW, StepList
from app.gui.views.frame import FlushCard, View
from app.gui.views.results import ResultsTable

_LEAST_CHARTS = 190
_LEAST_DISTRIBUTION = 116
_COPIES = (
    MenuItem("tsv", "For a spreadsheet", trailing="Ctrl+C"),
    MenuItem("markdown", "As Markdown"),
)


class LiveView(View):
    """`implementation_selected` tells which contender's line was clicked."""

    implementation_selected = Signal(str)

    def __init__(self, theme: Theme, type_: Type) -> None:
        super().__init__(theme, type_)
        look = self.look
        self.latency = LatencyChart(look)
        self.counts = CountsChart(look)
        self.distribution = DistributionChart(look)
        self.table = ResultsTable(look)
        self.steps = StepList(look)
        self._latency_card = ChartCard(look, self.latency, 4)
        self._counts_card = ChartCard(look, self.counts, 6)
        self._distribution_card = ChartCard(look, self.distribution, 6)
        self._build_card = Card(look, "First build", "once per machine, then it loads from the cache")
        self._build_card.body.addWidget(self.steps)
        self._table_card = FlushCard(look, "Results")
        self._table_card.body.addWidget(self.table)
        self._copy = Button(look, "Copy", kind="quiet", chevron=True)
        self._copy.setAccessibleName("Copy the results")
        self._copy.clicked.connect(self._open_copies)
        self._table_card.tools.addWidget(self._copy)
        self._cards: tuple[Card, ...] = (
            self._latency_card,
            self._counts_card,
            self._distribution_card,
            self._build_card,
            self._table_card,
        )
        for card in self._cards:
            card.setParent(self)
        self.table.chosen.connect(self.implementation_selected)
        self._building = False

    def chart_widgets(self) -> dict[str, QWidget]:
        charts: dict[str, QWidget] = {self.latency.title: self.latency, self.counts.title: self.counts}
        if not self._building:
            charts[self.distribution.title] = self.distribution
        return charts

    def minimumSizeHint(self) -> QSize:
        return QSize(640, 2 * _LEAST_CHARTS)

    def sizeHint(self) -> QSize:
        return QSize(1120, 620)

    def _tick(self, snapshot: Snapshot) -> None:
        self.latency.show_snapshot(snapshot)
        self._latency_card.refresh()

    def _take(self, snapshot: Snapshot) -> None:
        self._building = is_first_build(snapshot.recording.build)
        self.counts.show_snapshot(snapshot)
        self.distribution.show_snapshot(snapshot)
        self.steps.show_build(snapshot.recording.build)
        self._counts_card.refresh()
        self._distribution_card.refresh()
        self._build_card.subtitle.setText(_build_caption(snapshot.recording.build))
        self.table.show_snapshot(snapshot)
        self._table_card.subtitle.setText(self._table_caption(snapshot))
        self._arrange()

    def _table_caption(self, snapshot: Snapshot) -> str:
        said = ["per call", "times in µs" if self.look.small else "times in µs, wall"]
        measured = sum(entry.status == "measured" for entry in snapshot.entries)
        if any(row.disturbed for row in self.table.results.rows):
            said.append("in grey: measured beside other work")
        elif self.table.hidden_columns:
            count = len(self.table.hidden_columns)
            said.append(f"{count} column{'s' if count > 1 else ''} hidden")
        elif 0 < measured < len(snapshot.entries):
            said.append(f"{number(measured)} of {number(len(snapshot.entries))} measured")
        elif snapshot.on_gpu:
            counted = [e.counts.verified for e in snapshot.entries if e.counts.verified is not None]
            said.append("counts verified" if counted and all(counted) else "counts not verified")
        else:
            said.append("operator and Python calls counted in a profiled pass of its own")
        return " · ".join(said)

    def _open_copies(self) -> None:
        copies = {"tsv": self.table.copy_tsv, "markdown": self.table.copy_markdown}
        open_menu(self._copy, self.look, _COPIES, lambda chosen: copies[chosen]())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _restyled(self) -> None:
        self._arrange()

    def _arrange(self) -> None:
        """Charts above, table below. Rows give way first, then the charts down to where they can be read."""
        sizes, small = self.look.sizes, self.look.small
        width, height, gap = self.width(), self.height(), sizes.gap
        rows = len(self.table.results.rows)
        wanted = sizes.card_head + self.table.natural_height(max(rows, 4)) + 6
        least = sizes.card_head + 30 + 25 * max(rows, 4) + 6
        charts = self._least_charts()
        table = max(min(wanted, height - gap - charts), min(least, height - gap - _LEAST_CHARTS))
        charts = height - gap - table
        share = 0.39 if not small else 0.376
        right = round(width * share) - gap
        left = width - right - gap
        self._latency_card.setGeometry(0, 0, left, charts)
        self._table_card.setGeometry(0, charts + gap, width, table)
        second = self._build_card if self._building else self._distribution_card
        other = self._distribution_card if self._building else self._build_card
        other.hide()
        counts = charts
        room = charts - gap - self._counts_need(False)
        if self._building or (not small and room >= _LEAST_DISTRIBUTION):
            below = self._below(charts, gap)
            counts = charts - gap - below
            second.setGeometry(left + gap, charts - below, right, below)
            second.show()
        else:
            second.hide()
        self._counts_card.setGeometry(left + gap, 0, right, counts)

    def _counts_need(self, comfortable: bool) -> int:
        head = self.look.sizes.card_head + 6
        rows = max(self.counts.rows, 2)
        return head + self.counts.head + 8 + (22 if comfortable else 16) * rows

    def _below(self, charts: int, gap: int) -> int:
        """Height of the card under the counts."""
        if self._building:
            head = self.look.sizes.card_head + self.look.sizes.card_padding
            most = charts - gap - self._counts_need(False)
            return max(min(head + ROW * 5, most), head + 5 * 18)
        spare = charts - gap - self._counts_need(True)
        return max(_LEAST_DISTRIBUTION, min(spare, 300))

    def _least_charts(self) -> int:
        if self.look.small:
            return max(_LEAST_CHARTS, self._counts_need(False))
        return max(_LEAST_CHARTS, self._counts_need(False) + self.look.sizes.gap + _LEAST_DISTRIBUTION)


def is_first_build(build: BuildState) -> bool:
    """Whether a build runs while nothing is loaded yet."""
    return build.is_running and build.loaded_key is None


def _build_caption(build: BuildState) -> str:
    if build.waiting is not None:
        return "waits for another process that builds it"
    progress = build.progress
    if progress is not None and progress.expected_s:
        left = max(progress.expected_s - progress.elapsed_s, 0.0)
        return f"about {number(max(left, 1))} s left, once per machine"
    return "once per machine, then from the cache"
