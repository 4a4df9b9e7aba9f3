"""The main job in a real window: it appears, measures by itself, survives, is pictured, closes."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from app.core import messages as m
from tests.e2e.conftest import Application, end_all

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("built_extension")]

Launch = Callable[..., Application]


def closes_well(application: Application) -> None:
    code, seconds = application.close()
    assert code == 0
    assert seconds < 5
    assert application.stderr.read_text() == ""
    assert end_all(application) == []


def test_the_main_job_ends_with_a_picture(launch: Launch) -> None:
    application = launch("--theme", "dark")
    shown = application.wait_for_window()
    application.wait_until(lambda: application.samples_of("native"), timeout=20)
    native_s = time.monotonic() - application.began
    application.wait_until(lambda: application.samples_of("extension-aten"), timeout=30)
    extension_s = time.monotonic() - application.began
    print(f"window {shown:.2f} s, native {native_s:.2f} s, extension {extension_s:.2f} s")
    application.wait_until(
        lambda: (
            {c.implementation for c in application.messages() if isinstance(c, m.Counted)}
            >= {"native", "mha", "sdpa", "extension-aten", "extension-fused"}
        ),
        timeout=120,
    )
    application.wait_until(lambda: len(application.samples_of("extension-aten")) > 200, timeout=120)
    time.sleep(1)
    picture = application.screenshot("live-dark")
    assert colours(picture) > 200
    counted = {c.implementation: c.counts for c in application.messages() if isinstance(c, m.Counted)}
    assert counted["extension-aten"].python_calls.forward == 1
    assert counted["extension-fused"].python_calls.forward == 1
    assert (counted["native"].python_calls.forward or 0) > 15
    closes_well(application)


def test_a_killed_worker_and_a_killed_profiler_are_replaced_with_all_data_kept(launch: Launch) -> None:
    application = launch()
    application.wait_for_window()
    application.wait_until(lambda: len(application.samples_of("extension-aten")) > 20, timeout=120)
    worker = application.child("worker")
    assert worker is not None
    before = len(application.samples_of("native"))
    worker.kill()
    application.wait_until(lambda: new_worker(application, worker.pid), timeout=30)
    application.wait_until(lambda: len(application.samples_of("native")) > before + 20, timeout=30)
    profiler = wait_for_child(application, "profiler")
    profiler.kill()
    now = len(application.samples_of("native"))
    application.key("p")
    application.wait_until(lambda: len(application.samples_of("native")) > now + 20, timeout=30)
    application.wait_until(lambda: wait_for_child(application, "profiler").pid != profiler.pid, timeout=120)
    closes_well(application)


@pytest.mark.parametrize("moment", ["loading", "build", "profile"])
def test_closing_at_any_moment_leaves_nothing_behind(launch: Launch, moment: str, tmp_path: Path) -> None:
    cache = {"ATTNSCOPE_CACHE_DIR": str(tmp_path / "cache")} if moment == "build" else {}
    application = launch(**cache)
    application.wait_for_window()
    if moment == "build":
        application.wait_until(lambda: application.child("cc1plus"), timeout=120)
    elif moment == "profile":
        application.wait_until(lambda: len(application.samples_of("extension-aten")) > 5, timeout=120)
        wait_for_child(application, "profiler")
    closes_well(application)


def test_a_kill_of_the_window_is_recovered_from(launch: Launch, tmp_path: Path) -> None:
    application = launch()
    application.wait_for_window()
    application.wait_until(lambda: len(application.samples_of("native")) > 50, timeout=120)
    kept = len(application.samples_of("native"))
    application.process.kill()
    application.process.wait()
    deadline = time.monotonic() + 10
    while end_all(application) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert end_all(application) == []
    from app.gui.journals import Journals

    (found,) = Journals(application.data).abandoned()
    from app.core.journal import replay

    recording, unreadable = replay(found.path)
    assert unreadable <= 1
    assert len(recording.records[0].series["native"]) >= kept


def new_worker(application: Application, old: int) -> bool:
    worker = application.child("worker")
    return worker is not None and worker.pid != old


def wait_for_child(application: Application, word: str):  # type: ignore[no-untyped-def]
    found = []

    def look() -> bool:
        process = application.child(word)
        if process is not None:
            found.append(process)
        return bool(found)

    application.wait_until(look, timeout=120)
    return found[-1]


def colours(picture: Path) -> int:
    done = subprocess.run(
        ["identify", "-format", "%k", str(picture)], capture_output=True, text=True, check=True, timeout=120
    )
    return int(done.stdout)
