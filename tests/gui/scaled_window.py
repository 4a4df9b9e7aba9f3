"""Run as a program: builds the window in every state and prints what is cut. The scale is the caller's."""

from __future__ import annotations

import sys

from PySide6.QtWidgets import QApplication, QLabel

from app.gui.parts.text import Label, recorded_overflows
from app.gui.preferences import Preferences
from app.gui.window import MainWindow
from tests.gui.states import in_state


def main() -> int:
    application = QApplication(sys.argv[:1])
    bad = 0
    for state, size in (("faster", (1440, 900)), ("unsure", (1024, 700)), ("building", (900, 600))):
        preferences = Preferences(theme="light", motion=False)
        window = MainWindow(in_state(state), preferences, native_dialogs=False)  # type: ignore[arg-type]
        window.resize(*size)
        window.show()
        window.refresh()
        application.processEvents()
        with recorded_overflows() as found:
            for part in (window.run_bar, window.panel, window.verdict, window.tabs.tabs, window.status):
                part.grab()
        for overflow in found:
            print(state, size, overflow)
        for label in window.findChildren(Label):
            if label.isVisible() and label.minimumSizeHint().width() > label.width():
                print(state, size, "label", label.text(), label.minimumSizeHint(), label.size())
                bad += 1
        bad += len(found)
        ratio = window.grab().devicePixelRatio()
        print("ratio", ratio, "labels", len(window.findChildren(QLabel)))
        window.close()
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
