"""The line at the bottom: what runs and how fast at the left, with what at the right."""

from __future__ import annotations

from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QWidget

from app.core import messages as m
from app.core.text import number, size
from app.gui.parts.line import Dot, Level, Piece, PieceLine, Text
from app.gui.parts.look import Look, Part
from app.gui.snapshot import Snapshot

_RATE_OVER_S = 5.0


def rounds_per_second(snapshot: Snapshot) -> float | None:
    """From the baseline's samples of the last seconds; None where there are too few."""
    record = snapshot.record
    series = record.series.get(snapshot.baseline) if record is not None else None
    if series is None or len(series) < 2:
        return None
    at_s = series.at_s
    recent = at_s[at_s >= float(at_s[-1]) - _RATE_OVER_S]
    span = float(recent[-1] - recent[0]) if recent.size > 1 else 0.0
    return (recent.size - 1) / span if span > 0 else None


def state_of(snapshot: Snapshot, viewing: str, stopped: str) -> tuple[str, str]:
    """The colour role of the dot, and the word beside it."""
    if viewing:
        return "text_tertiary", "Recording"
    if stopped:
        return "error", "Stopped"
    if snapshot.stale_s is not None:
        return "warning", "Stale"
    sweep = snapshot.sweep
    if sweep is not None and sweep.state in ("running", "paused"):
        role = "ok" if sweep.state == "running" else "text_tertiary"
        word = "Sweep" if sweep.state == "running" else "Sweep paused"
        return role, f"{word} {number(sweep.done)} of {number(sweep.total)}"
    if snapshot.paused:
        return "text_tertiary", "Paused"
    return ("ok", "Running") if snapshot.running else ("text_tertiary", "Starting")


def left_level(snapshot: Snapshot, viewing: str = "", stopped: str = "") -> Level:
    """State, round, rate, and how the rounds are made."""
    role, word = state_of(snapshot, viewing, stopped)
    parts: list[Piece] = [Dot(role, gap=10), Text(word, 12, 600, "text", gap=16)]
    if viewing:
        parts.append(Text(viewing, gap=16))
    record = snapshot.record
    if record is not None and record.rounds:
        parts.append(Text(f"round {number(record.rounds)}", gap=16))
        rate = rounds_per_second(snapshot)
        sweeping = snapshot.sweep is not None and snapshot.sweep.state == "running"
        if (
            rate is not None
            and not sweeping
            and not snapshot.paused
            and not viewing
            and snapshot.stale_s is None
        ):
            parts.append(Text(f"{number(rate, 0 if rate >= 10 else 1)} rounds/s", gap=16))
        parts.append(Text("interleaved, order rotating", gap=16))
    environment = snapshot.recording.environment
    if environment is not None and environment.threads and not snapshot.on_gpu:
        threads = "1 thread" if environment.threads == 1 else f"{environment.threads} threads"
        parts.append(Text(threads, gap=16))
    if record is not None:
        parts.append(Text(f"cache {record.cache}", gap=16))
    return tuple(parts)


def right_level(snapshot: Snapshot) -> Level:
    """Worker, profiler, torch, and what is counted on this device."""
    recording = snapshot.recording
    texts: list[str] = []
    latest: m.Telemetry | None = recording.telemetry[-1] if recording.telemetry else None
    if latest is not None and latest.worker_bytes is not None:
        texts.append(f"worker {size(latest.worker_bytes)}")
    record = snapshot.record
    if record is not None and record.profiler_pids:
        texts.append("profiler apart")
    if recording.environment is not None:
        texts.append(f"torch {recording.environment.torch.replace('+', ' + ')}")
    if record is not None and not snapshot.on_gpu:
        texts.append("counts operators and Python calls")
    return tuple(Text(text, gap=16) for text in texts)


def shortened(level: Level, keep: int) -> tuple[Level, ...]:
    """The level, and what is left of it as its end is dropped down to `keep` pieces."""
    return tuple(level[:n] for n in range(len(level), min(keep, len(level)) - 1, -1)) or ((),)


class StatusBar(QWidget, Part):
    """The left part gives way last: a state is worth more than a version."""

    def __init__(self, look: Look, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.look = look
        self.left, self.right = PieceLine(look), PieceLine(look)
        self.right.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Expanding)
        self._row = QHBoxLayout(self)
        self._row.setSpacing(24)
        self._row.addWidget(self.left, 1)
        self._row.addWidget(self.right)
        self.restyle()

    def restyle(self) -> None:
        self.setFixedHeight(self.look.sizes.status)
        gap = self.look.sizes.gap
        self._row.setContentsMargins(gap, 1, gap, 0)

    def show_snapshot(self, snapshot: Snapshot, viewing: str = "", stopped: str = "") -> None:
        left = left_level(snapshot, viewing, stopped)
        self.left.set_levels(shortened(left, keep=2))
        right = right_level(snapshot)
        room = self.width() - 2 * self.look.sizes.gap - self._row.spacing()
        for level in (*shortened(right, keep=1), ()):
            if self.right.width_of(level) <= room - min(self.left.width_of(left), room * 0.62):
                break
        self.right.setFixedWidth(int(self.right.width_of(level) + 1.99))
        self.right.set_levels((level,))

    def text(self) -> str:
        return f"{self.left.text()} | {self.right.text()}"

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), self.look.colour("panel"))
        painter.setPen(QPen(self.look.colour("hairline"), 1))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawLine(QPointF(0, 0.5), QPointF(self.width(), 0.5))
