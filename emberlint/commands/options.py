"""Options that several commands share."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable
from typing import NoReturn

from emberlint import config as configuration
from emberlint.commands.status import ERROR
from emberlint.config import Config


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        sys.stderr.write(f"{self.prog}: {message}\nsee {self.prog} --help\n")
        raise SystemExit(ERROR)


def parse_intermixed(made: argparse.ArgumentParser, arguments: list[str]) -> argparse.Namespace:
    """Options of a command line in which paths may come before, between and after them."""
    # parse_intermixed_args may reject paths after `--`.
    return made.parse_args(arguments) if "--" in arguments else made.parse_intermixed_args(arguments)


def code_list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def some_codes(text: str) -> list[str]:
    codes = code_list(text)
    if not codes:
        raise argparse.ArgumentTypeError(f"must name at least one, got {text!r}")
    return codes


def natural(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be an integer >= 0, got {text!r}")
    return int(text)


def suggestion(given: str, known: Iterable[str]) -> str:
    """The closest known name, as the end of a message; empty if there is none."""
    from difflib import get_close_matches

    close = get_close_matches(given, list(known), 1)
    return f"; did you mean `{close[0]}`?" if close and close[0] != given else ""


def settings(options: argparse.Namespace) -> Config:
    """Configuration of a run; options override the configuration file."""
    start = options.paths[0] if options.paths else "."
    folder = start if os.path.isdir(start) else os.path.dirname(start) or "."
    config = configuration.load(folder)
    changes: dict[str, object] = {}
    if getattr(options, "frontend_backend_only", False):
        changes["select"] = ("EMB1",)
    for name in ("select", "ignore", "targets"):
        value = getattr(options, name, None)
        if value is not None:
            changes[name] = tuple(value)
    if getattr(options, "target", None):
        changes["target"] = options.target
    if getattr(options, "baseline", None):
        changes["baseline"] = os.path.abspath(options.baseline)
    if changes:
        config = config._replace(**changes)  # type: ignore[arg-type]
        configuration.check(config, "command line")
    return config
