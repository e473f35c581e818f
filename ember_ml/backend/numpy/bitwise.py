"""Bitwise logic, shifts and packing on NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import bitwise_and, bitwise_invert, bitwise_left_shift, bitwise_or, bitwise_right_shift, bitwise_xor


def count_ones(x: Any, /) -> Any:
    # np.bitwise_count counts the bits of the absolute value.
    return np.bitwise_count(x.view(f"u{x.itemsize}")).astype(x.dtype)


def packbits(x: Any, /, axis: int | None = None, bitorder: str = "big") -> Any:
    _check_order(bitorder)
    if axis is not None and x.ndim == 0:
        raise np.exceptions.AxisError(axis, 0)
    return np.packbits(np.not_equal(x, 0), axis=axis, bitorder=bitorder)  # type: ignore[call-overload]


def unpackbits(x: Any, /, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Any:
    _check_order(bitorder)
    order = ">" if bitorder == "big" else "<"
    x = np.ravel(x) if axis is None else np.moveaxis(x, axis, -1)
    octets = np.ascontiguousarray(x.astype(x.dtype.newbyteorder(order))).view(np.uint8)
    bits = np.unpackbits(octets, axis=-1, count=count, bitorder=bitorder)  # type: ignore[call-overload]
    if not octets.shape[-1]:
        # NumPy 2.4: for empty input, the padding that ``count`` requests is uninitialized.
        bits = np.zeros_like(bits)
    return bits if axis is None else np.moveaxis(bits, -1, axis)


def _check_order(bitorder: str) -> None:
    if bitorder not in ("big", "little"):
        raise ValueError(f"bitorder must be 'big' or 'little', got {bitorder!r}")
