"""Preferences come back as they were; a broken file is set aside with a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.workload import Workload
from app.gui import preferences as p
from app.gui.preferences import Preferences

pytestmark = pytest.mark.gui

CHANGED = Preferences(
    geometry=(10, -20, 1200, 800),
    maximised=True,
    theme="light",
    kept_theme="light",
    motion=False,
    tab=2,
    window_span="all",
    left_panel=False,
    workload=Workload(3, 7, 96, 3, False, "forward_backward", "float64", "cpu"),
    enabled=("native", "sdpa"),
    baseline="sdpa",
    export_folder='C:\\Users\\"quoted"\\ä\n',
)


def test_all_of_them_come_back(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "preferences.toml"
    assert CHANGED.save(path) == ""
    assert Preferences.load(path) == CHANGED


def test_without_a_file_there_are_defaults_and_no_complaint(tmp_path: Path) -> None:
    loaded = Preferences.load(tmp_path / "none.toml")
    assert loaded == Preferences()


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_folder_survives(folder: str) -> None:
    text = p.as_toml(Preferences(export_folder=folder))
    assert p.tomllib.loads(text)["export_folder"] == folder


def test_a_name_that_is_no_text_does_not_keep_the_rest_from_being_written(tmp_path: Path) -> None:
    path = tmp_path / "preferences.toml"
    Preferences(export_folder="/tmp/\udcff", tab=2).save(path)
    assert Preferences.load(path).tab == 2


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (b"theme = ", "Invalid value"),
        (b'theme = "pink"', "pink"),
        (b"\xd3\xff", "utf-8"),
        (b"[workload]\nheads = 3", "heads"),
        (b"[workload]\nbatch = -1", "batch"),
        (b'geometry = "wide"', "geometry"),
        (b"x" * 200_000, "larger than"),
        (b"a = " + b"[" * 50_000, ""),
    ],
)
def test_a_broken_file_is_set_aside_and_named(tmp_path: Path, content: bytes, cause: str) -> None:
    path = tmp_path / "preferences.toml"
    path.write_bytes(content)
    loaded = Preferences.load(path)
    assert cause in loaded.notice
    assert "preferences.toml.broken" in loaded.notice
    assert not path.exists()
    assert (tmp_path / "preferences.toml.broken").read_bytes() == content
    loaded.notice = ""
    assert loaded == Preferences()


def test_unknown_keys_of_a_newer_version_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "preferences.toml"
    path.write_text('hologram = true\ntheme = "dark"\n')
    assert Preferences.load(path).theme == "dark"


def test_contenders_that_are_gone_and_workloads_that_cannot_run_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / "preferences.toml"
    path.write_text(
        'enabled = ["gone", "sdpa"]\nbaseline = "gone"\n[workload]\nembed_dim = 100\nnum_heads = 8\n'
    )
    loaded = Preferences.load(path)
    assert (loaded.enabled, loaded.baseline) == (("sdpa",), "sdpa")
    assert loaded.workload == Workload()


def test_a_theme_for_one_start_is_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "preferences.toml"
    loaded = Preferences.load(path)
    loaded.theme = "light"
    loaded.save(path)
    assert Preferences.load(path).theme == "system"
    loaded.choose_theme("dark")
    loaded.save(path)
    assert Preferences.load(path).theme == "dark"


def test_a_place_that_cannot_be_written_is_a_notice(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    notice = Preferences().save(tmp_path / "file" / "preferences.toml")
    assert "cannot be written" in notice


def test_the_environment_says_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTNSCOPE_CONFIG_DIR", str(tmp_path))
    assert p.folder() == tmp_path
    Preferences().save()
    assert (tmp_path / "preferences.toml").is_file()
