"""Exit statuses, parsers and output shared by the commands of ``ember-ml``."""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from ember_ml import backend as backends
from ember_ml.errors import BackendNotFoundError

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

FAILED, MISUSED = 1, 2


def complain(error: object, status: int) -> int:
    """Print an error on stderr, on one line, and return ``status``."""
    print("ember-ml: error:", " ".join(str(error).split()), file=sys.stderr)
    return status


class Parser(argparse.ArgumentParser):
    """Parser with errors on one line, and without abbreviated options, which a new option could make ambiguous."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"allow_abbrev": False, **options})

    def error(self, message: str) -> NoReturn:
        self.exit(MISUSED, f"{self.prog}: error: {message}; see {self.prog} --help\n")


def show_help(parser: argparse.ArgumentParser) -> Callable[[argparse.Namespace], int]:
    """Command that prints the help of ``parser``."""

    def command(_: argparse.Namespace) -> int:
        parser.print_help()
        return 0

    return command


def described(parser: argparse.ArgumentParser, description: str, examples: str) -> argparse.ArgumentParser:
    """Set the description and examples of ``parser``, which are printed verbatim, and return it."""
    parser.description, parser.epilog = description, examples
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    return parser


def usable_backends() -> list[str]:
    """Names of the engines that are installed and can be imported. Others are reported on stderr."""
    names = []
    for name in backends.get_available_backends():
        try:
            names.append(backends.load(name).name)
        except BackendNotFoundError as error:
            complain(f"{name} is left out: {error}", 0)
    return names


def takes_json(parser: argparse.ArgumentParser, command: Callable[[argparse.Namespace], int]) -> None:
    """Add ``--json`` to the parser of ``command``."""
    # Without SUPPRESS, the default of a subcommand would override `--json` given before it.
    parser.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON")
    parser.set_defaults(command=command)


def table_of(*names: str) -> Table:
    """Empty table with these columns."""
    from rich import box
    from rich.table import Table

    return Table(*names, box=box.SIMPLE_HEAD, pad_edge=False)


def print_rich(what: RenderableType) -> None:
    """Print a rich table or text."""
    from rich.console import Console

    # A rich console exits the process on a broken pipe, so its output is captured and written here. Output that does
    # not go to a terminal is wide, so that each row is one line for tools such as grep.
    encoding, seen = sys.stdout.encoding or "utf-8", sys.stdout.isatty()
    width = None if seen or "COLUMNS" in os.environ else 1000
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    console = Console(file=file, force_terminal=seen, markup=False, width=width)
    with console.capture() as captured:
        console.print(what)
    sys.stdout.write(captured.get().encode(encoding, "replace").decode(encoding))


def print_json(value: object) -> None:
    """Print a value as JSON."""
    print(json.dumps(value, indent=2))
