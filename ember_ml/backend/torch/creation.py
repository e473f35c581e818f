"""Creation of tensors on torch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import diag

from ember_ml.backend.numpy.creation import (
    _backend_of,
    _check_copy,
    _check_exporter,
    _check_matrix,
    _check_signs,
    _columns,
    _host_values,
    _numbers,
)
from ember_ml.backend.numpy.sequences import NUMBERS, assembled, check_number, held, kind_of
from ember_ml.backend.torch.core import DTYPES, convert, device_in, from_host, narrower, parse
from ember_ml.backend.torch.core import to_host as _to_host
from ember_ml.dispatch import as_list
from ember_ml.dtypes import as_dtype, default_dtype, default_float

Tensor = torch.Tensor

# Where host data and float64, which not all devices have, are.
_CPU = torch.device("cpu")
_EMBER_DTYPES = {native: as_dtype(name) for name, native in DTYPES.items()}


def asarray(
    obj: object,
    /,
    *,
    dtype: torch.dtype | None = None,
    device: torch.device | None = None,
    copy: bool | None = None,
) -> Tensor:
    obj = as_list(obj)
    if isinstance(obj, (*NUMBERS, list, tuple, range)):
        _check_copy(copy, shared=False)
        check_number(obj, _EMBER_DTYPES.get(dtype))
        if held(obj)[0]:
            target = device or device_in(obj)
            return assembled(
                obj,
                dtype,
                DTYPES.__getitem__,
                lambda leaf, native: asarray(leaf, dtype=native, device=target),
                torch.stack,
            )
        return convert(obj, dtype, device)
    source = obj if isinstance(obj, Tensor) else _share_memory(obj)
    is_shared = source is not None
    if source is None:
        source = from_host(parse(_host_values(obj), None), _CPU)
    if dtype is not None and source.is_complex() and not dtype.is_complex and dtype is not torch.bool:
        raise TypeError(
            f"dtype must be complex for {str(source.dtype)[6:]} values, got {str(dtype)[6:]}; take the real part first"
        )
    if dtype is None and not isinstance(obj, Tensor):
        dtype = narrower(source.dtype, device)
    x = source.to(device=device, dtype=dtype)
    _check_copy(copy, is_shared and x is source)
    return x.clone() if copy and is_shared and x is source else x


def _share_memory(obj: Any) -> Tensor | None:
    """Tensor that shares memory with a host array or another engine's tensor, or ``None`` if that is impossible."""
    try:
        if _backend_of(obj) is None:
            array = parse(obj, None)
            return torch.from_numpy(array) if array.flags.writeable else None
        # torch 2.13: negative strides from DLPack end the process.
        return torch.from_dlpack(obj) if min((0, *np.from_dlpack(obj).strides)) == 0 else None
    except (BufferError, RuntimeError, TypeError, ValueError):
        return None


def from_dlpack(x: object, /, *, device: torch.device | None = None, copy: bool | None = None) -> Tensor:
    _check_exporter(x)
    return asarray(x, device=device, copy=copy)


def to_numpy(x: Tensor, /) -> np.ndarray[Any, Any]:
    return np.array(_to_host(x))


def _float() -> torch.dtype:
    return DTYPES[default_float().name]


def _of_number(value: object) -> torch.dtype:
    return DTYPES[default_dtype(kind_of(value)).name]


def zeros(shape: Any, *, dtype: torch.dtype | None = None, device: torch.device | None = None) -> Tensor:
    return torch.zeros(shape, dtype=dtype or _float(), device=device)


def ones(shape: Any, *, dtype: torch.dtype | None = None, device: torch.device | None = None) -> Tensor:
    return torch.ones(shape, dtype=dtype or _float(), device=device)


def full(
    shape: Any, fill_value: Any, *, dtype: torch.dtype | None = None, device: torch.device | None = None
) -> Tensor:
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    if type(fill_value) in NUMBERS:
        check_number(fill_value, _EMBER_DTYPES.get(dtype))
        try:
            return torch.full(shape, fill_value, dtype=dtype or _of_number(fill_value), device=device)
        except (OverflowError, RuntimeError):
            # torch 2.13: torch.full raises for values that round to infinity or to the limit of an integer dtype.
            pass
    return asarray(fill_value, dtype=dtype, device=device).expand(shape).clone()


def empty(shape: Any, *, dtype: torch.dtype | None = None, device: torch.device | None = None) -> Tensor:
    return torch.empty(shape, dtype=dtype or _float(), device=device)


def zeros_like(x: Tensor, /, *, dtype: torch.dtype | None = None, device: torch.device | None = None) -> Tensor:
    return torch.zeros_like(x, dtype=dtype, device=device)


def ones_like(x: Tensor, /, *, dtype: torch.dtype | None = None, device: torch.device | None = None) -> Tensor:
    return torch.ones_like(x, dtype=dtype, device=device)


def full_like(
    x: Tensor, /, fill_value: Any, *, dtype: torch.dtype | None = None, device: torch.device | None = None
) -> Tensor:
    return full(x.shape, fill_value, dtype=dtype or x.dtype, device=device or x.device)


def empty_like(x: Tensor, /, *, dtype: torch.dtype | None = None, device: torch.device | None = None) -> Tensor:
    return torch.empty_like(x, dtype=dtype, device=device)


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: torch.dtype | None = None,
    device: torch.device | None = None,
) -> Tensor:
    n_cols = n_rows if n_cols is None else n_cols
    if k == 0:
        return torch.eye(n_rows, n_cols, dtype=dtype or _float(), device=device)
    rows, columns = torch.arange(n_rows, device=device), torch.arange(n_cols, device=device)
    k = max(-n_rows, min(k, n_cols))
    return (rows[:, None] + k == columns).to(dtype or _float())


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: torch.dtype | None = None,
    device: torch.device | None = None,
) -> Tensor:
    start, stop, step = _numbers(*((0, start) if stop is None else (start, stop)), step)
    whole = all(isinstance(value, int) for value in (start, stop, step))
    dtype = dtype or (torch.int64 if whole else _float())
    if step == 0:
        raise ValueError("step must not be 0, got 0")
    if (stop - start) / step <= 0:
        return torch.empty(0, dtype=dtype, device=device)
    native = torch.int64 if whole else _widest_float(device)
    return torch.arange(start, stop, step, dtype=native, device=device).to(dtype)


def _widest_float(device: torch.device | None) -> torch.dtype:
    """Dtype for computation before rounding, as in NumPy: the widest float of the device."""
    return torch.float32 if device is not None and device.type == "mps" else torch.float64


def linspace(
    start: complex,
    stop: complex,
    /,
    num: int = 50,
    *,
    dtype: torch.dtype | None = None,
    device: torch.device | None = None,
    endpoint: bool = True,
) -> Tensor:
    start, stop = _numbers(start, stop)
    x = _spaced(start, stop, num, device, endpoint)
    dtype = dtype or _of_number(start + stop + 0.0)
    whole = not (dtype.is_floating_point or dtype.is_complex or dtype is torch.bool)
    return (x.floor() if whole else x).to(dtype)


def _spaced(start: complex, stop: complex, num: int, device: torch.device | None, endpoint: bool) -> Tensor:
    if num < 0:
        raise ValueError(f"num must be >= 0, got {num}")
    count = torch.arange(num, dtype=_widest_float(device), device=device)
    divisions = num - 1 if endpoint else num
    if divisions <= 0:
        return count * (stop - start) + start
    x = count * ((stop - start) / divisions) + start
    return torch.where(count == divisions, stop, x)


def logspace(
    start: complex,
    stop: complex,
    /,
    num: int = 50,
    *,
    base: float = 10.0,
    dtype: torch.dtype | None = None,
    device: torch.device | None = None,
    endpoint: bool = True,
) -> Tensor:
    start, stop, base = _numbers(start, stop, base)
    x = torch.pow(base, _spaced(start, stop, num, device, endpoint))
    return x.to(dtype or _of_number(start + stop + base + 0.0))


def geomspace(
    start: complex,
    stop: complex,
    /,
    num: int = 50,
    *,
    dtype: torch.dtype | None = None,
    device: torch.device | None = None,
    endpoint: bool = True,
) -> Tensor:
    start, stop = _numbers(start, stop)
    _check_signs(start, stop)
    ratio = stop / start
    end: complex = math.log(abs(ratio))
    if isinstance(ratio, complex):
        end = complex(end, math.atan2(ratio.imag, ratio.real))
    x = start * torch.exp(_spaced(0.0, end, num, device, endpoint))
    dtype = dtype or _of_number(start + stop + 0.0)
    if not (dtype.is_floating_point or dtype.is_complex or x.is_complex()):
        whole = x.round()
        # Casting would truncate values that rounding put just below an integer.
        x = torch.where((x - whole).abs() <= 1e-9 * whole.abs(), whole, x)
    return x.to(dtype)


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    _check_matrix(x)
    return torch.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    _check_matrix(x)
    return torch.triu(x, k)


def vander(x: Tensor, /, n: int | None = None, *, increasing: bool = False) -> Tensor:
    n = _columns(x, n)
    factors = x[:, None].expand(-1, n).clone()
    factors[:, :1] = 1
    powers = torch.cumprod(factors, 1, dtype=x.dtype)
    return powers if increasing else powers.flip(1)


def copy(x: Tensor, /) -> Tensor:
    return x.clone()


def bartlett(n: int, /, *, dtype: torch.dtype | None = None, device: torch.device | None = None) -> Tensor:
    return torch.bartlett_window(max(n, 0), False, dtype=torch.float64, device=_CPU).to(device, dtype or _float())


def blackman(n: int, /, *, dtype: torch.dtype | None = None, device: torch.device | None = None) -> Tensor:
    if n <= 1:
        return torch.ones(max(n, 0), dtype=dtype or _float(), device=device)
    wave = torch.cos(2 * math.pi * torch.arange(n, dtype=torch.float64, device=_CPU) / (n - 1))
    # In this form the ends are exactly 0 and the middle is exactly 1, also for integer dtypes.
    return ((1 - wave) * (0.34 - 0.16 * wave)).to(device, dtype or _float())


def hamming(n: int, /, *, dtype: torch.dtype | None = None, device: torch.device | None = None) -> Tensor:
    return torch.hamming_window(max(n, 0), False, dtype=torch.float64, device=_CPU).to(device, dtype or _float())


def hanning(n: int, /, *, dtype: torch.dtype | None = None, device: torch.device | None = None) -> Tensor:
    return torch.hann_window(max(n, 0), False, dtype=torch.float64, device=_CPU).to(device, dtype or _float())


def kaiser(n: int, beta: float, /, *, dtype: torch.dtype | None = None, device: torch.device | None = None) -> Tensor:
    return torch.kaiser_window(max(n, 0), False, beta, dtype=torch.float64, device=_CPU).to(device, dtype or _float())
