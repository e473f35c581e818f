"""Backend core for boxes, which behave like the NumPy arrays that they hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from autograd.core import VJPNode, VSpace
from autograd.numpy.numpy_boxes import ArrayBox
from autograd.tracer import Box, getval

from ember_ml import backend as backends
from ember_ml import gradients
from ember_ml.backend.numpy import core as host
from ember_ml.backend.numpy.core import DTYPES as DTYPES
from ember_ml.backend.numpy.core import device_like as device_like
from ember_ml.backend.numpy.core import device_of as device_of
from ember_ml.backend.numpy.core import devices as devices
from ember_ml.backend.numpy.core import error_class as error_class
from ember_ml.backend.numpy.core import find_device as find_device
from ember_ml.backend.numpy.core import scalar_like as scalar_like
from ember_ml.backend.numpy.sequences import assembled
from ember_ml.dispatch import REGISTRY, Operation, within
from ember_ml.errors import UnsupportedError
from ember_ml.ops import creation, dtypes, indexing, manipulation, math  # emberlint: ignore[EMB113] after all of ops


class Traced(ArrayBox):  # type: ignore[misc]
    """Box whose attributes are read from the array directly, without tracing."""

    __slots__ = ()

    @property
    def shape(self) -> Any:
        return self._value.shape

    @property
    def dtype(self) -> Any:
        return self._value.dtype

    @property
    def ndim(self) -> Any:
        return self._value.ndim

    @property
    def size(self) -> Any:
        return self._value.size

    def tolist(self) -> Any:
        return self._value.tolist()

    def item(self) -> Any:
        return self._value.item()

    def __int__(self) -> int:
        return int(self._value)

    def __float__(self) -> float:
        return float(self._value)

    def __complex__(self) -> complex:
        return complex(self._value)


Box.types.add(Traced)
Box.type_mappings[Traced] = Traced
VSpace.mappings[Traced] = lambda box: VSpace.mappings[type(getval(box))](getval(box))

TENSORS = (Traced, ArrayBox)

GUESTS = host.TENSORS

_BOXES = frozenset(TENSORS)


def convert(value: Any, dtype: Any, device: Any) -> Any:
    """``value`` as a box if it is or contains one, else as an array."""
    if type(value) in _BOXES:
        return value if dtype is None else cast(value, dtype)
    if isinstance(value, (list, tuple)) and _holds_boxes(value):
        return assembled(
            value,
            dtype,
            host.DTYPES.__getitem__,
            lambda leaf, native: convert(leaf, native, device),
            manipulation.stack,
        )
    return host.convert(value, dtype, device)


def _holds_boxes(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_holds_boxes, value))
    return type(value) in _BOXES


def cast(x: Any, dtype: Any) -> Any:
    """``x`` in another dtype."""
    if type(x) not in _BOXES:
        return host.cast(x, dtype)

    return dtypes.cast(x, dtype)


def to_host(x: Any) -> Any:
    """Values of the box as a NumPy array."""
    return host.to_host(getval(x))


def implementation(operation: Operation) -> Callable[..., Any]:
    """Function that computes an operation on boxes."""
    numpy = backends.load("numpy")
    run = operation.runs[numpy.name]
    if not operation.differentiable:
        return _without_tracing(run)
    rule = gradients.rule_of(operation)
    if rule is not None:
        return _recorder(operation, run, rule)
    if operation.definition is not None:
        return _from_definition(operation)
    return _without_rule(operation, run)


def _without_tracing(run: Callable[..., Any]) -> Callable[..., Any]:
    """``run`` on the arrays in the boxes, without recording it."""

    def bare(value: Any) -> Any:
        if type(value) in _BOXES:
            return getval(value)
        return type(value)([bare(item) for item in value]) if type(value) in (list, tuple) else value

    def run_unboxed(*args: Any, **kwargs: Any) -> Any:
        return run(*map(bare, args), **{name: bare(value) for name, value in kwargs.items()})

    return run_unboxed


def _from_definition(operation: Operation) -> Callable[..., Any]:
    assert operation.definition is not None
    return within("numpy", operation.definition)


def _without_rule(operation: Operation, run: Callable[..., Any]) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        if _holds_boxes([*args, *kwargs.values()]):
            raise UnsupportedError(
                f"an operation must have a gradient on the numpy backend to be differentiated, got {operation.name}"
            )
        return run(*args, **kwargs)

    return refuse


def _recorder(operation: Operation, run: Callable[..., Any], rule: gradients.Rule) -> Callable[..., Any]:
    """Function that runs ``run`` on the arrays in the boxes of the innermost trace and boxes the result and its VJP."""
    several = any(p.many for p in operation.parameters)
    simple = getattr(rule, "by_place", {})

    def record(*args: Any, **kwargs: Any) -> Any:
        trace, boxes = -1, []
        for place, value in enumerate(args):
            if type(value) in _BOXES:
                if value._trace > trace:
                    trace, boxes = value._trace, [(place, value)]
                elif value._trace == trace:
                    boxes.append((place, value))
        if several or kwargs:
            found = _nested_boxes(args, kwargs) if several or _holds_boxes([*kwargs.values()]) else None
            if found is not None:
                return _record_nested(record, run, rule, args, kwargs, found)
        if trace < 0:
            return run(*args, **kwargs)
        values = list(args)
        for place, box in boxes:
            values[place] = box._value
        result = record(*values, **kwargs) if trace else run(*values, **kwargs)
        places = [place for place, _ in boxes]
        return _box_result(result, trace, [box._node for _, box in boxes], rule, places, values, kwargs)

    if list(simple) == [0] and simple[0] is not None and not several:
        return _unary_recorder(run, simple[0], record)
    if list(simple) == [0, 1] and None not in simple.values() and not several:
        return _binary_recorder(run, simple[0], simple[1], record)
    return record


def _unary_recorder(
    run: Callable[..., Any], pull: Callable[..., Any], record: Callable[..., Any]
) -> Callable[..., Any]:
    """Fast path of ``_recorder`` for one tensor, the first argument, and one result."""

    def record_unary(x: Any, *rest: Any, **kwargs: Any) -> Any:
        if type(x) is not Traced or x._trace:
            return record(x, *rest, **kwargs)
        value = x._value
        result = run(value, *rest, **kwargs)
        if type(result) is tuple or type(result) is list or not gradients.is_floating(result):
            return record(x, *rest, **kwargs)
        node = _new(VJPNode)
        node.parents = (x._node,)
        node.vjp = lambda g: (gradients.fitted(pull(g, result, value, *rest, **kwargs), value),)
        return Traced(result, 0, node)

    return record_unary


def _binary_recorder(
    run: Callable[..., Any], left: Callable[..., Any], right: Callable[..., Any], record: Callable[..., Any]
) -> Callable[..., Any]:
    """Fast path of ``_recorder`` for two tensors, the first two arguments, and one result."""
    fitted = gradients.fitted

    def record_binary(x: Any, y: Any, *rest: Any, **kwargs: Any) -> Any:
        first, second = type(x) is Traced, type(y) is Traced
        if (x._trace if first else type(x) is ArrayBox) or (y._trace if second else type(y) is ArrayBox):
            return record(x, y, *rest, **kwargs)
        a, b = x._value if first else x, y._value if second else y
        result = run(a, b, *rest, **kwargs)
        if not (first or second) or not gradients.is_floating(result):
            return result
        node = _new(VJPNode)
        if first and second:
            node.parents = (x._node, y._node)
            node.vjp = lambda g: (
                fitted(left(g, result, a, b, *rest, **kwargs), a),
                fitted(right(g, result, a, b, *rest, **kwargs), b),
            )
        elif first:
            node.parents = (x._node,)
            node.vjp = lambda g: (fitted(left(g, result, a, b, *rest, **kwargs), a),)
        else:
            node.parents = (y._node,)
            node.vjp = lambda g: (fitted(right(g, result, a, b, *rest, **kwargs), b),)
        return Traced(result, 0, node)

    return record_binary


_new = VJPNode.__new__


def _box_result(
    result: Any, trace: int, parents: Sequence[Any], rule: gradients.Rule, places: Sequence[Any], args: Any, kwargs: Any
) -> Any:
    """Result in a box. Several results get a box each; their cotangents are collected in one node."""
    if isinstance(result, (list, tuple)):
        node = _node(tuple(parents), lambda g: rule(places, g.whole(result), result, args, kwargs))
        boxes = [
            _box_part(i, part, trace, node) if gradients.is_floating(part) else part for i, part in enumerate(result)
        ]
        return type(result)(*boxes) if hasattr(result, "_fields") else type(result)(boxes)
    if not gradients.is_floating(result):
        return result
    return Traced(result, trace, _node(tuple(parents), lambda g: rule(places, g, result, args, kwargs)))


def _box_part(i: int, part: Any, trace: int, node: Any) -> Any:
    return Traced(part, trace, _node((node,), lambda g: (_Parts({i: g}),)))


def _node(parents: tuple[Any, ...], pull: Callable[[Any], Any]) -> Any:
    node = VJPNode.__new__(VJPNode)
    node.parents = parents
    node.vjp = pull
    return node


class _Parts:
    """Cotangents of some of several results, by position."""

    def __init__(self, found: dict[int, Any]) -> None:
        self.found = found

    def whole(self, results: Sequence[Any]) -> list[Any]:
        """Cotangent of each result; ``None`` where there is none."""
        return [self.found.get(i) for i in range(len(results))]


def add_cotangents(one: Any, other: Any) -> Any:
    """Sum of two cotangents."""
    if type(one) is not _Parts:
        return math.add(one, other)
    found = dict(one.found)
    for i, g in other.found.items():
        found[i] = add_cotangents(found[i], g) if i in found else g
    return _Parts(found)


# Boxes count as NumPy tensors in transforms, optimizers and ``EmberTensor``.
backends.load("numpy").kinds = host.TENSORS + TENSORS


def _nested_boxes(args: Any, kwargs: Any) -> list[tuple[Any, Any]]:
    """Boxes of the innermost trace with their places.

    A place is a position or a name, or a pair of that and an index into a sequence.
    """
    found: list[tuple[Any, Any]] = []
    for key, value in [*enumerate(args), *kwargs.items()]:
        if type(value) in _BOXES:
            found.append((key, value))
        elif type(value) in (list, tuple):
            found += [((key, i), item) for i, item in enumerate(value) if type(item) in _BOXES]
    top = max((box._trace for _, box in found), default=-1)
    return [(place, box) for place, box in found if box._trace == top]


def _record_nested(
    again: Callable[..., Any], run: Callable[..., Any], rule: gradients.Rule, args: Any, kwargs: Any, found: Any
) -> Any:
    """General path of ``_recorder``: boxes in sequences and among keyword arguments."""
    if not found:
        return run(*args, **kwargs)
    values: dict[Any, Any] = {**dict(enumerate(args)), **kwargs}
    for place, box in found:
        if isinstance(place, tuple):
            values[place[0]] = list(values[place[0]])
            values[place[0]][place[1]] = box._value
        else:
            values[place] = box._value
    bare = [values[i] for i in range(len(args))]
    named = {name: values[name] for name in kwargs}
    trace = found[0][1]._trace
    result = again(*bare, **named) if trace else run(*bare, **named)
    return _box_result(result, trace, [box._node for _, box in found], rule, [place for place, _ in found], bare, named)


def _getitem(x: Any, index: Any) -> Any:
    """``x[index]``, recorded."""
    value = x._value
    result = value[index]

    def pull(g: Any) -> tuple[Any]:
        if type(g) is not np.ndarray or type(value) is not np.ndarray:
            return (indexing.index_add(creation.zeros_like(value), index, g),)
        whole = np.zeros(value.shape, value.dtype)
        if _is_basic(index):
            whole[index] = g
        else:
            np.add.at(whole, index, g)
        return (whole,)

    return Traced(result, x._trace, _node((x._node,), pull))


def _is_basic(index: Any) -> bool:
    """Whether an index contains no arrays, and so selects no element twice."""
    parts = index if type(index) is tuple else (index,)
    return all(part is None or part is ... or type(part) in (int, slice) for part in parts)


def _add_operators() -> None:
    """Add the operators of NumPy arrays to boxes, with the gradient rules of the operations."""

    def swapped(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda x, y: function(y, x)

    for short, name in _OPERATORS.items():
        operation = REGISTRY[name]
        rule = gradients.rule_of(operation)
        assert rule is not None
        function = _recorder(operation, getattr(np, name), rule)
        setattr(Traced, f"__{short}__", _method(function))
        setattr(Traced, f"__r{short}__", _method(swapped(function)))
    negative = gradients.rule_of(REGISTRY["negative"])
    assert negative is not None
    Traced.__neg__ = _method(_recorder(REGISTRY["negative"], np.negative, negative))
    Traced.__getitem__ = _getitem


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *operands: function(*operands)


_OPERATORS = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "pow": "power",
    "matmul": "matmul",
}
_add_operators()
