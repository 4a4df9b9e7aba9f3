"""What there is to run on, told so that a reader knows what to do."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from app.core.messages import Ready, decode_message, encode
from app.engine import devices


def test_the_environment_goes_over_the_wire():
    environment = devices.environment(devices.list_devices())
    told = decode_message(encode(Ready(environment, 1.0)))
    assert isinstance(told, Ready)
    assert told.environment == environment
    assert environment.torch == str(torch.__version__)
    assert environment.threads == torch.get_num_threads()
    assert environment.cpu
    assert environment.memory_bytes


def fake_cuda(monkeypatch: pytest.MonkeyPatch, architectures: list[str], kernel: str = "") -> None:
    card = SimpleNamespace(name="GeForce GTX 1050", major=6, minor=1, total_memory=4 << 30)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: card)
    monkeypatch.setattr(torch.cuda, "get_arch_list", lambda: architectures)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda index: (3 << 30, 4 << 30))
    monkeypatch.setattr(devices, "_try_kernel", lambda name: kernel)


def test_a_card_that_this_torch_has_no_code_for_is_listed_with_the_fix(monkeypatch: pytest.MonkeyPatch):
    fake_cuda(monkeypatch, ["sm_75", "sm_80"], "RuntimeError: no kernel image is available")
    card = devices.list_devices()[1]
    assert not card.usable
    assert "6.1" in card.reason
    assert "whl/cu126" in card.command
    assert card.capability == (6, 1)


def test_a_card_whose_kernel_ran_is_usable(monkeypatch: pytest.MonkeyPatch):
    fake_cuda(monkeypatch, ["sm_50", "sm_60"])
    card = devices.list_devices()[1]
    assert card.usable
    assert card.free_bytes == 3 << 30


def test_a_list_that_promises_code_is_not_believed_without_a_kernel_that_ran(monkeypatch: pytest.MonkeyPatch):
    fake_cuda(monkeypatch, ["sm_61"], "RuntimeError: CUDA error: unknown error")
    card = devices.list_devices()[1]
    assert not card.usable
    assert "unknown error" in card.reason


def test_an_empty_list_is_unknown_and_the_kernel_decides(monkeypatch: pytest.MonkeyPatch):
    fake_cuda(monkeypatch, [])
    assert devices.list_devices()[1].usable


def test_a_card_that_cannot_be_asked_does_not_hide_the_others(monkeypatch: pytest.MonkeyPatch):
    fake_cuda(monkeypatch, ["sm_60"])

    def broken(index: int) -> Any:
        raise RuntimeError("driver shut down\nmore")

    monkeypatch.setattr(torch.cuda, "get_device_properties", broken)
    listed = devices.list_devices()
    assert [device.id for device in listed] == ["cpu", "cuda:0"]
    assert listed[1].reason == "RuntimeError: driver shut down"


def test_the_kernel_that_proves_a_device_is_waited_for():
    assert devices._try_kernel("meta") != ""
