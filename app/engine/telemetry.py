"""Readings of the machine, about once a second, from a thread of their own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import psutil

from app.core.messages import Telemetry

EVERY_S = 1.0
SLOW_EVERY = 5
"""Clock, temperature and battery cost more to read and move slowly."""

SENSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal", "cpu-thermal", "soc_thermal", "acpitz")

THROTTLING = {
    "nvmlClocksEventReasonSwThermalSlowdown": "temperature",
    "nvmlClocksEventReasonHwThermalSlowdown": "temperature",
    "nvmlClocksEventReasonSwPowerCap": "power limit",
    "nvmlClocksEventReasonHwPowerBrakeSlowdown": "power brake",
}


class Readings:
    """Takes one reading at a time; differences are since the one before."""

    def __init__(
        self,
        has_children: Callable[[], bool],
        gpu: Callable[[], str | None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._has_children = has_children
        self._gpu = GpuReadings(gpu)
        self._clock = clock
        self._self = psutil.Process()
        self._number = 0
        self._slow: dict[str, Any] = {}
        self._busy = self._total = 0.0
        self._ours: dict[int, float] = {}
        self._difference_of_load()

    def take(self) -> Telemetry:
        if self._number % SLOW_EVERY == 0:
            self._slow = {**_clock(), **_temperature(), **_battery()}
        self._number += 1
        load, others = self._difference_of_load()
        memory = psutil.virtual_memory()
        return Telemetry(
            at_s=self._clock(),
            cpu_percent=load,
            others_percent=others,
            memory_used_bytes=memory.total - memory.available,
            memory_total_bytes=memory.total,
            worker_bytes=self._self.memory_info().rss,
            **self._slow,
            **self._gpu.take(),
        )

    def _difference_of_load(self) -> tuple[float | None, float | None]:
        """Percentages of the whole machine since the last call: all, and all but this process's tree."""
        times = psutil.cpu_times()
        total = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
        busy = total - times.idle - getattr(times, "iowait", 0.0)
        ours = self._tree_seconds()
        # A process that ended between two readings is missed: its last part counts as others'.
        own = sum(seconds - self._ours.get(pid, 0.0) for pid, seconds in ours.items() if pid in self._ours)
        passed, load_s = total - self._total, busy - self._busy
        self._total, self._busy, self._ours = total, busy, ours
        if passed <= 0 or self._number == 0:
            return None, None
        load = _percent(load_s / passed)
        return load, _percent((load_s - own) / passed)

    def _tree_seconds(self) -> dict[int, float]:
        processes = [self._self]
        if self._has_children():
            # Looking for children reads the whole process table, so only when there are some.
            try:
                processes += self._self.children(recursive=True)
            except psutil.Error:
                pass
        seconds = {}
        for process in processes:
            try:
                times = process.cpu_times()
            except psutil.Error:
                continue
            seconds[process.pid] = times.user + times.system
        return seconds


class GpuReadings:
    """NVML, and only while something is measured on that GPU: a reading wakes an idle one."""

    def __init__(self, device: Callable[[], str | None]) -> None:
        self._device = device
        self._nvml: Any = None
        self._handle: Any = None
        self._read: str | None = None
        self._is_missing = False

    def take(self) -> dict[str, Any]:
        device = self._device()
        if device is None or self._is_missing:
            self.close()
            return {}
        try:
            if device != self._read:
                self.close()
                self._open(device)
            return self._readings()
        except Exception:
            # Optional, from another project, and on some machines only partly there.
            self._is_missing = True
            self.close()
            return {}

    def close(self) -> None:
        if self._nvml is not None:
            try:
                self._nvml.nvmlShutdown()
            finally:
                self._nvml = self._handle = self._read = None

    def _open(self, device: str) -> None:
        import pynvml
        import torch

        pynvml.nvmlInit()
        self._nvml, self._read = pynvml, device
        properties = torch.cuda.get_device_properties(device)
        uuid = getattr(properties, "uuid", None)
        if uuid is not None:
            # torch's numbers follow CUDA_VISIBLE_DEVICES, NVML's do not.
            self._handle = pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}")
        else:
            self._handle = pynvml.nvmlDeviceGetHandleByIndex(torch.device(device).index or 0)

    def _readings(self) -> dict[str, Any]:
        nvml, handle = self._nvml, self._handle
        reasons = nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)
        named = {word for name, word in THROTTLING.items() if reasons & getattr(nvml, name, 0)}
        return {
            "gpu_percent": float(nvml.nvmlDeviceGetUtilizationRates(handle).gpu),
            "gpu_temperature_c": float(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),
            "gpu_clock_hz": nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM) * 1e6,
            "gpu_throttled": ", ".join(sorted(named)),
        }


class TelemetryThread(threading.Thread):
    def __init__(self, readings: Readings, send: Callable[[Telemetry], None]) -> None:
        super().__init__(name="telemetry", daemon=True)
        self._readings = readings
        self._send = send
        self._stopped = threading.Event()

    def run(self) -> None:
        while not self._stopped.wait(EVERY_S):
            self._send(self._readings.take())

    def stop(self) -> None:
        self._stopped.set()


def _percent(share: float) -> float:
    return min(100.0, max(0.0, 100.0 * share))


def _clock() -> dict[str, float]:
    try:
        frequency = psutil.cpu_freq()
    except (AttributeError, NotImplementedError, OSError, RuntimeError):
        return {}
    return {"clock_hz": frequency.current * 1e6} if frequency and frequency.current else {}


def _temperature() -> dict[str, float]:
    read = getattr(psutil, "sensors_temperatures", None)
    if read is None:
        return {}
    try:
        sensors = read()
    except OSError:
        return {}
    for name in SENSORS:
        if sensors.get(name):
            return {"temperature_c": max(entry.current for entry in sensors[name])}
    return {}


def _battery() -> dict[str, Any]:
    read = getattr(psutil, "sensors_battery", None)
    try:
        battery = read() if read is not None else None
    except (OSError, RuntimeError):
        return {}
    if battery is None:
        return {}
    return {"battery": battery.percent / 100, "on_mains": battery.power_plugged}
