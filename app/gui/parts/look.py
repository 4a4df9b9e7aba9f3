"""What every part is drawn with: a theme, fonts and sizes, handed down the widget tree."""

from __future__ import annotations

from dataclasses import dataclass, replace

from PySide6.QtGui import QColor, QFont, QPalette
from PySide6.QtWidgets import QApplication, QStyle, QToolTip, QWidget

from app.gui.theme import NORMAL, SMALL, Sizes, Theme, Type


@dataclass(frozen=True)
class Look:
    """Colours, type and sizes together. `motion` False: durations are 0 and spinners stand still."""

    theme: Theme
    type: Type
    sizes: Sizes = NORMAL
    motion: bool = True

    @property
    def small(self) -> bool:
        return self.sizes is SMALL

    def colour(self, role: str) -> QColor:
        return self.theme.colour(role)

    def fill(self, state: str) -> QColor:
        """The fill that belongs to a state's text."""
        return QColor(self.theme.state(state).fill)

    def font(self, size: int, weight: int = 400, mono: bool = False) -> QFont:
        return self.type.font(size, weight, mono)

    def series(self, implementation: str) -> QColor:
        return self.theme.series(implementation)

    @property
    def field(self) -> QColor:
        """Fill of what is typed or chosen in: sunken on dark, the card's white on light."""
        return self.colour("sunken" if self.theme.name == "dark" else "card")

    def milliseconds(self, duration: int) -> int:
        return duration if self.motion else 0

    def with_sizes(self, sizes: Sizes) -> Look:
        return replace(self, sizes=sizes)


class Part:
    """A widget drawn from a `Look`. `restyle` is where it takes over what it cannot read while painting."""

    look: Look

    def set_look(self, look: Look) -> None:
        self.look = look
        self.restyle()
        assert isinstance(self, QWidget)
        self.updateGeometry()
        self.update()

    def restyle(self) -> None:
        """Called with a new look, before the part is drawn again."""


def dress(root: QWidget, look: Look) -> None:
    """Give every part under `root`, itself included, a new look."""
    for widget in (root, *root.findChildren(QWidget)):
        if isinstance(widget, Part):
            widget.set_look(look)


def prefers_motion() -> bool:
    """Whether the system leaves animations on."""
    style = QApplication.style()
    return bool(style.styleHint(QStyle.StyleHint.SH_Widget_Animation_Duration))


def dress_application(application: QApplication, look: Look) -> None:
    """Colours of what Qt draws itself: file dialogs, tooltips, selections."""
    palette = QPalette()
    role = QPalette.ColorRole
    for where, name in (
        (role.Window, "panel"),
        (role.WindowText, "text"),
        (role.Base, "sunken"),
        (role.AlternateBase, "card"),
        (role.Text, "text"),
        (role.PlaceholderText, "text_tertiary"),
        (role.Button, "raised"),
        (role.ButtonText, "text"),
        (role.BrightText, "text"),
        (role.ToolTipBase, "raised"),
        (role.ToolTipText, "text"),
        (role.Highlight, "focus"),
        (role.HighlightedText, "window"),
        (role.Link, "focus"),
        (role.Light, "strong_line"),
        (role.Midlight, "hairline"),
        (role.Mid, "strong_line"),
        (role.Dark, "hairline"),
        (role.Shadow, "window"),
    ):
        palette.setColor(where, look.colour(name))
    for where in (role.WindowText, role.Text, role.ButtonText):
        palette.setColor(QPalette.ColorGroup.Disabled, where, look.colour("disabled"))
    application.setPalette(palette)
    application.setFont(look.font(13))
    QToolTip.setPalette(palette)
    QToolTip.setFont(look.font(12))
