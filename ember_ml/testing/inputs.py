"""Inputs that ``ember-ml ops measure`` runs: the samples of an operation, and variations of its docstring's calls.

The samples are those of the contract (``samples/``). The calls in a docstring are in the domain of the operation and
name its parameters. Every other input is one of them with a change: other dtypes or shapes, one parameter, a NaN.
Tensors are given as host arrays, which are converted to tensors of an engine when a case is run.
"""

from __future__ import annotations

import doctest
import functools
import inspect
import math
import random
import re
import tempfile
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from unittest import mock

import ember_ml
from ember_ml import backend as backends
from ember_ml import ops
from ember_ml.dispatch import DEVICE, DTYPE, INDEX, MASK, TENSOR, Operation, Parameter
from ember_ml.dtypes import DTYPES
from ember_ml.testing import samples

# Kinds of cases. The detail of a `dtype` or `keyword` case is its name.
PYTHON, EXAMPLE, MIXED, SHAPES, SPECIAL, ERROR, NONSENSE, DTYPES_OF, KEYWORD, SAMPLE = (
    "python", "example", "mixed", "shapes", "special", "error", "nonsense", "dtype", "keyword", "sample",
)  # fmt: skip

Arguments = dict[str, Any]


@dataclass
class Case:
    """One call of an operation, and what it tests."""

    about: str
    detail: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """The call as source code, with tensors described by dtype and shape."""
        return samples.Call(self.args, self.kwargs).text(name) + (f", {self.detail}" if self.about == SPECIAL else "")


def cases(operation: Operation) -> list[Case]:
    """Inputs that an operation is measured with; empty if its docstring has no call of it."""
    found = examples(operation)
    if not found:
        return []
    is_sampled = operation.module.startswith("ember_ml.") and not samples.given(operation, "VARIES")
    sampled = [Case(SAMPLE, "", *call) for call in samples.calls(operation)] if is_sampled else []
    return [*_Maker(operation, found).cases(), *sampled]


def examples(operation: Operation) -> list[Arguments]:
    """Arguments of the calls in the docstring of an operation, without those that have their default value."""
    call = operation.call
    signature = inspect.signature(call)
    defaults = {name: p.default for name, p in signature.parameters.items()}
    found: list[Arguments] = []

    @functools.wraps(call)
    def record(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        found.append({name: value for name, value in given.items() if value is not defaults[name]})
        return call(*args, **kwargs)

    known = {name: record if value is call else value for name, value in vars(ops).items()}
    names = {name: value for name, value in known.items() if hasattr(value, "__operation__")}
    names |= {"ember_ml": ember_ml, "ops": SimpleNamespace(**known), operation.name: record}
    shown = doctest.DocTestParser().get_doctest(call.__doc__ or "", names, operation.name, None, 0)
    runner = doctest.DocTestRunner(verbose=False)
    with mock.patch("tempfile.TemporaryDirectory", _lasting):
        runner.run(shown, out=lambda _: None, clear_globs=False)
    return found


def _lasting() -> nullcontext[str]:
    """Temporary folder that is not removed, since the calls that read the files of an example are run again."""
    return nullcontext(tempfile.mkdtemp())


# Values for parameters of these names, in addition to those derived from the annotation and the docstring.
_VALUES: dict[str, list[Any]] = {
    "axis": [None, 0, -1, 1, (0,), (0, 1), (), 17],
    "axes": [None, (0, 1), (1, 0), (-1, -2), (0,), (0, 17)],
    "shape": [(), 6, (6,), (2, 3), (0,), (-1,), (3, -1), (7, 5)],
    "repetitions": [2, (2, 1), (1, 2, 1), 0],
    "pad_width": [1, (1, 2), ((1, 0),), -1],
    "constant_values": [0, 2, -1, (1, 2)],
    "norm": ["backward", "ortho", "forward"],
    "reduction": ["mean", "sum", "none"],
    "padding": ["valid", "same", 1],
    "data_format": ["channels_last", "channels_first"],
    "dtype": ["bool", "int32", "int64", "float16", "float32", "float64", "complex64", "no such dtype"],
    "device": ["cpu", "no such device"],
    "correction": [0, 1, 0.5],
    "q": [0.0, 0.5, 1.0, [0.25, 0.75]],
    "ord": [None, 1, 2, -1, -2, 0, 3, float("inf"), "fro", "nuc"],
    "p": [None, 1, 2, -1, float("inf"), "fro"],
    "copy": [True, False],
}

_BY_TYPE: dict[str, list[Any]] = {
    "bool": [False, True],
    "int": [0, 1, 2, 3, -1],
    "float": [0.0, 0.5, 2.0, -1.0],
    "Sequence": [(1,), (2, 1)],
}

_SHAPES: tuple[tuple[int, ...], ...] = ((), (0,), (1,), (3,), (2, 3), (3, 3), (0, 3), (2, 0), (2, 2, 3))

_PAIRS = (
    ("int32", "float32"), ("float32", "int64"), ("float32", "float64"), ("float16", "bfloat16"), ("uint8", "int8"),
    ("uint64", "int64"), ("bool", "int32"), ("float32", "complex64"), ("int64", "float16"), ("int32", "int64"),
)  # fmt: skip


class _Maker:
    """Generator of the cases of one operation."""

    def __init__(self, operation: Operation, found: list[Arguments]) -> None:
        self.operation = operation
        self.signature = inspect.signature(operation.call)
        self.found = found
        self.roles = {p.name: p for p in operation.parameters}

    def cases(self) -> Iterator[Case]:
        arrays = [self._as_arrays(given) for given in self.found]
        bare = {name: value for name, value in arrays[0].items() if self._is_required(self.roles[name])}
        if self._is_accepted(bare):
            # The simplest call comes first, since other cases are variations of it.
            yield self._case(PYTHON, "", {name: self.found[0][name] for name in bare})
            arrays.insert(0, bare)
        for given in self.found:
            yield self._case(PYTHON, "", given)
            yield self._case(PYTHON, "", self._in_floats(given))
        for given in arrays:
            yield self._case(EXAMPLE, "", given)
        usual = arrays[:2]
        bases = [*usual, self._in_shape(usual[0], (2, 3))]
        for dtype in DTYPES:
            for given in usual if self._tensors(usual[0]) else ():
                yield self._case(DTYPES_OF, dtype, self._in_dtypes(given, (dtype,)))
        if len(self._tensors(usual[0])) > 1:
            for pair in _PAIRS:
                yield self._case(MIXED, "", self._in_dtypes(usual[0], pair))
        if self._tensors(usual[0]):
            for shape in _SHAPES:
                yield self._case(SHAPES, "", self._in_shape(usual[0], shape))
            for dtype in ("float32", "float16"):
                for place, value in ((0, float("nan")), (-1, float("inf")), (0, float("-inf")), (0, -0.0)):
                    given = self._with_special(self._in_dtypes(usual[0], (dtype,)), place, value)
                    yield self._case(SPECIAL, f"{value} {'first' if place == 0 else 'last'}", given)
        for parameter in self.operation.parameters:
            if not (parameter.role == TENSOR and self._is_required(parameter)):
                for given in bases if self._is_accepted(bases[-1]) else usual:
                    for value in self._values(parameter, given):
                        yield self._case(KEYWORD, parameter.name, {**given, parameter.name: value})
        for parameter in self._tensors(usual[0])[:1]:
            yield self._case(ERROR, "", {**usual[0], parameter.name: [[[1.0], [2.0, 3.0]]]})
            for wrong in ("a string", object(), {"a": 1}, None):
                yield self._case(NONSENSE, "", {**usual[0], parameter.name: [wrong] if parameter.many else wrong})

    def _is_accepted(self, given: Arguments) -> bool:
        """Whether the reference accepts the call."""
        case = self._case(EXAMPLE, "", given)
        try:
            self.operation.call(*case.args, **case.kwargs)
        except Exception:
            return False
        return True

    def _is_required(self, parameter: Parameter) -> bool:
        known = self.signature.parameters[parameter.name]
        return known.default is known.empty

    def _case(self, about: str, detail: str, given: Arguments) -> Case:
        ordered = {name: given[name] for name in self.signature.parameters if name in given}
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for name, parameter in self.signature.parameters.items():
            if name not in ordered:
                continue
            if parameter.kind is parameter.VAR_POSITIONAL:
                args.extend(ordered[name])
            elif parameter.kind is parameter.KEYWORD_ONLY:
                kwargs[name] = ordered[name]
            elif parameter.kind is parameter.POSITIONAL_ONLY or (
                len(args) == list(ordered).index(name) and parameter.default is parameter.empty
            ):
                args.append(ordered[name])
            else:
                kwargs[name] = ordered[name]
        return Case(about, detail, tuple(args), kwargs)

    def _tensors(self, given: Arguments) -> list[Parameter]:
        """Parameters given as tensors that take part in promotion."""
        return [p for p in self.operation.tensors if p.role == TENSOR and given.get(p.name) is not None]

    def _each(self, given: Arguments, roles: tuple[str, ...], change: Callable[[Any], Any]) -> Arguments:
        changed = dict(given)
        for parameter in self.operation.tensors:
            value = given.get(parameter.name)
            if parameter.role not in roles or value is None:
                continue
            if parameter.many and isinstance(value, (list, tuple)):
                changed[parameter.name] = type(value)(map(change, value))
            else:
                changed[parameter.name] = change(value)
        return changed

    def _as_arrays(self, given: Arguments) -> Arguments:
        return self._each(given, (TENSOR, INDEX, MASK), _array)

    def _in_dtypes(self, given: Arguments, dtypes: tuple[str, ...]) -> Arguments:
        """Call with its first tensor in the first dtype and the others in the last."""
        rest = iter([dtypes[0]])
        return self._each(given, (TENSOR,), lambda x: cast(x, next(rest, dtypes[-1])))

    def _in_floats(self, given: Arguments) -> Arguments:
        """Call with floats in place of Python integers, for parameters that accept any number."""
        open_to = re.compile(r"\b(TensorLike|float|complex|Number|object)\b")
        return {
            name: _floats(value) if open_to.search(str(self.signature.parameters[name].annotation)) else value
            for name, value in given.items()
        }

    def _in_shape(self, given: Arguments, shape: tuple[int, ...]) -> Arguments:
        """Call with tensors of this shape, with values in the range of those of the example."""
        seeds = iter(range(zlib.crc32(self.operation.name.encode()), 1 << 40))
        usual = "float32" in self.operation.dtypes
        return self._each(given, (TENSOR,), lambda x: drawn(cast(x, "float32") if usual else x, shape, next(seeds)))

    def _with_special(self, given: Arguments, place: int, value: float) -> Arguments:
        first = iter([True])

        def change(x: Any) -> Any:
            if x.size == 0 or x.dtype.kind in "bui" or not next(first, False):
                return x
            changed = x.copy()
            changed.reshape(-1)[place] = value
            return changed

        return self._each(given, (TENSOR,), change)

    def _values(self, parameter: Parameter, given: Arguments) -> list[Any]:
        """Values for a parameter, from the tables above, its annotation and the docstring."""
        annotation = str(self.signature.parameters[parameter.name].annotation)
        found: list[Any] = []
        if parameter.name in given:
            found.append(given[parameter.name])
        if parameter.role in (DTYPE, DEVICE):
            return found + _VALUES[parameter.role]
        if parameter.role == TENSOR:
            return [*found, _array(2.0), _array([0.5, 1.0]), 3]
        if parameter.role == INDEX:
            like = given.get(parameter.name, _array([0]))
            return [*found, *([] if parameter.many else [_array(0), like, -like, like + 100]), [0.5]]
        if parameter.role == MASK:
            return [*found, *([] if parameter.many else [True, False])]
        if parameter.name in _VALUES:
            found += [value for value in _VALUES[parameter.name] if _fits(value, annotation)]
        else:
            for word, values in _BY_TYPE.items():
                if re.search(rf"\b{word}\b", annotation):
                    found += values
        if re.search(r"\bstr\b", annotation):
            found += [*_words(self.operation), "no such word"]
        if "None" in annotation:
            found.append(None)
        return found


_TYPES: dict[str, type | tuple[type, ...]] = {
    "None": type(None), "Axis": (int, tuple, type(None)), "Shape": (int, tuple), "int": int, "float": (int, float),
    "str": str, "bool": bool, "Sequence": (list, tuple), "object": object, "Any": object,
}  # fmt: skip


def _fits(value: Any, annotation: str) -> bool:
    """Whether an annotation allows a value. Behavior for other values is not specified."""
    return any(isinstance(value, kind) for word, kind in _TYPES.items() if re.search(rf"\b{word}\b", annotation))


def _floats(value: Any) -> Any:
    """Nested sequences of numbers, with integers converted to floats."""
    if type(value) in (list, tuple):
        return type(value)(map(_floats, value))
    return float(value) if type(value) is int else value


def _words(operation: Operation) -> list[str]:
    """Strings quoted in the docstring, which include the values of string options."""
    return list(dict.fromkeys(re.findall(r'"(\w[\w-]*)"', inspect.getdoc(operation.call) or "")))


def _array(value: Any) -> Any:
    """``value`` as a host array of its default dtype; unchanged if it cannot be converted."""
    try:
        return backends.load("numpy").convert(value, None, None)
    except (TypeError, ValueError):
        return value


def cast(array: Any, dtype: str) -> Any:
    """Host array in another dtype, with values that the dtype can represent."""
    if not _is_host(array):
        return array
    target = backends.load("numpy").dtypes[dtype]
    if array.dtype.kind == "c" and target.kind != "c":
        array = array.real
    if target.kind in "iu" and array.dtype.kind not in "iub":
        array = array.astype("float64")
        array = array * 0 if (array != array).any() else array.clip(-100, 100).round()
    return (abs(array) if target.kind == "u" and array.dtype.kind != "b" else array).astype(target)


def drawn(array: Any, shape: tuple[int, ...], seed: int) -> Any:
    """Array of this shape with random values in the range of ``array``: multiples of 1/8, or integers."""
    if not _is_host(array):
        return array
    draw = random.Random(seed)
    known = [x for x in array.real.astype("float64").ravel().tolist() if math.isfinite(x)] or [0.0, 1.0]
    low, high = min(known), max(known)

    def one() -> Any:
        if array.dtype.kind == "b":
            return draw.random() < 0.5
        if array.dtype.kind in "iu":
            return draw.randint(int(low), int(high))
        value = min(max(round(draw.uniform(low, high) * 8) / 8, low), high)
        return complex(value, round(draw.uniform(-1, 1) * 8) / 8) if array.dtype.kind == "c" else value

    values = [one() for _ in range(math.prod(shape) or 1)]
    return backends.load("numpy").convert(values, array.dtype, None)[: math.prod(shape)].reshape(shape)


def _is_host(value: Any) -> bool:
    return isinstance(value, backends.load("numpy").tensors)


def quietly() -> warnings.catch_warnings[None]:
    """Context manager that suppresses warnings, which many inputs cause."""
    return warnings.catch_warnings(action="ignore")
