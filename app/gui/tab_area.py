"""The tabs and what is beside them: the span of the charts, and their pictures."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QPointF, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QStackedWidget, QVBoxLayout, QWidget

from app.core.build import BuildState
from app.gui.parts.buttons import Button
from app.gui.parts.look import Look, Part
from app.gui.parts.menu import MenuItem
from app.gui.parts.picker import Picker
from app.gui.parts.tabs import TabStrip
from app.gui.views.frame import View

TITLES = ("Live", "Sweep", "Accuracy", "Roofline", "Build", "System")
LIVE, SWEEP, ACCURACY, ROOFLINE, BUILD, SYSTEM = range(6)
SPANS = {"60": "Last 60 s", "300": "Last 5 min", "all": "All"}
_SHORT_SPANS = {"60": "60 s", "300": "5 min", "all": "All"}


class TabArea(QWidget, Part):
    """A row of tabs over a stack of views. `picture_requested`: the camera was pressed."""

    tab_changed = Signal(int)
    span_changed = Signal(str)
    picture_requested = Signal()

    def __init__(self, look: Look, views: tuple[View, ...], span: str = "60") -> None:
        super().__init__()
        self.look = look
        self._span = span
        self.tabs = TabStrip(look, TITLES)
        self.span = Picker(look, "Time shown", compact=True)
        self.span.set_items(self._spans)
        self.span.chosen.connect(self._choose_span)
        self.camera = Button(look, icon="camera", kind="field", name="Export a picture")
        self.camera.clicked.connect(self.picture_requested)
        self._head = _Head(look)
        self._row = QHBoxLayout(self._head)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(8)
        self._row.addWidget(self.tabs)
        self._row.addStretch(1)
        self._row.addWidget(self.span)
        self._row.addWidget(self.camera)
        self.stack = QStackedWidget()
        self._tools: dict[QWidget, int] = {}
        for index, view in enumerate(views):
            self.stack.addWidget(view)
            for tool in view.head_tools():
                self._row.insertWidget(self._row.count() - 2, tool)
                self._tools[tool] = index
                tool.setVisible(index == LIVE)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(look.sizes.gap)
        column.addWidget(self._head)
        column.addWidget(self.stack, 1)
        self._column = column
        self.tabs.currentChanged.connect(self._changed)
        self.restyle()

    @property
    def current(self) -> View:
        """The view in sight."""
        view = self.stack.currentWidget()
        assert isinstance(view, View)
        return view

    def go_to(self, index: int) -> None:
        if 0 <= index < self.tabs.count():
            self.tabs.setCurrentIndex(index)

    def charts(self) -> Mapping[str, QWidget]:
        """The charts of the tab in sight, by title."""
        return self.current.chart_widgets()

    def show_build(self, build: BuildState) -> None:
        """Mark the Build tab."""
        news = "busy" if build.is_running else "error" if build.state == "failed" else ""
        self.tabs.set_news(BUILD, news)  # type: ignore[arg-type]

    def show_wrong(self, wrong: bool) -> None:
        """Mark the Accuracy tab where a contender's result is wrong."""
        self.tabs.set_news(ACCURACY, "error" if wrong else "")

    def restyle(self) -> None:
        self._column.setSpacing(self.look.sizes.gap)
        self._head.setFixedHeight(self.look.sizes.tabs)
        self.span.set_text((_SHORT_SPANS if self.look.small else SPANS)[self._span])

    def _changed(self, index: int) -> None:
        self.stack.setCurrentIndex(index)
        self.span.setVisible(index == LIVE)
        for tool, of in self._tools.items():
            tool.setVisible(of == index)
        self.tab_changed.emit(index)

    def _spans(self) -> list[MenuItem]:
        return [MenuItem(key, title, checked=key == self._span) for key, title in SPANS.items()]

    def _choose_span(self, key: str) -> None:
        self._span = key
        self.restyle()
        self.span_changed.emit(key)


class _Head(QWidget, Part):
    def __init__(self, look: Look) -> None:
        super().__init__()
        self.look = look
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setPen(QPen(self.look.colour("hairline"), 1))
        y = self.height() - 0.5
        painter.drawLine(QPointF(0, y), QPointF(self.width(), y))
