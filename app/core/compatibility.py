"""Which build of torch runs on which GPU, and what to do where it does not.

A build holds machine code for some architectures (`sm_NN`) and, at times, intermediate code (`compute_NN`,
PTX) that the driver compiles for newer ones. Machine code runs on the same major version from its own minor
version up; PTX runs on its own version and everything above.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

import msgspec

Capability = tuple[int, int]

CU126 = "https://download.pytorch.org/whl/cu126"
LAST_CU126 = (2, 14)
"""The last torch that is built for CUDA 12 at all; CUDA 13 cannot generate code below 7.5."""

OLDEST_CUDA_13 = (7, 5)


class Remedy(msgspec.Struct, frozen=True):
    """What to do, in a sentence, and the command that does it ("" where there is none)."""

    sentence: str
    command: str = ""


def parse_architecture(name: str) -> tuple[Literal["sm", "compute"], Capability] | None:
    """`sm_61` as ("sm", (6, 1)); None for a name of no known form. Suffixes as in `sm_90a` bind to one chip."""
    match = re.fullmatch(r"(sm|compute)_(\d{2,3})([af]?)", name)
    if match is None:
        return None
    digits = match[2]
    kind: Literal["sm", "compute"] = "sm" if match[1] == "sm" else "compute"
    return kind, (int(digits[:-1]), int(digits[-1]))


def runs_on(capability: Capability | None, architectures: Iterable[str]) -> bool | None:
    """Whether a build with `architectures` has code for a device; None where that cannot be told.

    An empty list is unknown, not unsupported: torch gives one where it sees no driver.
    """
    known = [(name, parsed) for name in architectures if (parsed := parse_architecture(name))]
    if capability is None or not known:
        return None
    return any(_code_runs(name, kind, built, capability) for name, (kind, built) in known)


def _code_runs(name: str, kind: str, built: Capability, capability: Capability) -> bool:
    if name.endswith("a"):
        return built == capability
    if kind == "compute":
        return built <= capability
    return built[0] == capability[0] and built[1] <= capability[1]


def remedy(capability: Capability | None, torch_version: str, system: str) -> Remedy:
    """What the owner of a device can do whose torch has no code for it.

    `torch_version` as torch tells it (`2.13.0+cu130`), `system` as `platform.system()` does.
    """
    if capability is None:
        return Remedy(
            "this device's compute capability is not known: use the CPU, or try the cu126 build, "
            "which covers cards from 5.0 to 9.0",
            _install(None),
        )
    if capability < (5, 0):
        return Remedy(
            f"no build of torch that AttnScope works with (2.6 and up) has code for compute capability "
            f"{_dotted(capability)}: use the CPU"
        )
    if capability < OLDEST_CUDA_13:
        return Remedy(
            f"compute capability {_dotted(capability)} needs a build for CUDA 12.6: torch 2.6 to "
            f"{_dotted(LAST_CU126)} from {CU126}" + _plain_pip(capability, system),
            _install(torch_version),
        )
    if "+cpu" in torch_version or (system == "Windows" and "+cu" not in torch_version):
        return Remedy(
            "this torch is built for the CPU alone: install a CUDA build",
            f"pip install torch --index-url {CU126}",
        )
    return Remedy(
        f"this build of torch has no code for compute capability {_dotted(capability)}: "
        "pick another CUDA version at pytorch.org/get-started"
    )


def _plain_pip(capability: Capability, system: str) -> str:
    """What else is known of the builds for this system."""
    if system == "Linux" and capability >= (6, 0) and capability < (7, 0):
        return "; from the ordinary index, 2.7.1 is the last that runs"
    if system == "Windows" and capability < (6, 1):
        return "; on Windows some of them have no code below 6.1"
    return ""


def _install(torch_version: str | None) -> str:
    """The command; it keeps the version that is installed where there is such a build of it."""
    match = re.match(r"(\d+)\.(\d+)\.(\d+)", torch_version or "")
    wanted = "torch"
    if match is not None:
        version = (int(match[1]), int(match[2]))
        if (2, 6) <= version <= LAST_CU126:
            wanted = f"torch=={match[0]}"
        else:
            wanted = f"'torch<{LAST_CU126[0]}.{LAST_CU126[1] + 1}'"
    return f"pip install {wanted} --index-url {CU126}"


def _dotted(pair: tuple[int, int]) -> str:
    return f"{pair[0]}.{pair[1]}"
