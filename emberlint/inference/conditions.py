"""Values of names and the active backend, inferred from conditions."""

from __future__ import annotations

import ast
from typing import Any

from emberlint.config import ENGINES
from emberlint.inference.file import File
from emberlint.inference.scopes import BACKEND, Env, engines_of
from emberlint.inference.state import State
from emberlint.inference.values import CHECKED, NOTHING, NUMBER, Value, merged
from emberlint.knowledge.engines import BACKEND_NAMES, engine_of
from emberlint.knowledge.types import STRING, TENSOR


def narrowed(test: Any, state: State) -> tuple[Env, Env]:
    """Values of names where a condition is true, and where it is false."""
    kind = type(test)
    if kind is ast.Compare:
        return _active(test, state) or _none(test)
    if kind is ast.Call:
        return _checked(test, state), {}
    if kind is ast.BoolOp:
        return _joined(test, state)
    if kind is ast.UnaryOp and type(test.op) is ast.Not:
        yes, no = narrowed(test.operand, state)
        return no, yes
    return {}, {}


def _joined(test: ast.BoolOp, state: State) -> tuple[Env, Env]:
    """Narrow by ``and`` (if it is true, all operands are) and ``or`` (if it is false, all operands are)."""
    holds = type(test.op) is ast.And
    sides = [narrowed(part, state) for part in test.values]
    every: Env = {}
    for yes, no in sides:
        every.update(yes if holds else no)
    some = [no if holds else yes for yes, no in sides]
    either: Env = {}
    if all(BACKEND in one for one in some):
        either = _backend(_NO_ENGINES.union(*map(engines_of, some)), test)
    return (every, either) if holds else (either, every)


def _active(test: ast.Compare, state: State) -> tuple[Env, Env] | None:
    """Narrow by ``backend() == "torch"`` or ``backend() not in ("jax", "mlx")``."""
    engines = named_engines(test, state) if state.interest.branches else _NO_ENGINES
    if not engines or len(test.ops) != 1:
        return None
    known = _backend(engines, test)
    sign = test.ops[0]
    if isinstance(sign, (ast.Eq, ast.Is, ast.In)):
        return known, {}
    return ({}, known) if isinstance(sign, (ast.NotEq, ast.IsNot, ast.NotIn)) else None


def _backend(engines: frozenset[str], node: ast.AST) -> Env:
    return {BACKEND: Value(STRING, ",".join(sorted(engines)), node, CHECKED)} if engines else {}


def of_case(subject: ast.expr, pattern: ast.pattern, file: File) -> Env:
    """Active backend inside of a case of a ``match``."""
    return _backend(_matched(pattern), pattern) if is_backend_name(subject, file) else {}


def _matched(pattern: ast.pattern) -> frozenset[str]:
    """Engines whose names a pattern matches; empty if it matches anything else."""
    if isinstance(pattern, ast.MatchValue):
        return _literals(pattern.value)
    if isinstance(pattern, ast.MatchOr):
        parts = [_matched(part) for part in pattern.patterns]
        return _NO_ENGINES.union(*parts) if all(parts) else _NO_ENGINES
    return _NO_ENGINES


def named_engines(test: ast.Compare, file: File) -> frozenset[str]:
    """Engines that the name of a backend is compared with; empty for any other comparison."""
    sides = (test.left, *test.comparators)
    engines = _NO_ENGINES.union(*map(_literals, sides))
    return engines if engines and any(is_backend_name(side, file) for side in sides) else _NO_ENGINES


def _literals(node: ast.expr) -> frozenset[str]:
    """Engines named by a string or by a tuple, list or set of strings."""
    if isinstance(node, ast.Constant):
        return _BY_NAME.get(node.value, _NO_ENGINES) if isinstance(node.value, str) else _NO_ENGINES
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return _NO_ENGINES.union(*map(_literals, node.elts))
    return _NO_ENGINES


_NO_ENGINES: frozenset[str] = frozenset()
_BY_NAME = {name: frozenset({name}) for name in ENGINES}


def is_backend_name(node: ast.expr, file: File) -> bool:
    """Whether an expression holds the name of a backend, according to its value or its name."""
    value = file.value(node)
    if value is not None and value.path == "get_backend":
        return True
    return _last_word(node, file).endswith(BACKEND_NAMES)


def _last_word(node: ast.expr, file: File) -> str:
    """Last name in an expression: ``f`` for ``a.f(x)``, the key for ``a["key"]`` and ``a.get("key")``."""
    if isinstance(node, ast.Name):
        return file.path(node).rpartition(".")[2] or node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Call):
        return (_string(node.args[0]) if node.args else "") or _last_word(node.func, file)
    return _string(node.slice) if isinstance(node, ast.Subscript) else ""


def _string(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _none(test: ast.Compare) -> tuple[Env, Env]:
    """Narrow by ``x is None``."""
    if len(test.ops) == 1 and type(test.left) is ast.Name:
        right, sign = test.comparators[0], type(test.ops[0])
        if type(right) is ast.Constant and right.value is None:
            if sign is ast.Is:
                return {test.left.id: NOTHING}, {}
            if sign is ast.IsNot:
                return {}, {test.left.id: NOTHING}
    return {}, {}


def _checked(test: ast.Call, state: State) -> Env:
    """Narrow by ``isinstance(x, Tensor)`` or ``torch.is_tensor(x)``."""
    if not test.args or type(test.args[0]) is not ast.Name:
        return {}
    name = test.args[0].id
    state.interest.relevant.add(name.encode())
    function = test.func
    if len(test.args) == 2 and type(function) is ast.Name and function.id == "isinstance":
        value = _instance(test.args[1], test, state)
        return {name: value} if value is not None else {}
    path = state.path(function)
    if path.endswith((".is_tensor", ".is_array")):
        return {name: Value(TENSOR, engine_of(path), test, CHECKED)}
    return {}


def _instance(types: Any, test: ast.AST, state: State) -> Value | None:
    """Value of an instance of one of some types."""
    kind = type(types)
    if kind is ast.Tuple:
        found: Value | None = _instance(types.elts[0], test, state) if types.elts else None
        for element in types.elts[1:]:
            found = merged(found, _instance(element, test, state))
        return found
    if kind is ast.BinOp and type(types.op) is ast.BitOr:
        return merged(_instance(types.left, test, state), _instance(types.right, test, state))
    if kind is ast.Name and types.id in ("int", "float", "bool", "complex") and not state.is_bound(types.id):
        return NUMBER
    path = state.path(types)
    known = state.imports.array_type(path) if path else None
    return Value(*known, test, CHECKED) if known is not None else None
