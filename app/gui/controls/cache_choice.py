"""Warm or cold caches: a setting of how is measured, in sight beside what is measured."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QWidget

from app.core.fields import fields_of
from app.core.plan import Cache, Measure
from app.gui.parts.look import Look, Part
from app.gui.parts.text import Label
from app.gui.parts.toggles import Segmented

_LABEL_WIDTH = 72


class CacheChoice(QWidget, Part):
    """Derived from the field that `Measure` declares. `chosen` tells a choice made by hand."""

    chosen = Signal(str)

    def __init__(self, look: Look) -> None:
        super().__init__()
        self.look = look
        field = fields_of(Measure)["cache"]
        self.label = Label(look, field.title, 13, 400, "text_secondary")
        self.label.setFixedWidth(_LABEL_WIDTH)
        options = [(choice, choice.capitalize()) for choice in field.choices]
        self.segments = Segmented(look, options, field.title, padding=6)
        for widget in (self.label, self.segments):
            widget.setToolTip(field.help)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 8, 0, 0)
        row.setSpacing(0)
        row.addWidget(self.label, 0, Qt.AlignmentFlag.AlignVCenter)
        row.addWidget(self.segments, 1)
        self.segments.chosen.connect(self.chosen)

    def show_cache(self, cache: Cache) -> None:
        """Show what is measured now, without telling."""
        if self.segments.value() != cache:
            self.segments.set_value(cache)
