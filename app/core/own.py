"""A user's own implementation: one Python file, identified by its content and looked at without running it.

The file is code, so nothing here imports or executes it: what is known of it beforehand is read from its
syntax tree. `OwnFile` is plain data; a recording may hold one whose file exists nowhere any more.
"""

from __future__ import annotations

import ast
import hashlib
import warnings
from pathlib import Path

import msgspec

PREFIX = "own-"
DECORATOR = "implementation"
MAX_BYTES = 1_000_000
LONGEST_TITLE = 60
_LONGEST_STEM = 40


class OwnFile(msgspec.Struct, frozen=True):
    """One version of a user's file. `id` holds the beginning of `sha256`: an edited file is another contender.

    `path` is absolute, on the machine where it was added. `title` is the decorator's, or the file's name.
    """

    id: str
    title: str
    path: str
    sha256: str
    size_bytes: int

    @property
    def name(self) -> str:
        """The file's name without its folder, whichever system the path is from."""
        return self.path.replace("\\", "/").rpartition("/")[2]


class Examined(msgspec.Struct, frozen=True):
    """A file read but not run. `problem` is one clause that says why it cannot work, as far as that shows."""

    file: OwnFile
    source: bytes
    function: str = ""
    line: int = 0
    problem: str = ""


class OwnFileError(ValueError):
    """A file that cannot be read as a user's implementation. The text names it and what was expected."""


def is_own(implementation: str) -> bool:
    """Whether an id is that of a user's own implementation."""
    return implementation.startswith(PREFIX)


def file_title(implementation: str) -> str:
    """What to call an own implementation of which only the id is known: `mine.py`."""
    return implementation.removeprefix(PREFIX).rpartition("-")[0] + ".py"


def examine(path: Path) -> Examined:
    """Read a user's file and say what it declares. Raises `OwnFileError`; runs nothing of it."""
    path = path.expanduser().absolute()
    source = read_source(path)
    digest = hashlib.sha256(source).hexdigest()
    title, function, line, problem = _declared(source)
    title = " ".join(title.split())[:LONGEST_TITLE] or path.name
    file = OwnFile(_id_of(path, digest), title, str(path), digest, len(source))
    return Examined(file, source, function, line, problem)


def read_source(path: Path) -> bytes:
    """The file's bytes. Raises `OwnFileError`."""
    try:
        if path.is_dir():
            raise OwnFileError(f"{path} is a folder; expected a Python file")
        with path.open("rb") as file:
            source = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise OwnFileError(f"there is no file {path}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise OwnFileError(f"{path} cannot be read: {reason}") from None
    if len(source) > MAX_BYTES:
        raise OwnFileError(f"{path} is larger than {MAX_BYTES / 1e6:g} MB; expected one Python file")
    return source


def read_confirmed(file: OwnFile) -> bytes:
    """The bytes that were confirmed, and no others. Raises `OwnFileError`."""
    source = read_source(Path(file.path))
    if hashlib.sha256(source).hexdigest() != file.sha256:
        raise OwnFileError(f"{file.name} was changed after it was confirmed")
    return source


def _id_of(path: Path, digest: str) -> str:
    stem = "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "-" for c in path.stem)
    return f"{PREFIX}{stem[:_LONGEST_STEM]}-{digest[:8]}"


def _declared(source: bytes) -> tuple[str, str, int, str]:
    """Title, function and its line, and what is wrong; empty where it cannot be told without running it."""
    try:
        with warnings.catch_warnings():
            # A file's own doubtful escapes are its author's affair.
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except SyntaxError as error:
        where = f"line {error.lineno}: " if error.lineno else ""
        return "", "", 0, f"it is not valid Python: {where}{error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return "", "", 0, f"it is not valid Python: {error or type(error).__name__}"
    found = [
        (node, decorator)
        for node in tree.body
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        for decorator in node.decorator_list
        if _is_ours(decorator)
    ]
    if not found:
        return "", "", 0, f"no function in it is decorated with @{DECORATOR}"
    if len(found) > 1:
        places = ", ".join(f"{node.name} in line {node.lineno}" for node, _ in found)
        return (
            "",
            "",
            0,
            f"{len(found)} functions are decorated with @{DECORATOR}, and one was expected: {places}",
        )
    node, decorator = found[0]
    return _title_in(decorator), node.name, node.lineno, ""


def _is_ours(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return name == DECORATOR


def _title_in(decorator: ast.expr) -> str:
    if not isinstance(decorator, ast.Call):
        return ""
    for keyword in decorator.keywords:
        if keyword.arg == "title" and isinstance(keyword.value, ast.Constant):
            return keyword.value.value if isinstance(keyword.value.value, str) else ""
    return ""
