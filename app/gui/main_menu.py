"""The menu behind the three lines: files, looks, keys."""

from __future__ import annotations

from collections.abc import Sequence

from app.core.text import size
from app.gui.journals import Found
from app.gui.parts.menu import MenuItem

THEMES = {"system": "Like the system", "dark": "Dark", "light": "Light"}
RECENT_SHOWN = 3


def menu_items(theme: str, motion: bool, panel: bool, recent: Sequence[Found]) -> list[MenuItem]:
    """Entries; a theme's id is `theme:dark`, a recent session's `recent:` and its file."""
    items = [
        MenuItem("panel", "Left panel", trailing="Ctrl+L", checked=panel, icon="sliders"),
        MenuItem("open", "Open…", trailing="Ctrl+O", icon="folder", line_before=True),
        MenuItem("compare", "Compare with…", trailing="Ctrl+D", icon="arrow-right"),
        MenuItem("save", "Save the recording…", trailing="Ctrl+S", icon="file"),
    ]
    if recent:
        items.append(MenuItem("heading-recent", "Closed without saving", heading=True))
    for found in recent[:RECENT_SHOWN]:
        title = f"{found.began:%d %B, %H:%M}"
        items.append(MenuItem(f"recent:{found.path}", title, trailing=size(found.bytes), icon="clock"))
    items.append(MenuItem("heading-theme", "Appearance", heading=True, line_before=True))
    items += [MenuItem(f"theme:{key}", title, checked=key == theme) for key, title in THEMES.items()]
    items.append(MenuItem("motion", "Less motion", checked=not motion))
    items.append(MenuItem("keys", "All keys", trailing="F1", icon="keyboard", line_before=True))
    return items
