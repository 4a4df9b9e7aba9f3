"""Differentiation and mapping by other means than one backward pass: torch.func, forward mode, vmap, second order."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from self_attention_ext import reference, self_attention
from torch import Tensor

from tests.native.cases import make_case

# torch.func loads torch.jit parts that newer releases call deprecated.
pytestmark = [
    pytest.mark.build,
    pytest.mark.usefixtures("library"),
    pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*torch.jit.script:FutureWarning"),
]

Layer = Callable[..., Tensor]
KERNELS = ("aten", "fused")


def draw(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(2))


def packed(kernel: str) -> Layer:
    return lambda *leaves: torch.ops.attnscope.self_attention_packed(*leaves, 3, True, kernel)


def separate(kernel: str) -> Layer:
    return lambda *leaves: self_attention(*nine(*leaves), 3, True, kernel)


def twin(*leaves: Tensor) -> Tensor:
    return reference.self_attention(*nine(*leaves), 3, True)


def nine(
    x: Tensor, in_weight: Tensor, in_bias: Tensor, out_weight: Tensor, out_bias: Tensor
) -> tuple[Tensor, ...]:
    pairs = zip(in_weight.chunk(3), in_bias.chunk(3), strict=True)
    return (x, *(t for pair in pairs for t in pair), out_weight, out_bias)


FORMS = pytest.mark.parametrize("form", [packed, separate], ids=["packed", "separate"])
LEVELS = pytest.mark.parametrize("kernel", KERNELS)
TRANSFORMS: dict[str, Callable[[Layer, tuple[Tensor, ...]], object]] = {
    "grad": lambda layer, leaves: torch.func.grad(
        lambda *t: layer(*t).square().sum(), argnums=(0, 1, 2, 3, 4)
    )(*leaves),
    "vjp": lambda layer, leaves: torch.func.vjp(layer, *leaves)[1](torch.ones_like(leaves[0])),
    "jvp": lambda layer, leaves: torch.func.jvp(layer, leaves, tuple(torch.ones_like(t) for t in leaves)),
    "jacrev": lambda layer, leaves: torch.func.jacrev(layer)(*leaves),
    "jacfwd": lambda layer, leaves: torch.func.jacfwd(layer)(*leaves),
    "hessian": lambda layer, leaves: torch.func.hessian(lambda x: layer(x, *leaves[1:]).square().sum())(
        leaves[0]
    ),
}


@LEVELS
@FORMS
@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_transform_of_torch_func_is_that_of_the_twin(
    name: str, form: Callable[[str], Layer], kernel: str
) -> None:
    case = make_case(1, 3, 6, 3, gradients=False)
    transform = TRANSFORMS[name]
    torch.testing.assert_close(transform(form(kernel), case.leaves), transform(twin, case.leaves))


@LEVELS
@FORMS
def test_forward_mode_is_right(form: Callable[[str], Layer], kernel: str) -> None:
    leaves = make_case(2, 3, 6, 3).leaves
    assert torch.autograd.gradcheck(form(kernel), leaves, check_forward_ad=True, check_backward_ad=False)


@LEVELS
@FORMS
@pytest.mark.parametrize("mapped", ["x", "everything"])
def test_vmap_equals_the_loop_with_gradients(mapped: str, form: Callable[[str], Layer], kernel: str) -> None:
    case = make_case(gradients=False)
    x = draw(3, *case.x.shape)
    if mapped == "x":
        leaves, dims = (x, *case.leaves[1:]), (0, None, None, None, None)
    else:  # an ensemble: every member with weights of its own
        scale = torch.tensor([1.0, 0.5, 2.0], dtype=torch.float64)
        leaves = (x, *(torch.einsum("n,...->n...", scale, t) for t in case.leaves[1:]))
        dims = (0, 0, 0, 0, 0)
    leaves = tuple(t.detach().requires_grad_() for t in leaves)
    layer = form(kernel)
    found = torch.vmap(layer, in_dims=dims)(
        *leaves
    )  # warnings are errors here: it does not fall back to a loop
    items = [[t if d is None else t[i] for t, d in zip(leaves, dims, strict=True)] for i in range(3)]
    looped = torch.stack([layer(*item) for item in items])
    torch.testing.assert_close(found, looped)
    for one, other in zip(
        torch.autograd.grad(found.square().sum(), leaves),
        torch.autograd.grad(looped.square().sum(), leaves),
        strict=True,
    ):
        torch.testing.assert_close(one, other)


@LEVELS
def test_vmap_over_another_axis_and_gradients_per_sample(kernel: str) -> None:
    case = make_case(gradients=False)
    x = draw(2, 5, 3, 12)
    layer = packed(kernel)
    found = torch.vmap(lambda x: layer(x, *case.leaves[1:]), in_dims=2, out_dims=1)(x)
    looped = torch.stack([layer(x[:, :, i], *case.leaves[1:]) for i in range(3)], 1)
    torch.testing.assert_close(found, looped)

    def loss(weight: Tensor, x: Tensor) -> Tensor:
        return layer(x, weight, *case.leaves[2:]).square().sum()

    each = torch.vmap(torch.func.grad(loss), in_dims=(None, 2))(case.in_weight, x)
    expected = torch.stack([torch.func.grad(loss)(case.in_weight, x[:, :, i]) for i in range(3)])
    torch.testing.assert_close(each, expected)


def test_a_wrong_shape_is_named_inside_a_transform_too() -> None:
    case = make_case(gradients=False)
    with pytest.raises(ValueError, match=r"in_proj_weight \(shape \[35, 12\]\)"):
        torch.vmap(lambda x: packed("auto")(x, case.in_weight[:-1], *case.leaves[2:]))(draw(3, 2, 5, 12))
    with pytest.raises(ValueError, match="'banana'; expected one of"):
        torch.func.grad(lambda x: packed("banana")(x, *case.leaves[1:]).sum())(case.x)


@pytest.mark.parametrize("absent", ["q", "k", "v", "all"])
def test_absent_biases_count_as_zero_inside_a_transform(absent: str) -> None:
    case = make_case(gradients=False)
    given = [
        None if index in (2, 4, 6) and (absent == "all" or "qkv"[(index - 2) // 2] == absent) else t
        for index, t in enumerate(case.nine())
    ]

    def loss(layer: Layer) -> Tensor:
        return torch.func.grad(lambda x: layer(x, *given[1:], 3, True).square().sum())(case.x)

    zeroed = [torch.zeros(12, dtype=torch.float64) if t is None else t for t in given]
    expected = torch.func.grad(lambda x: reference.self_attention(x, *zeroed[1:], 3, True).square().sum())(
        case.x
    )
    torch.testing.assert_close(loss(self_attention), expected)


@LEVELS
def test_the_second_derivative_is_right(kernel: str) -> None:
    """gradcheck and opcheck pass on a wrong one."""
    for causal in (False, True):
        case = make_case(1, 3, 4, 2, causal)
        assert torch.autograd.gradgradcheck(
            lambda *t: torch.ops.attnscope.self_attention_packed(*t, 2, causal, kernel),  # noqa: B023
            case.leaves,
            fast_mode=True,
        )
        assert torch.autograd.gradgradcheck(
            lambda *t: self_attention(*t, 2, causal, kernel),  # noqa: B023
            case.separate(),
            fast_mode=True,
        )
