"""The change in every workload: figures, an interval over the band in which nothing is claimed, a verdict."""

from __future__ import annotations

import math

from PySide6.QtCore import (
    QAbstractTableModel,
    QEvent,
    QModelIndex,
    QPersistentModelIndex,
    QPointF,
    QRect,
    QRectF,
    Qt,
)
from PySide6.QtGui import QKeyEvent, QKeySequence, QMouseEvent, QPainter, QPen, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QFrame,
    QHeaderView,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
)

from app.core import ticks
from app.core.change import Basis
from app.gui.charts.painting import CENTRE, LEFT, RIGHT, width_of, write
from app.gui.compare.words import ChangeRow, cells, percent, tip
from app.gui.parts.chips import STATE_GLYPHS, chip_width, draw_chip
from app.gui.parts.look import Look, Part
from app.gui.theme import CHIP_HEIGHT
from app.gui.views.frame import slim_bars

COLUMNS = ("workload", "a", "b", "latency", "base", "plot", "net", "verdict")
DROPPED_FIRST = ("base", "latency", "a", "b")
"""What a narrow table leaves out; a line's tooltip has it."""

EDGE, GAP = 16, 12
_HEAD = 36
_PLOT, _SMALL_PLOT = 110, 92
_NAME = 132
"""The least that a workload's name is given before a column goes."""

_LEAST_SPAN, _MOST_SPAN = 0.05, 1.0
_HERE = QModelIndex()
Index = QModelIndex | QPersistentModelIndex


class ChangeModel(QAbstractTableModel):
    """The rows as text, for whatever reads a table."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: tuple[ChangeRow, ...] = ()
        self.columns: tuple[str, ...] = COLUMNS
        self.basis: Basis = "net"
        self.base = "Native"

    def rowCount(self, parent: Index = _HERE) -> int:
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: Index = _HERE) -> int:
        return 0 if parent.isValid() else len(self.columns)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if not index.isValid():
            return None
        row, column = self.rows[index.row()], self.columns[index.column()]
        if role == Qt.ItemDataRole.ToolTipRole:
            return tip(row, self.basis)
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
            if column == "workload":
                return f"{row.title}, {row.detail}"
            if column == "plot":
                ratio = row.change.ratio(self.basis)
                if ratio is None or ratio.low is None or ratio.high is None:
                    return ""
                return f"{percent(ratio.low - 1)} to {percent(ratio.high - 1)}"
            return cells(row, self.basis)[column]
        return None

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        if orientation != Qt.Orientation.Horizontal or role != Qt.ItemDataRole.DisplayRole:
            return None
        return self.title(self.columns[section])

    def title(self, column: str) -> str:
        titles = {
            "workload": "Workload",
            "a": "A",
            "b": "B",
            "latency": "Latency",
            "base": self.base,
            "plot": "95 % interval",
            "net": "Net" if self.basis == "net" else "Change",
            "verdict": "Verdict",
        }
        return titles[column]

    def show(self, rows: tuple[ChangeRow, ...], basis: Basis, base: str) -> None:
        self.beginResetModel()
        self.rows, self.basis, self.base = rows, basis, base
        self.columns = self.wanted()
        self.endResetModel()

    def wanted(self) -> tuple[str, ...]:
        """All columns that say something. Where the latency is what is judged, it does not stand there twice."""
        return tuple(c for c in COLUMNS if self.basis == "net" or c not in ("latency", "base"))

    def take_columns(self, columns: tuple[str, ...]) -> None:
        if columns != self.columns:
            self.beginResetModel()
            self.columns = columns
            self.endResetModel()

    def text(self) -> str:
        """The table for a spreadsheet."""
        columns = range(len(self.columns))
        lines = [[str(self.headerData(c, Qt.Orientation.Horizontal)) for c in columns]]
        lines += [[str(self.data(self.index(r, c))) for c in columns] for r in range(len(self.rows))]
        return "\n".join("\t".join(line) for line in lines)


class _Cells(QStyledItemDelegate):
    def __init__(self, table: ChangeTable) -> None:
        super().__init__(table)
        self._table = table

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        table = self._table
        look, model = table.look, table.changes
        row, column = model.rows[index.row()], model.columns[index.column()]
        rect = QRectF(option.rect)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        current = table.currentIndex().row() == index.row() and table.hasFocus()
        if current or index.row() == table.hovered:
            painter.fillRect(rect, look.colour("row_hover"))
        if column == "plot":
            table.draw_interval(painter, rect, row)
        painter.setPen(QPen(look.colour("hairline"), 1))
        left = rect.left() + (EDGE if column == "workload" else 0)
        painter.drawLine(QPointF(left, rect.bottom() - 0.5), QPointF(rect.right() + 1, rect.bottom() - 0.5))
        if column == "workload":
            self._workload(painter, rect, row)
        elif column == "verdict":
            self._verdict(painter, rect, row)
        elif column != "plot":
            strong = column in ("b", "net")
            font = look.font(13, 600 if strong else 400)
            ink = look.colour("text" if strong else "text_secondary")
            write(painter, rect.adjusted(0, 0, -GAP, 0), cells(row, model.basis)[column], font, ink, RIGHT)
        painter.restore()

    def _workload(self, painter: QPainter, rect: QRectF, row: ChangeRow) -> None:
        look = self._table.look
        place = rect.adjusted(EDGE, 0, -GAP / 2, 0)
        half = place.height() / 2
        upper = QRectF(place.left(), place.top() + 2, place.width(), half)
        lower = QRectF(place.left(), place.top() + half - 1, place.width(), half - 2)
        write(painter, upper, row.title, look.font(13, 600), look.colour("text"), LEFT, may_elide=True)
        write(painter, lower, row.detail, look.font(11), look.colour("text_secondary"), LEFT, may_elide=True)

    def _verdict(self, painter: QPainter, rect: QRectF, row: ChangeRow) -> None:
        look, word = self._table.look, row.change.word(self._table.changes.basis)
        if word is None:
            return
        glyph = STATE_GLYPHS[word]
        width = chip_width(look, word, glyph)
        chip = QRectF(rect.left() + 2, rect.center().y() - CHIP_HEIGHT / 2, width, CHIP_HEIGHT)
        draw_chip(painter, look, chip, word, word, glyph)


class _Head(QHeaderView):
    def __init__(self, table: ChangeTable) -> None:
        super().__init__(Qt.Orientation.Horizontal, table)
        self._table = table
        self.setSectionsClickable(False)
        self.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.setHighlightSections(False)
        self.setMinimumSectionSize(10)
        self.setFixedHeight(_HEAD)

    def paintSection(self, painter: QPainter, rect: QRect, logicalIndex: int) -> None:  # noqa: N803
        table = self._table
        look, columns = table.look, table.changes.columns
        if logicalIndex >= len(columns):
            return
        column, place = columns[logicalIndex], QRectF(rect)
        painter.save()
        painter.fillRect(rect, look.colour("card"))
        painter.setPen(QPen(look.colour("hairline"), 1))
        y = place.bottom() - 0.5
        painter.drawLine(QPointF(place.left(), y), QPointF(place.right() + 1, y))
        font, ink = look.font(12, 500), look.colour("text_secondary")
        if column == "plot":
            for value, text in table.axis():
                x = table.place_of(place, value)
                box = QRectF(x - 40, place.top(), 80, place.height())
                write(painter, box, text, look.font(11), ink, CENTRE)
        else:
            right = column not in ("workload", "verdict")
            inner = place.adjusted(EDGE if column == "workload" else 2, 0, -GAP if right else 0, 0)
            if column == "net":
                font = look.font(12, 600)
                ink = look.colour("text")
            write(
                painter,
                inner,
                table.changes.title(column),
                font,
                ink,
                RIGHT if right else LEFT,
                may_elide=True,
            )
        painter.restore()


class ChangeTable(QTableView, Part):
    """A line per workload; copied as text at a key."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self.changes = ChangeModel()
        self.hovered = -1
        self._span = 0.1
        self.setModel(self.changes)
        self.setItemDelegate(_Cells(self))
        self.setHorizontalHeader(_Head(self))
        self.verticalHeader().setVisible(False)
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.verticalHeader().setMinimumSectionSize(10)
        self.setShowGrid(False)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setTabKeyNavigation(False)
        self.setMouseTracking(True)
        self.setAccessibleName("Change per workload")
        self.set_look(look)

    def show_rows(self, rows: tuple[ChangeRow, ...], basis: Basis, base: str) -> None:
        self.changes.show(rows, basis, base)
        ends = [_LEAST_SPAN]
        for row in rows:
            ratio, claim = row.change.ratio(basis), row.change.claim(basis)
            if ratio is not None:
                ends += [
                    abs(value - 1) for value in (ratio.median, ratio.low, ratio.high) if value is not None
                ]
            if claim is not None and claim.band is not None:
                ends.append(claim.band)
        step = ticks.nice_step(min(max(ends) * 1.08, _MOST_SPAN), 2)
        self._span = step * math.ceil(min(max(ends) * 1.08, _MOST_SPAN) / step - 1e-9)
        self._arrange()

    def restyle(self) -> None:
        slim_bars(self, self.look)
        palette = self.palette()
        palette.setColor(palette.ColorRole.Base, self.look.colour("card"))
        self.setPalette(palette)
        self._arrange()

    # ---- the axis of changes ---------------------------------------------------------------------------

    def axis(self) -> list[tuple[float, str]]:
        """Three ticks: as far either way as the axis goes, and no change."""
        ends = f"{round(100 * self._span):d}" if self._span >= 0.01 else f"{100 * self._span:.1f}"
        return [(1 - self._span, f"−{ends}"), (1.0, "0"), (1 + self._span, f"+{ends} %")]

    def place_of(self, rect: QRectF, ratio: float) -> float:
        """Where a ratio stands; what is beyond the axis stands at its end."""
        share = min(max((ratio - 1) / self._span, -1.0), 1.0)
        inner = rect.adjusted(22, 0, -22, 0)
        return inner.center().x() + share * inner.width() / 2

    def draw_interval(self, painter: QPainter, rect: QRectF, row: ChangeRow) -> None:
        look, basis = self.look, self.changes.basis
        claim, ratio = row.change.claim(basis), row.change.ratio(basis)
        if claim is not None and claim.band is not None:
            left, right = self.place_of(rect, 1 / (1 + claim.band)), self.place_of(rect, 1 + claim.band)
            painter.fillRect(QRectF(left, rect.top(), right - left, rect.height() + 1), look.colour("raised"))
        painter.setPen(QPen(look.colour("grid"), 1))
        for value, _ in self.axis():
            x = self.place_of(rect, value)
            painter.drawLine(QPointF(x, rect.top()), QPointF(x, rect.bottom() + 1))
        if ratio is None:
            return
        word = row.change.word(basis)
        colour = look.colour(word if word in ("faster", "slower") else "text_secondary")
        y, middle = rect.center().y(), self.place_of(rect, ratio.median)
        painter.setPen(QPen(colour, 2))
        if ratio.low is not None and ratio.high is not None:
            low, high = self.place_of(rect, ratio.low), self.place_of(rect, ratio.high)
            painter.drawLine(QPointF(low, y), QPointF(high, y))
            for end in (low, high):
                painter.drawLine(QPointF(end, y - 5), QPointF(end, y + 5))
        painter.setBrush(colour)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.drawEllipse(QPointF(middle, y), 3.5, 3.5)

    # ---- places ----------------------------------------------------------------------------------------

    @property
    def row_height(self) -> int:
        return 36 if self.look.small else 42

    @property
    def hidden_columns(self) -> int:
        """How many columns there is no room for."""
        return len(self.changes.wanted()) - len(self.changes.columns)

    def _arrange(self) -> None:
        model = self.changes
        self.verticalHeader().setDefaultSectionSize(self.row_height)
        widths = {column: self._natural(column) for column in model.wanted()}
        room = self.viewport().width()
        for column in DROPPED_FIRST:
            least = sum(widths.values()) - widths["workload"] + min(widths["workload"], _NAME)
            if least > room and column in widths:
                del widths[column]
        model.take_columns(tuple(widths))
        spare = room - sum(widths.values())
        if spare < 0:
            # Names give way: they are elided with the whole in the tooltip.
            widths["workload"] = max(widths["workload"] + spare, 60.0)
            spare = room - sum(widths.values())
        widths["plot"] += max(spare, 0.0) * 0.6
        widths["workload"] += max(spare, 0.0) * 0.4
        edge = 0.0
        for index, width in enumerate(widths.values()):
            start, edge = round(edge), edge + width
            self.setColumnWidth(index, round(edge) - start)

    def _natural(self, column: str) -> float:
        """Pixels that a column needs so that nothing in it is cut."""
        model, look = self.changes, self.look
        head = width_of(model.title(column), look.font(12, 600))
        if column == "workload":
            texts = [width_of(row.title, look.font(13, 600)) for row in model.rows]
            texts += [width_of(row.detail, look.font(11)) for row in model.rows]
            return max([head, *texts]) + EDGE + GAP
        if column == "plot":
            return float(_SMALL_PLOT if look.small else _PLOT)
        if column == "verdict":
            return max(chip_width(look, "UNSURE", ""), chip_width(look, "SLOWER", "arrow-down")) + EDGE
        texts = [width_of(cells(row, model.basis)[column], look.font(13, 600)) for row in model.rows]
        return max([head, *texts]) + GAP + 4

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    # ---- pointer and keys ------------------------------------------------------------------------------

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        super().mouseMoveEvent(event)
        self._hover(self.indexAt(event.position().toPoint()).row())

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._hover(-1)

    def _hover(self, row: int) -> None:
        if row != self.hovered:
            self.hovered = row
            self.viewport().update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy):
            QApplication.clipboard().setText(self.changes.text())
        else:
            super().keyPressEvent(event)
            self.viewport().update()
