"""Damaged files: the linter reports only that they do not parse, and its fixes keep valid files valid.

``EMBERLINT_FUZZ=10000`` damages that many files; ``EMBERLINT_FIX_TREE`` names a folder whose files are fixed in memory.
"""

from __future__ import annotations

import os
import random
import sysconfig
import warnings
from pathlib import Path

import mutation
import pytest

from emberlint.commands import port
from emberlint.config import Config
from emberlint.lint import fixes, linter
from emberlint.source.text import Source
from emberlint.source.tree import parse

COUNT = int(os.environ.get("EMBERLINT_FUZZ", "250"))
CONFIG = Config(select=("ALL",))


def parses(data: bytes, name: str) -> bool:
    try:
        parse(Source(data, name))
    except (SyntaxError, LookupError, UnicodeError):
        return False
    return True


def damaged_sources() -> list[Path]:
    """Files of this project's tests, which use every engine, and of the standard library."""
    return [Path(__file__).parent, Path(sysconfig.get_path("stdlib")) / "importlib"]


@pytest.mark.parametrize("part", range(10))
def test_damaged_files_are_reported_and_nothing_else(part: int) -> None:
    for name, data in mutation.mutants(COUNT // 10, seed=part, roots=damaged_sources()):
        found = {finding.code for finding in linter.lint(data, "damaged.py", CONFIG).findings}
        if not parses(data, "damaged.py"):
            assert found == {"EMB001"}, name


def test_fixes_of_damaged_files_terminate_and_parse() -> None:
    for name, data in mutation.mutants(COUNT // 5, seed=99, roots=damaged_sources()):
        once = fixes.fixed(data, "damaged.py", CONFIG, unsafe=True).data
        assert not parses(data, "damaged.py") or parses(once, "damaged.py"), name


def tree() -> list[Path]:
    """Files to fix: all files of a given folder, or some of the engines' own files."""
    named = os.environ.get("EMBERLINT_FIX_TREE")
    folder = Path(named or sysconfig.get_path("purelib"))
    files = sorted(file for file in folder.rglob("*.py") if named or file.stat().st_size < 30_000)
    return files if named else random.Random(0).sample(files, min(len(files), 80))


def test_fixes_are_idempotent_and_keep_the_parse() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for path in tree():
            data = path.read_bytes()
            if not parses(data, str(path)):
                continue
            for unsafe in (False, True):
                once = fixes.fixed(data, str(path), CONFIG, unsafe=unsafe).data
                if once != data:
                    assert parses(once, str(path)), path
                    assert fixes.fixed(once, str(path), CONFIG, unsafe=unsafe).data == once, path


def test_ports_are_idempotent_and_keep_the_parse() -> None:
    for path in tree()[:40]:
        data = path.read_bytes()
        once = port.ported(data, str(path), "numpy", CONFIG).after
        assert not parses(data, str(path)) or parses(once, str(path)), path
        assert port.ported(once, str(path), "numpy", CONFIG).after == once, path
