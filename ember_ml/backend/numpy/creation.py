"""Creation of tensors on NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import diag

from ember_ml.backend import DIFFERENTIATION, Backend, load_hidden
from ember_ml.backend.numpy.core import DTYPES, parse
from ember_ml.backend.numpy.sequences import NUMBERS, assembled, check_number, held, kind_of
from ember_ml.dispatch import REGISTRY, as_list, classify, leaf_types
from ember_ml.dispatch.fast import ENGINES
from ember_ml.dtypes import EmberDType, adapt, as_dtype, default_dtype, default_float, describe, holds, promote, shown

Array = np.ndarray[Any, Any]


def asarray(
    obj: object, /, *, dtype: np.dtype[Any] | None = None, device: str | None = None, copy: bool | None = None
) -> Array:
    recorder = ENGINES.get(DIFFERENTIATION)
    if recorder is not None and _holds_any(recorder.types, obj):
        return load_hidden(DIFFERENTIATION).convert(obj, dtype, device)
    obj = as_list(obj)
    check_number(obj, None if dtype is None else as_dtype(dtype))
    has_tensors, has_arrays = held(obj)
    if has_tensors:
        x, source = assembled(obj, dtype, DTYPES.__getitem__, _leaf, np.asarray), None
    else:
        source = None if isinstance(obj, (*NUMBERS, list, tuple, range)) else _host_values(obj)
        x = parse(obj if source is None else source, dtype, has_arrays)
    if source is None:
        _check_copy(copy, shared=False)
        return x
    shared = np.may_share_memory(x, source) or not x.size
    _check_copy(copy, shared)
    return x.copy() if copy and shared else x


def _holds_any(types: tuple[type, ...], value: object) -> bool:
    """Whether ``value`` is of one of the types, or a nested sequence that holds such a value."""
    found = leaf_types(value) if isinstance(value, (list, tuple)) else {type(value)}
    return not found.isdisjoint(types)


def _leaf(value: Any, dtype: np.dtype[Any] | None) -> Array:
    return parse(_host_values(value), dtype)


def _check_copy(copy: bool | None, shared: bool) -> None:
    if copy is not None and not copy and not shared:
        raise ValueError("copy must not be False for values that the tensor cannot share, got copy=False")


def _backend_of(value: object) -> Backend | None:
    """Backend of a tensor, or ``None`` for host arrays and other values."""
    backend = classify(type(value))
    return backend if isinstance(backend, Backend) else None


def _host_values(value: Any) -> Any:
    """Tensor of any engine as a host array, without a copy if possible; any other value unchanged."""
    backend = _backend_of(value)
    if backend is None:
        return value
    try:
        return np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError):
        return backend.to_host(value)


def _numbers(*values: Any) -> list[Any]:
    """Bounds of a range as Python numbers; 0-d tensors are converted."""
    return [value if type(value) in (int, float, complex) else _number(value) for value in values]


def _number(value: Any) -> Any:
    if isinstance(value, (int, float, complex)):
        return value
    if not hasattr(value, "item") or tuple(value.shape):
        raise TypeError(f"start, stop and step must be numbers, got {describe(value)}")
    return value.item()


def from_dlpack(x: object, /, *, device: str | None = None, copy: bool | None = None) -> Array:
    _check_exporter(x)
    is_tensor = isinstance(x, (np.ndarray, np.generic)) or _backend_of(x) is not None
    return asarray(x if is_tensor else np.from_dlpack(x), copy=copy)  # type: ignore[arg-type]


def _check_exporter(x: object) -> None:
    """Raise unless ``x`` supports DLPack or is a NumPy scalar, which does not but counts as a 0-d tensor."""
    if not hasattr(x, "__dlpack__") and not isinstance(x, np.generic):
        raise TypeError(f"x must have a method __dlpack__, got {describe(x)}")


def to_numpy(x: Any, /) -> Array:
    return np.array(x)


def _float() -> np.dtype[Any]:
    return DTYPES[default_float().name]


def _of_number(value: object) -> np.dtype[Any]:
    return DTYPES[default_dtype(kind_of(value)).name]


def zeros(shape: Any, *, dtype: np.dtype[Any] | None = None, device: str | None = None) -> Array:
    return np.zeros(shape, dtype or _float())


def ones(shape: Any, *, dtype: np.dtype[Any] | None = None, device: str | None = None) -> Array:
    return np.ones(shape, dtype or _float())


def full(shape: Any, fill_value: Any, *, dtype: np.dtype[Any] | None = None, device: str | None = None) -> Array:
    return _filled(shape, asarray(fill_value, dtype=dtype))


def _filled(shape: Any, value: Any) -> Array:
    return np.full(shape, value) if isinstance(value, np.ndarray) else REGISTRY["broadcast_to"].call(value, shape)


def empty(shape: Any, *, dtype: np.dtype[Any] | None = None, device: str | None = None) -> Array:
    return np.empty(shape, dtype or _float())


def zeros_like(x: Array, /, *, dtype: np.dtype[Any] | None = None, device: str | None = None) -> Array:
    return np.zeros(x.shape, dtype or x.dtype)


def ones_like(x: Array, /, *, dtype: np.dtype[Any] | None = None, device: str | None = None) -> Array:
    return np.ones(x.shape, dtype or x.dtype)


def full_like(x: Array, /, fill_value: Any, *, dtype: np.dtype[Any] | None = None, device: str | None = None) -> Array:
    return _filled(x.shape, asarray(fill_value, dtype=dtype or x.dtype))


def empty_like(x: Array, /, *, dtype: np.dtype[Any] | None = None, device: str | None = None) -> Array:
    return np.empty(x.shape, dtype or x.dtype)


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: np.dtype[Any] | None = None,
    device: str | None = None,
) -> Array:
    return np.eye(n_rows, n_cols, k, dtype or _float())


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: np.dtype[Any] | None = None,
    device: str | None = None,
) -> Array:
    start, stop, step = _numbers(*((0, start) if stop is None else (start, stop)), step)
    whole = all(isinstance(value, int) for value in (start, stop, step))
    dtype = dtype or (DTYPES["int64"] if whole else _float())
    try:
        return np.arange(start, stop, step).astype(dtype, copy=False)
    except ZeroDivisionError:
        raise ValueError("step must not be 0, got 0") from None


def linspace(
    start: complex,
    stop: complex,
    /,
    num: int = 50,
    *,
    dtype: np.dtype[Any] | None = None,
    device: str | None = None,
    endpoint: bool = True,
) -> Array:
    start, stop = _numbers(start, stop)
    return np.linspace(start, stop, num, endpoint, dtype=dtype or _of_number(start + stop + 0.0))


def logspace(
    start: complex,
    stop: complex,
    /,
    num: int = 50,
    *,
    base: float = 10.0,
    dtype: np.dtype[Any] | None = None,
    device: str | None = None,
    endpoint: bool = True,
) -> Array:
    start, stop, base = _numbers(start, stop, base)
    return np.logspace(start, stop, num, endpoint, base, dtype or _of_number(start + stop + base + 0.0))


def geomspace(
    start: complex,
    stop: complex,
    /,
    num: int = 50,
    *,
    dtype: np.dtype[Any] | None = None,
    device: str | None = None,
    endpoint: bool = True,
) -> Array:
    start, stop = _numbers(start, stop)
    _check_signs(start, stop)
    dtype = dtype or _of_number(start + stop + 0.0)
    if dtype.kind not in "iu":
        return np.geomspace(start, stop, num, endpoint, dtype)
    x = np.geomspace(start, stop, num, endpoint)
    whole = np.rint(x)
    # Casting would truncate values that rounding put just below an integer.
    return np.where(np.abs(x - whole) <= 1e-9 * np.abs(whole), whole, x).astype(dtype)


def _check_signs(start: complex, stop: complex) -> None:
    if start == 0 or stop == 0:
        raise ValueError(f"start and stop must not be 0, got start={start}, stop={stop}")
    if not isinstance(ratio := stop / start, complex) and ratio < 0:
        raise ValueError(f"start and stop must have one sign if they are real, got start={start}, stop={stop}")


def tril(x: Array, /, *, k: int = 0) -> Array:
    _check_matrix(x)
    return np.tril(x, k)


def triu(x: Array, /, *, k: int = 0) -> Array:
    _check_matrix(x)
    return np.triu(x, k)


def _check_matrix(x: Any) -> None:
    if x.ndim < 2:
        raise ValueError(f"x must have at least 2 axes, got {x.ndim}")


def vander(x: Array, /, n: int | None = None, *, increasing: bool = False) -> Array:
    n = _columns(x, n)
    powers = np.ones((x.shape[0], n), x.dtype)
    powers[:, 1:] = x[:, None]
    np.multiply.accumulate(powers, axis=1, out=powers)
    return powers if increasing else powers[:, ::-1]


def _columns(x: Any, n: int | None) -> int:
    if x.ndim != 1:
        raise ValueError(f"x must have 1 axis, got {x.ndim}")
    if n is not None and n < 0:
        raise ValueError(f"n must be >= 0, got {n}")
    return int(x.shape[0]) if n is None else n


def copy(x: Array, /) -> Array:
    return np.array(x)


def bartlett(n: int, /, *, dtype: np.dtype[Any] | None = None, device: str | None = None) -> Array:
    return np.bartlett(n).astype(dtype or _float())


def blackman(n: int, /, *, dtype: np.dtype[Any] | None = None, device: str | None = None) -> Array:
    if n <= 1:
        return np.ones(max(n, 0), dtype or _float())
    wave = np.cos(2 * np.pi * np.arange(n) / (n - 1))
    # In this form the ends are exactly 0 and the middle is exactly 1, also for integer dtypes.
    return ((1 - wave) * (0.34 - 0.16 * wave)).astype(dtype or _float())


def hamming(n: int, /, *, dtype: np.dtype[Any] | None = None, device: str | None = None) -> Array:
    return np.hamming(n).astype(dtype or _float())


def hanning(n: int, /, *, dtype: np.dtype[Any] | None = None, device: str | None = None) -> Array:
    return np.hanning(n).astype(dtype or _float())


def kaiser(n: int, beta: float, /, *, dtype: np.dtype[Any] | None = None, device: str | None = None) -> Array:
    return np.kaiser(n, beta).astype(dtype or _float())
