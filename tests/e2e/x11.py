"""The close button, as a window manager presses it: a WM_DELETE_WINDOW message. xdotool has only a kill."""

from __future__ import annotations

import ctypes
from typing import Any

CLIENT_MESSAGE = 33


class _ClientMessage(ctypes.Structure):
    """XClientMessageEvent, in the room of an XEvent."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("serial", ctypes.c_ulong),
        ("send_event", ctypes.c_int),
        ("display", ctypes.c_void_p),
        ("window", ctypes.c_ulong),
        ("message_type", ctypes.c_ulong),
        ("format", ctypes.c_int),
        ("data", ctypes.c_long * 5),
        ("room", ctypes.c_long * 24),
    )


def press_close_button(display: str, window: int) -> None:
    """Ask the window to close. Raises OSError where the display does not answer."""
    x11: Any = ctypes.CDLL("libX11.so.6")
    x11.XOpenDisplay.restype = ctypes.c_void_p
    x11.XInternAtom.restype = ctypes.c_ulong
    connection = x11.XOpenDisplay(display.encode())
    if not connection:
        raise OSError(f"display {display} does not answer")
    pointer = ctypes.c_void_p(connection)
    event = _ClientMessage(type=CLIENT_MESSAGE, window=window, format=32)
    event.message_type = x11.XInternAtom(pointer, b"WM_PROTOCOLS", 0)
    event.data[0] = x11.XInternAtom(pointer, b"WM_DELETE_WINDOW", 0)
    x11.XSendEvent(pointer, ctypes.c_ulong(window), 0, ctypes.c_long(0), ctypes.byref(event))
    x11.XCloseDisplay(pointer)
