"""The window: what must hold before Qt starts, since Qt aborts where Python cannot catch it."""

from __future__ import annotations

import argparse
import ctypes
import ctypes.util
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from app.commands.exits import INPUT, MISSING, CommandError
from app.core.files import RecordingError
from app.core.plan import ProfileError

HEADLESS = "attnscope run quick --out results"

SCREENLESS = ("offscreen", "minimal", "vnc", "eglfs", "linuxfb")
"""Qt's platforms that need no X server and no Wayland."""

XCB_LIBRARIES: dict[str, str] = {
    "xcb-cursor": "libxcb-cursor0",
    "xcb-icccm": "libxcb-icccm4",
    "xcb-keysyms": "libxcb-keysyms1",
    "xcb-image": "libxcb-image0",
    "xcb-render-util": "libxcb-render-util0",
    "xkbcommon-x11": "libxkbcommon-x11-0",
    "EGL": "libegl1",
}
"""What Qt's xcb plug-in loads, and the Debian packages that hold it."""

BAD_PYSIDE: dict[tuple[int, int, int], str] = {
    (6, 9, 1): "draws blank plots",
    (6, 11, 0): "breaks docks and resizing",
    (6, 11, 1): "breaks docks and resizing",
    (6, 12, 0): "aborts while it draws",
}


def window(arguments: argparse.Namespace) -> int:
    """Open the window on `arguments.file`, if one is given. Returns the exit code."""
    path = Path(arguments.file) if arguments.file else None
    # Not `is_file`, which raises for a name that is too long or in a folder that may not be read.
    if path is not None and not os.path.isfile(path):
        hint = "; commands are run, trace, report, build, doctor, worker" if path.suffix == "" else ""
        raise CommandError(INPUT, f"{path}: no such file{hint}")
    missing = what_is_missing(os.environ, sys.platform) or why_unreachable(os.environ, sys.platform)
    if missing:
        raise CommandError(MISSING, missing)
    try:
        import PySide6
        from PySide6 import QtWidgets as _  # noqa: F401
    except ImportError as error:
        raise CommandError(
            MISSING, f"Qt cannot be loaded: {error}. Install it with: pip install PySide6-Essentials"
        ) from None
    bad = why_refused(PySide6.__version_info__[:3])
    if bad:
        raise CommandError(MISSING, bad)
    from app.gui.application import start

    try:
        return start(path, arguments.theme)
    except (RecordingError, ProfileError) as error:
        raise CommandError(INPUT, str(error)) from None


def what_is_missing(
    environment: Mapping[str, str],
    platform: str,
    find_library: Callable[[str], str | None] = ctypes.util.find_library,
) -> str:
    """Why no window can open here, and what to do; empty if one can.

    Qt aborts the process for want of a display or of a library, which Python cannot catch.
    """
    if not platform.startswith("linux"):
        return ""
    wanted = _wanted(environment)
    if wanted in SCREENLESS:
        return ""
    display, wayland = environment.get("DISPLAY"), environment.get("WAYLAND_DISPLAY")
    if not display and not wayland:
        return f"there is no screen here (DISPLAY and WAYLAND_DISPLAY are not set). Without one: {HEADLESS}"
    if wayland and wanted != "xcb":
        return ""
    packages = [package for name, package in XCB_LIBRARIES.items() if find_library(name) is None]
    if packages:
        return (
            f"Qt needs libraries that are not installed: apt install {' '.join(packages)} "
            f"(or your system's packages of the same libraries). Without a window: {HEADLESS}"
        )
    return ""


def why_unreachable(environment: Mapping[str, str], platform: str) -> str:
    """Why the screen that is named does not answer, as one of a session that has ended; empty if it does."""
    if not platform.startswith("linux") or _wanted(environment) in SCREENLESS:
        return ""
    wayland = environment.get("WAYLAND_DISPLAY")
    if wayland and _wanted(environment) != "xcb":
        # As libwayland does: a path, or a name in the folder of the session.
        if os.path.exists(os.path.join(environment.get("XDG_RUNTIME_DIR", ""), wayland)):
            return ""
        if not environment.get("DISPLAY"):
            return f"the screen {wayland} (WAYLAND_DISPLAY) does not answer. Without one: {HEADLESS}"
    display = environment.get("DISPLAY", "")
    if answers(display):
        return ""
    return f"the screen {display} (DISPLAY) does not answer. Without one: {HEADLESS}"


def answers(display: str) -> bool:
    """Whether the X server of this name lets us in. True where that cannot be found out."""
    try:
        xcb = ctypes.CDLL("libxcb.so.1")
    except OSError:
        return True
    xcb.xcb_connect.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
    xcb.xcb_connect.restype = ctypes.c_void_p
    xcb.xcb_connection_has_error.argtypes = xcb.xcb_disconnect.argtypes = [ctypes.c_void_p]
    connection = xcb.xcb_connect(os.fsencode(display), None)
    failed = bool(xcb.xcb_connection_has_error(connection))
    xcb.xcb_disconnect(connection)
    return not failed


def _wanted(environment: Mapping[str, str]) -> str:
    """Qt's platform plug-in that the user asks for; empty for Qt's own choice."""
    return environment.get("QT_QPA_PLATFORM", "").split(":")[0].split(";")[0]


def why_refused(version: tuple[int, int, int]) -> str:
    """Why this PySide6 is refused, and what to install; empty for a good one."""
    fault = BAD_PYSIDE.get(version)
    if fault is None:
        return ""
    name = ".".join(str(part) for part in version)
    return f"PySide6 {name} {fault}. Install another: pip install 'PySide6-Essentials==6.11.3'"
