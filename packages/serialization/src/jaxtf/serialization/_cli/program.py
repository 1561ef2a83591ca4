"""The command line `jaxtf-artifact`: its arguments, exit codes and errors.

What each command does is in a module of its own, which is imported when it runs if it needs more than the reading of
bytes. Plain aligned text, so that it needs nothing that reading artifacts does not need. JAX is imported only by what
parses modules.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from jaxtf.serialization._cli import commands
from jaxtf.serialization._cli.files import Command, CommandError
from jaxtf.serialization._record.versions import RELEASE

__all__ = ["main"]

_CODES = """\
exit codes:
  0  done: described, sound, equal, written
  1  check found something wrong, or diff a difference
  2  usage, a file that cannot be read or written, or one that is not an artifact
  141  whoever read the output left before its end, as `head` does

FILE may be - for standard input.
"""

_CLOSED_PIPE = 141
"""What shells report of a program that a closed pipe ended."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs `jaxtf-artifact` with these arguments; returns its exit code."""
    options = _parser().parse_args(arguments)
    try:
        code: int = options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output left. Nothing more is written, when Python ends neither.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _CLOSED_PIPE
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        text = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        print(f"jaxtf-artifact: {text}", file=sys.stderr)
        return 2
    except (CommandError, ValueError, NotImplementedError, ImportError) as error:
        print(f"jaxtf-artifact: {error}", file=sys.stderr)
        return 2
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="jaxtf-artifact",
        description="Reads, checks, compares and rewrites exported JAX functions.",
        epilog=_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"jaxtf-serialization {RELEASE}")
    subparsers = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    describe = _command(subparsers, "describe", commands.describe_files, "shows what artifacts contain")
    describe.add_argument("files", nargs="+", metavar="FILE")

    check = _command(
        subparsers, "check", _imported("check", "check_files"), "digest, structure, modules and, if given, shapes"
    )
    check.add_argument("files", nargs="+", metavar="FILE")
    check.add_argument(
        "--shapes",
        action="append",
        default=[],
        metavar="PATH=SIZES",
        help="the shape of an argument, such as \"args[0]['w']=3,4\", or args[1]= for a scalar; once for each argument",
    )
    check.add_argument("--no-parse", action="store_true", help="do not parse modules, even where JAX is installed")
    check.add_argument(
        "--allow-custom-calls", action="store_true", help="list the custom calls instead of refusing unknown ones"
    )

    diff = _command(subparsers, "diff", commands.diff_files, "what differs between two artifacts, field by field")
    diff.add_argument("files", nargs=2, metavar="FILE")

    upgrade = _command(
        subparsers, "upgrade", _imported("upgrade", "upgrade_file"), "rewrites an artifact for other consumers"
    )
    upgrade.add_argument("file", metavar="FILE")
    upgrade.add_argument("-o", "--output", required=True, metavar="OUT", help="where to; - for standard output")
    consumer = upgrade.add_mutually_exclusive_group()
    consumer.add_argument("--tensorflow-version", metavar="V", help="for this TensorFlow, such as 2.21; needs JAX")
    consumer.add_argument("--stablehlo-version", metavar="V", help="for consumers of this StableHLO version; needs JAX")
    upgrade.add_argument("--format-version", type=int, metavar="N", help="for consumers of this format")

    save = _command(subparsers, "save", _imported("save", "save_file"), "an artifact and weights as one file")
    save.add_argument("file", metavar="FILE", help="the artifact; of a file with weights, the program in it")
    save.add_argument("weights", metavar="WEIGHTS", help="a safetensors file, or one with weights that `save` wrote")
    save.add_argument("-o", "--output", required=True, metavar="OUT", help="the file to write")
    save.add_argument(
        "--argnums", default="0", metavar="N[,...]", help="positions of the arguments that the weights are for (0)"
    )
    save.add_argument("--allow-unused", action="store_true", help="leave out arrays that the program does not take")

    cost = _command(subparsers, "cost", _imported("cost", "print_costs"), "what a call costs; needs JAX")
    cost.add_argument("file", metavar="FILE")
    cost.add_argument(
        "--size",
        action="append",
        default=[],
        metavar="NAME=SIZES",
        help="the value of a dimension variable, such as b=8, or several, b=8,64,512; once for each variable",
    )

    extract = _command(subparsers, "extract", commands.extract_module, "the module of an artifact")
    extract.add_argument("file", metavar="FILE")
    extract.add_argument("-o", "--output", default="-", metavar="OUT", help="where to; standard output by default")
    extract.add_argument("--text", action="store_true", help="as StableHLO text; needs JAX")
    extract.add_argument("--vjp", type=int, default=0, metavar="N", help="of order N of the VJP")
    return parser


def _imported(module: str, name: str) -> Command:
    """A command whose module is imported when it runs: it reads whole records, with NumPy and symbolic dimensions."""

    def run(options: argparse.Namespace) -> int:
        command: Command = getattr(importlib.import_module(f"jaxtf.serialization._cli.{module}"), name)
        return command(options)

    return run


def _command(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser], name: str, run: Command, text: str
) -> argparse.ArgumentParser:
    parser = subparsers.add_parser(
        name, help=text, description=text, epilog=_CODES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.set_defaults(run=run)
    if name in {"upgrade", "extract", "save"}:
        parser.add_argument("--force", action="store_true", help="overwrite a file that exists")
    if name in {"describe", "check", "diff", "cost"}:
        parser.add_argument("--json", action="store_true", help="JSON, for programs")
    return parser
