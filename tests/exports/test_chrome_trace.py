"""Writing a contender's trace to a file."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from app.core.trace import facts, read
from app.core.workload import Workload
from app.exports import chrome_trace
from app.exports.chrome_trace import TraceExportError, export, file_name, folder_name
from tests.core.synthetic_trace import Maker

NAME = 'a "b" \\ \U0001f642 é'


def stored() -> bytes:
    return gzip.compress(Maker().mark(0, 10, NAME).op("aten::mm", 1, 2).json())


@pytest.mark.parametrize("ending", [".json", ".json.gz"])
def test_the_folder_is_made_and_the_file_says_what_was_stored(tmp_path: Path, ending: str) -> None:
    path = export(stored(), tmp_path / "not yet" / "there" / f"native{ending}")
    data = path.read_bytes()
    document = json.loads(gzip.decompress(data) if ending.endswith("gz") else data)
    assert document["traceEvents"][0]["name"] == NAME
    assert facts(read(path)) == facts(read(stored()))
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_exporting_twice_under_two_names_gives_the_same_twice(tmp_path: Path) -> None:
    first, second = export(stored(), tmp_path / "a.json"), export(stored(), tmp_path / "b.json")
    assert first.read_bytes() == second.read_bytes()


def test_an_older_file_is_replaced_only_by_a_whole_one(tmp_path: Path) -> None:
    path = export(stored(), tmp_path / "a.json")
    before = path.read_bytes()
    with pytest.raises(TraceExportError, match="damaged"):
        export(stored()[:-20], path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "no profile pass has kept one"),
        (b"no gzip", "damaged"),
        (gzip.compress(b"no json"), "damaged"),
        (gzip.compress(b"{}"), "damaged"),
        (gzip.compress(b'{"traceEvents": []}'), "no events"),
    ],
)
def test_what_is_no_trace_is_not_written(tmp_path: Path, data: bytes, says: str) -> None:
    with pytest.raises(TraceExportError, match=says):
        export(data, tmp_path / "a.json")
    assert list(tmp_path.iterdir()) == []


def test_another_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceExportError, match=r"\.json or \.json\.gz"):
        export(stored(), tmp_path / "a.csv")


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(TraceExportError, match=r"file.*cannot be written"):
        export(stored(), tmp_path / "file" / "a.json")


def test_the_file_is_called_after_the_implementation() -> None:
    assert file_name("extension-aten") == "extension-aten.json.gz"


def test_a_trace_that_expands_beyond_all_measure_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chrome_trace, "MAX_EXPANDED_BYTES", 10_000)
    bomb = gzip.compress(b'{"traceEvents": [' + b" " * 100_000 + b"{}]}")
    with pytest.raises(TraceExportError, match="expands to more than"):
        export(bomb, tmp_path / "t.json")
    assert list(tmp_path.iterdir()) == []


def test_a_decoding_workload_names_its_folder_without_a_mask() -> None:
    assert folder_name(Workload(device="cpu")) == "8x64x128-4heads-causal-forward-float32-cpu"
    step = Workload(1, 128, 512, 8, mode="decode", device="cuda:0")
    assert folder_name(step) == "1x128x512-8heads-decode-float32-cuda0"
