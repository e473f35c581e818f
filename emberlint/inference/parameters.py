"""Types of parameters without annotations, inferred from documentation, use, or the only call of a helper.

Only arrays are inferred, never numbers: a fix that mistakes an array for a number would change the program's results.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from emberlint.inference.values import Value
from emberlint.knowledge import catalogue
from emberlint.knowledge.engines import EMBER
from emberlint.knowledge.types import HOST, TENSOR
from emberlint.source.text import ANY

if TYPE_CHECKING:
    from emberlint.inference.scopes import Class
    from emberlint.inference.state import State

# `x : ndarray` and `x, y : (N,) array` in numpydoc style, `x (np.ndarray): ...` in Google style.
_NUMPYDOC = re.compile(r"^[ \t]*(\*{0,2}\w+(?:[ \t]*,[ \t]*\*{0,2}\w+)*)[ \t]*:[ \t]+(\S.*)$", re.MULTILINE)
_GOOGLE = re.compile(r"^[ \t]*(\w+)[ \t]*\(([^()]*(?:\([^()]*\)[^()]*)*)\)[ \t]*:", re.MULTILINE)
_ARRAY = re.compile(r"\b(?:ndarrays?|[Aa]rrays?|[Tt]ensors?|matrix|matrices)\b(?!\.\w|[-_ ]?like)")
_FOREIGN = re.compile(r"\b(?!(?:np|numpy|torch|jnp|mx|core|tf|cp|cupy)\.)\w+\.(?:ndarray|[Aa]rray|[Tt]ensor|matrix)\b")
# Words that say that it is not just an array: another type, or a container of arrays.
_OTHER = re.compile(
    r"\b(?:floats?|ints?|integers?|scalars?|numbers?|str|strings?|bool|lists?|tuples?|sequences?|iterables?|dict|callable|function|"
    r"optional|None|DataFrame|Series|sparse|objects?|instances?|types?|names?|of arrays|class|"
    r"memoryviews?|buffers?|bytes|ctypes|storages?)\b|[-_ ]like\b"
)
_SECTIONS = re.compile(
    r"^[ \t]*(?:Returns?|Yields?|Raises|Notes|References|Examples?|See Also)[ \t]*:?[ \t]*$", re.MULTILINE
)

# Uses that only arrays support, such as `x.shape` and `x[:, 0]`.
_NAMES = rb"\.(?:shape|dtype|ndim|astype|reshape|ravel|flatten|flat|squeeze|transpose|T)\b"
_USED = re.compile(_NAMES + rb"|\[(?:[^\[\]\n]*,)?[^\[\]\n,:]*:[^\[\]\n,]*,")
_ATTRIBUTE = re.compile(rb"\.([A-Za-z]\w*)")
_TYPES = re.compile(rb"isinstance\(\s*(\w+)\s*,\s*(\([^()]*\)|[\w.]+)")
_OTHER_TYPE = re.compile(rb"\b(?:memoryview|bytes|bytearray|mmap|array\.array|ctypes\.\w+|\w*(?:Storage|Buffer))\b")

_SIGNS = (b".", b"[")

DOCUMENTED = "is documented"
USED = "is used like an array here"
PASSED = "is passed by its only call"


def parameters(
    arguments: list[ast.arg], node: Any, klass: Class | None, passed: dict[str, Value], state: State
) -> dict[str, Value]:
    """Unannotated parameters of a function that must be arrays, with their inferred values."""
    found: dict[str, Value] = {}
    names = {argument.arg: argument for argument in arguments if argument.annotation is None}
    if not names:
        return found
    engine = _engine(state)
    if engine is not None:
        for name in _documented(node, klass):
            if name in names:
                found[name] = _array(engine, names[name], DOCUMENTED)
        for name in names:
            if name not in found and _is_used(name, node, engine, state):
                found[name] = _array(engine, names[name], USED)
    for name, value in passed.items():
        if name in names:
            found[name] = Value(value.kind, value.engine, names[name], PASSED, value, dtype=value.dtype, argument=name)
    return found


def _array(engine: str, argument: ast.arg, reason: str) -> Value:
    return Value(HOST if engine == "numpy" else TENSOR, engine, argument, reason, argument=argument.arg)


def _engine(state: State) -> str | None:
    """Engine that the file imports; ``None`` if there is not exactly one."""
    engines = state.imports.engines
    if len(engines) == 1:
        return next(iter(engines))
    return EMBER if engines == {EMBER, "numpy"} else None


def _documented(node: Any, klass: Class | None) -> set[str]:
    texts = [_docstring(node)]
    if klass is not None and node.name in ("__init__", "__new__", "__call__"):
        texts.append(_docstring(klass.node))
    found: set[str] = set()
    for text in texts:
        if not ("rray" in text or "ensor" in text or "matri" in text):
            continue  # a fast check that `_ARRAY` cannot match
        end = _SECTIONS.search(text)
        text = text[: end.start()] if end else text
        for pattern in (_NUMPYDOC, _GOOGLE):
            for match in pattern.finditer(text):
                kind = match[2].partition(". ")[0]
                if _ARRAY.search(kind) and not _OTHER.search(kind) and not ("." in kind and _FOREIGN.search(kind)):
                    found.update(name.strip(" \t*") for name in match[1].split(","))
    return found


def _docstring(node: Any) -> str:
    """Docstring of a function or class, without cleaning; empty if it has none."""
    first = node.body[0]
    if type(first) is ast.Expr and type(first.value) is ast.Constant and type(first.value.value) is str:
        return first.value.value
    return ""


def _is_used(name: str, node: Any, engine: str, state: State) -> bool:
    """Whether a function uses a name in ways that only arrays support."""
    source = state.source
    starts, data = source.starts, source.data
    start, end = starts[node.body[0].lineno - 1], starts[node.end_lineno]
    word = name.encode()
    length = len(word)
    used = False
    for sign in _SIGNS:
        text = word + sign  # searching for a one-letter name without the sign would match in every word
        first = data.find(text, start, end)
        if first < 0:
            continue
        for place in source.uses(text, first, end, ANY):
            after = place + length
            if sign == b".":
                attribute = _ATTRIBUTE.match(data, after, end)
                if attribute is not None and attribute[1] not in _attributes(engine):
                    return False
            used = used or _USED.match(data, after, end) is not None
    return used and not _is_tested_as_buffer(word, data, start, end)


@cache
def _attributes(engine: str) -> frozenset[bytes]:
    """Attributes of an engine's arrays; those of all engines if the engine is not in the catalogue."""
    known = catalogue.engines()
    names = (catalogue.methods(one) for one in ([engine] if engine in known else known))
    return frozenset(name.encode() for name in frozenset[str]().union(*names))


def _is_tested_as_buffer(word: bytes, data: bytes, start: int, end: int) -> bool:
    """Whether a function tests if a name is a buffer other than an array: ``isinstance(x, memoryview)``."""
    if data.find(b"isinstance", start, end) < 0:
        return False
    return any(
        match[1] == word and _OTHER_TYPE.search(match[2]) is not None for match in _TYPES.finditer(data, start, end)
    )


def is_helper(name: str, state: State) -> bool:
    """Whether a function has one call in its file and no other use, so that the call determines its parameters."""
    if not name.startswith("_") or name.startswith("__"):
        return False
    known = state.functions.helpers.get(name)
    if known is None:
        known = state.functions.helpers[name] = sum(1 for _ in islice(state.source.uses(name.encode()), 3)) == 2
    return known


def passed(node: Any, call: ast.Call, state: State) -> dict[str, Value]:
    """Arrays that a call passes, by the names of the parameters."""
    found = {}
    names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
    for name, argument in zip(names, call.args, strict=False):
        if type(argument) is ast.Starred:
            break
        value = state.value(argument)
        if value is not None and value.is_array:
            found[name] = value
    for keyword in call.keywords:
        value = state.value(keyword.value)
        if keyword.arg and value is not None and value.is_array:
            found[keyword.arg] = value
    return found
