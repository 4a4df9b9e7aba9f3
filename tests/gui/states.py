"""A session in every state that the verdict knows, made from messages."""

from __future__ import annotations

from app.core import messages as m
from app.core.recording import Recording
from app.core.workload import Workload
from tests import factories
from tests.gui.fakes import FakeSession

STATES = (
    "starting",
    "warming",
    "faster",
    "slower",
    "same",
    "unsure",
    "wrong",
    "paused",
    "stale",
    "building",
    "build-failed",
    "failed",
    "alone",
    "recorded",
    "stopped",
)

ALL = ("native", "mha", "sdpa", "extension-aten")


def in_state(state: str, workload: Workload | None = None) -> FakeSession:
    """A fake session that shows `state`."""
    return _MAKERS[state](workload)


def gpu_workload() -> Workload:
    return Workload(mode="forward_backward", device="cuda:0")


def _scaled(scale: float, workload: Workload | None, **options: object) -> FakeSession:
    made = factories.recording(workload, scale={"extension-aten": scale}, rounds=600, **options)  # type: ignore[arg-type]
    factories.telemetry(made, 30)
    return FakeSession(made)


def _faster(workload: Workload | None) -> FakeSession:
    return _scaled(1.0, workload)


def _slower(workload: Workload | None) -> FakeSession:
    return _scaled(1.72, workload)


def _same(workload: Workload | None) -> FakeSession:
    return _scaled(812.4 / 548.2, workload)


def _unsure(workload: Workload | None) -> FakeSession:
    made = factories.recording(workload, scale={"extension-aten": 812.4 / 548.2 / 1.012}, rounds=40)
    factories.telemetry(made, 60)
    return FakeSession(made)


def _wrong(workload: Workload | None) -> FakeSession:
    return _scaled(1.0, workload, wrong="grad_v_weight")


def _paused(workload: Workload | None) -> FakeSession:
    session = _faster(workload)
    session.paused = True
    return session


def _stale(workload: Workload | None) -> FakeSession:
    session = _faster(workload)
    session.stale_s = 6.0
    return session


def _recorded(workload: Workload | None) -> FakeSession:
    from pathlib import Path

    session = _faster(workload)
    session.viewing, session.paused = Path("/home/user/yesterday.json"), True
    return session


def _starting(workload: Workload | None) -> FakeSession:
    session = FakeSession(Recording())
    session.enabled, session.running = ALL, False
    return session


def _begun(workload: Workload | None) -> Recording:
    made = Recording()
    made.apply(m.Ready(factories.environment(), factories.START_S))
    work = workload or Workload(mode="forward_backward", device="cpu")
    made.begin(m.Start(1, factories.Plan((work,), ALL, "native", title="Made up"), live=True))
    return made


def _warming(workload: Workload | None) -> FakeSession:
    made = _begun(workload)
    factories.built(made, cached=True)
    factories.measure(made, ALL, "native", 24, 20.0, {}, 1)
    return FakeSession(made)


def _building(workload: Workload | None) -> FakeSession:
    made = _begun(workload)
    factories.measure(made, ALL[:3], "native", 100, 20.0, {}, 1, disturbed="build")
    made.apply(m.BuildStep("compile", "started"))
    made.apply(m.BuildSource("autograd.cpp", "started", 1, 3, 0, 0.0))
    made.apply(m.BuildProgress(1, 3, 12.0, 34.0))
    _stable(made)
    return FakeSession(made)


def _build_failed(workload: Workload | None) -> FakeSession:
    made = _begun(workload)
    factories.measure(made, ALL[:3], "native", 100, 20.0, {}, 1)
    made.apply(m.BuildStep("compile", "started"))
    made.apply(m.BuildLog(0.4, "forward.cpp:12: error: expected ';'", "error"))
    made.apply(
        m.BuildFailed("compile", "The compiler refused forward.cpp", "forward.cpp:12: error: expected ';'")
    )
    _stable(made)
    return FakeSession(made)


def _stable(made: Recording) -> None:
    """The extension has not been measured: it waits for the build."""
    made.apply(m.ContenderState(1, 0, "extension-aten", "waiting"))


def _failed(workload: Workload | None) -> FakeSession:
    session = _faster(workload)
    session.recording.apply(
        m.ContenderState(1, 0, "extension-aten", "failed", "raised RuntimeError: out of memory in round 3")
    )
    session.challenger = "extension-aten"
    return session


def _alone(workload: Workload | None) -> FakeSession:
    made = factories.recording(workload, implementations=("native",))
    return FakeSession(made)


def _stopped(workload: Workload | None) -> FakeSession:
    session = _faster(workload)
    session.stopped_because = "the worker crashed (SIGSEGV), for the 6th time"
    return session


_MAKERS = {
    "starting": _starting,
    "warming": _warming,
    "faster": _faster,
    "slower": _slower,
    "same": _same,
    "unsure": _unsure,
    "wrong": _wrong,
    "paused": _paused,
    "stale": _stale,
    "building": _building,
    "build-failed": _build_failed,
    "failed": _failed,
    "alone": _alone,
    "recorded": _recorded,
    "stopped": _stopped,
}
