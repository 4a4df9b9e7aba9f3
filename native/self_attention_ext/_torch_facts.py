"""What the build must know about torch. Only this module of the build imports it; the build process gets
the result.
"""

from __future__ import annotations

import platform
import re
import sys
from collections import Counter
from pathlib import Path
from typing import TypedDict


class Facts(TypedDict):
    """Plain data, handed to the build process as JSON."""

    torch_version: str
    cuda: str | None
    cxx11_abi: bool
    standard: str | None
    include_dirs: list[str]
    library_dir: str
    python_tag: str
    machine: str


def facts() -> Facts:
    """The facts of the torch in this process."""
    import torch

    root = Path(torch.__file__).resolve().parent
    text = ""
    extension = root / "utils" / "cpp_extension.py"
    if extension.is_file():
        text = extension.read_text(encoding="utf-8", errors="replace")
    tag = f"{'cp' if sys.implementation.name == 'cpython' else sys.implementation.name}"
    return {
        "torch_version": str(torch.__version__),
        "cuda": torch.version.cuda or getattr(torch.version, "hip", None),
        "cxx11_abi": bool(torch.compiled_with_cxx11_abi()),
        "standard": language_standard(text, sys.platform),
        "include_dirs": [str(root / "include"), str(root / "include" / "torch" / "csrc" / "api" / "include")],
        "library_dir": str(root / "lib"),
        "python_tag": f"{tag}{sys.version_info.major}{sys.version_info.minor}",
        "machine": f"{sys.platform}-{platform.machine().lower()}",
    }


def language_standard(cpp_extension_source: str, system: str) -> str | None:
    """The flag for the C++ standard that torch itself compiles extensions with, read from its own builder's
    text.

    Reading it rather than mapping versions to standards keeps one truth: torch's. None if it names none.
    """
    prefix = r"/std:" if system == "win32" else r"-std="
    found = Counter(re.findall(rf"""['"]({prefix}[a-z]+\+\+\w+)['"]""", cpp_extension_source))
    return found.most_common(1)[0][0] if found else None
