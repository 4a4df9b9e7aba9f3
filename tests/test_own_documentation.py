"""The page about own implementations says what is true, and its example is a file that works."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from app.core.own import examine
from app.engine.own.guest_link import Limits
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "own_implementation.md").read_text(encoding="utf-8")
EXAMPLE = ROOT / "examples" / "my_attention.py"


def test_the_pages_example_is_the_file_word_for_word() -> None:
    shown = PAGE.partition("```python\n")[2].partition("```")[0]
    assert EXAMPLE.read_text(encoding="utf-8").endswith(shown)
    found = examine(EXAMPLE)
    assert (found.file.title, found.function, found.problem) == ("My attention", "build", "")


def test_the_pages_limits_are_those_in_effect() -> None:
    limits = Limits()
    assert f"{limits.turn_s:g} s in a turn, {limits.prepare_s:g} s while it is built" in PAGE
    assert f"prints more than {limits.printed_bytes / 1e6:g} MB" in PAGE


def test_every_link_leads_somewhere() -> None:
    for target in re.findall(r"\]\(([^)]+)\)", PAGE):
        assert (ROOT / "docs" / target).is_file(), target


@pytest.mark.e2e
def test_the_pages_command_gives_a_curve_that_is_right(tmp_path: Path) -> None:
    command = PAGE.partition("```sh\nattnscope ")[2].partition("\n")[0].split()
    assert command[:2] == ["run", "quick"]
    small = ["--set", "implementations=native", "--set", "measure.max_seconds=1", "--json"]
    done = subprocess.run(
        [sys.executable, str(ROOT / "main.py"), *command, *small],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        env=os.environ | {"ATTNSCOPE_CONFIG_DIR": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    results = {result["implementation"]: result for result in json.loads(done.stdout)["results"]}
    own = next(result for name, result in results.items() if name.startswith("own-my_attention-"))
    assert own["status"] == "measured"
    assert own["accuracy"]["ok"]
    assert own["latency"]["n"] > 5
    assert own["speed_up"]["median"] > 0
    assert own["counts"]["operator_calls"]["forward"] > 0
