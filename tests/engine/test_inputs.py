"""One seeded set of numbers for every contender, and a process left as it was."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from app.engine.implementations import native, sdpa
from app.engine.inputs import PARTS, cache_of, make_inputs, on_batch_slice
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


def test_a_decoding_step_starts_from_seeded_tokens_that_nobody_changes():
    workload = with_(TINY, mode="decode")
    inputs, again = make_inputs(workload), make_inputs(workload)
    assert inputs.x.shape == (TINY.batch, 1, TINY.embed_dim)
    assert inputs.cached is not None
    assert again.cached is not None
    assert inputs.cached.keys.shape == (TINY.batch, TINY.num_heads, TINY.seq_len, TINY.head_dim)
    step = native.prepare(workload, inputs)
    first = step()
    assert torch.equal(step(), first)
    assert torch.equal(inputs.cached.keys, again.cached.keys)
    assert torch.equal(inputs.cached.values, again.cached.values)
    assert make_inputs(TINY).cached is None


def test_a_decoding_step_is_the_last_row_of_the_causal_pass():
    workload = with_(TINY, mode="decode", dtype="float64")
    inputs = make_inputs(workload)
    tokens = torch.randn(TINY.batch, TINY.seq_len + 1, TINY.embed_dim, dtype=torch.float64)
    whole = native.self_attention(tokens, *inputs.parts.values(), num_heads=TINY.num_heads, causal=True)
    cached = cache_of(inputs.layer, tokens[:, :-1])
    inputs = dataclasses.replace(inputs, x=tokens[:, -1:].contiguous(), cached=cached)
    for contender in (native, sdpa):
        torch.testing.assert_close(contender.prepare(workload, inputs)(), whole[:, -1:])


def test_a_batch_slice_of_a_decoding_step_keeps_its_cache():
    inputs = make_inputs(with_(TINY, batch=4, mode="decode"))
    part = on_batch_slice(inputs, 1)
    whole = native.prepare(inputs.workload, inputs)()
    torch.testing.assert_close(native.prepare(part.workload, part)(), whole[:1])


def test_a_batch_slice_computes_the_first_sequences():
    inputs = make_inputs(with_(TINY, batch=4))
    part = on_batch_slice(inputs, 1)
    whole = native.prepare(inputs.workload, inputs)()
    sliced = native.prepare(part.workload, part)()
    torch.testing.assert_close(sliced, whole[:1])
