"""Comparison of two results of an operation: structure, shapes, dtypes and, within rounding, values.

The tests, ``check_backend`` and ``ember-ml ops measure`` all use ``difference``. The assertions of this module are
counted, because a case of the contract without an assertion fails (``plugin.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from ember_ml import backend as backends
from ember_ml.backend import Backend
from ember_ml.dtypes import as_dtype

TOLERANCE = {
    "float16": 4e-3,
    "bfloat16": 3e-2,
    "float32": 3e-5,
    "complex64": 3e-5,
    "float64": 1e-10,
    "complex128": 1e-10,
}


_made = 0


def assertions_made() -> int:
    """Number of assertions of this module that this process has made."""
    return _made


def expect(condition: object, message: str = "") -> None:
    """Assert ``condition``, and count it."""
    global _made
    _made += 1
    if not condition:
        raise AssertionError(message)


@contextmanager
def expect_error(*kinds: type[Exception]) -> Iterator[None]:
    """Assert that the block raises an exception of one of these classes, and count it."""
    try:
        yield
    except kinds:
        expect(True)
    else:
        expect(False, f"expected {' or '.join(kind.__name__ for kind in kinds)}, got no error")


def leaves(result: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Tensors, numbers and other values in a result, each with its path."""
    if isinstance(result, dict):
        for key, value in result.items():
            yield from leaves(value, f"{path}[{key!r}]")
    elif isinstance(result, (tuple, list)):
        yield path + ".length", len(result)
        for i, value in enumerate(result):
            yield from leaves(value, f"{path}[{i}]")
    else:
        yield path, result


def host(value: Any) -> Any:
    """Tensor as a host array; other values unchanged."""
    for backend in backends.loaded():
        if isinstance(value, backend.tensors):
            return backend.to_host(value)
    return value


def is_on_cpu(backend: Backend) -> bool:
    """Whether new tensors are in host memory."""
    return backend.device_of(backend.convert(0, None, backend.device)) == "cpu"


def dtypes_of_device(backend: Backend) -> set[str]:
    """Names of the dtypes that the engine supports on its default device."""
    return {name for name in backend.dtypes if name != "float64" or backend.has_float64()}


def dtype_name(value: Any) -> str:
    """Name of the dtype of a tensor."""
    return as_dtype(value.dtype).name


class Difference(NamedTuple):
    """First difference of two results: what differs (``structure``, ``shape``, ``dtype``, ``value``), and where."""

    what: str
    path: str
    got: Any
    expected: Any

    def __str__(self) -> str:
        place = f"{self.path}: " if self.path else ""
        return f"{place}{self.what} differs: got {self.got}, expected {self.expected}"


Leaves = Sequence[tuple[str, Any]]


def difference(result: Leaves, expected: Leaves, tolerance: float | None = None) -> Difference | None:
    """First difference between the leaves of two results, with tensors as host arrays; ``None`` if they are the same.

    Args:
        tolerance: relative to the size of the values; by default that of the expected dtype in ``TOLERANCE``.
    """
    paths, expected_paths = [path for path, _ in result], [path for path, _ in expected]
    if paths != expected_paths:
        return Difference("structure", "", paths, expected_paths)
    for (path, a), (_, b) in zip(result, expected, strict=True):
        found = _leaf_difference(a, b, tolerance)
        if found is not None:
            return found._replace(path=path)
    return None


def _leaf_difference(a: Any, b: Any, tolerance: float | None) -> Difference | None:
    if not (_is_array(a) and _is_array(b)):
        if _is_array(a) or _is_array(b) or type(a) is not type(b):
            return Difference("structure", "", _describe(a), _describe(b))
        return None if a == b or (a != a and b != b) else Difference("value", "", repr(a), repr(b))
    if a.shape != b.shape:
        return Difference("shape", "", a.shape, b.shape)
    if dtype_name(a) != dtype_name(b):
        return Difference("dtype", "", dtype_name(a), dtype_name(b))
    wrong = ~is_close(a, b, TOLERANCE.get(dtype_name(b), 0.0) if tolerance is None else tolerance)
    if not wrong.any():
        return None
    # Whole arrays would make the message unreadable.
    place = tuple(int(i) for i in np.argwhere(wrong)[0])
    count = f" ({int(wrong.sum())} of {wrong.size} elements differ)"
    where = f" at {list(place)}" if place else ""
    return Difference("value", "", f"{a[place]}{where}", f"{b[place]}{count}")


def _is_array(value: Any) -> bool:
    return isinstance(value, (np.ndarray, np.generic))


def _describe(value: Any) -> str:
    return "a tensor" if _is_array(value) else f"{value!r} ({type(value).__name__})"


def is_close(a: Any, b: Any, tolerance: float) -> Any:
    """Where ``a`` and ``b`` agree to ``tolerance``, relative to the size of the values; NaN equals NaN."""
    a, b = np.asarray(a), np.asarray(b)
    with np.errstate(all="ignore"):
        same = np.asarray((a == b) | ((a != a) & (b != b)))
        if tolerance:
            wide = np.complex128 if "c" in (a.dtype.kind, b.dtype.kind) else np.float64
            a, b = a.astype(wide), b.astype(wide)
            same = same | ((abs(a - b) <= tolerance * (1 + abs(b))) & np.isfinite(b))
    return same


def assert_same(result: Any, expected: Any, tolerance: float | None = None) -> None:
    """Assert that two results have the same structure, and the same shape, dtype and values at every leaf."""
    found = difference(_on_host(result), _on_host(expected), tolerance)
    expect(found is None, str(found))


def _on_host(result: Any) -> Leaves:
    return [(path, host(leaf)) for path, leaf in leaves(result)]


def assert_close(a: Any, b: Any, tolerance: float, path: str = "") -> None:
    """Assert that two host arrays agree to ``tolerance``, relative to the size of the values; NaN equals NaN."""
    a, b = np.asarray(a), np.asarray(b)
    expect(a.shape == b.shape or not (a.ndim and b.ndim), f"{path}: shape {a.shape}, expected {b.shape}")
    found = is_close(a, b, tolerance)
    expect(found.all(), f"{path}: got {a}, expected {b}, within {tolerance}, at {np.argwhere(~found).tolist()[:5]}")
