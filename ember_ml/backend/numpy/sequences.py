"""Nested sequences that hold tensors, assembled by the functions of an engine."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from ember_ml.backend import Backend
from ember_ml.dispatch import classify, leaf_types
from ember_ml.dispatch.tensor_types import NUMBERS, too_deep
from ember_ml.dtypes import EmberDType, adapt, as_dtype, default_dtype, holds, promote, shown
from ember_ml.types import MAX_AXES


def held(value: object) -> tuple[bool, bool]:
    """Whether a nested sequence holds engine tensors, and whether it holds host arrays or mixed host scalars.

    Host scalars of a single type are parsed as fast as numbers. Mixed ones must not follow NumPy's promotion.
    """
    if not isinstance(value, (list, tuple)):
        return False, False
    kinds = leaf_types(value)
    host_types = [kind for kind in kinds if issubclass(kind, (np.ndarray, np.generic))]
    has_arrays = bool(host_types) and (len(kinds) > 1 or issubclass(host_types[0], np.ndarray))
    return any(isinstance(classify(kind), Backend) for kind in kinds), has_arrays


def assembled(
    value: Any,
    dtype: Any,
    named: Callable[[str], Any],
    convert: Callable[[Any, Any], Any],
    stack: Callable[[list[Any]], Any],
) -> Any:
    """Tensor from a nested sequence that holds tensors.

    The tensors are promoted to one dtype, to which the numbers among them adapt.
    """
    leaves, shape = _flattened(value)
    items: list[Any] = []
    numbers: list[Any] = []
    dtypes: list[Any] = []
    for leaf in leaves:
        if isinstance(leaf, NUMBERS) and not isinstance(leaf, np.generic):
            numbers.append(leaf)
            items.append(leaf)
        else:
            items.append(convert(leaf, dtype))
            dtypes.append(items[-1].dtype)
    if dtype is None and not numbers and all(one == dtypes[0] for one in dtypes):
        x = stack(items)
    else:
        if dtype is None:
            common = reduce(adapt, map(kind_of, numbers), reduce(promote, map(as_dtype, dtypes)))
            dtype = named(common.name)
        for number in numbers:
            check_number(number, as_dtype(dtype))
        x = stack([convert(item, dtype) for item in items])
    if len(shape) + len(x.shape) - 1 > MAX_AXES:
        raise too_deep(len(shape) + len(x.shape) - 1)
    return x.reshape((*shape, *x.shape[1:])) if len(shape) > 1 else x


def check_number(value: object, dtype: EmberDType | None) -> None:
    """Raise if the dtype cannot hold a number; engines disagree on the result."""
    if isinstance(value, (int, float)):
        dtype = dtype or default_dtype(kind_of(value))
        if not holds(dtype, value):
            raise ValueError(f"values must fit into {dtype.name}, got {shown(value)}")
    elif isinstance(value, complex) and dtype is not None and dtype.kind != "complex floating":
        raise TypeError(f"values must fit into {dtype.name}, got {value}")


def kind_of(number: object) -> type:
    """Python number type of ``number``: bool, int, float or complex."""
    return next(kind for kind in NUMBERS if isinstance(number, kind))


def _flattened(value: Any) -> tuple[list[Any], tuple[int, ...]]:
    """Leaves of a nested sequence and the lengths of its levels. Tensors next to sequences are split into rows."""
    level, lengths = [value], []
    while any(issubclass(kind, (list, tuple)) for kind in set(map(type, level))):
        sizes = {_length(item) for item in level}
        if len(sizes) > 1:
            raise ValueError("the rows of a nested sequence must have one length, got several")
        lengths.append(sizes.pop())
        level = [item for row in level for item in row]
    return level, tuple(lengths)


def _length(item: Any) -> int:
    if isinstance(item, (list, tuple)):
        return len(item)
    return next(iter(getattr(item, "shape", ())), -1)
