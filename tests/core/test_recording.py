"""A recording takes messages in, drops stale ones, and opens again with everything it had."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from app.core import files
from app.core import messages as m
from app.core.catalog import TWIN, twin_of
from app.core.environment import differences
from app.core.journal import Journal, replay
from app.core.plan import Measure, Plan
from app.core.recording import Recording
from app.core.results import all_entries, entries_of, floor_of
from app.core.workload import Workload
from tests import factories


def samples(generation: int, number: int = 0, pid: int = 1, disturbed: str = "") -> m.Samples:
    pair = (m.Sample(number, 0, 1.0, 2e-4, 5, disturbed), m.Sample(number, 1, 1.1, 1e-4, 5, disturbed))
    return m.Samples(generation, 0, pid, ("native", "sdpa"), pair)


def started(workload: Workload | None = None, generation: int = 1) -> Recording:
    recording = Recording()
    recording.begin(m.Start(generation, Plan((workload or Workload(),), ("native", "sdpa"))))
    return recording


def test_messages_of_an_older_generation_change_nothing() -> None:
    recording = started(Workload(seq_len=16))
    recording.begin(m.Start(2, Plan((Workload(seq_len=32),), ("native", "sdpa"))))
    assert recording.apply(samples(1)) is False
    assert recording.sample_count == 0
    assert recording.apply(samples(2)) is True
    assert recording.current is not None
    assert recording.current.workload.seq_len == 32
    assert recording.sample_count == 2


def test_a_workload_that_comes_back_goes_on_in_its_old_record() -> None:
    recording = started(Workload(seq_len=16))
    recording.apply(samples(1, 0))
    recording.begin(m.Start(2, Plan((Workload(seq_len=32),), ("native", "sdpa"))))
    recording.begin(m.Start(3, Plan((Workload(seq_len=16),), ("native", "sdpa"))))
    recording.apply(samples(3, 0))
    assert len(recording.records) == 2
    assert recording.current is recording.records[0]
    assert recording.records[0].series["native"].rounds.tolist() == [0, 1]


def test_rounds_go_on_after_a_new_worker_starts_counting_at_zero() -> None:
    recording = started()
    for number in range(3):
        recording.apply(samples(1, number, pid=10))
    for number in range(2):
        recording.apply(samples(1, number, pid=11))
    record = recording.records[0]
    assert record.series["sdpa"].rounds.tolist() == [0, 1, 2, 3, 4]
    assert record.sampler_pids == {10, 11}


def test_disturbed_samples_are_kept_and_enter_no_figure() -> None:
    recording = started()
    for number in range(10):
        recording.apply(samples(1, number))
    recording.apply(samples(1, 10, disturbed="build"))
    record = recording.records[0]
    assert len(record.series["native"]) == 11
    native, sdpa = entries_of(record, "native", ("native", "sdpa"))
    assert native.latency is not None
    assert native.latency.n == 10
    assert (native.disturbed, sdpa.disturbed) == (1, 1)
    assert sdpa.speed_up is not None
    assert sdpa.speed_up.rounds == 10


def test_what_was_announced_is_over_once_something_came_of_it() -> None:
    recording = started()
    announced = m.Active(1, 0, "sdpa", "first call")
    for outcome in (
        samples(1),
        m.ContenderState(1, 0, "sdpa", "ready"),
        m.Checked(1, 0, "sdpa", factories.accuracy()),
    ):
        recording.apply(announced)
        assert recording.active == announced
        recording.apply(outcome)
        assert recording.active is None


def test_the_twin_is_filed_under_the_baseline_it_repeats() -> None:
    recording = started()
    batch = m.Samples(1, 0, 1, ("native", TWIN), (m.Sample(0, 0, 1, 1e-4, 1), m.Sample(0, 1, 1, 1e-4, 1)))
    recording.apply(batch)
    record = recording.records[0]
    assert set(record.series) == {"native", twin_of("native")}
    assert [e.implementation for e in entries_of(record, "native", ("native",))] == ["native"]


def test_the_noise_floor_comes_from_the_baselines_own_twin_only() -> None:
    recording = factories.recording(rounds=50)
    record = recording.records[0]
    assert floor_of(record, "native") is not None
    assert floor_of(record, "sdpa") is None


def test_a_wrong_result_withholds_the_speed_up() -> None:
    recording = factories.recording(rounds=50, wrong="grad_v_weight")
    entry = next(e for e in all_entries(recording) if e.implementation == "extension-aten")
    assert entry.latency is not None
    assert entry.speed_up is None
    assert entry.verdict == "unsure"
    assert "grad_v_weight" in (entry.verdict_reason or "")
    assert "4.1e-02" in (entry.verdict_reason or "")


def test_a_rebuilt_extension_keeps_what_the_older_build_measured() -> None:
    recording = factories.recording(rounds=20)
    record = recording.records[0]
    before = len(record.series["extension-aten"])
    recording.apply(m.BuildFinished("/x.so", "99999999", False, 20.0, needs_new_worker=True))
    assert "extension-aten" not in record.series
    assert len(record.series["extension-aten@7f3a91c2"]) == before
    names = [e.implementation for e in entries_of(record, "native", ("native", "extension-aten"))]
    assert names[-1] == "extension-aten@7f3a91c2"


def test_the_last_words_of_a_worker_with_an_older_build_are_not_of_the_new_one() -> None:
    recording = factories.recording(rounds=20)
    record = recording.records[0]
    recording.apply(m.BuildFinished("/x.so", "99999999", False, 20.0, needs_new_worker=True))
    late = m.Samples(1, 0, 4242, ("extension-aten",), (m.Sample(20, 0, 1.0, 5e-4, 4),))
    assert recording.apply(late) is False
    assert recording.apply(factories.counted("extension-aten", True)) is False
    assert "extension-aten" not in record.series
    assert "extension-aten" not in record.counts
    assert recording.plan is not None
    recording.begin(m.Start(2, recording.plan))
    assert recording.apply(msgspec.structs.replace(late, generation=2, pid=4244)) is True
    assert len(record.series["extension-aten"]) == 1


def test_a_build_that_came_back_and_went_again_keeps_all_it_measured() -> None:
    recording = factories.recording(rounds=20)
    record = recording.records[0]
    assert recording.plan is not None
    for generation, key in enumerate(("99999999", "7f3a91c2", "99999999"), 2):
        recording.apply(m.BuildFinished("/x.so", key, False, 20.0, needs_new_worker=True))
        recording.begin(m.Start(generation, recording.plan))
        sample = m.Sample(0, 0, 1.0, 5e-4, 4, f"build {key}")
        recording.apply(m.Samples(generation, 0, 1, ("extension-aten",), (sample,)))
    first = record.series["extension-aten@7f3a91c2"]
    assert first.rounds.tolist() == [*range(20), 21]
    assert first.disturbance(20) == "build 7f3a91c2"
    assert first.disturbance(0) == ""
    assert record.series["extension-aten@99999999"].rounds.tolist() == [20]
    assert record.series["extension-aten"].rounds.tolist() == [22]


def test_the_environment_tells_the_threads_and_the_build_that_were_measured_with() -> None:
    recording = factories.recording(rounds=5)
    told = recording.environment
    assert told is not None
    assert (told.threads, told.extension_key) == (2, "7f3a91c2")
    one = m.Start(2, Plan((Workload(seq_len=8),), ("native",), measure=Measure(threads=1)))
    recording.begin(one)
    assert recording.environment is not None
    assert recording.environment.threads == 1
    (difference,) = differences(told, recording.environment)
    assert (difference.field, difference.ours, difference.theirs) == ("threads", 2, 1)
    assert "never compared" in difference.moves
    recording.begin(m.Start(3, Plan((Workload(),), ("native",))))
    assert recording.environment == told


def test_a_level_that_moved_meanwhile_is_unsure_whatever_the_interval_says() -> None:
    recording = factories.recording(rounds=50, counts=False)
    factories.measure(
        recording, ("native", "mha", "sdpa", "extension-aten"), "native", 50, 20.0,
        dict.fromkeys(factories.MEDIANS_S, 1.5), seed=2, first_round=50,
    )  # fmt: skip
    entry = next(e for e in all_entries(recording) if e.implementation == "sdpa")
    assert entry.verdict == "unsure"
    assert "moved by more than 20 %" in (entry.verdict_reason or "")


def test_saving_and_opening_gives_the_same_document_and_figures(tmp_path: Path) -> None:
    recording = factories.recording(rounds=60)
    factories.telemetry(recording)
    recording.note(factories.START_S + 5, "worker restarted", "warning")
    path = tmp_path / "sub" / "recording.json"
    files.save(recording, path)
    opened = files.load(path)
    assert all_entries(opened) == all_entries(recording)
    assert files.document_of(opened) == files.document_of(recording)
    assert opened.current is not None
    assert opened.current.workload == recording.records[0].workload
    assert opened.build.state == "built"
    stored = json.loads(path.read_text())
    assert not any(result["implementation"].startswith(TWIN) for result in stored["results"])
    assert [result["implementation"] for result in stored["hidden"]] == [twin_of("native")]
    assert opened.records[0].traces_gz == recording.records[0].traces_gz
    assert [p.name for p in path.parent.iterdir()] == ["recording.json"]


def test_the_file_follows_the_contract() -> None:
    document = json.loads(msgspec.json.encode(files.document_of(factories.recording(rounds=60), raw=False)))
    assert document["schema"] == files.SCHEMA
    assert {"environment", "profile", "results"} <= set(document)
    by_name = {r["implementation"]: r for r in document["results"]}
    result = by_name["extension-aten"]
    assert set(result) >= {
        "workload", "implementation", "baseline", "status", "latency", "speed_up", "verdict",
        "verdict_reason", "counts", "accuracy", "memory", "stopped_because",
    }  # fmt: skip
    assert set(result["latency"]) == {"median_s", "q1_s", "q3_s", "p90_s", "p99_s", "min_s", "n"}
    assert {"median", "low", "high", "confidence", "noise_floor"} <= set(result["speed_up"])
    assert result["counts"]["python_calls"] == {"forward": 1, "backward": 1}
    assert result["counts"]["kernel_launches"] is None
    assert result["verdict"] == "faster"
    assert "raw" not in result
    assert not any(name.startswith(TWIN) for name in by_name)


def test_a_journal_cut_off_anywhere_replays_to_what_was_whole(tmp_path: Path) -> None:
    recording = Recording()
    journal = Journal(tmp_path / "j.jsonl")
    start = m.Start(1, Plan((Workload(),), ("native", "sdpa")), live=True)
    recording.begin(start)
    journal.write(start)
    for number in range(20):
        journal.write(samples(1, number))
    journal.close(remove=False)
    whole = journal.path.read_bytes()
    for cut in (len(whole), len(whole) - 1, len(whole) - 40, len(whole) // 2):
        journal.path.write_bytes(whole[:cut])
        opened, unreadable = replay(journal.path)
        complete = whole[:cut].count(b"\n") - 1
        assert opened.sample_count in (2 * complete, 2 * complete + 2)
        assert unreadable <= 1
    journal.close(remove=True)
    assert not journal.path.exists()


def test_what_was_forgotten_stays_forgotten_when_the_journal_is_replayed(tmp_path: Path) -> None:
    plan = Plan((Workload(),), ("native", "sdpa"))
    book = Journal(tmp_path / "j.jsonl")
    live = Recording()
    for message in (
        m.Start(1, plan),
        samples(1, 0),
        samples(1, 1),
        m.Start(2, plan, anew=True),
        samples(2, 0),
    ):
        if isinstance(message, m.Start):
            live.begin(message)
        else:
            live.apply(message)
        book.write(message)
    book.close(remove=False)
    replayed, unreadable = replay(book.path)
    assert unreadable == 0
    assert live.sample_count == replayed.sample_count == 2
    assert replayed.records[0].series["native"].rounds.tolist() == [0]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_journal_on_a_full_disk_still_closes() -> None:
    journal = Journal(Path("/dev/full"))
    journal.write(m.Notice("info", "x", 0.0))
    journal.close(remove=False)


def test_cold_and_warm_samples_of_a_workload_are_kept_apart() -> None:
    workload = Workload(device="cpu")
    made = Recording()
    for generation, cache in enumerate(("warm", "cold", "warm"), 1):
        plan = Plan((workload,), ("native",), measure=Measure(cache=cache))  # type: ignore[arg-type]
        made.begin(m.Start(generation, plan, live=True))
        factories.measure(made, ("native",), "native", 10, 20.0, {}, generation)
    warm, cold = made.records
    assert (warm.cache, cold.cache) == ("warm", "cold")
    assert (len(warm.series["native"]), len(cold.series["native"])) == (20, 10)
    assert made.record_for(workload) is warm
    assert made.record_for(workload, "cold") is cold
    assert cold.label == f"{workload.label}, cold cache"
    opened = files.parse(m.encoded(files.document_of(made)), "file")
    assert [(r.cache, len(r.series["native"])) for r in opened.records] == [("warm", 20), ("cold", 10)]


def test_a_file_of_before_cold_caches_is_warm() -> None:
    document = msgspec.to_builtins(files.document_of(factories.recording(rounds=10)))
    for entry in (*document["results"], *document["hidden"], *document["workloads"]):
        del entry["cache"]
    del document["environment"]["peaks"]
    del document["profile"]["measure"]["cache"]
    opened = files.parse(msgspec.json.encode(document), "file")
    assert [record.cache for record in opened.records] == ["warm"]
    assert opened.environment is not None
    assert opened.environment.peaks == ()
