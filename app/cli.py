"""The commands. Qt or torch is imported only inside the command that needs it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from app.commands import streams
from app.commands.exits import INPUT, INTERRUPTED, CommandError

COMMANDS = ("run", "trace", "report", "build", "doctor", "worker")

EPILOG = """\
exit codes:
  0  well
  1  ran, and a result is wrong, or slower than --max-slowdown allows
  2  the input is at fault; the sentence says where
  3  something needed is missing; the sentence says how to get it
  130  interrupted; what was measured is saved
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; without one, open the window. Returns the exit code."""
    given = list(sys.argv[1:] if argv is None else argv)
    streams.settle()
    try:
        return _command(given)
    except CommandError as error:
        streams.complain(f"attnscope: {error}")
        return error.code
    except KeyboardInterrupt:
        streams.complain("attnscope: interrupted")
        return INTERRUPTED


def _command(given: list[str]) -> int:
    if given and given[0] in COMMANDS:
        arguments = _parser().parse_args(given)
        code: int = arguments.function(arguments)
        return code
    return _window(_window_parser().parse_args(given))


class _Parser(argparse.ArgumentParser):
    """Errors are one sentence, as everywhere else."""

    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {message}; see {self.prog} --help", file=sys.stderr)
        raise SystemExit(INPUT)


def _window_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="attnscope",
        description="Shows, live, what a C++/CUDA attention operator buys over native PyTorch.",
        epilog="commands: " + ", ".join(COMMANDS) + " (attnscope COMMAND --help)\n\n" + EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", nargs="?", help="a profile or a recording to open in the window")
    parser.add_argument("--theme", choices=["system", "dark", "light"], help="for this start only")
    parser.add_argument("--version", action="version", version=f"attnscope {_version()}")
    return parser


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="attnscope", epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    run = commands.add_parser("run", help="measure a profile without a window")
    run.add_argument("profile", metavar="PROFILE", help="a profile's file, or the name of one that ships")
    run.add_argument("--set", action="append", metavar="KEY=VALUE", help="such as workload.seq_len=128")
    run.add_argument(
        "--add",
        action="append",
        type=Path,
        metavar="FILE.py",
        help="measure an implementation of your own beside the profile's",
    )
    run.add_argument(
        "--trust",
        action="store_true",
        help="run the code of own implementations; remembered until a file changes",
    )
    run.add_argument(
        "--out", type=Path, metavar="DIR", help="write recording.json, samples.csv, traces/ and report.html"
    )
    run.add_argument(
        "--resume", action="store_true", help="go on with a run that broke off in --out DIR, cell by cell"
    )
    run.add_argument(
        "--resume-anyway", action="store_true", help="the same, on another machine or other software too"
    )
    run.add_argument("--json", action="store_true", help="one JSON document on stdout and nothing else")
    run.add_argument("--quiet", action="store_true", help="no progress on stderr")
    _add_comparing_flags(run, "the result")
    run.set_defaults(function=_run)

    trace = commands.add_parser("trace", help="what is true of a Chrome trace, or differs between two")
    trace.add_argument("file", metavar="FILE", type=Path)
    trace.add_argument(
        "--against", metavar="FILE", type=Path, help="say what FILE has more or less of than this"
    )
    trace.add_argument("--json", action="store_true", help="one JSON document on stdout and nothing else")
    trace.set_defaults(function=_trace)

    report = commands.add_parser(
        "report", help="write a recording, or what changed since an earlier one, as html, md, csv or json"
    )
    report.add_argument("recording", metavar="RECORDING", type=Path)
    report.add_argument("--format", choices=["html", "md", "csv", "json"], required=True)
    report.add_argument("--out", type=Path, metavar="FILE", help="stdout where left out")
    _add_comparing_flags(report, "RECORDING")
    report.set_defaults(function=_report)

    build = commands.add_parser("build", help="build the extension, or check that it is built")
    build.add_argument("--clean", action="store_true", help="compile even if it is cached")
    build.add_argument("--json", action="store_true", help="one JSON document on stdout and nothing else")
    build.set_defaults(function=_build)

    doctor = commands.add_parser("doctor", help="what works on this machine, what does not, and the way out")
    doctor.add_argument("--json", action="store_true", help="one JSON document on stdout and nothing else")
    doctor.add_argument(
        "--peaks",
        nargs="?",
        const="float32",
        choices=["float32", "float64", "bfloat16", "float16"],
        metavar="DTYPE",
        help="measure compute and memory peaks for the roofline anew (float32 unless said otherwise)",
    )
    doctor.set_defaults(function=_doctor)

    worker = commands.add_parser("worker", help="the protocol over stdin and stdout, for a window elsewhere")
    worker.set_defaults(function=_worker)
    return parser


def _add_comparing_flags(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument(
        "--against", type=Path, metavar="EARLIER", help=f"compare {what} with an earlier recording"
    )
    parser.add_argument(
        "--max-slowdown",
        metavar="PERCENT",
        help="exit 1 where something is shown to be slower than EARLIER by more, such as 5%%",
    )
    parser.add_argument(
        "--by",
        choices=["net", "latency"],
        help="judge a contender's latency against the baseline's (net, the default), or its latency alone",
    )


def _window(arguments: argparse.Namespace) -> int:
    from app.commands.window import window

    return window(arguments)


def _run(arguments: argparse.Namespace) -> int:
    from app.commands.run import run

    return run(arguments)


def _trace(arguments: argparse.Namespace) -> int:
    from app.commands.trace import trace

    return trace(arguments)


def _report(arguments: argparse.Namespace) -> int:
    from app.commands.report import report

    return report(arguments)


def _build(arguments: argparse.Namespace) -> int:
    from app.commands.build import build

    return build(arguments)


def _doctor(arguments: argparse.Namespace) -> int:
    from app.commands.doctor import doctor

    return doctor(arguments)


def _worker(arguments: argparse.Namespace) -> int:
    from app.commands.worker import worker

    return worker()


def _version() -> str:
    from app.core.version import VERSION

    return VERSION
