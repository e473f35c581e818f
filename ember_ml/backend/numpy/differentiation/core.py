"""What dispatch needs of boxes: they are NumPy's arrays in all but their type."""

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
    """A box whose attributes cost no more than the array's own."""

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
    """``value`` as a box if there is one in it, else as an array."""
    if type(value) in _BOXES:
        return value if dtype is None else cast(value, dtype)
    if isinstance(value, (list, tuple)) and _holds_boxes(value):
        return assembled(
            value, dtype, host.DTYPES.__getitem__, lambda leaf, own: convert(leaf, own, device), manipulation.stack
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
    """The values in the box."""
    return host.to_host(getval(x))


def own(operation: Operation) -> Callable[..., Any]:
    """What computes an operation on boxes."""
    numpy = backends.load("numpy")
    run = operation.runs[numpy.name]
    if not operation.differentiable:
        return _untraced(run)
    rule = gradients.rule_of(operation)
    if rule is not None:
        return _recorded(operation, run, rule)
    if operation.definition is not None:
        return _defined(operation)
    return _refused(operation, run)


def _untraced(run: Callable[..., Any]) -> Callable[..., Any]:
    """``run`` on the arrays in the boxes."""

    def bare(value: Any) -> Any:
        if type(value) in _BOXES:
            return getval(value)
        return type(value)([bare(item) for item in value]) if type(value) in (list, tuple) else value

    def untraced(*args: Any, **kwargs: Any) -> Any:
        return run(*map(bare, args), **{name: bare(value) for name, value in kwargs.items()})

    return untraced


def _defined(operation: Operation) -> Callable[..., Any]:
    assert operation.definition is not None
    return within("numpy", operation.definition)


def _refused(operation: Operation, run: Callable[..., Any]) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        if _holds_boxes([*args, *kwargs.values()]):
            raise UnsupportedError(
                f"an operation must have a gradient on the numpy backend to be differentiated, got {operation.name}"
            )
        return run(*args, **kwargs)

    return refuse


def _recorded(operation: Operation, run: Callable[..., Any], rule: gradients.Rule) -> Callable[..., Any]:
    """``run`` on the arrays in the boxes of the innermost trace, in a box that remembers how to pull gradients back."""
    several = any(p.many for p in operation.parameters)
    simple = getattr(rule, "by_place", {})

    def recorded(*args: Any, **kwargs: Any) -> Any:
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
                return _record_nested(recorded, run, rule, args, kwargs, found)
        if trace < 0:
            return run(*args, **kwargs)
        values = list(args)
        for place, box in boxes:
            values[place] = box._value
        answer = recorded(*values, **kwargs) if trace else run(*values, **kwargs)
        places = [place for place, _ in boxes]
        return _boxed(answer, trace, [box._node for _, box in boxes], rule, places, values, kwargs)

    if list(simple) == [0] and simple[0] is not None and not several:
        return _recorded_of_one(run, simple[0], recorded)
    if list(simple) == [0, 1] and None not in simple.values() and not several:
        return _recorded_of_two(run, simple[0], simple[1], recorded)
    return recorded


def _recorded_of_one(
    run: Callable[..., Any], pull: Callable[..., Any], recorded: Callable[..., Any]
) -> Callable[..., Any]:
    """The same for the usual case of one tensor, which comes first, and one answer; in fewer steps."""

    def recorded_of_one(x: Any, *rest: Any, **kwargs: Any) -> Any:
        if type(x) is not Traced or x._trace:
            return recorded(x, *rest, **kwargs)
        value = x._value
        answer = run(value, *rest, **kwargs)
        if type(answer) is tuple or type(answer) is list or not gradients.is_floating(answer):
            return recorded(x, *rest, **kwargs)
        node = _new(VJPNode)
        node.parents = (x._node,)
        node.vjp = lambda g: (gradients.fitted(pull(g, answer, value, *rest, **kwargs), value),)
        return Traced(answer, 0, node)

    return recorded_of_one


def _recorded_of_two(
    run: Callable[..., Any], left: Callable[..., Any], right: Callable[..., Any], recorded: Callable[..., Any]
) -> Callable[..., Any]:
    """The same for two tensors."""
    fitted = gradients.fitted

    def recorded_of_two(x: Any, y: Any, *rest: Any, **kwargs: Any) -> Any:
        first, second = type(x) is Traced, type(y) is Traced
        if (x._trace if first else type(x) is ArrayBox) or (y._trace if second else type(y) is ArrayBox):
            return recorded(x, y, *rest, **kwargs)
        a, b = x._value if first else x, y._value if second else y
        answer = run(a, b, *rest, **kwargs)
        if not (first or second) or not gradients.is_floating(answer):
            return answer
        node = _new(VJPNode)
        if first and second:
            node.parents = (x._node, y._node)
            node.vjp = lambda g: (
                fitted(left(g, answer, a, b, *rest, **kwargs), a),
                fitted(right(g, answer, a, b, *rest, **kwargs), b),
            )
        elif first:
            node.parents = (x._node,)
            node.vjp = lambda g: (fitted(left(g, answer, a, b, *rest, **kwargs), a),)
        else:
            node.parents = (y._node,)
            node.vjp = lambda g: (fitted(right(g, answer, a, b, *rest, **kwargs), b),)
        return Traced(answer, 0, node)

    return recorded_of_two


_new = VJPNode.__new__


def _boxed(
    answer: Any, trace: int, parents: Sequence[Any], rule: gradients.Rule, places: Sequence[Any], args: Any, kwargs: Any
) -> Any:
    """The answer in a box; each of several in a box of its own, whose gradients meet again."""
    if isinstance(answer, (list, tuple)):
        node = _node(tuple(parents), lambda g: rule(places, g.whole(answer), answer, args, kwargs))
        boxes = [
            _one_of(i, part, trace, node) if gradients.is_floating(part) else part for i, part in enumerate(answer)
        ]
        return type(answer)(*boxes) if hasattr(answer, "_fields") else type(answer)(boxes)
    if not gradients.is_floating(answer):
        return answer
    return Traced(answer, trace, _node(tuple(parents), lambda g: rule(places, g, answer, args, kwargs)))


def _one_of(i: int, part: Any, trace: int, node: Any) -> Any:
    return Traced(part, trace, _node((node,), lambda g: (_Parts({i: g}),)))


def _node(parents: tuple[Any, ...], pull: Callable[[Any], Any]) -> Any:
    node = VJPNode.__new__(VJPNode)
    node.parents = parents
    node.vjp = pull
    return node


class _Parts:
    """The cotangents of some of several answers."""

    def __init__(self, found: dict[int, Any]) -> None:
        self.found = found

    def whole(self, answers: Sequence[Any]) -> list[Any]:
        """One for each answer; ``None`` where nothing came back."""
        return [self.found.get(i) for i in range(len(answers))]


def added(one: Any, other: Any) -> Any:
    """The sum of two cotangents."""

    if type(one) is not _Parts:
        return math.add(one, other)
    found = dict(one.found)
    for i, g in other.found.items():
        found[i] = added(found[i], g) if i in found else g
    return _Parts(found)


# To NumPy's functions, a box is as good as the array in it.
backends.load("numpy").kinds = host.TENSORS + TENSORS


def _nested_boxes(args: Any, kwargs: Any) -> list[tuple[Any, Any]]:
    """The boxes of the innermost trace, with the place of each: a position or name, and perhaps one in a sequence."""
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
    """As above, for boxes in sequences and among keyword arguments."""
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
    answer = again(*bare, **named) if trace else run(*bare, **named)
    return _boxed(answer, trace, [box._node for _, box in found], rule, [place for place, _ in found], bare, named)


def _getitem(x: Any, index: Any) -> Any:
    """``x[index]``, recorded."""
    value = x._value
    answer = value[index]

    def pull(g: Any) -> tuple[Any]:
        if type(g) is not np.ndarray or type(value) is not np.ndarray:
            return (indexing.index_add(creation.zeros_like(value), index, g),)
        whole = np.zeros(value.shape, value.dtype)
        if _is_basic(index):
            whole[index] = g
        else:
            np.add.at(whole, index, g)
        return (whole,)

    return Traced(answer, x._trace, _node((x._node,), pull))


def _is_basic(index: Any) -> bool:
    """Whether an index names no element twice: there are no arrays in it."""
    parts = index if type(index) is tuple else (index,)
    return all(part is None or part is ... or type(part) in (int, slice) for part in parts)


def _operators() -> None:
    """Give boxes the operators of NumPy's arrays, recorded by the same rules as the operations."""

    def turned(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda x, y: function(y, x)

    for short, name in _OPERATORS.items():
        operation = REGISTRY[name]
        rule = gradients.rule_of(operation)
        assert rule is not None
        function = _recorded(operation, getattr(np, name), rule)
        setattr(Traced, f"__{short}__", _method(function))
        setattr(Traced, f"__r{short}__", _method(turned(function)))
    negative = gradients.rule_of(REGISTRY["negative"])
    assert negative is not None
    Traced.__neg__ = _method(_recorded(REGISTRY["negative"], np.negative, negative))
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
_operators()
