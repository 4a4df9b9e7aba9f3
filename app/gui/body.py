"""Left panel and content side by side; in a narrow window a strip, from which the panel opens as a drawer."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.gui.controls.left_panel import STRIP_WIDTH, LeftPanel, PanelStrip
from app.gui.parts.look import Look, Part

STRIP_BELOW_WIDTH = 1024


class Body(QWidget, Part):
    """`panel_wanted` is the person's choice; a narrow window overrides it with a strip."""

    panel_changed = Signal(bool)

    def __init__(self, look: Look, panel: LeftPanel, content: QWidget, wanted: bool = True) -> None:
        super().__init__()
        self.look = look
        self.panel, self.content = panel, content
        self.strip = PanelStrip(look)
        self.panel_wanted = wanted
        self._drawer = False
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        for child in (self.strip, content, panel):
            child.setParent(self)
        self.strip.opened.connect(self.toggle_panel)

    @property
    def narrow(self) -> bool:
        return self.width() < STRIP_BELOW_WIDTH

    @property
    def panel_shown(self) -> bool:
        return self._drawer if self.narrow else self.panel_wanted

    def toggle_panel(self) -> None:
        """Open or collapse the panel; in a narrow window it lies over the content."""
        if self.narrow:
            self._drawer = not self._drawer
        else:
            self.panel_wanted = not self.panel_wanted
            self.panel_changed.emit(self.panel_wanted)
        self.place()

    def close_drawer(self) -> bool:
        """Whether there was one to close."""
        was, self._drawer = self._drawer and self.narrow, False
        self.place()
        return was

    def restyle(self) -> None:
        self.place()

    def resizeEvent(self, event: QResizeEvent) -> None:
        if not self.narrow:
            self._drawer = False
        self.place()

    def place(self) -> None:
        width, height = self.width(), self.height()
        panel_width = self.look.sizes.panel
        collapsed = self.narrow or not self.panel_wanted
        left = STRIP_WIDTH if collapsed else panel_width
        self.strip.setVisible(collapsed)
        self.strip.setGeometry(0, 0, STRIP_WIDTH, height)
        self.panel.setVisible(self.panel_shown)
        self.panel.setGeometry(STRIP_WIDTH if self.narrow else 0, 0, panel_width, height)
        self.content.setGeometry(left, 0, max(width - left, 0), height)
        if self.narrow:
            self.panel.raise_()

    def paintEvent(self, event: QPaintEvent) -> None:
        QPainter(self).fillRect(self.rect(), self.look.colour("window"))
