"""Fields declared once.

A struct's field carries its title, unit, range, steps and help in `Annotated[..., msgspec.Meta(...)]`.
The form, the command-line flags, the TOML reader and every error text are derived from it here.
"""

from __future__ import annotations

import math
import typing
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, TypeVar

import msgspec

S = TypeVar("S", bound=msgspec.Struct)


class FieldError(ValueError):
    """A value that cannot be used: where it stands, what it is, what was expected."""

    def __init__(self, place: str, value: object, expected: str) -> None:
        self.place = place
        self.value = value
        self.expected = expected
        super().__init__(f"{place} = {shorten(value)}: expected {expected}")


class UnknownKeyError(ValueError):
    """A key that no field has."""

    def __init__(self, place: str, known: list[str]) -> None:
        self.place = place
        self.known = known
        # A quoted key of a profile may hold anything, line ends included.
        super().__init__(f"{one_line(place)}: unknown key; known here: {', '.join(known)}")


class Field(msgspec.Struct, frozen=True):
    """What is declared about one field of a struct."""

    name: str
    title: str
    kind: Literal["int", "float", "bool", "choice", "text"]
    default: Any
    unit: str = ""
    help: str = ""
    low: float | None = None
    high: float | None = None
    steps: tuple[int, ...] = ()
    choices: tuple[str, ...] = ()
    pattern: str = ""

    @property
    def expected(self) -> str:
        """What a valid value is, as the end of the sentence 'expected ...'."""
        if self.kind == "choice":
            return "one of " + ", ".join(self.choices)
        if self.kind == "bool":
            return "true or false"
        if self.kind == "text":
            return self.help or "text"
        noun = "a whole number" if self.kind == "int" else "a number"
        if self.low is not None and self.high is not None:
            return f"{noun} from {self.low:,g} to {self.high:,g}"
        return noun

    def check(self, value: object, place: str) -> Any:
        """Return `value` as this field's type, or raise `FieldError` naming `place`."""
        if self.kind == "bool":
            if isinstance(value, bool):
                return value
        elif self.kind == "int":
            if isinstance(value, int) and not isinstance(value, bool) and self._within(value):
                return value
        elif self.kind == "float":
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                # An integer of hundreds of digits is legal TOML and no float.
                try:
                    number = float(value)
                except OverflowError:
                    number = math.inf
                if math.isfinite(number) and self._within(number):
                    return number
        elif self.kind == "choice":
            if isinstance(value, str) and value in self.choices:
                return value
        elif isinstance(value, str) and self._matches(value):
            return value
        raise FieldError(place, value, self.expected)

    def parse(self, text: str, place: str) -> Any:
        """Read a value typed on a command line, by the same rules as `check`."""
        value: object = text
        if self.kind == "bool":
            value = {"true": True, "false": False}.get(text.lower(), text)
        elif self.kind in ("int", "float"):
            # A literal thousands of digits long is refused by int() with a ValueError too.
            for convert in (int, float):
                try:
                    value = convert(text)
                    break
                except ValueError:
                    continue
        return self.check(value, place)

    def _within(self, number: float) -> bool:
        return (self.low is None or number >= self.low) and (self.high is None or number <= self.high)

    def _matches(self, text: str) -> bool:
        import re

        return not self.pattern or re.fullmatch(self.pattern, text) is not None


def shorten(value: object, limit: int = 60) -> str:
    """`value` as it would be typed, cut to `limit` characters so that a sentence stays one."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**40:
        return f"a number of about {value.bit_length() * 0.30103:.0f} digits"
    if isinstance(value, str):
        text = f'"{value}"'
    elif isinstance(value, bool):
        text = str(value).lower()
    elif isinstance(value, Mapping):
        text = "a table"
    else:
        text = str(value)
    return one_line(text, limit)


def one_line(text: str, limit: int = 60) -> str:
    """`text` on one line, without what a terminal would act on, cut to `limit` characters."""
    text = "".join(c if c.isprintable() else " " for c in text)
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


@cache
def fields_of(struct: type[msgspec.Struct]) -> Mapping[str, Field]:
    """The declared fields of `struct`, in order, by name."""
    hints = typing.get_type_hints(struct, include_extras=True)
    declared = {}
    for info in msgspec.structs.fields(struct):
        meta, base = _split(hints[info.name])
        if meta is None:
            continue
        extra = dict(meta.extra or {})
        declared[info.name] = Field(
            name=info.name,
            title=meta.title or info.name,
            kind=_kind(base),
            default=info.default if info.default is not msgspec.NODEFAULT else None,
            unit=extra.get("unit", ""),
            help=meta.description or "",
            low=meta.ge,
            high=meta.le,
            steps=tuple(extra.get("steps", ())),
            choices=typing.get_args(base) if typing.get_origin(base) is Literal else (),
            pattern=meta.pattern or "",
        )
    return declared


def read_struct(struct: type[S], table: object, place: str) -> S:
    """Build `struct` from a TOML table; errors name the key as `place.key`."""
    if not isinstance(table, Mapping):
        raise FieldError(place, table, "a table of keys and values")
    fields = fields_of(struct)
    values = {}
    for key, value in table.items():
        if key not in fields:
            raise UnknownKeyError(f"{place}.{key}", list(fields))
        values[key] = fields[key].check(value, f"{place}.{key}")
    return struct(**values)


def _split(hint: Any) -> tuple[msgspec.Meta | None, Any]:
    if typing.get_origin(hint) is typing.Annotated:
        base, *notes = typing.get_args(hint)
        for note in notes:
            if isinstance(note, msgspec.Meta):
                return note, base
    return None, hint


def _kind(base: Any) -> Literal["int", "float", "bool", "choice", "text"]:
    if typing.get_origin(base) is Literal:
        return "choice"
    names: dict[Any, Literal["int", "float", "bool", "text"]] = {
        bool: "bool",
        int: "int",
        float: "float",
        str: "text",
    }
    return names[base]
