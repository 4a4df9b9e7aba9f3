"""Snapshots of sessions in every state that a view must draw."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication, QWidget

from app.core import messages as m
from app.core.build import BuildState
from app.core.measurements import Counts, Memory, Phased
from app.core.plan import Plan
from app.core.recording import Recording
from app.core.results import entries_of
from app.core.workload import Workload
from app.gui.parts.look import Look
from app.gui.snapshot import Snapshot
from app.gui.theme import DARK, NORMAL, SMALL, Theme, Type
from tests import factories

FOUR = ("native", "mha", "sdpa", "extension-aten")
LONG = "this PyTorch was built without it; " * 12
PARTS = {
    "sources": ("4b1e07d9aa", "5 files and 2 headers, by content"),
    "torch": ("c0a85512bb", "2.13.0+cpu"),
    "compiler": ("a77d2c41cc", "g++ 13.3.0"),
}


def look_of(theme: Theme = DARK, small: bool = False) -> Look:
    return Look(theme, Type(), SMALL if small else NORMAL, motion=False)


def snapshot(made: Recording, challenger: str | None = "extension-aten", **changes: Any) -> Snapshot:
    record = made.current
    assert made.plan is not None
    entries = () if record is None else entries_of(record, made.plan.baseline, made.plan.implementations)
    last = None if record is None else record.last_at_s
    given: dict[str, Any] = {"now_s": factories.START_S + 3 if last is None else last}
    return Snapshot(made, record, entries, made.plan.baseline, challenger, **(given | changes))


def begun(names: tuple[str, ...] = FOUR, workload: Workload | None = None) -> Recording:
    """A session whose first sample has not come yet, and that has built nothing."""
    made = Recording()
    made.apply(m.Ready(factories.environment(), factories.START_S + 1.5))
    plan = Plan((workload or Workload(mode="forward_backward", device="cpu"),), names, names[0])
    made.begin(m.Start(1, plan, live=True))
    return made


def first_build(names: tuple[str, ...] = FOUR) -> Recording:
    made = begun(names)
    building(made)
    others = tuple(n for n in names if not n.startswith("ext"))
    factories.measure(made, others, names[0], 60, 20.0, {}, 1, disturbed="build")
    for name in others:
        made.apply(factories.counted(name, True))
    return made


def building(made: Recording, changed: tuple[str, ...] = ()) -> None:
    made.apply(m.BuildKey("7f3a91c2aa5512fe", PARTS, changed, "/nowhere/7f3a91c2aa5512fe"))
    made.apply(m.BuildStep("check", "done", 0.3, "g++ 13.3.0, C++17, 2 jobs"))
    made.apply(m.BuildStep("compile", "started", detail="3 files"))
    made.apply(m.BuildSource("forward.cpp", "done", 2, 3, 2, 0.0, 9.4))
    made.apply(m.BuildSource("autograd.cpp", "started", 1, 3, 1, 0.0))
    made.apply(m.BuildProgress(1, 3, 14.0, 26.0))
    made.apply(m.BuildLog(0.3, "1/3 g++ -O3 -fopenmp -c csrc/autograd.cpp"))


def failing(made: Recording, kind: str = "compile_error") -> None:
    building(made, ("sources",))
    made.apply(m.BuildLog(1.6, "autograd.cpp:143:2: error: expected ';'", "error"))
    made.apply(m.BuildSource("autograd.cpp", "failed", 1, 3, 1, 0.0, 10.1))
    made.apply(m.BuildStep("compile", "failed", 10.2))
    made.apply(
        m.BuildFailed(
            kind,
            "autograd.cpp does not compile. The compiler is g++ 13.3.0.",
            "autograd.cpp:143:2: error: expected ';' before '}' token\n  143 |   }\n      |  ^",
            "csrc/autograd.cpp",
            "/home/user/.cache/attnscope/failed.log",
            ("Correct autograd.cpp and build again.", "Or name another compiler in CXX."),
        )
    )


def failed_build() -> Recording:
    made = first_build()
    failing(made)
    return made


def waiting_build() -> Recording:
    made = begun()
    made.apply(m.BuildKey("7f3a91c2aa5512fe", PARTS, folder="/nowhere/7f3a91c2aa5512fe"))
    made.apply(m.BuildWaiting("/home/user/.cache/attnscope/7f3a91c2aa5512fe.lock", 4711, 12.0))
    return made


def not_running() -> Recording:
    made = factories.recording()
    made.apply(m.ContenderState(1, 0, "mha", "unavailable", LONG, "install another PyTorch"))
    made.apply(m.ContenderState(1, 0, "sdpa", "failed", f"RuntimeError: {LONG}"))
    return made


def on_gpu() -> Recording:
    made = factories.recording(Workload(mode="forward_backward", device="cuda:0"))
    for name, launches in (("native", 27), ("mha", 21), ("sdpa", 14), ("extension-aten", 17)):
        counts = Counts(
            Phased(61, 1),
            Phased(58, 90),
            Phased(launches // 3, launches - launches // 3),
            0,
            0,
            verified=True,
        )
        made.apply(m.Counted(1, 0, name, counts, Memory(6_187_000), pid=4243))
    return made


def eight() -> Recording:
    names = (*FOUR, "compiled", "my_attention", "another_one_with_a_long_name", "third")
    made = factories.recording(implementations=names, rounds=120, scale={"third": 1.3, "my_attention": 0.9})
    made.apply(m.ContenderState(1, 0, "compiled", "preparing"))
    return made


def rebuilt() -> Recording:
    made = factories.recording(rounds=60)
    made.apply(m.BuildKey("9999aaaa", PARTS, ("sources",)))
    made.apply(m.BuildFinished("/x/ext.so", "9999aaaa", False, 20.0))
    factories.measure(made, FOUR, "native", 60, 20.0, {}, 5, first_round=60)
    return made


def odd_samples() -> Snapshot:
    """Times that no clock gives, and that must not break an axis."""
    entries = snapshot(begun(("native", "sdpa"))).entries
    made = begun(("native", "sdpa"))
    seconds = (1.0, 0.0, -1.0, float("nan"), float("inf"))
    samples = tuple(
        m.Sample(i, j, factories.START_S + 2 + i, value, 1) for i, value in enumerate(seconds) for j in (0, 1)
    )
    made.apply(m.Samples(1, 0, 4242, ("native", "sdpa"), samples))
    return Snapshot(made, made.current, entries, "native", "sdpa", factories.START_S + 7)


def scaled(factor: float) -> Recording:
    names = ("native", "sdpa", "extension-aten")
    return factories.recording(
        implementations=names, rounds=40, scale=dict.fromkeys((*names, "@twin"), factor)
    )


SCENES: dict[str, Callable[[], Snapshot]] = {
    "running": lambda: snapshot(factories.recording()),
    "forward only": lambda: snapshot(factories.recording(Workload(device="cpu"))),
    "no sample yet": lambda: snapshot(begun()),
    "first build": lambda: snapshot(first_build()),
    "failed build": lambda: snapshot(failed_build()),
    "waiting for a build": lambda: snapshot(waiting_build()),
    "wrong result": lambda: snapshot(factories.recording(wrong="grad_x")),
    "unsure": lambda: snapshot(factories.recording(scale={"extension-aten": 1.475}, rounds=100)),
    "paused": lambda: snapshot(factories.recording(), paused=True),
    "stale": lambda: snapshot(factories.recording(), stale_s=6.0),
    "from a file": lambda: snapshot(factories.recording(), running=False, window_s=None),
    "some do not run": lambda: snapshot(not_running()),
    "one contender": lambda: snapshot(factories.recording(implementations=("native",)), None),
    "eight contenders": lambda: snapshot(eight(), "my_attention"),
    "an earlier build": lambda: snapshot(rebuilt()),
    "on a GPU": lambda: snapshot(on_gpu()),
    "odd samples": odd_samples,
    "hours a call": lambda: snapshot(scaled(1e7)),
    "nanoseconds a call": lambda: snapshot(scaled(1e-5)),
    "one round": lambda: snapshot(factories.recording(rounds=1)),
    "all of it": lambda: snapshot(factories.recording(rounds=3000, rounds_per_second=2.0), window_s=None),
}
ON_CPU = tuple(name for name in SCENES if name != "on a GPU")


def drawn(widget: QWidget, width: int, height: int) -> QImage:
    """The widget as it is painted at this size, after its layout settled."""
    widget.resize(width, height)
    widget.show()
    for _ in range(4):
        QApplication.processEvents()
    return widget.grab().toImage()


def with_environment(made: Recording, **changes: Any) -> Recording:
    made.environment = msgspec.structs.replace(factories.environment(), **changes)
    return made


def fresh_build(made: Recording) -> Recording:
    """Forget what was built: the session has seen no build."""
    made.build = BuildState()
    return made


def colours(image: QImage) -> int:
    """How many different colours a coarse grid of pixels has: 1 is a blank."""
    step = max(1, min(image.width(), image.height()) // 60)
    return len(
        {image.pixel(x, y) for x in range(0, image.width(), step) for y in range(0, image.height(), step)}
    )
