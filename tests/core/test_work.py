"""Arithmetic and traffic by formula, against sums by hand; points under a roof."""

from __future__ import annotations

import msgspec
import pytest

from app.core.peaks import Peaks, find, merged
from app.core.work import Traffic, flops_of, phase_of, place, work_of
from app.core.workload import Workload

SMALL = Workload(batch=2, seq_len=3, embed_dim=8, num_heads=2, causal=False, device="cpu")


def peaks(**changes: object) -> Peaks:
    made = Peaks("cpu", "CPU", "float32", 2, "2.13.0", 100e9, 10e9, 1_780_000_000.0, 512, 1 << 27, 20, 2.0)
    return msgspec.structs.replace(made, **changes)


def test_flop_of_each_phase_by_hand() -> None:
    # Four projections of 6 tokens, 8 x 8, and per sequence two products 3 x 3 over all 8 features.
    projections = 4 * 2 * 6 * 8 * 8
    attention = 2 * (2 * 2 * 3 * 3 * 8)
    assert flops_of(SMALL, "forward") == projections + attention
    assert flops_of(SMALL, "backward") == 2 * (projections + attention)
    assert flops_of(SMALL, "step") == 3 * (projections + attention)
    assert flops_of(SMALL, "decode") == 8 * 2 * 64 + 4 * 2 * (3 + 1) * 8


def test_the_work_of_a_workload_is_what_the_workload_itself_says() -> None:
    for mode in ("forward", "forward_backward"):
        for causal in (True, False):
            workload = msgspec.structs.replace(SMALL, mode=mode, causal=causal)
            assert work_of(workload, "native").flops == workload.flops
            assert work_of(workload, "native").phase == phase_of(workload)


def test_a_decoded_token_reads_every_weight_and_the_whole_cache() -> None:
    decode = msgspec.structs.replace(SMALL, mode="decode", causal=True)
    assert phase_of(decode) == "decode"
    assert work_of(decode, "native").flops == decode.flops
    # Two sequences, three tokens cached and one new, 8 features: keys and values of four tokens.
    assert work_of(decode, "extension-fused").bytes == 4 * (8 * 2 * 8 + 4 * 64 + 2 * 2 * 4 * 8)
    assert work_of(decode, "native").bytes == 4 * (16 * 2 * 8 + 4 * 64 + 6 * 2 * 2 * 4 + 2 * 2 * 4 * 8)
    assert work_of(decode, "somebody's own").bytes == decode.working_set_bytes - 4 * 4 * 8


def test_traffic_by_hand() -> None:
    # Of sdpa, forward: the packed projection reads x and writes three, attention reads three and writes one,
    # the last projection reads one and writes one; four weights once. Activations 2 x 3 x 8 of 4 bytes.
    assert work_of(SMALL, "sdpa").bytes == 4 * ((1 + 3 + 3 + 1 + 1 + 1) * 48 + 4 * 64)
    # Native adds copies and six passes over the scores [2, 2, 3, 3] where there is no mask.
    assert work_of(SMALL, "native").bytes == 4 * (14 * 48 + 4 * 64 + 6 * 36)
    masked = msgspec.structs.replace(SMALL, causal=True)
    assert work_of(masked, "native").bytes == 4 * (14 * 48 + 4 * 64 + 8 * 36)


def test_half_precision_halves_the_bytes_and_no_arithmetic() -> None:
    half = msgspec.structs.replace(SMALL, dtype="bfloat16")
    assert work_of(half, "native").bytes * 2 == work_of(SMALL, "native").bytes
    assert work_of(half, "native").flops == work_of(SMALL, "native").flops


@pytest.mark.parametrize("name", ["native", "mha", "sdpa", "compiled", "extension-aten", "extension-fused"])
def test_no_contender_moves_less_than_any_must(name: str) -> None:
    for phase in ("forward", "backward", "step", "decode"):
        assert work_of(SMALL, name, phase).bytes >= work_of(SMALL, "somebody's own", phase).bytes
        assert not work_of(SMALL, name, phase).is_least or (name, phase) == ("mha", "decode")


def test_an_unknown_contender_gets_the_least_and_says_so() -> None:
    work = work_of(SMALL, "somebody's own")
    assert work.is_least
    assert work.bytes == SMALL.working_set_bytes - 4 * 4 * 8  # biases left out


def test_a_step_is_forward_and_backward() -> None:
    forward, backward, step = (work_of(SMALL, "native", phase) for phase in ("forward", "backward", "step"))
    assert step.flops == forward.flops + backward.flops
    assert step.bytes == forward.bytes + backward.bytes


def test_a_formula_is_printed_as_it_is_computed() -> None:
    assert Traffic(14, 4, 8).formula() == "14·B·S·E + 4·E² + 8·B·H·S²"
    assert Traffic(10, 4, 0, 1).formula(decoding=True) == "10·B·E + 4·E² + 2·B·(T+1)·E"
    assert Traffic().formula() == "0"


def test_the_roof_is_the_lower_of_both_ceilings() -> None:
    assert peaks().ridge == 10.0
    assert peaks().roof(1.0) == 10e9
    assert peaks().roof(10.0) == peaks().roof(1000.0) == 100e9


def test_a_point_says_its_distance_in_words() -> None:
    work = work_of(SMALL, "native")
    attainable = peaks().roof(work.intensity)
    point = place("native", work, work.flops / (0.12 * attainable), peaks())
    assert point.memory_bound
    assert point.words == "12\u202f% of the memory roof"
    tall = place("native", work, work.flops / 50e9, peaks(memory=1e12))
    assert not tall.memory_bound
    assert place("native", work, work.flops / (0.0041 * attainable), peaks()).share_text == "0.4\u202f%"
    assert tall.words == "50\u202f% of the compute roof"


def test_peaks_are_found_by_what_they_hold_for() -> None:
    known = (peaks(), peaks(threads=1, compute=50e9), peaks(dtype="bfloat16", compute=5e9))
    found = find(known, "cpu", "float32", 1)
    assert found is not None
    assert found.compute == 50e9
    assert find(known, "cpu", "float16", 2) is None
    assert find(known, "cpu", "float32", 3) is None
    assert find(known, "cuda:0", "float32", 2) is None
    newer = peaks(compute=101e9, measured_at_s=peaks().measured_at_s + 60)
    assert merged(known, newer)[-1] is newer
    assert len(merged(known, newer)) == 3


def test_threads_do_not_matter_on_a_gpu() -> None:
    known = (peaks(device="cuda:0", threads=8),)
    assert find(known, "cuda:0", "float32", 2) is known[0]
