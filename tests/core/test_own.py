"""A user's file: identified by content, read and never run; confirmed by content; shown wherever it is named."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from app.core import catalog, files
from app.core import messages as m
from app.core.catalog import OWN_MARKS, beside_of, contender, introduce, is_hidden
from app.core.own import OwnFile, OwnFileError, examine, is_own, read_confirmed
from app.core.plan import Plan, ProfileError, copy_as_command, read_profile
from app.core.recording import Recording
from app.core.results import entries_of, slowed_baseline
from app.core.trust import Trust
from app.core.workload import Workload
from tests import factories

BOOM = 'raise AssertionError("ran")\n'
GOOD = (
    BOOM
    + 'from attnscope import implementation\n@implementation(title="  Mine\\n own ")\ndef build(w, p):\n pass\n'
)


@pytest.fixture(autouse=True)
def nobody_introduced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "_own", {})
    monkeypatch.setattr("app.core.trust._here", set())


def written(folder: Path, text: str = GOOD, name: str = "mine.py") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_is_identified_by_its_content_and_not_run(tmp_path: Path) -> None:
    found = examine(written(tmp_path))
    file = found.file
    assert file.sha256 == hashlib.sha256(GOOD.encode()).hexdigest()
    assert file.id == f"own-mine-{file.sha256[:8]}"
    assert (file.title, file.path, file.size_bytes) == ("Mine own", str(tmp_path / "mine.py"), len(GOOD))
    assert (found.function, found.line, found.problem) == ("build", 4, "")
    assert is_own(file.id)
    assert examine(written(tmp_path, GOOD + "#")).file.id != file.id


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("def broken(:", "it is not valid Python: line 1: invalid syntax"),
        ("x = 1\0", "it is not valid Python"),
        ("x = 1", "no function in it is decorated with @implementation"),
        (
            GOOD + GOOD,
            "2 functions are decorated with @implementation, and one was expected: build in line 4",
        ),
    ],
)
def test_what_cannot_work_shows_before_it_runs(tmp_path: Path, text: str, problem: str) -> None:
    found = examine(written(tmp_path, text))
    assert problem in found.problem
    assert found.file.title == "mine.py"


def test_doubtful_escapes_are_the_authors_affair(tmp_path: Path) -> None:
    assert examine(written(tmp_path, 'x = "\\d"\n' + GOOD)).function == "build"


def test_odd_names_make_ids_that_are_file_names_everywhere(tmp_path: Path) -> None:
    file = examine(written(tmp_path, name="a b:Юзер@é.py" if tmp_path.drive == "" else "a bé.py")).file
    assert all(c.isascii() and (c.isalnum() or c in "-_") for c in file.id)
    assert contender(file.id).title.endswith(".py")


def test_what_is_no_file_is_named(tmp_path: Path) -> None:
    for path, said in ((tmp_path, "is a folder"), (tmp_path / "no.py", "there is no file")):
        with pytest.raises(OwnFileError, match=said):
            examine(path)
    with pytest.raises(OwnFileError, match="larger than 1 MB"):
        examine(written(tmp_path, "#" * 1_000_001))


def test_confirmed_bytes_are_the_only_ones_given_out(tmp_path: Path) -> None:
    file = examine(written(tmp_path)).file
    assert read_confirmed(file) == GOOD.encode()
    written(tmp_path, GOOD + " ")
    with pytest.raises(OwnFileError, match=r"mine.py was changed after it was confirmed"):
        read_confirmed(file)


def test_a_confirmation_is_remembered_by_content_and_an_edit_asks_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "config" / "confirmed.json"
    file = examine(written(tmp_path)).file
    assert Trust(store).missing([file]) == (file,)
    assert Trust(store).confirm(file) == ""
    monkeypatch.setattr("app.core.trust._here", set())
    assert Trust(store).holds(file)
    elsewhere = examine(written(tmp_path, name="other.py")).file
    assert Trust(store).holds(elsewhere)
    edited = examine(written(tmp_path, GOOD + "#")).file
    assert not Trust(store).holds(edited)
    assert Trust(store).missing([file, edited]) == (edited,)


def test_a_store_that_cannot_be_used_confirms_nothing_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "confirmed.json"
    file = examine(written(tmp_path)).file
    for content in ("{", "[]", '{"confirmed": 3}', "\xff"):
        store.write_text(content, encoding="latin-1")
        assert not Trust(store).holds(file)
    blocked = Trust(written(tmp_path, "", "plain") / "confirmed.json")
    assert "is not kept for the next time" in blocked.confirm(file)
    # For as long as this process lives it holds all the same.
    assert blocked.holds(file)


def test_a_profile_names_files_beside_itself_and_a_flag_those_of_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sub").mkdir()
    written(tmp_path / "sub")
    profile = tmp_path / "sub" / "p.toml"
    profile.write_text('implementations = ["native", "./mine.py"]\n')
    monkeypatch.chdir(tmp_path)
    plan = read_profile(profile)
    assert plan.implementations == ("native", plan.own[0].id)
    assert plan.own[0].path == str(tmp_path / "sub" / "mine.py")
    written(tmp_path, GOOD + "#", "here.py")
    plan = read_profile(profile, ["implementations=native,here.py"])
    assert [file.name for file in plan.own] == ["here.py"]
    plan = read_profile(profile, (), [Path("here.py")])
    assert [file.name for file in plan.own] == ["mine.py", "here.py"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            'implementations = ["native", "./no.py"]',
            'p.toml: implementations[1] = "./no.py": expected a Python file that can be read: there is no file',
        ),
        (
            'implementations = ["native", "mine"]',
            'implementations[1] = "mine": expected a list of one or more of native, mha',
        ),
        (
            'implementations = ["native", "./mine.py"]\nbaseline = "./mine.py"',
            'baseline = "./mine.py": expected one of native, mha',
        ),
        (
            'implementations = ["./mine.py"]',
            'baseline = "native": expected one of the implementations listed',
        ),
    ],
)
def test_a_mistake_in_a_profile_names_file_key_and_value(tmp_path: Path, text: str, said: str) -> None:
    written(tmp_path)
    profile = tmp_path / "p.toml"
    profile.write_text(text)
    with pytest.raises(ProfileError) as caught:
        read_profile(profile)
    assert said in str(caught.value)


def test_the_command_that_measures_the_same_names_the_file(tmp_path: Path) -> None:
    file = examine(written(tmp_path, name="my file.py")).file
    command = copy_as_command(Workload(), ("native", file.id), "native", "quick", (file,))
    assert f"--set implementations=native --set baseline=native --add '{file.path}'" in command


def test_titles_and_marks_stay_apart_and_the_same(tmp_path: Path) -> None:
    made = [examine(written(tmp_path, GOOD + "#" * n, f"m{n}.py")).file for n in range(7)]
    introduce(made)
    entries = [contender(file.id) for file in made]
    assert len({entry.title for entry in entries}) == 7
    assert entries[0].title == "Mine own"
    assert entries[1].title == "Mine own (m1.py)"
    marks = [(entry.dark, entry.light, entry.shape) for entry in entries]
    assert marks[: len(OWN_MARKS)] == list(OWN_MARKS)
    introduce(reversed(made))
    assert [contender(file.id) for file in made] == entries


def recorded(tmp_path: Path, scale: float = 1.0) -> tuple[Recording, OwnFile]:
    file = examine(written(tmp_path)).file
    made = Recording()
    made.apply(m.Ready(factories.environment(), factories.START_S + 1.5))
    plan = Plan((Workload(device="cpu"),), ("native", file.id), "native", own=(file,))
    made.begin(m.Start(1, plan))
    names = ("native", file.id, "@twin", f"@beside:{file.id}")
    seconds = (1e-3, 0.5e-3 * scale, 1.001e-3, 1e-3 * scale)
    samples = tuple(
        m.Sample(n, index, factories.START_S + 2 + n * 0.01, value * (1 + 0.01 * ((n * 7) % 5)), 1)
        for n in range(60)
        for index, value in enumerate(seconds)
    )
    made.apply(m.Samples(1, 0, 4242, names, samples))
    made.apply(m.ContenderState(1, 0, file.id, "ready"))
    return made, file


def test_its_speed_up_is_held_against_the_baseline_in_its_own_process(tmp_path: Path) -> None:
    # Its process happens to be a tenth slower: the pairs inside of it do not know.
    made, file = recorded(tmp_path, 1.1)
    assert made.current is not None
    entry = entries_of(made.current, "native", ("native", file.id))[1]
    assert entry.speed_up is not None
    assert entry.speed_up.median == pytest.approx(2.0)
    assert entry.verdict == "faster"
    assert is_hidden(beside_of("native", file.id))


def test_one_that_slows_its_whole_process_makes_no_claim(tmp_path: Path) -> None:
    made, file = recorded(tmp_path, 1.6)
    assert made.current is not None
    assert slowed_baseline(made.current, file.id, "native") == pytest.approx(1.6)
    entry = entries_of(made.current, "native", ("native", file.id))[1]
    assert entry.verdict == "unsure"
    assert "it slows all that runs in its process" in (entry.verdict_reason or "")


def test_without_the_baseline_beside_it_there_is_no_claim(tmp_path: Path) -> None:
    made, file = recorded(tmp_path)
    assert made.current is not None
    del made.current.series[beside_of("native", file.id)]
    entry = entries_of(made.current, "native", ("native", file.id))[1]
    assert entry.verdict == "unsure"


def test_a_recording_opens_without_the_file_and_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, file = recorded(tmp_path)
    files.save(made, tmp_path / "recording.json")
    Path(file.path).unlink()
    monkeypatch.setattr(catalog, "_own", {})
    opened = files.load(tmp_path / "recording.json")
    assert opened.plan is not None
    assert opened.plan.own == (file,)
    assert contender(file.id).title == "Mine own"
    record = opened.records[0]
    assert entries_of(record, "native", opened.plan.implementations)[1].verdict == "faster"


def test_an_older_recording_has_no_own_implementations() -> None:
    made = factories.recording()
    data = m.encoded(files.document_of(made)).replace(b',"own":[]', b"")
    assert b'"own"' not in data
    opened = files.parse(data, "old")
    assert opened.plan is not None
    assert opened.plan.own == ()
