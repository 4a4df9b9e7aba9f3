"""How far level `fused` is from the speed of its matrix products:

    python tests/bench/floor_speed.py [--threads N] [--shapes 1x1x128x4,8x64x256x4] [--seconds 0.3]

Per shape BATCHxSEQxEMBEDxHEADS, causal, forward: the time of the two projections alone, by torch's own product into
memory that is there already, of the products inside the attention at the same speed (half of 4 B S² E operations
causally), and of the whole layer. `fused / floor` is what is left to win, at most. A script, not a test: it asserts
nothing, and wants a machine with nothing else to do.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import self_attention_ext as ext
import torch

GRID = "1x1x128x4,8x1x128x4,1x16x128x4,8x16x128x4,8x64x128x4,8x64x256x4"
GRID += ",8x128x256x8,1x512x512x8,8x128x512x4,1x2048x512x8"


def medians(calls: list[Callable[[], object]], seconds: float) -> list[float]:
    """Seconds per call, measured in turns."""
    for call in calls:
        call()
    times: list[list[float]] = [[] for _ in calls]
    end = time.perf_counter() + seconds * len(calls)
    while time.perf_counter() < end or len(times[0]) < 7:
        for call, found in zip(calls, times, strict=True):
            begun = time.perf_counter()
            for _ in range(5):
                call()
            found.append((time.perf_counter() - begun) / 5)
    return [statistics.median(found) for found in times]


def measure(shape: tuple[int, int, int, int], seconds: float) -> str:
    batch, seq_len, embed_dim, heads = shape
    rows = batch * seq_len
    layer = ext.SelfAttention(embed_dim, heads, causal=True, kernel="fused")
    x = torch.randn(batch, seq_len, embed_dim)
    flat = x.view(rows, embed_dim)
    packed, out = layer.in_proj_weight.detach().t(), layer.out_proj.weight.detach().t()
    qkv, y = torch.empty(rows, 3 * embed_dim), torch.empty(rows, embed_dim)

    def projections() -> None:
        torch.mm(flat, packed, out=qkv)
        torch.mm(flat, out, out=y)

    projected, whole = medians([projections, lambda: layer(x)], seconds)
    # The projections' own speed, granted to the attention's products too.
    attention = projected * (2 * batch * seq_len * (seq_len + 1) / 2 * embed_dim) / (4 * rows * embed_dim**2)
    floor = projected + attention
    columns = [projected, attention, whole]
    return "  ".join(f"{1e6 * t:10.1f}" for t in columns) + f"  {whole / floor:12.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shapes", default=GRID)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--seconds", type=float, default=0.3, help="per measured call and shape")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    ext.load()
    print(f"{'shape':>16}  {'projections':>10}  {'attention':>9}  {'fused, µs':>10}  {'fused / floor':>12}")
    with torch.inference_mode():
        for shape in args.shapes.split(","):
            batch, seq_len, embed_dim, heads = (int(n) for n in shape.split("x"))
            print(f"{shape:>16}  {measure((batch, seq_len, embed_dim, heads), args.seconds)}", flush=True)


if __name__ == "__main__":
    main()
