"""`pip install ./native`: the same sources and flags, built ahead of time."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from self_attention_ext import _flags, _sources, _torch_facts

pytestmark = [pytest.mark.build, pytest.mark.slow]

USE = """
import sys
sys.path.insert(0, sys.argv[1])
import torch, self_attention_ext as ext
assert ext.__file__.startswith(sys.argv[1]), ext.__file__
layer = ext.SelfAttention(8, 2, causal=True)
y = layer(torch.randn(1, 3, 8))  # loads the library on demand
y.sum().backward()
assert ext.build_id() == "ahead-of-time"
events = []
ext.load(on_event=events.append)
print("well")
"""


@pytest.mark.timeout(900)
def test_an_installed_package_needs_no_compiler_and_no_cache(tmp_path: Path) -> None:
    checkout = tmp_path / "native"
    shutil.copytree(_sources.PACKAGE.parent, checkout, ignore=shutil.ignore_patterns("build", "*.egg-info"))
    target = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "-v", "--no-build-isolation", "--no-deps", "--no-index"]
    result = subprocess.run(
        [*pip, "--target", str(target), str(checkout)], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]

    # Both ways of building compile with the same flags.
    compiled = [
        line for line in (result.stdout + result.stderr).splitlines() if " -c " in line and "meta.cpp" in line
    ]
    assert compiled
    for flag in _flags.compile_flags(cxx11_abi=_torch_facts.facts()["cxx11_abi"]):
        assert flag in compiled[0].split()
    assert set(re.findall(r"-std=\S+", compiled[0])) == {_torch_facts.facts()["standard"]}

    sources = {path.name for path in (target / "self_attention_ext" / "csrc").iterdir()}
    assert {path.name for path in _sources.sources(_sources.source_folder())} <= sources

    environ = {**os.environ, "CXX": "false", "ATTNSCOPE_CACHE_DIR": str(tmp_path / "cache")}
    environ.pop("PYTHONPATH", None)
    result = subprocess.run(
        [sys.executable, "-c", USE, str(target)], capture_output=True, text=True, check=False, env=environ
    )
    assert result.stdout.strip() == "well", result.stderr[-3000:]
    assert not (tmp_path / "cache").exists()

    linked = subprocess.run(
        ["ldd", *map(str, (target / "self_attention_ext").glob("_C*.so"))],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "torch_python" not in linked.stdout
