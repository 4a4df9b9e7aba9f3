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

pytestmark = [pytest.mark.build, pytest.mark.slow, pytest.mark.timeout(3600)]

ROOT = Path(__file__).resolve().parents[2]
COMPILER = shutil.which("g++")
# What tests the operator. Tracing and compiling are torch's work, and too much of it for this.
TESTS = ("test_fused.py", "test_fused_numerics.py", "test_operator_accuracy.py", "test_operator_contract.py")
LEFT_OUT = "not compile and not export and not opcheck and not aligned and not memory and not score_matrix"


@pytest.mark.skipif(COMPILER is None or not sys.platform.startswith("linux"), reason="needs g++ on Linux")
@pytest.mark.parametrize("capability", ["avx512", "avx2", "default"])
def test_no_sanitizer_finds_anything(capability: str) -> None:
    assert COMPILER is not None
    names = ("libasan.so", "libubsan.so")
    runtimes = [
        subprocess.run([COMPILER, f"-print-file-name={name}"], capture_output=True, text=True).stdout.strip()
        for name in names
    ]
    if not all(os.path.isabs(path) for path in runtimes):
        pytest.skip("this compiler comes without the sanitizers' runtimes")
    environ = {
        **os.environ,
        "ATTNSCOPE_SANITIZE": "address,undefined",
        "ATEN_CPU_CAPABILITY": capability,
        "LD_PRELOAD": " ".join(runtimes),
        "ASAN_OPTIONS": "detect_leaks=0:halt_on_error=1",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-k", LEFT_OUT]
    command += [str(ROOT / "tests" / "native" / name) for name in TESTS]
    done = subprocess.run(command, env=environ, cwd=ROOT, capture_output=True, text=True)
    said = done.stdout[-3000:] + done.stderr[-3000:]
    assert done.returncode == 0, said
    assert "ERROR: AddressSanitizer" not in said
    assert "runtime error" not in said
