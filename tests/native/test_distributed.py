"""DistributedDataParallel over gloo, two processes: the steps of one process that sees both halves of the batch."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from self_attention_ext import SelfAttention, replace_self_attention
from torch import Tensor, nn

pytestmark = [
    pytest.mark.build,
    pytest.mark.usefixtures("library"),
    pytest.mark.skipif(not torch.distributed.is_available(), reason="this torch has no torch.distributed"),
]

WORLD, STEPS, BATCH = 2, 4, 4
KERNELS = ("aten", "fused")


def make_model(kernel: str) -> nn.Module:
    """A swapped encoder and a layer of ours, in float64, the same in every process."""
    torch.manual_seed(6)
    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(12, 2, 16, dropout=0.0, batch_first=True), 2, enable_nested_tensor=False
    )
    replace_self_attention(encoder, kernel)
    return nn.Sequential(encoder, SelfAttention(12, 3, causal=True, kernel=kernel)).double()


def train(model: nn.Module, rank: int, world: int) -> dict[str, Tensor]:
    """Losses of this rank's share of each batch, and the gradients of the last step."""
    generator = torch.Generator().manual_seed(8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(STEPS):
        x = torch.randn(BATCH, 5, 12, dtype=torch.float64, generator=generator).chunk(world)[rank]
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    grads = {name.removeprefix("module."): p.grad for name, p in model.named_parameters()}
    return {"loss": torch.stack(losses), **grads}  # type: ignore[dict-item]


def worker(rank: int, folder: str) -> None:
    """One of the processes: it writes what it found into the folder."""
    from datetime import timedelta

    import self_attention_ext

    self_attention_ext.load()
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo",
        init_method=(Path(folder) / "meeting").as_uri(),
        rank=rank,
        world_size=WORLD,
        timeout=timedelta(seconds=60),
    )
    for kernel in KERNELS:
        model = nn.parallel.DistributedDataParallel(make_model(kernel))
        torch.save(train(model, rank, WORLD), Path(folder) / f"{kernel}{rank}.pt")
    torch.distributed.destroy_process_group()


def test_two_processes_train_as_one(tmp_path: Path) -> None:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    code = (
        "import sys; from tests.native.test_distributed import worker; worker(int(sys.argv[1]), sys.argv[2])"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(rank), str(tmp_path)],
            env=environ,
            cwd=Path(__file__).resolve().parents[2],
            stderr=subprocess.PIPE,
        )
        for rank in range(WORLD)
    ]
    try:
        for process in processes:
            _, errors = process.communicate(timeout=120)
            assert process.returncode == 0, errors.decode("utf-8", "replace")[-3000:]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    for kernel in KERNELS:
        alone = train(make_model(kernel), 0, 1)
        ranks = [torch.load(tmp_path / f"{kernel}{rank}.pt") for rank in range(WORLD)]
        torch.testing.assert_close(torch.stack([r.pop("loss") for r in ranks]).mean(0), alone.pop("loss"))
        for found in ranks:
            assert found.keys() == alone.keys()
            for name, grad in alone.items():
                torch.testing.assert_close(found[name], grad)
