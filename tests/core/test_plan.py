"""Profiles and flags: every fault is one sentence that names its place."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.environment import Device, Environment
from app.core.launch import profiles
from app.core.plan import (
    MAX_PROFILE_BYTES,
    DeviceError,
    Plan,
    ProfileError,
    apply_override,
    copy_as_command,
    made_out_device,
    on_devices,
    plan_from,
    read_profile,
)
from app.core.workload import Workload


def write(folder: Path, text: str) -> Path:
    path = folder / "p.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_every_shipped_profile_is_valid() -> None:
    names = {path.stem for path in profiles()}
    assert {"quick", "seed_table", "accuracy", "single_token", "training_step", "decode"} <= names
    for path in profiles():
        plan = read_profile(path)
        assert plan.title != "Untitled"
        assert plan.about


def test_seed_table_crosses_its_axes() -> None:
    plan = read_profile(next(p for p in profiles() if p.stem == "seed_table"))
    assert len(plan.workloads) == 2 * 4 * 3
    assert {w.embed_dim for w in plan.workloads} == {64, 128, 256, 512}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("\"a\\nb\\u001b[31m\" = 1", ["a b", "unknown key"]),
        ("titel = 'x'", ["titel", "unknown key", "title"]),
        ("[workload]\nbatches = 8", ["workload.batches", "unknown key", "batch"]),
        ("[workload]\nbatch = '8'", ["workload.batch", '"8"', "whole number"]),
        ("[workload]\nbatch = 8.5", ["workload.batch", "8.5", "whole number"]),
        ("[workload]\nbatch = true", ["workload.batch", "true", "whole number"]),
        ("[workload]\nbatch = -3", ["workload.batch", "-3", "from 1 to 65,536"]),
        ("[workload]\nbatch = 0", ["workload.batch", "from 1"]),
        ("[workload]\nseq_len = 99999999999999", ["workload.seq_len", "131,072"]),
        ("[workload]\nseq_len = " + "9" * 4000, ["workload.seq_len"]),
        ("[workload]\nseq_len = nan", ["workload.seq_len", "nan"]),
        ("[workload]\ncausal = 1", ["workload.causal", "true or false"]),
        ("[workload]\nmode = 'sideways'", ["workload.mode", "forward, forward_backward"]),
        ("[workload]\ndtype = 'float8'", ["workload.dtype", "float32"]),
        ("[workload]\ndevice = 'tpu'", ["workload.device", "tpu", "cpu"]),
        ("[workload]\nnum_heads = 12", ["num_heads = 12", "divisor of embed_dim 128, such as 8 or 16"]),
        ("[workload]\nmode = 'decode'\ncausal = false", ["workload.causal = false: expected true", "decode"]),
        ("[measure]\nmax_seconds = nan", ["measure.max_seconds", "nan"]),
        ("[measure]\nmax_seconds = inf", ["measure.max_seconds", "inf"]),
        ("[measure]\nmax_seconds = -1", ["measure.max_seconds", "-1"]),
        ("[measure]\ntarget_ci = 'x'", ["measure.target_ci"]),
        ("measure = 3", ["measure", "table"]),
        ("workload = [1]", ["workload", "table"]),
        ("implementations = []", ["implementations"]),
        ("implementations = ['native', 'magic']", ["implementations[1]", "magic"]),
        ("implementations = [3]", ["implementations[0]", "3"]),
        ("baseline = 'magic'", ["baseline", "magic"]),
        ("baseline = 'sdpa'\nimplementations = ['native']", ["baseline", "sdpa", "native"]),
        ("[sweep]\nseq_len = 16", ["sweep.seq_len", "list"]),
        ("[sweep]\nseq_len = []", ["sweep.seq_len", "list"]),
        ("[sweep]\nseq_len = [16, -1]", ["sweep.seq_len[1]", "-1"]),
        ("[sweep]\nheads = [1]", ["sweep.heads", "unknown key"]),
        ("[workload]\nembed_dim = 7\n[sweep]\nnum_heads = [2, 3]", ["sweep", "does not divide"]),
        ("a = ", ["TOML"]),
        ("[workload]\nbatch = 1\nbatch = 2", ["TOML"]),
        ("x = " + "[" * 20000, ["TOML"]),
    ],
)  # fmt: skip
def test_a_fault_in_a_profile_names_file_and_place(tmp_path: Path, text: str, words: list[str]) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ProfileError) as caught:
        read_profile(path)
    sentence = str(caught.value)
    assert sentence.startswith(str(path))
    assert "\n" not in sentence
    for word in words:
        assert word in sentence
    assert len(sentence) < 400 + len(str(path))


def test_a_huge_file_is_refused_by_its_size_without_being_read(tmp_path: Path) -> None:
    path = tmp_path / "big.toml"
    with path.open("wb") as file:
        file.truncate(100_000_000)
    with pytest.raises(ProfileError, match=r"is 100\.0 MB"):
        read_profile(path)
    assert MAX_PROFILE_BYTES < 100_000_000


@pytest.mark.parametrize("kind", ["missing", "folder", "binary"])
def test_what_is_no_text_file_is_refused_by_name(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x.toml"
    if kind == "folder":
        path.mkdir()
    elif kind == "binary":
        path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ProfileError, match=r"x\.toml"):
        read_profile(path)


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=10,
))  # fmt: skip
def test_any_value_anywhere_is_taken_or_refused_by_a_sentence(value: object) -> None:
    for key in ("workload", "sweep", "measure", "implementations", "baseline", "title"):
        for document in ({key: value}, {key: {"batch": value}}, {key: {"max_seconds": value}}):
            sentence = ""
            try:
                assert plan_from(document).workloads
            except ProfileError as error:
                sentence = str(error)
            assert "\n" not in sentence


@pytest.mark.parametrize(
    ("flag", "read"),
    [
        ("workload.seq_len=128", lambda p: p.workloads[0].seq_len == 128),
        ("workload.causal=false", lambda p: p.workloads[0].causal is False),
        ("measure.max_seconds=0.5", lambda p: p.measure.max_seconds == 0.5),
        ("sweep.seq_len=16,32", lambda p: [w.seq_len for w in p.workloads] == [16, 32]),
        ("implementations=native,sdpa", lambda p: p.implementations == ("native", "sdpa")),
        ("baseline=sdpa", lambda p: p.baseline == "sdpa"),
    ],
)
def test_a_flag_changes_the_plan(tmp_path: Path, flag: str, read: object) -> None:
    assert read(read_profile(write(tmp_path, ""), [flag]))  # type: ignore[operator]


@pytest.mark.parametrize(
    ("flag", "word"),
    [
        ("seq_len=3", "table.key=value"),
        ("workload.seq_len", "table.key=value"),
        ("workload.seq=3", "unknown key"),
        ("other.x=3", "unknown key"),
        ("workload.seq_len=many", "whole number"),
        ("workload.seq_len=-1", "-1"),
        ("workload.seq_len=nan", "nan"),
        ("workload.seq_len=" + "9" * 5000, "whole number"),
        ("measure.max_seconds=1e999", "inf"),
        ("workload.causal=maybe", "true or false"),
        ("workload.num_heads=3", "divisor"),
    ],
)
def test_a_fault_in_a_flag_names_it(tmp_path: Path, flag: str, word: str) -> None:
    with pytest.raises(ProfileError) as caught:
        read_profile(write(tmp_path, ""), [flag])
    assert word in str(caught.value)
    assert len(str(caught.value)) < 500 + len(str(tmp_path))


def test_cells_of_a_sweep_that_cannot_run_are_kept_with_their_reason() -> None:
    plan = plan_from({"workload": {"embed_dim": 128}, "sweep": {"num_heads": [3, 4]}})
    assert [w.num_heads for w in plan.workloads] == [4]
    assert plan.skipped[0].values == {"num_heads": 3}
    assert "128 does not divide by 3" in plan.skipped[0].reason


def test_a_sweep_over_modes_leaves_out_decoding_that_is_not_causal() -> None:
    plan = plan_from({"sweep": {"mode": ["forward", "decode"], "causal": [True, False]}})
    assert [(w.mode, w.causal) for w in plan.workloads] == [
        ("forward", True), ("forward", False), ("decode", True),
    ]  # fmt: skip
    assert plan.skipped[0].values == {"mode": "decode", "causal": False}
    assert "every token before it" in plan.skipped[0].reason


def test_a_flag_of_the_workload_takes_the_place_of_an_axis_of_the_sweep() -> None:
    document = {"workload": {"batch": 2}, "sweep": {"seq_len": [16, 64], "embed_dim": [128, 256]}}
    apply_override(document, "workload.seq_len=32")
    assert [(w.seq_len, w.embed_dim) for w in plan_from(document).workloads] == [(32, 128), (32, 256)]
    apply_override(document, "workload.embed_dim=64")
    assert [(w.seq_len, w.embed_dim) for w in plan_from(document).workloads] == [(32, 64)]
    apply_override(document, "sweep.seq_len=8,16")
    assert [w.seq_len for w in plan_from(document).workloads] == [8, 16]


GPU = Device("cuda:0", "CUDA:0 · card", usable=False, reason="no kernels for sm_61", command="pip install x")


CPU = Device("cpu", "a processor")
GOOD = Device("cuda:0", "a card")
NO_CUDA = Device("cuda", "NVIDIA GPU", usable=False, reason="this torch is built for the CPU alone")


@pytest.mark.parametrize(
    ("wanted", "there", "chosen", "usable"),
    [
        ("auto", (CPU,), "cpu", True),
        ("auto", (CPU, GOOD), "cuda:0", True),
        ("auto", (CPU, GPU), "cpu", True),
        ("auto", (CPU, NO_CUDA), "cpu", True),
        ("auto", (), "cpu", True),
        ("cpu", (CPU, GOOD), "cpu", True),
        ("cuda", (CPU, GOOD), "cuda:0", True),
        ("cuda:0", (CPU, GPU), "cuda:0", False),
        ("cuda:3", (CPU, GOOD), "cuda:3", False),
        ("cuda", (CPU,), "cuda", False),
        ("cuda", (CPU, NO_CUDA), "cuda", False),
        ("cuda:1", (CPU, NO_CUDA), "cuda", False),
    ],
)
def test_a_device_is_made_out(wanted: str, there: tuple[Device, ...], chosen: str, usable: bool) -> None:
    workload, device = made_out_device(Workload(device=wanted), there)
    assert (workload.device, device.usable) == (chosen, usable)
    assert usable or device.reason


def test_auto_takes_a_usable_gpu_and_otherwise_the_cpu() -> None:
    plan = Plan((Workload(),))
    cpu = Device("cpu", "CPU")
    assert on_devices(plan, Environment(devices=(cpu,))).workloads[0].device == "cpu"
    assert on_devices(plan, Environment(devices=(cpu, GPU))).workloads[0].device == "cpu"
    good = Device("cuda:1", "other")
    assert on_devices(plan, Environment(devices=(cpu, GPU, good))).workloads[0].device == "cuda:1"


def test_a_device_that_cannot_be_used_is_refused_with_the_way_out() -> None:
    plan = Plan((Workload(device="cuda"),))
    with pytest.raises(DeviceError, match=r"no kernels for sm_61.*pip install x"):
        on_devices(plan, Environment(devices=(Device("cpu", "CPU"), GPU)))
    with pytest.raises(DeviceError, match="no such device here; there is cpu"):
        on_devices(plan, Environment(devices=(Device("cpu", "CPU"),)))
    with pytest.raises(DeviceError, match="device = cuda: NVIDIA GPU: this torch is built for the CPU alone"):
        on_devices(plan, Environment(devices=(CPU, NO_CUDA)))


def test_the_copied_command_measures_the_same_workload() -> None:
    import shlex

    from app.core.launch import find_profile

    workload = Workload(batch=3, seq_len=17, causal=False, mode="forward_backward", device="cpu")
    words = shlex.split(copy_as_command(workload, ("native", "sdpa"), "sdpa", "quick"))
    assert words[:2] == ["attnscope", "run"]
    plan = read_profile(find_profile(words[2]), words[4::2])
    assert plan.workloads == (workload,)
    assert (plan.implementations, plan.baseline) == (("native", "sdpa"), "sdpa")


def test_a_byte_order_mark_is_no_part_of_a_profile(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_bytes(b"\xef\xbb\xbf[workload]\nbatch = 3\n")
    assert read_profile(path).workloads[0].batch == 3


def test_what_is_no_file_has_the_size_that_was_read() -> None:
    if not Path("/dev/zero").exists():
        pytest.skip("no /dev/zero")
    with pytest.raises(ProfileError, match=r"is 1\.0 MB"):
        read_profile(Path("/dev/zero"))
