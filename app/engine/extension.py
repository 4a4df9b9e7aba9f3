"""Builds and loads the C++ operator for the worker, in the protocol's messages.

The work is `self_attention_ext`'s: this starts it, asks it for news from the worker's own loop, and
translates. Nothing here blocks on a compiler, and nothing compiles when a finished entry is in the cache.
"""

from __future__ import annotations

import self_attention_ext
from self_attention_ext import Builder, BuildError, Event

from app.core import messages as m


class ExtensionBuild:
    """One build or load: `start`, then `poll` until `is_running` is false.

    A library, once loaded, stays in its process: where `clean`, or an edited source, makes another one, it
    is built and `BuildFinished.needs_new_worker` says that only a new worker can load it.
    """

    def __init__(self, *, clean: bool = False, cache_dir: str | None = None) -> None:
        self._builder = Builder(rebuild=clean, cache_dir=cache_dir)
        self.failure: m.BuildFailed | None = None
        self.finished: m.BuildFinished | None = None

    @property
    def is_running(self) -> bool:
        return self._builder.running

    def start(self) -> list[m.BuildMessage]:
        """Starts, and returns the first news: everything, where the library came from the cache."""
        self._builder.start()
        return self.poll()

    def poll(self) -> list[m.BuildMessage]:
        """What has happened since. Returns at once; only loading a library just built takes part of a
        second.
        """
        messages = [message for event in self._builder.poll() if (message := translate(event)) is not None]
        for message in messages:
            if isinstance(message, m.BuildFinished):
                self.finished = message
            elif isinstance(message, m.BuildFailed):
                self.failure = message
        return messages

    def cancel(self) -> None:
        """Ends the compilers; a `BuildFailed` of kind `cancelled` follows from `poll`."""
        self._builder.cancel()


def translate(event: Event) -> m.BuildMessage | None:
    """The message for an event; None for an event of a kind not known here."""
    kind = event.get("event")
    if kind == "key":
        parts = {name: (part[0], part[1]) for name, part in event["parts"].items()}
        return m.BuildKey(event["key"], parts, tuple(event["changed"]), event["folder"])
    if kind == "step":
        return m.BuildStep(event["step"], event["state"], event["seconds"], event["detail"])
    if kind == "source":
        return m.BuildSource(
            event["source"],
            event["state"],
            event["index"],
            event["total"],
            event["job"],
            event["started_s"],
            event["seconds"],
        )
    if kind == "progress":
        return m.BuildProgress(event["done"], event["total"], event["elapsed_s"], event["expected_s"])
    if kind == "waiting":
        return m.BuildWaiting(event["path"], event["pid"], event["elapsed_s"])
    if kind == "log":
        return m.BuildLog(event["at_s"], event["text"], event["level"])
    if kind == "finished":
        return m.BuildFinished(
            event["library"],
            event["key"],
            event["cached"],
            event["seconds"],
            event["compiler"],
            tuple(event["flags"]),
            event["jobs"],
            event["needs_new_worker"],
        )
    if kind == "failed":
        return m.BuildFailed(
            event["kind"],
            event["sentence"],
            event["first_error"],
            event["source"],
            event["log_path"],
            tuple(event["remedies"]),
        )
    return None


def exit_code(failure: m.BuildFailed) -> int:
    """What the command line ends with: 3 for want of something, 130 if interrupted, otherwise 1."""
    return BuildError(failure.kind, failure.sentence).exit_code


def is_loaded() -> bool:
    """Whether this process can call the operator."""
    return self_attention_ext.is_loaded()
