"""The results table: a line for each contender, as wide as the view, copied as text at a key."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QModelIndex, QRect, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import (
    QFocusEvent,
    QGuiApplication,
    QHideEvent,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPen,
    QResizeEvent,
    QShowEvent,
)
from PySide6.QtWidgets import QAbstractItemView, QFrame, QHeaderView, QTableView

from app.gui.charts.painting import LEFT, RIGHT, width_of, write
from app.gui.parts.look import Look, Part
from app.gui.snapshot import Snapshot
from app.gui.views.frame import slim_bars
from app.gui.views.results_delegate import EDGE, PADDING, WHISKER, WHISKER_GAP, ResultsDelegate
from app.gui.views.results_model import Index, ResultsModel
from app.gui.views.rows import COLUMNS, as_markdown, as_tsv, columns_of, rows_of

_SPINNER_MS = 80
_LEAST_ROW = 25
_HEAD = 30


class _Head(QHeaderView):
    """Column heads, aligned as their figures are."""

    def __init__(self, table: ResultsTable) -> None:
        super().__init__(Qt.Orientation.Horizontal, table)
        self._table = table
        self.setSectionsClickable(False)
        self.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.setHighlightSections(False)
        self.setMinimumSectionSize(10)
        self.setFixedHeight(_HEAD)

    def paintSection(self, painter: QPainter, rect: QRect, logicalIndex: int) -> None:  # noqa: N803
        columns = self._table.results.columns
        if logicalIndex >= len(columns):
            return
        look, column = self._table.look, COLUMNS[columns[logicalIndex]]
        place = QRectF(rect)
        painter.save()
        painter.fillRect(rect, look.colour("card"))
        painter.setPen(QPen(look.colour("hairline"), 1))
        painter.drawLine(place.bottomLeft(), place.bottomRight())
        inner = place.adjusted(EDGE if column.id == "name" else 0, 0, -PADDING if column.right else 0, 0)
        if not column.right and column.id != "name":
            inner.setLeft(inner.left() + PADDING)
        title = self._table.head_of(column.id)
        align = RIGHT if column.right else LEFT
        write(painter, inner, title, look.font(12, 500), look.colour("text_secondary"), align)
        painter.restore()


class ResultsTable(QTableView, Part):
    """Emits `chosen` with a contender's id when its line is clicked, or Enter is pressed on it."""

    chosen = Signal(str)

    def __init__(self, look: Look) -> None:
        super().__init__()
        self.results = ResultsModel()
        self._cells = ResultsDelegate(look)
        self.hidden_columns: tuple[str, ...] = ()
        self._by_key = False
        self.setModel(self.results)
        self.setItemDelegate(self._cells)
        self.setHorizontalHeader(_Head(self))
        self.verticalHeader().setVisible(False)
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.verticalHeader().setMinimumSectionSize(10)
        self.setShowGrid(False)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setTabKeyNavigation(False)
        self.setMouseTracking(True)
        self.setAccessibleName("Results")
        self.clicked.connect(self._choose)
        self._spin = QTimer(self, interval=_SPINNER_MS)
        self._spin.timeout.connect(self._turn)
        self.set_look(look)

    def restyle(self) -> None:
        self._cells.look = self.look
        slim_bars(self, self.look)
        palette = self.palette()
        palette.setColor(palette.ColorRole.Base, self.look.colour("card"))
        self.setPalette(palette)
        self._arrange()

    def show_snapshot(self, snapshot: Snapshot) -> None:
        columns, self.hidden_columns = columns_of(snapshot, self.look.small)
        rows = rows_of(snapshot)
        self._cells.frozen = snapshot.dimmed
        reshaped = self.results.show(rows, columns)
        if reshaped:
            self.clearSpans()
            for number, row in enumerate(rows):
                if row.kind != "figures" and len(columns) > 2:
                    self.setSpan(number, 1, 1, len(columns) - 1)
        self._scale()
        self._arrange()
        self.viewport().update()
        self._spin_if_needed()

    def head_of(self, column: str) -> str:
        """A column's head; shorter in a small window."""
        if column == "speed_up" and self.look.small:
            return "Speed-up"
        return COLUMNS[column].title

    def _scale(self) -> None:
        """One logarithmic scale for all whiskers, wide enough for every interval, the floor and 1."""
        low, high = 0.95, 1.05
        for row in self.results.rows:
            speed = row.speed
            if speed is not None and not row.is_baseline:
                low = min(low, speed.median, speed.low or speed.median)
                high = max(high, speed.median, speed.high or speed.median)
        room = (high / low) ** 0.08
        self._cells.range = (low / room, high * room)

    def _arrange(self) -> None:
        columns, rows = self.results.columns, self.results.rows
        if not rows:
            return
        height = self.row_height
        self.verticalHeader().setDefaultSectionSize(height)
        font = self.look.font(12, 500)
        needed = [self._cells.natural_width(c, rows, width_of(self.head_of(c), font)) for c in columns]
        spare = self.viewport().width() - sum(needed)
        if "speed_up" in columns:
            whisker = min(max(spare, 0.0), WHISKER + WHISKER_GAP)
            room = self._cells.speed_room + whisker + 2 * PADDING
            place = columns.index("speed_up")
            grown = max(room, needed[place]) - needed[place]
            needed[place] += grown
            spare -= grown
        if spare < 0:
            # Names give way: they are elided with the whole name in the tooltip.
            needed[0] = max(needed[0] + spare, 90.0)
            spare = self.viewport().width() - sum(needed)
        share = max(spare, 0.0) / len(columns)
        edge = 0.0
        for index, width in enumerate(needed):
            start, edge = round(edge), edge + width + share
            self.setColumnWidth(index, round(edge) - start)

    @property
    def row_height(self) -> int:
        """The look's, less where not all rows fit."""
        count = max(len(self.results.rows), 1)
        room = (self.height() - _HEAD) // count
        return max(_LEAST_ROW, min(self.look.sizes.row, room))

    def natural_height(self, rows: int) -> int:
        """Height in which `rows` lines stand at full height."""
        return _HEAD + rows * self.look.sizes.row

    # ---- what the pointer and the keys do -----------------------------------------------------------

    def _choose(self, index: QModelIndex) -> None:
        self.chosen.emit(self.results.rows[index.row()].name)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        super().mouseMoveEvent(event)
        self._hover(self.indexAt(event.position().toPoint()).row())

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._hover(-1)

    def _hover(self, row: int) -> None:
        if row != self._cells.hovered:
            self._cells.hovered = row
            self.setCursor(Qt.CursorShape.PointingHandCursor if row >= 0 else Qt.CursorShape.ArrowCursor)
            self.viewport().update()

    def currentChanged(self, current: Index, previous: Index) -> None:
        super().currentChanged(current, previous)
        self._mark_focus()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        keys = (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason)
        self._by_key = event.reason() in keys
        if not self.currentIndex().isValid() and self.results.rows:
            self.setCurrentIndex(self.results.index(0, 0))
        self._mark_focus()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._mark_focus()

    def _mark_focus(self) -> None:
        shown = self.hasFocus() and self._by_key
        self._cells.focused = self.currentIndex().row() if shown else -1
        self.viewport().update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy_tsv()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.currentIndex().isValid():
            self._choose(self.currentIndex())
        else:
            super().keyPressEvent(event)

    def copy_tsv(self) -> None:
        """The table to the clipboard, for a spreadsheet."""
        QGuiApplication.clipboard().setText(as_tsv(self.results.rows, self.results.columns))

    def copy_markdown(self) -> None:
        """The table to the clipboard as Markdown."""
        QGuiApplication.clipboard().setText(as_markdown(self.results.rows, self.results.columns))

    # ---- spinners -----------------------------------------------------------------------------------

    def _spin_if_needed(self) -> None:
        wanted = self.look.motion and self.isVisible() and any(r.kind == "spinner" for r in self.results.rows)
        if wanted != self._spin.isActive():
            (self._spin.start if wanted else self._spin.stop)()

    def _turn(self) -> None:
        self._cells.angle = (self._cells.angle - 30) % 360
        for number, row in enumerate(self.results.rows):
            if row.kind == "spinner":
                rect = self.visualRect(self.results.index(number, 1))
                self.viewport().update(QRect(rect.left(), rect.top(), 40, rect.height()))

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._spin_if_needed()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._spin.stop()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()
