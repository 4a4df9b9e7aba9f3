"""Time one decoding step of the extension against its Python peer on the CPU: interleaved, paired, one process.

    python tests/bench/decoding.py                       # 128 tokens cached, embedding 128 and 512
    python tests/bench/decoding.py --shapes 1x128x512x8,8x1024x512x8 --threads 1 --dtype bfloat16

A shape is BATCHxCACHEDxEMBEDxHEADS. The peer is what a Python programmer would write well: one packed
projection, keys and values written in place into a cache made once, narrow views of it,
F.scaled_dot_product_attention. Each round times every contender once, in a rotating order; a ratio is taken
within its round, and the median ratio is reported, beside the time that merely reading the weights and the
cache takes on the same threads. Before timing, outputs are held against float64 by the project's rule.
Run it with nothing else running.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "native")]

import self_attention_ext as ext  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402, N812
from torch import Tensor, nn  # noqa: E402

Call = Callable[[], Tensor]


def peer(layer: nn.MultiheadAttention, x_t: Tensor, keys: Tensor, values: Tensor, position: int) -> Tensor:
    """One step in Python: x_t [B, 1, E], caches [B, H, max_len, D] -> [B, 1, E]."""
    batch, _, embed_dim = x_t.shape
    packed = F.linear(x_t, layer.in_proj_weight, layer.in_proj_bias)
    shape = (batch, 1, 3, layer.num_heads, layer.head_dim)
    q, k, v = packed.view(shape).permute(2, 0, 3, 1, 4).unbind(0)
    keys.narrow(2, position, 1).copy_(k)
    values.narrow(2, position, 1).copy_(v)
    length = position + 1
    c = F.scaled_dot_product_attention(q, keys.narrow(2, 0, length), values.narrow(2, 0, length))
    c = c.transpose(1, 2).reshape(batch, 1, embed_dim)
    return F.linear(c, layer.out_proj.weight, layer.out_proj.bias)


def measure(calls: dict[str, Call], seconds: float) -> list[dict[str, float]]:
    """Rounds of seconds per call."""
    inner = {}
    for name, call in calls.items():
        for _ in range(20):
            call()
        begun = time.perf_counter()
        call()
        inner[name] = max(1, min(200, int(5e-4 / max(time.perf_counter() - begun, 1e-7))))
    names, rounds = list(calls), []
    end = time.perf_counter() + seconds * len(calls)
    while len(rounds) < 7 or time.perf_counter() < end:
        shift, row = len(rounds) % len(names), {}
        for name in names[shift:] + names[:shift]:
            call, count = calls[name], inner[name]
            call()
            begun = time.perf_counter()
            for _ in range(count):
                call()
            row[name] = (time.perf_counter() - begun) / count
        rounds.append(row)
    return rounds


def contenders(shape: str, dtype: torch.dtype, kernels: list[str]) -> tuple[dict[str, Call], list[Tensor]]:
    """Calls that do the same step again and again, and the memory that each of them must read."""
    batch, cached, embed_dim, heads = map(int, shape.split("x"))
    torch.manual_seed(0)
    layer = nn.MultiheadAttention(embed_dim, heads, batch_first=True).to(dtype).eval()
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=embed_dim**-0.5)
    x_t = torch.randn(batch, 1, embed_dim, dtype=dtype)
    full = (batch, heads, cached + 1, embed_dim // heads)
    keys, values = torch.randn(full, dtype=dtype), torch.randn(full, dtype=dtype)
    calls: dict[str, Call] = {"peer": lambda: peer(layer, x_t, keys, values, cached)}
    for kernel in kernels:
        ours = ext.SelfAttention.from_multihead_attention(layer, kernel=kernel)
        cache = ours.new_cache(batch, cached + 1)
        cache.append(keys[:, :, :cached], values[:, :, :cached])

        def call(ours: ext.SelfAttention = ours, cache: ext.KeyValueCache = cache) -> Tensor:
            cache.length = cached
            return ours.step(x_t, cache)

        calls[kernel] = call
    wide = nn.MultiheadAttention(embed_dim, heads, batch_first=True).double()
    wide.load_state_dict({name: t.double() for name, t in layer.state_dict().items()})
    exact = peer(wide, x_t.double(), keys.double(), values.double(), cached)
    error = {name: (call().double() - exact).abs().max().item() for name, call in calls.items()}
    bound = 2 * max(error["peer"], torch.finfo(dtype).eps * exact.abs().max().item())
    for name, found in error.items():
        if not found <= bound:
            raise SystemExit(f"{shape} {name}: error {found:.2e}, at most {bound:.2e} expected")
    return calls, [layer.in_proj_weight, layer.out_proj.weight, keys, values]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--shapes", default="1x128x128x4,1x128x512x8")
    parser.add_argument("--kernels", default="aten,fused")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=2.0, help="per contender and shape")
    parser.add_argument("--dtype", default="float32")
    asked = parser.parse_args()
    if asked.threads:
        torch.set_num_threads(asked.threads)
    ext.load()
    kernels = asked.kernels.split(",")
    with torch.inference_mode():
        for shape in asked.shapes.split(","):
            calls, memory = contenders(shape, getattr(torch, asked.dtype), kernels)
            flat = torch.cat([t.detach().reshape(-1) for t in memory])
            calls["read"] = lambda flat=flat: flat.sum()  # type: ignore[misc]
            rounds = measure(calls, asked.seconds)
            median = {name: statistics.median(row[name] for row in rounds) for name in calls}
            ratios = "  ".join(
                f"{k}: {median[k] * 1e6:.1f} µs, {statistics.median(r['peer'] / r[k] for r in rounds):.2f}x"
                for k in kernels
            )
            size = flat.numel() * flat.element_size()
            print(
                f"{shape:>16}  peer: {median['peer'] * 1e6:.1f} µs  {ratios}  "
                f"({size / 1e6:.2f} MB; reading them: {median['read'] * 1e6:.1f} µs)",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
