"""Qt offscreen. Any message of Qt's own fails the test that caused it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QMessageLogContext, QtMsgType, qInstallMessageHandler  # noqa: E402
from PySide6.QtGui import QFont  # noqa: E402
from PySide6.QtWidgets import QApplication, QWidget  # noqa: E402

from app.gui.parts.look import Look  # noqa: E402
from app.gui.theme import DARK, NORMAL, Type  # noqa: E402

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


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes a person's own preferences and sessions."""
    monkeypatch.setenv("ATTNSCOPE_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("ATTNSCOPE_DATA_DIR", str(tmp_path / "data"))


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
