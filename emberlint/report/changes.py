"""Lines that changed since a git revision."""

from __future__ import annotations

import os
import re
import subprocess

from emberlint.config import ConfigError
from emberlint.findings import Finding

_HUNK = re.compile(rb"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def changed(base: str, folder: str) -> dict[str, list[tuple[int, int]]]:
    """First and last line of every changed part, by the real path of the file; all lines of a new file."""
    top = os.path.realpath(os.fsdecode(_git(folder, "rev-parse", "--show-toplevel").removesuffix(b"\n")))
    options = ("--no-color", "--no-ext-diff", "--no-textconv", "-U0", "--src-prefix=a/", "--dst-prefix=b/")
    text = _git(top, "diff", *options, base, "--")
    found: dict[str, list[tuple[int, int]]] = {}
    path = ""
    body = 0
    for line in text.split(b"\n"):
        if body and line[:1] in (b"+", b"-"):
            body -= 1
        elif line.startswith(b"+++ "):
            name = _name(line[4:])
            path = os.path.join(top, name[2:]) if name != "/dev/null" else ""
            if path:
                found[path] = []
        elif match := _HUNK.match(line):
            start, count = int(match[2]), int(match[3] or 1)
            body = int(match[1] or 1) + count
            if path and count:
                found[path].append((start, start + count - 1))
    for name in os.fsdecode(_git(top, "ls-files", "--others", "--exclude-standard", "-z")).split("\0"):
        if name:
            found[os.path.join(top, name)] = [(1, 1 << 60)]
    return found


def _name(written: bytes) -> str:
    """Decode a file name from git's output, which quotes and escapes names that are not plain ASCII."""
    written = written.rstrip(b"\t")
    if written.startswith(b'"'):
        import ast

        written = ast.literal_eval("b" + written.decode("ascii"))
    return os.fsdecode(written)


def _git(folder: str, *arguments: str) -> bytes:
    command = ["git", "-c", "core.quotepath=on", *arguments]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    except OSError as error:
        raise ConfigError(f"cannot run git: {error}") from error
    if done.returncode:
        raise ConfigError(f"git {arguments[0]}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def only(findings: list[Finding], parts: dict[str, list[tuple[int, int]]]) -> list[Finding]:
    """Findings that overlap a changed line."""
    kept = []
    for finding in findings:
        spans = parts.get(os.path.realpath(finding.path), [])
        if any(start <= finding.end_line and finding.line <= end for start, end in spans):
            kept.append(finding)
    return kept
