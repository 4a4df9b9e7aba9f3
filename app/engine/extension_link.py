"""The worker's side of the extension: built in a process of its own, loaded here once it is there.

All methods run in the worker's main thread; what the building process says is delivered there.
"""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Sequence

from app.core import messages as m
from app.engine.channel import Inbox
from app.engine.processes import child_environment, module_command
from app.engine.shop import ExtensionState

COMMAND = module_command("app.engine.build_child")


class ExtensionLink:
    """State of the extension in this process, and the one build that may run for it."""

    def __init__(
        self,
        inbox: Inbox,
        send: Callable[[m.Message], None],
        changed: Callable[[], None],
        command: Sequence[str] = COMMAND,
        load: Callable[[str], None] | None = None,
    ) -> None:
        self.state: ExtensionState = "absent"
        self.reason = ""
        self.remedy = ""
        self.library: str | None = None
        self._inbox = inbox
        self._send = send
        self._changed = changed
        self._command = command
        self._load = load or load_library
        self._process: subprocess.Popen[bytes] | None = None
        self._cancelled = False
        self._outcome: m.BuildFinished | m.BuildFailed | None = None

    def start(self, clean: bool = False) -> None:
        """Build the extension or take it from the cache. Ignored while that is under way."""
        if self._process is not None:
            return
        self._cancelled, self._outcome = False, None
        command = [*self._command, *(["--clean"] if clean else [])]
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=child_environment()
            )
        except OSError as error:
            self._fail(m.BuildFailed("start", f"the build does not start: {error}"))
            return
        self._process = process
        # What is loaded stays in use: a process cannot let go of a library.
        if self.state != "loaded":
            self._set("building")

        def read() -> None:
            assert process.stdout is not None
            for line in process.stdout:
                self._inbox.deliver(lambda line=line: self._said(line))  # type: ignore[misc]
            process.wait()
            self._inbox.deliver(self._ended)

        threading.Thread(target=read, name="build", daemon=True).start()

    @property
    def building(self) -> bool:
        return self._process is not None

    def cancel(self) -> None:
        """End the build. Its stdin is its lifeline: it ends its compilers itself when that closes."""
        if self._process is None:
            return
        self._cancelled = True
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
        except OSError:
            pass

    def close(self) -> None:
        self.cancel()

    def _said(self, line: bytes) -> None:
        try:
            message = m.decode_message(line)
        except m.ProtocolError:
            return
        if isinstance(message, (m.BuildFinished, m.BuildFailed)):
            # Held back until the library is loaded here, and the process with its lock is gone.
            self._outcome = message
        elif isinstance(message, m.BuildMessage):
            self._send(message)

    def _ended(self) -> None:
        process, self._process = self._process, None
        outcome = self._outcome
        if isinstance(outcome, m.BuildFinished):
            self._finish(outcome)
        elif isinstance(outcome, m.BuildFailed):
            self._fail(outcome)
        elif self._cancelled:
            self._fail(m.BuildFailed("cancelled", "the build was cancelled", remedies=("build again",)))
        else:
            status = None if process is None else process.returncode
            self._fail(m.BuildFailed("crashed", f"the build ended without a result (status {status})"))

    def _finish(self, outcome: m.BuildFinished) -> None:
        if self.state == "loaded":
            if outcome.library != self.library:
                outcome = m.BuildFinished(**{**_fields(outcome), "needs_new_worker": True})
            self._send(outcome)
            return
        try:
            self._load(outcome.library)
        except Exception as error:
            self._fail(m.BuildFailed("load", f"the extension does not load: {error}"))
            return
        self.library = outcome.library
        self._send(outcome)
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


def load_library(path: str) -> None:
    """Load the built extension into this process and register its operators."""
    import self_attention_ext

    if not self_attention_ext.is_loaded():
        self_attention_ext.load(path)


def _fields(outcome: m.BuildFinished) -> dict[str, object]:
    return {name: getattr(outcome, name) for name in outcome.__struct_fields__}
