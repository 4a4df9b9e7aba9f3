"""Three latencies are kept apart; where one does not apply it is null and says so, never zero."""

from __future__ import annotations

import csv
import io
import json

import msgspec
import pytest

from app.core import messages as m
from app.core.files import document_of, parse
from app.core.latencies import LATENCIES, NOT_ON_A_CPU, latencies_of
from app.core.measurements import Counts
from app.core.recording import Recording
from app.core.results import Entry, entries_of
from app.core.workload import Workload
from app.exports.formats import FORMATS
from tests import factories


def entry(made: Recording, name: str = "sdpa") -> Entry:
    return next(e for e in entries_of(made.records[0], "native", (name,)))


def on_gpu() -> Recording:
    made = factories.recording(Workload(mode="forward", device="cuda:0"), rounds=30, counts=False)
    samples = tuple(m.Sample(100 + i, 2, factories.START_S + 60 + i, 5e-4, 4, "", 3e-4) for i in range(30))
    names = ("native", "mha", "sdpa", "extension-aten")
    made.apply(m.Samples(1, 0, 4242, names, samples))
    counts = Counts(kernel_time_s=2e-4, verified=True)
    counted = msgspec.structs.replace(factories.counted("sdpa", False), counts=counts, profiled_seconds=1e-3)
    made.apply(counted)
    return made


def test_on_a_cpu_two_of_three_do_not_apply_and_are_null() -> None:
    found = entry(factories.recording(rounds=30)).latencies
    assert found.wall_s is not None
    assert found.device_s is None
    assert found.kernels_s is None
    assert found.absent == {"device_s": NOT_ON_A_CPU, "kernels_s": NOT_ON_A_CPU}


def test_a_cpu_has_none_whatever_a_file_says() -> None:
    found = latencies_of("cpu", 1e-3, 0.0, 0.0, None)
    assert (found.device_s, found.kernels_s) == (None, None)


def test_on_a_gpu_all_three_stand_side_by_side() -> None:
    found = entry(on_gpu()).latencies
    assert found.wall_s is not None
    assert found.device_s == pytest.approx(3e-4)
    assert found.kernels_s == pytest.approx(2e-4)
    assert found.absent == {}


def test_on_a_gpu_what_is_missing_says_why() -> None:
    found = latencies_of("cuda:0", 1e-3, None, None, None, "the profiler did not start")
    assert found.absent["device_s"] == "not measured yet"
    assert found.absent["kernels_s"] == "the profiler did not start"


def test_the_cost_of_profiling_is_profiled_over_unprofiled() -> None:
    found = latencies_of("cpu", 1e-3, None, None, 1.9e-3)
    assert found.profiling_cost == pytest.approx(1.9)
    assert latencies_of("cpu", None, None, None, 1.9e-3).profiling_cost is None
    assert latencies_of("cpu", 1e-3, None, None, None).absent["profiled_s"] == "not measured yet"


def test_each_is_declared_with_words() -> None:
    assert list(LATENCIES) == ["wall_s", "device_s", "kernels_s", "profiled_s", "profiling_cost"]
    assert all(one.title and len(one.description) > 40 for one in LATENCIES.values())


def test_json_and_csv_have_null_not_zero_on_a_cpu() -> None:
    made = factories.recording(rounds=30)
    result = json.loads(FORMATS["json"](made))["results"][0]
    assert result["latencies"]["device_s"] is None
    assert result["latencies"]["absent"]["kernels_s"] == NOT_ON_A_CPU
    assert result["latencies"]["profiling_cost"] > 1
    row = next(csv.DictReader(io.StringIO(FORMATS["csv"](made).decode())))
    assert row["latencies_device_s"] == row["latencies_kernels_s"] == ""
    assert float(row["latencies_profiled_s"]) == pytest.approx(2 * factories.MEDIANS_S["native"])


@pytest.mark.parametrize("form", ["md", "html"])
def test_reports_define_what_they_show(form: str) -> None:
    text = FORMATS[form](factories.recording(rounds=30)).decode()
    assert "does not apply on a CPU" in text
    assert "Profiled" in text
    assert "Device events, µs" not in text
    with_device = FORMATS[form](on_gpu()).decode()
    assert "Device events, µs" in with_device
    assert "Sum of kernels, µs" in with_device
    assert "between two events in the device" in with_device


def test_what_profiling_costs_comes_back_from_a_file() -> None:
    made = factories.recording(rounds=30)
    opened = parse(m.encoded(document_of(made)), "file")
    assert entry(opened).latencies == entry(made).latencies
