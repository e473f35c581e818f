"""Rewrite NumPy, torch or JAX code to ember operations.

NumPy code becomes code for EmberTensors (``ember_ml.nn.tensor``), whose operators, methods and indexing are NumPy's on
every engine. With ``--native``, and from torch and JAX, it becomes code for the engine's own tensors
(``ember_ml.ops``).

The fixes of the rules, unsafe ones included, are applied until nothing changes. Some rewrites are made only by a port:
methods become operations (``x.sum()``, ``ops.sum(x)``), ``np.array`` keeps making a copy, ``np.where(c)`` becomes
``ops.nonzero(c)``. Functions of Python numbers become those of ``math``. With native tensors, operators become
operations where a tensor may meet a NumPy array of the caller. Code that is not understood stays unchanged, and the
report lists it with its line, after the places whose behavior changes.
"""

from __future__ import annotations

import argparse
import ast
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import starmap
from typing import Any, NamedTuple

from emberlint import config as configuration
from emberlint import rules
from emberlint.codes import chosen_codes
from emberlint.commands.options import code_list
from emberlint.commands.status import ERROR, FOUND
from emberlint.config import EMBER_TENSORS, NAMESPACE, Config
from emberlint.findings import SAFE, UNSAFE, Edit, Finding, Fix
from emberlint.inference.callees import called, keyword, spreads
from emberlint.inference.checks import Check, Checks, Subscription
from emberlint.inference.file import File
from emberlint.inference.imports import Imports
from emberlint.inference.state import State
from emberlint.knowledge import catalogue
from emberlint.knowledge.engines import EMBER, engine_of
from emberlint.knowledge.operators import BINARY
from emberlint.knowledge.types import DTYPE, SCALAR, SEQUENCE
from emberlint.lint import fixes, linter, listing
from emberlint.lint.listing import Unread
from emberlint.lint.selection import about, subscriptions
from emberlint.rewrite import jax, methods, mixing, ufuncs
from emberlint.rewrite.behavior import (
    Behavior,
    Parameters,
    rejecting_functions,
    tensor_results,
    unknown_types,
    written_parameters,
)
from emberlint.rewrite.constants import array_constants, kept_nodes, tensor_constants, without_constants
from emberlint.rewrite.differences import is_repeatable, silent_differences
from emberlint.rewrite.elements import classes, dtype_test, sequence_test
from emberlint.rewrite.foreign import scipy_function
from emberlint.rewrite.functions import last_argument
from emberlint.rewrite.imports import import_name
from emberlint.rewrite.layouts import ordered_copy
from emberlint.rewrite.names import difference, operation_for, spelled
from emberlint.rewrite.safety import is_unsupported
from emberlint.rewrite.subclasses import class_view
from emberlint.rewrite.surroundings import callee, is_viewed
from emberlint.rules import Rule
from emberlint.source import files
from emberlint.source.modules import module_of
from emberlint.source.text import Source
from emberlint.source.tree import PARSE_ERRORS, parse
from emberlint.trial.commands import EXAMPLE, parsed
from emberlint.trial.errors import TrialError
from emberlint.trial.projects import Project, project_of, revision
from emberlint.trial.summaries import summary
from emberlint.trial.trials import Result, trial

# Rules whose fixes a port applies; those in _NAMED apply only to the names of the engine that is ported from.
FIXED = ("EMB101", "EMB102", "EMB103", "EMB104", "EMB105", "EMB106", "EMB306", "EMB307", "EMB310")
_NAMED = frozenset({"EMB102", "EMB103", "EMB104"})
# Rules whose findings are reported for a manual decision. Default dtypes and devices are not part of a port.
LEFT = ("EMB1", "EMB2", "EMB3", "EMB4")
_UNDECIDED = ("EMB313", "EMB314")
# Rules about what EmberTensors do as NumPy's arrays do, on every engine, and about speed alone.
_SETTLED = ("EMB2", "EMB301", "EMB302", "EMB305", "EMB306", "EMB309")
# Rules whose findings mark a site that depends on one engine.
_BOUND = ("EMB102", "EMB103", "EMB104", "EMB105", "EMB106", "EMB107", "EMB108", "EMB109", "EMB3")

# Rules whose findings are changes of behavior that raise no error.
_CHANGING = frozenset({"EMB302"})

PORT = Rule("EMB102", "port", "a rewrite that only a port makes")


class Ported(NamedTuple):
    """A ported file: its bytes before and after, the number of rewrites by rule, and the remaining findings.

    ``sites`` counts the places that involve arrays, ``bound`` those that depend on one engine; both before and after.
    """

    path: str
    before: bytes
    after: bytes
    rewritten: Counter[str]
    left: list[Finding]
    sites: tuple[int, int]
    bound: tuple[int, int]
    notes: Notes


class Notes(NamedTuple):
    """What may differ although the file runs.

    ``changes`` are places where results may be different, ``unknown`` calls on values whose type is not known,
    ``inputs`` functions that reject objects and text, ``results`` those that return tensors of the active backend.
    """

    changes: list[Finding]
    unknown: list[Finding]
    inputs: list[Finding]
    results: list[Finding]


class Others(NamedTuple):
    """What a file needs to know of the other files that are ported with it.

    ``taken`` are the names that they import from it, whose imports stay; ``*`` stands for all names. ``written`` are
    the parameters that their functions change in place, by the function's name.
    """

    taken: frozenset[str] = frozenset()
    written: Mapping[str, list[Parameters]] = {}


def ported(data: bytes, path: str, origin: str, config: Config, others: Others = Others()) -> Ported:  # noqa: B008
    """File content rewritten from an engine to ember."""
    module, package = module_of(path)
    before = data
    count: Counter[str] = Counter()
    # Which operands are tensors and which remain NumPy arrays is known after the calls have been rewritten.
    second = _ember_tensor_checks() if config.namespace == EMBER_TENSORS else _mixing_checks()
    kept: frozenset[str] = frozenset()
    if config.namespace == EMBER_TENSORS and origin == "numpy":
        kept = _kept(data, path, config, module, package, others.taken)
    first = _checks(origin, others.taken, kept)
    if config.namespace == EMBER_TENSORS and origin == "numpy":
        for rewrite in (class_view, dtype_test):
            data, changes = _walked(data, path, config, module, package, rewrite)
            count.update({PORT.code: changes} if changes else {})
    if origin == "jax":
        data, changes = _walked(data, path, config, module, package, jax.rewritten_node, jax.NODES)
        count.update({PORT.code: changes} if changes else {})
    stages = (first, second) if origin == "numpy" else (first,)
    for _ in range(fixes.ROUNDS):
        begun = data
        for checks in stages:
            begun, data = data, _fixed(data, path, config, checks, module, package, count)
        # What the second stage rewrites may show the first that more values are tensors.
        if data == begun:
            break
    if config.namespace == EMBER_TENSORS and origin == "numpy":
        for rewrite in (sequence_test, scipy_function, ordered_copy):
            data, changes = _walked(data, path, config, module, package, rewrite, kept=kept)
            count.update({PORT.code: changes} if changes else {})
    counts = [
        _counted(before, path, config, module, package),
        _counted(data, path, config, module, package, kept),
    ]
    places, needed, left = zip(*counts, strict=True)
    # A file that is ported already has the same notes as when it was rewritten.
    is_ported = data != before or (b"ember_ml" in data and all(one.code != "EMB001" for one in left[1]))
    notes = _noted(data, path, config, module, package, others, origin) if is_ported else Notes([], [], [], [])
    open_places = {(note.line, note.column) for note in (*notes.changes, *notes.unknown)}
    sites = len(places[0]), len(places[1] | open_places)
    bound = len(needed[0]), len(needed[1] | open_places)
    if data == before:
        sites, bound = (sites[1], sites[1]), (bound[1], bound[1])
    remaining = [*left[1], *_remaining(data, path, config, module, package, left[1])] if origin == "jax" else left[1]
    return Ported(path, before, data, count, remaining, sites, bound, notes)


def _kept(data: bytes, path: str, config: Config, module: str, package: str, taken: frozenset[str]) -> frozenset[str]:
    """Names of the constants of a file that stay NumPy arrays."""
    try:
        source = Source(data, path)
        tree = parse(source)
    except PARSE_ERRORS:
        return frozenset()
    state = State(source, tree, config, Checks(()), module=module, package=package, thorough=True, lenient=True)
    linter.visit(state)
    return array_constants(state, taken)


def _fixed(
    data: bytes, path: str, config: Config, checks: Checks, module: str, package: str, count: Counter[str]
) -> bytes:
    """File content with the fixes of some checks, applied until there are no more, and added to ``count``."""
    for _ in range(fixes.ROUNDS):
        findings, state = _read(data, path, config, checks, module, package)
        todo = [finding for finding in findings if finding.fix is not None and finding.fix.safety in (SAFE, UNSAFE)]
        if state is None or not todo:
            break
        text = state.source
        new, done = fixes.applied(text, todo)
        if not done or text.encode(new) == data:
            break
        data = text.encode(new)
        count.update(finding.code for finding in done)
    return data


def _remaining(
    data: bytes, path: str, config: Config, module: str, package: str, left: list[Finding]
) -> Iterator[Finding]:
    """Findings about what is left of JAX in a file, besides those of the rules."""
    try:
        source = Source(data, path)
        tree = parse(source)
    except PARSE_ERRORS:
        return
    state = State(source, tree, config, Checks(()), module=module, package=package, thorough=True, lenient=True)
    linter.visit(state)
    known = {(finding.line, finding.column) for finding in left}
    for node, message in jax.remaining(state):
        line, column = node.lineno, node.col_offset
        if (line, column) not in known:
            yield Finding(PORT.code, message, path, line, column, line, column)


def _noted(data: bytes, path: str, config: Config, module: str, package: str, others: Others, origin: str) -> Notes:
    """Notes about a ported file."""
    behavior = Behavior(wrapped=config.namespace == EMBER_TENSORS, written=others.written)
    source = Source(data, path)
    tree = parse(source)
    checks = Checks(behavior.checks())
    state = State(source, tree, config, checks, module=module, package=package, thorough=True, lenient=True)
    linter.visit(state)
    if origin == "jax":
        # JAX's arrays have no views and are not changed, its elements are arrays, and it rejects objects too.
        differences = [*jax.silent_differences(state), *tensor_constants(state, others.taken)]
        return Notes(differences, unknown_types(state), [], tensor_results(state))
    behavior.note_slices(state)
    found = [*behavior.findings(path), *silent_differences(state, origin), *tensor_constants(state, others.taken)]
    changes = sorted(found, key=lambda finding: finding.line)
    return Notes(changes, unknown_types(state), rejecting_functions(state), tensor_results(state))


def _read(
    data: bytes, path: str, config: Config, checks: Checks, module: str, package: str
) -> tuple[list[Finding], State | None]:
    """Findings of some checks in a file, and its state; the parse error and ``None`` if it does not parse."""
    try:
        text = Source(data, path)
        tree = parse(text)
    except PARSE_ERRORS as error:
        return [linter.parse_finding(error, path)], None
    state = State(text, tree, config, checks, module=module, package=package, lenient=True)
    return linter.visit(state), state


def _counted(
    data: bytes, path: str, config: Config, module: str, package: str, kept: frozenset[str] = frozenset()
) -> tuple[set[tuple[int, int]], set[tuple[int, int]], list[Finding]]:
    """Sites that involve arrays, those that depend on one engine, and the findings.

    The constants ``kept`` are NumPy arrays on purpose, and work on every engine.
    """
    places: set[tuple[int, int]] = set()
    needed: set[tuple[int, int]] = set()

    def note(node: Any, file: File) -> None:
        if called(node, file) is not None:
            places.add((node.lineno, node.col_offset))

    def constant(node: ast.Attribute, file: File) -> None:
        found = engine_of(file.path(node))
        if found and not file.is_called(node) and not _is_inner(node, file):
            places.add((node.lineno, node.col_offset))
            if found != EMBER and node not in kept_nodes(kept, file):
                needed.add((node.lineno, node.col_offset))

    def target(node: ast.Subscript, file: File) -> None:
        value = file.value(node.value)
        if value is not None and value.is_array:
            places.add((node.lineno, node.col_offset))

    codes = tuple(chosen_codes(LEFT, ()))
    counted = [(ast.Call, note), (ast.Attribute, constant), (ast.Subscript, target)]
    found = [one._replace(check=_outside(kept, one.check)) for one in subscriptions(about(codes, ""))]
    checks = Checks([*found, *starmap(Subscription, counted)])
    config = config._replace(select=LEFT, ignore=())
    findings, state = _read(data, path, config, checks, module, package)
    if state is not None:
        findings = without_constants(findings, state, kept)
    ignored = _UNDECIDED + _SETTLED if config.namespace == EMBER_TENSORS else _UNDECIDED
    findings = [finding for finding in findings if not finding.code.startswith(ignored)]
    bound = needed | {(f.line, f.column) for f in findings if f.code.startswith(_BOUND)}
    return places | bound, bound, findings


def _is_inner(node: ast.Attribute, file: File) -> bool:
    """Whether a name is the prefix of another: ``np.linalg`` in ``np.linalg.norm``."""
    return file.source.data[file.span(node)[1] :][:1] == b"."


def _checks(origin: str, taken: frozenset[str], kept: frozenset[str]) -> Checks:
    """Checks of a port from an engine, which leave the constants ``kept`` as they are."""
    in_place = [
        Subscription(ast.Expr, _filled),
        Subscription(ast.Expr, _sorted),
        Subscription(ast.Expr, _added(kept)),
        *(Subscription(kind, _written(origin)) for kind in (ast.Expr, ast.Assign, ast.Return)),
    ]
    found = [
        *([Subscription(ast.AugAssign, _rebound)] if origin == "jax" else in_place),
        Subscription(ast.Call, _special),
        Subscription(ast.Call, _method(origin)),
        Subscription(ast.Attribute, _property),
        Subscription(ast.Attribute, _passed(origin)),
        Subscription(ast.Subscript, _concatenation),
    ]
    for code in FIXED:
        for one in rules.load(code).checks:
            check = _of(origin, one.check) if code in _NAMED else _untaken(taken, one.check) if taken else one.check
            found.append(one._replace(check=check))
    return Checks(one._replace(check=_outside(kept, one.check)) for one in found)


def _outside(kept: frozenset[str], check: Check) -> Check:
    """Check that skips the expressions of constants that stay NumPy arrays."""
    if not kept:
        return check

    def checked(node: Any, file: File) -> None:
        if node not in kept_nodes(kept, file):
            check(node, file)

    return checked


def _untaken(taken: frozenset[str], check: Check) -> Check:
    """Check that skips the imports of names that other files take from the file."""

    def checked(node: Any, file: File) -> None:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            bound = {alias.asname or alias.name.partition(".")[0] for alias in node.names}
            if "*" in taken or bound & taken:
                return
        check(node, file)

    return checked


def _mixing_checks() -> Checks:
    """Checks of expressions that combine tensors with arrays that may belong to NumPy."""

    def by(rewrite: Callable[[Any, File], tuple[Edit, ...]], described: str) -> Check:
        def check(node: Any, file: File) -> None:
            edits = rewrite(node, file)
            if edits:
                file.report(PORT, node, described, fix=Fix(edits, UNSAFE, described))

        return check

    operator = by(mixing.operator, "call the operation")
    return Checks(
        [
            Subscription(ast.BinOp, operator),
            Subscription(ast.Compare, operator),
            Subscription(ast.Assign, by(mixing.assigned, "convert the value")),
            Subscription(ast.Subscript, by(mixing.indexed, "call `ops.index_get`")),
        ]
    )


def _ember_tensor_checks() -> Checks:
    """Checks of what NumPy's numbers and views do, and EmberTensors do not."""
    return Checks(
        [
            Subscription(ast.BinOp, _repeated),
            Subscription(ast.Assign, _chained),
            Subscription(ast.AugAssign, _chained),
        ]
    )


def _chained(node: ast.Assign | ast.AugAssign, file: File) -> None:
    """Rewrite ``x[i][j] = v``, which changes NumPy's ``x`` through the row ``x[i]``, to ``x[i, j] = v``."""
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        if not isinstance(target, ast.Subscript) or not isinstance(target.value, ast.Subscript):
            continue
        inner = target.value
        array, row = file.value(inner.value), file.value(inner.slice)
        if array is not None and array.is_array and row is not None and row.kind == SCALAR:
            text = f"{file.text(inner.value)}[{file.text(inner.slice)}, {file.text(target.slice)}]"
            fix = Fix((file.edit(target, text),), UNSAFE, "index once")
            file.report(PORT, target, "chained indices", fix=fix)


def _walked(
    data: bytes,
    path: str,
    config: Config,
    module: str,
    package: str,
    rewrite: Callable[[Any, File], tuple[Edit, ...]],
    kinds: tuple[type[ast.AST], ...] = (ast.Call,),
    kept: frozenset[str] = frozenset(),
) -> tuple[bytes, int]:
    """Content of a file after a rewrite of nodes, whatever is known of their parts, and the number of changes."""
    count = 0
    for _ in range(fixes.ROUNDS):
        try:
            text = Source(data, path)
            tree = parse(text)
        except PARSE_ERRORS:
            break
        # A pass with checks visits only calls that involve arrays.
        state = State(text, tree, config, Checks(()), module=module, package=package, thorough=True, lenient=True)
        linter.visit(state)
        nodes: list[Any] = [node for node in ast.walk(tree) if isinstance(node, kinds)]
        constants = kept_nodes(kept, state)
        todo = [
            Finding(
                PORT.code, "", path, node.lineno, node.col_offset, node.lineno, node.col_offset, Fix(edits, UNSAFE, "")
            )
            for node in nodes
            if node not in constants and (edits := rewrite(node, state))
        ]
        new, done = fixes.applied(text, todo)
        if not done:
            break
        data = text.encode(new)
        count += len(done)
    return data, count


def _repeated(node: ast.BinOp, file: File) -> None:
    """Rewrite ``[x] * n``: NumPy's integers repeat the list, tensors multiply its elements."""
    if type(node.op) is not ast.Mult:
        return
    for one, other in ((node.left, node.right), (node.right, node.left)):
        count = file.value(other)
        if is_repeatable(one) and count is not None and count.is_tensor and count.dtype != "float":
            fix = Fix((file.edit(other, f"int({file.text(other)})"),), UNSAFE, "convert the count to a Python number")
            file.report(PORT, node, "`*` of a list", fix=fix)


def _of(origin: str, check: Check) -> Check:
    """Check restricted to the names of one engine, without the calls that only a port rewrites."""

    def checked(node: Any, file: File) -> None:
        path = file.path(node.func if isinstance(node, ast.Call) else node)
        # NumPy's generator has a state that the program or its tests may seed; EMB312 reports these calls.
        if engine_of(path) != origin or path.startswith("numpy.random.") or node in classes(file):
            return
        if not (isinstance(node, ast.Call) and (_rewriting(node, path) or _is_viewed(node, path, file))):
            check(node, file)

    return checked


def _passed(origin: str) -> Check:
    """Check of functions passed as arguments: ``map(np.asarray, values)``."""

    def check(node: ast.Attribute, file: File) -> None:
        path = file.path(node)
        if engine_of(path) != origin or file.is_called(node) or _is_inner(node, file) or "numpy.random." in path:
            return
        operation = operation_for(path)
        if operation and not difference(path) and not _is_inspected(node, file):
            ops, imports = import_name(file.config.namespace, file)
            operation = "asarray" if operation == "array" else spelled(operation, file.config.namespace)
            fix = Fix((*imports, file.edit(node, f"{ops}.{operation}")), UNSAFE, f"pass `ops.{operation}`")
            file.report(PORT, node, f"`{file.text(node)}`", fix=fix)

    return check


def _is_inspected(node: ast.expr, file: File) -> bool:
    """Whether a function is passed to a function of ``inspect``, for its parameters or its source."""
    name = callee(node, file)
    return name.startswith("inspect.") or name.rpartition(".")[2] in ("signature", "getsource", "getfullargspec")


def _is_viewed(node: ast.Call, path: str, file: File) -> bool:
    """Whether an array of NumPy is viewed as a class or a dtype, which tensors cannot be."""
    return engine_of(path) == "numpy" and is_viewed(node, file)


def _rewriting(node: ast.Call, path: str) -> Callable[[ast.Call, File], Fix | None] | None:
    """Rewrite of a call that only a port makes, if there is one."""
    if path in ("numpy.array", "jax.numpy.array", "torch.tensor"):
        return _array
    if path in ("numpy.where", "jax.numpy.where") and len(node.args) == 1 and not node.keywords:
        return _nonzero
    return None


def _special(node: ast.Call, file: File) -> None:
    path = file.path(node.func)
    rewrite = _rewriting(node, path) if path and not _is_viewed(node, path, file) else None
    if rewrite is not None:
        file.report(PORT, node, f"`{file.text(node.func)}`", fix=rewrite(node, file))


def _array(node: ast.Call, file: File) -> Fix | None:
    """``np.array(x)``, which copies unless ``copy=False``; ``jnp.array(x)`` and ``torch.tensor(x)``."""
    if not node.args or len(node.args) > 2 or any(type(argument) is ast.Starred for argument in node.args):
        return None
    options = ("dtype", "device") if engine_of(file.path(node.func)) == "torch" else ("dtype", "copy")
    if any(keyword.arg not in options for keyword in node.keywords):
        return None
    dtypes = [*node.args[1:], *(keyword.value for keyword in node.keywords if keyword.arg == "dtype")]
    if is_unsupported(node.args[0], "TensorLike", file):
        return None
    if any(is_unsupported(dtype, "DTypeLike", file) for dtype in dtypes):
        return None
    if file.guarded and file.value(node.args[0]) is None and not _is_fresh(node.args[0], file):
        return None  # the program handles values that NumPy rejects, and tensors reject more of them
    ops, imports = import_name(file.config.namespace, file)
    edits = [*imports, file.edit(node.func, f"{ops}.asarray")]
    if len(node.args) == 2:
        start = file.span(node.args[1])[0]
        edits.append(Edit(start, start, "dtype="))
    copies = next((keyword for keyword in node.keywords if keyword.arg == "copy"), None)
    if copies is not None:
        # NumPy can honor ``copy=False``; another engine may have to copy.
        if type(copies.value) is ast.Constant and copies.value.value is False:
            edits.append(file.edit(copies.value, "None"))
    elif not _is_fresh(node.args[0], file):
        edits.append(last_argument(node, "copy=True", file))
    return Fix(tuple(edits), UNSAFE, "call `ops.asarray`")


def _is_fresh(node: ast.expr, file: File) -> bool:
    """Whether an expression creates a new object, so that no copy is needed."""
    if isinstance(node, (ast.List, ast.Tuple, ast.ListComp, ast.Constant, ast.BinOp)):
        return True
    value = file.value(node)
    return value is not None and value.kind in (SCALAR, SEQUENCE)


def _nonzero(node: ast.Call, file: File) -> Fix | None:
    ops, imports = import_name(file.config.namespace, file)
    return Fix((*imports, file.edit(node.func, f"{ops}.nonzero")), UNSAFE, "call `ops.nonzero`")


def _method(origin: str) -> Check:
    """Check of array methods that have an equivalent operation."""

    def check(node: ast.Call, file: File) -> None:
        function = node.func
        if type(function) is not ast.Attribute or file.path(function):
            return
        owner = file.value(function.value)
        if owner is None or not owner.is_array or owner.engine not in (origin, EMBER, ""):
            return
        found = methods.rewritten_method(node, owner, file, origin)
        if found is not None:
            fix = Fix(found.edits, UNSAFE, found.described)
            file.report(PORT, node, f"`.{function.attr}()`", fix=fix)

    return check


def _property(node: ast.Attribute, file: File) -> None:
    """Rewrite properties that engines define differently (``x.T``, ``x.size``), and NumPy's ``x.dtype.type``."""
    if node.attr == "type" and not file.is_called(node):
        dtype = file.value(node.value)
        if dtype is not None and dtype.kind == DTYPE:
            fix = Fix((file.edit(node, file.text(node.value)),), UNSAFE, "use the dtype itself")
            file.report(PORT, node, "`.dtype.type`", fix=fix)
        return
    if node.attr not in methods.PROPERTIES or type(node.ctx) is not ast.Load or file.is_called(node):
        return
    owner = file.value(node.value)
    if owner is None or not owner.is_array or (node.attr == "size" and owner.engine == "torch"):
        return
    if node.attr == "flat" and file.source.data[file.span(node)[1] :].lstrip()[:1] == b"[":
        return  # it may be an assignment target
    file.report(
        PORT, node, f"`.{node.attr}`", fix=Fix(methods.rewritten_property(node, file), UNSAFE, "call the operation")
    )


def _rebound(node: ast.AugAssign, file: File) -> None:
    """Rewrite ``x += v``, which makes a new array in JAX and changes those of NumPy and torch, to ``x = x + v``."""
    value = file.value(node.target)
    if isinstance(node.target, ast.Subscript) or value is None or not value.is_array:
        return
    target, given = file.text(node.target), file.text(node.value)
    plain = isinstance(node.value, (ast.Name, ast.Attribute, ast.Call, ast.Constant, ast.Subscript))
    text = f"{target} = {target} {BINARY[type(node.op)].sign} {given if plain else f'({given})'}"
    file.report(PORT, node, "augmented assignment", fix=Fix((file.edit(node, text),), UNSAFE, "assign"))


def _filled(node: ast.Expr, file: File) -> None:
    """Rewrite the statement ``x.fill(v)``, which only NumPy's arrays support, to an assignment."""
    call = node.value
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "fill":
        return
    owner = file.value(call.func.value)
    if owner is None or not owner.is_array or len(call.args) != 1 or call.keywords:
        return
    text = f"{file.text(call.func.value)}[...] = {file.text(call.args[0])}"
    file.report(PORT, node, "`.fill()`", fix=Fix((file.edit(node, text),), UNSAFE, "assign to all elements"))


def _sorted(node: ast.Expr, file: File) -> None:
    """Rewrite the statement ``x.sort()``, which sorts NumPy's arrays in place, to an assignment."""
    call = node.value
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "sort":
        return
    owner = file.value(call.func.value)
    axes = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg == "axis")]
    if owner is None or not owner.is_array or len(axes) > 1 or len(call.args) + len(call.keywords) != len(axes):
        return
    bound, imports = import_name(file.config.namespace, file)
    array = file.text(call.func.value)
    text = f"{array}[...] = {bound}.sort({', '.join([array, *(f'axis={file.text(axis)}' for axis in axes)])})"
    file.report(PORT, node, "`.sort()`", fix=Fix((*imports, file.edit(node, text)), UNSAFE, "assign to all elements"))


def _added(kept: frozenset[str]) -> Check:
    """Check of the statement ``np.add.at(x, i, v)``, which becomes an assignment to all elements."""

    def check(node: ast.Expr, file: File) -> None:
        edits = ufuncs.added(node, file, kept)
        if edits:
            file.report(PORT, node, "`np.add.at`", fix=Fix(edits, UNSAFE, "assign to all elements"))

    return check


def _written(origin: str) -> Check:
    """Check of statements that write into an array with ``out=``, which become assignments to all of its elements."""

    def check(node: ast.Expr | ast.Assign | ast.Return, file: File) -> None:
        call = node.value
        path = file.path(call.func) if isinstance(call, ast.Call) else ""
        if not isinstance(call, ast.Call) or engine_of(path) != origin or spreads(call):
            return
        out = _out(call, path)
        array = file.value(out) if out is not None else None
        if not isinstance(out, (ast.Name, ast.Attribute, ast.Subscript)) or (array is not None and not array.is_array):
            return
        alone, wrapped = isinstance(node, ast.Expr), file.config.namespace == EMBER_TENSORS
        # A result that is not used is written to an array; elsewhere, what is not known may be ``None``.
        known = array is not None and not array.nullable
        if not (known and (alone or wrapped)) and not (alone and wrapped and not isinstance(out, ast.Subscript)):
            return
        arguments = [one for one in call.args if one is not out]
        keywords = [one for one in call.keywords if one.value is not out]
        if any(one.arg == "where" for one in keywords) or out in call.args[:-1]:
            return
        owner = file.value(out.value) if isinstance(out, ast.Subscript) else None
        target = file.text(out) if owner is not None and owner.is_array else f"{file.text(out)}[...]"
        given = ", ".join(file.text(part) for part in (*arguments, *keywords))
        text = f"{target} = {file.text(call.func)}({given})"
        if not alone:
            start, _ = file.span(node)
            indent = file.source.data[file.source.starts[node.lineno - 1] : start]
            if indent.strip() or isinstance(out, ast.Subscript):
                return
            rest = file.source.data[start : file.span(call)[0]].decode()
            text += f"{file.source.newline}{indent.decode()}{rest}{file.text(out)}"
            if file.span(node)[1] != file.span(call)[1]:
                return  # the call is in parentheses
        file.report(PORT, node, "`out=`", fix=Fix((file.edit(node, text),), UNSAFE, "assign to all elements"))

    return check


def _out(node: ast.Call, path: str) -> ast.expr | None:
    """Argument of a call that its result is written into."""
    given = keyword(node, "out")
    place = catalogue.out_place(path)
    if given is not None:
        return given.value
    return node.args[place] if 0 <= place < len(node.args) else None


def _concatenation(node: ast.Subscript, file: File) -> None:
    """Rewrite ``np.r_[a, b]``, which concatenates numbers and vectors."""
    if file.path(node.value) != "numpy.r_":
        return
    parts = node.slice.elts if type(node.slice) is ast.Tuple else [node.slice]
    if any(isinstance(part, (ast.Slice, ast.Starred)) or _is_text(part) for part in parts):
        return
    ops, imports = import_name(file.config.namespace, file)
    texts = [f"{ops}.atleast_1d({file.text(part)})" for part in parts]
    text = texts[0] if len(texts) == 1 else f"{ops}.concat([{', '.join(texts)}])"
    fix = Fix((*imports, file.edit(node, text)), UNSAFE, "call `ops.concat`")
    file.report(PORT, node, "`np.r_`", fix=fix)


def _is_text(node: ast.expr) -> bool:
    return type(node) is ast.Constant and isinstance(node.value, str)


def port(
    paths: list[str], origin: str, config: Config, unread: list[Unread], *, tests: bool = False
) -> Iterator[Ported]:
    """Ported files under some paths; tests only with ``tests=True``.

    Paths that cannot be read are added to ``unread``.
    """
    found = {}
    for path in listing.files(paths, config, unread):
        try:
            found[path] = files.read(path)
        except OSError as error:
            unread.append(Unread(path, str(error.strerror)))
    taken, written = _shared(found)
    for path, data in found.items():
        if tests or not _is_test(path):
            yield ported(data, path, origin, config, Others(frozenset(taken.get(module_of(path)[0], ())), written))


def _shared(found: dict[str, bytes]) -> tuple[dict[str, set[str]], dict[str, list[Parameters]]]:
    """Names that files import, by module, and the parameters that functions change in place, by name."""
    taken: dict[str, set[str]] = {}
    written: dict[str, list[Parameters]] = {}
    for path, data in found.items():
        try:
            tree = parse(Source(data, path))
        except PARSE_ERRORS:
            continue  # it is reported when it is ported
        imports = Imports(*module_of(path), NAMESPACE)
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                taken.setdefault(imports.resolve(node), set()).update(alias.name for alias in node.names)
            elif isinstance(node, ast.FunctionDef) and (changed := written_parameters(node)).written:
                written.setdefault(node.name, []).append(changed)
    return taken, written


def _is_test(path: str) -> bool:
    *folders, name = path.replace(os.sep, "/").split("/")
    named = name.startswith("test_") or name.endswith("_test.py") or name in ("conftest.py", "tests.py")
    return named or "tests" in folders or "test" in folders


def share(done: list[Ported], place: int) -> float:
    """Fraction of sites that do not depend on one engine, before (0) or after (1) the port."""
    sites = sum(one.sites[place] for one in done)
    return 1 - sum(one.bound[place] for one in done) / sites if sites else 1.0


# The library that a port is from, as the report names it, and what holds for all of a ported program.
_LIBRARIES = {"numpy": "NumPy", "torch": "torch", "jax": "JAX"}
_CLOSING = {
    "numpy": (
        "Python floats, and arrays made without a dtype, are float32 in ember, and values that are assigned to such an "
        'array are rounded; call `ops.set_default_dtype("float64")` to keep NumPy\'s float64.',
    ),
    "jax": (
        "Python integers are int64 in ember, and int32 in JAX by default.",
        "An index that is out of bounds raises IndexError, where JAX moves it to the last element or drops the update.",
    ),
}


def report(done: list[Ported], tests: list[str] | None = None, origin: str = "numpy") -> str:
    """Report of a port: rewritten files, remaining findings, and the fraction of portable sites before and after.

    ``tests`` are the lines of the part about tests.
    """
    library = _LIBRARIES[origin]
    changed = [one for one in done if one.before != one.after]
    total: Counter[str] = sum((one.rewritten for one in done), Counter())
    lines = [f"{len(changed)} of {len(done)} files rewritten, {total.total()} changes."]
    behavior = [
        _line(finding)
        for one in done
        for finding in (*one.notes.changes, *(left for left in one.left if left.code in _CHANGING))
    ]
    lines += _section(
        f"Changes behavior ({len(behavior)}): results may differ from {library}'s or between engines, without an error",
        behavior,
    )
    remaining: dict[str, list[str]] = {}
    for one in done:
        for finding in one.left:
            if finding.code not in _CHANGING:
                remaining.setdefault(finding.code, []).append(_line(finding))
    if remaining:
        lines += ["", "To be decided by hand:"]
    for code, places in sorted(remaining.items()):
        lines.append(f"  {code} {rules.load(code).summary}: {len(places)}")
        lines += [f"    {place}" for place in places]
    unknown = [_line(finding) for one in done for finding in one.notes.unknown]
    lines += _section(f"Values of unknown types ({len(unknown)})", unknown)
    inputs = [_line(finding) for one in done for finding in one.notes.inputs]
    title = f"Functions that now reject objects, text, `Decimal` and rows of different lengths ({len(inputs)})"
    lines += _section(title, inputs)
    results = [_line(finding) for one in done for finding in one.notes.results]
    title = f"Functions that return tensors ({len(results)}): a caller that needs a NumPy array calls `ops.to_numpy`"
    lines += _section(title, results)
    before, after = share(done, 0), share(done, 1)
    sites = sum(one.sites[1] for one in done)
    lines += ["", f"Estimated portable sites: {before:.0%} before, {after:.0%} after ({sites} sites)."]
    if total:
        lines += _CLOSING.get(origin, ())
        lines.append(f"Engines round differently in the last digits, and the messages of errors are not {library}'s.")
    lines += tests or []
    return "\n".join(lines) + "\n"


def _line(finding: Finding) -> str:
    return f"{finding.path}:{finding.line}: {finding.message}"


def _section(title: str, places: list[str]) -> list[str]:
    """Lines of a part of the report; none if it has no entries."""
    return ["", f"{title}:", *(f"    {place}" for place in places)] if places else []


def check(
    paths: list[str],
    done: list[Ported],
    command: str,
    engines: list[str] | None = None,
    *,
    origin: str = "numpy",
    base: str = "",
) -> tuple[Result, list[str]]:
    """Result of a package's tests before and after its port, and the lines of the report about them.

    ``base`` is the git revision with the code before the port; by default, the port has not been written yet.
    """
    words = parsed(command)
    package = [one for one in done if not _is_test(one.path)]
    if not any(one.before != one.after for one in package) and not base:
        raise TrialError(
            "--check: the port changes no file; if the files are ported already, name the revision of git "
            "before that with --base"
        )
    project = project_of(paths, [one.path for one in package])
    names = {project.relative(one.path): one for one in done}
    original = {name: one.before for name, one in names.items()}
    if base:
        original = revision(project, base, list(original))
    dtype = "float64" if origin == "numpy" else "float32"
    result = trial(project, words, original, {name: one.after for name, one in names.items()}, engines, dtype)
    return result, summary(result, partial(_named, names, project))


def _named(names: Mapping[str, Ported], project: Project, file: str, line: int) -> tuple[str, str]:
    """Path of a file as the report has it, and what the report says about the statement at a line."""
    one = names.get(file)
    if one is None:
        return os.path.relpath(os.path.join(project.root, file)), ""
    lines = _statement(one.after, line)
    for finding in (*one.notes.changes, *one.left, *one.notes.unknown, *one.notes.inputs):
        if finding.line in lines:
            return one.path, _line(finding)
    return one.path, ""


def _statement(data: bytes, line: int) -> range:
    """Lines of the statement at a line; of a statement with a body, the line alone."""
    try:
        tree = ast.parse(data)
    except PARSE_ERRORS:
        return range(line, line + 1)
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and not hasattr(node, "body"):
            end = node.end_lineno or node.lineno
            if node.lineno <= line <= end:
                return range(node.lineno, end + 1)
    return range(line, line + 1)


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="emberlint port",
        description=(__doc__ or "").partition("\n")[0],
        epilog=f"example: emberlint port mypackage --from numpy --check {EXAMPLE}",
    )
    add = parser.add_argument
    add("paths", nargs="+", metavar="PATH", help="files and folders")
    add(
        "--from",
        dest="origin",
        required=True,
        choices=("numpy", "torch", "jax"),
        help="engine that the code is written for",
    )
    add(
        "--native",
        action="store_true",
        help="rewrite NumPy code to ember_ml.ops, whose results are the engine's own tensors, instead of EmberTensors",
    )
    add("--diff", action="store_true", help="show what would change, without changing files")
    add(
        "--tests",
        action="store_true",
        help="also port tests: files test_*.py, *_test.py and tests.py, and folders named tests",
    )
    add(
        "--check",
        metavar="COMMAND",
        help="run this pytest command before and after the port, in copies of the project, and report the cause of "
        "each test that no longer passes",
    )
    add(
        "--engines",
        type=code_list,
        metavar="ENGINE,...",
        help="engines to run the tests on, separated by commas (default: all that are installed)",
    )
    add(
        "--base",
        default="",
        metavar="REVISION",
        help="git revision before the port, for --check of files that are ported already",
    )
    options = parser.parse_args(arguments)
    if not options.check and (options.engines or options.base):
        parser.error("--engines and --base are options of --check")
    first = options.paths[0]
    folder = first if os.path.isdir(first) else os.path.dirname(first) or "."
    config = configuration.load(folder)
    if options.origin == "numpy" and not options.native and config.namespace == NAMESPACE:
        config = config._replace(namespace=EMBER_TENSORS)
    unread: list[Unread] = []
    done = list(port(options.paths, options.origin, config, unread, tests=options.tests))
    result: Result | None = None
    lines: list[str] = []
    if options.check:
        try:
            result, lines = check(
                options.paths, done, options.check, options.engines, origin=options.origin, base=options.base
            )
        except TrialError as error:
            sys.stderr.write(f"emberlint port: {error}\nno file was changed\n")
            return ERROR
    for one in done:
        if one.before == one.after:
            continue
        if options.diff:
            sys.stdout.write(_diff(one))
        else:
            files.write(one.path, one.after)
    sys.stdout.write(report(done, lines, options.origin))
    if unread:
        sys.stderr.write("".join(path.warning() for path in unread))
        return ERROR
    if result is not None and result.failures:
        return FOUND
    return int(any(finding.code == "EMB001" for one in done for finding in one.left))


def _diff(one: Ported) -> str:
    import difflib

    old, new = (data.decode(errors="replace").splitlines(keepends=True) for data in (one.before, one.after))
    return "".join(
        line if line.endswith("\n") else line + "\n" for line in difflib.unified_diff(old, new, one.path, one.path)
    )
