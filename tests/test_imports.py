"""Importing any module of the application opens nothing and starts nothing."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.conftest import ROOT

EVERY_MODULE = """
import importlib, pkgutil, sys, threading
sys.path[0] = ROOT
sys.path.append(ROOT + "/native")
import psutil
import app
for info in pkgutil.walk_packages(app.__path__, "app."):
    importlib.import_module(info.name)
from PySide6.QtGui import QGuiApplication
assert QGuiApplication.instance() is None, "an application was made"
assert not psutil.Process().children(), "a process was started"
assert threading.active_count() == 1, threading.enumerate()
"""


def test_importing_every_module_opens_no_window_and_starts_no_process_and_no_thread() -> None:
    # Without a screen and without a stand-in for one: whatever opened a window would abort.
    hidden = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    done = subprocess.run(
        [sys.executable, "-c", EVERY_MODULE.replace("ROOT", repr(str(ROOT)))],
        capture_output=True,
        check=False,
        env={name: value for name, value in os.environ.items() if name not in hidden},
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")
