"""Buttons, switches, menus, fields and lines behave, in both themes, with mouse and keyboard."""

from __future__ import annotations

import pytest
import shiboken6
from PySide6.QtCore import QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QHBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.gui import icons
from app.gui.parts.banner import MAX_SHOWN, BannerStack
from app.gui.parts.buttons import Button, TextLink
from app.gui.parts.card import Card
from app.gui.parts.chips import STATE_GLYPHS, Chip, ProgressBar, Spinner
from app.gui.parts.fields import FieldRow, StepSlider
from app.gui.parts.focus_ring import FocusRing
from app.gui.parts.line import Hosted, PieceLine, Text, joined
from app.gui.parts.look import Look, dress
from app.gui.parts.overlay import Overlay
from app.gui.parts.tabs import TabStrip
from app.gui.parts.text import Label, recorded_overflows
from app.gui.parts.toggles import Segmented, Switch
from app.gui.theme import DARK, LIGHT, SMALL, contrast

pytestmark = pytest.mark.gui


@pytest.mark.parametrize("name", icons.NAMES)
def test_every_icon_draws_something_inside_its_square(name: str) -> None:
    image = QImage(48, 48, QImage.Format.Format_ARGB32)
    image.fill(0)
    painter = QPainter(image)
    icons.draw_icon(painter, name, QRectF(16, 16, 16, 16), QColor("white"))
    painter.end()
    lit = [(x, y) for x in range(48) for y in range(48) if QColor(image.pixelColor(x, y)).alpha()]
    assert lit
    # Half a stroke may stand over; more would be cut in a button.
    assert all(15 <= x <= 32 and 15 <= y <= 32 for x, y in lit)


def test_an_unknown_icon_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="no icon is called 'unicorn'"):
        icons.icon("unicorn")


@pytest.mark.parametrize("kind", ["raised", "primary", "quiet", "pill", "field"])
@pytest.mark.parametrize("theme", [DARK, LIGHT])
def test_a_button_fits_its_own_size(qtbot: QtBot, look: Look, kind: str, theme: object) -> None:
    themed = Look(theme, look.type)  # type: ignore[arg-type]
    button = Button(themed, "Profile now", "target", kind, chevron=True)  # type: ignore[arg-type]
    qtbot.addWidget(button)
    button.resize(button.sizeHint())
    with recorded_overflows() as found:
        button.grab()
    assert found == []


def test_a_button_without_words_is_named_for_those_who_cannot_see_it(qtbot: QtBot, look: Look) -> None:
    button = Button(look, icon="camera", name="Export a picture")
    qtbot.addWidget(button)
    assert button.accessibleName() == button.toolTip() == "Export a picture"
    assert button.sizeHint().width() == button.sizeHint().height() == look.sizes.control


def test_a_click_does_not_take_the_focus_from_the_keys(qtbot: QtBot, look: Look, window: QWidget) -> None:
    button = Button(look, "Pause", parent=window)
    button.show()
    window.setFocus()
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert not button.hasFocus()


def test_text_colours_of_the_parts_keep_their_contrast(look: Look) -> None:
    for theme in (DARK, LIGHT):
        for state in STATE_GLYPHS:
            colours = theme.state(state)
            assert contrast(colours.text, colours.fill) >= 4.5, (theme.name, state)
        assert contrast(theme.inverse_text, theme.inverse_fill) >= 7


@pytest.mark.parametrize("state", list(STATE_GLYPHS))
def test_a_chip_fits_its_word(qtbot: QtBot, look: Look, state: str) -> None:
    chip = Chip(look, state, state)
    qtbot.addWidget(chip)
    chip.resize(chip.sizeHint())
    with recorded_overflows() as found:
        chip.grab()
    assert found == []


def test_a_switch_follows_the_space_key_and_tells_its_name(qtbot: QtBot, look: Look) -> None:
    switch = Switch(look, "Causal")
    qtbot.addWidget(switch)
    switch.show()
    with qtbot.waitSignal(switch.toggled):
        qtbot.keyClick(switch, Qt.Key.Key_Space)
    assert switch.isChecked()
    assert switch.accessibleName() == "Causal"


def test_without_motion_a_switch_moves_at_once_and_a_spinner_stands(qtbot: QtBot, look: Look) -> None:
    switch, spinner = Switch(look, "Causal"), Spinner(look)
    for widget in (switch, spinner):
        qtbot.addWidget(widget)
        widget.show()
    before = switch.grab().toImage()
    switch.setChecked(True)
    after = switch.grab().toImage()
    assert before != after
    still = spinner.grab().toImage()
    qtbot.wait(200)
    assert spinner.grab().toImage() == still


def test_a_segmented_control_tells_what_the_user_chose_and_only_that(qtbot: QtBot, look: Look) -> None:
    control = Segmented(look, [("a", "Alpha"), ("b", "Beta")], "Letters")
    qtbot.addWidget(control)
    control.show()
    told: list[str] = []
    control.chosen.connect(told.append)
    control.set_value("b")
    assert (control.value(), told) == ("b", [])
    qtbot.mouseClick(control.segment("a"), Qt.MouseButton.LeftButton)
    assert (control.value(), told) == ("a", ["a"])
    control.activateWindow()
    qtbot.waitUntil(lambda: control.isActiveWindow())
    control.segment("a").setFocus(Qt.FocusReason.TabFocusReason)
    qtbot.keyClick(control.segment("a"), Qt.Key.Key_Right)
    assert (control.value(), told) == ("b", ["a", "b"])


# ---- fields --------------------------------------------------------------------------------------------


def test_a_slider_steps_from_a_number_between_two_steps_to_its_neighbours(qtbot: QtBot, look: Look) -> None:
    slider = StepSlider(look, "Heads", (1, 2, 4, 8, 16))
    qtbot.addWidget(slider)
    slider.set_number(12)
    qtbot.keyClick(slider, Qt.Key.Key_Right)
    assert slider.number() == 16
    slider.set_number(12)
    qtbot.keyClick(slider, Qt.Key.Key_Left)
    assert slider.number() == 8
    qtbot.keyClick(slider, Qt.Key.Key_End)
    assert slider.number() == 16
    qtbot.keyClick(slider, Qt.Key.Key_Right)
    assert slider.number() == 16
    qtbot.keyClick(slider, Qt.Key.Key_Home)
    assert slider.number() == 1


def test_a_drag_along_a_slider_tells_each_step_once(qtbot: QtBot, look: Look) -> None:
    slider = StepSlider(look, "Heads", (1, 2, 4, 8, 16))
    qtbot.addWidget(slider)
    slider.resize(104, 24)
    slider.show()
    told: list[int] = []
    slider.stepped.connect(told.append)
    QTest.mousePress(slider, Qt.MouseButton.LeftButton, pos=QPoint(2, 12))
    for x in range(2, 104, 4):
        QTest.mouseMove(slider, QPoint(x, 12))
    QTest.mouseRelease(slider, Qt.MouseButton.LeftButton, pos=QPoint(102, 12))
    assert told == [2, 4, 8, 16]


def test_a_field_takes_any_number_when_it_is_finished_not_before(qtbot: QtBot, look: Look) -> None:
    row = FieldRow(look, "Sequence", "tokens", 1, 131072, (1, 2, 4, 8))
    qtbot.addWidget(row)
    row.show()
    told: list[int] = []
    row.changed.connect(told.append)
    row.field.setFocus()
    row.field.selectAll()
    qtbot.keyClicks(row.field, "1000")
    assert told == []
    qtbot.keyClick(row.field, Qt.Key.Key_Return)
    assert told == [1000]
    assert row.slider.number() == 1000
    assert row.field.text() == "1,000"


def test_a_pause_in_typing_takes_the_number(qtbot: QtBot, look: Look) -> None:
    row = FieldRow(look, "Sequence", "tokens", 1, 131072, (1, 2, 4, 8))
    qtbot.addWidget(row)
    row.show()
    row.field.setFocus()
    row.field.selectAll()
    with qtbot.waitSignal(row.changed, timeout=3000) as changed:
        qtbot.keyClicks(row.field, "96")
    assert changed.args == [96]


def test_the_wheel_changes_no_field_that_is_only_scrolled_past(qtbot: QtBot, look: Look) -> None:
    from PySide6.QtGui import QWheelEvent

    row = FieldRow(look, "Batch", "", 1, 64, (1, 2, 4))
    qtbot.addWidget(row)
    row.show()
    row.set_number(2)
    for widget in (row.slider, row.field):
        event = QWheelEvent(
            QPointF(5, 5),
            QPointF(5, 5),
            QPoint(0, 120),
            QPoint(0, 120),
            Qt.MouseButton.NoButton,
            Qt.KeyboardModifier.NoModifier,
            Qt.ScrollPhase.NoScrollPhase,
            False,
        )
        widget.wheelEvent(event)
        assert not event.isAccepted()
    assert row.number() == 2


# ---- lines, labels, tabs, banners ----------------------------------------------------------------------


def test_a_line_shows_the_longest_version_that_fits(qtbot: QtBot, look: Look) -> None:
    line = PieceLine(look)
    qtbot.addWidget(line)
    levels = (
        joined((Text("interval"),), (Text("noise floor"),), (Text("rounds"),)),
        joined((Text("interval"),)),
    )
    line.set_levels(levels)
    line.show()
    line.resize(int(line.width_of(levels[0])) + 2, 24)
    assert line.text() == "interval · noise floor · rounds"
    line.resize(int(line.width_of(levels[0])) - 8, 24)
    assert line.text() == "interval"


def test_a_line_that_cannot_shrink_further_says_so(qtbot: QtBot, look: Look) -> None:
    line = PieceLine(look)
    qtbot.addWidget(line)
    line.set_levels(((Text("a sentence that does not fit"),),))
    line.resize(40, 24)
    with recorded_overflows() as found:
        line.grab()
    assert found
    assert found[0].text == "a sentence that does not fit"


def test_a_line_hides_what_its_version_does_not_place(qtbot: QtBot, look: Look) -> None:
    line = PieceLine(look)
    qtbot.addWidget(line)
    button = Button(look, "Wait", kind="pill")
    line.host("pill", button)
    line.resize(400, 24)
    line.show()
    line.set_levels(((Text("old "), Hosted("pill")),))
    assert button.isVisible()
    assert line.text() == "old Wait"
    line.set_levels(((Text("old"),),))
    assert not button.isVisible()


def test_a_label_that_may_be_cut_shows_the_whole_in_its_tooltip(qtbot: QtBot, look: Look) -> None:
    label = Label(look, "/a/path/without/end/or/nearly/so", may_elide=True)
    qtbot.addWidget(label)
    label.resize(60, 20)
    with recorded_overflows() as found:
        label.grab()
    assert found == []
    assert label.toolTip() == label.text()
    label.resize(600, 20)
    label.grab()
    assert label.toolTip() == ""


def test_tabs_carry_news_as_a_word_too(qtbot: QtBot, look: Look) -> None:
    tabs = TabStrip(look, ("Live", "Build"))
    qtbot.addWidget(tabs)
    plain = tabs.tabSizeHint(1).width()
    tabs.set_news(1, "error")
    assert tabs.accessibleTabName(1) == "Build has an error"
    assert tabs.tabSizeHint(1).width() > plain
    tabs.set_news(1, "")
    assert tabs.accessibleTabName(1) == "Build"


@pytest.mark.parametrize("current", [0, 1, 2])
def test_news_make_room_for_themselves_and_leave_every_tab_in_sight(
    qtbot: QtBot, look: Look, window: QWidget, current: int
) -> None:
    tabs = TabStrip(look, ("Live", "Build", "System"))
    row = QHBoxLayout(window)
    row.addWidget(tabs)
    row.addStretch(1)
    tabs.setCurrentIndex(current)
    before = tabs.tabRect(1).width()
    for news in ("busy", "error", ""):
        tabs.set_news(1, news)  # type: ignore[arg-type]
        QApplication.processEvents()
        assert tabs.tabRect(1).width() == before + (20 if news else 0)
        assert all(tabs.rect().contains(tabs.tabRect(i)) for i in range(tabs.count()))


def test_banners_do_not_pile_up_and_those_with_a_question_stay(qtbot: QtBot, look: Look) -> None:
    stack = BannerStack()
    qtbot.addWidget(stack)
    answered: list[str] = []
    stack.show_notice(look, "info", "An unsaved recording", (("Open", lambda: answered.append("open")),))
    for number in range(6):
        stack.show_notice(look, "warning", f"news {number}")
        stack.show_notice(look, "warning", f"news {number}")
    texts = [banner.text for banner in stack.banners()]
    assert len(texts) == MAX_SHOWN
    assert texts == ["An unsaved recording", "news 4", "news 5"]
    qtbot.mouseClick(stack.banners()[0].buttons[0], Qt.MouseButton.LeftButton)
    assert answered == ["open"]
    for banner in stack.banners():
        banner.dismiss.click()
    qtbot.waitUntil(lambda: stack.isHidden())


def test_a_new_look_reaches_every_part(qtbot: QtBot, look: Look) -> None:
    card = Card(look, "Latency", "per call")
    qtbot.addWidget(card)
    link = TextLink(look, "why")
    bar = ProgressBar(look)
    card.body.addWidget(link)
    card.body.addWidget(bar)
    light = Look(LIGHT, look.type, SMALL)
    dress(card, light)
    assert {card.look, card.title.look, link.look, bar.look} == {light}
    assert card.grab().toImage().pixelColor(card.width() // 2, 2) == QColor(LIGHT.card)


def test_the_focus_ring_lies_two_pixels_outside_and_follows(
    qtbot: QtBot, look: Look, window: QWidget
) -> None:
    box = QHBoxLayout(window)
    first, second = Button(look, "One"), Button(look, "Two")
    box.addWidget(first)
    box.addWidget(second)
    ring = FocusRing(window, look)
    window.activateWindow()
    qtbot.waitUntil(lambda: window.isActiveWindow() and first.isVisible())
    first.setFocus(Qt.FocusReason.TabFocusReason)
    assert ring.isVisible()
    assert ring.geometry().adjusted(4, 4, -4, -4) == first.geometry()
    second.setFocus(Qt.FocusReason.TabFocusReason)
    assert ring.geometry().center() == second.geometry().center()
    second.hide()
    assert not ring.isVisible()


def test_a_widget_that_is_deleted_while_it_has_the_focus_takes_its_ring_along(
    qtbot: QtBot, look: Look, window: QWidget
) -> None:
    button = Button(look, "One", parent=window)
    button.show()
    ring = FocusRing(window, look)
    window.activateWindow()
    qtbot.waitUntil(lambda: window.isActiveWindow() and button.isVisible())
    button.setFocus(Qt.FocusReason.TabFocusReason)
    assert ring.target is button
    shiboken6.delete(button)
    assert ring.target is None
    assert not ring.isVisible()


def test_an_overlay_keeps_keys_from_the_window(qtbot: QtBot, look: Look, window: QWidget) -> None:
    layer = Overlay(window, look)
    layer.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    layer.show()
    layer.setFocus()
    with qtbot.waitSignal(layer.closed):
        qtbot.keyClick(layer, Qt.Key.Key_Escape)
