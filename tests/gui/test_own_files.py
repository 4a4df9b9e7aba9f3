"""Own implementations in the window: asked about before they run, listed, reloaded, removed, remembered."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QFileDialog, QWidget
from pytestqt.qtbot import QtBot

from app.core import messages as m
from app.core.catalog import CONTENDERS, OWN_MARKS
from app.core.own import examine
from app.core.trust import Trust
from app.gui.confirm_sheet import ConfirmSheet, SourceText, visible
from app.gui.marks import mark_path
from app.gui.parts.buttons import Button
from app.gui.parts.text import Label, Paragraph, recorded_overflows
from app.gui.preferences import Preferences, load
from app.gui.window import MainWindow
from tests.engine.own.files import GOOD, write
from tests.gui.fakes import calls
from tests.gui.states import in_state

pytestmark = pytest.mark.gui

Maker = Callable[..., MainWindow]


@pytest.fixture(autouse=True)
def nothing_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.core.trust._here", set())


def sheet_of(window: MainWindow) -> ConfirmSheet:
    found = [sheet for sheet in window.findChildren(ConfirmSheet) if sheet.isVisible()]
    assert len(found) == 1
    return found[0]


def choose(window: MainWindow, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_, **__: (path, ""))
    window.contenders.add.click()


def test_a_file_is_added_once_its_code_was_confirmed(
    make: Maker, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    window = make()
    file = write(tmp_path, GOOD)
    choose(window, monkeypatch, file.path)
    sheet = sheet_of(window)
    assert calls(window, "add_own") == []
    shown = " ".join(label.text() for label in sheet.findChildren(Label))
    for said in (file.path, f"{file.size_bytes:,} bytes", file.sha256, "Mine: build in line 17"):
        assert said in shown
    assert "with your rights" in " ".join(p.text() for p in sheet.findChildren(Paragraph))
    assert sheet.source.toPlainText() == GOOD
    assert sheet.cancel.hasFocus()
    sheet.run.click()
    assert calls(window, "add_own") == [(file, True)]
    assert Trust().holds(file)
    row = window.contenders.row(file.id)
    assert row.isVisible()
    assert row.y() > window.contenders.row(tuple(CONTENDERS)[-1]).y()
    assert window.contenders.count.text().endswith(f"of {len(CONTENDERS) + 1} ready")


@pytest.mark.parametrize("how", ["button", "escape", "resize"])
def test_any_other_end_of_the_question_is_a_no(
    make: Maker, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, how: str
) -> None:
    window = make()
    file = write(tmp_path, GOOD)
    choose(window, monkeypatch, file.path)
    sheet = sheet_of(window)
    if how == "button":
        sheet.cancel.click()
    elif how == "escape":
        qtbot.keyClick(sheet.cancel, Qt.Key.Key_Escape)
    else:
        window.resize(window.width() - 100, window.height())
    qtbot.waitUntil(lambda: window.commands.own.sheet is None)
    assert calls(window, "add_own") == []
    assert not Trust().holds(file)


def test_known_content_is_not_asked_for_again_and_changed_content_is(make: Maker, tmp_path: Path) -> None:
    window = make()
    file = write(tmp_path, GOOD)
    Trust().confirm(file)
    window.commands.open_path(Path(file.path))
    assert calls(window, "add_own") == [(file, True)]
    edited = write(tmp_path, GOOD + "# edited\n")
    window.contenders.row(file.id).reload_requested.emit(file.id)
    sheet_of(window).run.click()
    assert calls(window, "add_own")[-1] == (edited, True)


def test_reloading_what_did_not_change_starts_it_anew(make: Maker, tmp_path: Path) -> None:
    window = make()
    file = write(tmp_path, GOOD)
    Trust().confirm(file)
    window.commands.own.add(Path(file.path))
    window.contenders.row(file.id).reload_requested.emit(file.id)
    assert calls(window, "try_again") == [(file.id,)]


def test_a_row_of_ones_own_can_be_removed_and_is_no_baseline(make: Maker, tmp_path: Path) -> None:
    window = make()
    file = write(tmp_path, GOOD)
    Trust().confirm(file)
    window.commands.own.add(Path(file.path))
    row = window.contenders.row(file.id)
    menu = row.open_menu()
    entries = {row.item.id: row.item for row in menu.rows}
    assert not entries["baseline"].enabled
    assert "process of its own" in entries["baseline"].detail
    assert {"reload", "remove"} <= set(entries)
    row._chosen("remove")
    window.refresh()
    assert calls(window, "remove_own") == [(file.id,)]
    assert not row.isVisible()
    window.commands.own.add(Path(file.path))
    assert window.contenders.row(file.id).isVisible()


def test_keys_toggle_it_and_never_make_it_the_baseline(make: Maker, tmp_path: Path) -> None:
    window = make()
    file = write(tmp_path, GOOD)
    Trust().confirm(file)
    window.commands.own.add(Path(file.path))
    window.contenders.toggle(len(CONTENDERS))
    assert file.id not in calls(window, "set_enabled")[-1][0]
    window.contenders.make_baseline(len(CONTENDERS))
    assert calls(window, "set_baseline") == []


def test_what_cannot_work_is_said_in_the_question(make: Maker, tmp_path: Path) -> None:
    window = make()
    window.commands.own.add(Path(write(tmp_path, "def broken(:\n").path))
    said = " ".join(p.text() for p in sheet_of(window).findChildren(Paragraph))
    assert "it will fail: it is not valid Python: line 1: invalid syntax." in said


def test_a_file_that_cannot_be_read_is_a_notice(make: Maker, tmp_path: Path) -> None:
    window = make()
    window.commands.own.add(tmp_path / "no.py")
    assert any("no file" in banner.text for banner in window.banners.banners())


def test_a_profiles_files_are_asked_about_one_after_the_other(make: Maker, tmp_path: Path) -> None:
    window = make()
    first, second = write(tmp_path, GOOD, "a.py"), write(tmp_path, GOOD + "#\n", "b.py")
    profile = tmp_path / "p.toml"
    profile.write_text('implementations = ["native", "./a.py", "./b.py"]\n')
    window.commands.open_path(profile)
    sheet_of(window).cancel.click()
    assert sheet_of(window).examined.file == second
    sheet_of(window).run.click()
    assert [call[0] for call in calls(window, "add_own")] == [second]
    assert not Trust().holds(first)


def test_it_is_there_again_at_the_next_start_unless_it_changed(make: Maker, tmp_path: Path) -> None:
    window = make()
    same, other = write(tmp_path, GOOD, "same.py"), write(tmp_path, GOOD + "#\n", "other.py")
    for file in (same, other):
        Trust().confirm(file)
        window.commands.own.add(Path(file.path))
    window.close()
    kept, notice = load()
    assert notice == ""
    assert kept.own == (same.path, other.path)
    assert same.id in kept.enabled
    write(tmp_path, GOOD + "# changed\n", "other.py")
    again = make()
    again.commands.own.restore(kept.own, kept.enabled)
    assert calls(again, "add_own") == [(same, True)]
    banner = next(b for b in again.banners.banners() if "other.py was changed" in b.text)
    banner.buttons[0].click()
    assert sheet_of(again).examined.file.name == "other.py"


def test_preferences_keep_ids_of_own_ones_apart(tmp_path: Path) -> None:
    preferences = Preferences(enabled=("native", "own-mine-12345678"), own=(str(tmp_path / "mine.py"),))
    assert preferences.save() == ""
    read = Preferences.load()
    assert read.enabled == ("native", "own-mine-12345678")
    assert read.baseline == "native"


def test_text_that_hides_is_shown_as_it_is() -> None:
    assert visible("a\u202eb\u200b\x1b[0m") == "a\\u202eb\\u200b\\x1b[0m"
    assert visible("Юзер é → ×\n\tx", "\n\t") == "Юзер é → ×\n\tx"


def test_the_sheet_fits_the_smallest_window_in_every_word(make: Maker, tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    file = write(folder, GOOD)
    window = make()
    window.resize(900, 600)
    window.commands.own.add(Path(file.path))
    sheet = sheet_of(window)
    with recorded_overflows() as found:
        window.grab()
    assert found == []
    assert window.rect().contains(sheet.geometry())
    for child in (sheet.run, sheet.cancel, sheet.findChildren(SourceText)[0]):
        assert sheet.rect().contains(child.geometry())


def test_a_failed_one_shows_its_reason_and_keeps_its_mark(make: Maker, tmp_path: Path) -> None:
    session = in_state("faster")
    window = make(session)
    file = write(tmp_path, GOOD)
    Trust().confirm(file)
    window.commands.own.add(Path(file.path))
    session.recording.apply(
        m.ContenderState(1, 0, file.id, "failed", "RuntimeError: boom (mine.py, line 24)")
    )
    window.refresh()
    row = window.contenders.row(file.id)
    assert row.state.level == "failed"
    assert row.state.reason == "RuntimeError"
    assert row.why.isVisible()


def test_every_mark_of_an_own_implementation_can_be_drawn_and_differs() -> None:
    paths = [mark_path(shape, 10) for _, _, shape in OWN_MARKS]
    assert all(not path.isEmpty() for path in paths)
    assert len({str(path.toFillPolygon()) for path in paths}) == len(paths)


def test_the_button_is_dashed_and_as_wide_as_the_list(make: Maker) -> None:
    window = make()
    button = window.contenders.add
    assert isinstance(button, Button)
    assert button.width() == window.contenders.width()
    image: QImage = button.grab().toImage()
    row = [image.pixelColor(x, 0).name() for x in range(10, image.width() - 10)]
    assert len(set(row)) > 1
    holder: QWidget = button.parentWidget()
    assert holder is window.contenders


def test_the_sheet_says_what_would_run(tmp_path: Path) -> None:
    assert examine(Path(write(tmp_path, GOOD).path)).function == "build"
