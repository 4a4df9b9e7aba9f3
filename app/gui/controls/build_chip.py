"""Where the extension's build stands, as a chip in the toolbar; a click opens the Build tab."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from PySide6.QtCore import QRectF, QSize, Qt, QTimer
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QPushButton, QSizePolicy, QWidget

from app.core.build import BuildState
from app.core.text import number
from app.gui.icons import draw_icon
from app.gui.parts.chips import draw_progress, draw_ring
from app.gui.parts.look import Look, Part
from app.gui.parts.text import draw_text, width_of
from app.gui.theme import BUILD_CHIP_HEIGHT

_BAR = 54


@dataclass(frozen=True)
class BuildWords:
    """What the chip says, long and short. `share`: done part of one, None where there is no bar."""

    kind: Literal["none", "busy", "built", "failed"]
    long: str
    short: str
    share: float | None = None


def words_of(build: BuildState) -> BuildWords:
    """The chip's words for a state of the build."""
    if build.is_running:
        if build.waiting is not None:
            return BuildWords("busy", "Waiting for another build", "waiting")
        progress = build.progress
        if progress is not None and progress.total:
            count = f"{progress.done}/{progress.total}"
            return BuildWords("busy", f"Extension compiling {count}", f"compiling {count}", build.share)
        step = next((s.step for s in reversed(list(build.steps.values())) if s.state == "started"), "")
        words = {
            "check": "Checking the compiler",
            "compile": "Extension compiling",
            "link": "Extension linking",
            "load": "Extension loading",
            "self-test": "Extension self-test",
        }
        long = words.get(step, "Looking for a build")
        return BuildWords("busy", long, long.split()[-1])
    if build.state == "failed":
        return BuildWords("failed", "Build failed · show", "failed")
    if build.state == "built" and build.finished is not None:
        # "0.0 s" would say less than nothing.
        took = build.finished.seconds
        seconds = f" · {number(took, 1)} s" if took >= 0.05 else ""
        cached = " · cached" if build.finished.cached else ""
        return BuildWords("built", f"Extension built{cached}{seconds}", f"built{seconds or cached}")
    return BuildWords("none", "Extension not built", "not built")


class BuildChip(QPushButton, Part):
    """Outlined while it compiles and when it is built, filled when it failed."""

    ring_radius = BUILD_CHIP_HEIGHT / 2

    def __init__(self, look: Look, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.words = BuildWords("none", "Extension not built", "not built")
        self._angle = 0
        self.compact = False
        self._turn = QTimer(self)
        self._turn.setInterval(80)
        self._turn.timeout.connect(self._spin)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setToolTip("Open the Build tab")
        self.set_look(look)

    def show_build(self, build: BuildState) -> None:
        words = words_of(build)
        if words != self.words:
            self.words = words
            self.setAccessibleName(words.long)
            self.updateGeometry()
            self.update()
        if words.kind == "busy" and self.look.motion:
            self._turn.start()
        else:
            self._turn.stop()

    def set_compact(self, compact: bool) -> None:
        if compact != self.compact:
            self.compact = compact
            self.updateGeometry()

    def label(self) -> str:
        return self.words.short if self.compact else self.words.long

    def sizeHint(self) -> QSize:
        width = 12 + 16 + 4 + width_of(self.label(), self.look.font(12, 600)) + 12
        if self.words.share is not None:
            width += 8 + _BAR
        return QSize(int(width + 1), BUILD_CHIP_HEIGHT)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def _spin(self) -> None:
        self._angle = (self._angle - 30) % 360
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        look, kind = self.look, self.words.kind
        rect = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        failed = kind == "failed"
        if failed:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(look.fill("error"))
        else:
            painter.setPen(QPen(look.colour("strong_line"), 1))
            painter.setBrush(look.colour("raised") if self.underMouse() else Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(rect, self.ring_radius, self.ring_radius)
        glyph = QRectF(11, self.height() / 2 - 7, 14, 14)
        if kind == "busy":
            draw_ring(painter, look, glyph, self._angle)
        elif kind == "none":
            draw_icon(painter, "minus", glyph, look.colour("text_tertiary"))
        else:
            draw_icon(painter, "error" if failed else "tick", glyph, look.colour("error" if failed else "ok"))
        painter.setFont(look.font(12, 600))
        painter.setPen(look.colour("error" if failed else "text"))
        text = QRectF(self.rect()).adjusted(30, 0, -10, 0)
        if self.words.share is not None:
            text.setRight(text.right() - _BAR - 8)
            bar = QRectF(self.width() - 14 - _BAR, self.height() / 2 - 2, _BAR, 4)
            draw_progress(painter, look, bar, self.words.share)
        draw_text(painter, text, self.label())
