"""Small made-up traces in Kineto's vocabulary. Times are microseconds."""

from __future__ import annotations

import json
from typing import Any

from app.core.trace import Trace, read

PROCESS = THREAD = 100
MARK = "the call"


class Maker:
    """Collects events; every method returns the maker, so that a trace reads as a sentence."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def add(self, cat: str, name: str, ts: float, dur: float | None, **more: Any) -> Maker:
        event = {"ph": "X", "cat": cat, "name": name, "pid": PROCESS, "tid": THREAD, "ts": ts, "args": {}}
        if dur is not None:
            event["dur"] = dur
        self.events.append({**event, **more})
        return self

    def op(self, name: str, ts: float, dur: float, sequence: int | None = None, tid: Any = THREAD) -> Maker:
        args = {} if sequence is None else {"Sequence number": sequence}
        return self.add("cpu_op", name, ts, dur, args=args, tid=tid)

    def node(self, name: str, ts: float, dur: float, sequence: int | None = None, tid: Any = THREAD) -> Maker:
        """A node run by the autograd engine, with the engine's range around it."""
        self.op(f"autograd::engine::evaluate_function: {name}", ts, dur, sequence, tid)
        return self.op(name, ts, dur, sequence, tid)

    def mark(self, ts: float, dur: float, name: str = MARK) -> Maker:
        return self.add("user_annotation", name, ts, dur)

    def call(
        self, name: str, correlation: int, ts: float, category: str = "cuda_runtime", tid: Any = THREAD
    ) -> Maker:
        return self.add(category, name, ts, 2, args={"correlation": correlation}, tid=tid)

    def work(
        self,
        name: str,
        correlation: int,
        ts: float,
        dur: float = 5,
        category: str = "kernel",
        stream: int = 7,
    ) -> Maker:
        args = {"device": 0, "stream": stream, "correlation": correlation}
        return self.add(category, name, ts, dur, pid=0, tid=stream, args=args)

    def launch(
        self, correlation: int, ts: float, name: str = "cudaLaunchKernel", category: str = "cuda_runtime"
    ) -> Maker:
        """A launch and its kernel."""
        return self.call(name, correlation, ts, category).work(f"kernel_{correlation}", correlation, ts + 10)

    def memory(self, ts: float, size: int, address: int, device_type: int = 0) -> Maker:
        args = {"Bytes": size, "Addr": address, "Device Type": device_type}
        self.events.append(
            {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "ts": ts, "args": args}
        )
        return self

    def json(self, **header: Any) -> bytes:
        return json.dumps({"schemaVersion": 1, **header, "traceEvents": self.events}).encode()

    def trace(self, **header: Any) -> Trace:
        return read(self.json(**header), "made-up.json")
