"""``emberlint why FILE:LINE``: show the inferred types of the values on a line, and why."""

from __future__ import annotations

import os
import sys

from emberlint import config as configuration
from emberlint.commands.options import Parser
from emberlint.commands.status import CLEAN
from emberlint.knowledge.types import ARRAYS, SCALAR, SEQUENCE, SHAPE
from emberlint.lint import linter
from emberlint.source.files import read
from emberlint.source.modules import module_of
from emberlint.source.tree import PARSE_ERRORS

_SHOWN = frozenset({*ARRAYS, SCALAR, SHAPE, SEQUENCE})


def explanation(path: str, line: int) -> str:
    """Text that the command prints."""
    data = read(path)
    config = configuration.load(os.path.dirname(path) or ".")
    module, package = module_of(path)
    try:
        file = linter.prepare(data, path, config, module=module, package=package, thorough=True)
    except PARSE_ERRORS as error:
        return f"{path} does not parse: {error}\n"
    findings = linter.visit(file)
    lines = [f"{path}:{line}: {file.source.line(line).strip()}"]
    seen = set()
    values = [(node, value) for node, value in file.known.items() if node.lineno == line and value.kind in _SHOWN]  # type: ignore[attr-defined]
    for node, value in sorted(values, key=lambda item: (item[0].col_offset, -item[0].end_col_offset)):  # type: ignore[attr-defined]
        text = " ".join(file.text(node).split())
        if text in seen or (value.kind == SCALAR and value.node is None):
            continue
        seen.add(text)
        dtype = f" of {value.dtype}" if value.dtype and value.kind in ARRAYS else ""
        argument = f", passed in as `{value.argument}`" if value.argument else ""
        lines.append(f"  `{text}`: {value.described()}{dtype}{argument}")
        lines += [f"    {reason}" for reason in file.reasons(value)]
    if len(lines) == 1:
        lines.append("  no types are inferred on this line, so rules about tensors do not apply to it")
    lines += [f"  {f.code} {f.message}" for f in findings if f.line <= line <= f.end_line]
    return "".join(text + "\n" for text in lines)


def main(arguments: list[str]) -> int:
    """Run the command and return the exit status."""
    made = Parser(prog="emberlint why", description="Show the inferred types of the values on a line, and why.")
    made.add_argument("place", metavar="FILE:LINE", help="such as model.py:12; a column after the line is ignored")
    place = made.parse_args(arguments).place
    path, _, line = place.rpartition(":")
    if not os.path.exists(path):
        # Findings are printed with a column.
        shorter, _, number = path.rpartition(":")
        path, line = (shorter, number) if shorter and number.isdecimal() and line.isdecimal() else (path, line)
    if not path or not line.isdecimal():
        made.error(f"the argument must be FILE:LINE, such as model.py:12, got {place}")
    count = len(read(path).splitlines())
    if not 1 <= int(line) <= count:
        made.error(f"line must be between 1 and {count} in {path}, got {line}")
    sys.stdout.write(explanation(path, int(line)))
    return CLEAN
