"""System: what there is to run on and why not, the environment, the doctor, and readings of the machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import pyqtgraph
import PySide6
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QVBoxLayout, QWidget

from app.core import text
from app.core.doctor import BUSY_PERCENT, Check, checks
from app.core.environment import Environment
from app.core.messages import Telemetry
from app.gui.charts.telemetry import Trend, TrendChart
from app.gui.parts.buttons import Button
from app.gui.parts.card import Card
from app.gui.parts.look import Look
from app.gui.parts.text import Paragraph
from app.gui.snapshot import Snapshot
from app.gui.theme import Theme, Type
from app.gui.views.facts import Fact, FactList
from app.gui.views.frame import View, scrolled, slim_bars
from app.gui.views.system_cards import CheckRow, DeviceRow, LevelCounts, copy_text

GIB = 2**30
_ENVIRONMENT = "goes into every export"
_TELEMETRY = "last 60 s, dashed: a limit or an event"
_CHECK_EVERY_S = 5.0


class SystemView(View):
    """`check_again_requested` asks a worker to look at its machine anew."""

    check_again_requested = Signal()

    def __init__(self, theme: Theme, type_: Type) -> None:
        super().__init__(theme, type_)
        look = self.look
        self.devices_card = Card(look, "Devices", "what can be run on, and why not")
        self.environment_card = Card(look, "Environment", _ENVIRONMENT)
        self.doctor_card = Card(look, "Doctor")
        self.telemetry_card = Card(look, "Telemetry", _TELEMETRY)
        self.devices: tuple[DeviceRow, ...] = ()
        self.check_rows: tuple[CheckRow, ...] = ()
        self._device_column = QVBoxLayout()
        self._device_column.setSpacing(0)
        self.devices_card.body.addLayout(self._device_column)
        self._waiting = Paragraph(look, "The worker has not told of its machine yet.", 13)
        self.devices_card.body.addWidget(self._waiting)
        self.devices_card.body.addStretch(1)
        self.facts = FactList(look, "Environment", 80, 24)
        self.environment_card.body.addWidget(self.facts)
        self.environment_card.body.addStretch(1)
        self.counts = LevelCounts(look)
        self.doctor_card.tools.addWidget(self.counts)
        self._check_column = QVBoxLayout()
        self._check_column.setSpacing(0)
        self.doctor_card.body.addLayout(self._check_column)
        self.doctor_card.body.addStretch(1)
        self._add_buttons(look)
        self.trends = {title: TrendChart(look, title) for title in _TRENDS}
        grid = QGridLayout()
        grid.setHorizontalSpacing(20)
        grid.setVerticalSpacing(8)
        for index, chart in enumerate(self.trends.values()):
            grid.addWidget(chart, index // 2, index % 2)
        self.telemetry_card.body.addLayout(grid, 1)
        self._lay_out()
        self._shown: tuple[object, ...] = ()
        self._checked_s = -1e18
        self._build_state = ""
        self._found: tuple[Check, ...] = ()

    def _add_buttons(self, look: Look) -> None:
        self.again = Button(look, "Check again", "restart", "quiet")
        self.again.clicked.connect(self._check_again)
        self.doctor_card.tools.addWidget(self.again)
        self.report = Button(look, "Copy report", "copy", "quiet")
        self.report.clicked.connect(lambda: copy_text(self.report_text()))
        self.environment_card.tools.addWidget(self.report)

    def _lay_out(self) -> None:
        content = QWidget()
        self._columns = QHBoxLayout(content)
        self._columns.setContentsMargins(0, 0, 0, 0)
        self._left, self._right = QVBoxLayout(), QVBoxLayout()
        self._left.addWidget(self.devices_card)
        self._left.addWidget(self.doctor_card, 1)
        self._right.addWidget(self.environment_card)
        self._right.addWidget(self.telemetry_card, 1)
        self._columns.addLayout(self._left, 61)
        self._columns.addLayout(self._right, 39)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        self._scroll = scrolled(content)
        outer.addWidget(self._scroll)
        self._restyled()

    def chart_widgets(self) -> dict[str, QWidget]:
        return dict(self.trends)

    def report_text(self) -> str:
        """The environment and the doctor's list as text, for a message to someone else."""
        lines = [f"{fact.label}: {fact.value} {fact.trailing}".rstrip() for fact in self.facts.facts]
        lines += ["", *(f"[{c.level}] {c.title}: {c.found}. {c.action}".rstrip() for c in self._found)]
        return "\n".join(lines)

    def _restyled(self) -> None:
        slim_bars(self._scroll, self.look)
        small = self.look.small
        self.telemetry_card.subtitle.setText("last 60 s" if small else _TELEMETRY)
        self.environment_card.subtitle.setText("" if small else _ENVIRONMENT)
        gap = self.look.sizes.gap
        for layout in (self._columns, self._left, self._right):
            layout.setSpacing(gap)

    def _check_again(self) -> None:
        self._checked_s = -1e18
        self.check_again_requested.emit()

    def _take(self, snapshot: Snapshot) -> None:
        recording = snapshot.recording
        environment = recording.environment
        device = snapshot.record.workload.device if snapshot.record is not None else "auto"
        key = (environment, device)
        if key != self._shown:
            self._shown = key
            self._show_devices(environment, device)
            self.facts.show_facts(facts_of(environment))
            self._checked_s = -1e18
        self._show_trends(recording.telemetry)
        self._show_checks(snapshot, environment, device)

    def _show_devices(self, environment: Environment | None, device: str) -> None:
        _empty(self._device_column)
        found = environment.devices if environment is not None else ()
        used = "cpu" if device == "auto" else "cuda:0" if device == "cuda" else device
        first = next((d.id for d in found if not d.usable and d.command), None)
        self.devices = tuple(DeviceRow(self.look, d, d.id == used, d.id == first) for d in found)
        if self.devices:
            self.devices[-1].last = True
        for row in self.devices:
            self._device_column.addWidget(row)
        self._waiting.setVisible(environment is None)

    def _show_checks(self, snapshot: Snapshot, environment: Environment | None, device: str) -> None:
        recording = snapshot.recording
        state = recording.build.state
        # Loads waver: lines that came and went with every reading could not be read.
        due = snapshot.now_s - self._checked_s >= _CHECK_EVERY_S or state != self._build_state
        if not due:
            return
        self._checked_s, self._build_state = snapshot.now_s, state
        found = checks(environment, recording.build, recording.telemetry, device)
        self.doctor_card.subtitle.setText(f"{text.number(len(found))} checks")
        if found == self._found:
            return
        self._found = found
        self.counts.show_checks(found)
        _empty(self._check_column)
        self.check_rows = tuple(CheckRow(self.look, check) for check in found)
        for row in self.check_rows:
            self._check_column.addWidget(row)

    def _show_trends(self, telemetry: Sequence[Telemetry]) -> None:
        recent = recent_of(telemetry)
        for title, make in _TRENDS.items():
            self.trends[title].show_trend(make(recent) if recent else None)


def recent_of(telemetry: Sequence[Telemetry], span_s: float = 62.0) -> tuple[Telemetry, ...]:
    """The readings of the last minute."""
    if not telemetry:
        return ()
    since = telemetry[-1].at_s - span_s
    return tuple(reading for reading in telemetry[-600:] if reading.at_s >= since)


def _trend(
    recent: Sequence[Telemetry], read: Callable[[Telemetry], float | None], **options: object
) -> Trend:
    now = recent[-1].at_s
    points = tuple((reading.at_s - now, read(reading)) for reading in recent)
    return Trend(points, **options)  # type: ignore[arg-type]


def _events(recent: Sequence[Telemetry]) -> tuple[tuple[float, str], ...]:
    now, found = recent[-1].at_s, []
    for before, after in pairwise(recent):
        if before.on_mains and after.on_mains is False:
            found.append((after.at_s - now, "on battery"))
    return tuple(found)


def _load(recent: Sequence[Telemetry]) -> Trend:
    limit = (BUSY_PERCENT, "limit")
    return _trend(recent, lambda r: r.others_percent, unit="%", least_top=40.0, limit=limit)


def _clock(recent: Sequence[Telemetry]) -> Trend:
    return _trend(
        recent,
        lambda r: None if r.clock_hz is None else r.clock_hz / 1e9,
        unit="GHz",
        decimals=1,
        events=_events(recent),
    )


def _temperature(recent: Sequence[Telemetry]) -> Trend:
    return _trend(recent, lambda r: r.temperature_c, unit="°C", floor=None, least_top=30.0)


def _memory(recent: Sequence[Telemetry]) -> Trend:
    total = next((r.memory_total_bytes for r in reversed(recent) if r.memory_total_bytes), None)
    return _trend(
        recent,
        lambda r: None if r.memory_used_bytes is None else r.memory_used_bytes / GIB,
        unit="GiB",
        decimals=1,
        least_top=total / GIB if total else 1.0,
    )


_TRENDS: dict[str, Callable[[Sequence[Telemetry]], Trend]] = {
    "Load by others, %": _load,
    "Clock, GHz": _clock,
    "CPU temperature, °C": _temperature,
    "Memory, GiB": _memory,
}


def facts_of(environment: Environment | None) -> list[Fact]:
    """The environment as lines; what a machine does not offer is left out."""
    window = Fact("Window", f"Qt {PySide6.__version__} · pyqtgraph {pyqtgraph.__version__}")
    if environment is None:
        return [window]
    one = environment
    cuda = f" · built for CUDA {one.torch_cuda}" if one.torch_cuda else ""
    gap = next((d for d in one.devices if not d.usable and d.capability is not None), None)
    lacking = f"no sm_{gap.capability[0]}{gap.capability[1]}" if gap and gap.capability else ""
    cores = [
        f"{text.number(count)} {word}{'s' if count != 1 else ''}"
        for count, word in ((one.physical_cores, "core"), (one.logical_cores, "thread"))
        if count is not None
    ]
    threads = []
    if one.threads is not None:
        threads.append(f"{text.number(one.threads)} within")
    if one.interop_threads is not None:
        threads.append(f"{text.number(one.interop_threads)} between operators")
    facts = [
        Fact("AttnScope", one.attnscope),
        Fact("System", " · ".join(part for part in (one.system, one.machine) if part)),
        Fact("Python", one.python),
        Fact("PyTorch", one.torch + cuda, lacking, bold=True, trailing_role="warning"),
        Fact("Driver", one.driver or ""),
        Fact("CPU", " · ".join([one.cpu, *cores])),
        Fact("Vector code", ", ".join(one.cpu_features)),
        Fact("Memory", text.size(one.memory_bytes) if one.memory_bytes is not None else ""),
        Fact("Threads", ", ".join(threads)),
        Fact("Extension", one.extension_key or ""),
        window,
    ]
    return [fact for fact in facts if fact.value]


def _empty(column: QVBoxLayout) -> None:
    while column.count():
        item = column.takeAt(0)
        widget = item.widget() if item is not None else None
        if widget is not None:
            widget.hide()
            widget.deleteLater()
