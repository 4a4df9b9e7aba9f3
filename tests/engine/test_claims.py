"""What is claimed of contenders whose true speed is known. By hand: some forty processes each, ten minutes in all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.conftest import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

RUNS = 40


def run(share: float, seconds: float) -> dict[str, Any]:
    """One run beside native with a delay of `share`, of at most `seconds`."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.engine.claims", str(share), str(seconds)],
        cwd=ROOT, capture_output=True, text=True, check=True, timeout=120, env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def words(share: float, seconds: float) -> Counter[str]:
    found = [run(share, seconds) for _ in range(RUNS)]
    for one in found:
        print(one)
    counted = Counter(str(one["verdict"]) for one in found)
    print(f"delay {share:.0%}: {dict(counted)}")
    return counted


@contextmanager
def one_busy_core() -> Iterator[None]:
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        busy.kill()
        busy.wait()


def test_a_twin_is_seldom_called_faster_or_slower() -> None:
    counted = words(0.0, 3.0)
    assert counted["faster"] + counted["slower"] <= 2


def test_nor_beside_a_program_that_keeps_one_core_busy() -> None:
    with one_busy_core():
        counted = words(0.0, 3.0)
    assert counted["faster"] + counted["slower"] <= 3


def test_a_delay_of_five_percent_is_found() -> None:
    assert words(0.05, 10.0)["slower"] >= 36


def test_a_delay_of_one_percent_is_never_called_faster() -> None:
    assert words(0.01, 10.0)["faster"] == 0
