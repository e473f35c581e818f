"""Dtypes of tensors: casting, promotion, limits and names."""

from __future__ import annotations

import builtins as _builtins
import math as _math
from functools import reduce as _reduce
from typing import Any, NamedTuple

from ember_ml import backend as _backends
from ember_ml import dispatch as _dispatch
from ember_ml import dtypes as _dtypes
from ember_ml.dispatch import op
from ember_ml.dtypes import EmberDType, free
from ember_ml.ops import comparison, math
from ember_ml.types import DeviceLike, DTypeLike, Tensor, TensorLike


# ``dtype`` is annotated as ``object``, so it arrives unconverted and calls stay on the fast path.
@op(free)
def cast(x: TensorLike, dtype: object, /, *, copy: _builtins.bool = True, device: DeviceLike | None = None) -> Tensor:
    """``x`` converted to ``dtype``.

    Floats are truncated to integers. What NaN, infinities and out-of-range values become depends on the engine;
    ``saturate_cast`` defines it. Complex tensors can only be cast to bool or complex; take ``real`` first.

    Args:
        copy: if false, return ``x`` itself where it already has this dtype.
        device: the device of the result, by default that of ``x``.

    >>> cast([1.5, -2.5], "int32").tolist()
    [1, -2]
    """
    ...


astype = cast


@op(free, differentiable=False)
def dtype(x: TensorLike, /) -> EmberDType:
    """Dtype of ``x``, independent of the engine.

    >>> dtype([1.0, 2.0])
    ember_ml.float32
    >>> dtype([1, 2]) == "int64"
    True
    """
    return _backends.current().dtype_of(x)


get_dtype = dtype

# The dtypes are attributes of it too, as they were of an object of this name.
vars(dtype).update(_dtypes.DTYPES)


@op(free, differentiable=False)
def to_dtype_str(dtype: object, /) -> str:
    """Name of a dtype that is given by name, as an engine's dtype object or as a Python type.

    >>> to_dtype_str(bool)
    'bool'
    """
    return _dtypes.as_dtype(dtype).name


@op(free, differentiable=False)
def from_dtype_str(name: object, /) -> EmberDType:
    """Dtype called ``name``.

    >>> from_dtype_str("bfloat16").itemsize
    2
    """
    if not isinstance(name, str | EmberDType):
        raise TypeError(f"name must be the name of a dtype, got {_dtypes.written(name)}")
    return _dtypes.as_dtype(name)


@op(free, differentiable=False)
def to_numpy_dtype(dtype: object, /) -> Any:
    """NumPy dtype for ``dtype``; that of ml_dtypes for bfloat16.

    >>> to_numpy_dtype("float32").itemsize
    4
    """
    return _backends.load("numpy").dtype(dtype)


@op(free, differentiable=False)
def from_numpy_dtype(dtype: object, /) -> EmberDType:
    """Dtype for a NumPy dtype of either byte order.

    >>> from_numpy_dtype(to_numpy_dtype("int16"))
    ember_ml.int16
    """
    return _dtypes.as_dtype(getattr(dtype, "name", dtype))


@op(free, differentiable=False)
def result_type(*arrays_and_dtypes: object) -> EmberDType:
    """Dtype that results from promoting tensors and dtypes together.

    Python numbers adapt to the dtypes of the other arguments.

    >>> result_type("int32", "float16")
    ember_ml.float16
    >>> result_type("int8", 1.5)
    ember_ml.float32
    >>> result_type("int8", 100)
    ember_ml.int8
    """
    if not arrays_and_dtypes:
        raise ValueError("arrays_and_dtypes must hold at least 1 tensor, dtype or number, got none")
    numbers = [_number_type(value) for value in arrays_and_dtypes]
    strong = [_dtype_of(value) for value, number in zip(arrays_and_dtypes, numbers, strict=True) if number is None]
    if not strong:
        return _reduce(_dtypes.promote, [_dtypes.default_dtype(number) for number in numbers if number is not None])
    common = _reduce(_dtypes.promote, strong)
    return _reduce(_dtypes.adapt, [number for number in numbers if number is not None], common)


@op(free, differentiable=False)
def can_cast(from_: object, to: object, /) -> bool:
    """Whether promotion alone converts ``from_``, a dtype or a tensor, to ``to``.

    >>> can_cast("int8", "int32"), can_cast("int32", "float32"), can_cast("float64", "float32")
    (True, True, False)
    """
    target = _dtypes.as_dtype(to)
    return _dtypes.PROMOTION[_dtype_of(from_).name, target.name] is target


class FloatLimits(NamedTuple):
    """Limits of a floating dtype; for a complex dtype, those of its real part."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: EmberDType

    @property
    def tiny(self) -> float:
        """NumPy's name of ``smallest_normal``."""
        return self.smallest_normal


class IntegerLimits(NamedTuple):
    """Limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: EmberDType


# Binary digits of the significand, and the largest exponent.
_FORMATS = {"float16": (11, 15), "bfloat16": (8, 127), "float32": (24, 127), "float64": (53, 1023)}


@op(free, differentiable=False)
def finfo(dtype: object, /) -> FloatLimits:
    """Limits of a floating dtype, or of the dtype of a tensor; for complex, those of the real part.

    >>> finfo("float32").eps == 2.0**-23
    True
    >>> finfo("float16").max
    65504.0
    """
    real = _dtypes.real_of(_dtype_of(dtype))
    if real.name not in _FORMATS:
        raise TypeError(f"dtype must be floating, got {real.name}; iinfo has the limits of integers")
    digits, exponent = _FORMATS[real.name]
    eps = _math.ldexp(1.0, 1 - digits)
    largest = _math.ldexp(2.0 - eps, exponent)
    return FloatLimits(real.bits, eps, largest, -largest, _math.ldexp(1.0, 1 - exponent), real)


@op(free, differentiable=False)
def iinfo(dtype: object, /) -> IntegerLimits:
    """Limits of an integer dtype, or of the dtype of a tensor.

    >>> iinfo("int8").min, iinfo("uint8").max
    (-128, 255)
    """
    found = _dtype_of(dtype)
    if found.kind == "signed integer":
        half = 1 << found.bits - 1
        return IntegerLimits(found.bits, half - 1, -half, found)
    if found.kind == "unsigned integer":
        return IntegerLimits(found.bits, (1 << found.bits) - 1, 0, found)
    raise TypeError(f"dtype must be an integer dtype, got {found.name}; finfo has the limits of floats")


@op(free, differentiable=False)
def isdtype(dtype: object, kind: object) -> bool:
    """Whether ``dtype`` is of the given kind, or of one of several.

    Args:
        kind: a dtype, one of ``"bool"``, ``"signed integer"``, ``"unsigned integer"``, ``"integral"``,
            ``"real floating"``, ``"complex floating"`` and ``"numeric"``, or a tuple of these.

    >>> isdtype("float32", "real floating"), isdtype("int8", ("bool", "real floating"))
    (True, False)
    """
    found = _dtypes.as_dtype(dtype)
    matches = [_is_of(found, one) for one in (kind if isinstance(kind, tuple) else (kind,))]
    return any(matches)


def _is_of(dtype: EmberDType, kind: object) -> bool:
    if isinstance(kind, str) and kind not in _dtypes.DTYPES:
        return dtype in _dtypes.of_kind(kind)
    return dtype is _dtypes.as_dtype(kind)


@op(free, differentiable=False)
def is_float(x: object, /) -> bool:
    """Whether ``x``, a tensor, number or dtype, has a real floating dtype.

    >>> is_float("bfloat16"), is_float([1.0]), is_float("complex64")
    (True, True, False)
    """
    return _dtype_of(x).kind == "real floating"


@op(free, differentiable=False)
def is_integer(x: object, /) -> bool:
    """Whether ``x``, a tensor, number or dtype, has an integer dtype, not counting bool.

    >>> is_integer("uint8"), is_integer([1.0]), is_integer("bool")
    (True, False, False)
    """
    return _dtype_of(x).kind in _dtypes.KINDS["integral"]


@op(free, differentiable=False)
def is_complex(x: object, /) -> bool:
    """Whether ``x``, a tensor, number or dtype, has a complex dtype.

    >>> is_complex("complex64"), is_complex([1.0])
    (True, False)
    """
    return _dtype_of(x).kind == "complex floating"


def _dtype_of(value: object) -> EmberDType:
    """The dtype that ``value`` is or has."""
    if isinstance(value, type | str | EmberDType):
        return _dtypes.as_dtype(value)
    if hasattr(value, "dtype"):
        backend = next((b for b in _backends.loaded() if isinstance(value, b.tensors) and value.dtype in b.names), None)
        return backend.names[value.dtype] if backend else _dtypes.as_dtype(getattr(value.dtype, "name", value.dtype))
    number = _number_type(value)
    if number is not None:
        return _dtypes.default_dtype(number)
    return dtype(value) if isinstance(value, list | tuple | range) else _dtypes.as_dtype(value)


def _number_type(value: object) -> type | None:
    """Python type of a number that has no dtype, or ``None``."""
    if hasattr(value, "dtype"):
        return None
    return next((kind for kind in (_builtins.bool, int, float, complex) if isinstance(value, kind)), None)


@op(free, lazy=False, differentiable=False)
def set_default_dtype(dtype: object, /) -> None:
    """Set the dtype of Python floats on every engine; it must be real floating.

    >>> set_default_dtype("float32")
    """
    _dtypes.set_default_float(_dtypes.as_dtype(dtype))
    _dispatch.rebind()


@op(free, differentiable=False)
def get_default_dtype() -> EmberDType:
    """Dtype of Python floats.

    >>> get_default_dtype()
    ember_ml.float32
    """
    return _dtypes.default_float()


@op(free, kinds="real")
def saturate_cast(x: TensorLike, dtype: DTypeLike, /) -> Tensor:
    """``x`` converted to ``dtype``, with out-of-range values clipped to its limits.

    NaN becomes 0 in an integer dtype and stays NaN in a floating one. Infinities become the largest finite numbers.

    >>> saturate_cast([300.0, -5.0, 7.5, float("nan")], "uint8").tolist()
    [255, 0, 7, 0]
    """
    backend = _backends.current()
    given, target = backend.dtype_of(x), backend.names[dtype]
    if "bool" in (given.kind, target.kind):
        return cast(x, dtype)
    if given.kind == "real floating" and target.kind in _dtypes.KINDS["integral"]:
        return _truncate(x, target)
    low, high = _limits(_dtypes.real_of(target))
    bottom, top = _limits(given)
    if low > bottom or high < top:
        kind = float if given.kind == "real floating" else int
        x = math.clip(x, kind(max(low, bottom)), kind(min(high, top)))
    return cast(x, dtype)


def _limits(dtype: EmberDType) -> tuple[float, float]:
    limits = finfo(dtype) if dtype.kind == "real floating" else iinfo(dtype)
    return limits.min, limits.max


def _truncate(x: TensorLike, dtype: EmberDType) -> Tensor:
    """Floats clipped to an integer dtype, whose maximum may not be a float; the integer after it is, or overflows."""
    limits, largest = iinfo(dtype), finfo(_backends.current().dtype_of(x)).max
    beyond = float(limits.max + 1)
    above = comparison.greater_equal(x, beyond if beyond <= largest else _math.inf)
    below = comparison.less(x, float(limits.min) if -limits.min <= largest else -_math.inf)
    outside = comparison.logical_or(comparison.logical_or(above, below), comparison.isnan(x))
    inside = cast(comparison.where(outside, 0.0, x), dtype)
    return comparison.where(above, limits.max, comparison.where(below, limits.min, inside))
