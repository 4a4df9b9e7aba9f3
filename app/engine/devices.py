"""What there is to run on, why something cannot, and the record of this machine."""

from __future__ import annotations

import os
import platform
import re
import sys
from pathlib import Path

import psutil
import torch

from app.core.compatibility import remedy, runs_on
from app.core.environment import Device, Environment
from app.core.version import VERSION
from app.engine import caches, process_state
from app.engine.peaks import known_peaks

DRIVER_FILE = Path("/proc/driver/nvidia/version")


def list_devices() -> tuple[Device, ...]:
    """The CPU first, then every CUDA device; what a tiny kernel does not run on is marked unusable."""
    devices = [cpu_device()]
    if not torch.cuda.is_available():
        missing = _driver_without_torch()
        return (*devices, missing) if missing is not None else tuple(devices)
    for index in range(torch.cuda.device_count()):
        try:
            devices.append(_cuda_device(index))
        except Exception as error:
            devices.append(
                Device(f"cuda:{index}", f"CUDA device {index}", usable=False, reason=_first_line(error))
            )
    return tuple(devices)


def cpu_device() -> Device:
    memory = psutil.virtual_memory()
    threads = torch.get_num_threads()
    return Device(
        id="cpu",
        title=f"CPU · {cpu_title()}",
        detail=f"{threads} thread{'s' if threads != 1 else ''}",
        total_bytes=memory.total,
        free_bytes=memory.available,
        cache_bytes=caches.last_level_bytes("cpu"),
    )


def environment(devices: tuple[Device, ...]) -> Environment:
    state = process_state.capture()
    return Environment(
        attnscope=VERSION,
        system=f"{platform.system()} {platform.release()}",
        machine=platform.machine(),
        python=platform.python_version(),
        torch=str(torch.__version__),
        torch_cuda=torch.version.cuda,
        torch_architectures=_architectures(),
        driver=_driver_version(),
        cpu=cpu_title(),
        cpu_features=_cpu_features(),
        physical_cores=psutil.cpu_count(logical=False),
        logical_cores=psutil.cpu_count(),
        threads=state.threads,
        interop_threads=torch.get_num_interop_threads(),
        memory_bytes=psutil.virtual_memory().total,
        devices=devices,
        denormals_flushed=state.flushes_denormals,
        peaks=known_peaks(devices),
    )


def cpu_title() -> str:
    """The processor's model name, as its maker wrote it."""
    if sys.platform == "linux":
        try:
            text = Path("/proc/cpuinfo").read_text("utf-8", "replace")
        except OSError:
            text = ""
        found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
        if found:
            return " ".join(found[1].split())
    elif sys.platform == "darwin":
        import subprocess

        try:
            told = subprocess.run(
                ["sysctl", "-n", "machdep.cpu.brand_string"], capture_output=True, timeout=5, check=True
            )
            return told.stdout.decode("utf-8", "replace").strip()
        except (OSError, subprocess.SubprocessError):
            pass
    elif sys.platform == "win32":
        import winreg

        try:
            place = r"HARDWARE\DESCRIPTION\System\CentralProcessor\0"
            with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, place) as key:
                return str(winreg.QueryValueEx(key, "ProcessorNameString")[0]).strip()
        except OSError:
            pass
    return platform.processor() or platform.machine()


def _cuda_device(index: int) -> Device:
    name = f"cuda:{index}"
    properties = torch.cuda.get_device_properties(index)
    capability = (properties.major, properties.minor)
    has_code = runs_on(capability, _architectures())
    reason = _try_kernel(name)
    way_out = None
    if has_code is False or reason:
        way_out = remedy(capability, str(torch.__version__), platform.system())
    if has_code is False:
        reason = f"this build of torch has no code for its compute capability {capability[0]}.{capability[1]}"
    free = total = None
    if not reason:
        free, total = torch.cuda.mem_get_info(index)
    return Device(
        id=name,
        title=f"CUDA:{index} · {properties.name}",
        usable=not reason,
        detail=f"compute capability {capability[0]}.{capability[1]}",
        reason=reason,
        remedy=way_out.sentence if way_out else "",
        command=way_out.command if way_out else "",
        total_bytes=total if total is not None else properties.total_memory,
        free_bytes=free,
        capability=capability,
        cache_bytes=caches.last_level_bytes(name),
    )


def _try_kernel(name: str) -> str:
    """Run a tiny kernel and wait for it: the only proof. "" if it gave the right number."""
    try:
        doubled = torch.ones(8, device=name) * 2
        torch.cuda.synchronize(name)
        return "" if float(doubled.sum()) == 16.0 else "a tiny kernel gave a wrong number"
    except Exception as error:
        return _first_line(error)


def _driver_without_torch() -> Device | None:
    """A device entry that explains itself, where there is an NVIDIA driver but torch sees no GPU."""
    windows = Path(os.environ.get("SYSTEMROOT", r"C:\Windows")) / "System32" / "nvcuda.dll"
    if not DRIVER_FILE.exists() and not (sys.platform == "win32" and windows.exists()):
        return None
    way_out = remedy(None, str(torch.__version__), platform.system())
    if torch.version.cuda is None:
        reason = "there is an NVIDIA driver, but this torch is built for the CPU alone"
    else:
        reason = "there is an NVIDIA driver, but torch finds no GPU through it"
    return Device(
        "cuda", "NVIDIA GPU", usable=False, reason=reason, remedy=way_out.sentence, command=way_out.command
    )


def _architectures() -> tuple[str, ...]:
    try:
        return tuple(torch.cuda.get_arch_list())
    except (RuntimeError, AssertionError, AttributeError):
        return ()


def _cpu_features() -> tuple[str, ...]:
    """The vector instructions that torch chose to use."""
    tell = getattr(torch.backends.cpu, "get_cpu_capability", None)
    return (str(tell()),) if tell is not None else ()


def _driver_version() -> str | None:
    try:
        text = DRIVER_FILE.read_text("utf-8", "replace")
    except OSError:
        return None
    found = re.search(r"\b(\d{3,}\.\d+(?:\.\d+)?)\b", text)
    return found[1] if found else None


def _first_line(error: Exception) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0]}" if text else type(error).__name__
