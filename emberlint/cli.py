"""Command line: ``emberlint PATH...`` and the commands, each a module of ``emberlint.commands``."""

from __future__ import annotations

import gc
import importlib
import os
import sys

from emberlint.commands.options import suggestion
from emberlint.commands.status import ERROR, INTERRUPTED, PIPE_BROKEN
from emberlint.config import ConfigError
from emberlint.output import standard_output

COMMANDS = ("check", "explain", "why", "port", "baseline", "rules")


def main(arguments: list[str] | None = None) -> int:
    """Run the program and return the exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    # No reference cycles are created, so the garbage collector would only traverse trees and findings repeatedly.
    collecting = gc.isenabled()
    gc.disable()
    try:
        with standard_output():
            return _run(given)
    except BrokenPipeError:
        return PIPE_BROKEN
    except ConfigError as error:
        sys.stderr.write(f"emberlint: {error}\n")
        return ERROR
    except OSError as error:
        text = f"{error.filename}: {error.strerror}" if error.filename and error.strerror else error
        sys.stderr.write(f"emberlint: {text}{suggestion(given[0], COMMANDS) if given else ''}\n")
        return ERROR
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else ERROR
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        sys.stderr.write(f"emberlint: internal error: {type(error).__name__}: {error}\n")
        if os.environ.get("EMBERLINT_DEBUG"):
            raise
        return ERROR
    finally:
        if arguments is None:
            gc.freeze()  # skip the last collection at exit
        if collecting:
            gc.enable()


def _run(given: list[str]) -> int:
    """Run a command; the default is ``check``."""
    name, rest = (given[0], given[1:]) if given and given[0] in COMMANDS else ("check", given)
    status: int = importlib.import_module(f"emberlint.commands.{name}").main(rest)
    return status
