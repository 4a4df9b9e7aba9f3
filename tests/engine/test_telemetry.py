"""Readings of the machine: cheap, complete where offered, silent where not."""

from __future__ import annotations

import sys
import time
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from app.core.messages import decode_message, encode
from app.engine import telemetry
from app.engine.telemetry import Readings, TelemetryThread


def readings(**changes: Any) -> Readings:
    return Readings(**{"has_children": lambda: False, "gpu": lambda: None, **changes})


def test_a_reading_goes_over_the_wire_and_has_what_every_machine_offers():
    taken = readings()
    taken.take()
    time.sleep(0.05)
    reading = taken.take()
    assert decode_message(encode(reading)) == reading
    assert reading.memory_total_bytes == psutil.virtual_memory().total
    assert reading.worker_bytes
    assert reading.gpu_percent is None


def test_our_own_work_is_not_called_the_work_of_others(monkeypatch: pytest.MonkeyPatch):
    fields = {"user": 0.0, "system": 0.0, "idle": 0.0}
    machine = [100.0, 900.0]  # busy and idle seconds of the machine
    ours = [50.0]

    def times() -> Any:
        class Times(tuple):
            idle = machine[1]

        return Times((machine[0], machine[1]))

    monkeypatch.setattr(psutil, "cpu_times", times)
    taken = readings()
    taken._self = SimpleNamespace(  # type: ignore[assignment]
        pid=1,
        cpu_times=lambda: SimpleNamespace(**{**fields, "user": ours[0]}),
        memory_info=lambda: SimpleNamespace(rss=1),
    )
    taken.take()
    taken.take()
    machine[0] += 6.0
    machine[1] += 4.0
    ours[0] += 5.0
    reading = taken.take()
    assert reading.cpu_percent == pytest.approx(60.0)
    assert reading.others_percent == pytest.approx(10.0)


def test_sensors_that_fail_are_null(monkeypatch: pytest.MonkeyPatch):
    def fail(*arguments: Any) -> Any:
        raise OSError("not here")

    for name in ("cpu_freq", "sensors_temperatures", "sensors_battery"):
        monkeypatch.setattr(psutil, name, fail, raising=False)
    reading = readings().take()
    assert (reading.clock_hz, reading.temperature_c, reading.battery) == (None, None, None)


class FakeNvml:
    NVML_TEMPERATURE_GPU = 0
    NVML_CLOCK_SM = 1
    nvmlClocksEventReasonSwPowerCap = 4  # noqa: N815

    def __init__(self) -> None:
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> Any:
            self.calls.append(name)
            return {
                "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=42),
                "nvmlDeviceGetTemperature": 61,
                "nvmlDeviceGetClockInfo": 1300,
                "nvmlDeviceGetCurrentClocksThrottleReasons": 4,
            }.get(name)

        if not name.startswith("nvml") or name.startswith("nvmlClocksEvent"):
            raise AttributeError(name)
        return call


def test_the_gpu_is_read_only_while_it_is_measured_on(monkeypatch: pytest.MonkeyPatch):
    nvml = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    monkeypatch.setattr("torch.cuda.get_device_properties", lambda device: SimpleNamespace(uuid="abc"))
    measured: list[str | None] = [None]
    taken = readings(gpu=lambda: measured[0])
    taken.take()
    assert nvml.calls == []
    measured[0] = "cuda:0"
    reading = taken.take()
    assert reading.gpu_percent == 42.0
    assert reading.gpu_clock_hz == 1.3e9
    assert reading.gpu_throttled == "power limit"
    measured[0] = None
    taken.take()
    assert nvml.calls[-1] == "nvmlShutdown"
    count = len(nvml.calls)
    taken.take()
    assert len(nvml.calls) == count


def test_a_machine_without_nvml_is_not_asked_twice(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    taken = readings(gpu=lambda: "cuda:0")
    assert taken.take().gpu_percent is None
    assert taken._gpu._is_missing


def test_a_reading_costs_little():
    taken = readings()
    taken.take()
    begun = time.thread_time()
    for _ in range(10):
        taken.take()
    assert (time.thread_time() - begun) / 10 < 0.02


def test_the_thread_ends_when_told(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(telemetry, "EVERY_S", 0.01)
    sent: list[Any] = []
    thread = TelemetryThread(readings(), sent.append)
    thread.start()
    deadline = time.monotonic() + 5
    while not sent and time.monotonic() < deadline:
        time.sleep(0.01)
    thread.stop()
    thread.join(5)
    assert sent
    assert not thread.is_alive()
