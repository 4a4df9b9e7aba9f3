"""docs/custom_operator.md, followed to the letter: its blocks are what a reader would type."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.native.test_sources import command, needs_gcc

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "custom_operator.md"
STEP = re.compile(
    r"^(?:Create `(?P<new>[^`]+)`|In `(?P<old>[^`]+)`, (?P<where>after|before) the line `(?P<line>[^`]+)`):$"
    r"\n\n```\w+\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Step:
    """A file to create, or a block to put beside a line of one that exists."""

    path: str
    code: str
    where: str
    line: str

    def take(self, root: Path) -> None:
        path = root / self.path
        if not self.where:
            assert not path.exists(), f"{self.path} exists already"
            path.write_text(self.code, encoding="utf-8")
            return
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        places = [number for number, text in enumerate(lines) if text.rstrip("\n") == self.line]
        assert len(places) == 1, f"{self.path} has {len(places)} lines {self.line!r}; the page speaks of one"
        lines.insert(places[0] + (self.where == "after"), self.code)
        path.write_text("".join(lines), encoding="utf-8")


def steps() -> list[Step]:
    found = STEP.finditer(PAGE.read_text(encoding="utf-8"))
    return [Step(m["new"] or m["old"], m["code"], m["where"] or "", m["line"] or "") for m in found]


def commands() -> list[list[str]]:
    """What the page has the reader type, a list of words for each line."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [line.split() for block in blocks for line in block.splitlines()]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of this repository's code with the page's steps taken."""
    root = tmp_path / "attnscope"
    skip = shutil.ignore_patterns("__pycache__", ".git", "*.so", "*.pyd", "build", ".*cache")
    for name in ("app", "native", "profiles", "tests"):
        shutil.copytree(ROOT / name, root / name, ignore=skip)
    for name in ("main.py", "pyproject.toml"):
        shutil.copyfile(ROOT / name, root / name)
    for step in steps():
        step.take(root)
    return root


def run(checkout: Path, *words: str, timeout: float = 280) -> str:
    environ = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environ["ATTNSCOPE_CACHE_DIR"] = str(checkout.parent / "cache")
    result = subprocess.run(
        [sys.executable, *words], cwd=checkout, env=environ, capture_output=True, text=True, timeout=timeout
    )
    assert result.returncode == 0, f"{words}:\n{result.stdout[-3000:]}\n{result.stderr[-3000:]}"
    return result.stdout


def test_every_block_has_its_place(checkout: Path) -> None:
    """And no code block is without an instruction that a reader, or this test, can follow."""
    text = PAGE.read_text(encoding="utf-8")
    assert len(steps()) == len(re.findall(r"^```(?:cpp|python)$", text, re.MULTILINE))
    for path in checkout.rglob("*.py"):
        compile(path.read_bytes(), str(path), "exec")


def test_registry_and_catalog_agree_after_the_steps(checkout: Path) -> None:
    run(
        checkout,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "tests/engine/test_implementations.py",
        "-k",
        "agree",
    )


@pytest.mark.build
@needs_gcc
def test_the_operator_compiles_and_is_written_by_the_houses_rules(checkout: Path) -> None:
    source = checkout / "native" / "csrc" / "causal_softmax.cpp"
    result = subprocess.run(
        command("-Werror", "-fsyntax-only", str(source)), capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr[:3000]
    run(
        checkout,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "tests/native/test_sources.py",
        "-m",
        "not build",
    )


@pytest.mark.build
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_page_leads_from_a_schema_to_a_curve(checkout: Path) -> None:
    """Its commands, as they stand there; only the window is left out, and a document is asked for."""
    typed = commands()
    build, tests, measure, window = typed[:4]
    assert build == ["python", "main.py", "build"]
    assert window == ["python", "main.py"]
    assert json.loads(run(checkout, *build[1:], "--json", timeout=600))
    run(checkout, "-m", *tests, "-q", "-p", "no:cacheprovider")
    document = json.loads(
        run(
            checkout,
            *measure[1:],
            "--set",
            "measure.max_seconds=1",
            "--set",
            "workload.mode=forward_backward",
            "--json",
        )
    )
    found = {result["implementation"]: result for result in document["results"]}
    ours = found["own-softmax"]
    assert (ours["status"], ours["accuracy"]["ok"]) == ("measured", True)
    assert len(ours["accuracy"]["tensors"]) == 10
    counts = {name: result["counts"]["operator_calls"]["forward"] for name, result in found.items()}
    assert counts["own-softmax"] < counts["native"]
