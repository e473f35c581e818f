"""Source text around an expression."""

from __future__ import annotations

import ast
import re

from emberlint.inference.file import File

_CONDITION = re.compile(rb"(?<![\w.])(?:if|elif|while|assert|not)\s+$")
_ALONE = (b"if", b"elif", b"while")
_CLOSED = (b":", b"else ", b"else(")
_ENDED = re.compile(rb"\s*(?:[:)\]},\n#]|(?:and|or|else|if)\b|$)")


def before(node: ast.expr, file: File) -> bytes:
    """Text before an expression on its line."""
    data = file.source.data
    start = file.span(node)[0]
    return data[data.rfind(b"\n", 0, start) + 1 : start]


def following(node: ast.expr, file: File) -> bytes:
    """First byte after an expression that is not whitespace; empty after much whitespace."""
    end = file.span(node)[1]
    return file.source.data[end : end + 80].lstrip()[:1]


def is_viewed(node: ast.expr, file: File) -> bool:
    """Whether torch's ``.view`` is called on an expression, which requires a contiguous tensor."""
    end = file.span(node)[1]
    return file.source.data[end : end + 80].lstrip().startswith(b".view")


def is_condition(node: ast.expr, file: File) -> bool:
    """Whether the text shows that only the truth value of an expression is used: ``if x``, ``while x``, ``not x``."""
    return bool(_CONDITION.search(before(node, file)) and _ENDED.match(file.source.data, file.span(node)[1]))


def is_alone(node: ast.expr, file: File) -> bool:
    """Whether the text shows that an expression is a whole condition: ``if x:``, ``1 if x else 2``."""
    end = file.span(node)[1]
    words = before(node, file).split()
    return bool(words) and words[-1] in _ALONE and file.source.data[end : end + 80].lstrip(b" \t").startswith(_CLOSED)


def callee(node: ast.expr, file: File) -> str:
    """Name before the parenthesis that encloses an expression, with a leading dot after another expression.

    Empty if the parenthesis is not that of a call, or is far away.
    """
    data, place, depth = file.source.data, file.span(node)[0] - 1, 0
    for i in range(place, max(place - 400, -1), -1):
        if data[i] in b")]}":
            depth += 1
        elif data[i] in b"([{":
            if not depth:
                head = data[max(i - 80, 0) : i] if data[i : i + 1] == b"(" else b""
                name: bytes = re.findall(rb"[\w.]*$", head)[0]
                return name.decode()
            depth -= 1
    return ""
