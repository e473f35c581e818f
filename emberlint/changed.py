"""The lines that changed since a revision, as git tells them."""

from __future__ import annotations

import os
import re
import subprocess

from emberlint.config import ConfigError
from emberlint.findings import Finding

_HUNK = re.compile(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@")


def changed(base: str, folder: str) -> dict[str, list[tuple[int, int]]]:
    """For each changed file (its real path), the first and last line of every changed part; all of a new file."""
    top = os.path.realpath(_git(folder, "rev-parse", "--show-toplevel").strip())
    text = _git(
        top,
        "-c",
        "core.quotepath=off",
        "diff",
        "--no-color",
        "--no-ext-diff",
        "-U0",
        "--src-prefix=a/",
        "--dst-prefix=b/",
        base,
        "--",
    )
    found: dict[str, list[tuple[int, int]]] = {}
    path = ""
    for line in text.splitlines():
        if line.startswith("+++ "):
            name = line[4:].rstrip("\t")
            path = os.path.join(top, name[2:]) if name != "/dev/null" else ""
            if path:
                found[path] = []
        elif path and line.startswith("@@"):
            match = _HUNK.match(line)
            if match:
                start, count = int(match[1]), int(match[2] or 1)
                if count:
                    found[path].append((start, start + count - 1))
    for name in _git(top, "ls-files", "--others", "--exclude-standard", "-z").split("\0"):
        if name:
            found[os.path.join(top, name)] = [(1, 1 << 60)]
    return found


def _git(folder: str, *arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    except OSError as error:
        raise ConfigError(f"git cannot be run: {error}") from error
    if done.returncode:
        raise ConfigError(f"git {arguments[0]}: {done.stderr.strip()}")
    return done.stdout


def only(findings: list[Finding], parts: dict[str, list[tuple[int, int]]]) -> list[Finding]:
    """The findings that touch a changed line."""
    kept = []
    for finding in findings:
        spans = parts.get(os.path.realpath(finding.path), [])
        if any(start <= finding.end_line and finding.line <= end for start, end in spans):
            kept.append(finding)
    return kept
