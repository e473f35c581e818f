"""What the door needs of NumPy: its tensor types, dtypes, conversions, device and errors."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from ember_ml.dtypes import default_dtype
from ember_ml.errors import AxisError, LinAlgError

TENSORS = (np.ndarray, np.generic)

_NAMES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128"
DTYPES = {name: np.dtype(name) for name in _NAMES.split()}
DTYPES["bfloat16"] = np.dtype(ml_dtypes.bfloat16)

SCALARS = tuple(dtype.type for dtype in DTYPES.values())

_KNOWN = frozenset(DTYPES.values())


def convert(value: Any, dtype: np.dtype[Any] | None, device: str | None) -> np.ndarray[Any, Any]:
    """``value`` as a host array of ``dtype``, or of the dtype that Python numbers and arrays have by default."""
    return parse(value, dtype)


def parse(value: Any, dtype: np.dtype[Any] | None) -> np.ndarray[Any, Any]:
    """A host array from a number, a nested sequence, a host array or a foreign tensor. All engines read through it."""
    if type(value) in (bool, int, float, complex):
        return np.asarray(value, dtype=dtype or DTYPES[default_dtype(type(value)).name])
    if isinstance(value, TENSORS):
        array = np.asarray(value)
    elif isinstance(value, (list, tuple, range)):
        array = _from_sequence(value, dtype)
    else:
        array = _from_foreign(value)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype not in _KNOWN:
        raise TypeError(f"cannot make a tensor of {array.dtype} values")
    return array if dtype is None or array.dtype is dtype else array.astype(dtype)


_DEFAULT_OF = {"f": float, "c": complex, "i": int, "b": bool}


def _from_sequence(value: Any, dtype: np.dtype[Any] | None) -> np.ndarray[Any, Any]:
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(
            f"cannot make a tensor of a nested sequence with rows of different lengths: {error}"
        ) from error
    if array.dtype == object:
        raise TypeError("cannot make a tensor of a sequence that holds something else than numbers or tensors")
    leaf = value
    while isinstance(leaf, (list, tuple)) and leaf:
        leaf = leaf[0]
    if dtype is not None and dtype.kind in "iu" and array.dtype == np.float64 and isinstance(leaf, int):
        # Integers beyond int64 beside smaller ones have met in float64.
        return np.asarray(value, dtype)
    if dtype is not None or isinstance(leaf, TENSORS):
        return array
    kind = _DEFAULT_OF.get(array.dtype.kind)
    return array if kind is None else array.astype(DTYPES[default_dtype(kind).name], copy=False)


def _from_foreign(value: Any) -> np.ndarray[Any, Any]:
    if hasattr(value, "__array__") or hasattr(value, "__array_interface__"):
        return np.asarray(value)
    if hasattr(value, "__dlpack__"):
        return np.from_dlpack(value)
    return np.asarray(memoryview(value) if isinstance(value, (bytes, bytearray)) else value)


def lift(number: float, like: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A Python number as a 0-d array of the dtype of ``like``."""
    return np.array(number, like.dtype)


def cast(x: Any, dtype: np.dtype[Any]) -> Any:
    """``x`` in another dtype."""
    return x.astype(dtype)


def to_host(x: Any) -> np.ndarray[Any, Any]:
    """``x`` itself, as an array."""
    return np.asarray(x)


def text(array: np.ndarray[Any, Any], indent: int) -> str:
    """The values of ``array`` as Python's lists, long ones shortened; lines after the first begin with ``indent``."""
    return np.array2string(array, separator=", ", prefix=" " * indent)


def beside(x: Any) -> str:
    """The engine's own object for the device that ``x`` is on."""
    return "cpu"


def device_of(x: Any) -> str:
    """Where ``x`` is: NumPy knows the CPU only."""
    return "cpu"


def devices() -> list[str]:
    """The devices of this engine, the best last."""
    return ["cpu"]


def find_device(name: Any) -> str:
    """The engine's own object for a device name."""
    if name != "cpu":
        raise ValueError(f"the numpy engine has no device {str(name)!r}; available: cpu")
    return "cpu"


def error_class(error: Exception) -> type[Exception] | None:
    """The class that this mistake has on every engine, if it is not the error's own."""
    if isinstance(error, np.exceptions.AxisError):
        return AxisError
    return LinAlgError if isinstance(error, np.linalg.LinAlgError) else None
