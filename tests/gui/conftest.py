"""Qt offscreen. Any message of Qt's own fails the test that caused it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from PySide6.QtCore import QMessageLogContext, Qt, QtMsgType, qInstallMessageHandler
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from app.gui.parts.look import Look
from app.gui.preferences import Preferences
from app.gui.theme import DARK, NORMAL, Type
from app.gui.window import MainWindow
from tests.gui.fakes import FakeSession
from tests.gui.states import in_state

Maker = Callable[..., MainWindow]

# The offscreen platform says so of every window; it is no fault of ours.
_HARMLESS = ("This plugin does not support propagateSizeHints", "This plugin does not support raise")


@pytest.fixture(autouse=True)
def qt_warnings() -> Iterator[list[str]]:
    """What Qt complained of; anything at all fails the test."""
    said: list[str] = []

    def listen(kind: QtMsgType, context: QMessageLogContext, text: str) -> None:
        if kind is not QtMsgType.QtDebugMsg and not text.startswith(_HARMLESS):
            said.append(text)

    before = qInstallMessageHandler(listen)
    yield said
    qInstallMessageHandler(before)
    assert said == []


@pytest.fixture
def look(qapp: QApplication) -> Look:
    return Look(DARK, Type(), NORMAL, motion=False)


class WideType(Type):
    """Inter, or what stands for it, 14 % wider."""

    def font(self, size: int, weight: int = 400, mono: bool = False) -> QFont:
        font = super().font(size, weight, mono)
        font.setStretch(114)
        return font


@pytest.fixture
def draw(qapp: QApplication) -> Callable[[QWidget], None]:
    """Lay a widget out and paint it."""

    def _draw(widget: QWidget) -> None:
        widget.show()
        qapp.processEvents()
        widget.grab()

    return _draw


@pytest.fixture
def make(qtbot: QtBot) -> Maker:
    """Builds windows on a fake session and shows them."""

    def _make(session: FakeSession | None = None, **options: object) -> MainWindow:
        preferences = Preferences(theme="dark", motion=False)
        for name, value in options.items():
            setattr(preferences, name, value)
        window = MainWindow(session or in_state("faster"), preferences, native_dialogs=False)  # type: ignore[arg-type]
        qtbot.addWidget(window)
        window.show()
        window.activateWindow()
        qtbot.waitUntil(lambda: window.isActiveWindow())
        return window

    return _make


@pytest.fixture
def window(qtbot: QtBot, look: Look) -> QWidget:
    """An empty window that has the focus."""
    made = QWidget()
    made.look = look  # type: ignore[attr-defined]
    made.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    made.resize(800, 600)
    qtbot.addWidget(made)
    made.show()
    return made
