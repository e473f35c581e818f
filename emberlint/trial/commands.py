"""A command that runs pytest, as the user writes it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from typing import NamedTuple

from emberlint.trial.errors import TrialError

EXAMPLE = '"python -m pytest tests"'
PLUGIN = "emberlint.trial.plugin"
# Environment variable with the path of the plugin's settings.
SETTINGS = "EMBERLINT_TRIAL"
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


class Command(NamedTuple):
    """A command: its words before and after ``pytest``, and the environment variables that it sets."""

    words: tuple[str, ...]
    arguments: tuple[str, ...]
    variables: dict[str, str]

    def line(self) -> list[str]:
        """Words of the command that loads the plugin and runs all tests, whatever fails."""
        return [
            *self.words,
            *("-p", PLUGIN, "-p", "no:cacheprovider", "--continue-on-collection-errors"),
            *self.arguments,
            "--maxfail=0",
        ]


def parsed(text: str) -> Command:
    """Command of a text; a program with a relative path is one of the current folder."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise TrialError(f"--check: {error} in {text!r}") from None
    variables = {}
    while words and _ASSIGNMENT.match(words[0]):
        name, _, variables[name] = words.pop(0).partition("=")
    end = _end(words)
    if not end:
        raise TrialError(f"--check must be a command that runs pytest, such as {EXAMPLE}, got {text!r}")
    program = shutil.which(words[0])
    if program is None:
        raise TrialError(f"--check: no program {words[0]!r} was found")
    # The command runs in another folder. A link is kept, because a virtual environment is found through it.
    return Command((os.path.abspath(program), *words[1:end]), tuple(words[end:]), variables)


def _end(words: list[str]) -> int:
    """Number of words up to ``pytest``; 0 if the command does not run it."""
    for i, word in enumerate(words):
        if os.path.basename(word) in ("pytest", "pytest.exe", "py.test") and (i == 0 or _runs(words[:i])):
            return i + 1
    return 0


def _runs(words: list[str]) -> bool:
    """Whether the words before ``pytest`` run it: ``python -m``, or programs such as ``nice`` with their options."""
    return words[-1] == "-m" or not any(os.path.basename(word).startswith("python") for word in words)
