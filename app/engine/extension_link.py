"""The worker's side of the extension: built in a process of its own, loaded here once it is there.

Used from the worker's main thread alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from app.core import messages as m
from app.core.launch import make_extension_importable
from app.engine.shop import ExtensionState

CLEARING_S = 0.8
CLEARING_LOOKS = 40

LOOK_EVERY_S = 0.05
"""News of a build are looked for this often: often enough for a progress bar."""


class Build(Protocol):
    """One build or load, as `extension.ExtensionBuild` is."""

    @property
    def is_running(self) -> bool: ...

    def start(self) -> list[m.BuildMessage]: ...

    def poll(self) -> list[m.BuildMessage]: ...

    def cancel(self) -> None: ...


class ExtensionLink:
    """State of the extension in this process, and the one build that may run for it.

    `changed` is called after each change of `state`.
    """

    def __init__(
        self,
        send: Callable[[m.Message], None],
        changed: Callable[[], None],
        new_build: Callable[[bool], Build] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.state: ExtensionState = "absent"
        self.reason = ""
        self.remedy = ""
        self.library: str | None = None
        self.key: str = ""
        self._send = send
        self._changed = changed
        self._new_build = new_build or _new_build
        self._clock = clock
        self._build: Build | None = None
        self._next_look = 0.0

    @property
    def building(self) -> bool:
        return self._build is not None

    def start(self, clean: bool = False) -> None:
        """Build the extension or take it from the cache. Ignored while that is under way."""
        if self._build is not None:
            return
        try:
            self._build = self._new_build(clean)
            # What is loaded stays in use: a process cannot let go of a library.
            if self.state != "loaded":
                self._set("building")
            self._take(self._build.start())
        except Exception as error:
            self._build = None
            self._fail(
                m.BuildFailed(
                    "start",
                    f"The build of the extension does not start: {type(error).__name__}: {error}",
                    remedies=("Install AttnScope once more: pip install -e .",),
                )
            )

    def seconds_left(self) -> float | None:
        """Until `look` should be called; None while nothing is built."""
        return None if self._build is None else max(0.0, self._next_look - self._clock())

    def look(self) -> bool:
        """Pass on what the build says, if it is time to; whether there was news. Loads a library that is
        ready."""
        if self._build is None or self._clock() < self._next_look:
            return False
        self._next_look = self._clock() + LOOK_EVERY_S
        messages = self._build.poll()
        self._take(messages)
        return bool(messages)

    def cancel(self) -> None:
        """End the compilers; the failure that tells so follows."""
        if self._build is not None:
            self._build.cancel()

    def close(self) -> None:
        """End the build. It is given a moment to clear its folder away; who kills it then leaves that there."""
        self.cancel()
        for _ in range(CLEARING_LOOKS):
            if self._build is None or not self._build.is_running:
                return
            time.sleep(CLEARING_S / CLEARING_LOOKS)
            self._build.poll()

    def _take(self, messages: list[m.BuildMessage]) -> None:
        build = self._build
        if build is not None and not build.is_running:
            self._build = None
        for message in messages:
            if isinstance(message, m.BuildFailed):
                self._fail(message)
                continue
            self._send(message)
            if isinstance(message, m.BuildFinished) and not message.needs_new_worker:
                self.library, self.key = message.library, message.key
                self._set("loaded")

    def _fail(self, outcome: m.BuildFailed) -> None:
        self._send(outcome)
        if self.state == "loaded":
            return
        self.reason = outcome.sentence
        self.remedy = outcome.remedies[0] if outcome.remedies else ""
        self._set("failed")

    def _set(self, state: ExtensionState) -> None:
        self.state = state
        if state != "failed":
            self.reason = self.remedy = ""
        self._changed()


def _new_build(clean: bool) -> Build:
    make_extension_importable()
    from app.engine.extension import ExtensionBuild

    return ExtensionBuild(clean=clean)
