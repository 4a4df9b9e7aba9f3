"""The form shows a workload and makes one, explains what cannot run, and does not flood the worker."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.core.environment import Environment
from app.core.fields import fields_of
from app.core.launch import profiles
from app.core.workload import Workload
from app.gui.controls.explanation import goes_on_with
from app.gui.controls.workload_form import EMIT_MS, WorkloadForm, choice_title
from app.gui.parts.look import Look
from tests import factories

pytestmark = pytest.mark.gui


@pytest.fixture
def form(qtbot: QtBot, look: Look) -> WorkloadForm:
    made = WorkloadForm(look, Workload(device="cpu"))
    qtbot.addWidget(made)
    made.resize(248, 600)
    made.show()
    return made


@pytest.fixture
def told(form: WorkloadForm) -> list[Workload]:
    values: list[Workload] = []
    form.workload_changed.connect(values.append)
    return values


def settle(qtbot: QtBot) -> None:
    qtbot.wait(3 * EMIT_MS)


def test_every_declared_field_has_its_control(form: WorkloadForm) -> None:
    for name, field in fields_of(Workload).items():
        if field.kind == "int":
            assert form.row(name).label.text() == field.title
            assert form.row(name).slider.steps == field.steps
        elif field.kind == "bool":
            assert form.switch(name).accessibleName() == field.title
        elif len(field.choices) in (2, 3):
            assert form.segmented(name).accessibleName() == field.title
        else:
            assert form.picker(name).accessibleName() == field.title


@pytest.mark.parametrize(
    "workload",
    [
        Workload(device="cpu"),
        Workload(1, 1, 96, 3, False, "forward_backward", "bfloat16", "cpu"),
        Workload(64, 4096, 1000, 8, True, "forward", "float64", "cpu"),
    ],
)
def test_what_is_set_is_what_is_shown_without_telling(
    qtbot: QtBot, form: WorkloadForm, told: list[Workload], workload: Workload
) -> None:
    form.set_workload(workload)
    settle(qtbot)
    assert form.workload == workload
    assert form.row("seq_len").number() == workload.seq_len
    assert form.switch("causal").isChecked() == workload.causal
    assert form.segmented("mode").value() == workload.mode
    assert form.picker("dtype").text() == workload.dtype
    assert told == []


def test_each_control_changes_its_field(qtbot: QtBot, form: WorkloadForm, told: list[Workload]) -> None:
    form.row("batch").field.setValue(3)
    settle(qtbot)
    form.row("seq_len").slider.step_to(0)
    settle(qtbot)
    form.switch("causal").click()
    settle(qtbot)
    form.segmented("mode").segment("forward_backward").click()
    settle(qtbot)
    form.picker("dtype").chosen.emit("float64")
    settle(qtbot)
    assert told[-1] == Workload(3, 1, 128, 4, False, "forward_backward", "float64", "cpu")
    assert len(told) == 5


def test_decode_mode_is_causal_and_names_the_cached_tokens(
    qtbot: QtBot, form: WorkloadForm, told: list[Workload]
) -> None:
    form.switch("causal").click()
    settle(qtbot)
    form.segmented("mode").segment("decode").click()
    settle(qtbot)
    assert (told[-1].mode, told[-1].causal) == ("decode", True)
    assert form.switch("causal").isChecked()
    assert not form.switch("causal").isEnabled()
    assert "every token before it" in form.switch("causal").toolTip()
    assert form.row("seq_len").label.text() == "Cached"
    assert form.row("seq_len").field.accessibleName() == "Cached"
    form.segmented("mode").segment("forward").click()
    settle(qtbot)
    assert (told[-1].mode, told[-1].causal) == ("forward", False), "the choice from before is back"
    assert form.switch("causal").isEnabled()
    assert form.switch("causal").toolTip() == fields_of(Workload)["causal"].help
    assert form.row("seq_len").label.text() == "Sequence"


def test_a_decode_workload_is_shown_and_left_for_a_causal_one(
    qtbot: QtBot, form: WorkloadForm, told: list[Workload]
) -> None:
    form.set_workload(Workload(1, 128, 512, 8, True, "decode", "float32", "cpu"))
    assert form.segmented("mode").value() == "decode"
    form.segmented("mode").segment("forward_backward").click()
    settle(qtbot)
    assert told == [Workload(1, 128, 512, 8, True, "forward_backward", "float32", "cpu")]


def test_a_held_key_tells_few_values_and_always_the_last(
    qtbot: QtBot, form: WorkloadForm, told: list[Workload]
) -> None:
    field = form.row("batch").field
    for _ in range(100):
        field.stepUp()
    assert len(told) == 1, "the first goes out at once"
    settle(qtbot)
    assert told[-1].batch == 108
    assert len(told) == 2, "the other 99 were one burst"


def test_a_slow_drag_is_told_at_most_every_interval(
    qtbot: QtBot, form: WorkloadForm, told: list[Workload]
) -> None:
    import time

    began = time.monotonic()
    for number in range(1, 40):
        form.row("batch").field.setValue(number)
        qtbot.wait(4)
    elapsed_ms = (time.monotonic() - began) * 1000
    settle(qtbot)
    assert len(told) <= elapsed_ms / EMIT_MS + 2
    assert told[-1].batch == 39


def test_an_impossible_combination_is_explained_and_the_last_possible_one_goes_on(
    qtbot: QtBot, form: WorkloadForm, told: list[Workload]
) -> None:
    form.row("num_heads").field.setValue(8)
    settle(qtbot)
    form.row("num_heads").field.setValue(12)
    settle(qtbot)
    explanation = form.explanation
    assert explanation.isVisible()
    assert explanation.sentence.text() == "128 does not divide by 12"
    assert explanation.meanwhile.text() == "The run goes on with 8 heads."
    assert [button.text() for button in explanation.buttons] == ["Use 8", "Use 16"]
    assert form.row("num_heads").field.wrong
    assert form.head_dim.text() == "head_dim –"
    assert told[-1].num_heads == form.workload.num_heads == 8
    explanation.buttons[1].click()
    settle(qtbot)
    assert not explanation.isVisible()
    assert told[-1].num_heads == 16
    assert not form.row("num_heads").field.wrong


def test_the_sentence_names_whatever_differs_from_what_runs() -> None:
    valid = Workload(embed_dim=128, num_heads=8)
    assert (
        goes_on_with(msgspec.structs.replace(valid, embed_dim=100), valid)
        == "The run goes on with embedding 128."
    )
    both = msgspec.structs.replace(valid, embed_dim=100, num_heads=3)
    assert goes_on_with(both, valid) == "The run goes on with embedding 128 and 8 heads."
    assert goes_on_with(
        msgspec.structs.replace(valid, num_heads=3), msgspec.structs.replace(valid, num_heads=1)
    ).endswith("1 head.")


def test_a_burst_that_ends_impossible_still_tells_its_last_possible_value(
    qtbot: QtBot, form: WorkloadForm, told: list[Workload]
) -> None:
    for heads in (1, 2, 8, 12):
        form.row("num_heads").field.setValue(heads)
    settle(qtbot)
    assert told[-1].num_heads == 8


def test_crosses_stand_at_the_steps_of_the_field_at_fault_only(form: WorkloadForm) -> None:
    form.set_workload(Workload(embed_dim=48, num_heads=4, device="cpu"))
    assert form.row("num_heads").slider.impossible == {32, 64}
    form.row("num_heads").field.setValue(64)
    assert form.row("num_heads").slider.impossible == {32, 64}
    assert form.row("batch").slider.impossible == frozenset()
    form.set_workload(Workload(embed_dim=96, num_heads=3, device="cpu"))
    assert form.row("batch").slider.impossible == frozenset()


def test_reset_goes_back_and_keeps_the_device(qtbot: QtBot, form: WorkloadForm, told: list[Workload]) -> None:
    form.row("batch").field.setValue(3)
    form.row("num_heads").field.setValue(12)
    settle(qtbot)
    form.reset.click()
    settle(qtbot)
    assert told[-1] == Workload(device="cpu")
    assert not form.explanation.isVisible()


def test_the_line_below_states_size_and_work(form: WorkloadForm) -> None:
    assert form.head_dim.text() == "head_dim 32"
    assert form.work.text().startswith("128 ÷ 4 · ")
    assert "FLOP" in form.work.text()


def test_choices_read_as_words() -> None:
    assert choice_title("forward_backward") == "Forward + backward"


# ---- devices -------------------------------------------------------------------------------------------


def test_a_device_that_cannot_be_used_is_greyed_with_reason_and_way_out(
    qtbot: QtBot, form: WorkloadForm
) -> None:
    form.set_environment(factories.environment())
    assert form.note.text() == "CUDA:0 cannot be used ·"
    menu = form.picker("device").open()
    row = menu.row("cuda:0")
    assert not row.isEnabled()
    assert "no kernels for sm_61" in row.item.detail
    assert "Keep the driver" in row.item.fix
    menu.choose("copy:cuda:0")
    assert QApplication.clipboard().text().startswith("pip install 'torch==2.13.0'")
    assert form.workload.device == "cpu"


def test_the_way_to_the_system_tab_is_offered(qtbot: QtBot, form: WorkloadForm) -> None:
    form.set_environment(factories.environment())
    with qtbot.waitSignal(form.system_requested):
        form.picker("device").open().choose("open-system")


def test_before_the_worker_has_looked_the_form_says_so(form: WorkloadForm) -> None:
    assert form.note.text() == "looking for devices"
    assert [item.id for item in form.picker("device").items()] == ["cpu"]
    form.set_environment(Environment(devices=(factories.environment().devices[0],)))
    assert form.note.text() == "no GPU found"


# ---- profiles ------------------------------------------------------------------------------------------


def test_the_profiles_that_ship_are_offered_and_named_when_they_fit(qtbot: QtBot, look: Look) -> None:
    form = WorkloadForm(look, Workload(batch=3, device="cpu"))
    qtbot.addWidget(form)
    assert form.profile.text() == "Custom workload"
    assert len(form.profile.items()) == len(profiles()) >= 5
    quick = next(item for item in form.profile.items() if item.title == "Quick look")
    with qtbot.waitSignal(form.plan_chosen) as chosen:
        form.profile.chosen.emit(quick.id)
    plan, path = chosen.args
    assert Path(quick.id) == path
    form.set_workload(msgspec.structs.replace(plan.workloads[0], device="cpu"))
    assert form.profile.text() == "Quick look"


def test_a_broken_profile_is_listed_with_its_reason(qtbot: QtBot, look: Look, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("[workload]\nheads = 3\n")
    form = WorkloadForm(look, Workload(), find_profiles=lambda: sorted(tmp_path.glob("*.toml")))
    qtbot.addWidget(form)
    (item,) = form.profile.items()
    assert not item.enabled
    assert "heads" in item.detail


def test_the_fields_stand_in_reading_order_for_tab(qtbot: QtBot, form: WorkloadForm) -> None:
    form.window().activateWindow()
    qtbot.waitUntil(lambda: form.window().isActiveWindow())
    form.profile.setFocus(Qt.FocusReason.TabFocusReason)
    seen = []
    for _ in range(8):
        form.focusNextChild()
        seen.append(QApplication.focusWidget())
    rows = [form.row(name) for name in ("batch", "seq_len", "embed_dim", "num_heads")]
    assert seen == [widget for row in rows for widget in (row.slider, row.field)]


def test_what_is_changed_beside_an_impossible_field_is_measured_all_the_same(
    qtbot: QtBot, form: WorkloadForm, told: list[Workload]
) -> None:
    form.row("num_heads").field.setValue(12)
    form.segmented("mode").segment("forward_backward").click()
    settle(qtbot)
    assert told[-1].mode == "forward_backward"
    assert told[-1].num_heads == Workload().num_heads
    assert form.row("num_heads").number() == 12
    assert not form.explanation.isHidden()


def test_a_workload_is_named_after_the_profile_that_has_it_alone(look: Look, qtbot: QtBot) -> None:
    from app.core.launch import find_profile
    from app.core.plan import read_profile
    from app.gui.controls.profile_picker import ProfilePicker

    picker = ProfilePicker(look)
    qtbot.addWidget(picker)
    plan = read_profile(find_profile("training_step"))
    assert plan.workloads[0] in read_profile(find_profile("seed_table")).workloads
    picker.show_workload(plan.workloads[0])
    assert picker.text() == plan.title
