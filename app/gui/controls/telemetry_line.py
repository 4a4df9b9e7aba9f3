"""The readings at the right of the toolbar: plain text, and a pill where one of them is a warning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.core import messages as m
from app.core.disturbance import OTHERS_BUSY
from app.core.environment import Environment
from app.core.text import number, percent
from app.gui.icons import draw_icon
from app.gui.parts.look import Look, Part
from app.gui.parts.text import draw_text, width_of

_GAP = 16
_PILL = 10


@dataclass(frozen=True)
class Reading:
    """`name` is left out where room is short; a pill shows its icon alone then."""

    icon: str
    name: str
    value: str
    level: Literal["", "warning", "error"] = ""


def readings_of(latest: m.Telemetry | None, environment: Environment | None) -> tuple[Reading, ...]:
    """What the machine offers; a reading it does not offer is left out, never shown as zero."""
    found: list[Reading] = []
    if latest is not None:
        if latest.others_percent is not None:
            warns = latest.others_percent > OTHERS_BUSY
            value = percent(latest.others_percent / 100)
            found.append(Reading("cpu", "Other load", value, "warning" if warns else ""))
        if latest.clock_hz is not None:
            found.append(Reading("clock", "Clock", f"{number(latest.clock_hz / 1e9, 1)} GHz"))
    gpu = _gpu(latest, environment)
    if gpu is not None:
        found.append(gpu)
    if latest is not None:
        if latest.gpu_throttled:
            degrees = latest.gpu_temperature_c
            heat = f": {number(degrees)} °C" if degrees is not None else ""
            found.append(Reading("warning", "", f"GPU throttled{heat}", "error"))
        if latest.on_mains is False:
            found.append(Reading("battery", "", "On battery", "warning"))
    return tuple(found)


def _gpu(latest: m.Telemetry | None, environment: Environment | None) -> Reading | None:
    if latest is not None:
        parts = []
        if latest.gpu_temperature_c is not None:
            parts.append(f"{number(latest.gpu_temperature_c)} °C")
        if latest.gpu_clock_hz is not None:
            parts.append(f"{latest.gpu_clock_hz / 1e6:.0f} MHz")
        if parts:
            return Reading("gpu", "GPU", " · ".join(parts))
    if environment is not None and environment.devices and all(d.id == "cpu" for d in environment.devices):
        return Reading("gpu", "", "no GPU")
    return None


class TelemetryLine(QWidget, Part):
    """Draws readings from right to left."""

    def __init__(self, look: Look, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.readings: tuple[Reading, ...] = ()
        self.compact = 0
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.set_look(look)

    def show_readings(self, readings: tuple[Reading, ...]) -> bool:
        """Returns whether anything changed."""
        if readings == self.readings:
            return False
        self.readings = readings
        words = ", ".join(f"{r.name} {r.value}".strip() for r in readings)
        self.setAccessibleName(words)
        self.setToolTip(words.replace(", ", "\n"))
        self.updateGeometry()
        self.update()
        return True

    def set_compact(self, level: int) -> None:
        """0: names and values; 1: values; 2: warnings as icons, the clock left out."""
        if level != self.compact:
            self.compact = level
            self.updateGeometry()
            self.update()

    def text(self) -> str:
        return "   ".join(f"{self._name(r)} {self._value(r)}".strip() for r in self._shown())

    def _shown(self) -> tuple[Reading, ...]:
        if self.compact < 2:
            return self.readings
        return tuple(reading for reading in self.readings if reading.icon != "clock")

    def _name(self, reading: Reading) -> str:
        return "" if self.compact or reading.level else reading.name

    def _value(self, reading: Reading) -> str:
        if reading.level and reading.name:
            return f"{reading.name} {reading.value}" if not self.compact else reading.value
        return "" if reading.level and self.compact >= 2 else reading.value

    def _width(self, reading: Reading) -> float:
        font, bold = self.look.font(12), self.look.font(12, 600)
        width = 16.0
        name, value = self._name(reading), self._value(reading)
        if name:
            width += 6 + width_of(name, font)
        if value:
            width += (6 if not name else 5) + width_of(value, bold)
        return width + (2 * _PILL if reading.level else 0)

    def sizeHint(self) -> QSize:
        shown = self._shown()
        width = sum(self._width(r) for r in shown) + _GAP * max(len(shown) - 1, 0)
        return QSize(int(width + 1.99), 28)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        x = float(self.width())
        for reading in reversed(self._shown()):
            width = self._width(reading)
            self._draw(painter, reading, QRectF(x - width, 0, width, self.height()))
            x -= width + _GAP

    def _draw(self, painter: QPainter, reading: Reading, rect: QRectF) -> None:
        look = self.look
        ink, strong = look.colour("text_secondary"), look.colour("text")
        if reading.level:
            ink = strong = look.colour(reading.level)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(look.fill(reading.level))
            middle = rect.center().y()
            pill = QRectF(rect.left(), middle - 12, rect.width(), 24)
            painter.drawRoundedRect(pill, 12, 12)
            rect = rect.adjusted(_PILL, 0, -_PILL, 0)
        draw_icon(painter, reading.icon, QRectF(rect.left(), rect.center().y() - 8, 16, 16), ink)
        x = rect.left() + 16
        name, value = self._name(reading), self._value(reading)
        if name:
            painter.setFont(look.font(12))
            painter.setPen(ink)
            width = width_of(name, painter.font())
            draw_text(painter, QRectF(x + 6, rect.top(), width + 1, rect.height()), name)
            x += 6 + width
        if value:
            painter.setFont(look.font(12, 600))
            painter.setPen(strong)
            gap = 6 if not name else 5
            width = width_of(value, painter.font())
            draw_text(painter, QRectF(x + gap, rect.top(), width + 1, rect.height()), value)
