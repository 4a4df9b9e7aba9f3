"""Hot-layer replacement: the operator inside the self-attention layers of a model that exists already."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from torch import Tensor, nn

from ._drop_in import Calls, ReplacedMultiheadAttention
from ._module import unfit_layer
from ._operator import check_kernel, require


@dataclass(frozen=True)
class Layer:
    """One layer of the model: its qualified names ("" is the model itself), and what there is to say of
    it.
    """

    names: tuple[str, ...]
    note: str = ""

    def __str__(self) -> str:
        title = ", ".join(name or "the model itself" for name in self.names)
        return f"{title}: {self.note}" if self.note else title


@dataclass(frozen=True)
class Replacement:
    """What `replace_self_attention` did, each layer once: those it `swapped`, those it `left` with the reason
    as their note, and those that were swapped `before`.
    """

    swapped: tuple[Layer, ...] = ()
    left: tuple[Layer, ...] = ()
    before: tuple[Layer, ...] = ()

    def __str__(self) -> str:
        parts = (("swapped", self.swapped), ("left", self.left), ("swapped before", self.before))
        lines = [line for title, layers in parts if layers for line in _listed(title, layers)]
        return "\n".join(lines) or "no nn.MultiheadAttention found"


def replace_self_attention(model: nn.Module, kernel: str = "auto") -> Replacement:
    """Has the operator compute the self-attention of a model's nn.MultiheadAttention layers, in place.

        import self_attention_ext as ext

        ext.load()                                    # once per process: from the cache, or compiled
        model = torchvision.models.vit_b_16(...)      # or any model made of nn.TransformerEncoderLayer
        print(ext.replace_self_attention(model))      # which layers were swapped, which left and why
        y = model(x)                                  # as before, to rounding
        layer = model.encoder.layers[0].self_attention
        layer.last_path, layer.calls                  # "operator", Calls(operator=1, native=0, ...)
        ext.restore_self_attention(model)             # nn.MultiheadAttention again

    Nothing else changes: a swapped layer stays the same object, still an nn.MultiheadAttention, with the same
    parameters, names, hooks and attributes, so optimizers, checkpoints, and references to it stay right. Its
    signature and results are those of before. Do it before wrapping or compiling the model, or after: a
    compiled model compiles anew.

    The operator takes the calls with one tensor as query, key and value, without weights wanted, with no mask
    or the causal one, in float32, float64, bfloat16 or float16. Every other call (cross-attention,
    key_padding_mask, another mask, dropout in training, nested tensors, transforms of torch.func)
    runs nn.MultiheadAttention's own code on the same parameters; `layer.last_path` names the
    reason and `layer.why_native(...)` tells it beforehand. So errors stay as they were, and an item that a
    padding mask hides wholly comes out as the native layer gives it: as the output bias on one of that
    layer's paths, as NaN on another. No item touches another.

    A causal mask is recognised by `is_causal=True` beside an attn_mask [L, L], which is the caller's promise;
    without that hint by its values, where reading them is cheap: on the CPU, outside of tracing.
    (nn.TransformerEncoder finds out itself, and passes the hint on.)

    nn.TransformerEncoderLayer in eval without gradients computes everything in one call of its own and
    bypasses its attention layer, unless a hook is attached somewhere that it must not skip. So
    a swapped layer gets one that does nothing, on its `out_proj`, which is never called and costs no time.

    Left as they are, and listed in the report: subclasses, layers with keys or values of other sizes, with
    `add_bias_kv` or `add_zero_attn`, whose `forward` somebody exchanged, and the cross-attention of
    nn.TransformerDecoderLayer. Calling it again swaps what is new, and sets `kernel` on all.

    A model saved whole needs this package to be loaded; its state_dict does not.

    Raises ValueError for an unknown kernel, TypeError for what is no module, and RuntimeError if no
    library is loaded.
    """
    check_kernel(kernel)
    if not isinstance(model, nn.Module):
        raise TypeError(f"model is a {type(model).__name__}; expected a torch.nn.Module")
    require()
    swapped, left, before = [], [], []
    cross = _cross_attention(model)
    for names, layer in _attention_layers(model):
        if isinstance(layer, ReplacedMultiheadAttention):
            layer.kernel = kernel
            before.append(Layer(names))
            continue
        reason = cross.get(id(layer), "") or _why_not(layer)
        if reason:
            left.append(Layer(names, reason))
            continue
        _swap(layer, kernel)
        note = f"in training, dropout={layer.dropout} takes the native path" if layer.dropout else ""
        swapped.append(Layer(names, note))
    return Replacement(tuple(swapped), tuple(left), tuple(before))


def restore_self_attention(model: nn.Module) -> tuple[str, ...]:
    """Makes the swapped layers nn.MultiheadAttention again, on the same parameters; their names."""
    restored: list[str] = []
    for names, layer in _attention_layers(model):
        if type(layer) is not ReplacedMultiheadAttention:
            continue
        layer.__class__ = nn.MultiheadAttention  # type: ignore[assignment]
        del layer.kernel, layer.calls
        hooks = layer.out_proj._forward_pre_hooks
        for key in [key for key, hook in hooks.items() if hook is must_not_be_skipped]:
            del hooks[key]
        restored.extend(names)
    return tuple(restored)


def must_not_be_skipped(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
    """A hook that does nothing. Its presence keeps nn.TransformerEncoderLayer from bypassing the layer."""


def _swap(layer: nn.MultiheadAttention, kernel: str) -> None:
    # The class alone is exchanged, as torch does to parametrize a module: whoever holds the layer, under one
    # name or several, holds the swapped one.
    layer.__class__ = ReplacedMultiheadAttention
    assert isinstance(layer, ReplacedMultiheadAttention)
    layer.kernel = kernel
    layer.calls = Calls()
    layer.out_proj.register_forward_pre_hook(must_not_be_skipped)


def _why_not(layer: nn.MultiheadAttention) -> str:
    if type(layer) is not nn.MultiheadAttention:
        return f"it is a {type(layer).__name__}, a subclass that may compute something else"
    if "forward" in layer.__dict__:
        return "its forward was exchanged on the layer itself"
    return unfit_layer(layer)


def _attention_layers(model: nn.Module) -> Iterator[tuple[tuple[str, ...], nn.MultiheadAttention]]:
    """Each nn.MultiheadAttention once, under all its names."""
    found: dict[int, tuple[list[str], nn.MultiheadAttention]] = {}
    for name, module in model.named_modules(remove_duplicate=False):
        if isinstance(module, nn.MultiheadAttention):
            found.setdefault(id(module), ([], module))[0].append(name)
    for names, layer in found.values():
        yield tuple(names), layer


def _cross_attention(model: nn.Module) -> dict[int, str]:
    """The layers known to attend from one sequence to another, by id, with the reason to leave them."""
    decoders = (module for module in model.modules() if isinstance(module, nn.TransformerDecoderLayer))
    reason = "it is the decoder's cross-attention: its keys and values come from another sequence"
    return {id(decoder.multihead_attn): reason for decoder in decoders}


def _listed(title: str, layers: tuple[Layer, ...]) -> list[str]:
    return [f"{title}:", *(f"  {layer}" for layer in layers)]
