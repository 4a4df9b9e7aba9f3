"""Build in every state, and what its buttons ask for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication

from app.core import messages as m
from app.core.build import LOG_LINES_KEPT, BuildState
from app.gui.controls.build_chip import words_of
from app.gui.parts.text import recorded_overflows
from app.gui.snapshot import Snapshot
from app.gui.theme import DARK, LIGHT, Theme, Type
from app.gui.verdict_words import progress_of
from app.gui.views.build import BuildView
from app.gui.views.build_cache import read_entry
from app.gui.views.build_steps import steps_of, sums_of
from app.gui.views.log import LogView, line_of
from tests import factories
from tests.gui import scenes

pytestmark = pytest.mark.gui


def cached() -> Snapshot:
    made = scenes.fresh_build(factories.recording(rounds=20))
    factories.built(made, cached=True)
    return scenes.snapshot(made)


def cancelled() -> Snapshot:
    made = scenes.begun()
    scenes.failing(made, "cancelled")
    return scenes.snapshot(made)


def long_words() -> Snapshot:
    made = scenes.begun()
    scenes.building(made)
    sentence = "The compiler does not like this. " * 20
    made.apply(
        m.BuildFailed(
            "compile_error", sentence, "x" * 4000 + "\n" + "y\n" * 60, "a" * 300, "/l" * 200, (sentence,) * 5
        )
    )
    return scenes.snapshot(made)


SCENES = {
    "empty": lambda: scenes.snapshot(scenes.begun()),
    "built": lambda: scenes.snapshot(factories.recording(rounds=20)),
    "cached": cached,
    "running": scenes.SCENES["first build"],
    "waiting": scenes.SCENES["waiting for a build"],
    "failed": scenes.SCENES["failed build"],
    "cancelled": cancelled,
    "long words": long_words,
}


@pytest.fixture
def view(qtbot) -> BuildView:  # type: ignore[no-untyped-def]
    shown = BuildView(DARK, Type())
    qtbot.addWidget(shown)
    return shown


@pytest.mark.parametrize("theme", [DARK, LIGHT], ids=["dark", "light"])
@pytest.mark.parametrize(("width", "height", "small"), [(1128, 624, False), (744, 460, True)])
@pytest.mark.parametrize("scene", SCENES)
def test_every_state_is_drawn_whole(
    view: BuildView, scene: str, width: int, height: int, small: bool, theme: Theme
) -> None:
    view.set_theme(theme)
    view.set_small(small)
    view.show_snapshot(SCENES[scene]())
    with recorded_overflows() as cut:
        image = scenes.drawn(view, width, height)
    assert cut == []
    assert scenes.colours(image) > 6
    content = view._scroll.widget()
    assert content.width() <= view._scroll.viewport().width()


def test_an_empty_view_says_what_will_happen_and_can_start_it(view: BuildView, qtbot) -> None:  # type: ignore[no-untyped-def]
    view.show_snapshot(SCENES["empty"]())
    scenes.drawn(view, 1128, 624)
    assert view.empty.isVisible()
    assert not view._log_card.isVisible()
    from app.gui.parts.buttons import Button

    button = view.empty.findChild(Button)
    with qtbot.waitSignal(view.rebuild_requested) as signal:
        qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert signal.args == [False]


def test_rebuild_is_clean_and_is_not_offered_while_it_builds(view: BuildView, qtbot) -> None:  # type: ignore[no-untyped-def]
    view.show_snapshot(SCENES["built"]())
    scenes.drawn(view, 1128, 624)
    with qtbot.waitSignal(view.rebuild_requested) as signal:
        qtbot.mouseClick(view.rebuild, Qt.MouseButton.LeftButton)
    assert signal.args == [True]
    view.show_snapshot(SCENES["running"]())
    assert not view.rebuild.isVisible()


def test_a_running_build_can_be_cancelled_and_tells_how_far_it_is(view: BuildView, qtbot) -> None:  # type: ignore[no-untyped-def]
    view.show_snapshot(SCENES["running"]())
    scenes.drawn(view, 1128, 624)
    assert view.progress.title.text() == "Compiling 1 of 3"
    assert "14.0" in view.progress._line.text()
    assert "26.0" in view.progress._line.text()
    assert view.progress._bar.share == pytest.approx(14 / 26)
    with qtbot.waitSignal(view.cancel_requested):
        qtbot.mouseClick(view.progress._cancel, Qt.MouseButton.LeftButton)


def test_waiting_names_the_process(view: BuildView) -> None:
    view.show_snapshot(SCENES["waiting"]())
    scenes.drawn(view, 1128, 624)
    assert "waits for process 4711, which builds the same entry" in view.progress._line.text()


def test_a_failure_shows_its_first_error_verbatim_and_the_ways_out(view: BuildView, qtbot) -> None:  # type: ignore[no-untyped-def]
    shown = SCENES["failed"]()
    view.show_snapshot(shown)
    scenes.drawn(view, 1128, 624)
    failed = shown.recording.build.failed
    assert failed is not None
    assert view.failure._error.toPlainText() == failed.first_error
    assert view.failure.ways_out[:2] == list(failed.remedies)
    assert "Go on without" in view.failure.ways_out[-1]
    assert failed.log_path in view.failure._log.text()
    with qtbot.waitSignal(view.retry_requested):
        qtbot.mouseClick(view.failure.retry, Qt.MouseButton.LeftButton)


def test_flags_of_the_build_before_are_not_shown_for_one_that_failed(view: BuildView) -> None:
    made = factories.recording(rounds=20)
    scenes.failing(made)
    view.show_snapshot(scenes.snapshot(made))
    scenes.drawn(view, 1128, 624)
    assert not view.flags.isVisible()
    assert "changed: Sources" in view._cache_card.subtitle.text()


def test_a_cancelled_build_is_no_error(view: BuildView) -> None:
    view.show_snapshot(SCENES["cancelled"]())
    scenes.drawn(view, 1128, 624)
    assert view.failure.title.text() == "The build was cancelled"


def test_steps_say_cached_and_kept_in_words_and_add_up() -> None:
    steps = {step.id: step for step in steps_of(cached().recording.build)}
    assert (steps["compile"].now, steps["link"].now, steps["self-test"].now) == ("cached", "cached", "kept")
    build = factories.recording(rounds=5).build
    told = [step.seconds for step in build.steps.values() if step.seconds is not None]
    assert sums_of(build, None)[1] == f"{sum(told):.1f}"
    assert [step.state for step in steps_of(BuildState())] == ["waiting"] * 5


def entry_on_disk(root: Path, key: str = "7f3a91c2") -> Path:
    folder = root / key
    folder.mkdir(parents=True)
    timings = {
        "check_s": 0.3,
        "compile_s": 22.4,
        "link_s": 1.2,
        "work_s": 44.6,
        "jobs": 2,
        "sources": [{"source": "forward.cpp", "job": 1, "started_s": 0.0, "seconds": 10.3}],
    }
    manifest = {"built_at": 1_780_000_000.0, "timings": timings, "library": {"name": "x.so", "bytes": 10}}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def test_a_cached_start_shows_what_the_full_build_took(view: BuildView, tmp_path: Path) -> None:
    folder = entry_on_disk(tmp_path)
    entry_on_disk(tmp_path, "0123abcd")
    shown = cached()
    key = shown.recording.build.key
    assert key is not None
    shown.recording.build.key = m.BuildKey(key.key, key.parts, folder=str(folder))
    view.show_snapshot(shown)
    scenes.drawn(view, 1128, 624)
    assert view.steps._full
    assert view.steps._sums[0] == "23.9"
    assert view._sources_card.isVisible()
    assert view.sources.caption.startswith("full build: ")
    assert "1 other entry beside it" in view._older.text()
    assert view._open.isVisible()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"built_at": "x"}', b"\xd3" * 50])
def test_a_damaged_manifest_is_no_entry(tmp_path: Path, content: bytes) -> None:
    folder = entry_on_disk(tmp_path)
    (folder / "manifest.json").write_bytes(content)
    assert read_entry(str(folder)) is None
    assert read_entry("") is None
    assert read_entry("/nowhere/at/all") is None


def test_the_log_takes_every_line_in_order_and_only_once(qtbot) -> None:  # type: ignore[no-untyped-def]
    log = LogView(scenes.look_of())
    qtbot.addWidget(log)
    entries = [m.BuildLog(i / 10, f"line {i}") for i in range(1000)]
    shown: list[m.BuildLog] = []
    for i in range(0, 1000, 50):
        shown.extend(entries[i : i + 50])
        log.show_log(shown)
    qtbot.waitUntil(lambda: log.blockCount() == 1000, timeout=3000)
    assert log.toPlainText() == log.text_of_log()
    log.copy_log()
    assert QGuiApplication.clipboard().text().count("\n") == 999


def test_another_log_replaces_the_one_shown(qtbot) -> None:  # type: ignore[no-untyped-def]
    log = LogView(scenes.look_of())
    qtbot.addWidget(log)
    log.show_log([m.BuildLog(0.0, "old")])
    log.show_log([m.BuildLog(0.0, "new"), m.BuildLog(0.1, "newer")])
    assert log.toPlainText() == "[0.00 s]  new\n[0.10 s]  newer"
    log.show_log([])
    assert log.toPlainText() == ""


def test_a_long_log_is_bounded_and_never_stalls(qtbot) -> None:  # type: ignore[no-untyped-def]
    log = LogView(scenes.look_of())
    qtbot.addWidget(log)
    entries = [m.BuildLog(i / 10, f"line {i}") for i in range(LOG_LINES_KEPT)]
    log.show_log(entries)
    assert log.blockCount() <= 300
    qtbot.waitUntil(lambda: log.blockCount() == LOG_LINES_KEPT, timeout=8000)
    log.show_log([*entries[500:], *(m.BuildLog(1.0, f"more {i}") for i in range(200))])
    assert log.blockCount() == LOG_LINES_KEPT
    assert log.toPlainText().endswith("more 199")


def test_the_log_follows_its_end_unless_someone_scrolled_up(qtbot) -> None:  # type: ignore[no-untyped-def]
    log = LogView(scenes.look_of())
    qtbot.addWidget(log)
    entries = [m.BuildLog(i / 10, f"line {i}") for i in range(100)]
    log.show_log(entries[:60])
    scenes.drawn(log, 400, 200)
    bar = log.verticalScrollBar()
    log.show_log(entries[:80])
    assert bar.value() == bar.maximum()
    bar.setValue(3)
    log.show_log(entries)
    assert bar.value() == 3


def test_control_characters_and_endless_lines_do_no_harm() -> None:
    assert line_of(m.BuildLog(0.5, "\x1b[31mred\x1b[0m\x07 \ud7ff")) == "[0.50 s]   red   \ud7ff"
    assert "\n" not in line_of(m.BuildLog(0.5, "two\nlines"))
    assert len(line_of(m.BuildLog(0.5, "x" * 1_000_000))) < 2100


def test_a_change_of_theme_keeps_the_log_and_the_card(view: BuildView) -> None:
    view.show_snapshot(SCENES["failed"]())
    scenes.drawn(view, 1128, 624)
    before = view.log.toPlainText()
    view.set_theme(LIGHT)
    assert view.log.toPlainText() == before
    assert before


def test_the_number_of_files_is_the_builds_not_that_of_those_begun() -> None:
    build = BuildState()
    build.apply(m.BuildStep("compile", "started"))
    build.apply(m.BuildSource("autograd.cpp", "started", 1, 9, 0, 0.0))
    build.apply(m.BuildProgress(0, 9, 1.0, 40.0))
    assert steps_of(build)[1].title == "Compile 9 files"


@pytest.mark.parametrize("ending", ["failed", "abandoned"])
def test_no_step_goes_on_after_its_build(ending: str) -> None:
    build = BuildState()
    build.apply(m.BuildStep("check", "started"))
    if ending == "failed":
        build.apply(m.BuildFailed("no_compiler", "There is no compiler"))
    else:
        build.abandoned()
    step = steps_of(build)[0]
    assert (step.state, step.now) == ("failed", "stopped")


def test_every_bar_of_a_build_is_as_far_as_the_others(view: BuildView) -> None:
    shown = scenes.SCENES["first build"]()
    build = shown.recording.build
    view.show()
    view.show_snapshot(shown)
    assert build.share is not None
    assert view.progress._bar.share == build.share
    assert words_of(build).share == build.share
    assert progress_of(build)[2] == build.share


def test_work_that_goes_on_counts_as_work(view: BuildView) -> None:
    made = scenes.begun()
    made.apply(m.BuildStep("compile", "started"))
    for job, source in enumerate(("autograd.cpp", "operators.cpp")):
        made.apply(m.BuildSource(source, "started", job + 1, 9, job, 2.0 * job))
    made.apply(m.BuildProgress(0, 9, 12.0, 40.0))
    view.show()
    view.show_snapshot(scenes.snapshot(made))
    assert view.sources.caption == "22.0 s of work, 12.0 s on 2 jobs"
