"""Calls: infer their values, and run the checks on them."""

from __future__ import annotations

import ast
from functools import cache

from emberlint.inference import classes
from emberlint.inference.checks import ALL, KEYWORDS, TENSORS
from emberlint.inference.elements import UNSUPPORTED, created_elements, dtype_elements
from emberlint.inference.functions import function_result
from emberlint.inference.results import (
    BUILTIN_RESULTS,
    HOST_MATHS,
    all_host,
    dtype_word,
    element_of,
    first_array,
    is_number_type,
    method_dtype,
    result_dtype,
    value_of_type,
)
from emberlint.inference.state import State
from emberlint.inference.values import (
    AT,
    CALL,
    CONSTANTS,
    DIMENSIONS,
    INT,
    METHOD,
    NOTHING,
    NUMBER,
    SCALARS,
    SOME_DTYPE,
    TEXT,
    Value,
)
from emberlint.inference.visitors import EVALUATE, evaluates
from emberlint.knowledge.engines import EMBER, array_type
from emberlint.knowledge.returns import METHODS, PAIRS, result_of
from emberlint.knowledge.types import (
    ARRAYS,
    CLASS,
    DTYPE,
    FUNCTION,
    HOST,
    INSTANCE,
    REFERENCE,
    SCALAR,
    SEQUENCE,
    SHAPE,
    STRING,
    TENSOR,
)
from emberlint.source.tree import has_keyword

# Properties whose name is also a method: torch's ``x.size()``.
_VALUES = frozenset({TENSOR, HOST, SCALAR, SHAPE})


@evaluates(ast.Call)
def _call(node: ast.Call, state: State) -> Value | None:
    function, keywords = node.func, node.keywords
    state.uses.called.add(function)
    relevant = False
    given = ALL
    arguments: list[Value | None] = []
    for argument in node.args:
        kind: type = type(argument)
        if kind is ast.Constant:
            arguments.append(CONSTANTS.get(type(argument.value)))  # type: ignore[attr-defined]
            continue
        value = EVALUATE[kind](argument, state)
        arguments.append(value)
        if value is not None and value.relevant and value.kind != STRING:
            relevant = True
            if value.kind == TENSOR:
                given |= TENSORS
    if keywords:
        given |= KEYWORDS
        for keyword in keywords:
            part = keyword.value
            if keyword.arg == "dtype":
                state.uses.given[part] = node
            kind = type(part)
            if kind is not ast.Constant:
                value = EVALUATE[kind](part, state)
                if value is not None and value.relevant and value.kind != STRING:
                    relevant = True
                    if value.kind == TENSOR:
                        given |= TENSORS
    kind = type(function)
    target = EVALUATE[kind](function, state)
    if target is not None and target.kind == REFERENCE:
        path = target.path
        value = _engine(path, node, arguments, state)
        if value is not None:
            state.known[node] = value
        if _is_replaceable(function, state):
            return value
        if relevant or target.relevant or path == "importlib.import_module":
            for check in state.checks.calls[given][path]:
                check(node, state)
        return value
    if kind is ast.Attribute:
        owner = state.value(function.value)  # type: ignore[attr-defined]
        name: str = function.attr  # type: ignore[attr-defined]
        if target is None or target.kind in _VALUES:
            value = _method(owner, name, node, arguments, state) if owner is not None else None
        else:
            value = _object(target, node, state)
        if value is not None:
            state.known[node] = value
        if relevant or (owner is not None and (owner.kind in ARRAYS or owner.engine)):
            for check in state.checks.methods[given][name]:
                check(node, state)
        return value
    name = function.id if kind is ast.Name else ""  # type: ignore[attr-defined]
    if target is not None:
        value = _object(target, node, state)
    elif name and not state.is_bound(name):
        value = _builtin(name, node, arguments)
    else:
        value = None
    if value is not None:
        state.known[node] = value
    if relevant or name == "__import__":
        for check in state.checks.calls[given][name]:
            check(node, state)
    return value


def _is_replaceable(function: ast.expr, state: State) -> bool:
    """Whether a function is an attribute of an instance, which code outside of the class may replace."""
    if type(function) is not ast.Attribute:
        return False
    owner = state.value(function.value)
    return owner is not None and owner.kind == INSTANCE


def _object(target: Value, node: ast.Call, state: State) -> Value | None:
    """Value of a call of an object that the file defines."""
    kind = target.kind
    if kind == FUNCTION:
        return function_result(target, node, state)
    if kind == CLASS:
        return Value(INSTANCE, node=target.node, path=target.path)
    if kind == INSTANCE:
        return classes.called(target, node, state)
    return None


def _engine(path: str, node: ast.Call, arguments: list[Value | None], state: State) -> Value | None:
    """Value of a call of an imported function."""
    found = result_of(path)
    if found is None:
        return _special(path, node, arguments, state) if _is_special(path) else None
    word, engine = found
    if word in ARRAYS:
        name = path.rpartition(".")[2]
        if engine == "numpy" and created_elements(name, node, state):
            return Value(INSTANCE, node=node, path=UNSUPPORTED)
        if name in HOST_MATHS and engine in ("numpy", "jax") and arguments and all_host(arguments):
            return Value(SCALAR, node=node, reason=CALL, dtype=result_dtype(name, node, arguments))
        pair = engine == "torch" and name in PAIRS and _is_along(node, arguments[1:])
        if not pair and (name != "where" or len(node.args) != 1):
            dtype = result_dtype(name, node, arguments)
            return Value(word, engine, node, CALL, first_array(arguments), dtype=dtype)
        word = SEQUENCE
    if word == SEQUENCE:
        one = Value(HOST if engine == "numpy" else TENSOR, engine, node, CALL)
        return Value(SEQUENCE, node=node, reason=CALL, element=one)
    return value_of_type(word, engine, node)


@cache
def _is_special(path: str) -> bool:
    """Whether ``_special`` may handle a function."""
    root, _, rest = path.partition(".")
    return (
        root in ("numpy", "torch", "mlx", "copy")
        or path == "ember_ml.ops.unique"
        or rest.endswith(("get_backend", "backend.backend"))
        or array_type(path, frozenset({root})) is not None
    )


def _special(path: str, node: ast.Call, arguments: list[Value | None], state: State) -> Value | None:
    """Value of a call of an imported function that is not in the tables."""
    known = state.imports.array_type(path)
    if known is not None:
        return Value(*known, node, CALL)
    root, _, rest = path.partition(".")
    if not arguments and rest.endswith(("get_backend", "backend.backend")):
        return Value(STRING, node=node, reason=CALL, path="get_backend")
    if root == "numpy":
        if rest in ("unique", "linalg.svd", "average"):
            several = any(k.arg and (k.arg.startswith("return") or k.arg == "compute_uv") for k in node.keywords)
            one = Value(HOST, "numpy", node, CALL)
            if several == (rest == "linalg.svd"):
                return one
            return Value(SEQUENCE, node=node, reason=CALL, element=one)
        if rest == "random.default_rng":
            return Value(INSTANCE, "numpy", node, CALL, path="numpy.random.Generator")
        if rest == "dtype":
            held = dtype_elements(node, state)
            return Value(DTYPE, node=node, reason=CALL, dtype=held) if held else SOME_DTYPE
        if is_number_type(rest):
            return Value(HOST, "numpy", node, CALL, dtype=dtype_word(rest))
    elif root in ("torch", "mlx"):
        if rest.startswith("nn.") and rest.rpartition(".")[2][:1].isupper():
            return Value(INSTANCE, root, node, CALL, path=path)
    elif path == "ember_ml.ops.unique":
        one = Value(TENSOR, EMBER, node, CALL)
        several = any(keyword.arg and keyword.arg.startswith("return") for keyword in node.keywords)
        return Value(SEQUENCE, node=node, reason=CALL, element=one) if several else one
    elif root == "copy" and rest in ("copy", "deepcopy") and arguments:
        return arguments[0]
    return None


def _method(owner: Value, name: str, node: ast.Call, arguments: list[Value | None], state: State) -> Value | None:
    """Value of a call of a method."""
    kind = owner.kind
    if kind not in ARRAYS:
        if kind == STRING:
            return TEXT if name in ("join", "format", "lower", "upper", "strip", "replace") else None
        if kind == INSTANCE and owner.path == "numpy.random.Generator":
            return Value(HOST, "numpy", node, METHOD) if name not in ("shuffle", "bytes") else None
        if kind == INSTANCE and owner.path == AT and owner.source is not None:
            return Value(TENSOR, owner.engine, node, METHOD, owner.source, dtype=owner.source.dtype)
        return None
    word = METHODS.get(name)
    if word is None:
        return None
    engine = owner.engine
    if word == "same":
        if engine == "torch" and name in PAIRS and _is_along(node, arguments):
            one = Value(TENSOR, engine, node, METHOD, owner)
            return Value(SEQUENCE, node=node, reason=METHOD, element=one)
        if name == "sort" and kind == HOST:
            return NOTHING
        if name == "astype" and any(dtype_elements(part, state) for part in node.args):
            return Value(INSTANCE, node=node, path=UNSUPPORTED)
        return Value(kind, engine, node, METHOD, owner, dtype=method_dtype(name, node, owner))
    if word == "number":
        return Value(SCALAR, node=node, reason=METHOD, source=owner, dtype=owner.dtype)
    if word == "size":
        return INT if arguments else Value(SHAPE, node=node, reason=METHOD, source=owner, dtype="int", element=INT)
    if word == SEQUENCE or (word == "nonzero" and kind == HOST):
        return Value(SEQUENCE, node=node, reason=METHOD, element=Value(kind, engine, node, METHOD, owner))
    if word == "nonzero":
        return Value(kind, engine, node, METHOD, owner, dtype="int")
    if word == HOST:
        return Value(HOST, "numpy", node, METHOD, owner, dtype=owner.dtype)
    return value_of_type(word, engine, node)


def _is_along(node: ast.Call, rest: list[Value | None]) -> bool:
    """Whether a torch reduction is given a dimension, in which case it returns values and indices."""
    if not rest:
        return has_keyword(node, "dim")
    return rest[0] is None or rest[0].kind not in ARRAYS


def _builtin(name: str, node: ast.Call, arguments: list[Value | None]) -> Value | None:
    """Value of a call of a built-in function."""
    simple = BUILTIN_RESULTS.get(name)
    if simple is not None:
        return simple
    first = arguments[0] if arguments else None
    if name in ("abs", "round"):
        return first if first is not None and (first.kind == SCALAR or first.kind in ARRAYS) else None
    if name in ("sum", "max", "min"):
        return _reduced(first, node, arguments)
    if name == "range":
        return Value(SEQUENCE, element=INT)
    if name == "zip":
        items = tuple(element_of(value, node) if value is not None else None for value in arguments)
        return Value(SEQUENCE, element=Value(SEQUENCE, items=items))
    if first is None:
        return None
    if name == "map" and len(arguments) > 1 and first.kind == REFERENCE:
        found = result_of(first.path)
        if found is not None and found[0] in ARRAYS:
            return Value(SEQUENCE, element=Value(found[0], found[1], node, CALL))
    if name == "enumerate":
        return Value(SEQUENCE, element=Value(SEQUENCE, items=(INT, element_of(first, node))))
    if name in ("list", "tuple", "sorted", "reversed"):
        if first.kind == SHAPE:
            return DIMENSIONS
        if first.kind == SEQUENCE and name != "sorted":
            return first
        element = element_of(first, node)
        return Value(SEQUENCE, element=element) if element is not None or first.kind == SEQUENCE else None
    return None


def _reduced(first: Value | None, node: ast.Call, arguments: list[Value | None]) -> Value | None:
    """Value of a call of ``sum``, ``max`` or ``min``."""
    if first is None:
        return None
    if first.kind == SHAPE:
        return INT
    if first.kind in ARRAYS:
        return Value(first.kind, first.engine, node, CALL, first, dtype=first.dtype)
    if all(argument is not None and argument.kind == SCALAR for argument in arguments):
        return NUMBER if first.dtype is None else SCALARS.get(first.dtype, NUMBER)
    element = element_of(first, node)
    return element if len(arguments) == 1 else None
