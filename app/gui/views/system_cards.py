"""The cards of the System view: devices with the way out of what cannot be used, and the doctor's list."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QGuiApplication, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from app.core.doctor import LEVELS, Check, Level, head_counts
from app.core.environment import Device
from app.core.text import number
from app.gui.charts.painting import LEFT, RIGHT, width_of, write
from app.gui.icons import draw_icon
from app.gui.parts.buttons import Button
from app.gui.parts.chips import chip_width, draw_chip
from app.gui.parts.look import Look, Part
from app.gui.parts.text import Label, Paragraph
from app.gui.theme import CHIP_HEIGHT, CONTROL_RADIUS

_TEXT_LEFT = 32
LEVEL_GLYPHS: dict[Level, str] = {"fail": "error", "warning": "warning", "ok": "tick", "optional": "minus"}
LEVEL_ROLES: dict[Level, str] = {
    "fail": "error",
    "warning": "warning",
    "ok": "ok",
    "optional": "text_tertiary",
}
_LEVEL_WORDS: dict[Level, tuple[str, str]] = {
    "fail": ("failed", "failed"),
    "warning": ("warning", "warnings"),
    "ok": ("ok", "ok"),
    "optional": ("optional", "optional"),
}


def copy_text(text: str) -> None:
    """Put text on the clipboard."""
    QGuiApplication.clipboard().setText(text)


def pieces(command: str) -> list[str]:
    """A command in pieces between which a line may end: an option stays with its value."""
    found: list[str] = []
    for word in command.split():
        if found and found[-1].startswith("--") and "=" not in found[-1] and " " not in found[-1]:
            found[-1] += f" {word}"
        else:
            found.append(word)
    return found


class CommandBox(QWidget, Part):
    """A command in a fixed pitch with its Copy button; long ones are broken at spaces."""

    def __init__(self, look: Look, command: str, primary: bool) -> None:
        super().__init__()
        self.command = command
        row = QHBoxLayout(self)
        row.setContentsMargins(14, 10, 10, 10)
        row.addStretch(1)
        self.copy = Button(look, "Copy", "copy", "primary" if primary else "raised")
        self.copy.setAccessibleName("Copy the command")
        self.copy.clicked.connect(lambda: copy_text(self.command))
        row.addWidget(self.copy, 0, Qt.AlignmentFlag.AlignVCenter)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(command)
        self.setToolTip(command)
        self.set_look(look)

    def lines(self, width: float) -> list[str]:
        """The command over lines that a shell reads as one."""
        font = self._font()
        room = width - self.copy.sizeHint().width() - 44
        lines: list[str] = []
        whole = pieces(self.command)
        words = [w for p in whole for w in ([p] if width_of(f"  {p} \\", font) <= room else p.split())]
        for word in words:
            longer = f"{lines[-1]} {word}" if lines else word
            if lines and width_of(f"{longer} \\", font) > room:
                lines.append(f"  {word}")
            else:
                lines[-1:] = [longer]
        return [f"{line} \\" for line in lines[:-1]] + lines[-1:]

    def restyle(self) -> None:
        # `dress` reaches the button after the box, which must know its size.
        self.copy.set_look(self.look)
        self.copy.set_content("" if self.look.small else "Copy", "copy")
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _font(self) -> QFont:
        return self.look.font(11 if self.look.small else 12, mono=True)

    def _fit(self) -> None:
        spacing = QFontMetricsF(self._font()).lineSpacing() * 1.15
        self.setFixedHeight(max(round(len(self.lines(self.width())) * spacing) + 20, 50))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        look = self.look
        painter.setPen(QPen(look.colour("strong_line"), 1))
        painter.setBrush(look.colour("sunken"))
        box = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        painter.drawRoundedRect(box, CONTROL_RADIUS, CONTROL_RADIUS)
        font = self._font()
        spacing = QFontMetricsF(font).lineSpacing() * 1.15
        lines = self.lines(self.width())
        top = self.height() / 2 - spacing * len(lines) / 2
        room = self.width() - self.copy.width() - 34
        for index, line in enumerate(lines):
            place = QRectF(14, top + index * spacing, room, spacing)
            write(painter, place, line, font, look.colour("text"), LEFT, may_elide=True)


class DeviceRow(QWidget, Part):
    """A device with its state; one that cannot be used says why and what to do."""

    def __init__(self, look: Look, device: Device, in_use: bool, primary: bool) -> None:
        super().__init__()
        self.device, self.in_use = device, in_use
        self.box: CommandBox | None = None
        self.last = False
        column = QVBoxLayout(self)
        column.setContentsMargins(_TEXT_LEFT, 28, 0, 10)
        column.setSpacing(6)
        below = device.detail if device.usable else device.reason
        if below:
            column.addWidget(Paragraph(look, below, 12, 400, "text_secondary"))
        if not device.usable:
            if device.command:
                self.box = CommandBox(look, device.command, primary)
                column.addWidget(self.box)
            ways = " ".join(text for text in (device.remedy, device.caution) if text)
            if ways:
                column.addWidget(Paragraph(look, ways, 12, 400, "text_secondary"))
        self.setAccessibleName(f"{device.title}: {self.word.lower()}")
        self.set_look(look)

    @property
    def word(self) -> str:
        if not self.device.usable:
            return "NOT USABLE"
        return "IN USE" if self.in_use else "READY"

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        look, device = self.look, self.device
        icon = "cpu" if device.id == "cpu" else "gpu"
        colour = look.colour("text_secondary" if device.usable else "text_tertiary")
        draw_icon(painter, icon if device.usable else "lock", QRectF(2, 8, 17, 17), colour)
        state, glyph = ("ok", "tick") if device.usable else ("error", "cross")
        width = chip_width(look, self.word, glyph)
        chip = QRectF(self.width() - width, 6, width, CHIP_HEIGHT)
        draw_chip(painter, look, chip, self.word, state, glyph)
        place = QRectF(_TEXT_LEFT, 6, chip.left() - _TEXT_LEFT - 12, 20)
        name = look.colour("text" if device.usable else "text_secondary")
        write(painter, place, device.title, look.font(13, 600), name, LEFT, may_elide=True)
        if not self.last:
            painter.setPen(QPen(look.colour("hairline"), 1))
            painter.drawLine(QPointF(0, self.height() - 0.5), QPointF(self.width(), self.height() - 0.5))


class CheckRow(QWidget, Part):
    """One line of the doctor: a thing, what was found, one action."""

    def __init__(self, look: Look, check: Check) -> None:
        super().__init__()
        self.check = check
        row = QHBoxLayout(self)
        row.setContentsMargins(28, 2, 0, 3)
        row.setSpacing(10)
        # A column for titles, drawn by hand so that it is as wide in every line.
        row.addSpacing(94)
        quiet = check.level in ("ok", "optional")
        self._found = Paragraph(look, check.found, 12, 400, "text_tertiary" if quiet else "text_secondary")
        row.addWidget(self._found, 3)
        self.copy: Button | None = None
        if check.command:
            self.copy = Button(look, "Copy the fix", kind="pill")
            self.copy.clicked.connect(lambda: copy_text(check.command))
            row.addWidget(self.copy)
        elif check.action:
            row.addWidget(Paragraph(look, check.action, 12, 600, "text"), 2)
        else:
            row.addWidget(Label(look, check.level, 12, 400, "text_tertiary"))
        self.setAccessibleName(f"{check.title}: {check.level}, {check.found} {check.action}".strip())
        self.setToolTip(check.action)
        self.set_look(look)

    def restyle(self) -> None:
        # A size hint would not do: rows of paragraphs are laid out by their height for a width.
        self.setMinimumHeight(26 if self.look.small else 30)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        look, check = self.look, self.check
        place = QRectF(0, self.height() / 2 - 8, 16, 16)
        draw_icon(painter, LEVEL_GLYPHS[check.level], place, look.colour(LEVEL_ROLES[check.level]))
        bold = check.level in ("fail", "warning")
        title = QRectF(28, 0, 98, self.height())
        role = "text_tertiary" if check.level == "optional" else "text"
        write(painter, title, check.title, look.font(13, 600 if bold else 400), look.colour(role), LEFT, True)
        painter.setPen(QPen(look.colour("hairline"), 1))
        painter.drawLine(QPointF(28, self.height() - 0.5), QPointF(self.width(), self.height() - 0.5))


class LevelCounts(QWidget, Part):
    """How many failed, warn, are well and are optional: all four, so that none is overlooked."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._counts: dict[Level, int] = dict.fromkeys(LEVELS, 0)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.set_look(look)

    def show_checks(self, found: tuple[Check, ...]) -> None:
        self._counts = head_counts(found)
        said = [f"{number(self._counts[v])} {_LEVEL_WORDS[v][self._counts[v] != 1]}" for v in LEVELS]
        self.setAccessibleName(", ".join(said))
        self.setToolTip(", ".join(said))
        self.updateGeometry()
        self.update()

    def _word(self, level: Level) -> str:
        count = self._counts[level]
        return number(count) if self.look.small else f"{number(count)} {_LEVEL_WORDS[level][count != 1]}"

    def sizeHint(self) -> QSize:
        font = self.look.font(12, 500)
        return QSize(round(sum(width_of(self._word(level), font) + 36 for level in LEVELS)) - 12, 20)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        look, font = self.look, self.look.font(12, 500)
        right = float(self.width())
        for level in reversed(LEVELS):
            word = self._word(level)
            width = width_of(word, font)
            place = QRectF(right - width - 1, 0, width + 1, self.height())
            write(painter, place, word, font, look.colour("text"), RIGHT)
            glyph = QRectF(right - width - 20, self.height() / 2 - 7, 14, 14)
            draw_icon(painter, LEVEL_GLYPHS[level], glyph, look.colour(LEVEL_ROLES[level]))
            right -= width + 36
