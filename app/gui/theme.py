"""Colours, type and sizes of the interface, by role. Nothing else in the window names a colour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from PySide6.QtGui import QColor, QFont, QFontDatabase, QFontInfo, QFontMetricsF

from app.core.catalog import contender

ThemeName = Literal["dark", "light"]


@dataclass(frozen=True)
class StateColours:
    """Text and fill of a state; the glyph and the word stand with whoever draws it."""

    text: str
    fill: str


@dataclass(frozen=True)
class Theme:
    """Colours by role. Text is at least 4.9:1 on every surface, marks at least 3:1."""

    name: ThemeName
    window: str
    panel: str
    card: str
    raised: str
    sunken: str
    row_hover: str
    row_selected: str
    hairline: str
    strong_line: str
    grid: str
    text: str
    text_secondary: str
    text_tertiary: str
    disabled: str
    inverse_fill: str
    inverse_text: str
    control_outline: str
    focus: str
    faster: StateColours
    slower: StateColours
    unsure: StateColours
    same: StateColours
    ok: StateColours
    warning: StateColours
    error: StateColours
    band_opacity: float
    heat_slow: str
    heat: tuple[str, ...]
    """From no difference to the largest speed-up, evenly on a log scale; `heat_slow` is the largest loss."""

    def series(self, implementation: str) -> QColor:
        """The fixed colour of a contender's curve."""
        entry = contender(implementation)
        return QColor(entry.dark if self.name == "dark" else entry.light)

    def colour(self, role: str) -> QColor:
        """A role's colour as Qt wants it."""
        value = getattr(self, role)
        return QColor(value.text if isinstance(value, StateColours) else value)

    def state(self, word: str) -> StateColours:
        """Colours of a verdict or a state: faster, slower, unsure, same, ok, warning, error."""
        value = getattr(self, word)
        assert isinstance(value, StateColours)
        return value


DARK = Theme(
    name="dark",
    window="#0D1014",
    panel="#13171D",
    card="#171C23",
    raised="#212833",
    sunken="#0F1318",
    row_hover="#1C222B",
    row_selected="#1C222B",
    hairline="#262E39",
    strong_line="#394452",
    grid="#222933",
    text="#EBEFF4",
    text_secondary="#AAB5C2",
    text_tertiary="#8B98A8",
    disabled="#66727F",
    inverse_fill="#EBEFF4",
    inverse_text="#0D1014",
    control_outline="#5F6D7F",
    focus="#7CC0FF",
    faster=StateColours("#8FD0F7", "#143247"),
    slower=StateColours("#FF9D63", "#43230F"),
    unsure=StateColours("#C4CDD8", "#262D37"),
    same=StateColours("#AAB5C2", "#212833"),
    ok=StateColours("#4CCB9F", "#11352A"),
    warning=StateColours("#F4BE55", "#3A2C10"),
    error=StateColours("#FF8E86", "#451B1A"),
    band_opacity=0.34,
    heat_slow="#B4531C",
    heat=("#232B35", "#1C4E73", "#2F86BC", "#74C6F5"),
)

LIGHT = Theme(
    name="light",
    window="#EEF1F5",
    panel="#F8FAFC",
    card="#FFFFFF",
    raised="#E9EDF2",
    sunken="#F4F6F9",
    row_hover="#F1F4F8",
    row_selected="#F1F4F8",
    hairline="#DCE2E9",
    strong_line="#BAC4D0",
    grid="#E6EAEF",
    text="#141A21",
    text_secondary="#465261",
    text_tertiary="#5A6777",
    disabled="#8A96A4",
    inverse_fill="#1B222B",
    inverse_text="#FFFFFF",
    control_outline="#76869A",
    focus="#0067B8",
    faster=StateColours("#00588C", "#DDEFFB"),
    slower=StateColours("#9A4300", "#FCE7D9"),
    unsure=StateColours("#465261", "#E9EDF2"),
    same=StateColours("#465261", "#E9EDF2"),
    ok=StateColours("#006B4C", "#DDF3EA"),
    warning=StateColours("#7A5200", "#FBEFD2"),
    error=StateColours("#B3261E", "#FCE4E2"),
    band_opacity=0.24,
    heat_slow="#F0A878",
    heat=("#EEF1F5", "#9CCBEA", "#2E86BE"),
)

THEMES: dict[str, Theme] = {theme.name: theme for theme in (DARK, LIGHT)}

# Inter's mean advance at 13 px over a text of the interface, against which other fonts are judged.
_SAMPLE = "Implementation median speed-up 1,284.0 verdict"
_INTER_WIDTH_AT_13 = 305.2
_WIDE = 1.06


class Type:
    """Fonts by use. Inter and JetBrains Mono where installed, otherwise the system's own.

    Tabular figures, so that digits that change do not make a row tremble. Where the font is more than
    6 % wider than Inter every size is a pixel smaller.
    """

    def __init__(self) -> None:
        families = set(QFontDatabase.families())
        general = QFontDatabase.systemFont(QFontDatabase.SystemFont.GeneralFont).family()
        fixed = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont).family()
        self.family = "Inter" if "Inter" in families else general
        self.mono_family = "JetBrains Mono" if "JetBrains Mono" in families else fixed
        self._smaller = 0
        width = QFontMetricsF(self.font(13)).horizontalAdvance(_SAMPLE)
        self._smaller = 1 if width > _WIDE * _INTER_WIDTH_AT_13 else 0

    def font(self, size: int, weight: int = 400, mono: bool = False) -> QFont:
        """A font of `size` px at Inter's width."""
        font = QFont(self.mono_family if mono else self.family)
        font.setPixelSize(max(9, size - self._smaller))
        font.setWeight(QFont.Weight(weight))
        font.setFeature(QFont.Tag("tnum"), 1)
        if mono:
            font.setFixedPitch(True)
            # `==` must read as two signs in commands and logs.
            font.setFeature(QFont.Tag("liga"), 0)
            font.setFeature(QFont.Tag("calt"), 0)
        return font

    @property
    def resolved(self) -> str:
        """The family that Qt really draws with."""
        return QFontInfo(self.font(13)).family()


@dataclass(frozen=True)
class Sizes:
    """Pixels. `SMALL` below 1200 wide."""

    gap: int = 16
    toolbar: int = 56
    verdict: int = 96
    tabs: int = 40
    status: int = 28
    panel: int = 280
    control: int = 32
    row: int = 36
    card_head: int = 40
    card_padding: int = 16
    number: int = 32
    figure: int = 22
    sentence: int = 20


NORMAL = Sizes()
SMALL = Sizes(
    gap=12,
    toolbar=48,
    verdict=80,
    panel=256,
    control=28,
    row=28,
    card_head=36,
    card_padding=14,
    number=25,
    figure=18,
    sentence=16,
)
SMALL_BELOW_WIDTH = 1200

CARD_RADIUS = 8
CONTROL_RADIUS = 6
CHIP_HEIGHT = 20
BUILD_CHIP_HEIGHT = 28
ICON = 16
HOVER_MS = 120
PLOT_INTERVAL_MS = 100
TABLE_INTERVAL_MS = 250
STALE_AFTER_S = 3.0


def on(fill: QColor) -> QColor:
    """Black or white, whichever contrasts more with `fill`."""
    light = _luminance(fill)
    return QColor("#0B0E12") if (light + 0.05) / 0.05 > 1.05 / (light + 0.05) else QColor("#FFFFFF")


def contrast(first: str | QColor, second: str | QColor) -> float:
    """WCAG contrast ratio of two opaque colours."""
    a, b = sorted((_luminance(QColor(first)), _luminance(QColor(second))))
    return (b + 0.05) / (a + 0.05)


def _luminance(colour: QColor) -> float:
    def linear(channel: float) -> float:
        return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4

    r, g, b = (linear(c) for c in (colour.redF(), colour.greenF(), colour.blueF()))
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
