"""Creation of tensors on JAX."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from math import prod
from operator import index
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import SingleDeviceSharding

from ember_ml.backend.jax.core import TENSORS, cast, convert, device_like, from_host, jitted, named, static
from ember_ml.backend.jax.device import to_device
from ember_ml.backend.numpy import creation as host
from ember_ml.backend.numpy.core import check_cast
from ember_ml.backend.numpy.sequences import NUMBERS, assembled, check_number, held
from ember_ml.dispatch import as_list
from ember_ml.dtypes import as_dtype

_DType = np.dtype[Any]


def asarray(
    obj: object, /, *, dtype: _DType | None = None, device: jax.Device | None = None, copy: bool | None = None
) -> Array:
    if isinstance(obj, TENSORS):
        return _adapted(obj, dtype, device, copy)
    obj = as_list(obj)
    if host._backend_of(obj) is not None or copy is not None:
        shared = None if copy else _shared(obj)
        host._check_copy(copy, shared is not None)
        if shared is not None:
            return _adapted(shared, dtype, device, copy)
    check_number(obj, None if dtype is None else as_dtype(dtype))
    if held(obj)[0]:
        return assembled(obj, dtype, named, lambda leaf, native: asarray(leaf, dtype=native, device=device), jnp.stack)
    return convert(host._host_values(obj), dtype, device)


def _adapted(x: Array, dtype: _DType | None, device: jax.Device | None, copied: bool | None) -> Array:
    """``x`` in a dtype and on a device."""
    if dtype is not None:
        check_cast(x.dtype, dtype)
    found = x if dtype is None or x.dtype == dtype else cast(x, dtype)
    found = found if device is None else to_device(found, device)
    host._check_copy(copied, found is x)
    return copy(x) if copied and found is x else found


def _shared(obj: Any) -> Array | None:
    """Array that shares memory with another library's, or ``None`` if it cannot: JAX's must be aligned to 64 bytes."""
    if not hasattr(obj, "__dlpack__"):
        return None
    try:
        x = jnp.from_dlpack(obj, copy=False)
    except (BufferError, RuntimeError, TypeError, ValueError):
        return None
    named(x.dtype.name)
    return x


def from_dlpack(x: object, /, *, device: jax.Device | None = None, copy: bool | None = None) -> Array:
    host._check_exporter(x)
    shared = None if copy or isinstance(x, TENSORS) else _shared(x)
    return asarray(x if shared is None else shared, device=device, copy=copy)


def to_numpy(x: Array, /) -> np.ndarray[Any, Any]:
    return np.array(x)


def _float() -> _DType:
    return named(host._float().name)


def _lengths(shape: Any) -> tuple[int, ...]:
    """Lengths of the axes; NumPy's error if memory cannot hold that many elements of any size."""
    lengths = tuple(map(index, (shape,) if hasattr(shape, "__index__") else shape))
    # JAX 0.10: a failed allocation on the CPU ends the process.
    if prod(lengths) > _CHECKED:
        np.empty(lengths, np.uint8)
    return lengths


# Smaller arrays are not checked.
_CHECKED = 1 << 33


def _made(function: Callable[..., Array], *names: str) -> Callable[..., Array]:
    """``function`` as one program for each device and set of values of the parameters ``names``.

    What it makes on JAX's own default device is not bound to it, so that it can meet arrays of other devices.
    """

    @cache
    def on(device: jax.Device | None) -> Callable[..., Array]:
        place = None if device is None else SingleDeviceSharding(device)
        return jax.jit(function, static_argnames=names, out_shardings=place)

    def run(*args: Any, device: jax.Device | None) -> Array:
        is_own = device is _FIRST and jax.config.jax_default_device is None
        return on(None if is_own else device)(*args)

    return run


_FIRST = jax.local_devices()[0]
_zeros = _made(lambda shape, dtype: jnp.zeros(shape, dtype), "shape", "dtype")
_ones = _made(lambda shape, dtype: jnp.ones(shape, dtype), "shape", "dtype")
_full = _made(lambda value, shape: jnp.broadcast_to(value, shape), "shape")
_eye = _made(lambda rows, columns, k, dtype: jnp.eye(rows, columns, k, dtype), "rows", "columns", "k", "dtype")
_range = _made(lambda start, step, n, dtype: (start + step * jnp.arange(n)).astype(dtype), "n", "dtype")


def zeros(shape: Any, *, dtype: _DType | None = None, device: jax.Device | None = None) -> Array:
    return _zeros(_lengths(shape), dtype or _float(), device=device)


def ones(shape: Any, *, dtype: _DType | None = None, device: jax.Device | None = None) -> Array:
    return _ones(_lengths(shape), dtype or _float(), device=device)


def full(shape: Any, fill_value: Any, *, dtype: _DType | None = None, device: jax.Device | None = None) -> Array:
    value: Any
    if isinstance(fill_value, NUMBERS):
        value = host.asarray(fill_value, dtype=dtype)
        named(value.dtype.name)
    else:
        value = asarray(fill_value, dtype=dtype, device=device)
        device = device_like(value)
    return _full(value, _lengths(shape), device=device)


empty = zeros


def zeros_like(x: Array, /, *, dtype: _DType | None = None, device: jax.Device | None = None) -> Array:
    return _zeros(x.shape, dtype or x.dtype, device=device or device_like(x))


def ones_like(x: Array, /, *, dtype: _DType | None = None, device: jax.Device | None = None) -> Array:
    return _ones(x.shape, dtype or x.dtype, device=device or device_like(x))


def full_like(x: Array, /, fill_value: Any, *, dtype: _DType | None = None, device: jax.Device | None = None) -> Array:
    return full(x.shape, fill_value, dtype=dtype or x.dtype, device=device or device_like(x))


empty_like = zeros_like


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: _DType | None = None,
    device: jax.Device | None = None,
) -> Array:
    n_cols = n_rows if n_cols is None else n_cols
    return _eye(n_rows, n_cols, max(-n_rows, min(k, n_cols)), dtype or _float(), device=device)


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: _DType | None = None,
    device: jax.Device | None = None,
) -> Array:
    start, stop, step = host._numbers(*((0, start) if stop is None else (start, stop)), step)
    numbers = (start, stop, step)
    if step and all(isinstance(one, int) and abs(one) < 1 << 62 for one in numbers):
        count = len(range(int(start), int(stop), int(step)))
        return _range(int(start), int(step), count, dtype or named("int64"), device=device)
    return from_host(host.arange(start, stop, step, dtype=dtype), device)


def _on_host(make: Callable[..., np.ndarray[Any, Any]]) -> Callable[..., Array]:
    """``make``, a function of NumPy's backend, whose result is moved to the device."""

    @wraps(make)
    def run(*args: Any, device: jax.Device | None = None, **options: Any) -> Array:
        return from_host(make(*args, **options), device)

    return run


linspace, logspace, geomspace = _on_host(host.linspace), _on_host(host.logspace), _on_host(host.geomspace)


def _triangle(run: Callable[..., Array]) -> Callable[..., Array]:
    def triangle(x: Array, /, *, k: int = 0) -> Array:
        host._check_matrix(x)
        return run(x, k)

    return jitted(triangle, "k")


tril, triu = _triangle(jnp.tril), _triangle(jnp.triu)
diag = jitted(lambda x, /, k=0: jnp.diag(x, k), "k")


@static("n", "increasing")
def vander(x: Array, /, n: int | None = None, *, increasing: bool = False) -> Array:
    shape = (x.size, host._columns(x, n))
    factors = jnp.broadcast_to(x[:, None], shape).at[:, :1].set(1)
    powers = jnp.cumprod(factors, 1, x.dtype)
    return powers if increasing else powers[:, ::-1]


copy = jitted(lambda x, /: jnp.copy(x))


bartlett, blackman = _on_host(host.bartlett), _on_host(host.blackman)
hamming, hanning, kaiser = _on_host(host.hamming), _on_host(host.hanning), _on_host(host.kaiser)
