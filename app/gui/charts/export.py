"""A chart as a picture: title, caption, the chart, and the machine it was measured on."""

from __future__ import annotations

import os
from pathlib import Path

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QPoint, QRect, QRectF, QSize
from PySide6.QtGui import QImage, QPainter, QRegion
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import QWidget

from app.core.files import write_atomically
from app.gui.charts.painted import PaintedChart
from app.gui.charts.painting import LEFT, width_of, write
from app.gui.parts.look import Look

SCALE = 2
_MARGIN, _HEAD, _LINE = 16, 28, 16
_DEFAULT = QSize(880, 420)
FORMATS = (".png", ".svg")


class ExportError(ValueError):
    """A picture that cannot be written. The text names the file and the cause."""


def export_widget(widget: QWidget, path: str | os.PathLike[str]) -> None:
    """Write a chart to `path`, as PNG at twice its size or as SVG, whole or not at all.

    Raises `ExportError` for another suffix or a place that cannot be written.
    """
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in FORMATS:
        raise ExportError(f"{target}: a picture is written as {' or '.join(FORMATS)}")
    if widget.width() < 60 or widget.height() < 40:
        widget.resize(_DEFAULT)
    data = _png(widget) if suffix == ".png" else _svg(widget)
    try:
        write_atomically(target, data)
    except OSError as error:
        raise ExportError(f"{target}: cannot be written: {error.strerror or error}") from error


def _whole(widget: QWidget) -> QSize:
    foot = 8 + _LINE * len(_foot(widget))
    return QSize(widget.width() + 2 * _MARGIN, widget.height() + _HEAD + foot + 2 * _MARGIN)


def _foot(widget: QWidget) -> list[str]:
    """The line of the machine, broken between its parts where the chart is narrow."""
    font = widget.look.font(11)  # type: ignore[attr-defined]
    lines: list[str] = []
    for part in str(getattr(widget, "environment_line", "")).split(" · "):
        longer = f"{lines[-1]} · {part}" if lines else part
        if lines and width_of(longer, font) > widget.width():
            lines.append(part)
        else:
            lines[-1:] = [longer]
    return lines


def _png(widget: QWidget) -> bytes:
    size = _whole(widget)
    image = QImage(size * SCALE, QImage.Format.Format_ARGB32)
    image.setDevicePixelRatio(SCALE)
    painter = QPainter(image)
    _draw(painter, widget, size)
    painter.end()
    content = QByteArray()
    buffer = QBuffer(content)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    # The stub asks for bytes, the binding for str.
    if not image.save(buffer, "PNG"):  # type: ignore[call-overload]
        raise ExportError("the picture cannot be encoded as PNG")
    return bytes(content.data())


def _svg(widget: QWidget) -> bytes:
    size = _whole(widget)
    content = QByteArray()
    buffer = QBuffer(content)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    generator = QSvgGenerator()
    generator.setOutputDevice(buffer)
    generator.setSize(size)
    generator.setViewBox(QRectF(0, 0, size.width(), size.height()))
    generator.setTitle(str(getattr(widget, "title", widget.accessibleName())))
    generator.setDescription(str(getattr(widget, "environment_line", "")))
    painter = QPainter(generator)
    _draw(painter, widget, size)
    painter.end()
    return bytes(content.data())


def _draw(painter: QPainter, widget: QWidget, size: QSize) -> None:
    look: Look = widget.look  # type: ignore[attr-defined]
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.fillRect(QRectF(0, 0, size.width(), size.height()), look.colour("card"))
    title = str(getattr(widget, "title", widget.accessibleName()))
    caption = str(getattr(widget, "caption", ""))
    head = QRectF(_MARGIN, _MARGIN - 4, widget.width(), _HEAD)
    bold = look.font(14, 600)
    write(painter, head, title, bold, look.colour("text"), LEFT)
    after = head.adjusted(width_of(title, bold) + 10, 0, 0, 0)
    room = after.width()
    if isinstance(widget, PaintedChart):
        room -= widget.legend_width() + 12
        painter.save()
        widget.paint_legend(painter, head.right(), head.center().y())
        painter.restore()
    after.setWidth(max(room, 0))
    write(painter, after, caption, look.font(12), look.colour("text_tertiary"), LEFT, may_elide=True)
    painter.save()
    painter.translate(_MARGIN, _MARGIN + _HEAD)
    if isinstance(widget, PaintedChart):
        widget.paint_chart(painter, QRectF(widget.rect()))
    else:
        _render(painter, widget)
    painter.restore()
    lines = _foot(widget)
    for index, text in enumerate(lines):
        top = size.height() - _MARGIN - _LINE * (len(lines) - index)
        foot = QRectF(_MARGIN, top, widget.width(), _LINE)
        write(painter, foot, text, look.font(11), look.colour("text_tertiary"), LEFT, may_elide=True)


def _render(painter: QPainter, widget: QWidget) -> None:
    scene = getattr(widget, "render_into", None)
    if scene is not None:
        scene(painter, QRectF(widget.rect()))
    else:
        widget.render(painter, QPoint(0, 0), QRegion(QRect(QPoint(0, 0), widget.size())))
