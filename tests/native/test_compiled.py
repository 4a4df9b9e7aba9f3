"""torch.compile and torch.export: one graph, with the operator in it, and the same results."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

import pytest
import torch
from self_attention_ext import SelfAttention, replace_self_attention, restore_self_attention
from torch import Tensor, nn

# What torch's own tracing is told about itself.
pytestmark = [
    pytest.mark.build,
    pytest.mark.usefixtures("library", "fresh_dynamo"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:torch"),
    pytest.mark.filterwarnings("ignore::FutureWarning:torch"),
    pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*torch.jit.script:FutureWarning"),
]

KERNELS = pytest.mark.parametrize("kernel", ["aten", "fused"])
LENGTH, E, HEADS = 5, 12, 3


@pytest.fixture
def fresh_dynamo() -> Iterator[None]:
    """Nothing compiled by another test is found again, and none of this one's."""
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def draw(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(3)).to(dtype)


class Graphs:
    """A backend that keeps the graphs it is given, and runs what comes of them by torch's own traced autograd."""

    def __init__(self) -> None:
        self.found: list[torch.fx.GraphModule] = []

    def __call__(self, graph: torch.fx.GraphModule, inputs: list[Tensor]) -> Callable[..., object]:
        from torch._dynamo import lookup_backend

        result: Callable[..., object] = lookup_backend("aot_eager")(graph, inputs)
        self.found.append(
            graph
        )  # not before: with symbolic sizes, the first attempt is given up and repeated
        return result

    def operators(self) -> int:
        return sum("attnscope" in str(node.target) for graph in self.found for node in graph.graph.nodes)


def encoder(kernel: str, layers: int = 2) -> tuple[nn.Module, nn.Module]:
    """Native, and swapped."""
    torch.manual_seed(1)
    layer = nn.TransformerEncoderLayer(E, 2, 16, dropout=0.0, batch_first=True)
    native = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False).double()
    ours = copy.deepcopy(native)
    replace_self_attention(ours, kernel)
    return native, ours


@KERNELS
@pytest.mark.parametrize("dynamic", [False, True])
def test_a_training_step_is_one_graph(dynamic: bool, kernel: str) -> None:
    layer = SelfAttention(E, HEADS, causal=True, kernel=kernel).double()
    graphs = Graphs()
    compiled = torch.compile(
        lambda x: layer(x).square().sum(), fullgraph=True, dynamic=dynamic, backend=graphs
    )
    for length in (LENGTH, 9) if dynamic else (LENGTH,):
        x = draw(2, length, E).requires_grad_()
        leaves = [x, *layer.parameters()]
        expected = torch.autograd.grad(layer(x).square().sum(), leaves)
        for found, right in zip(torch.autograd.grad(compiled(x), leaves), expected, strict=True):
            torch.testing.assert_close(found, right)
    assert (len(graphs.found), graphs.operators()) == (1, 1)


@KERNELS
@pytest.mark.parametrize("mode", ["train", "eval", "no_grad"])
@pytest.mark.parametrize("causal", [False, True])
def test_a_swapped_encoder_is_one_graph(causal: bool, mode: str, kernel: str) -> None:
    native, ours = encoder(kernel)
    native.train(mode == "train")
    ours.train(mode == "train")
    graphs = Graphs()
    compiled = torch.compile(ours, fullgraph=True, backend=graphs)
    x = draw(2, LENGTH, E)
    mask = nn.Transformer.generate_square_subsequent_mask(LENGTH, dtype=torch.float64) if causal else None
    with torch.set_grad_enabled(mode != "no_grad"):
        for _ in range(3):
            found = compiled(x, mask, is_causal=causal)
            torch.testing.assert_close(found, native(x, mask, is_causal=causal))
    assert (len(graphs.found), graphs.operators()) == (1, 2)  # and was compiled once for three calls
    if mode == "train":
        found.square().sum().backward()
        native(x, mask, is_causal=causal).square().sum().backward()
        for p, right in zip(ours.parameters(), native.parameters(), strict=True):
            torch.testing.assert_close(p.grad, right.grad)


def test_eager_calls_in_between_do_not_make_it_compile_again() -> None:
    """The record of plain calls is nothing that compiled code depends on."""
    _, ours = encoder("auto", layers=1)
    graphs = Graphs()
    compiled = torch.compile(ours, fullgraph=True, backend=graphs)
    layer = ours.layers[0].self_attn
    x = draw(2, LENGTH, E)
    for i in range(12):
        compiled(x)
        layer(x, x, x, need_weights=bool(i % 2))
    assert len(graphs.found) == 1
    assert (layer.calls.operator, layer.calls.native) == (6, 6)


def test_a_compiled_model_notices_a_swap_and_its_undoing() -> None:
    native, _ = encoder("auto", layers=1)
    graphs = Graphs()
    compiled = torch.compile(native, fullgraph=True, backend=graphs)
    x = draw(2, LENGTH, E)
    expected = compiled(x)
    assert graphs.operators() == 0
    replace_self_attention(native)
    torch.testing.assert_close(compiled(x), expected)
    assert graphs.operators() == 1
    restore_self_attention(native)
    torch.testing.assert_close(compiled(x), expected)
    assert graphs.operators() == 1


@pytest.mark.parametrize("what", ["unhinted mask", "padding", "weights"])
def test_what_is_not_covered_compiles_to_natives_graph(what: str) -> None:
    """An unhinted mask's values are not looked at while tracing: that would break the graph."""
    torch.manual_seed(0)
    native = nn.MultiheadAttention(E, HEADS, batch_first=True).double()
    ours = copy.deepcopy(native)
    replace_self_attention(ours)
    how: dict[str, object] = {
        "unhinted mask": {"attn_mask": torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)},
        "padding": {"key_padding_mask": torch.arange(LENGTH)[None] > torch.tensor([[4], [2]])},
        "weights": {"need_weights": True},
    }[what]
    graphs = Graphs()
    compiled = torch.compile(ours, fullgraph=True, backend=graphs)
    x = draw(2, LENGTH, E)
    found, expected = (layer(x, x, x, **{"need_weights": False, **how}) for layer in (compiled, native))
    torch.testing.assert_close(found, expected)
    assert graphs.operators() == 0


@pytest.mark.parametrize("shape", [(LENGTH, 2, E), (LENGTH, E)], ids=str)
def test_other_layouts_compile_too(shape: tuple[int, ...]) -> None:
    native = nn.MultiheadAttention(E, HEADS).double()
    ours = copy.deepcopy(native)
    replace_self_attention(ours)
    graphs = Graphs()
    x = draw(*shape)
    found = torch.compile(ours, fullgraph=True, backend=graphs)(x, x, x, need_weights=False)[0]
    torch.testing.assert_close(found, native(x, x, x, need_weights=False)[0])
    assert graphs.operators() == 1


@KERNELS
def test_autocast_inside_a_compiled_step_has_natives_types(kernel: str) -> None:
    """And, dtype for dtype, the results of the same step without the compiler."""
    layer = SelfAttention(E, HEADS, causal=True, kernel=kernel)
    x = draw(2, LENGTH, E, dtype=torch.float32).requires_grad_()
    leaves = [x, *layer.parameters()]

    def step(x: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return layer(x)

    results = []
    for call in (step, torch.compile(step, fullgraph=True, backend="aot_eager")):
        y = call(x)
        results.append([y.detach(), *torch.autograd.grad(y.float().square().mean(), leaves)])
    assert [t.dtype for t in results[1]] == [torch.bfloat16, *[torch.float32] * 5]
    for plain, found in zip(*results, strict=True):
        assert torch.equal(plain, found)


def test_checkpointing_inside_a_compiled_step() -> None:
    from torch.utils.checkpoint import checkpoint

    native, ours = encoder("auto", layers=1)
    x = draw(2, LENGTH, E)
    step = torch.compile(
        lambda x: checkpoint(ours, x, use_reentrant=False).square().sum(), fullgraph=True, backend="aot_eager"
    )
    step(x).backward()
    native(x).square().sum().backward()
    for p, right in zip(ours.parameters(), native.parameters(), strict=True):
        torch.testing.assert_close(p.grad, right.grad)


@pytest.mark.slow
@KERNELS
@pytest.mark.parametrize("autocast", [False, True])
def test_inductor_gives_the_same_training_step(autocast: bool, kernel: str) -> None:
    native, ours = encoder(kernel, layers=1)
    x = draw(2, LENGTH, E, dtype=torch.float32)
    native.float()
    ours.float()

    def step(model: nn.Module, x: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            return model(x).float().square().mean()

    losses, grads = [], []
    for model, call in ((ours, torch.compile(step, fullgraph=True)), (native, step), (native.double(), step)):
        model.zero_grad(set_to_none=True)
        exact = model is native and len(losses) == 2
        loss = call(model, x.double() if exact and not autocast else x)
        loss.backward()
        losses.append(loss.detach().double())
        grads.append([p.grad.double() for p in model.parameters()])  # type: ignore[union-attr]
    eps = torch.finfo(torch.bfloat16 if autocast else torch.float32).eps
    assert abs(losses[0] - losses[2]) <= 2 * max(abs(losses[1] - losses[2]), eps * abs(losses[2]))
    largest = max(g.abs().max() for g in grads[2])
    for found, eager, right in zip(*grads, strict=True):
        assert (found - right).abs().max() <= 3 * max((eager - right).abs().max(), eps * largest)


# ---- export ---------------------------------------------------------------------------------------------


@KERNELS
@pytest.mark.parametrize("strict", [False, True])
def test_an_exported_layer_keeps_the_operator(strict: bool, kernel: str) -> None:
    layer = SelfAttention(E, HEADS, causal=True, kernel=kernel).double().eval()
    x = draw(2, LENGTH, E)
    program = torch.export.export(layer, (x,), strict=strict)
    assert sum("attnscope" in str(node.target) for node in program.graph.nodes) == 1
    torch.testing.assert_close(program.module()(x), layer(x))


@pytest.mark.parametrize("strict", [False, True])
def test_an_exported_encoder_keeps_the_operator(strict: bool) -> None:
    native, ours = encoder("auto")
    x = draw(2, LENGTH, E)
    program = torch.export.export(ours.eval(), (x,), strict=strict)
    assert sum("attnscope" in str(node.target) for node in program.graph.nodes) == 2
    torch.testing.assert_close(program.module()(x), native.eval()(x))


def test_an_exported_layer_takes_any_length() -> None:
    layer = SelfAttention(E, HEADS, causal=True).double().eval()
    length = torch.export.Dim("length", min=2, max=64)
    program = torch.export.export(layer, (draw(2, LENGTH, E),), dynamic_shapes=({1: length},))
    for other in (2, 9, 33):
        x = draw(2, other, E)
        torch.testing.assert_close(program.module()(x), layer(x))
