"""The steps of a build as a column of circles: done, going on, failed or still to come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from PySide6.QtCore import QPointF, QRectF, QSize, QTimer
from PySide6.QtGui import QHideEvent, QPainter, QPaintEvent, QPen, QShowEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.core.build import BUILD_STEPS, BuildState
from app.core.text import NOTHING, number
from app.gui.charts.painting import LEFT, RIGHT, width_of, write
from app.gui.icons import draw_icon
from app.gui.parts.chips import draw_ring
from app.gui.parts.look import Look, Part
from app.gui.views.build_cache import Timings

StepState = Literal["done", "started", "failed", "waiting"]

TITLES = {
    "check": "Check compiler",
    "compile": "Compile",
    "link": "Link",
    "load": "Load and register",
    "self-test": "Self-test against native",
}
ROW = 25


@dataclass(frozen=True)
class Step:
    """A line: where it stands, and its figures as they are written; `now` is for this start."""

    id: str
    title: str
    state: StepState
    detail: str = ""
    full: str = ""
    now: str = ""


def steps_of(build: BuildState, timings: Timings | None = None) -> tuple[Step, ...]:
    """All five steps of the build shown, those to come included. `timings` are of the full build, if known."""
    full = {} if timings is None else {
        "check": timings.check_s, "compile": timings.compile_s, "link": timings.link_s,
    }  # fmt: skip
    return tuple(_step(name, build, full) for name in BUILD_STEPS)


def _step(name: str, build: BuildState, full: dict[str, float]) -> Step:
    told = build.steps.get(name)
    title = TITLES[name]
    # Sources are told as they start, so until the end there are more files than sources.
    files = build.progress.total if build.progress is not None else len(build.sources)
    if name == "compile" and files:
        title = f"Compile {files} file{'s' if files != 1 else ''}"
    before = seconds(full[name]) if name in full else NOTHING
    if told is None:
        return Step(name, title, "waiting", full=before)
    state: StepState = told.state if told.state != "cached" else "done"
    if state == "started" and not build.is_running:
        # The build ended in the middle of it, or its process did.
        state = "failed"
    now = ""
    if told.state == "cached":
        # A step that was skipped took no time; its result did not come from this start.
        now = "kept" if name == "self-test" else "cached"
    elif state == "failed":
        now = "stopped"
    elif state == "started" and name == "compile" and build.progress is not None:
        now = f"{build.progress.done} of {build.progress.total}"
    elif told.seconds is not None:
        now = seconds(told.seconds)
    return Step(name, title, state, told.detail, before, now)


def seconds(value: float) -> str:
    """Seconds with the decimals that matter: `0.03`, `34.8`."""
    return number(value, 2 if value < 1 else 1)


def sums_of(build: BuildState, timings: Timings | None) -> tuple[str, str]:
    """What the full build and this start took together, as the columns add up."""
    full = NOTHING if timings is None else seconds(timings.check_s + timings.compile_s + timings.link_s)
    told = [step.seconds for step in build.steps.values() if step.seconds is not None]
    return full, seconds(sum(told)) if told else NOTHING


def draw_step_mark(painter: QPainter, look: Look, centre: QPointF, state: StepState, angle: int) -> None:
    """A circle of 16 px: tick, turning ring, cross, or empty."""
    place = QRectF(centre.x() - 8, centre.y() - 8, 16, 16)
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    if state == "started":
        draw_ring(painter, look, place, angle)
    elif state == "waiting":
        painter.setPen(QPen(look.colour("strong_line"), 1.2))
        painter.drawEllipse(place.adjusted(1, 1, -1, -1))
    else:
        word = "ok" if state == "done" else "error"
        painter.setPen(QPen(look.fill(word), 1))
        painter.setBrush(look.fill(word))
        painter.drawEllipse(place)
        glyph = "tick" if state == "done" else "cross"
        draw_icon(painter, glyph, place.adjusted(3, 3, -3, -3), look.colour(word))
    painter.restore()


class StepList(QWidget, Part):
    """The steps with their state; time or progress at the right."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._steps: tuple[Step, ...] = ()
        self._angle = 0
        self._turning = QTimer(self, interval=80)
        self._turning.timeout.connect(self._turn)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName("Steps of the build")
        self.set_look(look)

    def show_build(self, build: BuildState) -> None:
        steps = steps_of(build)
        if steps != self._steps:
            self._steps = steps
            self.setAccessibleDescription("; ".join(f"{s.title}: {s.now or s.state}" for s in steps))
            self.updateGeometry()
            self.update()
        self._spin()

    def sizeHint(self) -> QSize:
        return QSize(240, ROW * len(BUILD_STEPS) + 2)

    def minimumSizeHint(self) -> QSize:
        return QSize(160, 20 * len(BUILD_STEPS))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        look = self.look
        pitch = self.height() / max(len(self._steps), 1)
        for index, step in enumerate(self._steps):
            middle = pitch * (index + 0.5)
            if index:
                colour = look.colour("ok" if self._steps[index - 1].state == "done" else "strong_line")
                painter.setPen(QPen(colour, 1.2))
                painter.drawLine(QPointF(8, middle - pitch + 9), QPointF(8, middle - 9))
            draw_step_mark(painter, look, QPointF(8, middle), step.state, self._angle)
            running = step.state in ("started", "failed")
            font = look.font(13, 600 if running else 400)
            colour = look.colour("text_tertiary" if step.state == "waiting" else "text")
            right = f"{step.now} s" if step.now[:1].isdigit() and "of" not in step.now else step.now
            room = width_of(right, look.font(12))
            place = QRectF(28, middle - 10, self.width() - 28, 20)
            write(painter, place.adjusted(0, 0, -room - 8, 0), step.title, font, colour, LEFT, True)
            role = "error" if step.state == "failed" else "text_secondary"
            write(painter, place, right, look.font(12), look.colour(role), RIGHT)

    def _turn(self) -> None:
        self._angle = (self._angle - 30) % 360
        self.update(QRectF(0, 0, 18, self.height()).toRect())

    def _spin(self) -> None:
        going = any(step.state == "started" for step in self._steps)
        wanted = going and self.look.motion and self.isVisible()
        if wanted != self._turning.isActive():
            (self._turning.start if wanted else self._turning.stop)()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._spin()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._turning.stop()
