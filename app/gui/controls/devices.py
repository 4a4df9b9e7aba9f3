"""What the device menu offers: usable ones, and greyed ones with the reason and the way out."""

from __future__ import annotations

from app.core.environment import Device, Environment
from app.core.text import size
from app.gui.parts.menu import MenuAction, MenuItem

COPY = "copy:"
OPEN_SYSTEM = "open-system"


def device_items(environment: Environment | None, current: str) -> list[MenuItem]:
    """The entries of the menu. Before the worker has looked, there is only what is chosen."""
    if environment is None:
        return [MenuItem(current, title_of(None, current), "looking for devices", checked=True)]
    return [_item(device, current) for device in environment.devices]


def _item(device: Device, current: str) -> MenuItem:
    if device.usable:
        return MenuItem(device.id, device.title, device.detail, checked=device.id == current)
    actions = [MenuAction(COPY + device.id, "Copy the command", "copy")] if device.command else []
    actions.append(MenuAction(OPEN_SYSTEM, "Open System", "chevron-right"))
    fix = " ".join(part for part in (device.remedy, device.caution) if part)
    return MenuItem(
        device.id,
        device.title,
        device.reason,
        enabled=False,
        fix=fix,
        actions=tuple(actions),
    )


def title_of(environment: Environment | None, device: str) -> str:
    """What the closed field shows."""
    known = {d.id: d for d in environment.devices} if environment is not None else {}
    if device in known:
        return known[device].title
    return {"auto": "Automatic", "cpu": "CPU"}.get(device, device.upper())


def note_of(environment: Environment | None, device: str, short: bool = False) -> tuple[str, bool]:
    """The line below the field, and whether it has a `why` behind it."""
    if environment is None:
        return "looking for devices", False
    chosen = next((d for d in environment.devices if d.id == device), None)
    if chosen is not None and chosen.capability is not None:
        parts = [f"sm_{chosen.capability[0]}{chosen.capability[1]}"]
        if chosen.free_bytes is not None and chosen.total_bytes is not None:
            parts.append(f"{chosen.free_bytes / 2**30:.1f} of {size(chosen.total_bytes)} free")
        return " · ".join(parts), False
    refused = [d for d in environment.devices if not d.usable]
    if refused:
        return f"{refused[0].id.upper()} {'unusable' if short else 'cannot be used'}", True
    if all(d.id == "cpu" for d in environment.devices):
        return "no GPU found", False
    return chosen.detail if chosen is not None else "", False


def command_for(environment: Environment | None, device: str) -> str:
    """The command that makes a device usable; empty where there is none."""
    devices = environment.devices if environment is not None else ()
    return next((d.command for d in devices if d.id == device), "")
