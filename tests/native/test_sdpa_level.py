"""What level `fused` is on CUDA: ATen's own attentions between two products. The CPU's attention runs the level as it
is; CUDA's two run it with their contracts checked and their arithmetic done on the CPU.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator

import pytest
import torch
from self_attention_ext import SelfAttention, reference, self_attention
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import linear, scaled_dot_product_attention

from tests.native.cases import NAMES, Case, assert_as_exact_as_native, make_case, native_results
from tests.native.emulated import cuda_attentions_on_the_cpu
from tests.native.test_operator_contract import variants

pytestmark = [pytest.mark.build, pytest.mark.usefixtures("library")]

LEVELS = ["flash_for_cpu", "flash", "efficient"]
SHAPES = [
    (2, 5, 12, 3),
    (1, 7, 16, 2),
    (3, 1, 8, 2),
    (1, 1, 8, 1),
    (2, 49, 64, 2),
    (3, 33, 60, 5),
    (1, 130, 32, 4),
]


@pytest.fixture(autouse=True)
def emulated() -> Iterator[None]:
    with cuda_attentions_on_the_cpu():
        yield


def packed(leaves: object, heads: int, causal: bool, level: str) -> Tensor:
    result: Tensor = torch.ops.attnscope.self_attention_packed(*leaves, heads, causal, level)  # type: ignore[misc]
    return result


def sdpa_results(case: Case, dy: Tensor) -> dict[str, Tensor]:
    """Output and nine gradients of the same steps in Python, by autograd: what these attentions can reach."""
    nine = case.separate()
    batch, seq_len, embed_dim = case.x.shape
    in_weight, in_bias = torch.cat(nine[1:7:2]), torch.cat(nine[2:7:2])
    heads = linear(nine[0], in_weight, in_bias).view(batch, seq_len, 3, case.heads, embed_dim // case.heads)
    q, k, v = heads.permute(2, 0, 3, 1, 4).unbind(0)
    c = scaled_dot_product_attention(q, k, v, is_causal=case.causal)
    y = linear(c.transpose(1, 2).reshape(case.x.shape), nine[7], nine[8])
    return {"output": y.detach(), **dict(zip(NAMES, torch.autograd.grad(y, nine, dy), strict=True))}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("form", ["packed", "separate"])
@pytest.mark.parametrize("level", LEVELS)
def test_results_are_as_exact_as_the_same_steps_in_python(
    shape: tuple[int, int, int, int], causal: bool, dtype: torch.dtype, form: str, level: str
) -> None:
    case, wide = (make_case(*shape, causal=causal, dtype=dtype) for _ in range(2))
    wide = type(wide)(*[t.detach().double() for t in wide.leaves], wide.heads, wide.causal)
    dy = torch.randn(case.x.shape, generator=torch.Generator().manual_seed(8), dtype=torch.float64).to(dtype)
    exact, peer = native_results(wide, dy.double()), sdpa_results(case, dy)
    if form == "packed":
        y = packed(case.leaves, case.heads, causal, level)
        x, in_weight, in_bias, out_weight, out_bias = torch.autograd.grad(y, case.leaves, dy)
        parts = [t for pair in zip(in_weight.chunk(3), in_bias.chunk(3), strict=True) for t in pair]
        grads = [x, *parts, out_weight, out_bias]
    else:
        nine = case.separate()
        y = self_attention(*nine, case.heads, causal, level)
        grads = list(torch.autograd.grad(y, nine, dy))
    with torch.no_grad():
        torch.testing.assert_close(packed(case.leaves, case.heads, causal, level), y)
    found = {"output": y.detach(), **dict(zip(NAMES, grads, strict=True))}
    if shape[1] == 1:
        # One position attends to itself whatever q and k are: their gradients are zero, the difference of two
        # equal sums, and their unit that of what is summed.
        unit = torch.finfo(dtype).eps * exact["v_weight"].abs().max()
        for name in ("q_weight", "q_bias", "k_weight", "k_bias"):
            assert found.pop(name).abs().max() <= 3 * unit
            del peer[name], exact[name]
    assert_as_exact_as_native(found, peer, exact)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("head_dim", [2, 8], ids=["padded", "as it is"])
@pytest.mark.parametrize("level", LEVELS)
def test_gradcheck(causal: bool, head_dim: int, level: str) -> None:
    case = make_case(2, 3, 2 * head_dim, 2, causal)
    fast = head_dim > 2
    assert torch.autograd.gradcheck(lambda *t: packed(t, 2, causal, level), case.leaves, fast_mode=fast)
    assert torch.autograd.gradcheck(
        lambda *t: self_attention(*t, 2, causal, level), case.separate(), fast_mode=fast
    )


def test_the_second_derivative_is_right() -> None:
    case = make_case(1, 3, 4, 2)
    assert torch.autograd.gradgradcheck(
        lambda *t: packed(t, 2, True, "flash_for_cpu"), case.leaves, fast_mode=True
    )


@pytest.mark.parametrize("absent", [("q",), ("out",), ("q", "k", "v", "out")], ids="".join)
@pytest.mark.parametrize("form", ["adjoining", "separate"])
@pytest.mark.parametrize("level", LEVELS)
def test_absent_biases_count_as_zero(absent: tuple[str, ...], form: str, level: str) -> None:
    case = make_case()
    nine = case.nine() if form == "adjoining" else case.separate()
    given = [
        None if name.endswith("_bias") and name[:-5] in absent else t
        for name, t in zip(NAMES, nine, strict=True)
    ]
    zeroed = [torch.zeros_like(t) if g is None else t for g, t in zip(given, nine, strict=True)]
    wanted = [t for t in given if t is not None]
    y = self_attention(*given, case.heads, case.causal, level)  # type: ignore[arg-type]
    expected = reference.self_attention(*zeroed, case.heads, case.causal)  # type: ignore[arg-type]
    torch.testing.assert_close(y, expected)
    dy = torch.ones_like(y)
    for found, right in zip(
        torch.autograd.grad(y, wanted, dy), torch.autograd.grad(expected, wanted, dy), strict=True
    ):
        torch.testing.assert_close(found, right)


@pytest.mark.parametrize(
    "wanted",
    [("x",), ("k_weight",), ("v_bias",), ("q_weight", "v_weight"), ("out_weight",), ("out_bias",), NAMES[:7]],
    ids="+".join,
)
@pytest.mark.parametrize("form", ["adjoining", "separate"])
@pytest.mark.parametrize("level", LEVELS)
def test_only_the_gradients_asked_for(wanted: tuple[str, ...], form: str, level: str) -> None:
    case = make_case(gradients=False)
    nine = case.nine() if form == "adjoining" else [t.detach() for t in case.separate()]
    for name, t in zip(NAMES, nine, strict=True):
        t.requires_grad_(name in wanted)
    y = self_attention(*nine, 3, True, level)
    expected = reference.self_attention(*nine, 3, True)
    leaves = [t for name, t in zip(NAMES, nine, strict=True) if name in wanted]
    for found, right in zip(
        torch.autograd.grad(y.sum(), leaves), torch.autograd.grad(expected.sum(), leaves), strict=True
    ):
        torch.testing.assert_close(found, right)


@pytest.mark.parametrize("layout", ["transposed", "every second position", "features apart"])
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("level", LEVELS)
def test_any_strides_in_the_input_and_the_incoming_gradient(layout: str, batch: int, level: str) -> None:
    case = make_case(batch, gradients=False)
    x = variants(case.x)[layout].detach().requires_grad_()
    dy = variants(torch.randn(case.x.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1)))[
        layout
    ]
    nine = [x, *[t.requires_grad_() for t in case.separate()[1:]]]
    expected = torch.autograd.grad(reference.self_attention(*nine, 3, True), nine, dy)
    for found, right in zip(
        torch.autograd.grad(self_attention(*nine, 3, True, level), nine, dy), expected, strict=True
    ):
        torch.testing.assert_close(found, right)


@pytest.mark.parametrize(("batch", "seq_len"), [(0, 3), (2, 0), (0, 0)])
@pytest.mark.parametrize("form", ["packed", "separate"])
@pytest.mark.parametrize("level", LEVELS)
def test_empty_inputs_give_empty_results_and_zero_gradients(
    batch: int, seq_len: int, form: str, level: str
) -> None:
    case = make_case(gradients=False)
    x = torch.zeros(batch, seq_len, 12, dtype=torch.float64, requires_grad=True)
    leaves = [x, *[t.requires_grad_() for t in (case.leaves if form == "packed" else case.separate())[1:]]]
    y = packed(leaves, 3, True, level) if form == "packed" else self_attention(*leaves, 3, True, level)
    assert y.shape == x.shape
    for found, leaf in zip(torch.autograd.grad(y.sum(), leaves), leaves, strict=True):
        assert found.shape == leaf.shape
        assert not found.any()


# ---- the dispatcher's promises --------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning")
@pytest.mark.parametrize("embed_dim", [12, 24], ids=["padded", "as it is"])
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("level", LEVELS)
def test_opcheck(embed_dim: int, batch: int, level: str) -> None:
    case = make_case(batch, 33, embed_dim, dtype=torch.float32)
    operators = torch.ops.attnscope
    torch.library.opcheck(operators.self_attention_packed.default, (*case.leaves, 3, True, level))
    torch.library.opcheck(operators.self_attention.default, (*case.separate(), 3, True, level))
    x, *rest = (t.detach() for t in case.separate())
    for weights, biases in (
        ([case.in_weight.detach()], [case.in_bias.detach()]),
        (rest[0:6:2], rest[1:6:2]),
    ):
        call = (x, weights, biases, rest[6], rest[7], 3, True, level)
        torch.library.opcheck(operators.self_attention_forward.default, call)
        y, *kept = operators.self_attention_forward(*call)
        back = (y, x, weights, rest[6], *kept, 3, True, (1 << (3 + 2 * len(weights))) - 1, level)
        torch.library.opcheck(operators.self_attention_backward.default, back)


@pytest.mark.parametrize("level", LEVELS)
def test_what_is_kept_is_checked_before_a_backward_pass(level: str) -> None:
    case = make_case(gradients=False)
    operators = torch.ops.attnscope
    y, qkv, p, c = operators.self_attention_forward(
        case.x, [case.in_weight], [case.in_bias], case.out_weight, None, 3, True, level
    )

    def back(qkv: Tensor, p: Tensor) -> None:
        operators.self_attention_backward(
            y, case.x, [case.in_weight], case.out_weight, qkv, p, c, 3, True, 31, level
        )

    back(qkv, p)
    with pytest.raises(ValueError, match=r"p \(shape .*log-sum-exp"):
        back(qkv, p[..., :-1])
    with pytest.raises(ValueError, match=r"qkv \(shape .*\[B\*S, 3E\]"):
        back(qkv[:, :-1], p)
    with pytest.raises(ValueError, match=r"qkv \(shape .*\[3, B\*S, E\]"):
        back(qkv.view(3, -1, 12)[:, :-1], p)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("level", LEVELS)
def test_a_training_step_is_traced_into_one_graph(autocast: bool, dynamic: bool, level: str) -> None:
    case = make_case(seq_len=33, dtype=torch.float32)

    def step(*leaves: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            return packed(leaves, 3, True, level).float().square().sum()

    expected = torch.autograd.grad(step(*case.leaves), case.leaves)
    torch._dynamo.reset()
    traced = torch.compile(step, fullgraph=True, dynamic=dynamic, backend="aot_eager")
    for found, right in zip(torch.autograd.grad(traced(*case.leaves), case.leaves), expected, strict=True):
        torch.testing.assert_close(found, right)
    assert expected[0].dtype == torch.float32


def test_autocast_gives_natives_types() -> None:
    case = make_case(dtype=torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        y = packed(case.leaves, 3, True, "flash_for_cpu")
        expected = reference.self_attention(*case.nine(), 3, True)  # type: ignore[arg-type]
    assert y.dtype == expected.dtype == torch.bfloat16
    torch.testing.assert_close(y, expected, rtol=2e-2, atol=2e-2)


# ---- how much is called ---------------------------------------------------------------------------------

VIEWS = {"as_strided", "empty", "empty_strided", "resolve_conj", "transpose", "select", "resize_", "detach"}


def calls(function: object) -> Counter[str]:
    """ATen operators that compute, outermost only: on CUDA each would be a launch or more."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        function()  # type: ignore[operator]
    found: Counter[str] = Counter()
    for event in profile.events():
        parent = event.cpu_parent
        while parent is not None and not parent.name.startswith("aten::"):
            parent = parent.cpu_parent
        name = event.name.removeprefix("aten::")
        if event.name.startswith("aten::") and parent is None and name not in VIEWS:
            found[name] += 1
    return found


def layer_and_input(head_dim: int = 16, level: str = "flash_for_cpu") -> tuple[SelfAttention, Tensor]:
    layer = SelfAttention(2 * head_dim, 2, causal=True)
    layer.kernel = level
    return layer, torch.randn(2, 20, 2 * head_dim, requires_grad=True)


def test_a_forward_pass_is_two_products_and_one_attention() -> None:
    layer, x = layer_and_input()
    with torch.no_grad():
        assert calls(lambda: layer(x)) == {"addmm": 2, "_scaled_dot_product_flash_attention_for_cpu": 1}
    assert calls(lambda: layer(x)) == {"addmm": 2, "_scaled_dot_product_flash_attention_for_cpu": 1}


def test_three_separate_weights_are_three_products() -> None:
    nine = [t.detach() for t in make_case(2, 20, 32, 2).separate()]
    found = calls(lambda: self_attention(*nine, 2, True, "flash_for_cpu"))
    assert found == {"addmm": 4, "_scaled_dot_product_flash_attention_for_cpu": 1}


def test_a_backward_pass_is_one_attention_and_five_products() -> None:
    layer, x = layer_and_input()
    y = layer(x)
    dy = torch.randn_like(y)
    leaves = [x, *layer.parameters()]
    assert calls(lambda: torch.autograd.grad(y, leaves, dy)) == {
        "_scaled_dot_product_flash_attention_for_cpu_backward": 1,
        "cat": 1,
        "mm": 4,
        "sum": 2,
    }


def test_memory_efficient_attention_needs_no_copy_of_its_gradients() -> None:
    layer, x = layer_and_input(level="efficient")
    y = layer(x)
    dy = torch.randn_like(y)
    found = calls(lambda: torch.autograd.grad(y, [x, *layer.parameters()], dy))
    assert found == {"_efficient_attention_backward": 1, "mm": 4, "sum": 2}


def test_an_unwanted_gradient_costs_no_attention() -> None:
    layer, x = layer_and_input()
    y = layer(x.detach())
    dy = torch.randn_like(y)
    assert calls(lambda: torch.autograd.grad(y, layer.out_proj.bias, dy)) == {"sum": 1}


# ---- which attention ------------------------------------------------------------------------------------


def test_torchs_choice_is_read_by_its_own_names() -> None:
    read = torch.ops.attnscope.level_of_choice
    found = {backend: read(int(backend)) for backend in SDPBackend.__members__.values()}
    assert found.pop(SDPBackend.FLASH_ATTENTION) == "flash"
    assert found.pop(SDPBackend.EFFICIENT_ATTENTION) == "efficient"
    assert set(found.values()) == {"aten"}
    assert read(99) == "aten"


@contextlib.contextmanager
def answering(answer: int, asked: list[dict[str, object]]) -> Iterator[None]:
    """torch's choice on the CPU, replaced by one that notes the question."""

    def choose(
        q: Tensor,
        k: Tensor,
        v: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        *,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> int:
        asked.append(
            {
                "sizes": tuple(q.shape),
                "strides": q.stride(),
                "dtype": q.dtype,
                "device": q.device,
                "gradients": q.requires_grad and torch.is_grad_enabled(),
                "causal": is_causal,
                "alike": q is k is v or (q.shape == k.shape == v.shape and q.stride() == k.stride()),
                "memory": q.untyped_storage().nbytes(),
            }
        )
        return answer

    with torch.library._scoped_library("aten", "IMPL") as library:
        library.impl("_fused_sdp_choice", choose, "CPU")
        yield


@pytest.mark.filterwarnings("ignore:Warning only once for all operators:UserWarning")
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_torch_is_asked_about_the_projection_as_it_will_lie(keep: bool, dtype: torch.dtype) -> None:
    x = torch.empty(7, 100, 48, dtype=dtype)
    for answer, level in ((1, "flash"), (2, "efficient"), (0, "aten"), (3, "aten")):
        asked: list[dict[str, object]] = []
        with answering(answer, asked), torch.no_grad():
            assert torch.ops.attnscope.attention_choice(x, 3, True, keep) == level
        assert asked == [
            {
                "sizes": (1, 3, 1, 16),
                "strides": (144, 16, 144, 1),
                "dtype": dtype,
                "device": x.device,
                "gradients": keep,
                "causal": True,
                "alike": True,
                "memory": 0,
            }
        ]


def test_the_callers_choice_of_backends_is_followed() -> None:
    choose = torch.ops.attnscope.attention_choice
    x = torch.empty(2, 5, 16)
    assert choose(x, 2, True, True) == "flash"
    with sdpa_kernel(SDPBackend.MATH):
        assert choose(x, 2, True, True) == "aten"
    with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]):
        assert choose(x, 2, True, True) == "flash"


def test_asking_leaves_no_trace_in_a_graph() -> None:
    x = torch.randn(2, 5, 16, requires_grad=True)
    seen: list[str] = []

    class Record(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    with Record():
        torch.ops.attnscope.attention_choice(x, 2, True, True)
    assert [name for name in seen if "sdp_choice" in name] == []


def test_the_choice_is_not_a_kernel_to_ask_for_by_name() -> None:
    for name in LEVELS:
        with pytest.raises(ValueError, match="expected one of: auto, aten, fused"):
            SelfAttention(8, 2, kernel=name)


# ---- CUDA's shapes without a GPU ------------------------------------------------------------------------


fakes_cuda = torch.cuda.is_available() or (
    torch.version.cuda is not None and tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 14)
)


@pytest.mark.skipif(not fakes_cuda, reason="this torch asks for a CUDA device even where tensors are fake")
@pytest.mark.parametrize("level", ["auto", "fused", "aten", "flash", "efficient"])
@pytest.mark.parametrize("form", ["packed", "separate"])
def test_fake_cuda_tensors_get_true_shapes(level: str, form: str) -> None:
    """Without a device "auto" and "fused" stand for "aten". No gradients: autograd's graph would want a real device."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():

        def fake(*shape: int) -> Tensor:
            return torch.empty(*shape, device="cuda", dtype=torch.float16)

        x, out_weight, out_bias = fake(2, 33, 24), fake(24, 24), fake(24)
        if form == "packed":
            weights = [fake(72, 24)]
            y = packed([x, weights[0], fake(72), out_weight, out_bias], 3, True, level)
        else:
            weights = [fake(24, 24) for _ in range(3)]
            pairs = [t for weight in weights for t in (weight, fake(24))]
            y = self_attention(x, *pairs, out_weight, out_bias, 3, True, level)
        assert (y.shape, y.stride(), y.device.type, y.dtype) == (x.shape, x.stride(), "cuda", x.dtype)
        inner = "aten" if level in ("auto", "fused") else level
        y, qkv, p, c = torch.ops.attnscope.self_attention_forward(
            x, weights, [], out_weight, None, 3, True, inner
        )
        if inner != "aten":
            assert qkv.shape == ((66, 72) if form == "packed" else (3, 66, 24))
            assert (p.shape, p.dtype) == ((2, 3, 33 if level == "flash" else 64), torch.float32)
            assert p.is_contiguous()
            assert c.shape == (66, 24)
        grads = torch.ops.attnscope.self_attention_backward(
            y, x, weights, out_weight, qkv, p, c, 3, True, (1 << (3 + 2 * len(weights))) - 1, inner
        )
        biases = [w[:, 0] for w in weights]
        for grad, like_ in zip(grads, [x, *weights, *biases, out_weight, out_weight[0]], strict=True):
            assert (grad.shape, grad.device, grad.dtype) == (like_.shape, like_.device, like_.dtype)
