"""Decoding: a step is the last row of the causal forward pass, and whatever fails leaves the cache as it was."""

from __future__ import annotations

import copy
import io

import pytest
import torch
from self_attention_ext import KeyValueCache, SelfAttention, reference
from torch import Tensor, nn

from tests.native.cases import assert_as_exact_as_native
from tests.native.test_fused import run_apart

pytestmark = [pytest.mark.build, pytest.mark.usefixtures("library")]

KERNELS = ("aten", "fused")
HEAD_SIZES = [(2, 7, 2 * head_dim, 2) for head_dim in (1, 3, 20, 80, 96, 256)]
"""Shapes here are (batch, tokens, embedding, heads)."""
STEP = "self_attention_step"


def make_layer(
    embed_dim: int, heads: int, kernel: str, dtype: torch.dtype = torch.float64, bias: bool = True
) -> SelfAttention:
    generator = torch.Generator().manual_seed(11)
    layer = SelfAttention(embed_dim, heads, bias=bias, causal=True, kernel=kernel, dtype=dtype)
    with torch.no_grad():
        for name, p in layer.named_parameters():
            scale = 0.1 if name.endswith("bias") else embed_dim**-0.5
            p.copy_(torch.randn(p.shape, generator=generator, dtype=torch.float64) * scale)
    return layer


def make_x(batch: int, tokens: int, embed_dim: int, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(12)
    return torch.randn(batch, tokens, embed_dim, generator=generator, dtype=torch.float64).to(dtype)


def decode(layer: SelfAttention, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
    """All tokens of x [B, S, E], one after the other."""
    cache = cache or layer.new_cache(x.shape[0], x.shape[1])
    return torch.cat([layer.step(x[:, i : i + 1], cache) for i in range(x.shape[1])], 1)


def exact_pass(layer: SelfAttention, x: Tensor, dtype: torch.dtype) -> Tensor:
    """The causal forward pass, step by step at `dtype`."""
    weights, out = layer.in_proj_weight.detach().chunk(3), layer.out_proj
    biases = [None] * 3 if layer.in_proj_bias is None else layer.in_proj_bias.detach().chunk(3)
    parts = [t for pair in zip(weights, biases, strict=True) for t in pair]
    parts += [out.weight.detach(), None if out.bias is None else out.bias.detach()]
    nine = [None if t is None else t.to(dtype) for t in (x, *parts)]
    return reference.self_attention(*nine, layer.num_heads, True)  # type: ignore[arg-type]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(1, 6, 12, 3), (3, 6, 12, 1), (20, 6, 8, 2)], ids=str)
def test_each_step_is_the_last_row_of_the_causal_pass(
    shape: tuple[int, int, int, int], bias: bool, kernel: str
) -> None:
    batch, tokens, embed_dim, heads = shape
    layer, x = make_layer(embed_dim, heads, kernel, bias=bias), make_x(batch, tokens, embed_dim)
    cache = layer.new_cache(batch, tokens)
    for n in range(1, tokens + 1):
        y = layer.step(x[:, n - 1 : n], cache)
        assert cache.length == n
        torch.testing.assert_close(y, layer(x[:, :n])[:, -1:], rtol=1e-12, atol=1e-13)


def assert_steps_are_exact(shape: tuple[int, int, int, int], kernel: str, dtype: torch.dtype) -> None:
    batch, tokens, embed_dim, heads = shape
    layer, x = make_layer(embed_dim, heads, kernel, dtype), make_x(batch, tokens, embed_dim, dtype)
    with torch.inference_mode():
        found = {"output": decode(layer, x)}
        native = {"output": exact_pass(layer, x, dtype)}
        assert_as_exact_as_native(found, native, {"output": exact_pass(layer, x, torch.float64)})


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_512_steps_are_as_exact_as_the_native_pass(dtype: torch.dtype, kernel: str) -> None:
    assert_steps_are_exact((1, 512, 64, 2), kernel, dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("shape", [*HEAD_SIZES, (5, 9, 30, 3), (17, 3, 24, 3)], ids=str)
def test_odd_sizes_are_as_exact_as_native(shape: tuple[int, int, int, int], dtype: torch.dtype) -> None:
    assert_steps_are_exact(shape, "fused", dtype)


@pytest.mark.parametrize("heads", [1, 2, 8])
def test_a_cache_of_several_pieces(heads: int) -> None:
    """From 512 tokens on the heads are taken in pieces, which may belong to different threads."""
    layer, x = make_layer(16, heads, "fused"), make_x(2, 1100, 16)
    with torch.inference_mode():
        k, v = project(layer, x[:, :1099])
        cache = layer.new_cache(2, 1100)
        cache.append(k, v)
        y = layer.step(x[:, 1099:], cache)
        torch.testing.assert_close(y, layer(x)[:, -1:], rtol=1e-11, atol=1e-13)


def project(layer: SelfAttention, x: Tensor) -> tuple[Tensor, Tensor]:
    """Keys and values [B, H, S, D] of x."""
    _, k, v = (x @ layer.in_proj_weight.T + layer.in_proj_bias).chunk(3, -1)
    return reference.split_heads(k, layer.num_heads), reference.split_heads(v, layer.num_heads)


@pytest.mark.parametrize("capability", ["avx512", "avx2", "default"])
def test_every_instruction_set_gives_the_same_steps(capability: str) -> None:
    code = """
import torch, self_attention_ext as ext
from tests.native.test_decoding import assert_steps_are_exact, HEAD_SIZES
ext.load()
for dtype in (torch.float32, torch.bfloat16, torch.float16):
    for shape in (*HEAD_SIZES, (3, 20, 30, 3)):
        assert_steps_are_exact(shape, "fused", dtype)
"""
    run_apart(code, ATEN_CPU_CAPABILITY=capability)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize(("embed_dim", "heads", "length"), [(512, 8, 100), (512, 1, 1300), (256, 16, 1300)])
def test_the_number_of_threads_changes_nothing(threads: int, embed_dim: int, heads: int, length: int) -> None:
    layer = make_layer(embed_dim, heads, "fused", torch.float32)
    x = make_x(1, 1, embed_dim, torch.float32)
    filled = make_x(heads, length, embed_dim // heads, torch.float32)[None]
    before = torch.get_num_threads()
    results = []
    try:
        for count in (threads, 2):
            torch.set_num_threads(count)
            cache = layer.new_cache(1, length + 1)
            cache.append(filled, filled)
            results.append(layer.step(x, cache).detach())
    finally:
        torch.set_num_threads(before)
    assert torch.equal(*results)


@pytest.mark.parametrize("kernel", KERNELS)
def test_an_empty_batch_still_counts_its_tokens(kernel: str) -> None:
    layer = make_layer(12, 3, kernel)
    cache = layer.new_cache(0, 2)
    assert layer.step(make_x(0, 1, 12), cache).shape == (0, 1, 12)
    assert cache.length == 1


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_layer_that_is_not_causal_decodes_as_one_that_is(kernel: str) -> None:
    layer, x = make_layer(12, 3, kernel), make_x(2, 4, 12)
    expected = decode(layer, x)
    layer.causal = False
    assert torch.equal(decode(layer, x), expected)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_not_finite_stays_in_its_item(value: float, kernel: str) -> None:
    layer, x = make_layer(12, 3, kernel, torch.float32), make_x(3, 5, 12, torch.float32)
    clean = decode(layer, x)
    x[1, 2, 4] = value
    found = decode(layer, x)
    assert torch.equal(found[[0, 2]], clean[[0, 2]])
    assert torch.equal(found[1, :2], clean[1, :2])
    assert found[1, 2:].isnan().all()


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("layout", ["transposed", "expanded", "strided"])
def test_any_strides_in_the_token(layout: str, kernel: str) -> None:
    layer, x = make_layer(12, 3, kernel), make_x(2, 3, 12)
    wide = torch.randn(2, 1, 24, dtype=torch.float64)
    token = {
        "transposed": make_x(12, 1, 2).transpose(0, 2),
        "expanded": x[:1, :1].expand(2, 1, 12),
        "strided": wide[..., ::2],
    }[layout]
    caches = [layer.new_cache(2, 4) for _ in range(2)]
    for cache in caches:
        decode(layer, x, cache)
    found, expected = (layer.step(t, c) for t, c in zip((token, token.contiguous()), caches, strict=True))
    torch.testing.assert_close(found, expected, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_cache_may_be_part_of_a_larger_one(kernel: str) -> None:
    layer, x = make_layer(12, 3, kernel), make_x(2, 4, 12)
    large = layer.new_cache(5, 9)
    part = layer.new_cache(2, 4)
    part.keys, part.values = large.keys[1:4:2, :, 3:7], large.values[1:4:2, :, 3:7]
    torch.testing.assert_close(decode(layer, x, part), layer(x), rtol=1e-12, atol=1e-13)
    untouched = torch.ones(9, dtype=torch.bool)
    untouched[3:7] = False
    assert not large.keys[:, :, untouched].any()
    assert not large.keys[[0, 2, 4]].any()


# ---- what is refused ------------------------------------------------------------------------------------


def test_a_full_cache_says_so_and_stays_as_it_was() -> None:
    layer, x = make_layer(12, 3, "auto"), make_x(2, 4, 12)
    cache = layer.new_cache(2, 3)
    decode(layer, x[:, :3], cache)
    kept = copy.deepcopy(cache)
    with pytest.raises(RuntimeError, match=r"the cache is full: it holds 3 tokens of at most 3.*rewind"):
        layer.step(x[:, 3:], cache)
    assert cache.length == 3
    assert torch.equal(cache.keys, kept.keys)
    cache.rewind(2)
    torch.testing.assert_close(layer.step(x[:, 2:3], cache), layer(x[:, :3])[:, -1:])


FAULTS = {
    "batch": ({"batch": 4}, r"key_cache.*\[4, 3, 5, 4\].*\[2, 3, 5, 4\]"),
    "heads": ({"heads": 6}, r"key_cache.*\[2, 6, 5, 2\].*\[2, 3, 5, 4\]"),
    "width": ({"embed_dim": 24}, r"key_cache.*\[2, 3, 5, 8\].*\[2, 3, 5, 4\]"),
    "dtype": ({"dtype": torch.float32}, r"key_cache.*is float32; expected float64, as x_t is"),
    "device": ({"device": "meta"}, r"key_cache.*is on meta; expected cpu, where x_t is"),
}


def other_cache(
    batch: int = 2,
    embed_dim: int = 12,
    heads: int = 3,
    dtype: torch.dtype = torch.float64,
    device: str = "cpu",
) -> KeyValueCache:
    return SelfAttention(embed_dim, heads, dtype=dtype, device=device).new_cache(batch, 5)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("fault", FAULTS)
def test_another_layers_cache_is_refused_by_name(fault: str, kernel: str) -> None:
    layer = make_layer(12, 3, kernel)
    changes, words = FAULTS[fault]
    cache = other_cache(**changes)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=words):
        layer.step(make_x(2, 1, 12), cache)
    assert cache.length == 0


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    ("x", "words"),
    [
        (torch.randn(2, 3, 12, dtype=torch.float64), r"x_t \(shape \[2, 3, 12\]\).*expected \[2, 1, 12\].*one token"),
        (torch.randn(2, 12, dtype=torch.float64), r"x_t.*2 dimensions; expected 3"),
        (torch.randn(2, 1, 12), r"in_proj_weight.*is float64; expected float32, as x_t is"),
        (torch.randn(2, 1, 9, dtype=torch.float64), r"in_proj_weight.*wrong shape: expected \[27, 9\]"),
    ],
)  # fmt: skip
def test_x_t_is_checked_and_named(x: Tensor, words: str, kernel: str) -> None:
    layer = make_layer(12, 3, kernel)
    with pytest.raises(ValueError, match=words):
        layer.step(x, layer.new_cache(2, 4))


def operator_arguments(kernel: str = "auto") -> list[object]:
    layer = make_layer(12, 3, kernel)
    cache = layer.new_cache(2, 4)
    parameters = [p.detach() for p in layer.parameters()]
    return [make_x(2, 1, 12), *parameters, cache.keys, cache.values, 1, 3, kernel]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (7, 4, r"the cache is full: position is 4 and key_cache \(shape \[2, 3, 4, 4\]\) has room for 4"),
        (7, -1, "position is -1; expected 0 or more"),
        (8, 5, "num_heads = 5"),
        (9, "quick", "kernel is 'quick'; expected one of: auto, aten, fused"),
        (6, torch.zeros(2, 3, 5, 4, dtype=torch.float64), r"value_cache.*expected \[2, 3, 4, 4\]"),
        (5, torch.zeros(1, 3, 4, 4, dtype=torch.float64).expand(2, 3, 4, 4), "key_cache.*memory of its own"),
        (5, torch.zeros(2, 3, 4, 8, dtype=torch.float64)[..., ::2], "key_cache.*dense along the last"),
    ],
)
def test_the_operator_checks_what_the_layer_cannot_get_wrong(
    place: int, value: object, words: str, kernel: str
) -> None:
    arguments = operator_arguments(kernel)
    arguments[place] = value
    with pytest.raises(ValueError, match=words):
        getattr(torch.ops.attnscope, STEP)(*arguments)


def test_keys_and_values_in_one_memory_are_refused() -> None:
    arguments = operator_arguments()
    arguments[6] = arguments[5]
    with pytest.raises(ValueError, match="value_cache lies in key_cache's memory"):
        getattr(torch.ops.attnscope, STEP)(*arguments)


def test_what_is_no_cache_is_refused() -> None:
    layer = make_layer(12, 3, "auto")
    with pytest.raises(TypeError, match="cache is a tuple; expected the KeyValueCache"):
        layer.step(make_x(2, 1, 12), (1, 2))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="max_len is 0"):
        layer.new_cache(1, 0)
    with pytest.raises(ValueError, match="batch is -1"):
        layer.new_cache(-1, 4)


def test_a_gradient_that_is_waited_for_is_refused_and_none_is_recorded() -> None:
    layer, x = make_layer(12, 3, "auto"), make_x(2, 1, 12)
    cache = layer.new_cache(2, 4)
    y = layer.step(x, cache)
    assert not y.requires_grad
    assert all(p.requires_grad for p in layer.parameters())
    assert not cache.keys.requires_grad
    with pytest.raises(RuntimeError, match="x_t requires a gradient, and a step records none"):
        layer.step(x.requires_grad_(), cache)
    assert cache.length == 1
    with torch.no_grad():
        layer.step(x, cache)
    with torch.inference_mode():
        layer.step(x, cache)
    layer.step(x.detach(), cache)
    assert cache.length == 4


@pytest.mark.filterwarnings(
    "ignore:.*torch.jit.script:DeprecationWarning", "ignore:.*torch.jit.script:FutureWarning"
)
def test_forward_mode_is_refused_not_dropped() -> None:
    layer, x = make_layer(12, 3, "auto"), make_x(2, 1, 12)
    cache = layer.new_cache(2, 4)
    with (
        torch.autograd.forward_ad.dual_level(),
        pytest.raises(RuntimeError, match="records none"),
    ):
        layer.step(torch.autograd.forward_ad.make_dual(x, torch.ones_like(x)), cache)


def test_a_backward_pass_through_an_overwritten_cache_is_noticed() -> None:
    layer, x = make_layer(12, 3, "auto"), make_x(2, 1, 12)
    cache = layer.new_cache(2, 4)
    scale = torch.ones((), dtype=torch.float64, requires_grad=True)
    product = (cache.keys * scale).sum()
    layer.step(x, cache)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()


def test_dropout_is_refused_in_training() -> None:
    mha = nn.MultiheadAttention(12, 3, dropout=0.5, batch_first=True).eval()
    layer = SelfAttention.from_multihead_attention(mha)
    cache = layer.new_cache(1, 2)
    layer.step(torch.randn(1, 1, 12), cache)
    with pytest.raises(RuntimeError, match="dropout"):
        layer.train().step(torch.randn(1, 1, 12), cache)


# ---- the cache ------------------------------------------------------------------------------------------


def test_appending_is_decoding_what_is_appended() -> None:
    layer, x = make_layer(12, 3, "auto"), make_x(2, 6, 12)
    cache = layer.new_cache(2, 6)
    cache.append(*project(layer, x[:, :2]))
    cache.append(*project(layer, x[:, 2:5]))
    assert cache.length == 5
    torch.testing.assert_close(layer.step(x[:, 5:], cache), layer(x)[:, -1:])
    with pytest.raises(RuntimeError, match="1 tokens do not fit: the cache holds 6 of at most 6"):
        cache.append(*project(layer, x[:, :1]))
    with pytest.raises(ValueError, match=r"keys has shape \[3, 3, 1, 4\]; expected \[2, 3, T, 4\]"):
        cache.append(torch.zeros(3, 3, 1, 4), torch.zeros(3, 3, 1, 4))
    with pytest.raises(ValueError, match="and values"):
        cache.append(torch.zeros(2, 3, 1, 4), torch.zeros(2, 3, 2, 4))


def test_rewinding_decodes_another_way_from_there() -> None:
    layer, x = make_layer(12, 3, "auto"), make_x(2, 6, 12)
    cache = layer.new_cache(2, 6)
    decode(layer, x[:, :5], cache)
    cache.rewind(2)
    other = torch.cat([x[:, :2], x[:, 4:]], 1)
    torch.testing.assert_close(decode(layer, x[:, 4:], cache), layer(other)[:, 2:])
    for length in (-1, 5):
        with pytest.raises(ValueError, match=f"length is {length}; expected 0 to 4"):
            cache.rewind(length)
    cache.reset()
    assert cache.length == 0


def test_copies_and_pickles_go_their_own_way() -> None:
    layer, x = make_layer(12, 3, "auto"), make_x(2, 4, 12)
    cache = layer.new_cache(2, 4)
    decode(layer, x[:, :2], cache)
    stream = io.BytesIO()
    torch.save(cache, stream)
    stream.seek(0)
    copies = [copy.deepcopy(cache), torch.load(stream, weights_only=False)]
    decode(layer, x[:, :1], cache)
    for other in copies:
        assert other.length == 2
        torch.testing.assert_close(decode(layer, x[:, 2:], other), layer(x)[:, 2:])


def test_a_cache_made_in_inference_mode_is_an_ordinary_one() -> None:
    layer, x = make_layer(12, 3, "auto"), make_x(2, 2, 12)
    with torch.inference_mode():
        cache = layer.new_cache(2, 2)
        layer.step(x[:, :1], cache)
    torch.testing.assert_close(layer.step(x[:, 1:], cache), layer(x)[:, -1:])


def test_a_cache_says_what_it_holds() -> None:
    layer = make_layer(12, 3, "auto")
    cache = layer.new_cache(2, 4)
    cache.append(*project(layer, make_x(2, 1, 12)))
    assert repr(cache) == (
        "KeyValueCache(1 of 4 tokens, batch=2, num_heads=3, head_dim=4, dtype=torch.float64, device='cpu')"
    )


# ---- the dispatcher's promises --------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning")
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("trained", [False, True])
def test_opcheck(kernel: str, trained: bool) -> None:
    arguments = operator_arguments(kernel)
    arguments[1:5] = [t.requires_grad_(trained) for t in arguments[1:5]]  # type: ignore[attr-defined]
    torch.library.opcheck(torch.ops.attnscope.self_attention_step.default, tuple(arguments))


def test_a_step_is_traced_into_one_graph_whatever_the_position() -> None:
    layer, x = make_layer(12, 3, "auto"), make_x(2, 8, 12)
    traced = torch.compile(
        lambda x_t, cache: layer.step(x_t * 2, cache) + 1, fullgraph=True, backend="aot_eager"
    )
    cache = layer.new_cache(2, 8)
    with torch.no_grad():
        found = torch.cat([traced(x[:, i : i + 1], cache) for i in range(8)], 1)
        torch.testing.assert_close(found, layer(x * 2) + 1)
    assert cache.length == 8


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_compiled_step(kernel: str) -> None:
    layer, x = make_layer(12, 3, kernel), make_x(2, 6, 12)
    compiled = torch.compile(lambda x_t, cache: layer.step(x_t * 2, cache) + 1, fullgraph=True)
    cache = layer.new_cache(2, 6)
    with torch.no_grad():
        found = torch.cat([compiled(x[:, i : i + 1], cache) for i in range(6)], 1)
        torch.testing.assert_close(found, layer(x * 2) + 1)


def test_autocast_decodes_in_the_regions_type_with_a_cache_made_there() -> None:
    layer, x = make_layer(12, 3, "auto", torch.float32), make_x(2, 4, 12, torch.float32)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        cache = layer.new_cache(2, 4)
        assert cache.keys.dtype == torch.bfloat16
        y = decode(layer, x, cache)
        assert y.dtype == torch.bfloat16
        torch.testing.assert_close(y.float(), layer(x).float(), rtol=2e-2, atol=2e-2)
    outside = layer.new_cache(2, 4)
    with torch.autocast("cpu", torch.bfloat16), pytest.raises(ValueError, match=r"key_cache.*is float32"):
        layer.step(x[:, :1], outside)


def test_shapes_are_known_on_meta() -> None:
    layer = SelfAttention(64, 8, device="meta")
    cache = layer.new_cache(3, 65536)
    assert layer.step(torch.empty(3, 1, 64, device="meta"), cache).shape == (3, 1, 64)
    assert cache.length == 1


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_step_changes_one_position_alone(kernel: str) -> None:
    layer = make_layer(12, 3, kernel)
    cache = layer.new_cache(2, 5)
    nan = torch.full((2, 3, 2, 4), float("nan"), dtype=torch.float64)
    cache.append(nan, nan)
    cache.rewind(1)
    layer.step(make_x(2, 1, 12), cache)
    changed = (~cache.keys.isnan() & (cache.keys != 0)).all(-1).all(0).all(0)
    assert changed.tolist() == [False, True, False, False, False]


def test_a_parametrized_layer_uses_its_parametrization() -> None:
    class Doubled(nn.Module):
        def forward(self, weight: Tensor) -> Tensor:
            return weight * 2

    layer, x = make_layer(12, 3, "auto"), make_x(2, 3, 12)
    nn.utils.parametrize.register_parametrization(layer, "in_proj_weight", Doubled())
    with torch.no_grad():
        torch.testing.assert_close(decode(layer, x), layer(x))
