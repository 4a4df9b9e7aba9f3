"""Sweep: the map of one contender, curves through a cell of it, and what was not shown."""

from __future__ import annotations

from typing import Literal

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QWidget

from app.core.catalog import contender
from app.core.fields import fields_of
from app.core.results import Entry
from app.core.sweep import Axis, Cell, Grid, described, shown
from app.core.workload import Workload
from app.gui.charts.heat_map import HeatMap, HeatPicture
from app.gui.charts.host import ChartCard, machine_line
from app.gui.charts.sweep_curves import CurvePicture, SweepCurves
from app.gui.parts.buttons import Button
from app.gui.parts.card import Card
from app.gui.parts.look import Look
from app.gui.parts.menu import MenuItem, open_menu
from app.gui.parts.picker import Picker
from app.gui.parts.text import Label
from app.gui.parts.toggles import Segmented
from app.gui.snapshot import Snapshot
from app.gui.sweep_results import SweepResults
from app.gui.theme import Theme, Type
from app.gui.views.frame import View
from app.gui.views.sweep_cards import SelectedCell, UnclaimedCells
from app.gui.views.sweep_picture import Metric, Slice, curve_picture, heat_picture, metrics
from app.gui.views.sweep_progress import SweepProgress
from app.gui.views.sweep_setup import SweepSetup

CurveKind = Literal["time", "ratio"]


class MapCard(ChartCard):
    """The map, under it nothing, above it where a third axis stands and how far the sweep is."""

    def __init__(self, look: Look, chart: HeatMap) -> None:
        super().__init__(look, chart, 6)
        self.progress = SweepProgress(look)
        self.tools.addWidget(self.progress)
        self.body.insertWidget(0, self.progress.bar)
        self.third = QWidget()
        self._row = QHBoxLayout(self.third)
        self._row.setContentsMargins(0, 0, 0, 8)
        self._row.setSpacing(10)
        self.body.insertWidget(1, self.third)
        self.body.setStretchFactor(chart, 1)
        self.choices: list[Segmented] = []
        self._axes: tuple[Axis, ...] = ()

    def show_others(self, axes: tuple[Axis, ...]) -> bool:
        """Offer the values of the axes that are not in the plane. True: they are others than before."""
        if axes == self._axes:
            return False
        self._axes = axes
        while (item := self._row.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.setParent(None)
                widget.deleteLater()
        self.choices = []
        for axis in axes:
            options = [(str(i), shown(axis.field, value)) for i, value in enumerate(axis.values)]
            choice = Segmented(self.look, options, axis.title, 9)
            self._row.addWidget(Label(self.look, axis.title, 12, 500, "text_secondary"))
            self._row.addWidget(choice)
            self.choices.append(choice)
        self._row.addStretch(1)
        self.third.setVisible(bool(axes))
        return True


class SweepView(View):
    """Tells wishes; what it shows comes from the snapshot's recording and its sweep."""

    start_requested = Signal(object)
    pause_requested = Signal()
    resume_requested = Signal()
    cancel_requested = Signal()
    longer_requested = Signal(list)
    cell_chosen = Signal(object)
    cell_opened = Signal(object)
    command_requested = Signal(object)
    implementation_selected = Signal(str)

    def __init__(self, theme: Theme, type_: Type) -> None:
        super().__init__(theme, type_)
        look = self.look
        self.results = SweepResults()
        self.map, self.curves = HeatMap(look), SweepCurves(look)
        self.map_card = MapCard(look, self.map)
        self.curves_card = ChartCard(look, self.curves, 10)
        self.crossing = Label(look, "", 12, 400, "text_secondary", may_elide=True)
        self.curves_card.body.addWidget(self.crossing)
        self.cell_card, self.unclaimed = SelectedCell(look), UnclaimedCells(look)
        self.setup = SweepSetup(look)
        self.kind: CurveKind = "time"
        self.curve_menu = Button(look, icon="sliders", kind="quiet", name="What the curves show")
        self.curve_menu.clicked.connect(self._open_curve_menu)
        self.curves_card.tools.addWidget(self.curve_menu)
        self.metric_choice = Segmented(look, [(m.id, m.title) for m in metrics(False)], "Map of", 10)
        self.metric_choice.set_value("speed-up")
        self.picker = Picker(look, "Contender of the map", compact=True)
        self.picker.set_items(self._contender_items)
        self.picker.set_text("Implementation")  # until there is a map to name one
        self._cards: tuple[Card, ...] = (
            self.map_card,
            self.curves_card,
            self.cell_card,
            self.unclaimed,
            self.setup,
        )
        for card in self._cards:
            card.setParent(self)
        self.selected: Cell | None = None
        self._grid: Grid | None = None
        self._implementation = ""
        self._axis: str = ""
        self._seen: Workload | None = None
        self._setting_up = False
        self._connect()

    def _connect(self) -> None:
        progress = self.map_card.progress
        progress.pause.clicked.connect(self.pause_requested)
        progress.resume.clicked.connect(self.resume_requested)
        progress.cancel.clicked.connect(self.cancel_requested)
        progress.new.clicked.connect(lambda: self.set_up(True))
        self.setup.closed.connect(lambda: self.set_up(False))
        self.setup.start_requested.connect(self._start)
        self.map.selected.connect(self._select)
        self.map.chosen.connect(self._choose)
        self.map.opened.connect(self._open)
        self.curves.chosen.connect(self._choose_along)
        self.metric_choice.chosen.connect(lambda _: self._redraw())
        self.picker.chosen.connect(self.implementation_selected)
        self.cell_card.open_requested.connect(self._open_selected)
        self.cell_card.command_requested.connect(self._copy_selected)
        self.unclaimed.shown.connect(lambda result: self._show(result.cell))
        self.unclaimed.longer_requested.connect(self._longer)

    def head_tools(self) -> tuple[QWidget, ...]:
        return (self.metric_choice, self.picker)

    def chart_widgets(self) -> dict[str, QWidget]:
        if not self.map.isVisibleTo(self):
            return {}
        return {self.map.title: self.map, self.curves.title: self.curves}

    def picture_line(self, snapshot: Snapshot) -> str:
        return machine_line(snapshot, self._rest())

    def minimumSizeHint(self) -> QSize:
        return QSize(640, 380)

    def set_up(self, wanted: bool) -> None:
        """Show the form of a new sweep in the place of the map, or the map again."""
        self._setting_up = wanted
        self._redraw()

    def next_step(self) -> QWidget:
        """What there is to do here: start a sweep, go on with one, or move about in the map."""
        if self.setup.isVisible():
            return self.setup.start
        resume = self.map_card.progress.resume
        return resume if resume.isVisible() else self.map

    # ---- drawing ---------------------------------------------------------------------------------------

    def _redraw(self) -> None:
        if self.snapshot is not None:
            self._draw(self.snapshot)

    def _take(self, snapshot: Snapshot) -> None:
        status = snapshot.sweep
        plan = status.plan if status is not None else None
        active = status.active if status is not None else None
        self.results.look(snapshot.recording, plan, snapshot.baseline, active)
        grid = self.results.grid
        self._show_setup(snapshot, grid)
        if grid is None or status is None or self._setting_up:
            self._arrange()
            return
        self._implementation = self._contender_of(snapshot)
        self.picker.set_text(contender(self._implementation).title)
        self._follow(snapshot, grid)
        assert self.selected is not None
        plane = Slice.through(grid, self.selected)
        if self.map_card.show_others(tuple(axis for axis, _ in plane.others)):
            for number, choice in enumerate(self.map_card.choices):
                choice.chosen.connect(lambda value, n=number: self._choose_other(n, int(value)))
        for choice, (axis, value) in zip(self.map_card.choices, plane.others, strict=True):
            choice.set_value(str(axis.values.index(value)))
        self._show_map(snapshot, plane)
        self._show_curves(grid)
        self._show_cell(grid)
        results = self.results.results(self._implementation)
        self.unclaimed.can_measure = not snapshot.recorded
        self.unclaimed.show_results(results, len(grid), status.is_complete)
        progress = self.map_card.progress
        focused = any(button.hasFocus() for button in progress.buttons)
        progress.show_status(status)
        if focused and not any(button.isVisible() and button.hasFocus() for button in progress.buttons):
            # The button that was pressed has gone: the focus stays with what took its place.
            (progress.pause if progress.pause.isVisible() else self.map).setFocus(
                Qt.FocusReason.TabFocusReason
            )
        self._arrange()

    def _show_setup(self, snapshot: Snapshot, grid: Grid | None) -> None:
        base = snapshot.record.workload if snapshot.record is not None else self.setup.base
        names = tuple(e.implementation for e in snapshot.entries if "@" not in e.implementation)
        self.setup.back.setVisible(grid is not None)
        if names:
            self.setup.show_base(base, names, snapshot.baseline)
        shown_ = grid is None or self._setting_up
        self.setup.setVisible(shown_)
        for card in (self.map_card, self.curves_card, self.cell_card, self.unclaimed):
            card.setVisible(not shown_)
        for tool in self.head_tools():
            tool.setEnabled(not shown_)

    def _contender_of(self, snapshot: Snapshot) -> str:
        names = [n for n in self.results.contenders if n != snapshot.baseline]
        if snapshot.challenger in names:
            return snapshot.challenger
        if self._implementation in names:
            return self._implementation
        return names[-1] if names else snapshot.baseline

    def _follow(self, snapshot: Snapshot, grid: Grid) -> None:
        """The selection stays where it is, and goes along where the workload shown becomes another cell."""
        if grid is not self._grid:
            self._grid, self.selected, self._seen = grid, None, None
        workload = snapshot.record.workload if snapshot.record is not None else None
        if workload is not None and workload != self._seen:
            self._seen = workload
            self.selected = grid.cell_of(workload) or self.selected
        if self.selected is None:
            first = self.results.plan.workloads[0] if self.results.plan is not None else None
            self.selected = (grid.cell_of(first) if first is not None else None) or grid.cells[0]

    def _metric(self) -> Metric:
        on_gpu = self.snapshot is not None and self.snapshot.on_gpu
        for metric in metrics(on_gpu):
            self.metric_choice.segment(metric.id).setText(metric.title)
        return next(m for m in metrics(on_gpu) if m.id == self.metric_choice.value())

    def _show_map(self, snapshot: Snapshot, plane: Slice) -> None:
        metric = self._metric()
        name, base = contender(self._implementation).title, contender(snapshot.baseline).short
        self.map.title = metric.map_title
        over = f"{name} over {base}" if metric.is_ratio else name
        self.map.caption = over if self.look.small else f"{over} · {self._rest()}"
        picture: HeatPicture = heat_picture(self.results, plane, self._implementation, metric, self.selected)
        self.map.show_picture(picture)
        self.map_card.refresh()

    def _rest(self) -> str:
        """What is the same in every cell."""
        grid, plan = self.results.grid, self.results.plan
        if grid is None or plan is None:
            return ""
        base, axes = plan.workloads[0], {axis.field for axis in grid.axes}
        said = []
        for name, field in fields_of(Workload).items():
            if name in axes or name == "device":
                continue
            same = len({getattr(w, name) for w in plan.workloads}) == 1
            if not same:
                said.append(f"{field.title.lower()} follow")
            elif field.kind == "int":
                said.append(f"{field.title.lower()} {shown(name, getattr(base, name))}")
            else:
                said.append(shown(name, getattr(base, name)))
        return ", ".join(said)

    def _numeric_axes(self) -> list[Axis]:
        grid = self.results.grid
        return [axis for axis in grid.axes if axis.is_numeric] if grid is not None else []

    def _show_curves(self, grid: Grid) -> None:
        axes = self._numeric_axes()
        axis = next((a for a in axes if a.field == self._axis), axes[0] if axes else None)
        is_ratio = self.kind == "ratio"
        what = "Speed-up" if is_ratio else "Latency"
        self.curves.title = what if axis is None else f"{what} against {axis.title.lower()}"
        if axis is None or self.selected is None:
            self.curves.caption = ""
            self.curves.show_picture(CurvePicture(empty="No axis of this sweep has numbers"))
            self.crossing.setText("")
        else:
            others = [
                f"{a.title.lower()} {shown(a.field, v)}"
                for a, v in zip(grid.axes, self.selected.values, strict=True)
                if a is not axis
            ]
            band = ["log–log", "95 % interval" if is_ratio else "IQR band"]
            self.curves.caption = " · ".join([*others, *([] if self.look.small else band)])
            picture, words = curve_picture(self.results, axis, self.selected, self._implementation, is_ratio)
            self.curves.show_picture(picture)
            self.crossing.setText(words[:1].upper() + words[1:])
        self.curves_card.refresh()

    def _show_cell(self, grid: Grid) -> None:
        cell = self.selected
        assert cell is not None
        result = self.results.result(cell, self._implementation)
        base: Entry | None = self.results.entry(cell, self.results.baseline)
        self.cell_card.show_cell(described(grid, cell), result, base, self._implementation)

    # ---- hands -----------------------------------------------------------------------------------------

    def _contender_items(self) -> list[MenuItem]:
        items = []
        for name in self.results.contenders:
            if name != self.results.baseline:
                one = contender(name)
                checked = name == self._implementation
                items.append(MenuItem(name, one.title, shape=one.shape, series=name, checked=checked))
        return items

    def _curve_items(self) -> list[MenuItem]:
        axes = self._numeric_axes()
        field = self._axis if any(a.field == self._axis for a in axes) else axes[0].field if axes else ""
        return [
            MenuItem("show", "Show", heading=True),
            MenuItem("time", "Time per call", checked=self.kind == "time"),
            MenuItem("ratio", "Speed-up", checked=self.kind == "ratio"),
            MenuItem("against", "Against", heading=True, line_before=True),
            *(MenuItem(a.field, a.title, checked=a.field == field) for a in axes),
        ]

    def _open_curve_menu(self) -> None:
        open_menu(self.curve_menu, self.look, self._curve_items(), self.choose_curves)

    def choose_curves(self, choice: str) -> None:
        """`time`, `ratio`, or the field of an axis with numbers."""
        if choice in ("time", "ratio"):
            self.kind = choice  # type: ignore[assignment]
        else:
            self._axis = choice
        self._redraw()

    def _start(self, plan: object) -> None:
        self._setting_up = False
        self.selected = None
        self.start_requested.emit(plan)
        if self.map.isVisible():
            self.map.setFocus(Qt.FocusReason.TabFocusReason)

    def _cell_at(self, column: int, row: int) -> Cell | None:
        grid = self.results.grid
        if grid is None or self.selected is None:
            return None
        return Slice.through(grid, self.selected).cell(grid, column, row)

    def _show(self, cell: Cell | None) -> None:
        if cell is not None:
            self.selected = cell
            self._redraw()

    def _select(self, column: int, row: int) -> None:
        self._show(self._cell_at(column, row))

    def _choose(self, column: int, row: int) -> None:
        self._load(self._cell_at(column, row))

    def _load(self, cell: Cell | None) -> None:
        """Select a cell, and ask for its workload."""
        self._show(cell)
        if cell is not None and cell.workload is not None:
            self.cell_chosen.emit(cell.workload)

    def _open(self, column: int, row: int) -> None:
        cell = self._cell_at(column, row)
        if cell is not None and cell.workload is not None:
            self.cell_opened.emit(cell.workload)

    def _open_selected(self) -> None:
        if self.selected is not None and self.selected.workload is not None:
            self.cell_opened.emit(self.selected.workload)

    def _copy_selected(self) -> None:
        if self.selected is not None and self.selected.workload is not None:
            self.command_requested.emit(self.selected.workload)

    def _choose_along(self, at: float) -> None:
        grid, axes = self.results.grid, self._numeric_axes()
        if grid is None or self.selected is None or not axes:
            return
        field = self._axis if any(a.field == self._axis for a in axes) else axes[0].field
        values = grid.values_of(self.selected)
        values[field] = next((v for v in grid.axis(field).values if float(v) == at), values[field])  # type: ignore[union-attr]
        self._load(grid.at(values))

    def _choose_other(self, number: int, index: int) -> None:
        """Another plane, at the same place in it."""
        grid = self.results.grid
        if grid is None or self.selected is None:
            return
        plane = Slice.through(grid, self.selected)
        axis = plane.others[number][0]
        values = {**grid.values_of(self.selected), axis.field: axis.values[index]}
        self._show(grid.at(values))

    def _longer(self) -> None:
        unsure = [r.cell.workload for r in self.results.results(self._implementation) if r.state == "unsure"]
        self.longer_requested.emit([w for w in unsure if w is not None])

    # ---- layout ----------------------------------------------------------------------------------------

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _restyled(self) -> None:
        self._arrange()

    def _arrange(self) -> None:
        width, height, gap = self.width(), self.height(), self.look.sizes.gap
        if self.setup.isVisibleTo(self):
            self.setup.setGeometry(0, 0, width, height)
            return
        small = self.look.small
        right = round(width * (0.40 if not small else 0.42)) - gap
        left = width - right - gap
        groups = max(sum(row.isVisibleTo(self.unclaimed) for row in self.unclaimed.rows), 1)
        below = self.look.sizes.card_head + 30 * groups + 14
        below = min(below, max(height // 3, self.look.sizes.card_head + 44))
        cell = max(self.cell_card.sizeHint().height(), 150)
        cell = min(cell, height // 2)
        self.map_card.setGeometry(0, 0, left, height - below - gap)
        self.unclaimed.setGeometry(0, height - below, left, below)
        self.curves_card.setGeometry(left + gap, 0, right, height - cell - gap)
        self.cell_card.setGeometry(left + gap, height - cell, right, cell)
