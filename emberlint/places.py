"""Where an expression stands, by the text around it: what asks for its truth, and what comes after it."""

from __future__ import annotations

import ast
import re

from emberlint.file import File

_ASKED = re.compile(rb"(?<![\w.])(?:if|elif|while|not)\s+$")
_ENDED = re.compile(rb"\s*(?:[:)\]},\n#]|(?:and|or|else|if)\b|$)")


def before(node: ast.expr, file: File) -> bytes:
    """The text of the line before an expression."""
    data = file.source.data
    start = file.span(node)[0]
    return data[data.rfind(b"\n", 0, start) + 1 : start]


def following(node: ast.expr, file: File) -> bytes:
    """The first byte after an expression that is no space; empty where a long space follows."""
    end = file.span(node)[1]
    return file.source.data[end : end + 80].lstrip()[:1]


def is_asked(node: ast.expr, file: File) -> bool:
    """Whether it is plain to see that only the truth of an expression counts: ``if x``, ``while x``, ``not x``."""
    return bool(_ASKED.search(before(node, file)) and _ENDED.match(file.source.data, file.span(node)[1]))
