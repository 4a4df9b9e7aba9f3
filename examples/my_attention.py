"""An attention implementation of your own: one file, one decorated function.

Try it:  attnscope run quick --add examples/my_attention.py --trust
Or in the window: Add your own… below the implementations.
"""

import torch.nn.functional as F

from attnscope import Parameters, Workload, implementation


@implementation(title="My attention")
def build(workload: Workload, parameters: Parameters):
    """Called once per workload, off the clock. Returns what is measured."""
    p = parameters
    heads, head_dim = workload.num_heads, workload.head_dim
    # Scaling q by 1/sqrt(D) once here saves a product over all scores in every call.
    scale = head_dim**-0.5

    def split(t):  # [B, S, E] -> [B, H, S, D]
        return t.view(t.shape[0], t.shape[1], heads, head_dim).transpose(1, 2)

    def forward(x):  # [B, S, E] -> [B, S, E]
        q, k, v = (split(t) for t in F.linear(x, p.in_proj_weight, p.in_proj_bias).chunk(3, dim=-1))
        context = F.scaled_dot_product_attention(q, k, v, is_causal=workload.causal, scale=scale)
        return F.linear(context.transpose(1, 2).flatten(2), p.out_weight, p.out_bias)

    return forward
