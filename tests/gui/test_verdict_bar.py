"""Each state of the verdict says what it must, and nothing that it must not."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.core import messages as m
from app.core.measurements import Counts, Phased
from app.core.workload import Workload
from app.gui.parts.line import ChipPiece, Glyph, Hosted, Text
from app.gui.parts.look import Look
from app.gui.parts.text import recorded_overflows
from app.gui.theme import DARK, LIGHT, NORMAL, SMALL
from app.gui.verdict_bar import VerdictBar
from app.gui.verdict_text import Writer
from app.gui.verdict_words import match_texts, rough, tensor_title
from tests import factories
from tests.gui.conftest import WideType
from tests.gui.fakes import FakeSession
from tests.gui.states import STATES, gpu_workload, in_state

pytestmark = pytest.mark.gui

SENTENCES = {
    "starting": "Starting: PyTorch is loading in a process of its own",
    "warming": "Warming up Native and Extension (ATen)",
    "faster": "Extension (ATen) is 1.48× faster than Native",
    "slower": "Extension (ATen) is 1.16× slower than Native",
    "same": "Same Extension (ATen) and Native differ by less than 1 %",
    "unsure": "Unsure Difference between Extension (ATen) and Native is within the noise floor",
    "wrong": "Wrong result No speed-up is shown: the gradient of v_weight differs",
    "paused": "Paused Extension (ATen) is 1.48× faster than Native",
    "stale": "Stale The worker has not answered for 6 s",
    "building": "Native runs at 826 µs while the extension compiles",
    "build-failed": "No verdict: the extension did not compile",
    "failed": "No verdict: Extension (ATen) failed",
    "alone": "Native runs at 822 µs",
    "recorded": "Recorded Extension (ATen) is 1.48× faster than Native",
    "stopped": "Nothing is measured any more",
}


def shown(bar: VerdictBar, session: FakeSession, waiting_s: float | None = None) -> str:
    bar.show_snapshot(
        session.snapshot(60.0),
        session.viewing is not None,
        session.stopped_because,
        waiting_s,
        session.challenger is not None,
    )
    return bar.text()


@pytest.fixture
def bar(qtbot: QtBot, look: Look) -> VerdictBar:
    made = VerdictBar(look)
    qtbot.addWidget(made)
    made.resize(1128, 96)
    made.show()
    return made


def plain(text: str) -> str:
    """With ordinary spaces: units stand behind thin ones."""
    return " ".join(text.replace("\u2009", " ").replace("\u202f", " ").split())


@pytest.mark.parametrize("state", STATES)
def test_each_state_has_its_sentence(bar: VerdictBar, state: str) -> None:
    shown(bar, in_state(state))
    assert plain(bar.sentence.text()) == SENTENCES[state]


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("small", [False, True])
def test_no_text_speaks_of_launches_on_a_cpu(qtbot: QtBot, look: Look, state: str, small: bool) -> None:
    bar = VerdictBar(look.with_sizes(SMALL if small else NORMAL))
    qtbot.addWidget(bar)
    bar.resize(760 if small else 1128, 96)
    text = shown(bar, in_state(state)) + bar.accessibleName()
    assert "launch" not in text.lower()


def test_on_a_gpu_the_first_cause_is_kernel_launches(bar: VerdictBar) -> None:
    session = in_state("faster", gpu_workload())
    record = session.recording.current
    assert record is not None
    for name, forward, backward in (("native", 11, 16), ("extension-aten", 1, 2)):
        counts = Counts(Phased(61, 1), Phased(58, 90), kernel_launches=Phased(forward, backward))
        record.counts[name] = counts
    shown(bar, session)
    assert bar.figures.texts()[0] == "Kernel launches: 27 → 3 (−24 per call)"


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("theme", [DARK, LIGHT])
@pytest.mark.parametrize(("width", "sizes"), [(1128, NORMAL), (860, NORMAL), (756, SMALL), (830, SMALL)])
@pytest.mark.parametrize("wide", [False, True])
def test_nothing_runs_over_however_narrow_and_wide_the_font(
    qtbot: QtBot, look: Look, state: str, theme: object, width: int, sizes: object, wide: bool
) -> None:
    type_ = WideType() if wide else look.type
    bar = VerdictBar(Look(theme, type_, sizes, motion=False))  # type: ignore[arg-type]
    qtbot.addWidget(bar)
    bar.resize(width, 96)
    bar.show()
    shown(bar, in_state(state))
    QApplication.processEvents()
    with recorded_overflows() as found:
        bar.grab()
    assert found == []


def test_narrow_evidence_drops_its_width_then_rounds_then_the_error_then_the_words(bar: VerdictBar) -> None:
    shown(bar, in_state("faster"))
    seen = []
    for level in range(len(bar.evidence.levels)):
        text = plain(bar.evidence.text(level))
        assert "95 % CI" in text, "the interval never goes"
        assert any(isinstance(p, Glyph) and p.name == "tick" for p in bar.evidence.levels[level])
        seen.append(tuple(word in text for word in ("known to ±", "rounds", "max |Δ|", "output and")))
    assert seen[:5] == [
        (True, True, True, True),
        (False, True, True, True),
        (False, False, True, True),
        (False, False, False, True),
        (False, False, False, False),
    ]


def test_rounds_under_strain_are_counted_beside_the_verdict(bar: VerdictBar) -> None:
    session = in_state("faster")
    record = session.recording.current
    assert record is not None
    at_s = float(record.series["native"].at_s[50])
    session.recording.apply(m.Telemetry(at_s, others_percent=0.0))
    session.recording.apply(m.Telemetry(at_s + 1.0, others_percent=70.0))
    shown(bar, session)
    assert "disturbed left out" in plain(bar.evidence.text(0))


def test_the_same_snapshot_is_not_laid_out_twice(bar: VerdictBar, monkeypatch: pytest.MonkeyPatch) -> None:
    session = in_state("faster")
    shown(bar, session)
    laid_out: list[int] = []
    monkeypatch.setattr(bar, "_show", lambda said: laid_out.append(1))
    shown(bar, session)
    assert laid_out == []


def test_counts_that_are_not_there_are_not_zero(bar: VerdictBar) -> None:
    session = FakeSession(factories.recording(counts=False))
    shown(bar, session)
    assert bar.figures.texts()[0] == "Operator calls: – → – (not counted yet)"


def test_forward_only_counts_one_output(bar: VerdictBar) -> None:
    session = FakeSession(factories.recording(Workload(device="cpu")))
    entry = session.snapshot(None).entry("extension-aten")
    assert entry is not None
    assert match_texts(entry) == ("output matches (max |Δ| 3.0e-07)", "output matches")


# ---- what can be done ----------------------------------------------------------------------------------


def test_a_name_picks_another_challenger_and_baseline(qtbot: QtBot, bar: VerdictBar) -> None:
    shown(bar, in_state("faster"))
    menu = bar.open_challengers()
    assert not menu.row("native").isEnabled(), "the baseline cannot be held against itself"
    with qtbot.waitSignal(bar.challenger_picked) as picked:
        menu.choose("sdpa")
    assert picked.args == ["sdpa"]
    with qtbot.waitSignal(bar.baseline_picked) as picked:
        bar.open_baselines().choose("mha")
    assert picked.args == ["mha"]


def test_unsure_offers_what_acts_and_says_what_does_not(qtbot: QtBot, bar: VerdictBar) -> None:
    shown(bar, in_state("unsure"))
    assert "plug in the charger, measure longer" in bar.evidence.text()
    visible = [pill for pill in bar.pills if pill.isVisible()]
    assert [pill.text() for pill in visible] == ["Larger sequence"]
    with qtbot.waitSignal(bar.acted) as acted:
        visible[0].click()
    assert acted.args == ["larger-sequence"]


def test_a_silent_worker_is_waited_for_or_replaced(qtbot: QtBot, bar: VerdictBar) -> None:
    session = in_state("stale")
    shown(bar, session)
    assert [pill.text() for pill in bar.pills if pill.isVisible()] == ["Wait", "Restart worker"]
    with qtbot.waitSignal(bar.acted) as acted:
        bar.pills[1].click()
    assert acted.args == ["restart-worker"]
    shown(bar, session, waiting_s=27.0)
    assert "waiting; asks again in 0:27" in bar.evidence.text()
    assert not any(pill.isVisible() for pill in bar.pills)


def test_a_build_shows_how_far_it_is_and_can_be_cancelled(qtbot: QtBot, bar: VerdictBar) -> None:
    shown(bar, in_state("building"))
    panel = bar.build_panel
    assert panel.isVisible()
    assert (panel.title.text(), panel.elapsed.text(), panel.source.text()) == (
        "Compiled 1 of 3",
        "0:12",
        "autograd.cpp",
    )
    # A third of the files, a little more of the time that the last full build took.
    assert panel.bar.share == pytest.approx(12 / 34)
    assert "about 22 s left" in bar.evidence.text()
    with qtbot.waitSignal(bar.acted) as acted:
        panel.cancel.click()
    assert acted.args == ["cancel-build"]


def test_a_failed_build_says_what_goes_on_and_offers_the_log(qtbot: QtBot, bar: VerdictBar) -> None:
    shown(bar, in_state("build-failed"))
    text = plain(bar.evidence.text())
    assert text.startswith("Native keeps running at 828 µs · nn.MultiheadAttention and SDPA too")
    assert [button.text() for button in bar.buttons.buttons] == ["Copy log", "Retry"]


def test_one_picked_by_hand_keeps_its_place_while_the_extension_builds(bar: VerdictBar) -> None:
    session = in_state("build-failed")
    session.challenger = "sdpa"
    shown(bar, session)
    assert bar.sentence.text().startswith("SDPA is 1.7")


def test_a_wrong_result_is_withheld_with_its_error_and_bound(bar: VerdictBar) -> None:
    shown(bar, in_state("wrong"))
    assert bar.withheld.isVisible()
    assert "max |Δ| 4.1e-02, limit 6.0e-07" in bar.evidence.text()
    assert "×" not in bar.text()
    assert bar.figures.isHidden()


def test_paused_values_are_grey_and_their_age_is_told(bar: VerdictBar) -> None:
    session = in_state("paused")
    session.age_s = 14.0
    shown(bar, session)
    assert bar.evidence.text().startswith("last round 0:14 ago")
    number = next(p for p in bar.sentence.shown if isinstance(p, Text) and "×" in p.text)
    assert number.role == "text_secondary"
    assert bar.challenger.dimmed


def test_every_chip_has_a_word_beside_its_colour() -> None:
    for state in STATES:
        session = in_state(state)
        said = Writer(NORMAL).verdict(
            session.snapshot(60), session.viewing is not None, session.stopped_because
        )
        for piece in said.sentence[0]:
            if isinstance(piece, ChipPiece):
                assert piece.text.strip()
        for level in said.sentence:
            assert any(isinstance(p, (Text, Hosted)) for p in level)


def test_the_verdict_is_readable_without_eyes(bar: VerdictBar) -> None:
    shown(bar, in_state("faster"))
    name = plain(bar.accessibleName())
    assert name.startswith("Verdict: Extension (ATen) is 1.48× faster than Native. 95 % CI")


def test_the_names_open_with_the_keyboard(qtbot: QtBot, bar: VerdictBar) -> None:
    shown(bar, in_state("faster"))
    bar.activateWindow()
    qtbot.waitUntil(lambda: bar.isActiveWindow())
    bar.challenger.setFocus(Qt.FocusReason.TabFocusReason)
    qtbot.keyClick(bar.challenger, Qt.Key.Key_Space)
    focus = QApplication.focusWidget()
    assert focus is not None
    assert focus.property("text") == "Extension (ATen)"


# ---- words ---------------------------------------------------------------------------------------------


def test_tensors_read_as_what_they_are() -> None:
    assert tensor_title("grad_v_weight") == "the gradient of v_weight"
    assert tensor_title("output") == "the output"


@pytest.mark.parametrize(
    ("seconds", "words"), [(4.2, "4 s"), (34, "30 s"), (71, "1 min 10 s"), (118, "2 min"), (59, "1 min")]
)
def test_an_estimate_is_rounded_to_what_it_is_worth(seconds: float, words: str) -> None:
    assert rough(seconds) == words


def test_waiting_for_another_build_is_said() -> None:
    session = in_state("building")
    session.recording.apply(m.BuildWaiting("/cache/lock", 77, 3.0))
    said = Writer(NORMAL).verdict(session.snapshot(60))
    assert said.progress is not None
    assert said.progress.title == "Waiting for another build"
