"""Menus and pickers, with mouse and keyboard."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit, QWidget
from pytestqt.qtbot import QtBot

from app.gui.keys import show_keys
from app.gui.parts.buttons import Button
from app.gui.parts.look import Look
from app.gui.parts.menu import Menu, MenuAction, MenuItem, open_menu
from app.gui.parts.picker import Picker
from app.gui.parts.text import Label

pytestmark = pytest.mark.gui

ITEMS = (
    MenuItem("a", "Alpha", checked=True),
    MenuItem(
        "b", "Beta", "the second", enabled=False, fix="Get another.", actions=(MenuAction("copy", "Copy"),)
    ),
    MenuItem("c", "Gamma", line_before=True),
)


# ---- menus ---------------------------------------------------------------------------------------------


def _open(window: QWidget, look: Look, chosen: list[str], y: int = 20) -> tuple[Menu, Button]:
    anchor = Button(look, "Menu", parent=window)
    anchor.move(20, y)
    anchor.show()
    return open_menu(anchor, look, ITEMS, chosen.append), anchor


def test_a_menu_is_walked_and_chosen_from_with_the_keyboard(window: QWidget, look: Look) -> None:
    chosen: list[str] = []
    menu, _ = _open(window, look, chosen)
    assert menu.row("a").hasFocus(), "the checked entry is where one starts"
    QTest.keyClick(menu.row("a"), Qt.Key.Key_Down)
    assert menu.row("c").hasFocus(), "what is greyed is passed over"
    QTest.keyClick(menu.row("c"), Qt.Key.Key_Down)
    assert menu.row("a").hasFocus()
    QTest.keyClick(menu.row("a"), "g")
    assert menu.row("c").hasFocus(), "a letter goes to what begins with it"
    QTest.keyClick(menu.row("c"), Qt.Key.Key_Return)
    assert chosen == ["c"]
    assert not menu.isVisible()


def test_esc_and_a_click_beside_close_a_menu_and_give_the_focus_back(window: QWidget, look: Look) -> None:
    field = QLineEdit(window)
    field.show()
    field.setFocus()
    chosen: list[str] = []
    menu, _ = _open(window, look, chosen)
    QTest.keyClick(menu.row("a"), Qt.Key.Key_Escape)
    assert not menu.isVisible()
    assert field.hasFocus()
    menu, _ = _open(window, look, chosen)
    layer = menu.parentWidget()
    QTest.mouseClick(layer, Qt.MouseButton.LeftButton, pos=QPoint(700, 500))
    assert not menu.isVisible()
    assert chosen == []


def test_a_greyed_entry_keeps_its_reason_and_offers_the_way_out(window: QWidget, look: Look) -> None:
    chosen: list[str] = []
    menu, _ = _open(window, look, chosen)
    row = menu.row("b")
    assert not row.isEnabled()
    assert row.accessibleDescription() == "the second"
    texts = [label.text() for label in menu.findChildren(Label)]
    assert "How to fix" in texts
    button = next(b for b in menu.findChildren(Button) if b.text() == "Copy")
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)
    assert chosen == ["copy"]


def test_a_menu_without_room_below_opens_above_and_stays_inside(window: QWidget, look: Look) -> None:
    menu, anchor = _open(window, look, [], y=560)
    assert menu.geometry().bottom() < anchor.geometry().top()
    assert window.rect().contains(menu.geometry())


def test_a_menu_closes_when_the_window_is_resized(window: QWidget, look: Look) -> None:
    menu, _ = _open(window, look, [])
    window.resize(820, 600)
    assert not menu.isVisible()


def test_a_picker_opens_with_the_arrow_and_asks_for_its_entries_each_time(
    qtbot: QtBot, look: Look, window: QWidget
) -> None:
    picker = Picker(look, "Letters", parent=window)
    asked: list[int] = []

    def items() -> tuple[MenuItem, ...]:
        asked.append(1)
        return ITEMS

    picker.set_items(items)
    picker.show()
    qtbot.keyClick(picker, Qt.Key.Key_Down)
    assert picker.menu_open is not None
    with qtbot.waitSignal(picker.chosen) as chosen:
        picker.menu_open.choose("c")
    assert chosen.args == ["c"]
    picker.open()
    assert len(asked) == 2


def test_tab_goes_round_inside_a_menu_and_never_below_it(window: QWidget, look: Look) -> None:
    below = Button(look, "Below", parent=window)
    below.show()
    chosen: list[str] = []
    menu = open_menu(window, look, [MenuItem("a", "First"), MenuItem("b", "Second")], chosen.append)
    walked = []
    for key in (Qt.Key.Key_Tab, Qt.Key.Key_Tab, Qt.Key.Key_Tab, Qt.Key.Key_Backtab):
        QTest.keyClick(QApplication.focusWidget(), key)
        walked.append(next((row.item.id for row in menu.rows if row.hasFocus()), "outside"))
    assert walked == ["b", "a", "b", "a"]


def test_a_sheet_without_controls_keeps_the_focus(window: QWidget, look: Look) -> None:
    below = Button(look, "Below", parent=window)
    below.show()
    sheet = show_keys(window, look)
    QTest.keyClick(sheet, Qt.Key.Key_Tab)
    assert sheet.hasFocus()
