"""Two axes crossed: a number in each cell on a colour, hatched where nothing is decided, outlined where
nothing could be measured."""

from __future__ import annotations

import math
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFont, QKeyEvent, QMouseEvent, QPainter, QPen

from app.core.sweep import CellState
from app.gui.charts.heat_scale import HeatScale, ink_on
from app.gui.charts.painted import PaintedChart
from app.gui.charts.painting import CENTRE, LEFT, RIGHT, hatched, width_of, write
from app.gui.icons import draw_icon
from app.gui.parts.look import Look

_GAP, _RADIUS = 2.0, 4.0
_LEGEND = 34
_MOST_WIDE, _MOST_HIGH = 132.0, 92.0

RATIOS = HeatScale.of_ratios(())

Place = tuple[int, int]
"""Column and row."""


@dataclass(frozen=True)
class HeatCell:
    """`value` None: `words` stand in the cell. `tip` is the whole story, on hover and for screen readers."""

    state: CellState
    value: float | None
    text: str
    words: str
    tip: str


@dataclass(frozen=True)
class HeatPicture:
    """What is drawn. `cells` by place; a place without one stays empty."""

    columns: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    column_title: str = ""
    row_title: str = ""
    cells: tuple[tuple[Place, HeatCell], ...] = ()
    scale: HeatScale = RATIOS
    scale_title: str = "Speed-up"
    ticks: tuple[tuple[float, str], ...] = ()
    ringed: Place | None = None
    empty: str = ""


class HeatMap(PaintedChart):
    """Arrow keys move the cell that is selected, Enter opens it; a click chooses one."""

    selected = Signal(int, int)
    chosen = Signal(int, int)
    opened = Signal(int, int)
    ring_radius = _RADIUS

    def __init__(self, look: Look, legend: bool = True) -> None:
        super().__init__(look, "Speed-up map")
        self._legend_height = _LEGEND if legend else 0
        self._picture = HeatPicture()
        self._cells: dict[Place, HeatCell] = {}
        self._hovered: Place | None = None
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setMouseTracking(True)

    @property
    def picture(self) -> HeatPicture:
        return self._picture

    def show_picture(self, picture: HeatPicture) -> None:
        if picture == self._picture:
            return
        self._picture = picture
        self._cells = dict(picture.cells)
        here = self._cells.get(picture.ringed) if picture.ringed is not None else None
        self.setAccessibleName(self.title)
        self.setAccessibleDescription(here.tip if here is not None else picture.empty)
        self.update()

    def minimumSizeHint(self) -> QSize:
        return QSize(220, 150)

    def sizeHint(self) -> QSize:
        return QSize(620, 400)

    # ---- layout ----------------------------------------------------------------------------------------

    def _fonts(self) -> tuple[QFont, QFont]:
        return self.look.font(11), self.look.font(12, 500)

    def _plot(self, area: QRectF) -> QRectF:
        """Where the cells are."""
        ticks, _ = self._fonts()
        left = max((width_of(text, ticks) for text in self._picture.rows), default=10) + 10
        if self._picture.row_title:
            left += 20
        bottom = 20 + (18 if self._picture.column_title else 0) + self._legend_height
        return area.adjusted(left, 0, 0, -bottom)

    def _pitch(self, plot: QRectF) -> tuple[float, float]:
        columns, rows = max(len(self._picture.columns), 1), max(len(self._picture.rows), 1)
        return min(plot.width() / columns, _MOST_WIDE), min(plot.height() / rows, _MOST_HIGH)

    def cell_rect(self, place: Place, area: QRectF | None = None) -> QRectF:
        """Where a cell is drawn."""
        plot = self._plot(QRectF(self.rect()) if area is None else area)
        wide, high = self._pitch(plot)
        column, row = place
        box = QRectF(plot.left() + column * wide, plot.top() + row * high, wide, high)
        return box.adjusted(_GAP / 2, _GAP / 2, -_GAP / 2, -_GAP / 2)

    def _place_at(self, point: QPointF) -> Place | None:
        plot = self._plot(QRectF(self.rect()))
        wide, high = self._pitch(plot)
        if wide <= 0 or high <= 0 or point.x() < plot.left() or point.y() < plot.top():
            return None
        place = int((point.x() - plot.left()) // wide), int((point.y() - plot.top()) // high)
        inside = place[0] < len(self._picture.columns) and place[1] < len(self._picture.rows)
        return place if inside else None

    # ---- drawing ---------------------------------------------------------------------------------------

    def paint_chart(self, painter: QPainter, area: QRectF) -> None:
        picture, look = self._picture, self.look
        if not picture.columns:
            write(painter, area, picture.empty, look.font(13), look.colour("text_secondary"), CENTRE, True)
            return
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        plot = self._plot(area)
        wide, high = self._pitch(plot)
        self._axes(painter, area, plot, wide, high)
        for place, cell in picture.cells:
            self._cell(painter, self.cell_rect(place, area), cell)
        if self._hovered is not None and self._hovered != picture.ringed and self._hovered in self._cells:
            self._ring(painter, self.cell_rect(self._hovered, area), look.colour("control_outline"), 1.5)
        if picture.ringed is not None:
            self._ring(painter, self.cell_rect(picture.ringed, area), look.colour("text"), 2.0)
        if self._legend_height:
            legend = QRectF(area.left(), area.bottom() - _LEGEND, area.width(), _LEGEND)
            self._legend(painter, legend, plot.left())

    def _axes(self, painter: QPainter, area: QRectF, plot: QRectF, wide: float, high: float) -> None:
        picture, look = self._picture, self.look
        ticks, titles = self._fonts()
        ringed = picture.ringed
        for row, text in enumerate(picture.rows):
            here = ringed is not None and ringed[1] == row
            place = QRectF(area.left(), plot.top() + row * high, plot.left() - area.left() - 8, high)
            font = look.font(11, 700) if here else ticks
            write(painter, place, text, font, look.colour("text" if here else "text_tertiary"), RIGHT)
        bottom = plot.top() + len(picture.rows) * high
        last = -1e9
        for column, text in enumerate(picture.columns):
            here = ringed is not None and ringed[0] == column
            font = look.font(11, 700) if here else ticks
            needed = width_of(text, font)
            centre = plot.left() + (column + 0.5) * wide
            if centre - needed / 2 < last + 4 and not here:
                continue
            last = centre + needed / 2
            place = QRectF(centre - needed / 2 - 1, bottom + 3, needed + 2, 16)
            write(painter, place, text, font, look.colour("text" if here else "text_tertiary"), CENTRE)
        if picture.column_title:
            width = len(picture.columns) * wide
            place = QRectF(plot.left(), bottom + 20, width, 16)
            write(painter, place, picture.column_title, titles, look.colour("text_secondary"), CENTRE, True)
        if picture.row_title:
            height = len(picture.rows) * high
            painter.save()
            painter.translate(area.left() + 8, plot.top() + height / 2)
            painter.rotate(-90)
            place = QRectF(-height / 2, -9, height, 18)
            write(painter, place, picture.row_title, titles, look.colour("text_secondary"), CENTRE, True)
            painter.restore()

    def _cell(self, painter: QPainter, box: QRectF, cell: HeatCell) -> None:
        look = self.look
        if cell.value is not None and cell.state != "unsure":
            fill = self._picture.scale.colour(cell.value, look.theme)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(fill)
            painter.drawRoundedRect(box, _RADIUS, _RADIUS)
            self._number(painter, box, cell.text, ink_on(fill))
            return
        if cell.state == "unsure" and cell.value is not None:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(look.fill("unsure"))
            painter.drawRoundedRect(box, _RADIUS, _RADIUS)
            hatched(painter, box.adjusted(1, 1, -1, -1), look.colour("disabled"), 5.0, 1.0)
            font = self._number_font(box, cell.text)
            plate = QRectF(0, 0, min(width_of(cell.text, font) + 8, box.width()), min(20.0, box.height()))
            plate.moveCenter(box.center())
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(look.fill("unsure"))
            painter.drawRoundedRect(plate, 3, 3)
            self._number(painter, box, cell.text, look.colour("unsure"))
            return
        self._wordy(painter, box, cell)

    def _wordy(self, painter: QPainter, box: QRectF, cell: HeatCell) -> None:
        """A cell without a number: an outline, and two words or a sign why."""
        look = self.look
        trouble = cell.state in ("failed", "wrong")
        edge = look.colour("error" if cell.state == "wrong" else "hairline")
        if cell.state == "measuring":
            edge = look.colour("text_secondary")
        painter.setPen(QPen(edge, 1))
        painter.setBrush(look.fill("error") if cell.state == "wrong" else Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), _RADIUS, _RADIUS)
        if cell.state == "waiting":
            return
        role = "error" if trouble else "text" if cell.state == "measuring" else "text_tertiary"
        colour = look.colour(role)
        for size in (11, 10, 9):
            font = look.font(size)
            if width_of(cell.words, font) <= box.width() - 6:
                write(painter, box, cell.words, font, colour, CENTRE)
                return
        first, _, second = cell.words.partition(" ")
        font = look.font(9)
        if (
            second
            and box.height() >= 28
            and max(width_of(w, font) for w in (first, second)) <= box.width() - 4
        ):
            for word, top in ((first, box.center().y() - 12), (second, box.center().y())):
                write(painter, QRectF(box.left(), top, box.width(), 12), word, font, colour, CENTRE)
            return
        icon = {"measuring": "clock", "wrong": "error", "failed": "error"}.get(cell.state, "cross")
        side = min(12.0, box.width() - 4, box.height() - 4)
        draw_icon(
            painter,
            icon,
            QRectF(box.center().x() - side / 2, box.center().y() - side / 2, side, side),
            colour,
        )

    def _number_font(self, box: QRectF, text: str) -> QFont:
        for size, weight in ((14, 600), (12, 600), (11, 600), (10, 600)):
            font = self.look.font(size, weight)
            if width_of(text, font) <= box.width() - 6 and size + 4 <= box.height():
                break
        return font

    def _number(self, painter: QPainter, box: QRectF, text: str, colour: QColor) -> None:
        write(painter, box, text, self._number_font(box, text), colour, CENTRE, may_elide=True)

    @staticmethod
    def _ring(painter: QPainter, box: QRectF, colour: QColor, width: float) -> None:
        painter.setPen(QPen(colour, width))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        inset = width / 2 - 1
        painter.drawRoundedRect(box.adjusted(inset, inset, -inset, -inset), _RADIUS, _RADIUS)

    def _legend(self, painter: QPainter, area: QRectF, left: float) -> None:
        picture, look = self._picture, self.look
        font, small = look.font(12), look.font(11)
        y = area.top() + 8
        title = picture.scale_title
        needed = width_of(title, font) + 12
        start = max(left, area.left() + needed)
        write(painter, QRectF(start - needed, y - 4, needed, 18), title, font, look.colour("text_secondary"))
        swatches = (("UNSURE", True), ("skipped", False))
        tail = sum(width_of(word, font) + 44 for word, _ in swatches)
        width = min(220.0, area.right() - start - tail - 12)
        if width < 60:
            width, tail = min(160.0, area.right() - start), 0.0
        self._bar(painter, QRectF(start, y, width, 9), small)
        if not tail:
            return
        x = start + width + 22
        for word, striped in swatches:
            box = QRectF(x, y - 2, 22, 14)
            if striped:
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(look.fill("unsure"))
                painter.drawRoundedRect(box, 3, 3)
                hatched(painter, box.adjusted(1, 1, -1, -1), look.colour("disabled"), 4.0, 1.0)
            else:
                painter.setPen(QPen(look.colour("strong_line"), 1))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), 3, 3)
            write(
                painter,
                QRectF(x + 28, y - 4, width_of(word, font) + 2, 18),
                word,
                font,
                look.colour("text_secondary"),
                LEFT,
            )
            x += width_of(word, font) + 44

    def _bar(self, painter: QPainter, bar: QRectF, font: QFont) -> None:
        """The colours with their values: slices, since a gradient would be another interpolation."""
        picture, look = self._picture, self.look
        scale = picture.scale
        low, high = math.log(scale.low), math.log(scale.high)
        slices = max(int(bar.width() / 2), 2)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        for index in range(slices):
            value = math.exp(low + (high - low) * (index + 0.5) / slices)
            x = bar.left() + bar.width() * index / slices
            painter.fillRect(
                QRectF(x, bar.top(), bar.width() / slices + 1, bar.height()), scale.colour(value, look.theme)
            )
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        taken: list[QRectF] = []
        # Without difference first: the other ends may give way where there is no room.
        for value, text in sorted(picture.ticks, key=lambda tick: tick[0] != scale.neutral):
            x = bar.left() + bar.width() * (math.log(value) - low) / (high - low)
            needed = width_of(text, font)
            at = min(max(x - needed / 2, bar.left() - 10), bar.right() + 10 - needed)
            place = QRectF(at - 1, bar.bottom() + 3, needed + 2, 14)
            if any(place.adjusted(-4, 0, 4, 0).intersects(other) for other in taken):
                continue
            taken.append(place)
            painter.setPen(QPen(look.colour("strong_line"), 1))
            painter.drawLine(QPointF(x, bar.bottom()), QPointF(x, bar.bottom() + 3))
            write(painter, place, text, font, look.colour("text_tertiary"))

    # ---- hands -----------------------------------------------------------------------------------------

    def tip_at(self, place: QPointF) -> str:
        found = self._place_at(place)
        cell = self._cells.get(found) if found is not None else None
        return cell.tip if cell is not None else ""

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        place = self._place_at(event.position())
        if place != self._hovered:
            self._hovered = place
            self.setCursor(
                Qt.CursorShape.PointingHandCursor if place in self._cells else Qt.CursorShape.ArrowCursor
            )
            self.update()

    def leaveEvent(self, event: object) -> None:
        self._hovered = None
        self.update()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        place = self._place_at(event.position())
        if event.button() == Qt.MouseButton.LeftButton and place in self._cells:
            self.chosen.emit(*place)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        place = self._place_at(event.position())
        if event.button() == Qt.MouseButton.LeftButton and place in self._cells:
            self.opened.emit(*place)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = {
            Qt.Key.Key_Left: (-1, 0),
            Qt.Key.Key_Right: (1, 0),
            Qt.Key.Key_Up: (0, -1),
            Qt.Key.Key_Down: (0, 1),
        }.get(Qt.Key(event.key()))
        here = self._picture.ringed
        if step is not None and self._picture.columns:
            column, row = here if here is not None else (0, 0)
            if here is not None:
                column = min(max(column + step[0], 0), len(self._picture.columns) - 1)
                row = min(max(row + step[1], 0), len(self._picture.rows) - 1)
            self.selected.emit(column, row)
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and here is not None:
            self.opened.emit(*here)
        else:
            super().keyPressEvent(event)


def words_for(state: CellState, reason: str) -> str:
    """Two words for a cell without a number; the whole reason stands in the list beside it."""
    low = reason.lower()
    if state in ("impossible", "waiting", "measuring", "wrong"):
        return {"impossible": "no fit", "waiting": "", "measuring": "now", "wrong": "wrong result"}[state]
    if "memory" in low or "gib" in low:
        return "no memory"
    if "time" in low and "limit" in low:
        return "time limit"
    if state == "failed":
        return "crashed" if "worker" in low else "failed"
    return "not built" if "built" in low or "build" in low else "not run"
