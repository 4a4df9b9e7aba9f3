"""Files as users write them, good and bad."""

from __future__ import annotations

from pathlib import Path

from app.core.own import OwnFile, examine

HEAD = """\
import gc, os, sys, threading, time
import torch
import torch.nn.functional as F
from attnscope import implementation

calls = 0

def attention(w, p):
    def forward(x):
        split = lambda t: t.view(t.shape[0], t.shape[1], w.num_heads, w.head_dim).transpose(1, 2)
        q, k, v = (split(t) for t in F.linear(x, p.in_proj_weight, p.in_proj_bias).chunk(3, -1))
        c = F.scaled_dot_product_attention(q, k, v, is_causal=w.causal)
        return F.linear(c.transpose(1, 2).flatten(2), p.out_weight, p.out_bias)
    return forward
"""

GOOD = (
    HEAD
    + """
@implementation(title="Mine")
def build(w, p):
    return attention(w, p)
"""
)


def acting(act: str, when: str = "True") -> str:
    """A right implementation that does something else in each call for which `when` holds."""
    return (
        HEAD
        + f"""
@implementation(title="Mine")
def build(w, p):
    right = attention(w, p)
    def forward(x):
        global calls
        calls += 1
        y = right(x)
        if {when}:
            {act}
        return y
    return forward
"""
    )


def write(folder: Path, text: str, name: str = "mine.py") -> OwnFile:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return examine(path).file
