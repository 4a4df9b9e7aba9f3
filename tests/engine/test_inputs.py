"""One seeded set of numbers for every contender, and a process left as it was."""

from __future__ import annotations

import pytest
import torch

from app.engine.implementations import native, sdpa
from app.engine.inputs import PARTS, make_inputs, on_batch_slice
from tests.engine.support import TINY, with_

TRAINING = with_(TINY, mode="forward_backward")


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others():
    first, second, other = make_inputs(TINY, 1), make_inputs(TINY, 1), make_inputs(TINY, 2)
    assert torch.equal(first.x, second.x)
    assert torch.equal(first.layer.in_proj_weight, second.layer.in_proj_weight)
    assert not torch.equal(first.x, other.x)


def test_the_global_random_state_is_left_alone():
    before = torch.get_rng_state()
    make_inputs(TRAINING)
    assert torch.equal(torch.get_rng_state(), before)


def test_parts_are_the_layers_own_memory():
    inputs = make_inputs(TRAINING)
    packed = inputs.layer.in_proj_weight
    width = TRAINING.embed_dim
    assert inputs.parts["k_weight"].data_ptr() == packed[width:].data_ptr()
    assert inputs.parts["out_bias"].data_ptr() == inputs.layer.out_proj.bias.data_ptr()
    assert tuple(inputs.parts) == PARTS


def test_forward_mode_wants_no_gradients_and_training_mode_wants_them():
    assert not any(t.requires_grad for t in (make_inputs(TINY).x, *make_inputs(TINY).parts.values()))
    training = make_inputs(TRAINING)
    assert all(leaf.requires_grad and leaf.is_leaf for leaf in training.leaves)


def test_a_training_step_starts_from_no_gradients_each_time():
    inputs = make_inputs(TRAINING)
    step = inputs.call(native.prepare(TRAINING, inputs))
    step()
    first = inputs.gradients()["q_weight"].clone()
    step()
    assert torch.equal(inputs.gradients()["q_weight"], first)


def test_packed_and_separate_parameters_give_the_same_nine_gradients():
    inputs = make_inputs(with_(TRAINING, dtype="float64"))
    found = []
    for contender in (native, sdpa):
        inputs.clear_gradients()
        inputs.call(contender.prepare(inputs.workload, inputs))()
        found.append({name: tensor.clone() for name, tensor in inputs.gradients().items()})
    assert list(found[0]) == ["x", *PARTS]
    for name in found[0]:
        torch.testing.assert_close(found[0][name], found[1][name])


def test_a_missing_gradient_is_named():
    inputs = make_inputs(TRAINING)
    with pytest.raises(RuntimeError, match="no gradient for x"):
        inputs.gradients()


def test_activations_stay_near_one_at_any_width():
    for width in (16, 512):
        inputs = make_inputs(with_(TINY, embed_dim=width))
        output = native.prepare(inputs.workload, inputs)()
        assert 0.2 < float(output.std()) < 5


def test_a_batch_slice_computes_the_first_sequences():
    inputs = make_inputs(with_(TINY, batch=4))
    part = on_batch_slice(inputs, 1)
    whole = native.prepare(inputs.workload, inputs)()
    sliced = native.prepare(part.workload, part)()
    torch.testing.assert_close(sliced, whole[:1])
