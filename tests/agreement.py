"""When two answers of an operation are the same: same structure, shapes, dtypes and, within rounding, values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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


def leaves(answer: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The tensors, numbers and other values in an answer, each with its place."""
    if isinstance(answer, dict):
        for key, value in answer.items():
            yield from leaves(value, f"{path}[{key!r}]")
    elif isinstance(answer, (tuple, list)):
        yield path + ".length", len(answer)
        for i, value in enumerate(answer):
            yield from leaves(value, f"{path}[{i}]")
    else:
        yield path, answer


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


def assert_same(answer: Any, expected: Any, tolerance: float | None = None) -> None:
    """Fail unless both answers have one structure, and equal shapes, dtypes and values at every leaf."""
    mine, theirs = list(leaves(answer)), list(leaves(expected))
    assert [path for path, _ in mine] == [path for path, _ in theirs]
    for (path, a), (_, b) in zip(mine, theirs, strict=True):
        a, b = host(a), host(b)
        if not isinstance(b, (np.ndarray, np.generic)):
            assert a == b or (a != a and b != b), f"{path}: {a!r} is not {b!r}"
            continue
        assert isinstance(a, (np.ndarray, np.generic)), f"{path}: {a!r} is no tensor"
        assert a.shape == b.shape, f"{path}: shape {a.shape}, not {b.shape}"
        assert dtype_name(a) == dtype_name(b), f"{path}: dtype {dtype_name(a)}, not {dtype_name(b)}"
        assert_close(a, b, TOLERANCE.get(dtype_name(b), 0.0) if tolerance is None else tolerance, path)


def assert_close(a: Any, b: Any, tolerance: float, path: str = "") -> None:
    """Fail unless two host arrays agree to ``tolerance``, relative to the size of the values; NaN equals NaN."""
    if tolerance == 0.0:
        np.testing.assert_array_equal(a, b, err_msg=path)
        return
    wide = np.complex128 if np.asarray(b).dtype.kind == "c" else np.float64
    np.testing.assert_allclose(np.asarray(a, wide), np.asarray(b, wide), rtol=tolerance, atol=tolerance, err_msg=path)
