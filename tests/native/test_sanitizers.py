"""The native tests once more, in a process whose operator watches its own memory and arithmetic:

    pytest -m slow tests/native/test_sanitizers.py

The library is built with the sanitizers into a cache entry of its own; the sanitizers' runtime must be in the process
before Python's own allocator is, so it is preloaded. Leaks are not looked for: the interpreter keeps what it likes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.native.conftest import finish, only, start_build

pytestmark = [pytest.mark.build, pytest.mark.slow, pytest.mark.timeout(3600)]

ROOT = Path(__file__).resolve().parents[2]
COMPILER = shutil.which("g++")
# What tests the operator's arithmetic and memory.
TESTS = (
    "test_fused.py",
    "test_fused_numerics.py",
    "test_operator_accuracy.py",
    "test_operator_contract.py",
    "test_decoding.py",
    "test_sdpa_level.py",
)
# Tracing and compiling are torch's work, and too much of it for this; memory that is not aligned is what the
# sanitizer exists to name; what counts bytes counts the sanitizer's too.
LEFT_OUT = ("compile", "export", "traced", "opcheck", "fake_cuda", "aligned", "memory", "score_matrix")


@pytest.fixture(scope="module")
def watched() -> dict[str, str]:
    """The environment of a process whose operator watches itself; the library is built."""
    assert COMPILER is not None
    runtimes = [
        subprocess.run(
            [COMPILER, f"-print-file-name={name}"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for name in ("libasan.so", "libubsan.so")
    ]
    if not all(os.path.isabs(path) for path in runtimes):
        pytest.skip("this compiler comes without the sanitizers' runtimes")
    environ = {**os.environ, "ATTNSCOPE_SANITIZE": "address,undefined"}
    # Before the runtimes are preloaded: they would watch the compiler as well.
    built = finish(start_build(environ, limit_s=3000))
    assert built["code"] == 0, built
    library = Path(only(built["events"], "finished")[0]["library"])
    assert b"__asan_report_load" in library.read_bytes()
    assert b"__ubsan_handle" in library.read_bytes()
    return {
        **environ,
        "LD_PRELOAD": " ".join(runtimes),
        "ASAN_OPTIONS": "detect_leaks=0:halt_on_error=1",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    }


@pytest.mark.skipif(COMPILER is None or not sys.platform.startswith("linux"), reason="needs g++ on Linux")
@pytest.mark.parametrize("capability", ["avx512", "avx2", "default"])
def test_no_sanitizer_finds_anything(watched: dict[str, str], capability: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "not slow"]
    # Python's capture alone: what a sanitizer says last goes past it.
    command += ["--capture=sys", "-o", "timeout=1800", "-k", " and ".join(f"not {word}" for word in LEFT_OUT)]
    command += [str(ROOT / "tests" / "native" / name) for name in TESTS]
    environ = {**watched, "ATEN_CPU_CAPABILITY": capability}
    done = subprocess.run(command, env=environ, cwd=ROOT, capture_output=True, text=True)
    print(done.stdout[-300:])
    said = done.stdout[-3000:] + done.stderr[-6000:]
    assert done.returncode == 0, said
    assert "ERROR: AddressSanitizer" not in said
    assert "runtime error" not in said
