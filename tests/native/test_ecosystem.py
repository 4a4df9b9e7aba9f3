"""A layer in the company of the rest of PyTorch: autocast, scaling, checkpointing, determinism, other owners of its
parameters.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from self_attention_ext import SelfAttention, reference, replace_self_attention, self_attention
from torch import Tensor, nn

from tests.native.cases import NAMES, Case, assert_as_exact_as_native, make_case, native_results

pytestmark = [pytest.mark.build, pytest.mark.usefixtures("library")]

KERNELS = pytest.mark.parametrize("kernel", ["aten", "fused"])


def draw(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(3)).to(dtype)


# ---- autocast -------------------------------------------------------------------------------------------


def in_region(case: Case, kernel: str, form: str) -> tuple[list[Tensor], Tensor]:
    """The nine leaves, or what stands for them, and the output inside an autocast region."""
    if form == "twin":
        nine = case.separate()
        with torch.autocast("cpu", torch.bfloat16):
            return nine, reference.self_attention(*nine, case.heads, case.causal)  # type: ignore[arg-type]
    nine = case.separate() if form == "separate" else case.nine()
    with torch.autocast("cpu", torch.bfloat16):
        if form == "packed":
            return nine, torch.ops.attnscope.self_attention_packed(
                *case.leaves, case.heads, case.causal, kernel
            )
        return nine, self_attention(*nine, case.heads, case.causal, kernel)  # type: ignore[arg-type]


def gradients(case: Case, nine: list[Tensor], y: Tensor, form: str, dy: Tensor) -> dict[str, Tensor]:
    if form != "packed":
        return dict(zip(NAMES, torch.autograd.grad(y, nine, dy), strict=True))
    x, in_weight, in_bias, out_weight, out_bias = torch.autograd.grad(y, case.leaves, dy)
    parts = [t for pair in zip(in_weight.chunk(3), in_bias.chunk(3), strict=True) for t in pair]
    return dict(zip(NAMES, [x, *parts, out_weight, out_bias], strict=True))


@KERNELS
@pytest.mark.parametrize("form", ["packed", "slices", "separate"])
@pytest.mark.parametrize("shape", [(2, 5, 12, 3), (2, 49, 64, 2), (1, 1, 8, 2)], ids=str)
def test_autocast_gives_natives_types_and_is_as_exact(shape: tuple[int, ...], form: str, kernel: str) -> None:
    """Errors against float64 at float32's inputs, by the rule that native's own error sets. What autocast computes
    is bfloat16, whatever the type it returns, so that is the rounding unit.
    """
    case = make_case(*shape, dtype=torch.float32)
    wide = type(case)(*[t.detach().double() for t in case.leaves], case.heads, case.causal)
    dy = draw(*case.x.shape, dtype=torch.bfloat16)
    exact = native_results(wide, dy.double())
    results = []
    for which in (form, "twin"):
        nine, y = in_region(case, kernel, which)
        assert y.dtype is torch.bfloat16
        grads = gradients(case, nine, y, which, dy)
        assert {name: g.dtype for name, g in grads.items()} == dict.fromkeys(NAMES, torch.float32)
        results.append({"output": y.detach(), **{name: g.bfloat16() for name, g in grads.items()}})
    assert_as_exact_as_native(*results, exact)


@KERNELS
def test_autocast_leaves_float64_alone(kernel: str) -> None:
    case = make_case(gradients=False)
    with torch.autocast("cpu", torch.bfloat16):
        y = torch.ops.attnscope.self_attention_packed(*case.leaves, 3, True, kernel)
    assert y.dtype is torch.float64
    torch.testing.assert_close(y, reference.self_attention(*case.nine(), 3, True))


@pytest.mark.parametrize("mode", ["train", "eval", "no_grad"])
def test_a_swapped_layer_under_autocast_has_natives_types(mode: str) -> None:
    torch.manual_seed(0)
    native = nn.MultiheadAttention(12, 3, batch_first=True).train(mode == "train")
    ours = copy.deepcopy(native)
    replace_self_attention(ours)
    for dtype in (torch.float32, torch.bfloat16):  # as a first layer gets it, and as a later one
        kinds = []
        for layer in (ours, native):
            x = draw(2, 5, 12, dtype=dtype).requires_grad_(mode != "no_grad")
            with torch.set_grad_enabled(mode != "no_grad"), torch.autocast("cpu", torch.bfloat16):
                y = layer(x, x, x, need_weights=False)[0]
            kinds.append([y.dtype])
            if mode != "no_grad":
                y.float().sum().backward()
                kinds[-1] += [x.grad.dtype, *(p.grad.dtype for p in layer.parameters())]  # type: ignore[union-attr]
        assert kinds[0] == kinds[1]
        assert ours.last_path == "operator"


# ---- training -------------------------------------------------------------------------------------------


class Small(nn.Module):
    """One attention layer and a residual, in the type asked for."""

    def __init__(self, attention: Callable[[], nn.Module]) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.attention = attention()
        self.head = nn.Linear(12, 12)
        self.double()

    def forward(self, x: Tensor) -> Tensor:
        if isinstance(self.attention, nn.MultiheadAttention):
            return self.head(x + self.attention(x, x, x, need_weights=False)[0])
        return self.head(x + self.attention(x))


def swapped(kernel: str) -> nn.Module:
    layer = nn.MultiheadAttention(12, 3, batch_first=True)
    replace_self_attention(layer, kernel)
    return layer


def own(kernel: str) -> nn.Module:
    return SelfAttention.from_multihead_attention(
        nn.MultiheadAttention(12, 3, batch_first=True), kernel=kernel
    )


def native_layer(_: str) -> nn.Module:
    return nn.MultiheadAttention(12, 3, batch_first=True)


KINDS = pytest.mark.parametrize("kind", [swapped, own])


@KINDS
@KERNELS
def test_training_with_a_gradient_scaler(kind: Callable[[str], nn.Module], kernel: str) -> None:
    """The scaled loss overflows at first; the scaler skips those steps and finds its scale, as with native.

    In float64, so that what is left is rounding; the loss is counted in a unit so small that it overflows that, too.
    """
    unit = 2.0**900

    def train(make: Callable[[str], nn.Module]) -> tuple[list[float], list[Tensor]]:
        model = Small(lambda: make(kernel))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05 / unit)
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**126, growth_interval=2)
        scales = []
        for _ in range(12):
            optimizer.zero_grad()
            scaler.scale(model(draw(2, 5, 12)).square().mean() * unit).backward()
            scaler.step(optimizer)
            scaler.update()
            scales.append(scaler.get_scale())
        return scales, [p.detach() for p in model.parameters()]

    scales, parameters = train(kind)
    native_scales, native_parameters = train(native_layer)
    assert scales == native_scales
    steps = list(itertools.pairwise(scales))
    assert any(after < before for before, after in steps)  # steps skipped
    assert any(after > before for before, after in steps)  # steps taken
    for found, right in zip(parameters, native_parameters, strict=True):
        torch.testing.assert_close(found, right)


@KINDS
@KERNELS
@pytest.mark.parametrize("reentrant", [False, True])
def test_activation_checkpointing(reentrant: bool, kind: Callable[[str], nn.Module], kernel: str) -> None:
    from torch.utils.checkpoint import checkpoint

    model = Small(lambda: kind(kernel))
    results = []
    for checkpointed in (False, True):
        model.zero_grad()
        x = draw(2, 5, 12).requires_grad_()
        y = checkpoint(model, x, use_reentrant=reentrant) if checkpointed else model(x)
        y.square().sum().backward()
        results.append([y.detach(), x.grad, *(p.grad for p in model.parameters())])
    for plain, found in zip(*results, strict=True):
        assert torch.equal(plain, found)


@pytest.fixture
def deterministic() -> Iterator[None]:
    """Deterministic algorithms, and fresh memory filled with NaN: what is read unwritten shows."""
    torch.use_deterministic_algorithms(True)
    assert torch.utils.deterministic.fill_uninitialized_memory
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.usefixtures("deterministic")
@KERNELS
@pytest.mark.parametrize("shape", [(2, 5, 12, 3), (1, 70, 24, 2), (3, 1, 8, 2), (0, 4, 8, 2)], ids=str)
def test_deterministic_mode(shape: tuple[int, ...], kernel: str) -> None:
    case = make_case(*shape)
    dy = draw(*case.x.shape)

    def once() -> list[Tensor]:
        y = torch.ops.attnscope.self_attention_packed(*case.leaves, case.heads, True, kernel)
        return [y.detach(), *torch.autograd.grad(y, case.leaves, dy)]

    first = once()
    for found, again in zip(first, once(), strict=True):
        assert found.isfinite().all()
        assert torch.equal(found, again)


def test_gradients_add_up_over_micro_batches() -> None:
    model = Small(lambda: own("auto"))
    x = draw(4, 5, 12)
    expected = torch.autograd.grad(model(x).square().sum(), list(model.parameters()))
    for part in x.split(1):
        model(part).square().sum().backward()
    for p, right in zip(model.parameters(), expected, strict=True):
        torch.testing.assert_close(p.grad, right)


# ---- other owners of the parameters ---------------------------------------------------------------------


@KERNELS
@pytest.mark.parametrize("target", ["in_proj_weight", "out_proj"])
def test_weight_norm(target: str, kernel: str) -> None:
    """The gradients reach the magnitude and the direction."""
    layer = SelfAttention(12, 3, causal=True, kernel=kernel).double()
    plain = copy.deepcopy(layer)
    owner, name = (layer, target) if target == "in_proj_weight" else (layer.out_proj, "weight")
    nn.utils.parametrizations.weight_norm(owner, name)
    x = draw(2, 5, 12)
    torch.testing.assert_close(layer(x), plain(x))
    layer(x).square().sum().backward()
    magnitude, direction = owner.parametrizations[name].original0, owner.parametrizations[name].original1
    given = [magnitude.detach().clone().requires_grad_(), direction.detach().clone().requires_grad_()]
    weight = torch._weight_norm(given[1], given[0], 0)
    in_weight, out_weight = plain.in_proj_weight, plain.out_proj.weight
    if target == "in_proj_weight":
        in_weight = weight
    else:
        out_weight = weight
    parts = zip(in_weight.chunk(3), plain.in_proj_bias.chunk(3), strict=True)
    nine = [x, *(t for pair in parts for t in pair), out_weight, plain.out_proj.bias]
    expected = torch.autograd.grad(reference.self_attention(*nine, 3, True).square().sum(), given)
    torch.testing.assert_close([magnitude.grad, direction.grad], list(expected))


@KERNELS
def test_functional_call_uses_and_differentiates_what_it_is_given(kernel: str) -> None:
    layer = SelfAttention(12, 3, causal=True, kernel=kernel).double()
    given = {name: draw(*p.shape).mul(0.3).requires_grad_() for name, p in layer.named_parameters()}
    x = draw(2, 5, 12)
    y = torch.func.functional_call(layer, given, (x,))
    parts = zip(given["in_proj_weight"].chunk(3), given["in_proj_bias"].chunk(3), strict=True)
    nine = [x, *(t for pair in parts for t in pair), given["out_proj.weight"], given["out_proj.bias"]]
    expected = reference.self_attention(*nine, 3, True)
    torch.testing.assert_close(y, expected)
    leaves = list(given.values())
    for found, right in zip(
        torch.autograd.grad(y.sum(), leaves), torch.autograd.grad(expected.sum(), leaves), strict=True
    ):
        torch.testing.assert_close(found, right)
    assert all(p.grad is None for p in layer.parameters())


@KINDS
def test_an_ensemble_by_stacked_parameters(kind: Callable[[str], nn.Module]) -> None:
    """stack_module_state, functional_call and vmap: three models in one call."""
    models = [Small(lambda: kind("auto")) for _ in range(3)]
    for i, model in enumerate(models):
        for p in model.parameters():
            p.data.mul_(1 + i / 4)
    parameters, buffers = torch.func.stack_module_state(models)
    x = draw(2, 5, 12)

    def call(parameters: dict[str, Any], buffers: dict[str, Any]) -> Tensor:
        result: Tensor = torch.func.functional_call(models[0], (parameters, buffers), (x,))
        return result

    import warnings

    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message="There is a performance drop"
        )  # native's, of the swapped layer
        found = torch.vmap(call)(parameters, buffers)
    torch.testing.assert_close(found, torch.stack([model(x) for model in models]))
