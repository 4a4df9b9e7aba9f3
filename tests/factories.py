"""Recordings made up from messages, as a worker would have sent them: no torch, no clock, no chance."""

from __future__ import annotations

import gzip
import math
import random

from app.core import messages as m
from app.core.catalog import TWIN
from app.core.environment import Device, Environment
from app.core.measurements import Accuracy, Counts, Memory, Phased, TensorError
from app.core.plan import Plan
from app.core.recording import Recording
from app.core.workload import Workload

START_S = 1_780_000_000.0
MEDIANS_S = {
    "native": 812.4e-6,
    "mha": 641.0e-6,
    "sdpa": 452.0e-6,
    "compiled": 610.0e-6,
    "extension-aten": 548.2e-6,
}
CALLS = {
    "native": ((61, 1), (58, 90)),
    "mha": ((43, 1), (40, 62)),
    "sdpa": ((22, 1), (22, 36)),
    "compiled": ((9, 1), (12, 19)),
    "extension-aten": ((1, 1), (27, 44)),
}
TENSORS = (
    "output",
    "grad_x",
    "grad_q_weight",
    "grad_q_bias",
    "grad_k_weight",
    "grad_k_bias",
    "grad_v_weight",
    "grad_v_bias",
    "grad_out_weight",
    "grad_out_bias",
)


def environment() -> Environment:
    return Environment(
        attnscope="0.1.0",
        system="Linux 6.8",
        machine="x86_64",
        python="3.11.7",
        torch="2.13.0+cpu",
        cpu="Example CPU",
        cpu_features=("AVX2", "AVX-512"),
        physical_cores=2,
        logical_cores=2,
        threads=2,
        interop_threads=1,
        memory_bytes=8 * 2**30,
        devices=(
            Device("cpu", "CPU · Example CPU, 2 threads", detail="counts operator calls"),
            Device(
                "cuda:0",
                "CUDA:0 · GeForce GTX 1050",
                usable=False,
                reason="this PyTorch has no kernels for sm_61: it carries sm_75, sm_80, sm_90",
                remedy="The same PyTorch 2.13.0, built for CUDA 12.6.",
                command="pip install 'torch==2.13.0' --index-url https://download.pytorch.org/whl/cu126",
                caution="Keep the driver: branch 580 is the last for this card.",
                capability=(6, 1),
            ),
        ),
        denormals_flushed=False,
    )


def accuracy(wrong: str | None = None, backward: bool = True) -> Accuracy:
    tensors = {}
    for name in TENSORS if backward else TENSORS[:1]:
        error = 4.1e-2 if name == wrong else 3.0e-7
        is_zero = name == "grad_k_bias"
        tensors[name] = TensorError(
            max_abs=error,
            native_max_abs=2.9e-7,
            bound=6.0e-7,
            ok=name != wrong,
            rel_l2=None if is_zero else 1.39 if name == wrong else 1e-7,
            cosine=None if is_zero else 1 - 1e-12,
            bias=-1e-9,
            one_minus_cosine=None if is_zero else 0.97 if name == wrong else 1e-12,
            native_rel_l2=None if is_zero else 9e-8,
            unit=1e-8,
            shape=(8, 64, 128)
            if name in ("output", "grad_x")
            else (128, 128)
            if "weight" in name
            else (128,),
        )
    return Accuracy(wrong is None, tensors, seed=0)


def recording(
    workload: Workload | None = None,
    implementations: tuple[str, ...] = ("native", "mha", "sdpa", "extension-aten"),
    rounds: int = 200,
    rounds_per_second: float = 20.0,
    baseline: str = "native",
    wrong: str | None = None,
    scale: dict[str, float] | None = None,
    counts: bool = True,
    seed: int = 1,
) -> Recording:
    """A live session of one workload, `rounds` rounds long, built and counted.

    `wrong` names a tensor in which the extension fails its accuracy check; `scale` multiplies medians.
    """
    workload = workload or Workload(mode="forward_backward", device="cpu")
    made = Recording()
    made.apply(m.Hello(pid=4242, protocol=m.PROTOCOL, at_s=START_S))
    made.apply(m.Ready(environment(), START_S + 1.5))
    made.begin(m.Start(1, Plan((workload,), implementations, baseline, title="Made up"), live=True))
    built(made)
    measure(made, implementations, baseline, rounds, rounds_per_second, scale or {}, seed)
    for name in implementations:
        made.apply(
            m.Checked(1, 0, name, accuracy(wrong if name.startswith("ext") else None, workload.backward))
        )
        if counts:
            made.apply(counted(name, workload.backward))
    return made


def measure(
    made: Recording,
    implementations: tuple[str, ...],
    baseline: str,
    rounds: int,
    rounds_per_second: float,
    scale: dict[str, float],
    seed: int,
    disturbed: str = "",
    first_round: int = 0,
    pid: int = 4242,
) -> None:
    """Apply `rounds` rounds of samples, log-normal about each contender's median."""
    chance = random.Random(seed)
    names = (*implementations, TWIN)
    for name in implementations:
        made.apply(m.ContenderState(made.generation, 0, name, "ready"))
    for number in range(first_round, first_round + rounds):
        at_s = START_S + 2 + number / rounds_per_second
        common = math.exp(chance.gauss(0, 0.02))
        samples = []
        for index, name in enumerate(names):
            median = MEDIANS_S.get(baseline if name == TWIN else name, 500e-6) * scale.get(name, 1.0)
            seconds = median * common * math.exp(abs(chance.gauss(0, 0.02)))
            samples.append(m.Sample(number, index, at_s, seconds, 4, disturbed))
        made.apply(m.Samples(made.generation, 0, pid, names, tuple(samples)))


def counted(name: str, backward: bool) -> m.Counted:
    python, operators = CALLS.get(name, ((5, 1), (10, 20)))
    phase = (lambda pair: Phased(*pair)) if backward else (lambda pair: Phased(pair[0], None))
    return m.Counted(
        1,
        0,
        name,
        Counts(phase(python), phase(operators), verified=True),
        Memory(peak_bytes=6_187_000),
        pid=4243,
        profiled_seconds=2 * MEDIANS_S.get(name, 5e-4),
        trace_gz=gzip.compress(b'{"traceEvents":[]}', mtime=0),
    )


def built(made: Recording, cached: bool = False) -> None:
    """Apply the messages of a successful build."""
    parts = {
        "sources": ("4b1e07d9", "5 files and 2 headers, by content"),
        "torch": ("c0a85512", "2.13.0+cpu"),
        "python": ("19e4b3f0", "cp311, x86_64"),
        "compiler": ("a77d2c41", "g++ 13.3.0"),
        "flags": ("e31290ab", "5 flags"),
    }
    made.apply(m.BuildKey("7f3a91c2", parts, folder="/home/user/.cache/attnscope/7f3a91c2"))
    made.apply(m.BuildStep("check", "done", 0.3, "g++ 13.3.0, 2 jobs"))
    compile_state = "cached" if cached else "done"
    for index, (source, started, seconds) in enumerate(
        (("autograd.cpp", 0.0, 22.4), ("forward.cpp", 0.0, 10.3), ("register.cpp", 10.4, 11.9))
    ):
        if not cached:
            made.apply(m.BuildSource(source, "done", index + 1, 3, index % 2, started, seconds))
    made.apply(m.BuildStep("compile", compile_state, None if cached else 22.4, "3 files, -O3"))
    made.apply(m.BuildStep("link", compile_state, None if cached else 1.2, "self_attention_ext.so, 1.9 MiB"))
    for at_s, text in ((0.0, "key 7f3a91c2"), (0.03, "found entry, checksum agrees"), (0.2, "ready")):
        made.apply(m.BuildLog(at_s, text))
    made.apply(m.BuildStep("load", "done", 0.17, "operators under attnscope::"))
    made.apply(
        m.BuildStep("self-test", "cached" if cached else "done", None if cached else 1.9, "10 tensors")
    )
    made.apply(
        m.BuildFinished(
            "/home/user/.cache/attnscope/7f3a91c2/self_attention_ext.so",
            "7f3a91c2",
            cached,
            0.2 if cached else 25.8,
            compiler="g++ 13.3.0",
            flags=("-O3", "-fopenmp", "-fvisibility=hidden"),
            jobs=2,
        )
    )


def telemetry(made: Recording, seconds: int = 60) -> None:
    """Apply a minute of readings; the last third on battery."""
    for second in range(seconds):
        made.apply(
            m.Telemetry(
                at_s=START_S + second,
                cpu_percent=97.0 - second % 5,
                others_percent=4.0 + 6 * (second % 7 == 0),
                memory_used_bytes=int(2.3 * 2**30),
                memory_total_bytes=8 * 2**30,
                worker_bytes=188 * 2**20,
                clock_hz=2.9e9 if second < 40 else 2.0e9,
                temperature_c=58.0 + second / 20,
                battery=0.8,
                on_mains=second < 40,
            )
        )
