"""The way through a file: the module first, then the functions that are worth a visit."""

from __future__ import annotations

import ast

from emberlint.findings import Finding, by_place
from emberlint.inference import blocks, calls, classes, expressions, functions, parameters, statements
from emberlint.inference.file import File
from emberlint.inference.interest import Places
from emberlint.inference.scopes import Body
from emberlint.inference.targets import forget
from emberlint.inference.visitors import EXECUTE
from emberlint.knowledge.types import ARRAYS, INSTANCE, REFERENCE

# These fill the tables of ``visitors``.
TABLES = (blocks, calls, classes, expressions, functions, statements)

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_VISITED = frozenset({ast.Import, ast.ImportFrom, ast.ClassDef, *_FUNCTIONS})


def run(file: File) -> list[Finding]:
    """The findings in a file, in the order of their places."""
    interest = file.interest
    interest.read(file.config.namespace, file.checks, file.allowed is None)
    skipped = _module(file)
    fresh: Places | None = None
    while True:
        skipped += _functions(file, fresh)
        if not interest.fresh or not skipped:
            break
        fresh = interest.places(name.encode() for name in interest.fresh)
        interest.fresh = set()
        skipped = _again(skipped, fresh, file)
    file.findings.sort(key=by_place)
    return file.findings


def _module(file: File) -> list[Body]:
    """Visit the statements of a module; those that are passed by."""
    skipped = []
    for statement in file.tree.body:
        kind = type(statement)
        if kind in _VISITED or file.interest.touches(statement):
            EXECUTE[kind](statement, file)
        else:
            if isinstance(statement, ast.Assign):
                for target in statement.targets:
                    forget(target, file)
            skipped.append(Body(statement, (file.env,)))
    for name, value in file.env.items():
        if value is not None and (
            value.kind in ARRAYS or value.kind == INSTANCE or (value.kind == REFERENCE and value.hot)
        ):
            file.interest.note(name, value)
    return skipped


def _functions(file: File, fresh: Places | None) -> list[Body]:
    """Visit the functions that wait; those that are passed by.

    ``fresh`` are the places that make one worth a visit; ``None`` the first time, when the imports say that.
    """
    skipped = []
    known, touches, pending = file.functions, file.interest.touches, file.pending
    for body in pending:  # which grows on the way
        node, _, _ = body
        if node in known.answers or node in known.open:
            continue
        if node not in known.deferred and parameters.is_helper(node.name, file):
            # Its one call, somewhere below, tells what its parameters are.
            known.deferred.add(node)
            pending.append(body)
        elif touches(node) if fresh is None else fresh.are_in(node):
            functions.enter(body, file)
        else:
            skipped.append(body)
    pending.clear()
    return skipped


def _again(skipped: list[Body], fresh: Places, file: File) -> list[Body]:
    """Take up what was passed by, now that more names are of interest; what still is."""
    left = []
    for body in skipped:
        if isinstance(body.node, _FUNCTIONS):
            file.pending.append(body)
        elif fresh.are_in(body.node):
            file.env, file.outer = body.outer[0], ()
            EXECUTE[type(body.node)](body.node, file)
        else:
            left.append(body)
    return left
