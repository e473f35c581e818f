"""Traversal of a file: module-level statements first, then the relevant functions."""

from __future__ import annotations

import ast

from emberlint.findings import Finding, by_place
from emberlint.inference import blocks, calls, classes, expressions, functions, parameters, statements
from emberlint.inference.interest import Places
from emberlint.inference.scopes import Body
from emberlint.inference.state import State
from emberlint.inference.targets import forget
from emberlint.inference.visitors import EXECUTE
from emberlint.knowledge.types import ARRAYS, INSTANCE, REFERENCE

# Importing these modules fills the tables of ``visitors``.
TABLES = (blocks, calls, classes, expressions, functions, statements)

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_VISITED = frozenset({ast.Import, ast.ImportFrom, ast.ClassDef, *_FUNCTIONS})


def run(state: State) -> list[Finding]:
    """Findings in a file, in the order of their location."""
    interest = state.interest
    interest.read(state.config.namespace, state.checks, state.allowed is None)
    skipped = _module(state)
    fresh: Places | None = None
    while True:
        skipped += _functions(state, fresh)
        if not interest.fresh or not skipped:
            break
        fresh = interest.places(name.encode() for name in interest.fresh)
        interest.fresh = set()
        skipped = _again(skipped, fresh, state)
    state.findings.sort(key=by_place)
    return state.findings


def _module(state: State) -> list[Body]:
    """Visit the relevant statements of a module, and return the skipped ones."""
    skipped = []
    for statement in state.tree.body:
        kind = type(statement)
        if kind in _VISITED or state.interest.touches(statement):
            EXECUTE[kind](statement, state)
        else:
            if isinstance(statement, ast.Assign):
                for target in statement.targets:
                    forget(target, state)
            skipped.append(Body(statement, (state.env,)))
    for name, value in state.env.items():
        if value is not None and (
            value.kind in ARRAYS or value.kind == INSTANCE or (value.kind == REFERENCE and value.relevant)
        ):
            state.interest.note(name, value)
    return skipped


def _functions(state: State, fresh: Places | None) -> list[Body]:
    """Visit the relevant pending functions, and return the skipped ones.

    ``fresh`` are the offsets of the names that make a function relevant; ``None`` the first time, when the imports
    determine that.
    """
    skipped = []
    known, touches, pending = state.functions, state.interest.touches, state.pending
    for body in pending:  # the loop appends to it
        node, _, _ = body
        if node in known.results or node in known.open:
            continue
        if node not in known.deferred and parameters.is_helper(node.name, state):
            # Its only call determines its parameters, so the calling function is visited first.
            known.deferred.add(node)
            pending.append(body)
        elif touches(node) if fresh is None else fresh.are_in(node):
            functions.enter(body, state)
        else:
            skipped.append(body)
    pending.clear()
    return skipped


def _again(skipped: list[Body], fresh: Places, state: State) -> list[Body]:
    """Revisit skipped statements now that more names are relevant, and return those that are still skipped."""
    left = []
    for body in skipped:
        if isinstance(body.node, _FUNCTIONS):
            state.pending.append(body)
        elif fresh.are_in(body.node):
            state.env, state.outer = body.outer[0], ()
            EXECUTE[type(body.node)](body.node, state)
        else:
            left.append(body)
    return left
