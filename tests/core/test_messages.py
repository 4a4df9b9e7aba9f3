from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core import messages as m
from app.core.plan import Plan
from app.core.supervision import MAX_DEATHS, Supervisor, describe_exit
from app.core.workload import Workload


def test_every_message_survives_the_wire() -> None:
    start = m.Start(3, Plan((Workload(),)), live=True, excluded={"mha": "it crashed"})
    assert m.decode_command(m.encode(start)) == start
    sample = m.Samples(3, 0, 7, ("native",), (m.Sample(0, 0, 1.5, 2e-4, 10, "build", None),))
    assert m.decode_message(m.encode(sample)) == sample
    counted = m.Counted(3, 0, "native", m.Counts(), m.Memory(), 9, trace_gz=b"\x1f\x8b\x00")
    assert m.decode_message(m.encode(counted)) == counted


@given(st.binary(max_size=200))
def test_any_bytes_are_a_message_or_a_protocol_error(data: bytes) -> None:
    with pytest.raises(m.ProtocolError):
        m.decode_message(b"\x00" + data)


@pytest.mark.parametrize(
    "line", [b"", b"{}", b'{"type":"Nothing"}', b'{"type":"Start"}', b"[]", b"nul", b'{"type":"Pause"} x']
)
def test_what_is_no_command_is_refused_with_its_beginning(line: bytes) -> None:
    with pytest.raises(m.ProtocolError, match="protocol 1"):
        m.decode_command(line)


@given(st.lists(st.binary(max_size=30).map(lambda b: b.replace(b"\n", b"")), max_size=8), st.data())
def test_lines_are_cut_the_same_whatever_pieces_they_come_in(lines: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    splitter = m.LineSplitter()
    found = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += splitter.feed(stream[start:end])
    assert found == [line for line in lines if line.strip()]


def test_a_line_without_end_is_refused_before_it_fills_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(m, "MAX_LINE_BYTES", 1000)
    splitter = m.LineSplitter()
    for _ in range(10):
        splitter.feed(b"x" * 100)
    with pytest.raises(m.ProtocolError, match="1,000"):
        splitter.feed(b"x")


ACTIVE = m.Active(1, 0, "mine", "first call")


def test_a_fault_during_a_first_call_is_blamed_on_its_contender_at_once() -> None:
    decision = Supervisor().worker_died(-11, ACTIVE)
    assert (decision.restart, decision.blamed) == (True, "mine")
    assert "SIGSEGV" in decision.sentence
    assert "mine" in decision.sentence


def test_a_kill_from_outside_is_forgiven_once() -> None:
    supervisor = Supervisor()
    first = supervisor.worker_died(-9, ACTIVE)
    assert (first.restart, first.blamed, first.careful) == (True, None, True)
    assert supervisor.worker_died(-9, ACTIVE).blamed == "mine"


def test_a_death_that_nothing_explains_is_run_again_carefully_but_not_for_ever() -> None:
    supervisor = Supervisor()
    decisions = [supervisor.worker_died(-9, None) for _ in range(MAX_DEATHS + 1)]
    assert all(d.restart and d.careful and d.blamed is None for d in decisions[:-1])
    assert not decisions[-1].restart


@pytest.mark.parametrize(
    ("status", "word"),
    [
        (-11, "SIGSEGV"),
        (-9, "SIGKILL"),
        (-15, "SIGTERM"),
        (3, "status 3"),
        (0xC0000005, "0xC0000005"),
        (-99, "99"),
    ],
)
def test_an_exit_is_described_in_words(status: int, word: str) -> None:
    assert word in describe_exit(status)


def test_a_name_that_is_not_utf_8_crosses_with_question_marks() -> None:
    finished = m.BuildFinished("/cache/c\udcff/x.so", "key", cached=False, seconds=1.0)
    assert m.decode_message(m.encode(finished)) == m.BuildFinished("/cache/c?/x.so", "key", False, 1.0)


@pytest.mark.parametrize("part", ['"plan":{"workloads":[]}', '"plan":{"workloads":[{}]},"first_workload":-1'])
def test_a_start_without_a_workload_to_start_with_is_refused(part: str) -> None:
    with pytest.raises(m.ProtocolError, match="protocol 1"):
        m.decode_command(f'{{"type":"Start","generation":1,{part}}}'.encode())
