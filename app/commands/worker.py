"""`worker`: the protocol over stdin and stdout."""

from __future__ import annotations


def worker() -> int:
    from app.engine.worker import run_worker

    return run_worker()
