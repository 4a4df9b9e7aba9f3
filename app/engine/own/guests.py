"""The guests of one worker, by own implementation."""

from __future__ import annotations

from collections.abc import Callable, Collection

from app.core.own import OwnFile
from app.engine.channel import Inbox
from app.engine.own.guest_link import LIMITS, GuestLink, Limits
from app.engine.own.protocol import Check, Prepare

MAX_ENDS = 3
"""Guests of one file that may be lost, after which another would only repeat it: a start takes seconds."""

Start = Callable[[OwnFile], GuestLink]


class Guests:
    """Starts a guest when it is first needed and ends it when nobody has a use for it any more."""

    def __init__(self, inbox: Inbox, limits: Limits = LIMITS, start: Start | None = None) -> None:
        self._start: Start = start or (lambda file: GuestLink(file, inbox, limits))
        self._links: dict[str, GuestLink] = {}
        self._ends: dict[str, int] = {}

    def link(self, file: OwnFile) -> GuestLink:
        """The guest of `file`, started if there is none. Raises OSError where that is not possible."""
        found = self._links.get(file.id)
        if found is None or found.is_over:
            found = self._links[file.id] = self._start(file)
        return found

    def existing(self, key: str) -> GuestLink | None:
        """The guest of that id, if one lives."""
        found = self._links.get(key)
        return None if found is None or found.is_over else found

    def lost(self, key: str) -> None:
        """A guest of `key` had to be ended."""
        self._ends[key] = self._ends.get(key, 0) + 1

    def is_given_up(self, key: str) -> bool:
        return self._ends.get(key, 0) >= MAX_ENDS

    def keep_only(self, keys: Collection[str]) -> None:
        """End the others. Whoever comes back later has all its chances again."""
        for key in [key for key in self._links if key not in keys]:
            self._links.pop(key).end()
        for key in [key for key in self._ends if key not in keys]:
            del self._ends[key]

    @property
    def busy(self) -> bool:
        """Whether one prepares or checks beside what is sampled: then latencies are disturbed."""
        return any(
            isinstance(link.current, (Prepare, Check)) or not (link.is_ready or link.is_over)
            for link in self._links.values()
        )

    @property
    def are_there(self) -> bool:
        return bool(self._links)

    def seconds_left(self) -> float | None:
        """Until one must be looked at even if it says nothing; None while none works."""
        left = [link.seconds_left for link in self._links.values()]
        return min((seconds for seconds in left if seconds is not None), default=None)

    def close(self) -> None:
        self.keep_only(())
