"""What dispatch needs of NumPy: its tensor types, dtypes, conversions, device and errors."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from ember_ml import tree
from ember_ml.backend.numpy.sequences import assembled, held
from ember_ml.dtypes import as_dtype, default_dtype, holds, shown, written
from ember_ml.errors import AxisError, LinAlgError

TENSORS = (np.ndarray, np.generic)
VIEWS = True

_NAMES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128"
DTYPES = {name: np.dtype(name) for name in _NAMES.split()}
DTYPES["bfloat16"] = np.dtype(ml_dtypes.bfloat16)

SCALARS = tuple(dtype.type for dtype in DTYPES.values())

_CANONICAL = {dtype: dtype for dtype in DTYPES.values()}


def convert(value: Any, dtype: np.dtype[Any] | None, device: str | None) -> np.ndarray[Any, Any]:
    """``value`` as a host array of ``dtype``, or of the dtype that Python numbers and arrays have by default."""
    return parse(value, dtype)


def parse(value: Any, dtype: np.dtype[Any] | None, has_arrays: bool | None = None) -> np.ndarray[Any, Any]:
    """Host array from a number, a nested sequence, a host array or a foreign tensor; the entry point of all engines.

    Args:
        has_arrays: what ``held`` returns for a sequence, if that is already computed.
    """
    if type(value) in (bool, int, float, complex):
        dtype = dtype or DTYPES[default_dtype(type(value)).name]
        return np.asarray(value if dtype.kind in "iu" else short(value), dtype=dtype)
    if isinstance(value, TENSORS):
        array = np.asarray(value)
    elif isinstance(value, (list, tuple, range)):
        if held(value)[1] if has_arrays is None else has_arrays:
            return assembled(value, dtype, DTYPES.__getitem__, parse, np.asarray)
        array = _from_sequence(value, dtype)
    else:
        array = _from_foreign(value)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    known = _CANONICAL.get(array.dtype)
    if known is None:
        tree.depth(value)  # raises a clearer error for a sequence that contains itself
        raise TypeError(f"the values of a tensor must be numbers or tensors, got {written(value)}")
    if known is not array.dtype:
        # NumPy has two equal 64-bit integer dtypes; other engines support only the canonical one.
        array = array.view(known)
    if dtype is None or known is dtype:
        return array
    check_cast(known, dtype)
    return array.astype(dtype)


def check_cast(source: np.dtype[Any], dtype: np.dtype[Any]) -> None:
    """Raise an error if a cast would discard imaginary parts."""
    if source.kind == "c" and dtype.kind not in "cb":
        raise TypeError(f"dtype must be complex for {source} values, got {dtype}; take the real part first")


def short(number: Any) -> Any:
    """``number`` for a non-integer dtype: integers beyond int64 become floats."""
    return float(number) if type(number) is int and not -1 << 63 <= number < 1 << 63 else number


_DEFAULT_OF = {"f": float, "c": complex, "i": int, "b": bool}


def _from_sequence(value: Any, dtype: np.dtype[Any] | None) -> np.ndarray[Any, Any]:
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError("the rows of a nested sequence must have one length, got several") from error
    leaf = value
    while isinstance(leaf, (list, tuple)) and leaf:
        leaf = leaf[0]
    if array.dtype == object:
        tree.depth(value)
        array = _objects_to_floats(array)
    elif isinstance(leaf, TENSORS):
        return array
    if dtype is not None:
        return _check_range(array, value, dtype)
    if array.dtype.kind == "u" or (array.dtype == np.float64 and isinstance(leaf, int) and _exceeds_int64(array)):
        # There is an integer beyond int64, or one next to a float, which may become a float.
        elements = np.asarray(value, object).ravel().tolist()
        if all(isinstance(element, int) for element in elements):
            raise _range_error(DTYPES["int64"], max(elements, key=abs))
    kind = _DEFAULT_OF.get(array.dtype.kind)
    return array if kind is None else array.astype(DTYPES[default_dtype(kind).name], copy=False)


def _objects_to_floats(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Array of Python numbers, some of them integers of more than 64 bits, as floats."""
    kinds = set(map(type, array.ravel().tolist()))
    if not kinds <= {bool, int, float, complex}:
        raise TypeError("the values of a sequence must be numbers or tensors, got others")
    return array.astype(np.complex128 if complex in kinds else np.float64)


def _exceeds_int64(array: np.ndarray[Any, Any]) -> bool:
    """Whether a float array holds a value beyond the range of int64."""
    return array.size > 0 and not np.abs(array).max() < 1 << 63


def _check_range(array: np.ndarray[Any, Any], value: Any, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Python numbers as an array of ``dtype``, or an error if it cannot hold one of them."""
    if array.dtype.kind == "c" and dtype.kind != "c":
        raise TypeError(f"dtype must be complex for complex numbers, got {dtype.name}")
    if dtype.kind not in "iu" or not array.size:
        return array
    if array.dtype == np.float64 and _exceeds_int64(array):
        # NumPy converts integers beyond int64, mixed with smaller ones, to float64.
        array = np.asarray(value, object)
    for end in (array.min(), array.max()):
        number = np.asarray(end).tolist()
        if not holds(as_dtype(dtype.name), number):
            raise _range_error(dtype, number)
    return array.astype(dtype)


def _range_error(dtype: np.dtype[Any], number: Any) -> ValueError:
    return ValueError(f"values must fit into {dtype.name}, got {shown(number)}")


def _from_foreign(value: Any) -> np.ndarray[Any, Any]:
    if hasattr(value, "__array__") or hasattr(value, "__array_interface__"):
        return np.asarray(value)
    if hasattr(value, "__dlpack__"):
        return np.from_dlpack(value)
    return np.asarray(memoryview(value) if isinstance(value, (bytes, bytearray)) else value)


def scalar_like(number: float, like: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A Python number as a 0-d array of the dtype of ``like``."""
    return np.array(number, like.dtype)


def cast(x: Any, dtype: np.dtype[Any]) -> Any:
    """``x`` in another dtype."""
    return x.astype(dtype)


def to_host(x: Any) -> np.ndarray[Any, Any]:
    """``x`` itself, as an array."""
    return np.asarray(x)


def forwards(x: Any) -> Any:
    """``x``, or a copy if its strides are negative. torch 2.13: negative strides from DLPack end the process."""
    return x.copy() if min((0, *x.strides)) < 0 else x


def text(array: np.ndarray[Any, Any], indent: int) -> str:
    """Values of ``array`` as nested lists, abbreviated if long; lines after the first are indented by ``indent``."""
    return np.array2string(array, separator=", ", prefix=" " * indent)


def device_like(x: Any) -> str:
    """Device object of the engine for the device of ``x``."""
    return "cpu"


def device_of(x: Any) -> str:
    """Name of the device of ``x``, always the CPU."""
    return "cpu"


def devices() -> list[str]:
    """Names of the available devices, the fastest last."""
    return ["cpu"]


def find_device(name: Any) -> str:
    """Device object of the engine for a device name."""
    if name != "cpu":
        raise ValueError(f"device must be one of cpu on the numpy backend, got {str(name)!r}")
    return "cpu"


def error_class(error: Exception) -> type[Exception] | None:
    """Error class of this mistake on every engine, or ``None`` if it is the error's own."""
    if isinstance(error, np.exceptions.AxisError) or "zero-dimensional arrays" in str(error):
        return AxisError
    if isinstance(error, np.linalg.LinAlgError):
        return ValueError if "dimension" in str(error) else LinAlgError
    return None
