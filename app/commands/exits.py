"""Exit codes, and the exceptions that carry them to the top of the command line."""

from __future__ import annotations

OK = 0
WRONG = 1
INPUT = 2
MISSING = 3
INTERRUPTED = 130


class CommandError(Exception):
    """Ends a command with a sentence on stderr and an exit code."""

    def __init__(self, code: int, sentence: str) -> None:
        self.code = code
        super().__init__(sentence)
