"""From a file to a curve: the window's session, a real worker, and a user's file that crashes on the way."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.core.catalog import beside_of
from app.core.recording import Status
from app.core.workload import Workload
from app.gui.journals import Journals
from app.gui.session import Session
from tests.engine.own.files import GOOD, acting, write

pytestmark = [pytest.mark.e2e, pytest.mark.gui]

PATIENCE_MS = 120_000


def test_a_file_becomes_a_curve_and_one_that_crashes_takes_nobody_along(qtbot: QtBot, tmp_path: Path) -> None:
    workload = Workload(batch=2, seq_len=8, embed_dim=16, num_heads=2, device="cpu")
    session = Session(workload, enabled=("native", "sdpa"), journals=Journals(tmp_path / "data"))
    flag = tmp_path / "flag"
    good = write(tmp_path, GOOD, "good.py")
    bad = write(tmp_path, acting("os._exit(5)", f"os.path.exists({str(flag)!r})"), "bad.py")

    def count(name: str) -> int:
        record = session.live.current
        return len(record.series[name]) if record is not None and name in record.series else 0

    def state(name: str) -> Status:
        record = session.live.current
        return record.status.get(name, Status()) if record is not None else Status()

    try:
        session.start()
        qtbot.waitUntil(lambda: count("native") > 5, timeout=PATIENCE_MS)
        pid = session.worker_pid
        for file in (good, bad):
            session.add_own(file)
        qtbot.waitUntil(lambda: min(count(good.id), count(bad.id)) > 5, timeout=PATIENCE_MS)
        assert count(beside_of("native", good.id)) > 3
        flag.touch()
        qtbot.waitUntil(lambda: state(bad.id).state == "failed", timeout=PATIENCE_MS)
        assert state(bad.id).reason == "its process ended with status 5"
        before = count("native"), count(good.id)
        qtbot.waitUntil(
            lambda: count("native") > before[0] + 10 and count(good.id) > before[1] + 5, timeout=PATIENCE_MS
        )
        assert session.worker_pid == pid
        # Beside a build every sample is marked, so what is certain is that it is measured.
        entry = session.snapshot(None).entry(good.id)
        assert entry is not None
        assert entry.status != "failed"
    finally:
        session.close()
