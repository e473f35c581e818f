"""Parameters without annotations: what the documentation, their use, or the one call of a helper says they are.

Only arrays are inferred, never numbers: a fix that takes an array for a number would change what the program computes.
"""

from __future__ import annotations

import ast
import re
from itertools import islice
from typing import TYPE_CHECKING, Any

from emberlint import kinds
from emberlint.kinds import EMBER, HOST, TENSOR, Value

if TYPE_CHECKING:
    from emberlint.flow import File

# `x : ndarray` and `x, y : (N,) array` as numpydoc has them, `x (np.ndarray): ...` as Google's style has them.
_NUMPYDOC = re.compile(r"^[ \t]*(\*{0,2}\w+(?:[ \t]*,[ \t]*\*{0,2}\w+)*)[ \t]*:[ \t]+(\S.*)$", re.MULTILINE)
_GOOGLE = re.compile(r"^[ \t]*(\w+)[ \t]*\(([^()]*(?:\([^()]*\)[^()]*)*)\)[ \t]*:", re.MULTILINE)
_ARRAY = re.compile(r"\b(?:ndarrays?|[Aa]rrays?|[Tt]ensors?|matrix|matrices)\b(?![-_ ]?like)")
# What makes it more than an array: another type beside it, or a container of them.
_OTHER = re.compile(
    r"\b(?:floats?|ints?|integers?|scalars?|numbers?|str|strings?|bool|lists?|tuples?|sequences?|iterables?|dict|callable|function|"
    r"optional|None|DataFrame|Series|sparse|objects?|instances?|types?|names?|of arrays|class)\b|[-_ ]like\b"
)
_SECTIONS = re.compile(
    r"^[ \t]*(?:Returns?|Yields?|Raises|Notes|References|Examples?|See Also)[ \t]*:?[ \t]*$", re.MULTILINE
)

# `x.shape` and its like, and `x[:, 0]`: what only arrays have.
_NAMES = rb"\.(?:shape|dtype|ndim|astype|reshape|ravel|flatten|flat|squeeze|transpose|T)\b"
_USED = re.compile(rb"(?<![\w.])(\w+)(?:" + _NAMES + rb"|\[(?:[^\[\]\n]*,)?[^\[\]\n,:]*:[^\[\]\n,]*,)")
# What `_USED` needs: found fast, since each way begins with a sign.
_HINT = re.compile(_NAMES + rb"|\[[^\[\]\n]*:[^\[\]\n]*,")
_FRAMES = re.compile(
    rb"(?<![\w.])(\w+)\.(?:iloc|loc|columns|groupby|values|index|crs|geometry|name|chunks|items|keys|append)\b"
)

DOCUMENTED = "is documented so"
USED = "is used as one here"
PASSED = "is what its one call passes"


def parameters(node: Any, klass: ast.ClassDef | None, passed: dict[str, Value], file: File) -> dict[str, Value]:
    """The unannotated parameters of a function that must be arrays, with why."""
    names = {a.arg: a for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs) if a.annotation is None}
    found: dict[str, Value] = {}
    if not names:
        return found
    engine = _engine(file)
    if engine is not None:
        for name in _documented(node, klass):
            if name in names:
                found[name] = _array(engine, names[name], DOCUMENTED)
        for name in _used(node, file):
            if name in names and name not in found:
                found[name] = _array(engine, names[name], USED)
    for name, value in passed.items():
        if name in names:
            found[name] = Value(value.kind, value.engine, names[name], PASSED, value, dtype=value.dtype, argument=name)
    return found


def _array(engine: str, argument: ast.arg, reason: str) -> Value:
    return Value(HOST if engine == "numpy" else TENSOR, engine, argument, reason, argument=argument.arg)


def _engine(file: File) -> str | None:
    """The one engine that the file imports; ``None`` where there are several, or none."""
    engines = {kinds.engine_of(item.path) for item in file.imports} - {""}
    if len(engines) == 1:
        return engines.pop()
    return EMBER if engines == {EMBER, "numpy"} else None


def _documented(node: Any, klass: ast.ClassDef | None) -> set[str]:
    texts = [ast.get_docstring(node, clean=False)]
    if klass is not None and node.name in ("__init__", "__new__", "__call__"):
        texts.append(ast.get_docstring(klass, clean=False))
    found: set[str] = set()
    for text in texts:
        if text is None or not _ARRAY.search(text):
            continue
        end = _SECTIONS.search(text)
        text = text[: end.start()] if end else text
        for pattern in (_NUMPYDOC, _GOOGLE):
            for match in pattern.finditer(text):
                kind = match[2].partition(". ")[0]
                if _ARRAY.search(kind) and not _OTHER.search(kind):
                    found.update(name.strip(" \t*") for name in match[1].split(","))
    return found


def _used(node: Any, file: File) -> set[str]:
    starts, data = file.source.starts, file.source.data
    start = starts[node.body[0].lineno - 1]
    end = starts[node.end_lineno] if node.end_lineno < len(starts) else len(data)
    body = data[start:end]
    if _HINT.search(body) is None:
        return set()
    names = {match[1].decode() for match in _USED.finditer(body)}
    return names - {match[1].decode() for match in _FRAMES.finditer(body)} if names else names


def is_helper(name: str, file: File) -> bool:
    """Whether a function has one call in its file and no other use, so that the call says what its parameters are."""
    if not name.startswith("_") or name.startswith("__"):
        return False
    return sum(1 for _ in islice(file.source.uses(name), 3)) == 2


def passed(node: Any, call: ast.Call) -> dict[str, Value]:
    """The arrays that a call passes, by the names of the parameters that take them."""
    found = {}
    names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
    for name, argument in zip(names, call.args, strict=False):
        if type(argument) is ast.Starred:
            break
        value = argument.__dict__.get("ember")
        if value is not None and value.is_array:
            found[name] = value
    for keyword in call.keywords:
        value = keyword.value.__dict__.get("ember")
        if keyword.arg and value is not None and value.is_array:
            found[keyword.arg] = value
    return found
