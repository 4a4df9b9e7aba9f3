"""From a snapshot to the verdict's words. Every state of the design is one function here."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from app.core.catalog import contender
from app.core.results import Entry
from app.core.text import duration, number, percent
from app.gui.parts.line import ChipPiece, Dot, Glyph, Hosted, Level, Mark, Text, joined
from app.gui.snapshot import Snapshot
from app.gui.theme import Sizes
from app.gui.verdict_model import Action, BuildProgress, Verdict, Withheld, figures_of
from app.gui.verdict_words import (
    clause,
    clock,
    floor_of,
    greyed,
    has_latency,
    known_words,
    match_pieces,
    match_texts,
    plain_title,
    progress_of,
    recent_median,
    rough,
    subject_of,
    tensor_title,
)

FIRST_PICKER, SECOND_PICKER = "challenger", "baseline"
DEFAULT_MIN_ROUNDS = 30
_ACTIONS = {
    "larger sequence": Action("larger-sequence", "Larger sequence"),
    "measure again": Action("measure-again", "Measure again"),
    "look at clock and temperature": Action("open-system", "Look at clock and temperature"),
    "close other programs": Action("open-system", "Look at other load"),
}


class Writer:
    """The verdict's words at the sizes of a window."""

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes
        self._size = sizes.sentence
        self._small = sizes.sentence < 20

    def verdict(
        self,
        snapshot: Snapshot,
        viewing: bool = False,
        stopped: str = "",
        waiting_s: float | None = None,
        picked: bool = False,
    ) -> Verdict:
        """What to say now. `viewing`: a recording from a file; `stopped`: why nothing is measured;
        `waiting_s`: for how much longer a person wants to wait for a silent worker; `picked`: the challenger
        was chosen by hand, so that an extension that is not there yet does not take its place."""
        snapshot = replace(snapshot, challenger=subject_of(snapshot, picked))
        recording = snapshot.recording
        baseline = snapshot.entry(snapshot.baseline)
        challenger = snapshot.entry(snapshot.challenger)
        if stopped:
            return self._stopped(stopped)
        if snapshot.stale_s is not None:
            return self._stale(snapshot.stale_s, waiting_s)
        if snapshot.record is None or (recording.environment is None and not viewing):
            return self._starting()
        wanted = snapshot.challenger
        if wanted is not None and contender(wanted).needs_extension and not has_latency(challenger):
            if recording.build.is_running:
                return self._building(snapshot)
            if recording.build.state == "failed":
                return self._build_failed(snapshot)
        if challenger is None or baseline is None:
            return self._alone(snapshot, baseline)
        if challenger.status in ("failed", "unavailable"):
            return self._unavailable(snapshot, challenger)
        for judged in (challenger, baseline):
            if judged.accuracy is not None and not judged.accuracy.ok:
                return self._wrong(judged)
        speed = challenger.speed_up
        plan = recording.plan
        wanted_rounds = plan.measure.min_rounds if plan is not None else DEFAULT_MIN_ROUNDS
        if challenger.verdict is None or speed is None or (speed.rounds < wanted_rounds and not viewing):
            return self._warming(snapshot, speed.rounds if speed else 0, wanted_rounds)
        said = {
            "faster": self._faster,
            "slower": self._slower,
            "same": self._same,
            "unsure": self._unsure,
        }[challenger.verdict](snapshot, challenger)
        said = replace(said, figures=figures_of(snapshot, baseline, challenger))
        if viewing:
            return self._marked(said, ChipPiece("Recorded", "same", ""))
        if snapshot.paused:
            return self._paused(said, snapshot)
        return said

    # ---- states ----------------------------------------------------------------------------------------

    def _faster(self, snapshot: Snapshot, entry: Entry) -> Verdict:
        return self._ratio(snapshot, entry, "faster")

    def _slower(self, snapshot: Snapshot, entry: Entry) -> Verdict:
        return self._ratio(snapshot, entry, "slower")

    def _ratio(self, snapshot: Snapshot, entry: Entry, state: Literal["faster", "slower"]) -> Verdict:
        assert entry.speed_up is not None
        words = f"{state} than"
        ratio = entry.speed_up.median if state == "faster" else 1 / entry.speed_up.median
        figure = Text(f"{number(ratio, 2)}×", self._sizes.number, 700, state, gap=8)
        sentence = (
            *self._first(snapshot),
            self._words("is", 8),
            figure,
            self._words(words, 8),
            *self._second(snapshot),
        )
        shorter = (*self._first(snapshot, marks=False), figure, self._words(words, 8),
                   *self._second(snapshot, marks=False))  # fmt: skip
        return Verdict(state, state, (sentence, shorter), self._evidence(entry, inverted=state == "slower"))

    def _same(self, snapshot: Snapshot, entry: Entry) -> Verdict:
        sentence = (
            ChipPiece("Same", "same", "equals"),
            *self._first(snapshot),
            self._words("and", 8),
            *self._second(snapshot),
            self._words("differ by less than 1 %" if floor_of(entry) <= 0.01 else "do not differ", 0),
        )
        return Verdict("same", "text_secondary", (sentence,), self._evidence(entry, figure=True))

    def _unsure(self, snapshot: Snapshot, entry: Entry) -> Verdict:
        reason = entry.verdict_reason or ""
        pills = tuple(_ACTIONS[step] for step in entry.next_steps if step in _ACTIONS)
        chip = ChipPiece("Unsure", "unsure")
        if reason.startswith("the level of"):
            long = (chip, self._words(reason[0].upper() + reason[1:]))
            sentence: tuple[Level, ...] = (long, (chip, self._words("The level moved meanwhile")))
        else:
            between = (self._words("Difference between", 8), *self._first(snapshot),
                       self._words("and", 8), *self._second(snapshot))  # fmt: skip
            end = "is within the noise floor"
            if entry.speed_up is None or entry.speed_up.noise_floor is None:
                end = "is not known yet"
            elif "noise floor is" in reason:
                end = "drowns in noise"
            sentence = (
                (chip, *between, self._words(end)),
                (*between, self._words(end)),
                (chip, *between[1:], self._words("not told apart")),
            )
        steps = [step for step in entry.next_steps if step not in _ACTIONS]
        todo: Level = ()
        if pills or steps:
            texts = ", ".join(steps)
            if snapshot.recording.telemetry and snapshot.recording.telemetry[-1].on_mains is False:
                texts = ", ".join(filter(None, ("plug in the charger", texts)))
            hosted = tuple(Hosted(f"pill{i}", gap=6) for i in range(len(pills)))
            lead = f"what to do: {texts}" if texts else "what to do:"
            todo = (Text(lead, gap=8), *hosted)
        levels = self._evidence(entry, figure=True, todo=todo)
        return Verdict("unsure", "hatched", sentence, levels, pills=pills)

    def _wrong(self, entry: Entry) -> Verdict:
        assert entry.accuracy is not None
        tensor = entry.accuracy.first_wrong or "output"
        error = entry.accuracy.tensors[tensor]
        wrong = sum(1 for t in entry.accuracy.tensors.values() if not t.ok)
        right = len(entry.accuracy.tensors) - wrong
        chip = ChipPiece("Wrong result", "error", "error")
        name = tensor_title(tensor)
        sentence = (
            (chip, self._words(f"No speed-up is shown: {name} differs")),
            (chip, self._words(f"{name[0].upper()}{name[1:]} differs")),
        )
        bound = Text(f"max |Δ| {error.max_abs:.1e}, limit {error.bound:.1e}", 12, 600, "text")
        rest = Text(f"{number(right)} of {number(right + wrong)} tensors match")
        title = Text(f"{contender(entry.implementation).title} goes on being timed, unclaimed")
        evidence = (joined((bound,), (rest,), (title,)), joined((bound,), (rest,)), (bound,))
        return Verdict("wrong", "error", sentence, evidence, withheld=Withheld(f"until {name} is right"))

    def _warming(self, snapshot: Snapshot, rounds: int, wanted: int) -> Verdict:
        sentence = (self._words("Warming up", 8), *self._second(snapshot), self._words("and", 8),
                    *self._first(snapshot))  # fmt: skip
        count = Text(f"round {number(rounds)} of at least {number(wanted)}", 12, 600, "text")
        kept = Text("earlier rounds of other workloads are kept under their own key")
        evidence = (joined((count,), (kept,)), (count,))
        if snapshot.paused:
            return Verdict(
                "warming",
                "disabled",
                ((ChipPiece("Paused", "same", "pause"), *sentence),),
                evidence,
                dimmed=True,
            )
        return Verdict("warming", "text_secondary", (sentence,), evidence)

    def _building(self, snapshot: Snapshot) -> Verdict:
        build = snapshot.recording.build
        sentence = self._runs(snapshot, "while the extension compiles")
        parts: list[Level] = [(Text("The comparison starts by itself when the build ends"),)]
        progress = build.progress
        if build.waiting is not None:
            parts = [(Text("Another process is building the same; this one waits for it"),)]
        elif progress is not None and progress.expected_s:
            left = max(progress.expected_s - progress.elapsed_s, 0)
            parts.append((Text(f"about {rough(left)} left" if left >= 1 else "nearly done"),))
        parts.append((Text("next time it loads from the cache"),))
        levels = tuple(joined(*parts[:n]) for n in range(len(parts), 0, -1))
        right = BuildProgress(*progress_of(build))
        return Verdict(
            "building",
            "text_secondary",
            sentence,
            levels,
            progress=right,
            buttons=(Action("cancel-build", "Cancel"),),
        )

    def _build_failed(self, snapshot: Snapshot) -> Verdict:
        sentence = (Glyph("error", "error", 20, gap=10), Text("No verdict: the extension did not compile",
                                                               self._size, 600, "text"))  # fmt: skip
        others = [contender(e.implementation).title for e in snapshot.entries
                  if e.implementation != snapshot.baseline and e.latency is not None]  # fmt: skip
        name = plain_title(snapshot.baseline)
        median = recent_median(snapshot, snapshot.baseline)
        keeps: Level = (Text(f"{name} keeps running", 12, 600, "text"),)
        if median is not None:
            keeps = (Dot("ok"), Text(f"{name} keeps running at {duration(median)}", 12, 600, "text"))
        parts: list[Level] = [keeps]
        if others:
            parts.append((Text(f"{' and '.join(others)} too"),))
        parts.append((Text("only the extension is missing"),))
        levels = tuple(joined(*parts[:n]) for n in range(len(parts), 0, -1))
        buttons = (Action("copy-log", "Copy log", "copy"), Action("retry-build", "Retry", "restart"))
        return Verdict("build-failed", "error", (sentence,), levels, buttons=buttons)

    def _unavailable(self, snapshot: Snapshot, entry: Entry) -> Verdict:
        failed = entry.status == "failed"
        sentence = (
            self._words("No verdict:" if failed else "Not run:", 8),
            *self._first(snapshot),
            self._words("failed" if failed else "cannot run here"),
        )
        if failed:
            sentence = (Glyph("error", "error", 18, gap=10), *sentence)
        reason = Text(clause(entry.reason or "no reason was given"), 12, 400, "text_secondary")
        pick = Text("pick another name above to compare it")
        return Verdict(
            "unavailable",
            "error" if failed else "disabled",
            (sentence,),
            (joined((reason,), (pick,)), (reason,), (Text(clause(reason.text, 70)),)),
            buttons=(Action("copy-reason", "Copy reason", "copy"),),
        )

    def _alone(self, snapshot: Snapshot, baseline: Entry | None) -> Verdict:
        if not has_latency(baseline):
            sentence = (self._words("Warming up", 8), *self._second(snapshot))
            return Verdict(
                "warming", "text_secondary", (sentence,), ((Text("the first rounds are on their way"),),)
            )
        hint = "switch on another implementation at the left to compare"
        if any(e.implementation != snapshot.baseline and e.status == "waiting" for e in snapshot.entries):
            hint = "the others join as they become ready"
        return Verdict("alone", "text_secondary", self._runs(snapshot, ""), ((Text(hint),),))

    def _stale(self, seconds: float, waiting_s: float | None) -> Verdict:
        chip = ChipPiece("Stale", "warning", "clock")
        age = f"{seconds:,.0f} s" if seconds < 60 else duration(seconds)
        sentence = ((chip, self._words(f"The worker has not answered for {age}")),
                    (chip, self._words(f"No answer for {age}")))  # fmt: skip
        old = Text(f"values are {age} old", 12, 600, "text")
        cause = Text("it may be compiling or out of memory")
        lost = Text("nothing is lost")
        if waiting_s is not None:
            asks = Text(f"waiting; asks again in {clock(waiting_s)}")
            levels = (joined((old,), (asks,), (lost,)), joined((old,), (asks,)), (old,))
            return Verdict("stale", "disabled", sentence, levels, dimmed=True)
        pills: Level = (Text("", gap=4), Hosted("pill0", gap=6), Hosted("pill1", gap=6))
        dot = Text("  ·  ", 12, 400, "text_tertiary")
        evidence = (
            (*joined((old,), (cause,), (lost,)), Text("  "), *pills),
            (*joined((old,), (lost,)), Text("  "), *pills),
            (old, dot, *pills[1:]),
        )
        actions = (Action("wait", "Wait"), Action("restart-worker", "Restart worker"))
        return Verdict("stale", "disabled", sentence, evidence, pills=actions, dimmed=True)

    def _stopped(self, reason: str) -> Verdict:
        sentence = (
            Glyph("error", "error", 20, gap=10),
            Text("Nothing is measured any more", self._size, 600, "text"),
        )
        evidence = ((Text(clause(reason, 160)),), (Text(clause(reason, 90)),), (Text(clause(reason, 60)),))
        buttons = (
            Action("copy-reason", "Copy reason", "copy"),
            Action("restart-worker", "Restart worker", "restart"),
        )
        return Verdict("stopped", "error", (sentence,), evidence, buttons=buttons)

    def _starting(self) -> Verdict:
        sentence = (self._words("Starting: PyTorch is loading in a process of its own"),)
        return Verdict(
            "starting",
            "text_secondary",
            (sentence, (self._words("Starting: PyTorch is loading"),)),
            ((Text("the first rounds follow by themselves"),),),
        )

    def _paused(self, said: Verdict, snapshot: Snapshot) -> Verdict:
        last = snapshot.record.last_at_s if snapshot.record is not None else None
        age = max(snapshot.now_s - last, 0) if last is not None else None
        marked = self._marked(said, ChipPiece("Paused", "same", "pause"))
        lead: Level = (Text(f"last round {clock(age)} ago", 12, 600, "text"),) if age is not None else ()
        interval: Level = (said.evidence[-1][0],)
        grey = Text("values are grey until the run goes on")
        levels = (joined(lead, interval, (grey,)), joined(lead, interval), lead or interval)
        evidence = tuple(greyed(level, keep=1) for level in levels)
        return replace(marked, edge="disabled", evidence=evidence, dimmed=True, pills=(),
                       sentence=tuple(greyed(level) for level in marked.sentence))  # fmt: skip

    def _marked(self, said: Verdict, chip: ChipPiece) -> Verdict:
        """The same verdict behind a chip; one that is there already gives way."""
        levels = tuple((chip, *(p for p in level if not isinstance(p, ChipPiece))) for level in said.sentence)
        return replace(said, sentence=levels)

    # ---- pieces ----------------------------------------------------------------------------------------

    def _words(self, text: str, gap: float = 0) -> Text:
        return Text(text, self._size, 400, "text_secondary", gap=gap)

    def _first(self, snapshot: Snapshot, marks: bool = True) -> Level:
        return self._named(snapshot.challenger, FIRST_PICKER, marks)

    def _second(self, snapshot: Snapshot, marks: bool = True) -> Level:
        return self._named(snapshot.baseline, SECOND_PICKER, marks)

    def _named(self, name: str | None, picker: str, marks: bool) -> Level:
        if name is None:
            return ()
        host = Hosted(picker, gap=8, on_baseline=True)
        return (Mark(contender(name).shape, name, 11, gap=7), host) if marks else (host,)

    def _runs(self, snapshot: Snapshot, ending: str) -> tuple[Level, ...]:
        median = recent_median(snapshot, snapshot.baseline)
        if median is None:
            words = (self._words("Warming up", 8), *self._second(snapshot), self._words(ending))
            return (words, words[:-1])
        value = Text(duration(median), self._sizes.number, 700, "text", gap=10)
        long = (*self._second(snapshot), self._words("runs at", 8), value, self._words(ending))
        return (long, long[:-1])

    def _evidence(
        self, entry: Entry, figure: bool = False, inverted: bool = False, todo: Level = ()
    ) -> tuple[Level, ...]:
        """When narrow: rounds go first, then max |Δ|, then "output and"; never the interval or the tick."""
        speed = entry.speed_up
        if speed is None or speed.low is None or speed.high is None:
            return ((Text(entry.verdict_reason or ""),),)
        low, high = (1 / speed.high, 1 / speed.low) if inverted else (speed.low, speed.high)
        decimals = 3 if entry.verdict == "same" else 2
        lead = f"{number(speed.median, 2)}×, " if figure else ""
        interval = Text(
            f"{lead}{percent(speed.confidence)} CI {number(low, decimals)}–{number(high, decimals)}",
            12,
            600,
            "text",
        )
        floor = percent(speed.noise_floor, 1)
        noise: Level = (Text(f"{'noise' if self._small else 'noise floor'} ±{floor}"),)
        rounds: Level = (Text(f"{number(speed.rounds)} paired rounds"),)
        known: Level = (Text(known_words(entry)),)
        if todo:
            return (
                joined((interval,), noise, todo),
                joined((interval,), (Text(f"noise ±{floor}"),), todo),
                joined((interval,), todo),
                joined((interval,), todo[1:]),
                joined((interval,), noise),
                (interval,),
            )
        matches = [match_pieces(entry, text) for text in match_texts(entry)]
        shortest = matches[-1]
        levels = [joined((interval,), noise, rounds, known, matches[0])]
        levels.append(joined((interval,), noise, rounds, matches[0]))
        levels += [joined((interval,), noise, match) for match in matches]
        levels.append(joined((interval,), (Text(f"noise ±{floor}"),), shortest))
        levels.append(joined((interval,), (Text(f"±{floor}"),), shortest[:1]))
        return tuple(dict.fromkeys(levels))
