"""Two records of machines, and what stands between them."""

from __future__ import annotations

import msgspec

from app.core.environment import Device, differences
from tests import factories


def test_what_can_move_a_figure_comes_first() -> None:
    ours = factories.environment()
    theirs = msgspec.structs.replace(ours, system="Linux 6.9", threads=1, cpu="Other CPU")
    found = differences(ours, theirs)
    assert [difference.field for difference in found] == ["cpu", "threads", "system"]
    assert found[1].moves == "CPU latency; unequal counts are never compared"
    assert found[2].moves == ""


def test_a_device_is_the_same_however_much_of_its_memory_is_free() -> None:
    ours = msgspec.structs.replace(factories.environment(), devices=(Device("cpu", "CPU", free_bytes=1),))
    theirs = msgspec.structs.replace(ours, devices=(Device("cpu", "CPU", free_bytes=2),))
    assert differences(ours, theirs) == ()
