"""Halves (float16 and bfloat16), of which operations in several steps compute in float32 and round once, at the end."""

from __future__ import annotations

from typing import Any

from ember_ml.dtypes import EmberDType, as_dtype
from ember_ml.ops import dtypes
from ember_ml.types import Tensor

_HALVES = ("float16", "bfloat16")


def dtype_of(x: Any) -> EmberDType:
    """The dtype of a tensor of any engine."""
    return as_dtype(x.dtype)


def widen(x: Any) -> Any:
    """``x``, as float32 if it holds halves."""
    return dtypes.cast(x, "float32") if dtype_of(x).name in _HALVES else x


def narrow_like(x: Any, result: Any) -> Tensor:
    """``result``, in the dtype of ``x`` where that is a half."""
    own = dtype_of(x)
    narrowed: Tensor = dtypes.cast(result, own) if own.name in _HALVES else result
    return narrowed
