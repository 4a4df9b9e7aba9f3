"""The cards of the Build view that are more than a list: steps with their times, progress, and what failed."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QPalette, QPen, QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QPlainTextEdit,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from app.core.build import BUILD_STEPS, BuildState
from app.core.messages import BuildFailed
from app.core.text import NOTHING, duration, number
from app.gui.charts.painting import CENTRE, LEFT, RIGHT, width_of, write
from app.gui.icons import draw_icon
from app.gui.parts.buttons import Button
from app.gui.parts.card import Card
from app.gui.parts.chips import ProgressBar, Spinner
from app.gui.parts.look import Look, Part
from app.gui.parts.text import Label, Paragraph
from app.gui.views.build_cache import Timings
from app.gui.views.build_steps import Step, draw_step_mark, steps_of, sums_of
from app.gui.views.frame import slim_bars

_ROW, _HEAD = 26, 30
_ERROR_LINES = 9


class StepTable(QWidget, Part):
    """The steps with what each says and what it took: in the full build and at this start."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._steps: tuple[Step, ...] = ()
        self._sums = (NOTHING, NOTHING)
        self._full = False
        self.setAccessibleName("Steps of the build")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.set_look(look)

    def show_build(self, build: BuildState, timings: Timings | None) -> None:
        """`timings` of the full build stand beside a start that took its result from the cache."""
        steps, sums = steps_of(build, timings), sums_of(build, timings)
        if (steps, sums, timings is not None) != (self._steps, self._sums, self._full):
            self._steps, self._sums, self._full = steps, sums, timings is not None
            self.setAccessibleDescription("; ".join(f"{s.title}: {s.now or s.state}" for s in steps))
            self.update()

    def sizeHint(self) -> QSize:
        return QSize(480, _HEAD + _ROW * (len(BUILD_STEPS) + 1) + 6)

    def minimumSizeHint(self) -> QSize:
        return QSize(300, self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        look, width = self.look, float(self.width())
        pad = look.sizes.card_padding - 1
        head = look.font(12, 500)
        column = max(width_of("This start, s", head), width_of("Full build, s", head)) + 20
        right = width - pad
        full_right = right - column
        left = pad + 28
        painter.setPen(QPen(look.colour("hairline"), 1))
        painter.drawLine(QPointF(0, _HEAD - 0.5), QPointF(width, _HEAD - 0.5))
        top = QRectF(left, 0, right - left, _HEAD)
        tertiary = look.colour("text_secondary")
        write(painter, top, "Step", head, tertiary, LEFT)
        write(painter, top, "This start, s", head, tertiary, RIGHT)
        details_right = full_right if not self._full else full_right - column
        if self._full:
            place = QRectF(left, 0, full_right - left, _HEAD)
            write(painter, place, "Full build, s", head, tertiary, RIGHT)
        bold = look.font(13, 600)
        titles = max((width_of(step.title, bold) for step in self._steps), default=0) + 20
        for index, step in enumerate(self._steps):
            middle = _HEAD + 4 + _ROW * (index + 0.5)
            if index:
                done = self._steps[index - 1].state == "done"
                painter.setPen(QPen(look.colour("ok" if done else "strong_line"), 1.2))
                painter.drawLine(QPointF(pad + 8, middle - _ROW + 9), QPointF(pad + 8, middle - 9))
            draw_step_mark(painter, look, QPointF(pad + 8, middle), step.state, 0)
            row = QRectF(left, middle - _ROW / 2, right - left, _ROW)
            write(painter, row, step.title, bold, look.colour("text"), LEFT)
            detail = QRectF(left + titles, row.top(), details_right - left - titles - 8, _ROW)
            if detail.width() > 60:
                write(painter, detail, step.detail, look.font(12), tertiary, LEFT, may_elide=True)
            self._figure(painter, row, step.now)
            if self._full:
                self._figure(painter, QRectF(left, row.top(), full_right - left, _ROW), step.full, quiet=True)
        line = _HEAD + 4 + _ROW * len(self._steps) + 0.5
        painter.setPen(QPen(look.colour("hairline"), 1))
        painter.drawLine(QPointF(left, line), QPointF(right, line))
        row = QRectF(left, line, right - left, _ROW)
        write(painter, row, "Together", bold, look.colour("text"), LEFT)
        write(painter, row, self._sums[1], bold, look.colour("text"), RIGHT)
        if self._full:
            place = QRectF(left, line, full_right - left, _ROW)
            write(painter, place, self._sums[0], bold, look.colour("text"), RIGHT)

    def _figure(self, painter: QPainter, place: QRectF, word: str, quiet: bool = False) -> None:
        look = self.look
        is_number = word[:1].isdigit()
        font = look.font(13 if is_number else 12, 600 if is_number and not quiet else 400)
        role = "error" if word == "stopped" else "text" if is_number and not quiet else "text_secondary"
        write(painter, place, word, font, look.colour(role), RIGHT)


class ProgressCard(Card):
    """A build that goes on, or waits for another process's. `cancelled` when its button is pressed."""

    cancelled = Signal()

    def __init__(self, look: Look) -> None:
        super().__init__(look, "Compiling")
        self._spinner = Spinner(look)
        self._cancel = Button(look, "Cancel")
        self._cancel.clicked.connect(self.cancelled)
        self._head.insertWidget(0, self._spinner)
        self.tools.addWidget(self._cancel)
        self._bar = ProgressBar(look)
        self._line = Paragraph(look, "", 12, 400, "text_secondary")
        self._files = Label(look, "", 12, 400, "text_tertiary", mono=True, may_elide=True)
        self.body.setSpacing(8)
        for part in (self._bar, self._line, self._files):
            self.body.addWidget(part)

    def show_build(self, build: BuildState) -> None:
        progress, waiting = build.progress, build.waiting
        self._bar.setVisible(waiting is None)
        going = [s.source for s in build.sources.values() if s.state == "started"]
        self._files.setText(", ".join(going) if waiting is None else waiting.path)
        if waiting is not None:
            self.title.setText("Waiting")
            who = "another process" if waiting.pid is None else f"process {waiting.pid}"
            self._line.setText(
                f"waits for {who}, which builds the same entry · {duration(waiting.elapsed_s)} so far"
            )
            return
        if progress is None:
            step = next((s for s in build.steps.values() if s.state == "started"), None)
            self.title.setText("Building")
            self._line.setText(step.detail if step is not None and step.detail else "looks for a compiler")
            self._bar.set_share(0.0)
            return
        self.title.setText(f"Compiling {number(progress.done)} of {number(progress.total)}")
        said = f"{duration(progress.elapsed_s)} so far"
        if progress.expected_s:
            said += f" of about {duration(progress.expected_s)}"
        self._line.setText(f"{said} · the other implementations go on running, marked as disturbed")
        self._bar.set_share(build.share or 0.0)


class ErrorText(QPlainTextEdit, Part):
    """What the compiler said, verbatim, in the colours of an error."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self.setReadOnly(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAccessibleName("First compiler error")
        self.document().setDocumentMargin(10)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.set_look(look)

    def restyle(self) -> None:
        slim_bars(self, self.look)
        self.setFont(self.look.font(12, mono=True))
        palette = self.palette()
        palette.setColor(QPalette.ColorRole.Base, self.look.fill("error"))
        palette.setColor(QPalette.ColorRole.Text, self.look.colour("text"))
        self.setPalette(palette)
        self._fit()

    def show_error(self, text: str) -> None:
        if text != self.toPlainText():
            self.setPlainText(text)
            self._fit()

    def _fit(self) -> None:
        lines = min(max(self.blockCount(), 1), _ERROR_LINES)
        text = max((width_of(line, self.font()) for line in self.toPlainText().splitlines()), default=0.0)
        cut = text + 24 > self.width()
        height = lines * self.fontMetrics().lineSpacing() + 24
        self.setFixedHeight(height + (self.horizontalScrollBar().sizeHint().height() if cut else 0))
        whole = self.blockCount() <= _ERROR_LINES
        off, needed = Qt.ScrollBarPolicy.ScrollBarAlwaysOff, Qt.ScrollBarPolicy.ScrollBarAsNeeded
        self.setVerticalScrollBarPolicy(off if whole else needed)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()


class Remedy(QWidget, Part):
    """A numbered way out."""

    def __init__(self, look: Look, number_: int, text: str) -> None:
        super().__init__()
        self._number, self.text = number_, text
        row = QHBoxLayout(self)
        row.setContentsMargins(48, 10, 14, 10)
        words = Paragraph(look, text, 13, 500, "text")
        words.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        row.addWidget(words, 1)
        self.set_look(look)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        look = self.look
        painter.setPen(QPen(look.colour("hairline"), 1))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 6, 6)
        place = QRectF(14, self.height() / 2 - 11, 22, 22)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(look.colour("raised"))
        painter.drawEllipse(place)
        write(painter, place, str(self._number), look.font(12, 600), look.colour("text"), CENTRE)


class FailureCard(Card):
    """A build that failed: what happened, the first error, the ways out. `retried` by its button."""

    retried = Signal()

    def __init__(self, look: Look) -> None:
        super().__init__(look, "The build failed")
        self._failed: BuildFailed | None = None
        self._ways: list[Remedy] = []
        self._sentence = Paragraph(look, "", 14, 600, "text")
        self._first = Label(look, "First compiler error", 12, 600)
        self._where = Label(look, "", 12, 400, "text_tertiary", mono=True, may_elide=True)
        self._error = ErrorText(look)
        self._what = Label(look, "What to do", 12, 600)
        self._remedies = QVBoxLayout()
        self._remedies.setSpacing(8)
        self._log = Paragraph(look, "", 12, 400, "text_tertiary")
        self._log.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.retry = Button(look, "Retry", "restart", "primary")
        self.retry.clicked.connect(self.retried)
        self.tools.addWidget(self.retry)
        first = QHBoxLayout()
        first.addWidget(self._first)
        first.addWidget(self._where, 1)
        self.body.setSpacing(10)
        self.body.addWidget(self._sentence)
        self.body.addLayout(first)
        for part in (self._error, self._what):
            self.body.addWidget(part)
        self.body.addLayout(self._remedies)
        self.body.addWidget(self._log)

    def show_failure(self, failed: BuildFailed) -> None:
        if failed == self._failed:
            return
        self._failed = failed
        cancelled = failed.kind == "cancelled"
        self.title.setText("The build was cancelled" if cancelled else "The extension did not build")
        self.title.set_role("text" if cancelled else "error")
        self._sentence.setText(failed.sentence)
        for part in (self._first, self._where, self._error):
            part.setVisible(bool(failed.first_error))
        self._first.setText("First compiler error" if failed.source else "First error")
        self._where.setText(failed.source)
        self._error.show_error(failed.first_error)
        for remedy in self._ways:
            self._remedies.removeWidget(remedy)
            remedy.hide()
            remedy.deleteLater()
        ways = [*failed.remedies, "Go on without the extension: the other implementations stay usable."]
        self._ways = [Remedy(self.look, index + 1, text) for index, text in enumerate(ways)]
        for remedy in self._ways:
            self._remedies.addWidget(remedy)
        self._log.setVisible(bool(failed.log_path))
        self._log.setText(f"The whole log: {failed.log_path}")

    @property
    def ways_out(self) -> list[str]:
        """The numbered texts, in order."""
        return [remedy.text for remedy in self._ways]


class PlainNote(QWidget, Part):
    """An icon and a few lines, where there is nothing to list yet."""

    def __init__(self, look: Look, icon: str, text: str) -> None:
        super().__init__()
        self._icon = icon
        column = QVBoxLayout(self)
        column.setContentsMargins(34, 0, 0, 0)
        self.text = Paragraph(look, text, 13)
        column.addWidget(self.text)
        self.set_look(look)

    def paintEvent(self, event: QPaintEvent) -> None:
        place = QRectF(0, self.height() / 2 - 10, 20, 20)
        draw_icon(QPainter(self), self._icon, place, self.look.colour("text_tertiary"))
