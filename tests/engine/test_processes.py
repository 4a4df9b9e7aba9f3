"""The sampler's process: what it sets for itself, and leaves alone where the user has set it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from app.engine import processes
from tests.conftest import ROOT

FAULTS = """
import resource, sys
from app.engine.processes import keep_freed_memory
kept = keep_freed_memory() if sys.argv[1] == "keep" else None
def touch():
    blocks = [bytearray(400_000) for _ in range(8)]
    return len(blocks)
for _ in range(20):
    touch()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(100):
    touch()
print(kept, (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) // 100)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's allocator")
def test_memory_that_was_freed_is_not_paid_for_again() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FAULTS, "keep"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    kept, faults = done.stdout.split()
    assert kept == "True"
    assert int(faults) < 5


def test_a_users_own_setting_of_the_allocator_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in processes.ALLOCATOR_VARIABLES:
        monkeypatch.setenv(name, "1")
        assert processes.keep_freed_memory() is False
        monkeypatch.delenv(name)
