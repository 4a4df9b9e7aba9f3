"""The session against a worker without torch: generations, deaths, journals, files."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from pytestqt.qtbot import QtBot

from app.core import files
from app.core import messages as m
from app.core.journal import Journal
from app.core.own import OwnFile, examine
from app.core.plan import Plan
from app.core.workload import Workload
from app.gui import worker_link
from app.gui.journals import Journals
from app.gui.session import Session
from tests import factories
from tests.conftest import ROOT

pytestmark = pytest.mark.gui

Make = Callable[..., Session]


@pytest.fixture
def make(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Make]:
    """Makes sessions whose worker misbehaves as told, and closes them."""
    sessions: list[Session] = []
    monkeypatch.setattr(
        worker_link, "command", lambda *_: [sys.executable, str(ROOT / "tests" / "fake_worker.py")]
    )

    def session(*faults: str, **arguments: object) -> Session:
        monkeypatch.setenv("ATTNSCOPE_FAKE", ",".join(faults))
        made = Session(journals=Journals(tmp_path / "data"), **arguments)  # type: ignore[arg-type]
        sessions.append(made)
        return made

    yield session
    for made in sessions:
        made.close()


def samples(session: Session) -> int:
    record = session.live.current
    return 0 if record is None else sum(len(s) for s in record.series.values())


def test_samples_come_by_themselves_and_a_verdict_follows(make: Make, qtbot: QtBot) -> None:
    session = make()
    session.start()
    qtbot.waitUntil(lambda: samples(session) > 100, timeout=8000)
    snapshot = session.snapshot(60.0)
    assert snapshot.challenger == "extension-fused"
    entry = snapshot.entry("extension-fused")
    assert entry is not None
    assert entry.verdict == "faster"
    assert session.running
    assert session.live.build.state == "built"
    assert session.workload.device == "cpu"


def test_samples_of_an_old_workload_never_appear_under_the_new_one(make: Make, qtbot: QtBot) -> None:
    session = make()
    session.start()
    qtbot.waitUntil(lambda: samples(session) > 10, timeout=8000)
    for length in (8, 16, 32, 128):
        session.set_workload(Workload(seq_len=length, device="cpu"))
        assert session.live.current is not None
        assert session.live.current.workload.seq_len == length
        assert samples(session) == 0
    qtbot.waitUntil(lambda: samples(session) > 10, timeout=3000)
    for record in session.live.records[1:-1]:
        assert not record.series


def test_a_workload_that_cannot_run_changes_nothing(make: Make) -> None:
    session = make()
    before = session.workload
    session.set_workload(Workload(embed_dim=128, num_heads=12))
    assert session.workload == before


def test_a_killed_worker_is_replaced_and_nothing_is_lost(make: Make, qtbot: QtBot) -> None:
    session = make()
    notices: list[str] = []
    session.notice.connect(lambda level, text: notices.append(text))
    session.start()
    qtbot.waitUntil(lambda: samples(session) > 50, timeout=8000)
    before, first = samples(session), session.worker_pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    qtbot.waitUntil(lambda: session.worker_pid not in (None, first) and samples(session) > before + 20)
    assert any("SIGKILL" in text for text in notices)
    assert not session.live.current.status["native"].reason  # type: ignore[union-attr]
    assert any("restarted" in event.text for event in session.live.events)


def test_a_contender_that_crashes_is_marked_and_the_others_go_on(make: Make, qtbot: QtBot) -> None:
    session = make("segfault:mha")
    session.start()
    qtbot.waitUntil(lambda: samples(session) > 30, timeout=10000)
    record = session.live.current
    assert record is not None
    assert record.status["mha"].state == "failed"
    assert "SIGSEGV" in record.status["mha"].reason
    assert {"native", "sdpa", "extension-aten"} <= set(record.series)
    assert "mha" not in record.series


def test_a_contender_switched_on_again_gets_another_chance(make: Make, qtbot: QtBot) -> None:
    session = make("segfault:mha")
    session.start()
    qtbot.waitUntil(lambda: samples(session) > 30, timeout=10000)
    session.set_enabled(("native", "sdpa"))
    os.environ["ATTNSCOPE_FAKE"] = ""
    session.restart_worker()
    session.set_enabled(("native", "mha", "sdpa"))
    qtbot.waitUntil(lambda: "mha" in session.live.current.series, timeout=8000)  # type: ignore[union-attr]


def test_a_worker_that_cannot_import_torch_is_reported_and_not_restarted(make: Make, qtbot: QtBot) -> None:
    session = make("fatal")
    session.start()
    qtbot.waitUntil(lambda: bool(session.stopped_because), timeout=8000)
    assert "torch cannot be imported" in session.stopped_because
    assert "Install it again" in session.stopped_because
    assert not session.running


def test_lines_that_are_no_message_are_told_and_skipped(make: Make, qtbot: QtBot) -> None:
    session = make("garbage")
    notices: list[str] = []
    session.notice.connect(lambda level, text: notices.append(text))
    session.start()
    qtbot.waitUntil(lambda: samples(session) > 20, timeout=8000)
    assert sum("not a message" in text for text in notices) == 2


def test_pausing_stops_the_samples_and_going_on_brings_them_back(make: Make, qtbot: QtBot) -> None:
    session = make()
    session.start()
    qtbot.waitUntil(lambda: samples(session) > 20, timeout=8000)
    session.pause()
    qtbot.wait(150)
    before = samples(session)
    qtbot.wait(200)
    assert samples(session) == before
    assert session.stale_s is None
    session.resume()
    qtbot.waitUntil(lambda: samples(session) > before, timeout=3000)


def test_a_pause_outlives_a_change_of_the_workload(make: Make, qtbot: QtBot) -> None:
    session = make()
    session.start()
    qtbot.waitUntil(lambda: samples(session) > 20, timeout=8000)
    session.pause()
    session.set_workload(Workload(seq_len=8, device="cpu"))
    qtbot.wait(300)
    assert session.paused
    assert samples(session) <= 2 * len(session.enabled)


def test_a_silent_worker_is_called_stale_after_three_seconds(make: Make, qtbot: QtBot) -> None:
    now = [1000.0]
    session = make("silent", clock=lambda: now[0])
    session.start()
    qtbot.waitUntil(lambda: session.live.build.state == "built", timeout=8000)
    session.live.active = None
    assert session.stale_s is None
    now[0] += 2.9
    assert session.stale_s is None
    now[0] += 3.1
    assert session.stale_s == pytest.approx(6.0)


def test_a_worker_that_never_gets_ready_is_stale_after_a_minute(make: Make, qtbot: QtBot) -> None:
    now = [1000.0]
    session = make("slow-start", clock=lambda: now[0])
    session.start()
    now[0] += 59.0
    assert session.stale_s is None
    now[0] += 2.0
    assert session.stale_s == pytest.approx(61.0)


def test_a_new_build_starts_a_new_worker_and_keeps_the_samples(make: Make, qtbot: QtBot) -> None:
    session = make("rebuild")
    session.start()
    qtbot.waitUntil(lambda: samples(session) > 50, timeout=8000)
    before, first = samples(session), session.worker_pid
    session.build(clean=True)
    qtbot.waitUntil(lambda: session.worker_pid not in (None, first) and samples(session) > before)
    record = session.live.current
    assert record is not None
    assert "extension-aten@first000" in record.series


def test_a_worker_inside_a_long_call_is_replaced_when_the_workload_changes(make: Make, qtbot: QtBot) -> None:
    session = make("stuck")
    session.start()
    qtbot.waitUntil(lambda: samples(session) > 5, timeout=8000)
    first = session.worker_pid
    session.set_workload(Workload(seq_len=8, device="cpu"))
    qtbot.waitUntil(lambda: samples(session) > 5, timeout=10000)
    assert session.worker_pid != first
    assert any("long call" in event.text for event in session.live.events)


def test_closing_is_bounded_even_for_a_worker_that_does_not_listen(make: Make, qtbot: QtBot) -> None:
    session = make("deaf")
    session.start()
    qtbot.waitUntil(lambda: samples(session) > 5, timeout=8000)
    begun = time.monotonic()
    session.close()
    assert time.monotonic() - begun < 3.0


def test_a_session_that_crashed_is_offered_again_with_all_its_samples(
    make: Make, qtbot: QtBot, tmp_path: Path
) -> None:
    session = make()
    session.start()
    qtbot.waitUntil(lambda: samples(session) > 50, timeout=8000)
    session._flush()
    (journal,) = (tmp_path / "data" / "unsaved").glob("*.jsonl")
    crashed = tmp_path / "data" / "unsaved" / "20260101-120000-99.jsonl"
    crashed.write_bytes(journal.read_bytes() + b'{"type":"Sam')
    session.close()

    later = make()
    offered: list[object] = []
    later.recovered_available.connect(offered.extend)
    later.start()
    assert [found.path for found in offered] == [crashed]  # type: ignore[attr-defined]
    later.open_recording(crashed)
    assert later.recording.sample_count >= 50
    assert later.viewing == crashed
    assert not later.running
    later.resume()
    assert later.viewing is None
    qtbot.waitUntil(lambda: samples(later) > 5, timeout=8000)


def test_a_closed_session_is_not_offered_but_kept_among_the_recent(make: Make, qtbot: QtBot) -> None:
    session = make()
    session.start()
    qtbot.waitUntil(lambda: samples(session) > 5, timeout=8000)
    session.close()
    later = make()
    offered: list[object] = []
    later.recovered_available.connect(offered.extend)
    later.start()
    assert offered == []
    assert len(later.recent_journals()) == 1


def test_a_saved_recording_opens_while_measuring_waits(make: Make, qtbot: QtBot, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    files.save(factories.recording(Workload(seq_len=99, device="cpu"), rounds=40), path)
    session = make()
    session.start()
    qtbot.waitUntil(lambda: samples(session) > 5, timeout=8000)
    session.open_recording(path)
    assert session.workload.seq_len == 99
    live = session.live.sample_count
    qtbot.wait(300)
    assert session.recording.sample_count == 40 * 5
    assert session.live.sample_count <= live + 20
    (tmp_path / "nothing.json").write_text("{}")
    with pytest.raises(files.RecordingError, match=r"nothing\.json"):
        session.open_recording(tmp_path / "nothing.json")
    assert session.viewing == path
    session.close_recording()
    qtbot.waitUntil(lambda: session.running and samples(session) > 0, timeout=8000)


def test_the_window_process_never_loads_torch(make: Make, qtbot: QtBot) -> None:
    session = make()
    session.start()
    qtbot.waitUntil(lambda: samples(session) > 5, timeout=8000)
    import subprocess

    code = "import app.gui.session, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_a_full_disk_under_the_journal_is_said_once_and_measuring_goes_on(
    make: Make, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(self: Journal, message: object) -> None:
        raise OSError(28, "No space left on device")

    session = make()
    said: list[str] = []
    session.notice.connect(lambda level, text: said.append(text))
    monkeypatch.setattr(Journal, "write", write)
    session.start()
    qtbot.waitUntil(lambda: session.live.sample_count > 0, timeout=10_000)
    assert [text for text in said if "No space left" in text] == [
        "unsaved work is no longer kept over a crash: [Errno 28] No space left on device"
    ]
    session.close()
    session._flush()


@pytest.mark.parametrize("when", ["worker starts", "worker dies", "worker restarted"])
def test_an_open_file_outlives_its_worker(make: Make, qtbot: QtBot, tmp_path: Path, when: str) -> None:
    path = tmp_path / "r.json"
    files.save(factories.recording(Workload(seq_len=99, device="cpu"), rounds=40), path)
    session = make()
    if when == "worker starts":
        session.open_recording(path)
        session.start()
    else:
        session.start()
        qtbot.waitUntil(lambda: session.environment is not None, timeout=8000)
        session.open_recording(path)
        if when == "worker dies":
            os.kill(session.worker_pid or 0, signal.SIGKILL)
            qtbot.waitUntil(lambda: session.environment is None, timeout=3000)
        else:
            session.restart_worker()
    qtbot.waitUntil(lambda: session.environment is not None, timeout=8000)
    qtbot.wait(100)
    assert session.viewing == path
    assert session.workload.seq_len == 99
    session.close_recording()
    qtbot.waitUntil(lambda: samples(session) > 5, timeout=8000)


def test_contenders_of_an_open_file_are_compared_anew_and_it_stays_open(make: Make, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    files.save(factories.recording(Workload(device="cpu"), rounds=40), path)
    session = make()
    session.open_recording(path)
    session.set_baseline("sdpa")
    session.set_enabled(("native", "sdpa"))
    session.restart()
    snapshot = session.snapshot(60.0)
    assert session.viewing == path
    assert [entry.implementation for entry in snapshot.entries] == ["native", "sdpa"]
    assert {entry.baseline for entry in snapshot.entries} == {"sdpa"}
    assert snapshot.recorded
    assert not snapshot.paused


def test_what_is_switched_off_goes_out_of_sight_and_its_samples_stay(make: Make, qtbot: QtBot) -> None:
    session = make()
    session.start()
    qtbot.waitUntil(lambda: samples(session) > 30, timeout=8000)
    session.set_enabled(("native", "extension-aten"))
    names = [entry.implementation for entry in session.snapshot(60.0).entries]
    assert names == ["native", "extension-aten"]
    assert len(session.live.current.series["sdpa"])  # type: ignore[union-attr]


def test_figures_that_take_long_are_made_less_often(
    make: Make, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = 0

    def slow(*_: object) -> tuple[()]:
        nonlocal made
        made += 1
        time.sleep(0.05)
        return ()

    monkeypatch.setattr("app.gui.figures.entries_of", slow)
    session = make()
    session.start()
    qtbot.waitUntil(lambda: samples(session) > 5, timeout=8000)
    begun, made = time.monotonic(), 0
    while time.monotonic() - begun < 1.2:
        session.snapshot(60.0)
        qtbot.wait(20)
    assert 1 <= made <= 4
    session.set_baseline("sdpa")
    before = made
    session.snapshot(60.0)
    assert made == before + 1


def a_journal(path: Path, messages: int) -> Path:
    """A journal that takes a while to read."""
    work = Workload(seq_len=99, device="cpu")
    plan = Plan((work,), ("native",), "native", title="Long")
    written = Journal(path)
    written.write(m.Start(1, plan, True))
    for number in range(messages):
        sample = m.Sample(number, 0, 1000.0 + number, 1e-3, 1)
        written.write(m.Samples(1, 0, 7, ("native",), (sample,)))
    written.close(remove=False)
    return path


def test_a_long_journal_is_read_while_the_window_goes_on(
    make: Make, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.gui.recording_reader.SLICE_S", 0.0)
    path = a_journal(tmp_path / "20260101-120000-99.jsonl", 1000)
    session = make()
    session.open_recording(path)
    assert session.viewing is None
    qtbot.waitUntil(lambda: session.viewing == path, timeout=5000)
    assert session.recording.sample_count == 1000
    assert session.workload.seq_len == 99


def test_a_session_closed_while_it_reads_a_journal_reads_no_more(
    make: Make, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.gui.recording_reader.SLICE_S", 0.0)
    session = make()
    session.open_recording(a_journal(tmp_path / "20260101-120000-99.jsonl", 1000))
    session.close()
    qtbot.wait(50)
    assert session.viewing is None


def test_a_long_recording_is_read_while_the_window_goes_on(
    make: Make, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.gui.recording_reader.SLICE_S", 0.0)
    path = tmp_path / "r.json"
    files.save(factories.recording(Workload(seq_len=99, device="cpu"), rounds=40), path)
    session = make()
    session.open_recording(path)
    assert session.viewing is None
    qtbot.waitUntil(lambda: session.viewing == path, timeout=5000)
    assert session.recording.sample_count == 40 * 5


def test_a_recording_that_turns_out_damaged_while_it_is_read_is_one_error(
    make: Make, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.gui.recording_reader.SLICE_S", 0.0)
    path = tmp_path / "r.json"
    files.save(factories.recording(rounds=40), path)
    data = path.read_bytes()
    path.write_bytes(data[: data.index(b'"results"')])
    session = make()
    said: list[tuple[str, str]] = []
    session.notice.connect(lambda level, text: said.append((level, text)))
    session.open_recording(path)
    qtbot.waitUntil(lambda: any(level == "error" for level, _ in said), timeout=5000)
    assert "no sample is left" in said[-1][1]
    assert session.viewing is None


def test_what_of_a_recording_is_missing_is_said_when_it_opens(make: Make, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    files.save(factories.recording(rounds=40), path)
    path.write_bytes(path.read_bytes()[:-400])
    session = make()
    said: list[str] = []
    session.notice.connect(lambda level, text: said.append(text))
    session.open_recording(path)
    assert session.viewing == path
    assert said[-1].startswith("r.json: its end is missing")


def test_only_what_is_in_the_file_counts_as_saved(make: Make) -> None:
    session = make()
    session.live = factories.recording(rounds=5)
    session.saved = False
    count = session.live.sample_count
    factories.measure(session.live, ("native",), "native", 1, 20.0, {}, 1, first_round=5)
    session.recording_saved(count)
    assert not session.saved
    session.recording_saved(session.live.sample_count)
    assert session.saved


def test_a_journal_without_a_measurement_is_one_error_and_no_more(
    make: Make, qtbot: QtBot, tmp_path: Path
) -> None:
    path = tmp_path / "20260101-120000-99.jsonl"
    path.write_bytes(b"no message" + bytes([10]))
    session = make()
    notices: list[str] = []
    session.notice.connect(lambda level, text: notices.append(text))
    with pytest.raises(files.RecordingError, match="no measurement"):
        session.open_recording(path)
    assert notices == []


def test_nothing_is_heard_of_a_worker_after_the_session_closed(make: Make, qtbot: QtBot) -> None:
    session = make()
    session.start()
    qtbot.waitUntil(lambda: samples(session) > 5, timeout=8000)
    heard: list[object] = []
    session.close()
    before = samples(session)
    session.notice.connect(lambda *text: heard.append(text))
    # The event loop may go on, as under a file dialog that is still open, and find more in the pipe.
    assert session._link is not None
    session._link.received.emit(m.Notice("info", "late", 0.0))
    qtbot.wait(100)
    assert samples(session) == before
    assert heard == []


def own_file(folder: Path, text: str = "x = 1\n") -> OwnFile:
    path = folder / "mine.py"
    path.write_text(text)
    return examine(path).file


def starts(session: Session) -> list[m.Start]:
    """What was written down as sent, newest last."""
    journal = session._journal
    assert journal is not None
    journal.flush()
    lines = [line for line in journal.path.read_bytes().splitlines() if b'"type":"Start"' in line]
    found = [m.decode_command(line) for line in lines]
    return [start for start in found if isinstance(start, m.Start)]


def test_an_own_implementation_is_measured_replaced_and_removed(
    make: Make, qtbot: QtBot, tmp_path: Path
) -> None:
    session = make()
    session.start()
    qtbot.waitUntil(lambda: samples(session) > 10, timeout=8000)
    first = own_file(tmp_path)
    session.add_own(first)
    assert session.enabled[-1] == first.id
    assert starts(session)[-1].plan.own == (first,)
    second = own_file(tmp_path, "x = 2\n")
    session.add_own(second)
    assert first.id not in session.enabled
    assert starts(session)[-1].plan.own == (second,)
    session.set_baseline(second.id)
    assert session.baseline == "native"
    session.remove_own(second.id)
    assert starts(session)[-1].plan.own == ()
    assert second.id not in starts(session)[-1].plan.implementations


def test_a_recording_shows_its_own_implementations_and_never_runs_them(
    make: Make, qtbot: QtBot, tmp_path: Path
) -> None:
    file = own_file(tmp_path)
    recording = factories.recording()
    assert recording.plan is not None
    recording.plan = msgspec.structs.replace(
        recording.plan, implementations=(*recording.plan.implementations, file.id), own=(file,)
    )
    files.save(recording, tmp_path / "recording.json")
    session = make()
    sent: list[m.Command] = []
    session.start()
    qtbot.waitUntil(lambda: samples(session) > 10, timeout=8000)
    assert session._link is not None
    send = session._link.send
    session._link.send = lambda command: (sent.append(command), send(command))[1]  # type: ignore[method-assign]
    session.open_recording(tmp_path / "recording.json")
    assert session.own_listed == (file.id,)
    assert file.id in session.enabled
    session.close_recording()
    assert file.id not in session.enabled
    # Even a plan that came from a file as it is.
    plan = recording.plan
    session._send(m.Start(99, plan))
    for command in sent:
        if isinstance(command, m.Start):
            assert command.plan.own == ()
    last = sent[-1]
    assert isinstance(last, m.Start)
    assert last.excluded == {file.id: "the code of mine.py was not confirmed here"}
