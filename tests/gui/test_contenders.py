"""The list of implementations: what runs, what is the baseline, why something does not run."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.core import messages as m
from app.core.catalog import CONTENDERS
from app.gui.controls.contender_list import ContenderList
from app.gui.controls.contender_state import count_text, row_states, short
from app.gui.parts.look import Look
from tests.gui.fakes import FakeSession
from tests.gui.states import in_state

pytestmark = pytest.mark.gui


@pytest.fixture
def contenders(qtbot: QtBot, look: Look) -> ContenderList:
    made = ContenderList(look)
    qtbot.addWidget(made)
    made.resize(248, 300)
    made.show()
    return made


def show(contenders: ContenderList, session: FakeSession) -> None:
    record = session.recording.current
    contenders.show_recording(session.recording, record, session.enabled, session.baseline)


def test_all_contenders_are_listed_in_the_order_of_every_chart(contenders: ContenderList) -> None:
    show(contenders, in_state("faster"))
    tops = [contenders.row(name).y() for name in CONTENDERS]
    assert tops == sorted(tops)
    assert contenders.row("native").isChecked()
    assert not contenders.row("compiled").isChecked()
    assert contenders.count.text() == f"4 of {len(CONTENDERS)}"


def test_while_it_compiles_the_extension_keeps_its_row(contenders: ContenderList) -> None:
    show(contenders, in_state("building"))
    row = contenders.row("extension-aten")
    assert row.isChecked()
    assert row.state.note == "compiling"
    assert contenders.count.text() == f"3 of {len(CONTENDERS)} ready"
    show(contenders, in_state("build-failed"))
    assert row.state.note == "no build"


def test_a_contender_that_cannot_run_is_greyed_with_its_reason(
    qtbot: QtBot, contenders: ContenderList
) -> None:
    session = in_state("faster")
    session.recording.apply(
        m.ContenderState(
            1, 0, "mha", "unavailable", "needs equal head sizes, and this has three", "Choose another."
        )
    )
    show(contenders, session)
    row = contenders.row("mha")
    assert row.state.reason == "needs equal head sizes"
    assert row.why.isVisible()
    assert row.state.hollow
    menu = row.explain()
    assert menu.row("line0").item.title == "needs equal head sizes, and this has three"
    menu.choose("copy")
    assert QApplication.clipboard().text().endswith("three Choose another.")
    told: list[tuple[str, ...]] = []
    contenders.enabled_changed.connect(told.append)
    qtbot.mouseClick(row, Qt.MouseButton.LeftButton)
    assert told == []


def test_a_failure_is_named_in_its_row(contenders: ContenderList) -> None:
    show(contenders, in_state("failed"))
    row = contenders.row("extension-aten")
    assert row.state.level == "failed"
    assert row.state.reason == "raised RuntimeError"
    assert row.why.text() == "show"


def test_a_wrong_result_stands_at_the_row(contenders: ContenderList) -> None:
    show(contenders, in_state("wrong"))
    assert contenders.row("extension-aten").state.note == "wrong"
    assert contenders.row("native").state.level == ""


def test_a_click_and_a_key_switch_one_on_and_off(qtbot: QtBot, contenders: ContenderList) -> None:
    show(contenders, in_state("faster"))
    told: list[tuple[str, ...]] = []
    contenders.enabled_changed.connect(told.append)
    qtbot.mouseClick(contenders.row("sdpa"), Qt.MouseButton.LeftButton)
    assert told == [("native", "mha", "extension-aten")]
    contenders.toggle(3)
    assert told[-1] == ("native", "mha", "sdpa", "compiled", "extension-aten")
    contenders.toggle(8)
    assert len(told) == 2


def test_the_baseline_does_not_leave_before_another_takes_over(
    qtbot: QtBot, contenders: ContenderList
) -> None:
    show(contenders, in_state("faster"))
    told: list[tuple[str, ...]] = []
    contenders.enabled_changed.connect(told.append)
    qtbot.mouseClick(contenders.row("native"), Qt.MouseButton.LeftButton)
    assert told == []
    assert contenders.row("native").isChecked()


def test_a_row_sets_the_baseline_from_its_menu(qtbot: QtBot, contenders: ContenderList) -> None:
    show(contenders, in_state("faster"))
    menu = contenders.row("sdpa").open_menu()
    with qtbot.waitSignal(contenders.baseline_changed) as changed:
        menu.choose("baseline")
    assert changed.args == ["sdpa"]
    assert not contenders.row("native").open_menu().row("baseline").isEnabled()


def test_solo_leaves_one_and_the_baseline(qtbot: QtBot, contenders: ContenderList) -> None:
    show(contenders, in_state("faster"))
    with qtbot.waitSignal(contenders.enabled_changed) as changed:
        contenders.row("sdpa").open_menu().choose("solo")
    assert changed.args == [("native", "sdpa")]


def test_the_next_baseline_goes_round_those_measured(contenders: ContenderList) -> None:
    session = in_state("faster")
    told: list[str] = []
    contenders.baseline_changed.connect(told.append)
    for baseline in ("native", "extension-aten"):
        session.baseline = baseline
        show(contenders, session)
        contenders.next_baseline()
    assert told == ["mha", "native"]


def test_before_anything_is_known_rows_wait(contenders: ContenderList) -> None:
    session = in_state("starting")
    states = row_states(session.recording, None, session.enabled, "native")
    assert {state.note for state in states if state.checked} == {"waiting"}
    assert count_text(session.recording, None, session.enabled) == f"0 of {len(CONTENDERS)} ready"


@pytest.mark.parametrize(
    ("reason", "clause"),
    [
        ("Triton needs sm_70: this GPU has sm_61", "Triton needs sm_70"),
        ("", "cannot run here"),
        ("a reason that has no clause and is longer than the row is wide", "a reason that has no clause a…"),
    ],
)
def test_a_reason_is_cut_at_its_first_clause(reason: str, clause: str) -> None:
    assert short(reason) == clause


@pytest.mark.parametrize("reason", ["a reason that is as long as a narrow row", "short"])
def test_the_way_to_the_whole_reason_is_never_cut(contenders: ContenderList, reason: str) -> None:
    contenders.resize(216, 300)
    session = in_state("faster")
    session.recording.apply(m.ContenderState(1, 0, "mha", "unavailable", reason))
    show(contenders, session)
    row = contenders.row("mha")
    assert 0 < row.why.geometry().right() < row.width()


def test_without_a_build_the_extensions_row_says_so_in_a_few_words(contenders: ContenderList) -> None:
    session = in_state("build-failed")
    long = "The compiler /opt/somewhere/bin/c++ ended with status 1 when it was asked for its version"
    session.recording.apply(m.ContenderState(1, 0, "extension-aten", "unavailable", long))
    show(contenders, session)
    state = contenders.row("extension-aten").state
    assert (state.reason, state.why) == ("the build failed", long)
