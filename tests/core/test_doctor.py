"""The doctor's list: levels, order and actions."""

from __future__ import annotations

import msgspec

from app.core import messages as m
from app.core.build import BuildState
from app.core.doctor import LEVELS, Check, checks, head_counts
from tests import factories


def by_id(found: tuple[Check, ...]) -> dict[str, Check]:
    return {check.id: check for check in found}


def test_failures_come_first_and_the_head_counts_all_four_levels() -> None:
    made = factories.recording(rounds=5)
    factories.telemetry(made)
    found = checks(made.environment, made.build, made.telemetry, "cuda:0")
    order = [LEVELS.index(check.level) for check in found]
    assert order == sorted(order)
    assert found[0].id == "gpu-cuda:0"
    counts = head_counts(found)
    assert tuple(counts) == LEVELS
    assert sum(counts.values()) == len(found)


def test_a_gpu_that_nobody_asked_for_is_optional() -> None:
    found = by_id(checks(factories.environment(), device="cpu"))
    gpu = found["gpu-cuda:0"]
    assert gpu.level == "optional"
    assert gpu.command.startswith("pip install")
    assert by_id(checks(factories.environment(), device="cuda"))["gpu-cuda:0"].level == "fail"


def test_a_machine_without_gpu_hears_no_word_of_launches() -> None:
    environment = msgspec.structs.replace(
        factories.environment(), devices=factories.environment().devices[:1]
    )
    made = factories.recording(rounds=5)
    factories.telemetry(made)
    found = checks(environment, made.build, made.telemetry, "auto")
    assert by_id(found)["gpu"].level == "optional"
    assert "launch" not in " ".join(f"{c.title} {c.found} {c.action}" for c in found).lower()


def test_a_device_that_is_not_there_at_all_is_a_failure() -> None:
    environment = msgspec.structs.replace(factories.environment(), devices=())
    assert by_id(checks(environment, device="cuda:1"))["gpu"].level == "fail"


def test_ok_lines_ask_for_nothing_and_warnings_ask_for_one_thing() -> None:
    made = factories.recording(rounds=5)
    factories.telemetry(made)
    for check in checks(made.environment, made.build, made.telemetry):
        assert check.found
        assert bool(check.action) == (check.level in ("fail", "warning")) or check.level == "optional"


def test_battery_and_a_lower_clock_are_warnings() -> None:
    made = factories.recording(rounds=5)
    factories.telemetry(made)
    found = by_id(checks(made.environment, made.build, made.telemetry))
    assert found["power"].level == "warning"
    assert found["clock"].level == "warning"
    assert "31" in found["clock"].found
    assert found["load"].level == "ok"


def test_readings_that_a_machine_does_not_offer_are_not_made_up() -> None:
    found = by_id(checks(factories.environment(), telemetry=[m.Telemetry(at_s=1.0)]))
    assert found["clock"].level == "optional"
    assert not {"power", "load", "heat"} & set(found)


def test_other_programs_and_a_full_memory_are_warnings() -> None:
    readings = [
        m.Telemetry(at_s=float(i), others_percent=40.0, memory_used_bytes=8_000, memory_total_bytes=9_000)
        for i in range(5)
    ]
    found = by_id(checks(factories.environment(), telemetry=readings))
    assert (found["load"].level, found["memory"].level) == ("warning", "warning")


def test_the_build_is_told_in_every_state() -> None:
    build = BuildState()
    assert by_id(checks(None, build))["extension"].level == "optional"
    build.apply(m.BuildStep("check", "started"))
    assert "being built" in by_id(checks(None, build))["extension"].found
    build.apply(m.BuildFailed("no_compiler", "No C++ compiler.", remedies=("Install g++.",)))
    failed = by_id(checks(None, build))["extension"]
    assert (failed.level, failed.action) == ("fail", "Install g++.")
    build.apply(m.BuildFailed("cancelled", "The build was cancelled."))
    assert by_id(checks(None, build))["extension"].level == "warning"
    made = factories.recording(rounds=5)
    assert "self-test passed" in by_id(checks(made.environment, made.build))["extension"].found


def test_more_threads_than_processors_is_a_warning() -> None:
    environment = msgspec.structs.replace(factories.environment(), threads=8)
    threads = by_id(checks(environment))["threads"]
    assert threads.level == "warning"
    assert "OMP_NUM_THREADS=2" in threads.action


def test_nothing_known_is_said_and_is_no_failure() -> None:
    (only,) = checks(None)
    assert only.level == "warning"
