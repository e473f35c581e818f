"""Places of a ported file that may behave differently, although nothing raises where they are.

NumPy and torch share memory between an array and its views, MLX does not; an element of a NumPy array is a copy, an
element of a torch tensor is a view. So the engines differ where an array is changed in place after it, or a view of it,
was returned or stored. A part of an EmberTensor is never a view, on any engine: a change in place of the part, or of
the whole, does not show in the other.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from emberlint.config import EMBER_TENSORS
from emberlint.findings import Finding
from emberlint.inference.checks import Subscription
from emberlint.inference.file import File
from emberlint.inference.state import State
from emberlint.inference.values import ELEMENT, Value
from emberlint.knowledge.engines import EMBER, engine_of
from emberlint.knowledge.returns import words
from emberlint.knowledge.types import FUNCTION, INSTANCE, SCALAR, SEQUENCE
from emberlint.rewrite.differences import shortened
from emberlint.rewrite.mixing import may_reject
from emberlint.source.tree import dotted

# Operations whose result may share memory with their argument.
_VIEWS = words(
    """
    asarray atleast_1d atleast_2d atleast_3d broadcast_to diagonal expand_dims flip imag matrix_transpose moveaxis
    permute_dims ravel real reshape squeeze swapaxes transpose
    """
)
# Properties that are views.
_PARTS = words("T mT real imag flat")
_STORING = words("append add appendleft extend insert setdefault")
# Methods that only arrays have, or that tensors lack.
_METHODS = words(
    """
    argmax argmin argsort astype clip conj copy cumprod cumsum diagonal dot fill flatten nonzero ptp ravel repeat
    reshape round searchsorted squeeze std swapaxes tobytes tolist trace transpose var
    """
)
# Attributes that only NumPy's arrays and dtypes have.
_ATTRIBUTES = words("strides flat flags base ctypes itemset")
_DTYPE_ATTRIBUTES = words("kind char names fields type descr byteorder num str subdtype")
_RANDOM = words("choice permutation permuted shuffle")
# Methods of NumPy's arrays that EmberTensors do not have, and few other objects.
_MISSING = words("byteswap choose compress fill newbyteorder setflags tobytes tofile view")
_STANDARD = sys.stdlib_module_names
_SHARED = words("copy index count round repeat clip tolist")


class _Place(NamedTuple):
    """A place where an array, or a part of it, is stored, returned or changed."""

    line: int
    column: int
    text: str
    how: str
    part: bool
    view: bool = False


class _Bound(NamedTuple):
    """A variable that holds a view of an array, or an element of it."""

    name: str
    place: _Place
    function: ast.AST | None


class Parameters(NamedTuple):
    """Names of the parameters of a function, and of those whose arrays it changes in place."""

    names: list[str]
    written: set[str]


class Behavior:
    """Notes about a ported file, made while it is visited.

    ``wrapped`` says that tensors are EmberTensors; ``written`` has the parameters that functions of other files change
    in place.
    """

    def __init__(self, wrapped: bool = False, written: Mapping[str, list[Parameters]] | None = None) -> None:
        self.wrapped = wrapped
        self.written = written or {}
        self.kept: dict[tuple[ast.AST | None, str], list[_Place]] = {}
        self.bound: dict[tuple[ast.AST | None, str], list[_Bound]] = {}
        self.changed: dict[tuple[ast.AST | None, str], list[_Place]] = {}
        # Variables that are slices of values of unknown types.
        self.slices: dict[tuple[ast.AST | None, str], str] = {}
        self.changes: list[tuple[int, int, str]] = []

    def checks(self) -> list[Subscription]:
        """Checks that make the notes."""
        return [
            Subscription(ast.Assign, self._assigned),
            Subscription(ast.AugAssign, self._augmented),
            Subscription(ast.Return, self._returned),
            Subscription(ast.Call, self._called),
        ]

    def note_slices(self, state: State) -> None:
        """Note slices of values of unknown types that are passed to functions that change their arguments in place."""
        for (function, name), owner in self.slices.items():
            for node in ast.walk(function) if function is not None else ():
                if not isinstance(node, ast.Call):
                    continue
                called = dotted(node.func).rpartition(".")[2]
                for names, written in self.written.get(called, ()):
                    given = zip(names[len(names) - len(node.args) :], node.args, strict=False)
                    if any(part in written and isinstance(one, ast.Name) and one.id == name for part, one in given):
                        text = f"`{shortened(state.text(node))}` changes `{name}`, a slice of `{owner}`"
                        message = f"{text}; if that is a tensor, it does not change"
                        self.changes.append((node.lineno, node.col_offset, message))

    def findings(self, path: str) -> list[Finding]:
        """Changes of behavior that were noted."""
        found = {*self.changes, *self._stored_then_changed(), *self._read_after_a_change()}
        return [_finding(path, *one) for one in sorted(found)]

    def _stored_then_changed(self) -> Iterator[tuple[int, int, str]]:
        for key, writes in self.changed.items():
            for kept in self.kept.get(key, ()):
                if not self.wrapped or (kept.view and not kept.part):
                    written = f"`{key[1]}` is changed in place (line {_lines(writes)}, `{writes[0].text}`)"
                    why = self._difference(key[1], kept)
                    yield kept.line, kept.column, f"`{kept.text}` is {kept.how}, and {written}: {why}"

    def _read_after_a_change(self) -> Iterator[tuple[int, int, str]]:
        for key, writes in self.changed.items():
            for bound in self.bound.get(key, ()):
                if self.wrapped and bound.place.part:
                    continue
                later = [write for write in writes if write.line > bound.place.line]
                if later and _is_read(bound.name, bound.function, later[0].line):
                    written = f"`{key[1]}` is changed in place (line {_lines(later)}, `{later[0].text}`)"
                    why = self._difference(key[1], bound.place)
                    message = f"`{bound.name}` is `{bound.place.text}`, which is read after {written}: {why}"
                    yield bound.place.line, bound.place.column, message

    def _difference(self, name: str, place: _Place) -> str:
        """What becomes of a part of an array after the array was changed."""
        if self.wrapped:
            return f"in NumPy it changes with `{name}`, of an EmberTensor it does not"
        if place.part:
            return f"on torch it changes with `{name}`, on NumPy and MLX it does not"
        return f"on NumPy and torch it changes with `{name}`, on MLX it may not"

    def _assigned(self, node: ast.Assign, file: File) -> None:
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                self._write(target.value, node, file)
                if _is_container(target.value, file):
                    self._keep(node.value, "stored", file)
            elif isinstance(target, ast.Attribute):
                self._keep(node.value, "stored", file)
            elif isinstance(target, ast.Name):
                self._bind(target.id, node.value, file)

    def _augmented(self, node: ast.AugAssign, file: File) -> None:
        target = node.target
        value = file.value(target)
        if isinstance(target, ast.Subscript):
            self._write(target.value, node, file)
        elif value is not None and value.is_array:
            self._write(target, node, file)

    def _returned(self, node: ast.Return, file: File) -> None:
        if node.value is None:
            return
        for part in node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]:
            value = file.value(part)
            if value is not None and value.is_array:
                self._keep(part, "returned", file)

    def _called(self, node: ast.Call, file: File) -> None:
        function = node.func
        self._pass(node, file)
        if isinstance(function, ast.Attribute) and function.attr == "shuffle" and node.args and not self.wrapped:
            value = file.value(node.args[0])
            if value is not None and value.is_tensor:
                message = f"`{shortened(file.text(node))}` shuffles a copy of the tensor, and not the tensor"
                self.changes.append((node.lineno, node.col_offset, message))
        if isinstance(function, ast.Attribute) and not file.path(function):
            if function.attr in _STORING:
                for argument in node.args:
                    self._keep(argument, "stored", file)
            elif function.attr == "fill":
                self._write(function.value, node, file)

    def _write(self, base: ast.expr, node: Any, file: File) -> None:
        """Note a change in place of an array."""
        value = file.value(base)
        text = shortened(file.text(node))
        if value is None and self.wrapped and _is_part(base, file):
            message = (
                f"`{text}` changes a part of an array; if `{file.text(base.value)}` is a tensor, it does not change"  # type: ignore[attr-defined]
            )
            self.changes.append((node.lineno, node.col_offset, message))
        sliced = self._sliced(base, file)
        if value is None and sliced:
            message = f"`{text}` changes a slice of `{sliced}`; if that is a tensor, it does not change"
            self.changes.append((node.lineno, node.col_offset, message))
        if value is None or not value.is_array:
            return
        name = _named(base)
        if name:
            place = _Place(node.lineno, node.col_offset, text, "changed", False)
            self.changed.setdefault((_scope(base, file), name), []).append(place)
        viewed = _viewed(base, file)
        given = _converted_argument(base, file) if self.wrapped else ""
        if given:
            message = f"`{text}` changes the caller's `{given}` in NumPy if it is an array, and now changes a copy"
            self.changes.append((node.lineno, node.col_offset, message))
        elif viewed:
            message = f"`{text}` writes through a view of `{viewed}`, which changes {self._engines()}"
            self.changes.append((node.lineno, node.col_offset, message))

    def _bind(self, name: str, node: ast.expr, file: File) -> None:
        """Note that a variable is a view or an element of an array."""
        value = file.value(node)
        if self.wrapped and isinstance(node, ast.Subscript) and file.value(node.value) is None and _has_slice(node):
            self.slices[file.function, name] = file.text(node.value)
        if value is None or not value.is_array or not (isinstance(node, ast.Subscript) or _is_view(node, file)):
            return
        base, element = _base(node, file)
        owner = _named(base)
        if owner and owner != name and _is_view_of(node, file):
            place = _Place(node.lineno, node.col_offset, shortened(file.text(node)), "", element, True)
            self.bound.setdefault((_scope(base, file), owner), []).append(_Bound(name, place, file.function))

    def _pass(self, node: ast.Call, file: File) -> None:
        """Note that a view is passed to a function that changes its argument in place."""
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        path = file.path(function)
        if engine_of(path) or (path and path.partition(".")[0] in _STANDARD):
            return
        target = file.value(function)
        if target is not None and target.kind == FUNCTION and isinstance(target.node, ast.FunctionDef):
            candidates = [written_parameters(target.node)]
        else:
            candidates = self.written.get(path.rpartition(".")[2] or name, [])
        for names, written in candidates:
            is_method = isinstance(function, ast.Attribute) and not path
            given = [*zip(names[is_method:], node.args, strict=False), *((k.arg, k.value) for k in node.keywords)]
            for parameter, argument in given:
                viewed = "" if parameter not in written or isinstance(argument, ast.Name) else _viewed(argument, file)
                if viewed:
                    text = f"`{shortened(file.text(node))}` changes its argument `{parameter}` and with it `{viewed}`"
                    self.changes.append((node.lineno, node.col_offset, f"{text} {self._engines()}"))

    def _sliced(self, node: ast.expr, file: File) -> str:
        """Text of the value of unknown type that a variable is a slice of."""
        return self.slices.get((file.function, node.id), "") if isinstance(node, ast.Name) else ""

    def _engines(self) -> str:
        """Where a change of a view changes the array."""
        return "in NumPy, but not with EmberTensors" if self.wrapped else "on NumPy and torch, but not on MLX"

    def _keep(self, node: ast.expr, how: str, file: File) -> None:
        """Note that an array, a view or an element of it is stored or returned."""
        for part in node.elts if isinstance(node, (ast.Tuple, ast.List)) else [node]:
            value = file.value(part)
            if value is None or not value.is_array:
                continue
            base, element = _base(part, file)
            name = _named(base)
            if name and not (isinstance(part, ast.Name) and isinstance(base, ast.Name) and how == "returned"):
                view = base is not part and _is_view_of(part, file)
                place = _Place(part.lineno, part.col_offset, shortened(file.text(part)), how, element, view)
                self.kept.setdefault((_scope(base, file), name), []).append(place)


def _base(node: ast.expr, file: File) -> tuple[ast.expr, bool]:
    """Array that an expression is a view or an element of, and whether it may be an element."""
    element = False
    while isinstance(node, ast.Subscript) or _is_view(node, file):
        if isinstance(node, ast.Subscript):
            # One number may be the index of a row.
            element = element or (_is_element(node, file) and not _is_matrix(node, file))
            node = node.value
        else:
            node = node.args[0]  # type: ignore[attr-defined]
    return node, element


def _is_matrix(node: ast.Subscript, file: File) -> bool:
    """Whether one index is given of an array that has two somewhere in the function."""
    if isinstance(node.slice, ast.Tuple) or file.function is None:
        return False
    name = _named(node.value)
    return bool(name) and name in file.shared(f"matrices {file.function.lineno}", lambda: _matrices(file.function))


def _matrices(function: ast.AST | None) -> set[str]:
    """Names of the arrays of a function that are indexed with two or more indices."""
    return {
        dotted(node.value)
        for node in ast.walk(function or ast.Module([], []))
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple) and len(node.slice.elts) > 1
    }


def _is_view_of(node: ast.expr, file: File) -> bool:
    """Whether NumPy makes a view for an expression: no index on the way is an array."""
    while isinstance(node, ast.Subscript) or _is_view(node, file):
        if isinstance(node, ast.Subscript):
            if not _is_slice(node, file):
                return False
            node = node.value
        else:
            node = node.args[0]  # type: ignore[attr-defined]
    return True


def _has_slice(node: ast.Subscript) -> bool:
    """Whether an index has a slice."""
    return any(isinstance(part, ast.Slice) for part in _parts(node))


def _parts(node: ast.Subscript) -> list[ast.expr]:
    """Indices of a subscript."""
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def _is_part(node: ast.expr, file: File) -> bool:
    """Whether an expression of unknown type is a part of what may be an array: ``x.T``, or ``x[i]`` of an argument."""
    if isinstance(node, ast.Attribute):
        return node.attr in _PARTS
    if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
        return False
    return file.value(node.value) is None and node.value.id in _parameter_names(file)


def _parameter_names(file: File) -> set[str]:
    """Names of the parameters of the function that is visited."""
    if file.function is None:
        return set()
    arguments = file.function.args
    return {argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}


def _converted_argument(base: ast.expr, file: File) -> str:
    """Argument that a variable was converted from without a copy, if it is an array: ``x = ops.asarray(x)``."""
    value = file.value(base)
    node = value.node if value is not None else None
    if not isinstance(base, ast.Name) or not isinstance(node, ast.Call) or not _is_view(node, file):
        return ""
    argument = node.args[0]
    is_parameter = isinstance(argument, ast.Name) and argument.id in _parameter_names(file)
    return file.text(argument) if is_parameter else ""


def written_parameters(function: ast.FunctionDef) -> Parameters:
    """Parameters whose arrays a function changes in place."""
    arguments = function.args
    positional = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    names = {*positional, *(argument.arg for argument in arguments.kwonlyargs)}
    written = set()
    for node in ast.walk(function):
        if isinstance(node, ast.AugAssign):
            base = node.target.value if isinstance(node.target, ast.Subscript) else node.target
            written |= {base.id} if isinstance(base, ast.Name) else set()
        elif isinstance(node, ast.Assign):
            bases = [target.value for target in node.targets if isinstance(target, ast.Subscript)]
            written |= {base.id for base in bases if isinstance(base, ast.Name)}
    return Parameters(positional, written & names)


def _is_read(name: str, function: ast.AST | None, line: int) -> bool:
    """Whether a function reads a variable after a line."""
    return function is not None and any(
        isinstance(node, ast.Name) and node.id == name and type(node.ctx) is ast.Load and node.lineno > line
        for node in ast.walk(function)
    )


def _lines(places: list[_Place]) -> str:
    return ", ".join(str(one.line) for one in places[:5])


def unknown_types(state: State) -> list[Finding]:
    """Calls and attributes that fail on tensors, or for some values, where the types of the values are not known."""
    found = [
        _finding(
            state.source.path,
            node.lineno,
            node.col_offset,
            f"`{shortened(state.text(node.func))}()` is inherited from another module, and may get a tensor",
        )
        for node in _inherited_calls(state.tree)
    ]
    assigned: set[ast.AST] = set()
    for node in ast.walk(state.tree):
        message = ""
        if isinstance(node, ast.Call):
            message = _call_note(node, state)
        elif isinstance(node, ast.Assign) and _is_wrapped(state):
            message = _assignment_note(node, state, assigned)
        elif isinstance(node, ast.Attribute) and type(node.ctx) is ast.Load:
            message = _attribute_note(node, state)
        elif isinstance(node, ast.AugAssign) and not _is_wrapped(state) and may_reject(node, state):
            message = f"`{shortened(state.text(node))}` raises on torch if `{state.text(node.target)}` is a NumPy array"
        if message:
            found.append(_finding(state.source.path, node.lineno, node.col_offset, message))  # type: ignore[attr-defined]
    return sorted(found, key=lambda finding: finding.line)


# Operations whose results have the dtype of an argument.
_KEPT = words(
    """
    abs asarray atleast_1d atleast_2d clip copy diag empty_like flip full full_like ones_like ravel reshape round sign
    sort stack tile transpose where zeros_like
    """
)


def _assignment_note(node: ast.Assign, state: State, assigned: set[ast.AST]) -> str:
    """Note about the first assignment to elements of an array that may hold integers, of what may be floats."""
    target, given = node.targets[0], state.value(node.value)
    if not isinstance(target, ast.Subscript) or (given is not None and given.dtype in ("int", "bool")):
        return ""
    array = state.value(target.value)
    created = array.node if array is not None else None
    if array is None or not array.is_tensor or created is None or created in assigned:
        return ""
    is_kept = isinstance(created, ast.Call) and state.path(created.func).rpartition(".")[2] in _KEPT
    has_dtype = isinstance(created, ast.Call) and any(keyword.arg == "dtype" for keyword in created.keywords)
    if array.dtype not in ("int", "bool") and (array.dtype is not None or not is_kept or has_dtype):
        return ""
    assigned.add(created)
    name = state.text(target.value)
    return f"`{shortened(state.text(node))}` raises for floats if `{name}` holds integers, where NumPy truncates them"


def _call_note(node: ast.Call, state: State) -> str:
    function = node.func
    path = state.path(function)
    text = shortened(state.text(function))
    values = [state.value(argument) for argument in node.args]
    tensors = any(value is not None and value.is_tensor for value in values)
    wrapped = _is_wrapped(state)
    if tensors and not wrapped and state.is_builtin(function, "round"):
        return f"`{shortened(state.text(node))}` raises for a tensor of torch or MLX; use `ops.round`"
    if wrapped and path.startswith("math.") and None in values:
        return (
            f"`{shortened(state.text(node))}` raises for a tensor of one element that has an axis; NumPy's converts it"
        )
    if tensors and _is_of_another_library(path, state):
        return f"`{text}()` of another library gets a tensor of the active backend"
    if not isinstance(function, ast.Attribute) or path:
        return ""
    if wrapped:
        missing = function.attr in _MISSING and state.value(function.value) is None
        return f"`{text}()`: EmberTensors have no `.{function.attr}()`" if missing else ""
    if function.attr in _METHODS and state.value(function.value) is None:
        other = ", if it is not a list or another object" if function.attr in _SHARED else ""
        return f"`{text}()`: it may be an array; tensors need the operation{other}"
    if function.attr in _RANDOM and node.args:
        return f"`{text}()` of NumPy's generator gets a tensor, or an array that may be one"
    return ""


def _is_wrapped(state: State) -> bool:
    """Whether the tensors of a file are EmberTensors."""
    return state.config.namespace == EMBER_TENSORS


def _is_of_another_library(path: str, state: State) -> bool:
    """Whether a function is imported from another package that is not an engine or part of Python."""
    root = path.partition(".")[0]
    return bool(root) and not engine_of(path) and root != state.module.partition(".")[0] and root not in _STANDARD


def _inherited_calls(tree: ast.Module) -> Iterator[ast.Call]:
    """Calls with arguments of methods of ``self`` that a class of the file inherits from another module."""
    classes = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    for klass in classes.values():
        if not _has_outer_base(klass, classes):
            continue
        own = {node.name for node in ast.walk(klass) if isinstance(node, ast.FunctionDef)}
        own |= {
            node.attr for node in ast.walk(klass) if isinstance(node, ast.Attribute) and type(node.ctx) is ast.Store
        }
        for node in ast.walk(klass):
            if isinstance(node, ast.Call) and node.args and isinstance(node.func, ast.Attribute):
                owner = node.func.value
                if isinstance(owner, ast.Name) and owner.id == "self" and node.func.attr not in own:
                    yield node


def _has_outer_base(klass: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> bool:
    """Whether a class has a base class that is neither ``object`` nor a class of its file."""
    return any(dotted(base) not in ("object", *classes) for base in klass.bases)


def rejecting_functions(state: State) -> list[Finding]:
    """Functions that pass values of unknown types to operations, which raise where NumPy makes arrays of objects."""
    found = []
    for function in ast.walk(state.tree):
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        lines = sorted({node.lineno for node in _own_calls(function) if _passes_unknown(node, state)})
        if lines:
            message = (
                f"`{function.name}` passes values of unknown types to operations (line {', '.join(map(str, lines))})"
            )
            found.append(_finding(state.source.path, function.lineno, function.col_offset, message))
    return sorted(found, key=lambda finding: finding.line)


def _own_calls(function: ast.AST) -> Iterator[ast.Call]:
    """Calls of a function, without those of the functions inside of it."""
    stack = list(ast.iter_child_nodes(function))
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Call):
            yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            stack += ast.iter_child_nodes(node)


def _passes_unknown(node: ast.Call, state: State) -> bool:
    """Whether a call passes a value of unknown type to an operation, also as in ``map(ops.asarray, values)``."""
    parts = [node.func, *node.args]
    if not any(engine_of(state.path(part)) == EMBER for part in parts):
        return False
    return any(_may_be_object(part, state) for part in node.args)


def _may_be_object(node: ast.expr, state: State) -> bool:
    """Whether an expression may be an object that is no number, array or option."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return any(_may_be_object(part, state) for part in node.elts)
    if isinstance(node, ast.BinOp):
        return _may_be_object(node.left, state) or _may_be_object(node.right, state)
    return not isinstance(node, (ast.Constant, ast.Compare, ast.Lambda)) and state.value(node) is None


def _attribute_note(node: ast.Attribute, state: State) -> str:
    if node.attr in _ATTRIBUTES and not state.path(node) and not (node.attr == "flat" and _is_wrapped(state)):
        return f"`{shortened(state.text(node))}`: tensors of other engines have no `.{node.attr}`"
    of_dtype = isinstance(node.value, ast.Attribute) and node.value.attr == "dtype"
    if node.attr in _DTYPE_ATTRIBUTES and of_dtype and not (node.attr == "kind" and _is_wrapped(state)):
        return f"`{shortened(state.text(node))}`: dtypes of other engines have no `.{node.attr}`; use `ops.isdtype`"
    is_missing = node.attr in ("size", "T") and not _is_wrapped(state)
    if is_missing and state.value(node.value) is None and not state.is_called(node):
        return (
            f"`{shortened(state.text(node))}`: it may be an array, and `.size` is a method on torch; use the operation"
        )
    return ""


def tensor_results(state: State) -> list[Finding]:
    """Public functions and methods that return tensors, and classes with attributes that hold tensors."""
    found = []
    tensors = "EmberTensors" if _is_wrapped(state) else "tensors of the active backend"
    classes = {node.name: node for node in ast.walk(state.tree) if isinstance(node, ast.ClassDef)}
    overriding = {node for klass in classes.values() if _has_outer_base(klass, classes) for node in klass.body}
    for node, value in state.functions.results.items():
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if any(_holds_tensors(one) for one in (value, *map(state.value, _returned(node)))):
            private = node.name.startswith("_")
            if private and node not in overriding:
                continue
            where = " to a base class of another module" if private else ""
            message = f"`{node.name}` returns {tensors}{where}"
            found.append(_finding(state.source.path, node.lineno, node.col_offset, message))
    for klass in state.classes.values():
        names = [name for name, value in klass.attributes.items() if value is not None and value.is_tensor]
        public = ", ".join(sorted(name for name in names if not name.startswith("_")))
        if public:
            message = f"`{klass.node.name}` has attributes that hold {tensors}: {public}"
            found.append(_finding(state.source.path, klass.node.lineno, klass.node.col_offset, message))
    return sorted(found, key=lambda finding: finding.line)


def _holds_tensors(value: Value | None) -> bool:
    """Whether a value is a tensor, or a sequence with tensors."""
    if value is None:
        return False
    parts = value.items or (value.element,) if value.kind == SEQUENCE else (value,)
    return any(part is not None and part.is_tensor for part in parts)


def _returned(function: ast.AST) -> Iterator[ast.expr]:
    """Expressions that a function returns."""
    stack = list(ast.iter_child_nodes(function))
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Return) and node.value is not None:
            yield node.value
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            stack += ast.iter_child_nodes(node)


def _finding(path: str, line: int, column: int, message: str) -> Finding:
    return Finding("", message, path, line, column, line, column, None, ())


def _named(node: ast.expr) -> str:
    """Name of a variable or an attribute of ``self``; empty for other expressions."""
    return dotted(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""


def _scope(node: ast.expr, file: File) -> ast.AST | None:
    """Class of an attribute, function of a variable."""
    if isinstance(node, ast.Attribute):
        return file.klass.node if file.klass is not None else None
    return file.function


def _is_view(node: ast.expr, file: File) -> bool:
    if not isinstance(node, ast.Call) or not node.args:
        return False
    path = file.path(node.func)
    copies = any(keyword.arg == "copy" and _is_true(keyword.value) for keyword in node.keywords)
    return engine_of(path) == EMBER and path.rpartition(".")[2] in _VIEWS and not copies


def _is_true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _viewed(base: ast.expr, file: File) -> str:
    """Text of the array that an expression or a variable is a view of; empty if it is not known to be a view."""
    node: ast.AST | None = base
    if isinstance(base, ast.Name):
        value = file.value(base)
        node = value.node if value is not None else None
        if value is not None and value.reason == ELEMENT and not isinstance(node, ast.Subscript):
            return shortened(file.text(node))  # a variable of a loop over an array
    if isinstance(node, ast.Subscript) and _is_slice(node, file):
        return shortened(file.text(node.value))
    if isinstance(node, ast.Call) and _is_view(node, file):
        inner = file.value(node.args[0])
        if _operation(node, file) != "asarray" and (inner is None or inner.is_array):
            return shortened(file.text(node.args[0]))
        if inner is not None and inner.is_array and inner.argument:
            return shortened(file.text(node.args[0]))
    return ""


def _operation(node: ast.Call, file: File) -> str:
    """Name of the operation that a call calls."""
    return file.path(node.func).rpartition(".")[2]


def _is_slice(node: ast.Subscript, file: File) -> bool:
    """Whether a subscript of an array is a view: no index is an array or a list."""
    value = file.value(node.value)
    if value is None or not value.is_array:
        return False
    return all(isinstance(part, (ast.Slice, ast.Constant)) or _is_number(part, file) for part in _parts(node))


def _is_element(node: ast.Subscript, file: File) -> bool:
    """Whether a subscript has only numbers as indices, so that it may be one element."""
    return all(_is_number(part, file) for part in _parts(node))


def _is_number(node: ast.expr, file: File) -> bool:
    value = file.value(node)
    return value is not None and value.kind == SCALAR


def _is_container(node: ast.expr, file: File) -> bool:
    """Whether an expression is not an array: a list or dictionary keeps the object that is assigned to its item."""
    value = file.value(node)
    return value is None or (not value.is_array and value.kind != INSTANCE)
