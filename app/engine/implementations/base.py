"""What a contender is to the engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from app.core.own import OwnFile
from app.core.workload import Workload
from app.engine.inputs import Forward, Inputs

Need = Literal["extension"]


@dataclass(frozen=True)
class Unsupported:
    """Why a contender cannot run a workload here, and what would change that."""

    reason: str
    remedy: str = ""


def runs_everything(workload: Workload) -> Unsupported | None:
    return None


def no_scratch(workload: Workload) -> int:
    return 0


def no_path(operators: frozenset[str]) -> str:
    return ""


@dataclass(frozen=True)
class Implementation:
    """One contender.

    `prepare` makes it ready for a workload's inputs (whose device is resolved) and returns one forward pass;
    it may raise, and so may the call. `unsupported` says why a workload cannot run at all. `path` names the
    way taken, from the names of the ATen operators that one call dispatched. `scratch_bytes` is a lower bound
    of what one call allocates beside its inputs. `needs` is what must be there before `prepare`.
    `own`: it is a user's file, which runs in a guest and never in the process that prepares the others.
    """

    id: str
    prepare: Callable[[Workload, Inputs], Forward]
    unsupported: Callable[[Workload], Unsupported | None] = runs_everything
    path: Callable[[frozenset[str]], str] = no_path
    scratch_bytes: Callable[[Workload], int] = no_scratch
    needs: Need | None = None
    slow_to_prepare: bool = False
    own: OwnFile | None = None
