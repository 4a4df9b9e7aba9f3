"""Build: how the extension's build went or goes, from what, and what to do where it failed."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from PySide6.QtCore import QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.core.build import BuildState
from app.core.text import number, size
from app.gui.charts.host import ChartCard
from app.gui.charts.sources import SourceBar, SourcesChart
from app.gui.parts.buttons import Button
from app.gui.parts.card import Card
from app.gui.parts.text import Label, Paragraph
from app.gui.snapshot import Snapshot
from app.gui.theme import Theme, Type
from app.gui.views.build_cache import CacheEntry, read_entry
from app.gui.views.build_cards import FailureCard, PlainNote, ProgressCard, StepTable
from app.gui.views.build_steps import StepList
from app.gui.views.facts import CodeWords, Fact, FactList
from app.gui.views.frame import FlushCard, View, scrolled, slim_bars
from app.gui.views.log import LogView

_EMPTY = (
    "The extension has not been built in this session. When an implementation needs it, AttnScope looks for "
    "a C++ compiler, compiles the sources (25 to 45 s, once per machine), checks the result against native "
    "PyTorch and keeps it in a cache; later starts load it in a fraction of a second. Everything else runs "
    "meanwhile."
)
PART_TITLES = {
    "sources": "Sources",
    "torch": "PyTorch",
    "python": "Python",
    "compiler": "Compiler",
    "flags": "Flags",
}


class BuildView(View):
    """`rebuild_requested(clean)`, `cancel_requested` and `retry_requested` ask for what only a worker can do."""

    rebuild_requested = Signal(bool)
    cancel_requested = Signal()
    retry_requested = Signal()

    def __init__(self, theme: Theme, type_: Type) -> None:
        super().__init__(theme, type_)
        self._folder = ""
        self._entry: CacheEntry | None = None
        self._entry_of: tuple[str, str] = ("", "")
        self._make_cards()
        content = QWidget()
        self._columns = QHBoxLayout(content)
        self._columns.setContentsMargins(0, 0, 0, 0)
        self._left, self._right = QVBoxLayout(), QVBoxLayout()
        for card in (self.empty, self.progress, self.failure, self._steps_card, self._sources_card):
            self._left.addWidget(card)
        self._left.addWidget(self._log_card, 1)
        self._left.addStretch(0)
        for card in (self._short_card, self._compiler_card, self._cache_card):
            self._right.addWidget(card)
        self._right.addStretch(1)
        self._columns.addLayout(self._left, 62)
        self._columns.addLayout(self._right, 38)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        self._scroll = scrolled(content)
        outer.addWidget(self._scroll)
        self._restyled()

    def chart_widgets(self) -> dict[str, QWidget]:
        return {self.sources.title: self.sources} if self._sources_card.isVisibleTo(self) else {}

    def _make_cards(self) -> None:
        look = self.look
        self.empty = Card(look, "Not built yet", "what will happen")
        self.empty.body.addWidget(PlainNote(look, "info", _EMPTY))
        build = Button(look, "Build now", "play", "primary")
        build.clicked.connect(lambda: self.rebuild_requested.emit(False))
        self.empty.tools.addWidget(build)
        self.progress = ProgressCard(look)
        self.progress.cancelled.connect(self.cancel_requested)
        self.failure = FailureCard(look)
        self.failure.retried.connect(self.retry_requested)
        self.steps = StepTable(look)
        self._steps_card = FlushCard(look, "Steps")
        self._steps_card.body.addWidget(self.steps)
        self.rebuild = Button(look, "Rebuild", "rebuild")
        self.rebuild.setToolTip("Compile everything again, even though the cache holds it")
        self.rebuild.clicked.connect(lambda: self.rebuild_requested.emit(True))
        self._steps_card.tools.addWidget(self.rebuild)
        self.short_steps = StepList(look)
        self._short_card = Card(look, "Steps")
        self._short_card.body.addWidget(self.short_steps)
        self.sources = SourcesChart(look)
        self._sources_card = ChartCard(look, self.sources, 8)
        self.log = LogView(look)
        self.log.setMinimumHeight(120)
        self._log_card = Card(look, "Build log")
        self._log_card.body.addWidget(self.log)
        copy = Button(look, "Copy log", "copy", "quiet")
        copy.clicked.connect(self.log.copy_log)
        self._log_card.tools.addWidget(copy)
        self._compiler_card = Card(look, "Compiler and flags")
        self.compiler = FactList(look, "Compiler")
        self._flags_title = Label(look, "Flags", 12, 400, "text_tertiary")
        self.flags = CodeWords(look, "Flags")
        self._compiler_card.body.setSpacing(8)
        for part in (self.compiler, self._flags_title, self.flags):
            self._compiler_card.body.addWidget(part)
        self._cache_card = Card(look, "Cache entry")
        self.key = FactList(look, "Key", 60, 28)
        self.parts = FactList(look, "Parts of the key", 78)
        self._older = Paragraph(look, "", 12)
        self._open = Button(look, "Open folder", "folder", "quiet", name="Open folder")
        self._open.clicked.connect(self._open_folder)
        self._cache_card.tools.addWidget(self._open)
        self._cache_card.body.setSpacing(6)
        for line in (self.key, self.parts, self._older):
            self._cache_card.body.addWidget(line)

    def _restyled(self) -> None:
        slim_bars(self._scroll, self.look)
        # Beside the word there would be no room for what changed in the key.
        self._open.set_content("" if self.look.small else "Open folder", "folder")
        gap = self.look.sizes.gap
        for layout in (self._columns, self._left, self._right):
            layout.setSpacing(gap)

    def _take(self, snapshot: Snapshot) -> None:
        build = snapshot.recording.build
        self._read_cache(build)
        nothing = build.state == "none" and not build.log
        self.empty.setVisible(nothing)
        self.progress.setVisible(build.is_running)
        self.failure.setVisible(build.state == "failed")
        # While it goes on or has failed, the steps stand at the side and leave room for what is going on.
        short = build.state in ("running", "failed")
        self._steps_card.setVisible(not nothing and not short)
        self._short_card.setVisible(short)
        self.short_steps.show_build(build)
        self._log_card.setVisible(not nothing)
        # A button for what goes on already, or stands in the failure's card, would be one too many.
        self.rebuild.setVisible(build.state in ("built", "none"))
        self.progress.show_build(build)
        if build.failed is not None:
            self.failure.show_failure(build.failed)
        self._show_steps(build)
        self._show_sources(build)
        self.log.show_log(build.log)
        count = len(build.log)
        self._log_card.subtitle.setText(f"{number(count)} line{'s' if count != 1 else ''}")
        self._show_compiler(build)
        self._show_cache(build)
        self._left.setStretch(self._left.count() - 1, 1 if nothing else 0)

    def _read_cache(self, build: BuildState) -> None:
        """The entry on disk, read once for each build that ends."""
        self._folder = build.key.folder if build.key is not None else ""
        wanted = (self._folder, build.state)
        if wanted != self._entry_of:
            self._entry_of = wanted
            self._entry = read_entry(self._folder) if build.state == "built" else None

    def _show_steps(self, build: BuildState) -> None:
        finished = build.finished if build.state == "built" else None
        cached = finished is not None and finished.cached
        full = self._entry.timings if cached and self._entry is not None else None
        self.steps.show_build(build, full)
        words = {
            "running": "going on",
            "failed": "stopped",
            "built": "loaded from the cache at this start" if cached else "compiled in this session",
        }
        said = words.get(build.state, "")
        test = build.steps.get("self-test")
        if build.state == "built" and test is not None and test.state in ("done", "cached"):
            said += " · self-test passed"
        self._steps_card.subtitle.setText(said)

    def _show_sources(self, build: BuildState) -> None:
        failed_source = build.failed.source if build.failed is not None else ""
        bars = tuple(
            SourceBar(
                s.source,
                s.job,
                s.started_s,
                s.seconds,
                s.state == "failed" or Path(failed_source).name == Path(s.source).name,
            )
            for s in sorted(build.sources.values(), key=lambda s: (s.started_s, s.index))
        )
        jobs = build.finished.jobs if build.finished is not None and build.state == "built" else None
        if not bars and self._entry is not None:
            timings = self._entry.timings
            bars = tuple(SourceBar(s.source, s.job, s.started_s, s.seconds) for s in timings.sources)
            jobs = timings.jobs
        self._sources_card.setVisible(bool(bars))
        now_s = build.progress.elapsed_s if build.progress is not None else 0.0
        self.sources.show_bars(bars, now_s)
        took = [max(now_s - bar.started_s, 0.0) if bar.seconds is None else bar.seconds for bar in bars]
        work = sum(took)
        span = max((bar.started_s + seconds for bar, seconds in zip(bars, took, strict=True)), default=0.0)
        jobs = jobs or len({bar.job for bar in bars})
        which = "full build: " if not build.sources else ""
        on = f"{number(jobs)} job{'s' if jobs != 1 else ''}"
        self.sources.caption = f"{which}{number(work, 1)} s of work, {number(span, 1)} s on {on}"
        self._sources_card.refresh()

    def _show_compiler(self, build: BuildState) -> None:
        finished, key = build.finished if build.state == "built" else None, build.key
        compiler = finished.compiler if finished is not None else ""
        if not compiler and key is not None and "compiler" in key.parts:
            compiler = key.parts["compiler"][1]
        facts = []
        if compiler:
            facts.append(Fact("Compiler", compiler))
        check = build.steps.get("check")
        if check is not None and check.detail:
            facts.append(Fact("Check", check.detail))
        if finished is not None and finished.jobs is not None:
            facts.append(Fact("Jobs", f"{number(finished.jobs)} at a time"))
        if finished is not None and finished.library:
            facts.append(Fact("Library", Path(finished.library).name))
        self._compiler_card.setVisible(bool(facts))
        self.compiler.show_facts(facts)
        flags = finished.flags if finished is not None else ()
        self._flags_title.setVisible(bool(flags))
        self.flags.setVisible(bool(flags))
        self.flags.show_words(flags)

    def _show_cache(self, build: BuildState) -> None:
        key = build.key
        self._cache_card.setVisible(key is not None)
        if key is None:
            return
        entry = self._entry
        trailing = ""
        if entry is not None:
            built = datetime.fromtimestamp(entry.built_at).strftime("%d %b %H:%M").lstrip("0")
            trailing = f"{size(entry.library_bytes)} · {built}"
        self.key.show_facts(
            [Fact("Key", spaced(key.key), trailing, bold=True, trailing_role="text_secondary")]
        )
        self.parts.show_facts(
            [
                Fact(
                    PART_TITLES.get(name, name.capitalize()),
                    text,
                    spaced(digest[:8]),
                    "warning" if name in key.changed else "tick",
                    "warning" if name in key.changed else "ok",
                    name in key.changed,
                    "warning" if name in key.changed else "text_tertiary",
                    True,
                )
                for name, (digest, text) in key.parts.items()
            ]
        )
        changed = [PART_TITLES.get(name, name) for name in key.changed]
        cached = build.state == "built" and build.finished is not None and build.finished.cached
        count = number(len(key.parts))
        said = f"all {count} parts agree" if cached else f"{count} parts make the key"
        self._cache_card.subtitle.setText(f"changed: {', '.join(changed)}" if changed else said)
        older = ""
        if entry is not None and entry.others:
            plural = "entries" if entry.others != 1 else "entry"
            older = f"{number(entry.others)} other {plural} beside it, {size(entry.others_bytes)}"
        self._older.setText(older)
        self._older.setVisible(bool(older))
        self._open.setVisible(bool(self._folder) and Path(self._folder).parent.is_dir())

    def _open_folder(self) -> None:
        folder = Path(self._folder)
        shown = folder if folder.is_dir() else folder.parent
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(shown)))


def spaced(digest: str) -> str:
    """A digest in groups of four, so that it can be compared by eye."""
    return " ".join(digest[i : i + 4] for i in range(0, len(digest), 4))
