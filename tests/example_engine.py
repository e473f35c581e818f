"""The example engine of ``docs/backends.md``, and the fenced blocks of the documentation."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from ember_ml import backend as backends

ROOT = Path(__file__).parent.parent
EXAMPLE = "abacus"
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A fenced block: its language, what else its head says, its text and its line."""

    language: str
    words: list[str]
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in FENCE.finditer(text):
        language, *words = match[1].split() or [""]
        found.append(Block(language, words, match[2], text.count("\n", 0, match.start(2))))
    return found


def is_path(word: str) -> bool:
    """Whether a word at the head of a block names a file."""
    return "/" in word


def install(site: Path) -> Path:
    """Write the example engine to a folder, as a distribution; returns the folder of its modules."""
    (site / EXAMPLE).mkdir()
    for block in blocks(ROOT / "docs" / "backends.md"):
        for path in filter(is_path, block.words):
            (site / path).write_text(block.text, encoding="utf-8")
    write_metadata(site, EXAMPLE, f"[{backends.GROUP}]\n{EXAMPLE} = {EXAMPLE}\n")
    return site / EXAMPLE


def write_metadata(site: Path, name: str, entry_points: str) -> None:
    """Make a folder of the path a distribution with these entry points."""
    metadata = site / f"{name}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(entry_points)


def environment(site: Path) -> dict[str, str]:
    """The environment of a process that finds what a folder holds, and this library."""
    known = filter(None, [os.environ.get("PYTHONPATH")])  # the dependencies of the package may be there
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), str(ROOT), *known])}
