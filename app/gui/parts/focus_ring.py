"""The focus ring: 2 px, 2 px outside whatever has the focus, above everything else."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QApplication, QWidget
from shiboken6 import isValid

from app.gui.parts.look import Look, Part
from app.gui.theme import CONTROL_RADIUS

_REACH = 4
_EVENTS = (QEvent.Type.Move, QEvent.Type.Resize, QEvent.Type.Show, QEvent.Type.Hide, QEvent.Type.ZOrderChange)


class FocusRing(QWidget, Part):
    """One per window: a widget cannot draw outside itself, and a scroll area would cut it."""

    def __init__(self, window: QWidget, look: Look) -> None:
        super().__init__(window)
        self._window = window
        self._target: QWidget | None = None
        self._watched: list[QWidget] = []
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.hide()
        self.set_look(look)
        application = QApplication.instance()
        assert isinstance(application, QApplication)
        application.focusChanged.connect(self._focus_changed)

    @property
    def target(self) -> QWidget | None:
        return self._target

    def _focus_changed(self, old: QWidget | None, new: QWidget | None) -> None:
        for widget in self._watched:
            # The focus also leaves a widget because it is being deleted.
            if isValid(widget):
                widget.removeEventFilter(self)
        self._watched = []
        self._target = None
        if new is not None and hasattr(new, "ring_radius") and self._window.isAncestorOf(new):
            self._target = new
            above: QWidget | None = new
            while above is not None and above is not self._window:
                above.installEventFilter(self)
                self._watched.append(above)
                above = above.parentWidget()
        self._follow()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in _EVENTS:
            self._follow()
        return False

    def _follow(self) -> None:
        target = self._target
        if target is None or not target.isVisible() or target.visibleRegion().isEmpty():
            self.hide()
            return
        corner = target.mapTo(self._window, QPoint(0, 0))
        self.setGeometry(QRect(corner, target.size()).adjusted(-_REACH, -_REACH, _REACH, _REACH))
        self.show()
        self.raise_()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(self.look.colour("focus"), 2))
        radius = getattr(self._target, "ring_radius", CONTROL_RADIUS) + 3
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), radius, radius)
