"""Fractional scaling is decided when the process starts, so each scale is a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.gui

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("scale", ["1", "1.25", "2"])
def test_every_text_fits_at_this_scale(scale: str, tmp_path: Path) -> None:
    environment = os.environ | {"QT_SCALE_FACTOR": scale, "QT_QPA_PLATFORM": "offscreen"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.gui.scaled_window"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"ratio {float(scale)}" in done.stdout
