"""Inputs for every operation: made from its signature, or given by hand, in one file per category.

A category's file may hold

- ``CALLS``: name to a list of calls, where an operation needs arguments that its signature does not tell;
- ``DOMAIN``: name to ``(low, high)``, the range its values are drawn from when it is not ``(-3, 3)``;
- ``SHAPES``: name to the shapes of its tensors, one tuple per parameter, when they do not broadcast;
- ``VARIES``: name to the reason why its result is not the same on every engine or in every call;
- ``TOLERANCE``: name to a relative tolerance, with the reason in a comment, where engines round differently.

In a call, NumPy arrays stand for tensors: the tests turn them into tensors of the engine and the dtype under test.
"""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from ember_ml.dispatch import INDEX, MASK, TENSOR, Operation
from ember_ml.dtypes import describe


class Call(NamedTuple):
    """The arguments of one call."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def map(self, change: Callable[[np.ndarray], Any]) -> Call:
        """The same call with every array changed, those in sequences too."""

        def walk(value: Any) -> Any:
            if isinstance(value, np.ndarray):
                return change(value)
            if isinstance(value, (list, tuple)) and any(isinstance(v, np.ndarray) for v in value):
                return type(value)(walk(v) for v in value)
            return value

        return Call(tuple(map(walk, self.args)), {name: walk(value) for name, value in self.kwargs.items()})

    def text(self, name: str) -> str:
        """The call of the operation of that name as a reader would write it, tensors by dtype and shape."""
        shown = [_text(value) for value in self.args]
        shown += [f"{key}={_text(value)}" for key, value in self.kwargs.items()]
        return f"{name}({', '.join(shown)})"


def _text(value: Any) -> str:
    if hasattr(value, "dtype") and hasattr(value, "shape") and not isinstance(value, type):
        return describe(value)
    if isinstance(value, (list, tuple)) and any(hasattr(v, "dtype") for v in value):
        inner = ", ".join(map(_text, value))
        return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' if len(value) == 1 else ''})"
    if callable(value):
        return f"<{getattr(value, '__name__', type(value).__name__)}>"
    if type(value) is object:
        return f"<{type(value).__name__}>"
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."


def call(*args: Any, **kwargs: Any) -> Call:
    """A call with these arguments."""
    return Call(args, kwargs)


def given(operation: Operation, what: str, default: Any = None) -> Any:
    """What the category's file says of an operation of the library; ``default`` for operations of other packages."""
    if not operation.module.startswith("ember_ml."):
        return default
    return getattr(_file_of(operation.category), what, {}).get(operation.name, default)


@cache
def _file_of(category: str) -> ModuleType | None:
    """Module with the samples of a category; ``None`` if there is none."""
    try:
        return importlib.import_module(f"{__name__}.{category}")
    except ModuleNotFoundError as error:
        if error.name != f"{__name__}.{category}":
            raise
        return None


def values(operation: Operation, shape: tuple[int, ...], dtype: str = "float32", seed: int = 0) -> np.ndarray:
    """An array of that shape and dtype in the operation's domain, the same in every run.

    Values are small multiples of 1/8, so that every float dtype holds them exactly, and 1 to 5 for integers.
    """
    low, high = given(operation, "DOMAIN", (-3.0, 3.0))
    rng = np.random.default_rng([zlib.crc32(operation.name.encode()), seed])
    if dtype == "bool":
        return rng.integers(1 if low > 0 else 0, 2, shape).astype(bool)
    if "int" in dtype:
        bottom = max(1, int(np.ceil(low)))
        return rng.integers(bottom, max(bottom + 1, min(6, int(high) + 1)), shape).astype(dtype)
    grid = np.round(rng.uniform(low, high, shape) * 8) / 8
    grid = np.clip(np.where(grid == 0, 0.125 if high > 0 else -0.125, grid), low, high)
    if "complex" in dtype:
        return (grid + 1j * np.round(rng.uniform(-2, 2, shape) * 8) / 8).astype(dtype)
    return grid.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def calls(operation: Operation) -> list[Call]:
    """The calls that the operation is tested with: given by hand, or made from its signature."""
    by_hand = given(operation, "CALLS")
    if by_hand is not None:
        return list(by_hand)
    if any(p.many for p in operation.tensors):
        raise LookupError(
            f"{operation.name} takes sequences: give CALLS in ember_ml/testing/samples/{operation.category}.py"
        )
    shapes = given(operation, "SHAPES")
    if shapes is not None:
        return [made(operation, shapes)]
    count = sum(1 for p in operation.tensors if not p.keyword)
    several = [(2, 3), (3,), (2, 1), (1,)]
    return [
        made(operation, several[:count]),
        made(operation, [(2, 3)] * count),
        made(operation, [()] * count),
        made(operation, [(0, 3)] * count),
    ]


def made(operation: Operation, shapes: list[tuple[int, ...]], dtypes: list[str] | None = None) -> Call:
    """A call with one array per positional tensor parameter."""
    parameters = [p for p in operation.tensors if not p.keyword]
    args = []
    for i, (parameter, shape) in enumerate(zip(parameters, shapes, strict=True)):
        usual = {TENSOR: usual_dtype(operation), INDEX: "int64", MASK: "bool"}[parameter.role]
        args.append(values(operation, tuple(shape), dtypes[i] if dtypes else usual, seed=i))
    return Call(tuple(args), {})


def usual_dtype(operation: Operation) -> str:
    """The dtype of default samples: float32 where the operation takes it, else what it does take."""
    return next(d for d in ("float32", "int32", "bool", "complex64") if d in operation.dtypes)
