"""The strip of tabs: words, a line under the current one, and a dot or a ring where a tab has news."""

from __future__ import annotations

from typing import Literal

from PySide6.QtCore import QEasingCurve, QPointF, QRectF, QSize, Qt, QTimer, QVariantAnimation
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QTabBar, QWidget

from app.gui.parts.chips import draw_ring
from app.gui.parts.look import Look, Part
from app.gui.parts.text import CENTRE, draw_text, width_of
from app.gui.theme import HOVER_MS

News = Literal["", "busy", "error"]


class TabStrip(QTabBar, Part):
    """A tab bar drawn our way. `set_news` marks a tab as busy or in trouble."""

    ring_radius = 4.0

    def __init__(self, look: Look, titles: tuple[str, ...], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.look = look
        self._news: dict[int, News] = {}
        self._angle = 0
        self._line = QRectF()
        self.setDrawBase(False)
        self.setExpanding(False)
        self.setUsesScrollButtons(False)
        self.setElideMode(Qt.TextElideMode.ElideNone)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setSizePolicy(QSizePolicy.Policy.Minimum, QSizePolicy.Policy.Fixed)
        self.setMouseTracking(True)
        self._slide = QVariantAnimation(self)
        self._slide.setEasingCurve(QEasingCurve.Type.OutCubic)
        self._slide.valueChanged.connect(self._move_line)
        self._slide.finished.connect(self._settle)
        self._turn = QTimer(self)
        self._turn.setInterval(80)
        self._turn.timeout.connect(self._spin)
        for title in titles:
            self.addTab(title)
        self.currentChanged.connect(self._start_slide)
        self.set_look(look)

    def set_news(self, index: int, news: News) -> None:
        if self._news.get(index, "") == news:
            return
        self._news[index] = news
        words = {"": "", "busy": "busy", "error": "has an error"}[news]
        self.setAccessibleTabName(index, " ".join(filter(None, (self.tabText(index), words))))
        # QTabBar keeps the widths that it found; a text, even the same, makes it measure anew.
        self.setTabText(index, self.tabText(index))
        if "busy" in self._news.values() and self.look.motion:
            self._turn.start()
        else:
            self._turn.stop()

    def news(self, index: int) -> News:
        return self._news.get(index, "")

    def restyle(self) -> None:
        # Without this QTabBar keeps the widths of the font it was made with.
        self.setFont(self.look.font(13, 600))

    def tabSizeHint(self, index: int) -> QSize:
        padding = 11 if not self.look.small else 9
        width = width_of(self.tabText(index), self.look.font(13, 600)) + 2 * padding + 1
        if self._news.get(index):
            width += 20
        return QSize(int(width + 0.99), self.look.sizes.tabs)

    def minimumTabSizeHint(self, index: int) -> QSize:
        return self.tabSizeHint(index)

    def _target(self) -> QRectF:
        rect = QRectF(self.tabRect(self.currentIndex()))
        padding = 11 if not self.look.small else 9
        return QRectF(rect.left() + padding, self.height() - 3, rect.width() - 2 * padding, 3)

    def _start_slide(self) -> None:
        self._slide.stop()
        duration = self.look.milliseconds(HOVER_MS)
        if not duration or not self.isVisible() or self._line.isNull():
            self._line = QRectF()
            self.update()
            return
        self._slide.setDuration(duration)
        self._slide.setStartValue(self._line)
        self._slide.setEndValue(self._target())
        self._slide.start()

    def _settle(self) -> None:
        self._line = QRectF()
        self.update()

    def _move_line(self, rect: object) -> None:
        assert isinstance(rect, QRectF)
        self._line = rect
        self.update()

    def _spin(self) -> None:
        self._angle = (self._angle - 30) % 360
        for index, news in self._news.items():
            if news == "busy":
                self.update(self.tabRect(index))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        look = self.look
        painter.setPen(QPen(look.colour("hairline"), 1))
        painter.drawLine(QPointF(0, self.height() - 0.5), QPointF(self.width(), self.height() - 0.5))
        painter.setFont(look.font(13, 600))
        for index in range(self.count()):
            rect = QRectF(self.tabRect(index))
            current = index == self.currentIndex()
            hovered = self.tabRect(index).contains(self.mapFromGlobal(self.cursor().pos()))
            painter.setPen(look.colour("text" if current or hovered else "text_secondary"))
            news = self._news.get(index, "")
            text = QRectF(rect)
            if news:
                text.setRight(text.right() - 20)
                spot = QPointF(rect.right() - 17, rect.center().y())
                if news == "error":
                    painter.save()
                    painter.setPen(Qt.PenStyle.NoPen)
                    painter.setBrush(look.colour("error"))
                    painter.drawEllipse(spot, 3, 3)
                    painter.restore()
                else:
                    draw_ring(painter, look, QRectF(spot.x() - 7, spot.y() - 7, 14, 14), self._angle)
            draw_text(painter, text, self.tabText(index), CENTRE)
        line = self._line if self._slide.state() == QVariantAnimation.State.Running else self._target()
        self._line = line
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(look.colour("text"))
        painter.drawRoundedRect(line, 1.5, 1.5)
