"""The profiler's own process, and what answers in it."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from self_attention_ext import _library

from app.core.trace import count_calls, read, window_of
from app.core.workload import Workload
from app.engine import profiler_child
from app.engine.implementations import registry
from app.engine.implementations.base import Implementation
from app.engine.inputs import Inputs
from app.engine.processes import child_environment
from app.engine.profiler_child import Child
from app.engine.profiler_protocol import (
    CountPassed,
    CountRefused,
    CountRequest,
    ProfilerReady,
    ProfilerReply,
    decode_reply,
    encode,
)
from app.engine.profiling import Profiler

SMALL = Workload(batch=2, seq_len=16, embed_dim=32, num_heads=4, device="cpu")
STEP = Workload(batch=2, seq_len=16, embed_dim=32, num_heads=4, device="cpu", mode="forward_backward")


@pytest.fixture(scope="module")
def child() -> Child:
    return Child(Profiler())


@pytest.fixture(scope="module")
def conversation() -> tuple[subprocess.CompletedProcess[bytes], list[ProfilerReply]]:
    """One whole life of a child: two good requests, one that fails, a line of nonsense, one good again."""
    lines = [
        encode(CountRequest(1, SMALL, "native", threads=1)),
        encode(CountRequest(2, STEP, "sdpa", threads=1)),
        encode(CountRequest(3, SMALL, "extension-aten")),
        b'{"id": 4, "type": "nonsense"}\n',
        b"\n",
        encode(CountRequest(5, SMALL, "native", threads=1)),
    ]
    environment = child_environment()
    for name in profiler_child.QUIET:
        environment.pop(name, None)
    done = subprocess.run(
        [sys.executable, "-m", "app.engine.profiler_child"],
        input=b"".join(lines),
        capture_output=True,
        env=environment,
        timeout=200,
    )
    return done, [decode_reply(line) for line in done.stdout.splitlines()]


def test_every_request_is_answered_in_order_and_the_child_lives_through_bad_ones(conversation: Any) -> None:
    done, replies = conversation
    assert [type(reply) for reply in replies] == [
        ProfilerReady, CountPassed, CountPassed, CountRefused, CountRefused, CountPassed,
    ]  # fmt: skip
    assert [reply.id for reply in replies[1:]] == [1, 2, 3, 4, 5]
    assert len({reply.pid for reply in replies}) == 1
    assert replies[0].pid != os.getpid()
    assert replies[1].counts == replies[5].counts
    assert done.returncode == 0


def test_an_end_of_stdin_is_a_quiet_end(conversation: Any) -> None:
    done, _ = conversation
    assert done.returncode == 0
    assert done.stderr == b""


def test_the_counts_and_the_trace_of_a_request_agree(conversation: Any) -> None:
    _, replies = conversation
    native, sdpa = replies[1], replies[2]
    assert native.counts.python_calls.forward > 15
    assert native.counts.python_calls.backward is None
    assert sdpa.counts.python_calls.backward == 1
    assert sdpa.counts.operator_calls.backward > 0
    for reply, backward in ((native, False), (sdpa, True)):
        assert reply.counts.kernel_launches is None
        assert reply.memory.peak_bytes > 0
        assert reply.profiled_seconds > 0
        trace = read(reply.trace_gz)
        call = trace.header["attnscope"]["call"]
        assert count_calls(trace, window_of(trace, call), backward=backward) == reply.counts
        assert trace.header["attnscope"]["environment"]["threads"] == 1


def test_a_refusal_is_a_sentence(conversation: Any) -> None:
    _, replies = conversation
    assert "not built" in replies[3].reason
    assert "cannot be read" in replies[4].reason


def test_the_window_toolkit_is_never_imported() -> None:
    code = (
        "import sys, app.engine.profiler_child, app.engine.profiling, app.exports.chrome_trace;"
        "print([m for m in sys.modules if m.split('.')[0] in ('PySide6', 'pyqtgraph')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, env=child_environment()
    )
    assert done.stdout.strip() == b"[]"


def raising(error: BaseException) -> Implementation:
    def prepare(workload: Workload, inputs: object) -> Any:
        def forward() -> None:
            raise error

        return forward

    return Implementation(id="native", prepare=prepare)


@pytest.fixture
def replace_native(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    def replace(implementation: Implementation) -> None:
        monkeypatch.setattr(registry, "shipped", lambda: {"native": implementation})

    return replace


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (ValueError("head 3 is\nmissing"), "head 3 is"),
        (MemoryError(), "out of memory"),
        (SystemExit(3), "end"),
        (RuntimeError(), "RuntimeError"),
    ],
)
def test_what_a_contender_raises_is_a_refusal_of_one_line(
    child: Child, replace_native: Any, error: BaseException, says: str
) -> None:
    replace_native(raising(error))
    reply = child.answer(CountRequest(9, SMALL, "native"))
    assert isinstance(reply, CountRefused)
    assert reply.id == 9
    assert says in reply.reason
    assert "\n" not in reply.reason


@pytest.mark.parametrize(("workload", "wanted"), [(SMALL, False), (STEP, True)])
def test_a_call_is_counted_under_the_samplers_gradient_mode(
    child: Child, replace_native: Any, workload: Workload, wanted: bool
) -> None:
    modes: list[bool] = []

    def prepare(workload: Workload, inputs: Inputs) -> Any:
        def forward() -> torch.Tensor:
            modes.append(torch.is_grad_enabled())
            return inputs.x * 2

        return forward

    replace_native(Implementation(id="native", prepare=prepare))
    before = torch.is_grad_enabled()
    assert isinstance(child.answer(CountRequest(9, workload, "native")), CountPassed)
    assert set(modes) == {wanted}
    assert torch.is_grad_enabled() is before


def test_an_unknown_implementation_is_refused_by_name(child: Child) -> None:
    reply = child.answer(CountRequest(1, SMALL, "nonesuch"))
    assert isinstance(reply, CountRefused)
    assert "nonesuch" in reply.reason


def test_a_second_build_needs_a_new_process(child: Child, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[tuple[Path, str]] = []
    monkeypatch.setattr(_library, "load", lambda path, key: loaded.append((path, key)))
    monkeypatch.setattr(child, "_library", None)
    child._load("/one/library.so", "k1")
    child._load("/one/library.so", "k1")
    assert loaded == [(Path("/one/library.so"), "k1")]
    with pytest.raises(profiler_child.Refusal, match="a new one is needed"):
        child._load("/another/library.so", "k2")


def test_a_library_that_does_not_load_is_named(child: Child, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(path: Path, key: str) -> None:
        raise OSError("undefined symbol: _ZN3c10")

    monkeypatch.setattr(_library, "load", fails)
    monkeypatch.setattr(child, "_library", None)
    with pytest.raises(profiler_child.Refusal, match=r"library\.so does not load: undefined symbol"):
        child._load("/one/library.so", "k1")


def test_a_line_that_is_no_request_is_refused_with_its_id_where_it_has_one() -> None:
    replies = io.BytesIO()
    lines = b'{"id": 7}\nnot json\n' + json.dumps({"type": "CountRequest", "id": "x"}).encode() + b"\n"
    profiler_child.serve(io.BytesIO(lines), replies, lambda request: pytest.fail("nothing to answer"))
    found = [decode_reply(line) for line in replies.getvalue().splitlines()]
    assert [reply.id for reply in found] == [7, -1, -1]
    assert all(isinstance(reply, CountRefused) for reply in found)
