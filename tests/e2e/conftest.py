"""The whole application as a person has it: its own process, a real window on a virtual screen."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from app.core import messages as m
from tests.conftest import ROOT
from tests.e2e.x11 import press_close_button

TOOLS = ("Xvfb", "xdotool", "import")


@pytest.fixture(scope="session")
def screen() -> Iterator[str]:
    """A virtual screen of 1600 x 1000; its DISPLAY."""
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)} (Debian: xvfb xdotool imagemagick)")
    read, write = os.pipe()
    server = subprocess.Popen(
        # Without -noreset the server begins anew when its last client leaves, and the next one may come meanwhile.
        ["Xvfb", "-displayfd", str(write), "-screen", "0", "1600x1000x24", "-nolisten", "tcp", "-noreset"],
        pass_fds=(write,),
        stderr=subprocess.DEVNULL,
    )
    os.close(write)
    with os.fdopen(read) as pipe:
        number = pipe.readline().strip()
    yield f":{number}"
    server.terminate()
    server.wait(10)


@dataclass
class Application:
    """A running window, watched from outside: by its journal, its processes and the screen."""

    process: subprocess.Popen[bytes]
    display: str
    data: Path
    stderr: Path
    began: float
    environment: dict[str, str] = field(default_factory=dict)

    def wait_for_window(self, timeout: float = 20) -> float:
        """Seconds from the start of the process to a visible window."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            if self._window():
                return time.monotonic() - self.began
            assert self.process.poll() is None, self.stderr.read_text()
            time.sleep(0.02)
        raise AssertionError("no window appeared")

    def messages(self) -> list[m.Message]:
        """Every message in the journal so far."""
        found: list[m.Message] = []
        for path in (self.data / "unsaved").glob("*.jsonl"):
            for line in path.read_bytes().split(b"\n")[:-1]:
                if line and not line.startswith(b'{"type":"Start"'):
                    found.append(m.decode_message(line))
        return found

    def samples_of(self, implementation: str) -> list[m.Sample]:
        return [
            sample
            for message in self.messages()
            if isinstance(message, m.Samples)
            for sample in message.samples
            if message.implementations[sample.implementation] == implementation
        ]

    def wait_until(self, condition: Callable[[], object], timeout: float) -> None:
        end = time.monotonic() + timeout
        while not condition():
            assert self.process.poll() is None, f"the window ended: {self.stderr.read_text()}"
            assert time.monotonic() < end, f"not within {timeout} s"
            time.sleep(0.1)

    def child(self, word: str) -> psutil.Process | None:
        """The child process whose command line has `word` in it."""
        for process in psutil.Process(self.process.pid).children(recursive=True):
            try:
                if any(word in part for part in process.cmdline()):
                    return process
            except psutil.Error:
                continue
        return None

    def key(self, *keys: str) -> None:
        """Press keys in the window."""
        self._xdotool("windowfocus", "--sync", self._window())
        for key in keys:
            self._xdotool("key", key)
            time.sleep(0.1)

    def screenshot(self, name: str) -> Path:
        """A picture of the screen, kept under artifacts/."""
        folder = ROOT / "artifacts"
        folder.mkdir(exist_ok=True)
        path = folder / f"{name}.png"
        subprocess.run(
            ["import", "-display", self.display, "-window", self._window(), str(path)], check=True, timeout=30
        )
        return path

    def close(self) -> tuple[int, float]:
        """Close as a person does, by the window's close button: exit code, seconds it took."""
        begun = time.monotonic()
        press_close_button(self.display, int(self._window()))
        code = self.process.wait(15)
        return code, time.monotonic() - begun

    def _window(self) -> str:
        found = self._xdotool("search", "--onlyvisible", "--name", "AttnScope$", check=False)
        numbers = re.findall(r"\d+", found)
        return numbers[-1] if numbers else ""

    def _xdotool(self, *arguments: str, check: bool = True) -> str:
        done = subprocess.run(
            ["xdotool", *arguments],
            env=os.environ | {"DISPLAY": self.display},
            capture_output=True,
            text=True,
            check=check,
            timeout=30,
        )
        return done.stdout


@pytest.fixture
def launch(screen: str, tmp_path: Path) -> Iterator[Callable[..., Application]]:
    """Starts the application; whatever still runs at the end is ended."""
    started: list[Application] = []

    def start(*arguments: str, **environment: str) -> Application:
        data = tmp_path / f"data{len(started)}"
        stderr = tmp_path / f"stderr{len(started)}"
        inherited = {k: v for k, v in os.environ.items() if k not in ("QT_QPA_PLATFORM", "WAYLAND_DISPLAY")}
        full = inherited | {
            "DISPLAY": screen,
            "ATTNSCOPE_DATA_DIR": str(data),
            "ATTNSCOPE_CONFIG_DIR": str(tmp_path / "config"),
            **environment,
        }
        began = time.monotonic()
        with stderr.open("wb") as file:
            process = subprocess.Popen(
                [sys.executable, str(ROOT / "main.py"), *arguments], env=full, stderr=file, cwd=tmp_path
            )
        application = Application(process, screen, data, stderr, began)
        started.append(application)
        return application

    yield start
    for application in started:
        if application.process.poll() is None:
            application.process.send_signal(signal.SIGTERM)
            try:
                application.process.wait(10)
            except subprocess.TimeoutExpired:
                application.process.kill()
                application.process.wait()


def end_all(application: Application) -> list[str]:
    """Command lines of children that outlived the window."""
    return [
        " ".join(p.cmdline()) for p in psutil.process_iter() if _has_data_folder(p, str(application.data))
    ]


def _has_data_folder(process: psutil.Process, folder: str) -> bool:
    try:
        return process.environ().get("ATTNSCOPE_DATA_DIR") == folder and process.status() != "zombie"
    except psutil.Error:
        return False
