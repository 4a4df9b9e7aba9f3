"""Where the extension's build stands, as its messages told."""

from __future__ import annotations

from typing import Literal

from app.core import messages as m

BUILD_STEPS = ("check", "compile", "link", "load", "self-test")
LOG_LINES_KEPT = 5000


class BuildState:
    """The latest build: its steps, sources, log and outcome. Views read it; only `apply` changes it."""

    def __init__(self) -> None:
        self.state: Literal["none", "running", "built", "failed"] = "none"
        self.key: m.BuildKey | None = None
        self.steps: dict[str, m.BuildStep] = {}
        self.sources: dict[str, m.BuildSource] = {}
        self.progress: m.BuildProgress | None = None
        self.waiting: m.BuildWaiting | None = None
        self.log: list[m.BuildLog] = []
        self.finished: m.BuildFinished | None = None
        self.failed: m.BuildFailed | None = None
        self.loaded_key: str | None = None

    @property
    def is_running(self) -> bool:
        return self.state == "running"

    @property
    def share(self) -> float | None:
        """How much of compiling is done, of one; None before it is known how many files there are.

        Files take unlike times: the clock of the last full build tells more than their number.
        """
        progress = self.progress
        if progress is None or not progress.total:
            return None
        share = progress.done / progress.total
        if progress.expected_s:
            share = max(share, min(progress.elapsed_s / progress.expected_s, 0.97))
        return share

    @property
    def messages(self) -> list[m.BuildMessage]:
        """Messages from which `apply` makes this state again: what a recording keeps."""
        kept: list[m.BuildMessage] = [*self.steps.values(), *self.sources.values(), *self.log]
        if self.key is not None:
            kept.insert(0, self.key)
        for outcome in (self.finished, self.failed):
            if outcome is not None:
                kept.append(outcome)
        return kept

    def abandoned(self) -> None:
        """The worker died: a build that ran in it is over without a result."""
        if self.state == "running":
            self.state = "none"

    def apply(self, message: m.BuildMessage) -> None:
        if self.state != "running" and not isinstance(message, (m.BuildFinished, m.BuildFailed, m.BuildLog)):
            self._begin()
        if isinstance(message, m.BuildKey):
            self.key = message
        elif isinstance(message, m.BuildStep):
            self.steps[message.step] = message
            self.waiting = None
        elif isinstance(message, m.BuildSource):
            self.sources[message.source] = message
        elif isinstance(message, m.BuildProgress):
            self.progress = message
        elif isinstance(message, m.BuildWaiting):
            self.waiting = message
        elif isinstance(message, m.BuildLog):
            self.log.append(message)
            del self.log[:-LOG_LINES_KEPT]
        elif isinstance(message, m.BuildFinished):
            self.state = "built"
            self.finished, self.failed, self.waiting = message, None, None
            self.loaded_key = message.key
        elif isinstance(message, m.BuildFailed):
            self.state = "failed"
            self.failed, self.waiting = message, None

    def _begin(self) -> None:
        self.state = "running"
        self.key = self.progress = self.waiting = self.failed = None
        self.steps, self.sources, self.log = {}, {}, []
