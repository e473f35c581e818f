"""When two results of an operation are the same: same structure, shapes, dtypes and, within rounding, values.

Assertions made here are counted, so that a contract case that makes none is found out (``judging.py``).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

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
    """The number of assertions that this process has made through this module."""
    return _made


def expect(condition: object, message: str = "") -> None:
    """Assert ``condition``, and count it."""
    global _made
    _made += 1
    assert condition, message


@contextmanager
def expect_error(*kinds: type[Exception]) -> Iterator[None]:
    """Assert that the block raises an exception of one of these classes, and count it."""
    with pytest.raises(kinds):
        yield
    expect(True)


def leaves(result: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The tensors, numbers and other values in a result, each with its path."""
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
    """A tensor as a host array; anything else as it is."""
    for backend in backends.loaded():
        if isinstance(value, backend.tensors):
            return backend.to_host(value)
    return value


def is_on_cpu(backend: Backend) -> bool:
    """Whether new tensors are in host memory."""
    return backend.device is None or "cpu" in str(backend.device)


def dtypes_of_device(backend: Backend) -> set[str]:
    """The names of the dtypes that the engine has on its default device."""
    return {name for name in backend.dtypes if name != "float64" or backend.has_float64()}


def dtype_name(value: Any) -> str:
    """The portable name of a tensor's dtype."""
    return as_dtype(value.dtype).name


def assert_same(result: Any, expected: Any, tolerance: float | None = None) -> None:
    """Assert that both results have one structure, and equal shapes, dtypes and values at every leaf."""
    mine, theirs = list(leaves(result)), list(leaves(expected))
    expect([path for path, _ in mine] == [path for path, _ in theirs], "the structures differ")
    for (path, a), (_, b) in zip(mine, theirs, strict=True):
        a, b = host(a), host(b)
        if not isinstance(b, (np.ndarray, np.generic)):
            expect(a == b or (a != a and b != b), f"{path}: {a!r} is not {b!r}")
            continue
        expect(isinstance(a, (np.ndarray, np.generic)), f"{path}: {a!r} is not a tensor")
        expect(a.shape == b.shape, f"{path}: shape {a.shape}, not {b.shape}")
        expect(dtype_name(a) == dtype_name(b), f"{path}: dtype {dtype_name(a)}, not {dtype_name(b)}")
        assert_close(a, b, TOLERANCE.get(dtype_name(b), 0.0) if tolerance is None else tolerance, path)


def assert_close(a: Any, b: Any, tolerance: float, path: str = "") -> None:
    """Assert that two host arrays agree to ``tolerance``, relative to the size of the values; NaN equals NaN."""
    if tolerance == 0.0:
        np.testing.assert_array_equal(a, b, err_msg=path)
    else:
        wide = np.complex128 if np.asarray(b).dtype.kind == "c" else np.float64
        a, b = np.asarray(a, wide), np.asarray(b, wide)
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=path)
    expect(True)
