"""A `Plan`: workloads x implementations x how to measure. Read from a profile's TOML."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from app.core.catalog import CONTENDERS, DEFAULT_CONTENDERS
from app.core.environment import Device, Environment
from app.core.fields import Field, FieldError, UnknownKeyError, fields_of, read_struct, shorten
from app.core.own import OwnFile, OwnFileError, examine
from app.core.workload import Workload

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MAX_PROFILE_BYTES = 1_000_000
MAX_WORKLOADS = 10_000


class ProfileError(ValueError):
    """A profile, or a flag that changes one, is at fault: file, key, value and what was expected."""


Cache = Literal["warm", "cold"]


class Measure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long and how carefully each workload is measured."""

    max_seconds: Annotated[
        float,
        Meta(ge=0.05, le=3600.0, title="Longest", description="per workload", extra={"unit": "s"}),
    ] = 5.0
    target_ci: Annotated[
        float,
        Meta(
            ge=0.0005,
            le=0.5,
            title="Precision",
            description="stop when every speed-up's interval is within this share of it",
        ),
    ] = 0.01
    min_rounds: Annotated[
        int, Meta(ge=5, le=100_000, title="Rounds", description="at least this many before stopping early")
    ] = 30
    threads: Annotated[
        int,
        Meta(ge=0, le=1024, title="Threads", description="torch's intra-op threads; 0 leaves its own choice"),
    ] = 0
    cache: Annotated[
        Cache,
        Meta(
            title="Cache",
            description=(
                "warm: blocks of calls in a row, each finds its data where the one before left it; "
                "cold: a single call per block, after the last-level cache was flushed outside what is timed"
            ),
        ),
    ] = "warm"
    counts: Annotated[
        bool, Meta(title="Counts", description="count calls in profiled passes, after the latency is known")
    ] = True
    accuracy: Annotated[
        bool, Meta(title="Accuracy", description="hold outputs and gradients against float64 first")
    ] = True
    roofline: Annotated[
        bool,
        Meta(
            title="Roofline",
            description="measure the device's compute and memory peaks first, where they are not known yet",
        ),
    ] = False


class Skipped(msgspec.Struct, frozen=True):
    """A cell of a sweep that cannot run, and why."""

    values: dict[str, Any]
    reason: str


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to run. `workloads` is never empty and each of them can run.

    `own` are the user's own files among `implementations`. They are code: whoever sends a plan to a worker
    has had each of them confirmed, and what a recording names is never run.
    """

    workloads: Annotated[tuple[Workload, ...], Meta(min_length=1)]
    implementations: tuple[str, ...] = DEFAULT_CONTENDERS
    baseline: str = "native"
    measure: Measure = Measure()
    title: str = "Untitled"
    about: str = ""
    skipped: tuple[Skipped, ...] = ()
    own: tuple[OwnFile, ...] = ()


TOP_LEVEL = ("title", "about", "baseline", "implementations", "workload", "sweep", "measure")


def read_profile(path: Path, overrides: Sequence[str] = (), added: Sequence[Path] = ()) -> Plan:
    """Read a profile and apply `--set` flags such as `workload.seq_len=128`.

    `added` are own implementations beside the profile's. Those that the profile names are relative to its
    own folder, those of a flag to the current one. They are read, never run.

    Raises `ProfileError` with one sentence that names the place.
    """
    name = str(path)
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_PROFILE_BYTES + 1)
    except IsADirectoryError:
        raise ProfileError(f"{name}: is a folder; expected a profile in TOML") from None
    except OSError as error:
        raise ProfileError(f"{name}: cannot be read: {error.strerror or error}") from None
    if len(raw) > MAX_PROFILE_BYTES:
        # What is no file, such as a pipe, has no size of its own.
        size = max(path.stat().st_size, len(raw))
        raise ProfileError(
            f"{name}: is {size / 1e6:,.1f} MB; a profile is text of at most {MAX_PROFILE_BYTES / 1e6:g} MB"
        )
    try:
        # Some editors put a byte order mark ahead of UTF-8.
        document = tomllib.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ProfileError(
            f"{name}: is not UTF-8 text (byte {error.start:,}); expected a profile in TOML"
        ) from None
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise ProfileError(f"{name}: is not valid TOML: {shorten(str(error), 120)}") from None
    for flag in overrides:
        apply_override(document, flag)
    for extra in added:
        names = document.setdefault("implementations", list(DEFAULT_CONTENDERS))
        if isinstance(names, list):
            names.append(str(extra.expanduser().absolute()))
    return plan_from(document, name, path.absolute().parent)


def plan_from(document: Mapping[str, Any], source: str = "profile", folder: Path | None = None) -> Plan:
    """Build a plan from a parsed profile; `source` opens every error, `folder` is where its files lie."""
    try:
        return _plan(document, folder or Path())
    except (FieldError, UnknownKeyError) as error:
        raise ProfileError(f"{source}: {error}") from None


def apply_override(document: dict[str, Any], flag: str) -> None:
    """Put `table.key=value` into a parsed profile. A comma list sets a `sweep.` axis.

    A `workload.` key takes the place of an axis of that name, which would otherwise override it unseen.
    """
    target, equals, text = flag.partition("=")
    target = target.strip()
    table, dot, key = target.partition(".")
    if not equals or (not dot and target not in ("baseline", "implementations", "title")):
        raise ProfileError(f"--set {shorten(flag)}: expected table.key=value, such as workload.seq_len=128")
    place = f"--set {target}"
    try:
        if not dot:
            names = [_typed(part.strip()) for part in text.split(",") if part.strip()]
            document[target] = names if target == "implementations" else text
            return
        declared = _table_fields(table, place)
        if key not in declared:
            raise UnknownKeyError(place, list(declared))
        field = declared[key]
        value: object
        if table == "sweep":
            value = [field.parse(part.strip(), place) for part in text.split(",")]
        else:
            value = field.parse(text.strip(), place)
    except (FieldError, UnknownKeyError) as error:
        raise ProfileError(str(error)) from None
    section = document.setdefault(table, {})
    if not isinstance(section, dict):
        raise ProfileError(f"{table} = {shorten(section)}: expected a table of keys and values")
    section[key] = value
    axes = document.get("sweep")
    if table == "workload" and isinstance(axes, dict):
        axes.pop(key, None)


class DeviceError(ValueError):
    """The plan asks for a device that is not there or cannot be used. The text says how to get it."""


def on_devices(plan: Plan, environment: Environment) -> Plan:
    """The plan with `auto` and `cuda` made out to the devices of a machine.

    `auto` is the first usable GPU, else the CPU. Raises `DeviceError`.
    """
    return msgspec.structs.replace(
        plan, workloads=tuple(dict.fromkeys(on_device(w, environment) for w in plan.workloads))
    )


def on_device(workload: Workload, environment: Environment) -> Workload:
    """One workload with its device made out. Raises `DeviceError`."""
    made_out, device = made_out_device(workload, environment.devices)
    if not device.usable:
        fix = " ".join(part for part in (device.remedy, device.command) if part)
        name = "" if device.title == device.id else f"{device.title}: "
        raise DeviceError(f"workload.device = {workload.device}: {name}{device.reason}. {fix}".strip())
    return made_out


def made_out_device(workload: Workload, devices: Sequence[Device]) -> tuple[Workload, Device]:
    """`workload` with a device from `devices` in place of "auto" or "cuda", and that device.

    "auto" is the first usable GPU, else the CPU. A device that is not there comes back unusable, with the
    reason.
    """
    known = {device.id: device for device in devices}
    wanted = workload.device
    if wanted == "auto":
        wanted = next((d.id for d in devices if d.usable and d.id != "cpu"), "cpu")
    elif wanted == "cuda":
        wanted = "cuda:0"
    # An unusable "cuda" stands for all of them, where torch cannot even count them.
    stand_in = known.get("cuda") if wanted.startswith("cuda") else None
    device = known.get(wanted) or stand_in or _absent(workload.device, known)
    return msgspec.structs.replace(workload, device=device.id), device


def _absent(name: str, known: Mapping[str, Device]) -> Device:
    if name in ("auto", "cpu"):
        # A worker that told of no device still computes somewhere.
        return Device("cpu", "CPU")
    return Device(
        name,
        name,
        usable=False,
        reason=f"there is no such device here; there is {', '.join(known) or 'cpu'}",
        remedy='Set device to "cpu" or "auto".',
    )


def copy_as_command(
    workload: Workload,
    implementations: Sequence[str],
    baseline: str,
    profile: str,
    cache: Cache = "warm",
    own: Sequence[OwnFile] = (),
) -> str:
    """The command line that measures this workload without a window."""
    paths = {file.id: file.path for file in own}
    shipped = [name for name in implementations if name not in paths]
    changed = [f"--set implementations={','.join(shipped)}", f"--set baseline={baseline}"]
    changed += [f"--add {quote(paths[name])}" for name in implementations if name in paths]
    for name in fields_of(Workload):
        value = getattr(workload, name)
        text = str(value).lower() if isinstance(value, bool) else str(value)
        changed.append(f"--set workload.{name}={text}")
    if cache != "warm":
        changed.append(f"--set measure.cache={cache}")
    return " ".join(["attnscope run", quote(profile), *changed])


def quote(text: str) -> str:
    """`text` for a POSIX shell."""
    import shlex

    return shlex.quote(text)


def _table_fields(table: str, place: str) -> Mapping[str, Field]:
    if table in ("workload", "sweep"):
        return fields_of(Workload)
    if table == "measure":
        return fields_of(Measure)
    raise UnknownKeyError(
        place, ["workload.…", "sweep.…", "measure.…", "baseline", "implementations", "title"]
    )


def _typed(name: str) -> str:
    """A name as typed on a command line: a file is relative to the current folder, not to the profile's."""
    return str(Path(name).expanduser().absolute()) if _names_file(name) else name


def _names_file(name: str) -> bool:
    return name.endswith(".py")


def _plan(document: Mapping[str, Any], folder: Path) -> Plan:
    for key in document:
        if key not in TOP_LEVEL:
            raise UnknownKeyError(key, list(TOP_LEVEL))
    title = _text(document, "title", "Untitled")
    about = _text(document, "about", "")
    baseline = _text(document, "baseline", "native")
    implementations, own = _implementations(document, folder)
    if baseline not in CONTENDERS:
        # The baseline and its twin run in the sampler's own process, where no user's code ever runs.
        files = "; an own implementation cannot be the baseline" if _names_file(baseline) else ""
        raise FieldError("baseline", baseline, "one of " + ", ".join(CONTENDERS) + files)
    if baseline not in implementations:
        raise FieldError(
            "baseline",
            baseline,
            "one of the implementations listed: " + ", ".join(n for n in implementations if n in CONTENDERS),
        )
    measure = read_struct(Measure, document.get("measure", {}), "measure")
    workload = read_struct(Workload, document.get("workload", {}), "workload")
    workloads, skipped = _sweep(document.get("sweep", {}), workload)
    return Plan(
        workloads=workloads,
        implementations=implementations,
        baseline=baseline,
        measure=measure,
        title=title,
        about=about,
        skipped=skipped,
        own=own,
    )


def _text(document: Mapping[str, Any], key: str, default: str) -> str:
    value = document.get(key, default)
    if not isinstance(value, str) or len(value) > 1000:
        raise FieldError(key, value, "text of at most 1,000 characters")
    if not _is_text(value):
        raise FieldError(key, value, "text in UTF-8")
    return value


def _is_text(value: str) -> bool:
    """False for what came from a command line in another encoding: no file could keep it."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _implementations(
    document: Mapping[str, Any], folder: Path
) -> tuple[tuple[str, ...], tuple[OwnFile, ...]]:
    names = document.get("implementations", list(DEFAULT_CONTENDERS))
    expected = "a list of one or more of " + ", ".join(CONTENDERS) + ', or of files such as "./mine.py"'
    if not isinstance(names, list) or not names:
        raise FieldError("implementations", names, expected)
    own: dict[str, OwnFile] = {}
    ids = []
    for index, name in enumerate(names):
        place = f"implementations[{index}]"
        if isinstance(name, str) and _names_file(name):
            file = _own_file(name, folder, place)
            own[file.id] = file
            ids.append(file.id)
        elif isinstance(name, str) and name in CONTENDERS:
            ids.append(name)
        else:
            raise FieldError(place, name, expected)
    return tuple(dict.fromkeys(ids)), tuple(own.values())


def _own_file(name: str, folder: Path, place: str) -> OwnFile:
    if not _is_text(name):
        raise FieldError(place, name, "text in UTF-8")
    try:
        return examine(folder / Path(name).expanduser()).file
    except OwnFileError as error:
        raise FieldError(place, name, f"a Python file that can be read: {error}") from None


def _sweep(axes: object, workload: Workload) -> tuple[tuple[Workload, ...], tuple[Skipped, ...]]:
    if not isinstance(axes, Mapping):
        raise FieldError("sweep", axes, "a table of keys, each with a list of values")
    if not axes:
        _refuse_impossible(workload)
        return (workload,), ()
    fields = fields_of(Workload)
    columns: list[list[tuple[str, Any]]] = []
    cells = 1
    for key, values in axes.items():
        if key not in fields:
            raise UnknownKeyError(f"sweep.{key}", list(fields))
        if not isinstance(values, list) or not values:
            raise FieldError(f"sweep.{key}", values, "a list of one or more values")
        cells *= len(values)
        if cells > MAX_WORKLOADS:
            raise FieldError("sweep", f"{cells:,} cells", f"at most {MAX_WORKLOADS:,} in all")
        columns.append(
            [(key, fields[key].check(value, f"sweep.{key}[{i}]")) for i, value in enumerate(values)]
        )
    workloads: list[Workload] = []
    skipped: list[Skipped] = []
    for combination in itertools.product(*columns):
        cell = msgspec.structs.replace(workload, **dict(combination))
        if cell.problems:
            skipped.append(Skipped(dict(combination), cell.problems[0].sentence))
        elif cell not in workloads:
            workloads.append(cell)
    if not workloads:
        raise FieldError("sweep", f"{cells:,} cells", f"at least one that can run; {skipped[0].reason}")
    return tuple(workloads), tuple(skipped)


def _refuse_impossible(workload: Workload) -> None:
    for problem in workload.problems:
        value = getattr(workload, problem.field)
        raise FieldError(f"workload.{problem.field}", value, problem.expected)
