"""Charts as pictures."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from PySide6.QtCore import QByteArray
from PySide6.QtGui import QImage, QPainter
from PySide6.QtSvg import QSvgRenderer

from app.gui.charts.export import ExportError, export_widget
from app.gui.theme import DARK, LIGHT, Type
from app.gui.views.live import LiveView
from tests.gui import scenes

pytestmark = pytest.mark.gui
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(params=[DARK, LIGHT], ids=["dark", "light"])
def live(request: pytest.FixtureRequest, qtbot) -> LiveView:  # type: ignore[no-untyped-def]
    view = LiveView(request.param, Type())
    qtbot.addWidget(view)
    view.show_snapshot(scenes.SCENES["running"]())
    scenes.drawn(view, 1128, 624)
    return view


def test_every_chart_is_written_as_png_at_twice_its_size(live: LiveView, tmp_path: Path) -> None:
    for number, chart in enumerate(live.chart_widgets().values()):
        path = tmp_path / f"{number}.png"
        export_widget(chart, path)
        image = QImage(str(path))
        assert image.width() == 2 * (chart.width() + 32)
        assert scenes.colours(image) > 8


def test_every_chart_is_written_as_svg_that_draws_the_same_words(live: LiveView, tmp_path: Path) -> None:
    for number, (title, chart) in enumerate(live.chart_widgets().items()):
        path = tmp_path / f"{number}.svg"
        export_widget(chart, path)
        root = ElementTree.parse(path).getroot()
        words = " ".join("".join(text.itertext()) for text in root.iter(f"{SVG}text"))
        assert title in words
        assert "Example CPU" in words
        renderer = QSvgRenderer(QByteArray(path.read_bytes()))
        assert renderer.isValid()
        image = QImage(renderer.defaultSize(), QImage.Format.Format_RGB32)
        image.fill(0)
        painter = QPainter(image)
        renderer.render(painter)
        painter.end()
        assert scenes.colours(image) > 8


def test_a_picture_carries_title_caption_and_machine(live: LiveView, tmp_path: Path) -> None:
    live.latency.caption = "µs, a caption of its own"
    export_widget(live.latency, tmp_path / "one.svg")
    words = (tmp_path / "one.svg").read_text(encoding="utf-8")
    for part in ("Latency per call", "a caption of its own", "torch 2.13.0+cpu", "Native"):
        assert part in words


def test_the_crosshair_is_not_in_the_picture_and_comes_back(live: LiveView, tmp_path: Path) -> None:
    live.latency._hover_at = live.latency._scene.plot.right() - 20
    live.latency._hover()
    before = live.latency._scene.hover
    export_widget(live.latency, tmp_path / "one.svg")
    assert "round" not in (tmp_path / "one.svg").read_text(encoding="utf-8")
    assert before is not None
    assert live.latency._scene.hover is not None


def test_a_chart_that_was_never_shown_can_be_written(tmp_path: Path, qtbot) -> None:  # type: ignore[no-untyped-def]
    from app.gui.charts.latency import LatencyChart

    chart = LatencyChart(scenes.look_of(LIGHT))
    qtbot.addWidget(chart)
    chart.resize(0, 0)
    chart.show_snapshot(scenes.SCENES["running"]())
    export_widget(chart, tmp_path / "one.png")
    assert scenes.colours(QImage(str(tmp_path / "one.png"))) > 8


def test_an_unknown_suffix_and_a_bad_place_are_sentences(live: LiveView, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"one\.jpg: a picture is written as \.png or \.svg"):
        export_widget(live.latency, tmp_path / "one.jpg")
    (tmp_path / "file").write_text("")
    with pytest.raises(ExportError, match="cannot be written"):
        export_widget(live.latency, tmp_path / "file" / "one.png")


def test_a_picture_replaces_the_old_one_whole(live: LiveView, tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "one.png"
    path.write_bytes(b"old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(ExportError, match="No space left"):
        export_widget(live.latency, path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
