"""The compiler's flags: one list for the just-in-time build and for `pip install ./native`.

No language standard is named here: torch demands its own, and a second one on the same command line wins
over it. No `-march=native` either: a cache may be shared by unequal machines.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

GNU_COMPILE = ("-O2", "-g0", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra")
MSVC_COMPILE = ("/O2", "/MD", "/EHsc", "/W3", "/utf-8", "/Zc:__cplusplus", "/permissive-")

LIBRARIES = ("c10", "torch_cpu", "torch")
"""What the operator links to. It makes no CUDA call of its own, so a CUDA build of torch needs nothing
more; and it binds nothing to Python, so torch_python stays out."""


def sanitizers(environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """For developers: ATTNSCOPE_SANITIZE=address,undefined builds, under a key of its own, a library that
    watches itself. The process that loads it needs the sanitizer's runtime preloaded.
    """
    named = environ.get("ATTNSCOPE_SANITIZE", "")
    # -O1, which wins over the -O2 before it: at -O2 the kernels' instrumented templates take minutes to compile.
    return (f"-fsanitize={named}", "-fno-omit-frame-pointer", "-g1", "-O1") if named else ()


def compile_flags(platform: str = sys.platform, cxx11_abi: bool = True) -> tuple[str, ...]:
    """Flags for one source file, without include folders and without torch's language standard."""
    if platform == "win32":
        return MSVC_COMPILE
    if platform == "darwin":
        return (*GNU_COMPILE, *sanitizers())
    return (*GNU_COMPILE, f"-D_GLIBCXX_USE_CXX11_ABI={int(cxx11_abi)}", *sanitizers())


def link_flags(platform: str = sys.platform) -> tuple[str, ...]:
    """Flags for the library, without library folders."""
    if platform == "win32":
        return ("/LD", "/nologo")
    if platform == "darwin":
        return ("-shared", "-undefined", "dynamic_lookup", *sanitizers()[:1])
    return ("-shared", "-Wl,--as-needed", *sanitizers()[:1])
