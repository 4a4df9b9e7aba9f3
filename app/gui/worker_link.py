"""A worker process and the messages it sends, as Qt signals."""

from __future__ import annotations

import sys
from collections import deque

from PySide6.QtCore import QObject, QProcess, QProcessEnvironment, Signal

from app.core import messages as m
from app.core.launch import command

STDERR_LINES_KEPT = 2000
QUIT_MS = 1500
KILL_MS = 1000


class WorkerLink(QObject):
    """Starts one worker and speaks to it. A link serves one process; a new worker gets a new link."""

    received = Signal(object)
    garbled = Signal(str)
    wrote = Signal(str)
    died = Signal(int)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.stderr_lines: deque[str] = deque(maxlen=STDERR_LINES_KEPT)
        self._splitter = m.LineSplitter()
        self._stderr_rest = b""
        self._closing = False
        self._process = QProcess(self)
        environment = QProcessEnvironment.systemEnvironment()
        environment.insert("PYTHONUNBUFFERED", "1")
        self._process.setProcessEnvironment(environment)
        self._process.readyReadStandardOutput.connect(self._read_messages)
        self._process.readyReadStandardError.connect(self._read_stderr)
        self._process.finished.connect(self._finished)
        self._process.errorOccurred.connect(self._failed)

    @property
    def pid(self) -> int | None:
        pid = self._process.processId()
        return int(pid) if pid else None

    @property
    def is_running(self) -> bool:
        return self._process.state() != QProcess.ProcessState.NotRunning

    def start(self) -> None:
        program, *arguments = command("worker")
        self._process.start(program, arguments)

    def send(self, message: m.Command) -> None:
        """Queue a command. A worker that is gone does not get it; `died` tells of that."""
        if self.is_running:
            self._process.write(m.encode(message))

    def stop(self) -> None:
        """End the worker within a bounded time: ask, then insist. Nothing is emitted after that."""
        self._closing = True
        if self.is_running:
            self.send(m.Shutdown())
            self._process.closeWriteChannel()
            if not self._process.waitForFinished(QUIT_MS):
                self._process.kill()
                self._process.waitForFinished(KILL_MS)
        # Whoever listened may be gone before what lies in the pipe is read.
        self.blockSignals(True)

    def abandon(self) -> None:
        """Kill the worker at once, for one that does not answer. Nothing is emitted after that."""
        self._closing = True
        self.blockSignals(True)
        if self.is_running:
            self._process.kill()
            self._process.waitForFinished(KILL_MS)

    def _read_messages(self) -> None:
        try:
            lines = self._splitter.feed(bytes(self._process.readAllStandardOutput().data()))
        except m.ProtocolError as error:
            self.garbled.emit(str(error))
            return
        for line in lines:
            try:
                message = m.decode_message(line)
            except m.ProtocolError as error:
                self.garbled.emit(str(error))
                continue
            self.received.emit(message)

    def _read_stderr(self) -> None:
        data = self._stderr_rest + bytes(self._process.readAllStandardError().data())
        *lines, self._stderr_rest = data.split(b"\n")
        self._stderr_rest = self._stderr_rest[-10_000:]
        for line in lines:
            text = line.decode("utf-8", "replace").rstrip()
            if text:
                self.stderr_lines.append(text)
                self.wrote.emit(text)

    def _finished(self, code: int, status: QProcess.ExitStatus) -> None:
        self._read_messages()
        self._read_stderr()
        if self._closing:
            return
        crashed = status == QProcess.ExitStatus.CrashExit
        # Qt gives the signal's number on Unix and the NTSTATUS code on Windows.
        self.died.emit(-code if crashed and sys.platform != "win32" else code)

    def _failed(self, error: QProcess.ProcessError) -> None:
        if error == QProcess.ProcessError.FailedToStart and not self._closing:
            self.garbled.emit(f"the worker could not be started: {self._process.errorString()}")
            self.died.emit(127)
