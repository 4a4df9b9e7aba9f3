"""What a build says while it runs, and the sentences for what can go wrong.

Events are plain dictionaries, one JSON object a line between processes. `event` names the kind; times are
seconds.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

Event = dict[str, Any]
Emit = Callable[[Event], None]

STEPS = ("check", "compile", "link", "load", "self-test")

EXIT_CODES = {"no_compiler": 3, "cache_unusable": 3, "no_sources": 3, "old_compiler": 3, "cancelled": 130}
"""What the command line makes of a failure's kind; any other kind is 1."""


class BuildError(RuntimeError):
    """A build or load that failed, in words for the reader.

    `kind` is one of no_compiler, old_compiler, no_sources, cache_unusable, compile_error, link_error,
    load_error, self_test, cancelled, timeout, died, loaded_other.
    """

    def __init__(
        self,
        kind: str,
        sentence: str,
        *,
        first_error: str = "",
        source: str = "",
        log_path: str = "",
        remedies: tuple[str, ...] = (),
    ) -> None:
        super().__init__(sentence if not first_error else f"{sentence}\n{first_error}")
        self.kind = kind
        self.sentence = sentence
        self.first_error = first_error
        self.source = source
        self.log_path = log_path
        self.remedies = remedies

    @property
    def exit_code(self) -> int:
        return EXIT_CODES.get(self.kind, 1)

    def event(self) -> Event:
        return {
            "event": "failed",
            "kind": self.kind,
            "sentence": self.sentence,
            "first_error": self.first_error,
            "source": self.source,
            "log_path": self.log_path,
            "remedies": list(self.remedies),
        }

    @staticmethod
    def from_event(event: Event) -> BuildError:
        return BuildError(
            event["kind"],
            event["sentence"],
            first_error=event.get("first_error", ""),
            source=event.get("source", ""),
            log_path=event.get("log_path", ""),
            remedies=tuple(event.get("remedies", ())),
        )


def step(name: str, state: str, seconds: float | None = None, detail: str = "") -> Event:
    return {"event": "step", "step": name, "state": state, "seconds": seconds, "detail": detail}


def log(at_s: float, text: str, level: str = "info") -> Event:
    return {"event": "log", "at_s": at_s, "text": text, "level": level}


_ERROR = re.compile(
    r"^(?:.*?:\d+(?::\d+)?: )?(?:fatal )?error\b.*$|^.*: (?:fatal )?error ?[A-Z]*\d*: .*$", re.IGNORECASE
)
_LINK_ERROR = re.compile(r"undefined reference|unresolved external|cannot find -l|ld returned", re.IGNORECASE)


def first_error(output: bytes) -> str:
    """The first error in a compiler's output, with the lines that belong to it; otherwise its first words.

    The output is bytes in whatever code page the compiler speaks: what cannot be decoded is replaced, never
    raised.
    """
    lines = output.decode("utf-8", "replace").splitlines()
    for index, line in enumerate(lines):
        if _ERROR.match(line.strip()) or _LINK_ERROR.search(line):
            follow = [after for after in lines[index + 1 : index + 4] if re.match(r"\s*(\d+ )?\s*\|", after)]
            return "\n".join([line.strip(), *follow])
    return next((line.strip() for line in lines if line.strip()), "")
