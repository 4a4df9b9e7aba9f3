"""The rule of accuracy: against float64, beside native's own error."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from app.core.measurements import Accuracy
from app.core.messages import Checked, decode_message, encode
from app.engine import accuracy
from app.engine.implementations import native, sdpa
from app.engine.inputs import make_inputs
from tests.engine.support import TINY, with_

TRAINING = with_(TINY, mode="forward_backward")


def check(prepare: Any, workload: Any = TINY) -> Accuracy:
    reference = accuracy.make_reference(make_inputs(workload))
    return accuracy.compare(accuracy.run_once(prepare, reference.inputs), reference)


def off_by(factor: float) -> Any:
    def prepare(workload: Any, inputs: Any) -> Any:
        forward = native.prepare(workload, inputs)
        return lambda: forward() * factor

    return prepare


def test_native_keeps_its_own_rule():
    assert check(native.prepare).ok
    assert check(native.prepare, TRAINING).ok


def test_a_small_error_in_the_output_is_found():
    result = check(off_by(1 + 1e-5))
    assert not result.ok
    assert result.first_wrong == "output"


def test_a_wrong_gradient_behind_a_right_output_is_found():
    def prepare(workload: Any, inputs: Any) -> Any:
        forward = native.prepare(workload, inputs)

        class Scaled(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, y: torch.Tensor) -> torch.Tensor:
                return y.clone()

            @staticmethod
            def backward(ctx: Any, dy: torch.Tensor) -> torch.Tensor:
                return dy * 1.001

        return lambda: Scaled.apply(forward())

    result = check(prepare, TRAINING)
    assert result.tensors["output"].ok
    assert not result.tensors["grad_x"].ok


def test_not_a_number_is_wrong_and_still_goes_over_the_wire():
    result = check(off_by(math.nan))
    assert not result.ok
    message = Checked(1, 0, "x", result)
    assert not decode_message(encode(message)).accuracy.ok  # type: ignore[union-attr]


def test_a_wrong_shape_is_wrong():
    def prepare(workload: Any, inputs: Any) -> Any:
        forward = native.prepare(workload, inputs)
        return lambda: forward()[:, :1]

    assert not check(prepare).ok


def test_the_bias_of_k_is_measured_by_the_terms_it_sums():
    reference = accuracy.make_reference(make_inputs(with_(TRAINING, seq_len=32)))
    measured = {name: tensor.clone() for name, tensor in reference.exact.items()}
    unit = float(torch.finfo(torch.float32).eps * reference.exact["grad_q_bias"].abs().max())
    assert float(reference.exact["grad_k_bias"].abs().max()) < unit
    measured["grad_k_bias"] += 2 * unit
    assert accuracy.compare(measured, reference).tensors["grad_k_bias"].ok


def test_a_single_token_has_no_gradient_to_q_and_k_and_rounding_there_is_forgiven():
    for dtype in ("float32", "float16"):
        assert check(sdpa.prepare, with_(TRAINING, seq_len=1, dtype=dtype)).ok


def test_in_float64_natives_own_rounding_shows():
    reference = accuracy.make_reference(make_inputs(with_(TINY, dtype="float64", embed_dim=64, seq_len=16)))
    error = reference.native["output"].max_abs
    assert 0 < error < 1e-13


def test_the_float64_reference_equals_native_but_for_rounding():
    inputs = make_inputs(with_(TRAINING, dtype="float64", causal=False))
    reference = accuracy.make_reference(inputs)
    for name, tensor in accuracy.run_once(native.prepare, inputs).items():
        torch.testing.assert_close(tensor, reference.exact[name], rtol=1e-10, atol=1e-12)


def test_errors_come_with_their_direction():
    result = check(off_by(1.01)).tensors["output"]
    assert result.rel_l2 == pytest.approx(0.01, rel=1e-3)
    assert result.cosine == pytest.approx(1.0)
    assert result.native_max_abs < 1e-5


def test_no_gradient_is_left_behind():
    inputs = make_inputs(TRAINING)
    accuracy.run_once(native.prepare, inputs)
    assert all(leaf.grad is None for leaf in inputs.leaves)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"batch": 8, "seq_len": 64, "embed_dim": 128}, 8),
        ({"batch": 65536, "seq_len": 16, "embed_dim": 64}, "some"),
        ({"batch": 4, "seq_len": 65536, "num_heads": 8, "embed_dim": 512}, 0),
        ({"batch": 1, "seq_len": 1, "embed_dim": 65536}, 0),
        ({"batch": 4, "seq_len": 8192, "num_heads": 8, "embed_dim": 512, "mode": "decode"}, "some"),
        ({"batch": 4, "seq_len": 512, "num_heads": 8, "embed_dim": 512, "mode": "decode"}, 4),
    ],
)
def test_large_workloads_are_checked_on_part_of_the_batch_or_not_at_all(changes: Any, expected: Any):
    workload = with_(TINY, **changes)
    batch = accuracy.checked_batch(workload)
    if expected == "some":
        assert 0 < batch < workload.batch
    else:
        assert batch == expected
