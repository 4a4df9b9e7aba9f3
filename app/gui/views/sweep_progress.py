"""How far a sweep is, how long it takes, and the buttons that stop and move it."""

from __future__ import annotations

from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QWidget

from app.core.text import number
from app.core.time_left import left_words
from app.gui.parts.buttons import Button
from app.gui.parts.chips import ProgressBar
from app.gui.parts.look import Look, Part
from app.gui.parts.text import Label
from app.gui.sweep_run import SweepStatus


class SweepProgress(QWidget, Part):
    """Stands in the head of the map; `bar` lies under the head while something is under way."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self.look = look
        self.words = Label(look, "", 12, 500, "text_secondary")
        self.pause = Button(look, "Pause", "pause", kind="quiet", name="Pause the sweep")
        self.resume = Button(look, "Resume", "play", kind="quiet", name="Go on with the sweep")
        self.cancel = Button(look, "Cancel", "cross", kind="quiet", name="End the sweep; it can go on later")
        self.new = Button(look, "New sweep", "sweep", kind="quiet", name="Set up another sweep")
        self.bar = ProgressBar(look, 3)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        row.addWidget(self.words)
        row.addSpacing(4)
        for button in self.buttons:
            row.addWidget(button)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    @property
    def buttons(self) -> tuple[Button, ...]:
        return (self.pause, self.resume, self.cancel, self.new)

    def show_status(self, status: SweepStatus) -> None:
        state, complete = status.state, status.is_complete
        under_way = state in ("running", "paused")
        self.pause.setVisible(state == "running")
        self.cancel.setVisible(under_way)
        self.resume.setVisible(state in ("paused", "stopped", "recorded") and not complete)
        self.new.setVisible(not under_way)
        resume_word = (
            "Resume" if not status.obstacle else "Anyway" if self.look.small else "Resume all the same"
        )
        for button, word, icon in (
            (self.pause, "Pause", "pause"),
            (self.resume, resume_word, "play"),
            (self.cancel, "Cancel", "cross"),
            (self.new, "New sweep", "sweep"),
        ):
            button.set_content("" if self.look.small and button is not self.resume else word, icon)
        self.resume.setToolTip(
            f"Measured elsewhere: {status.obstacle}" if status.obstacle else "Go on with the sweep"
        )
        self.words.setText(progress_words(status, self.look.small))
        self.words.setToolTip(f"Measured elsewhere: {status.obstacle}" if status.obstacle else "")
        self.bar.setVisible(under_way)
        self.bar.set_share(status.done / max(status.total, 1))
        self.updateGeometry()


def progress_words(status: SweepStatus, short: bool = False) -> str:
    """`14 of 36 cells · about 3 min left`."""
    done = f"{number(status.done)} of {number(status.total)}" + ("" if short else " cells")
    if status.state == "running" and status.left_s is not None:
        left = left_words(status.left_s)
        return f"{done} · {left.replace('about ', '≈ ') if short else left}"
    if status.state == "paused":
        return f"{done} · paused"
    if not short and not status.is_complete and status.state in ("stopped", "recorded"):
        return f"{done} · {'not finished' if status.state == 'recorded' else 'stopped'}"
    return done
