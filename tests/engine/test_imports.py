"""Importing opens nothing and starts nothing; the light modules stay light."""

from __future__ import annotations

import subprocess
import sys

from app.core.launch import ROOT

EVERYTHING = """
import importlib, pkgutil, sys, psutil, threading
sys.path[0] = ROOT
sys.path.append(ROOT + "/native")
import app.engine
for info in pkgutil.walk_packages(app.engine.__path__, "app.engine."):
    importlib.import_module(info.name)
assert not psutil.Process().children(), "a process was started"
assert threading.active_count() == 1, threading.enumerate()
assert not [name for name in sys.modules if name.startswith(("PySide", "pyqtgraph", "app.gui"))]
"""

LIGHT = """
import sys
sys.path[0] = ROOT
import app.engine.worker, app.engine.profiler_protocol, app.engine.processes
assert "torch" not in sys.modules
assert "numpy" not in sys.modules
"""


def run(script: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", script.replace("ROOT", repr(str(ROOT)))], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")


def test_importing_the_whole_engine_starts_no_process_and_no_thread_and_knows_no_qt():
    run(EVERYTHING)


def test_the_worker_is_imported_without_torch():
    run(LIGHT)
