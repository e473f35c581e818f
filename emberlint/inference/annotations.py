"""Annotations: run checks on them, and infer values from them."""

from __future__ import annotations

import ast
from typing import Any

from emberlint.inference.checks import NONE, Annotation
from emberlint.inference.file import File
from emberlint.inference.results import BUILTIN_TYPES, several
from emberlint.inference.state import State, state_of
from emberlint.inference.values import ANNOTATED, DIMENSIONS, INT, NOTHING, Value, merged
from emberlint.inference.visitors import evaluate
from emberlint.knowledge.engines import engine_of
from emberlint.knowledge.types import CLASS, INSTANCE, REFERENCE, SEQUENCE
from emberlint.source.tree import dotted


def annotation(node: ast.expr, state: State) -> None:
    """Visit an annotation: resolve its names and run the checks on it."""
    kind = type(node)
    if kind is ast.Constant:
        if type(node.value) is not str:  # type: ignore[attr-defined]
            return
    elif kind is ast.Name and node.id in BUILTIN_TYPES:  # type: ignore[attr-defined]
        return
    else:
        evaluate(node, state)
    for check in state.checks.on.get(Annotation, ()):
        check(node, state)


def annotated(node: Any, state: State) -> Value | None:
    """Value that an annotation declares."""
    kind = type(node)
    if kind is ast.Name:
        found = BUILTIN_TYPES.get(node.id)
        if found is not None and not state.is_bound(node.id):
            return found
        return _instance(state.lookup(node.id), node, state)
    if kind is ast.Attribute:
        return _instance(state.value(node) or evaluate(node, state), node, state)
    if kind is ast.Constant:
        if node.value is None:
            return NOTHING
        if isinstance(node.value, str) and len(node.value) < 200:
            return _quoted(node, state)
        return None
    if kind is ast.BinOp and type(node.op) is ast.BitOr:
        return merged(annotated(node.left, state), annotated(node.right, state))
    if kind is ast.Subscript:
        return _generic(node, state)
    return None


def declared_value(node: ast.expr, file: File) -> Value | None:
    """Value that an annotation declares, for use by rules."""
    return annotated(node, state_of(file))


def _quoted(node: ast.Constant, state: State) -> Value | None:
    try:
        inner = ast.parse(str(node.value), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    checks, state.checks = state.checks, NONE
    try:
        return annotated(inner, state)
    finally:
        state.checks = checks


def _instance(value: Value | None, node: ast.AST, state: State) -> Value | None:
    """Value of an instance of a type."""
    if value is None:
        return None
    if value.kind == CLASS:
        return Value(INSTANCE, node=value.node, path=value.path)
    if value.kind != REFERENCE:
        return None
    known = state.imports.array_type(value.path)
    if known is not None:
        return Value(*known, node, ANNOTATED)
    if value.path == "torch.Size":
        return DIMENSIONS
    if value.path.startswith(("torch.nn.", "mlx.nn.")):
        return Value(INSTANCE, engine_of(value.path), node, ANNOTATED, path=value.path)
    return None


def _generic(node: ast.Subscript, state: State) -> Value | None:
    """Value that a generic type declares: ``Optional[Tensor]``, ``tuple[int, ...]``."""
    head = node.value
    name = state.path(head).rpartition(".")[2] or dotted(head).rpartition(".")[2]
    inner = node.slice
    parts = inner.elts if type(inner) is ast.Tuple else [inner]
    if not parts and name not in ("tuple", "Tuple"):
        return None
    if name in ("Optional", "Union"):
        found = annotated(parts[0], state)
        for part in parts[1:]:
            found = merged(found, annotated(part, state))
        return merged(found, NOTHING) if name == "Optional" else found
    if name in ("Annotated", "Final", "ClassVar", "Required", "NotRequired"):
        return annotated(parts[0], state)
    if name in ("tuple", "Tuple"):
        if len(parts) == 2 and type(parts[1]) is ast.Constant and parts[1].value is Ellipsis:
            return several(annotated(parts[0], state))
        items = tuple(annotated(part, state) for part in parts)
        if items and all(item is INT for item in items):
            return DIMENSIONS
        return Value(SEQUENCE, reason=ANNOTATED, items=items)
    if name in ("list", "List", "Sequence", "Iterable", "Iterator", "Collection", "Set", "set", "frozenset"):
        return several(annotated(parts[0], state))
    if state.path(head).startswith("jaxtyping."):
        return annotated(parts[0], state)
    return annotated(head, state) if name in ("NDArray", "ndarray", "Tensor", "Array") else None
