"""The C++ itself: what it includes, how it compiles, that it says the shape of every tensor it takes."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from self_attention_ext import _flags, _sources, _torch_facts

FOLDER = _sources.source_folder()
FILES = [*_sources.sources(FOLDER), *_sources.headers(FOLDER)]
COMPILER = shutil.which("g++")

needs_gcc = pytest.mark.skipif(COMPILER is None, reason="needs g++")


def command(*flags: str) -> list[str]:
    facts = _torch_facts.facts()
    includes = [word for folder in facts["include_dirs"] for word in ("-isystem", folder)]
    standard = [facts["standard"]] if facts["standard"] else []
    return [
        COMPILER or "g++",
        *_flags.compile_flags("linux", facts["cxx11_abi"]),
        *includes,
        *standard,
        *flags,
    ]


@pytest.mark.build
@needs_gcc
@pytest.mark.parametrize("source", _sources.sources(FOLDER), ids=lambda path: path.name)
def test_no_source_needs_pythons_or_cudas_headers(source: Path) -> None:
    output = subprocess.run(command("-M", str(source)), capture_output=True, text=True, check=True).stdout
    assert "Python.h" not in output
    assert "pybind11" not in output
    assert "cuda_runtime" not in output


@pytest.mark.build
@pytest.mark.slow
@needs_gcc
@pytest.mark.parametrize("source", _sources.sources(FOLDER), ids=lambda path: path.name)
def test_offset_arithmetic_converts_nothing_silently(source: Path) -> None:
    flags = command("-Wconversion", "-Werror", "-fsyntax-only", str(source))
    result = subprocess.run(flags, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr[:2000]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_tensor_argument_carries_its_shape(path: Path) -> None:
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if re.match(r"\s+(const (Optional)?Tensor&|at::TensorList) \w+[,)]", line):
            assert re.search(r"// .*(\[|see|the tensor)", line), f"{path.name}:{number}: {line.strip()}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_offsets_are_64_bit_and_includes_are_the_small_ones(path: Path) -> None:
    text = path.read_text()
    assert not re.search(r"\bint32_t\b|\bunsigned\b", text)
    assert not re.search(r"#include <(torch/extension|torch/all|torch/torch|ATen/ATen|Python)\.h>", text)


def test_files_are_small() -> None:
    assert {path.name: n for path in FILES if (n := len(path.read_text().splitlines())) > 400} == {}
