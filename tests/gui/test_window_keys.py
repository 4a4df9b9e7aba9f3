"""The keyboard map, and that everything is reached by Tab."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QLineEdit, QWidget
from pytestqt.qtbot import QtBot

from app.gui.parts.overlay import Overlay
from app.gui.tab_area import ACCURACY, BUILD, LIVE, SWEEP, SYSTEM
from tests.gui.conftest import Maker
from tests.gui.fakes import calls

pytestmark = pytest.mark.gui


def test_space_runs_and_pauses(qtbot: QtBot, make: Maker) -> None:
    window = make()
    qtbot.keyClick(window, Qt.Key.Key_Space)
    assert calls(window, "pause") == [()]
    assert window.verdict.verdict is not None
    assert window.verdict.verdict.dimmed
    qtbot.keyClick(window, Qt.Key.Key_Space)
    assert calls(window, "resume") == [()]


@pytest.mark.parametrize(
    ("key", "modifier", "call"),
    [
        (Qt.Key.Key_R, Qt.KeyboardModifier.ControlModifier, ("restart",)),
        (Qt.Key.Key_P, Qt.KeyboardModifier.NoModifier, ("profile_now",)),
        (Qt.Key.Key_B, Qt.KeyboardModifier.ControlModifier, ("build", False)),
        (Qt.Key.Key_B, Qt.KeyboardModifier.NoModifier, ("set_baseline", "mha")),
        (Qt.Key.Key_3, Qt.KeyboardModifier.NoModifier, ("set_enabled", ("native", "mha", "extension-aten"))),
        (Qt.Key.Key_3, Qt.KeyboardModifier.ShiftModifier, ("set_baseline", "sdpa")),
    ],
)
def test_each_key_does_what_the_map_says(
    qtbot: QtBot, make: Maker, key: Qt.Key, modifier: Qt.KeyboardModifier, call: tuple[object, ...]
) -> None:
    window = make()
    qtbot.keyClick(window, key, modifier)
    assert call in window.session.calls  # type: ignore[attr-defined]


def test_the_other_keys_open_what_they_name(qtbot: QtBot, make: Maker) -> None:
    window = make()
    control = Qt.KeyboardModifier.ControlModifier
    for number, index in (
        (Qt.Key.Key_2, SWEEP),
        (Qt.Key.Key_3, ACCURACY),
        (Qt.Key.Key_5, BUILD),
        (Qt.Key.Key_6, SYSTEM),
        (Qt.Key.Key_1, LIVE),
    ):
        qtbot.keyClick(window, number, control)
        assert window.tabs.tabs.currentIndex() == index
    qtbot.keyClick(window, Qt.Key.Key_L, control)
    assert not window.panel.isVisible()
    for key, modifier in ((Qt.Key.Key_F1, Qt.KeyboardModifier.NoModifier), (Qt.Key.Key_E, control)):
        qtbot.keyClick(window, key, modifier)
        layer = window.findChildren(Overlay)[-1]
        assert layer.isVisible()
        layer.close_layer()


def test_single_letters_are_off_while_a_field_has_the_focus(qtbot: QtBot, make: Maker) -> None:
    window = make()
    field = window.form.row("batch").field
    field.setFocus()
    editor = field.findChild(QLineEdit)
    assert editor is not None
    for key in (Qt.Key.Key_P, Qt.Key.Key_B, Qt.Key.Key_3, Qt.Key.Key_Space):
        qtbot.keyClick(field, key)
    assert window.session.calls == []  # type: ignore[attr-defined]
    qtbot.keyClick(field, Qt.Key.Key_Escape)
    assert not field.hasFocus()
    qtbot.keyClick(window, Qt.Key.Key_P)
    assert calls(window, "profile_now") == [()]


def test_single_letters_are_off_while_a_menu_is_open(qtbot: QtBot, make: Maker) -> None:
    window = make()
    window.commands.open_export_menu()
    focus = QApplication.focusWidget()
    assert focus is not None
    qtbot.keyClick(focus, Qt.Key.Key_P)
    assert calls(window, "profile_now") == []


def test_space_presses_the_button_that_has_the_focus(qtbot: QtBot, make: Maker) -> None:
    window = make()
    window.run_bar.restart.setFocus(Qt.FocusReason.TabFocusReason)
    qtbot.keyClick(window.run_bar.restart, Qt.Key.Key_Space)
    assert calls(window, "restart") == [()]
    assert calls(window, "pause") == []


def test_esc_closes_the_drawer(qtbot: QtBot, make: Maker) -> None:
    window = make()
    window.resize(900, 600)
    window.commands.run("panel")
    assert window.panel.isVisible()
    qtbot.keyClick(window, Qt.Key.Key_Escape)
    assert not window.panel.isVisible()


def test_everything_is_reached_by_tab_and_shows_its_ring(qtbot: QtBot, make: Maker) -> None:
    window = make()
    seen: list[QWidget] = []
    window.run_bar.menu.setFocus(Qt.FocusReason.TabFocusReason)
    for _ in range(80):
        widget = QApplication.focusWidget()
        assert widget is not None
        if widget in seen:
            break
        seen.append(widget)
        window.focusNextChild()
    for wanted in (
        window.run_bar.run,
        window.run_bar.export,
        window.form.profile,
        window.form.row("num_heads").field,
        window.form.switch("causal"),
        window.contenders.row("sdpa"),
        window.verdict.challenger,
        window.tabs.tabs,
        window.tabs.camera,
    ):
        assert wanted in seen, wanted
        wanted.setFocus(Qt.FocusReason.TabFocusReason)
        assert window.ring.target is wanted
