"""The results table's model: text for anything that reads a table, whole rows for the delegate."""

from __future__ import annotations

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt

from app.gui.views.rows import COLUMNS, Row, title_of

Index = QModelIndex | QPersistentModelIndex
ROW_ROLE = Qt.ItemDataRole.UserRole
COLUMN_ROLE = Qt.ItemDataRole.UserRole + 1
_HERE = QModelIndex()


class ResultsModel(QAbstractTableModel):
    """Rows keep their order; new figures change cells and reset nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: tuple[Row, ...] = ()
        self.columns: tuple[str, ...] = ("name",)

    def rowCount(self, parent: Index = _HERE) -> int:
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: Index = _HERE) -> int:
        return 0 if parent.isValid() else len(self.columns)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if not index.isValid():
            return None
        row, column = self.rows[index.row()], self.columns[index.column()]
        if role == ROW_ROLE:
            return row
        if role == COLUMN_ROLE:
            return column
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
            if column == "name":
                return title_of(row.name)
            return row.cells.get(column, row.sentence if index.column() == 1 else "")
        if role == Qt.ItemDataRole.ToolTipRole:
            return row.tip(column) or row.sentence + (f"\n{row.detail}" if row.detail else "") or None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            side = Qt.AlignmentFlag.AlignRight if COLUMNS[column].right else Qt.AlignmentFlag.AlignLeft
            return int(side | Qt.AlignmentFlag.AlignVCenter)
        return None

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        if orientation != Qt.Orientation.Horizontal or section >= len(self.columns):
            return None
        column = COLUMNS[self.columns[section]]
        if role == Qt.ItemDataRole.DisplayRole:
            return column.title
        if role == Qt.ItemDataRole.ToolTipRole:
            return column.about
        return None

    def show(self, rows: tuple[Row, ...], columns: tuple[str, ...]) -> bool:
        """Take new rows. True: their number, kinds or columns changed, so places must be found anew."""
        before = [(row.name, row.kind) for row in self.rows]
        reshaped = columns != self.columns or [(row.name, row.kind) for row in rows] != before
        if reshaped:
            self.beginResetModel()
            self.rows, self.columns = rows, columns
            self.endResetModel()
        elif rows != self.rows:
            self.rows = rows
            last = self.index(len(rows) - 1, len(columns) - 1)
            self.dataChanged.emit(self.index(0, 0), last, [Qt.ItemDataRole.DisplayRole])
        return reshaped
