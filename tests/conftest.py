"""Every test has folders of its own for cache, data and preferences, and leaves no process behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from hypothesis import settings

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
# A busy machine is no fault of an example; and what CI finds must be found again.
settings.register_profile("suite", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("suite")
# Tests interrupt what they start; a suite run in the background, or by nohup, would hand down deafness.
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def own_folders(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Data and preferences never touch the user's. The build cache is shared: building is dear."""
    folder = tmp_path_factory.mktemp("user")
    monkeypatch.setenv("ATTNSCOPE_DATA_DIR", str(folder / "data"))
    monkeypatch.setenv("ATTNSCOPE_CONFIG_DIR", str(folder / "config"))


@pytest.fixture(autouse=True)
def no_process_left() -> Iterator[None]:
    """A child that outlives its test is a leak."""
    before = {process.pid for process in psutil.Process().children(recursive=True)}
    yield
    _, alive = psutil.wait_procs(
        [p for p in psutil.Process().children(recursive=True) if p.pid not in before], timeout=5
    )
    left = [process for process in alive if process.is_running() and process.status() != "zombie"]
    names = [" ".join(process.cmdline()) for process in left]
    for process in left:
        process.kill()
    assert not names, f"left behind: {names}"


@pytest.fixture(scope="session")
def built_extension() -> None:
    """The extension in the cache, so that a window's start only loads it."""
    done = subprocess.run(
        [sys.executable, "main.py", "build"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
