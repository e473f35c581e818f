"""Creation of tensors on MLX."""

from __future__ import annotations

from operator import index
from typing import Any

import mlx.core as mx
import numpy as np

from ember_ml.backend.mlx.core import _HOST_OF, DTYPES, check_memory, convert, from_host, named, stream_for
from ember_ml.backend.mlx.core import to_host as _to_host
from ember_ml.backend.numpy import creation as host
from ember_ml.backend.numpy.creation import (
    _check_copy,
    _check_exporter,
    _check_matrix,
    _columns,
    _host_values,
    _numbers,
)
from ember_ml.backend.numpy.sequences import assembled, check_number, held, kind_of
from ember_ml.dispatch import as_list
from ember_ml.dtypes import as_dtype, default_dtype, default_float


def asarray(
    obj: object, /, *, dtype: mx.Dtype | None = None, device: mx.Device | None = None, copy: bool | None = None
) -> mx.array:
    if isinstance(obj, mx.array):
        if dtype is not None and obj.dtype != dtype:
            _check_copy(copy, shared=False)
            if obj.dtype == mx.complex64 and dtype != mx.bool_:
                raise TypeError(
                    f"dtype must be complex for {str(obj.dtype).removeprefix('mlx.core.')} values, got "
                    f"{str(dtype).removeprefix('mlx.core.')}; take the real part first"
                )
            return obj.astype(dtype, stream=device)
        return mx.array(obj) if copy else obj
    obj = as_list(obj)
    _check_copy(copy, shared=False)
    check_number(obj, None if dtype is None else as_dtype(dtype))
    if held(obj)[0]:
        return assembled(obj, dtype, named, lambda leaf, native: asarray(leaf, dtype=native), mx.stack)
    return convert(_host_values(obj), dtype, device)


def from_dlpack(x: object, /, *, device: mx.Device | None = None, copy: bool | None = None) -> mx.array:
    _check_exporter(x)
    return asarray(x, copy=copy)


def to_numpy(x: mx.array, /) -> np.ndarray[Any, Any]:
    return _to_host(x)


def _float() -> mx.Dtype:
    return DTYPES[default_float().name]


def _of_number(value: object) -> mx.Dtype:
    return named(default_dtype(kind_of(value)).name)


def _lengths(shape: Any, dtype: mx.Dtype) -> tuple[int, ...]:
    """Lengths of the axes; raises if memory cannot hold the array."""
    lengths = tuple(map(index, (shape,) if hasattr(shape, "__index__") else shape))
    check_memory(lengths, dtype)
    return lengths


def zeros(shape: Any, *, dtype: mx.Dtype | None = None, device: mx.Device | None = None) -> mx.array:
    dtype = dtype or _float()
    return mx.zeros(_lengths(shape, dtype), dtype, stream=device)


def ones(shape: Any, *, dtype: mx.Dtype | None = None, device: mx.Device | None = None) -> mx.array:
    dtype = dtype or _float()
    return mx.ones(_lengths(shape, dtype), dtype, stream=device)


def full(shape: Any, fill_value: Any, *, dtype: mx.Dtype | None = None, device: mx.Device | None = None) -> mx.array:
    value = asarray(fill_value, dtype=dtype)
    return _filled(_lengths(shape, value.dtype), value, device)


def _filled(shape: Any, value: mx.array, device: mx.Device | None) -> mx.array:
    # MLX 0.32: the gradient of mx.full is wrong if the value is broadcast.
    return mx.broadcast_to(value, shape, stream=device) if value.ndim else mx.full(shape, value, stream=device)


def empty(shape: Any, *, dtype: mx.Dtype | None = None, device: mx.Device | None = None) -> mx.array:
    return zeros(shape, dtype=dtype, device=device)


def zeros_like(x: mx.array, /, *, dtype: mx.Dtype | None = None, device: mx.Device | None = None) -> mx.array:
    return zeros(x.shape, dtype=dtype or x.dtype, device=device)


def ones_like(x: mx.array, /, *, dtype: mx.Dtype | None = None, device: mx.Device | None = None) -> mx.array:
    return ones(x.shape, dtype=dtype or x.dtype, device=device)


def full_like(
    x: mx.array, /, fill_value: Any, *, dtype: mx.Dtype | None = None, device: mx.Device | None = None
) -> mx.array:
    return full(x.shape, fill_value, dtype=dtype or x.dtype, device=device)


def empty_like(x: mx.array, /, *, dtype: mx.Dtype | None = None, device: mx.Device | None = None) -> mx.array:
    return zeros(x.shape, dtype=dtype or x.dtype, device=device)


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: mx.Dtype | None = None,
    device: mx.Device | None = None,
) -> mx.array:
    # MLX 0.32: the offset is a 32-bit integer. All offsets outside the matrix are equivalent.
    n_cols = n_rows if n_cols is None else n_cols
    k = max(-n_rows, min(k, n_cols))
    dtype = dtype or _float()
    check_memory((n_rows, n_cols), dtype)
    with stream_for(dtype):
        return mx.eye(n_rows, n_cols, k, dtype, stream=device if dtype.size < 8 else None)


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: mx.Dtype | None = None,
    device: mx.Device | None = None,
) -> mx.array:
    start, stop, step = _numbers(*((0, start) if stop is None else (start, stop)), step)
    whole = all(isinstance(value, int) for value in (start, stop, step))
    if whole and step != 0:
        check_memory((len(range(int(start), int(stop), int(step))),), dtype or mx.int64)
        return mx.arange(start, stop, step, mx.int64, stream=device).astype(dtype or mx.int64, stream=device)
    values = host.arange(start, stop, step, dtype=None if dtype is None else _HOST_OF[dtype])
    return from_host(values).astype(dtype or _float(), stream=device)


def linspace(
    start: complex,
    stop: complex,
    /,
    num: int = 50,
    *,
    dtype: mx.Dtype | None = None,
    device: mx.Device | None = None,
    endpoint: bool = True,
) -> mx.array:
    return from_host(host.linspace(start, stop, num, dtype=_host_dtype(dtype), endpoint=endpoint))


def _host_dtype(dtype: mx.Dtype | None) -> np.dtype[Any] | None:
    return None if dtype is None else _HOST_OF[dtype]


def logspace(
    start: complex,
    stop: complex,
    /,
    num: int = 50,
    *,
    base: float = 10.0,
    dtype: mx.Dtype | None = None,
    device: mx.Device | None = None,
    endpoint: bool = True,
) -> mx.array:
    return from_host(host.logspace(start, stop, num, base=base, dtype=_host_dtype(dtype), endpoint=endpoint))


def geomspace(
    start: complex,
    stop: complex,
    /,
    num: int = 50,
    *,
    dtype: mx.Dtype | None = None,
    device: mx.Device | None = None,
    endpoint: bool = True,
) -> mx.array:
    return from_host(host.geomspace(start, stop, num, dtype=_host_dtype(dtype), endpoint=endpoint))


def tril(x: mx.array, /, *, k: int = 0) -> mx.array:
    _check_matrix(x)
    return mx.tril(x, k)


def triu(x: mx.array, /, *, k: int = 0) -> mx.array:
    _check_matrix(x)
    return mx.triu(x, k)


def diag(x: mx.array, /, k: int = 0) -> mx.array:
    with stream_for(x.dtype):
        return mx.diag(x, k)


def vander(x: mx.array, /, n: int | None = None, *, increasing: bool = False) -> mx.array:
    factors = [mx.ones((x.size, 1), x.dtype), mx.repeat(x[:, None], max(_columns(x, n) - 1, 0), 1)]
    powers = mx.cumprod(mx.concatenate(factors, 1)[:, : _columns(x, n)], 1)
    return powers if increasing else powers[:, ::-1]


def copy(x: mx.array, /) -> mx.array:
    return mx.array(x)


def bartlett(n: int, /, *, dtype: mx.Dtype | None = None, device: mx.Device | None = None) -> mx.array:
    return from_host(host.bartlett(n, dtype=_host_dtype(dtype)))


def blackman(n: int, /, *, dtype: mx.Dtype | None = None, device: mx.Device | None = None) -> mx.array:
    return from_host(host.blackman(n, dtype=_host_dtype(dtype)))


def hamming(n: int, /, *, dtype: mx.Dtype | None = None, device: mx.Device | None = None) -> mx.array:
    return from_host(host.hamming(n, dtype=_host_dtype(dtype)))


def hanning(n: int, /, *, dtype: mx.Dtype | None = None, device: mx.Device | None = None) -> mx.array:
    return from_host(host.hanning(n, dtype=_host_dtype(dtype)))


def kaiser(n: int, beta: float, /, *, dtype: mx.Dtype | None = None, device: mx.Device | None = None) -> mx.array:
    return from_host(host.kaiser(n, beta, dtype=_host_dtype(dtype)))
