"""The contenders that ship: known to the catalog, right by the rule, and honest about the way they take."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from app.core.catalog import CONTENDERS
from app.core.workload import Workload
from app.engine import accuracy
from app.engine.implementations import compiled, extension_fused, mha, native, sdpa, shipped
from app.engine.inputs import Cached, Forward, Inputs, make_inputs
from app.engine.inspection import inspect_call
from tests.engine.support import TINY, with_

PLAIN = ("native", "mha", "sdpa")


def test_registry_and_catalog_agree():
    registry = shipped()
    assert list(registry) == list(CONTENDERS)
    for name, implementation in registry.items():
        assert implementation.id == name
        assert (implementation.needs == "extension") == CONTENDERS[name].needs_extension
        assert implementation.slow_to_prepare == CONTENDERS[name].slow_to_prepare


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize("mode", ["forward", "forward_backward"])
@pytest.mark.parametrize("causal", [True, False])
def test_outputs_and_gradients_keep_the_rule(dtype: str, mode: str, causal: bool):
    inputs = make_inputs(with_(TINY, dtype=dtype, mode=mode, causal=causal, seq_len=12, embed_dim=32))
    reference = accuracy.make_reference(inputs)
    for name in PLAIN:
        result = accuracy.compare(accuracy.run_once(shipped()[name].prepare, inputs), reference)
        assert result.ok, f"{name}: {result.first_wrong}"
        assert len(result.tensors) == (10 if mode == "forward_backward" else 1)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize(("batch", "seq_len", "heads"), [(1, 1, 1), (2, 12, 4)])
def test_decoding_steps_keep_the_rule(dtype: str, batch: int, seq_len: int, heads: int):
    workload = with_(
        TINY, mode="decode", dtype=dtype, batch=batch, seq_len=seq_len, embed_dim=32, num_heads=heads
    )
    inputs = make_inputs(workload)
    reference = accuracy.make_reference(inputs)
    for name in ("native", "sdpa"):
        result = accuracy.compare(accuracy.run_once(shipped()[name].prepare, inputs), reference)
        assert result.ok, f"{name}: {result.first_wrong}"
        assert list(result.tensors) == ["output"]


def test_a_wrong_decoding_step_is_found():
    workload = with_(TINY, mode="decode")
    inputs = make_inputs(workload)
    reference = accuracy.make_reference(inputs)

    def forgetful(workload: Workload, inputs: Inputs) -> Forward:
        """Leaves the oldest token out."""
        assert inputs.cached is not None
        shorter = Cached(inputs.cached.keys[:, :, 1:], inputs.cached.values[:, :, 1:])
        return native.prepare(
            with_(workload, seq_len=workload.seq_len - 1), dataclasses.replace(inputs, cached=shorter)
        )

    result = accuracy.compare(accuracy.run_once(forgetful, inputs), reference)
    assert not result.ok


def test_the_layer_without_a_cache_says_so_in_decode_mode():
    reason = mha.unsupported(with_(TINY, mode="decode"))
    assert reason is not None
    assert "keeps no keys and values" in reason.reason
    assert mha.unsupported(TINY) is None


def test_a_cache_counts_as_what_a_call_needs():
    for name, implementation in shipped().items():
        step = with_(TINY, mode="decode", seq_len=4096)
        if name != "mha":
            assert step.cache_bytes <= implementation.scratch_bytes(step) < 2 * step.cache_bytes


@pytest.mark.build
def test_the_extensions_decoding_steps_keep_the_rule_and_repeat_themselves():
    import self_attention_ext

    try:
        self_attention_ext.load()
    except self_attention_ext.BuildError as error:
        pytest.skip(str(error))
    for dtype in ("float32", "float64", "bfloat16", "float16"):
        workload = with_(TINY, mode="decode", dtype=dtype)
        inputs = make_inputs(workload)
        reference = accuracy.make_reference(inputs)
        for name in ("extension-aten", "extension-fused"):
            result = accuracy.compare(accuracy.run_once(shipped()[name].prepare, inputs), reference)
            assert result.ok, f"{name}: {result.first_wrong}"
            step = shipped()[name].prepare(workload, inputs)
            assert torch.equal(step(), step())


@pytest.mark.parametrize(("heads", "seq_len"), [(1, 1), (3, 5)])
def test_odd_heads_and_a_single_token_run(heads: int, seq_len: int):
    workload = with_(TINY, embed_dim=12, num_heads=heads, seq_len=seq_len, mode="forward_backward")
    inputs = make_inputs(workload)
    reference = accuracy.make_reference(inputs)
    for name in PLAIN:
        result = accuracy.compare(accuracy.run_once(shipped()[name].prepare, inputs), reference)
        assert result.ok, f"{name}: {result.first_wrong}"


def test_causal_is_not_ignored():
    inputs = make_inputs(TINY)
    open_inputs = make_inputs(with_(TINY, causal=False))
    for name in PLAIN:
        prepare = shipped()[name].prepare
        masked, full = prepare(TINY, inputs)(), prepare(open_inputs.workload, open_inputs)()
        assert not torch.allclose(masked[:, 0], full[:, 0])
        torch.testing.assert_close(masked[:, -1], full[:, -1])


def test_sdpa_names_its_backend():
    inputs = make_inputs(TINY)
    with torch.no_grad():
        seen = inspect_call(sdpa.prepare(TINY, inputs), ())
    assert sdpa.path(seen.operators) == "flash"
    assert sdpa.path(frozenset({"_softmax", "bmm"})) == "math"
    assert sdpa.path(frozenset({"addmm"})) == ""


def test_the_fused_extension_names_the_attention_that_ran():
    path = extension_fused.path
    assert path(frozenset({"addmm", "_scaled_dot_product_flash_attention"})) == "flash"
    assert path(frozenset({"addmm", "_scaled_dot_product_efficient_attention"})) == "memory-efficient"
    assert path(frozenset({"baddbmm", "_softmax", "bmm"})) == "composed, as Extension (ATen)"
    assert path(frozenset({"self_attention_packed"})) == ""


def test_the_fused_extension_runs_on_cuda_and_counts_scores_where_they_are_certain():
    fused = shipped()["extension-fused"]
    on_cuda = with_(TINY, device="cuda:0")
    assert fused.unsupported(on_cuda) is None
    assert fused.scratch_bytes(on_cuda) == sdpa.scratch_bytes(on_cuda)
    double = with_(on_cuda, dtype="float64")
    scores = 8 * double.batch * double.num_heads * double.seq_len**2
    assert fused.scratch_bytes(double) == sdpa.scratch_bytes(double) + scores
    assert fused.scratch_bytes(with_(double, device="cpu")) == sdpa.scratch_bytes(double)


@pytest.mark.build
@pytest.mark.parametrize("gradients", [False, True])
@pytest.mark.parametrize(
    ("level", "seen"), [("flash_for_cpu", "flash"), ("aten", "composed, as Extension (ATen)"), ("fused", "")]
)
def test_what_the_extension_calls_in_turn_is_seen(level: str, seen: str, gradients: bool):
    ext = pytest.importorskip("self_attention_ext")
    try:
        ext.load()
    except ext.BuildError as error:
        pytest.skip(error.sentence)
    layer = ext.SelfAttention(16, 2, causal=True).requires_grad_(gradients)
    layer.kernel = level
    x = torch.randn(2, 5, 16)
    expected = layer(x)

    def call():
        y = layer(x)
        torch.testing.assert_close(y, expected)
        if gradients:
            y.sum().backward()

    assert extension_fused.path(inspect_call(call, ()).operators) == seen


def test_the_layer_says_whether_its_fast_path_ran():
    for workload, expected in (
        (TINY, "fast path"),
        (with_(TINY, mode="forward_backward"), "regular path"),
        # An odd number of heads is one of the fast path's exclusions.
        (with_(TINY, embed_dim=12, num_heads=3), "regular path"),
    ):
        inputs = make_inputs(workload)
        with torch.set_grad_enabled(workload.backward):
            seen = inspect_call(inputs.call(mha.prepare(workload, inputs)), ())
        assert mha.path(seen.operators) == expected


def test_compiling_without_a_compiler_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CXX", "/nonexistent/c++")
    reason = compiled.unsupported(TINY)
    assert reason is not None
    assert "C++ compiler" in reason.reason
    assert "CXX" in reason.remedy


@pytest.mark.build
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("mode", ["forward_backward", "decode"])
def test_the_compiled_steps_keep_the_rule(mode: str):
    if compiled.unsupported(TINY):
        pytest.skip("no C++ compiler")
    import torch._inductor.config

    inputs = make_inputs(with_(TINY, mode=mode))
    reference = accuracy.make_reference(inputs)
    # A pool of compiling processes would outlive the test.
    with torch._inductor.config.patch(compile_threads=1):
        result = accuracy.compare(accuracy.run_once(compiled.prepare, inputs), reference)
    assert result.ok, result.first_wrong
