"""What level `fused` takes and keeps: peak memory beside F.scaled_dot_product_attention's, each in a fresh process, and
none kept over many calls.
"""

from __future__ import annotations

import sys

import pytest

from tests.native.test_fused import run_apart

pytestmark = [
    pytest.mark.build,
    pytest.mark.slow,
    pytest.mark.usefixtures("library"),
    pytest.mark.timeout(1800),
]

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the peak from /proc")

# How far one call's peak rises above what was there before it, after a small call has brought in threads and code.
PEAK = """
import sys
import torch, torch.nn.functional as F
import self_attention_ext as ext
ext.load()
who, seq_len, backward = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "backward"
embed_dim, heads = 512, 8
layer = ext.SelfAttention(embed_dim, heads, causal=True, kernel="fused")

def peer(x):
    batch, length, _ = x.shape
    qkv = F.linear(x, layer.in_proj_weight, layer.in_proj_bias)
    q, k, v = qkv.view(batch, length, 3, heads, embed_dim // heads).permute(2, 0, 3, 1, 4).unbind(0)
    o = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return F.linear(o.transpose(1, 2).reshape(batch, length, embed_dim), layer.out_proj.weight, layer.out_proj.bias)

call = peer if who == "sdpa" else layer

def step(length):
    x = torch.randn(1, length, embed_dim, requires_grad=backward)
    with torch.set_grad_enabled(backward):
        y = call(x)
        if backward:
            y.backward(torch.ones_like(y))

step(64)
layer.zero_grad(set_to_none=True)

def status(name):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(name))

with open("/proc/self/clear_refs", "w") as control:
    control.write("5")  # the peak begins anew
before = status("VmRSS")
step(seq_len)
print((status("VmHWM") - before) / 1024)
"""


def peak(who: str, seq_len: int, direction: str) -> float:
    """MiB."""
    code = f"import sys\nsys.argv[1:] = {[who, str(seq_len), direction]!r}\n{PEAK}"
    return float(run_apart(code).split()[-1])


@linux
@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("seq_len", [512, 2048, 4096, 8192])
def test_peak_memory_is_at_most_a_tenth_above_sdpas(seq_len: int, direction: str) -> None:
    ours, peers = peak("fused", seq_len, direction), peak("sdpa", seq_len, direction)
    print(f"S {seq_len} {direction}: fused {ours:.1f} MiB, sdpa {peers:.1f} MiB")
    slack = 2.0  # MiB: the resident size of a process is not exact to less
    assert ours <= 1.1 * peers + slack


def test_a_hundred_thousand_mixed_calls_leave_memory_flat() -> None:
    """Forward and backward, every type, one thread and all of them."""
    code = """
import resource, torch, self_attention_ext as ext
ext.load()
types = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
layers = {(e, t): ext.SelfAttention(e, 2, causal=e != 64, kernel="fused").to(t) for e in (8, 64, 100) for t in types}
threads = torch.get_num_threads()

def calls(count):
    for i in range(count):
        if i % 500 == 0:
            torch.set_num_threads(1 if i % 1000 else threads)
        layer = layers[(8, 64, 100)[i % 3], types[i // 3 % 4]]
        wanted = i % 4 == 0
        x = torch.randn(1 + i % 3, i % 41, layer.embed_dim, dtype=layer.in_proj_weight.dtype, requires_grad=wanted)
        with torch.set_grad_enabled(wanted):
            y = layer(x)
        if wanted:
            y.sum().backward()
            layer.zero_grad(set_to_none=True)

calls(5_000)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
calls(100_000)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""
    pytest.importorskip("resource")
    grown = float(run_apart(code, timeout=1500).split()[-1])
    print(f"grown by {grown:.1f} MiB")
    assert grown < 4
