from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.core.fields import fields_of
from app.core.workload import Workload, nearest_divisors


def test_every_field_is_declared_with_title_and_help() -> None:
    fields = fields_of(Workload)
    assert list(fields) == [
        "batch", "seq_len", "embed_dim", "num_heads", "causal", "mode", "dtype", "device",
    ]  # fmt: skip
    assert all(field.title and field.help for field in fields.values())
    assert all(fields[name].steps for name in ("batch", "seq_len", "embed_dim", "num_heads"))


def test_defaults_and_steps_are_valid_values() -> None:
    for field in fields_of(Workload).values():
        assert field.check(field.default, field.name) == field.default
        for step in field.steps:
            assert field.check(step, field.name) == step


def test_heads_that_do_not_divide_name_the_nearest_that_do() -> None:
    (problem,) = Workload(embed_dim=128, num_heads=12).problems
    assert problem.sentence == "128 does not divide by 12"
    assert problem.nearest == (8, 16)


@given(st.integers(1, 5000), st.integers(1, 1024))
def test_nearest_divisors_divide_and_enclose(number: int, wanted: int) -> None:
    found = nearest_divisors(number, wanted, 1024)
    assert found
    assert all(number % d == 0 and 1 <= d <= 1024 for d in found)


def test_flops_of_a_hand_counted_layer() -> None:
    # B=1, S=2, E=4: four products [2,4]x[4,4] are 4*2*2*16 = 256; attention 2*2*S*S*E = 64.
    assert Workload(batch=1, seq_len=2, embed_dim=4, num_heads=2, causal=False).flops == 256 + 64
    # Causal keeps 3 of 4 scores.
    assert Workload(batch=1, seq_len=2, embed_dim=4, num_heads=2, causal=True).flops == 256 + 48
    both = Workload(batch=1, seq_len=2, embed_dim=4, num_heads=2, causal=False, mode="forward_backward")
    assert both.flops == 3 * 320


def test_figures_of_a_hand_counted_decoding_step() -> None:
    # B=3, E=4, 5 cached: four products [3,4]x[4,4] are 4*2*3*16; two of 6 scores and sums per feature 2*2*3*6*4.
    step = Workload(batch=3, seq_len=5, embed_dim=4, num_heads=2, mode="decode", dtype="float16")
    assert step.flops == 384 + 288
    assert step.cache_bytes == 2 * 3 * 6 * 4 * 2
    assert step.working_set_bytes == (2 * 3 * 4 + 4 * 16 + 4 * 4) * 2 + step.cache_bytes
    assert step.label == "3×1×4 after 5 cached, 2 heads, decode, float16"
    assert not step.backward
    assert Workload().cache_bytes == 0


def test_decoding_is_causal_and_says_why() -> None:
    assert Workload(mode="decode").problems == ()
    (problem,) = Workload(mode="decode", causal=False).problems
    assert (problem.field, problem.nearest) == ("causal", ())
    assert "every token before it" in problem.sentence


def test_working_set_of_two_workloads_counted_by_hand() -> None:
    small = Workload(batch=1, seq_len=2, embed_dim=4, num_heads=2)
    assert small.working_set_bytes == (2 * 8 + 4 * 16 + 4 * 4) * 4
    trained = Workload(batch=2, seq_len=3, embed_dim=8, num_heads=2, mode="forward_backward", dtype="float16")
    assert trained.working_set_bytes == (2 * 48 + 4 * 64 + 4 * 8) * 2 * 2
