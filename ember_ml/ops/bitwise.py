"""Bitwise logic, shifts and rotations of integers, packing, and binary waves."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce as _reduce

from ember_ml.dispatch import op
from ember_ml.dtypes import free, kept, promoted
from ember_ml.ops import comparison, creation, device, dtypes, manipulation, math, stats
from ember_ml.types import DeviceLike, DTypeLike, Indices, Mask, Tensor, TensorLike


@op(promoted, kinds="bits", differentiable=False)
def bitwise_and(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Bitwise AND of ``x`` and ``y``, with broadcasting; logical AND for bool.

    >>> bitwise_and([12, 10], 6).tolist()
    [4, 2]
    """
    ...


@op(promoted, kinds="bits", differentiable=False)
def bitwise_or(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Bitwise OR of ``x`` and ``y``, with broadcasting; logical OR for bool.

    >>> bitwise_or([12, 10], 6).tolist()
    [14, 14]
    """
    ...


@op(promoted, kinds="bits", differentiable=False)
def bitwise_xor(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Bitwise XOR of ``x`` and ``y``, with broadcasting; logical XOR for bool.

    >>> bitwise_xor([12, 10], 6).tolist()
    [10, 12]
    """
    ...


@op(promoted, kinds="bits", differentiable=False)
def bitwise_invert(x: TensorLike, /) -> Tensor:
    """``x`` with every bit flipped; logical NOT for bool.

    >>> bitwise_invert([0, 5, -1]).tolist()
    [-1, -6, 0]
    """
    ...


bitwise_not = bitwise_invert


@op(promoted, kinds="integral", differentiable=False)
def bitwise_left_shift(x: TensorLike, y: TensorLike, /) -> Tensor:
    """``x`` shifted left by ``y`` bits, filled with zeros.

    Where ``y`` is negative or at least the width of the dtype, the result is 0.

    >>> bitwise_left_shift([1, 2, 3], [4, 1, 64]).tolist()
    [16, 4, 0]
    """
    ...


left_shift = bitwise_left_shift


@op(promoted, kinds="integral", differentiable=False)
def bitwise_right_shift(x: TensorLike, y: TensorLike, /) -> Tensor:
    """``x`` shifted right by ``y`` bits, filled with the sign bit.

    Where ``y`` is negative or at least the width of the dtype, the result is 0, or -1 for negative ``x``.

    >>> bitwise_right_shift([16, -16, -16], [2, 2, 64]).tolist()
    [4, -4, -1]
    """
    ...


right_shift = bitwise_right_shift


@op(kept, kinds="integral", differentiable=False)
def rotate_left(x: TensorLike, shift: Indices, /) -> Tensor:
    """Bits of ``x`` rotated left by ``shift`` places.

    ``shift`` is taken modulo the width of the dtype; a negative one rotates right.

    >>> rotate_left(cast([129, 1], "uint8"), 1).tolist()
    [3, 2]
    """
    bits = dtypes.dtype(x).bits
    up = dtypes.cast(math.remainder(shift, bits), dtypes.dtype(x))
    ones = bitwise_invert(bitwise_xor(x, x))
    entering = bitwise_invert(bitwise_left_shift(ones, up))
    return bitwise_or(bitwise_left_shift(x, up), bitwise_and(bitwise_right_shift(x, math.subtract(bits, up)), entering))


@op(kept, kinds="integral", differentiable=False)
def rotate_right(x: TensorLike, shift: Indices, /) -> Tensor:
    """Bits of ``x`` rotated right by ``shift`` places.

    ``shift`` is taken modulo the width of the dtype; a negative one rotates left.

    >>> rotate_right(cast([129, 2], "uint8"), 1).tolist()
    [192, 1]
    """
    return rotate_left(x, math.negative(shift))


@op(promoted, kinds="integral", differentiable=False)
def count_ones(x: TensorLike, /) -> Tensor:
    """Number of bits set in ``x``, in the dtype of ``x``; negative numbers are in two's complement.

    >>> count_ones([0, 7, -1]).tolist()
    [0, 3, 64]
    """
    bits = dtypes.dtype(x).bits
    fields = [(1 << bits) // divisor for divisor in (3, 5, 17)]
    x = math.subtract(x, bitwise_and(bitwise_right_shift(x, 1), fields[0]))
    x = math.add(bitwise_and(x, fields[1]), bitwise_and(bitwise_right_shift(x, 2), fields[1]))
    x = bitwise_and(math.add(x, bitwise_right_shift(x, 4)), fields[2])
    width = 8
    while width < bits:
        x = math.add(x, bitwise_right_shift(x, width))
        width *= 2
    return bitwise_and(x, 127)


popcount = count_ones


@op(promoted, kinds="integral", differentiable=False)
def count_zeros(x: TensorLike, /) -> Tensor:
    """Number of bits not set in ``x``, in the dtype of ``x``.

    >>> count_zeros([0, 7, -1]).tolist()
    [64, 61, 0]
    """
    return count_ones(bitwise_invert(x))


@op(kept, kinds="integral", differentiable=False)
def get_bit(x: TensorLike, position: Indices, /) -> Tensor:
    """Bit of ``x`` at ``position``, as 0 or 1.

    Position 0 is the lowest bit. Positions outside the width of the dtype give 0.

    >>> get_bit([5, 2], [0, 0]).tolist()
    [1, 0]
    """
    return dtypes.cast(comparison.not_equal(bitwise_and(x, _bit(x, position)), 0), dtypes.dtype(x))


@op(kept, kinds="integral", differentiable=False)
def set_bit(x: TensorLike, position: Indices, value: Mask = True, /) -> Tensor:
    """``x`` with the bit at ``position`` set to ``value``.

    Position 0 is the lowest bit. Positions outside the width of the dtype leave ``x`` unchanged.

    >>> set_bit([0, 5], [3, 0], [True, False]).tolist()
    [8, 4]
    """
    bit = _bit(x, position)
    return comparison.where(value, bitwise_or(x, bit), bitwise_and(x, bitwise_invert(bit)))


@op(kept, kinds="integral", differentiable=False)
def toggle_bit(x: TensorLike, position: Indices, /) -> Tensor:
    """``x`` with the bit at ``position`` flipped.

    Position 0 is the lowest bit. Positions outside the width of the dtype leave ``x`` unchanged.

    >>> toggle_bit([0, 5], [3, 0]).tolist()
    [8, 4]
    """
    return bitwise_xor(x, _bit(x, position))


def _bit(x: TensorLike, position: TensorLike) -> Tensor:
    """``1 << position`` in the dtype of ``x``; zero for positions outside its width."""
    bits = dtypes.dtype(x).bits
    inside = bitwise_and(comparison.greater_equal(position, 0), comparison.less(position, bits))
    place = dtypes.cast(comparison.where(inside, position, bits), dtypes.dtype(x))
    return bitwise_left_shift(creation.ones_like(place), place)


@op(free, kinds="bits", differentiable=False)
def packbits(x: TensorLike, /, axis: int | None = None, bitorder: str = "big") -> Tensor:
    """Elements of ``x`` as bits, eight in each uint8.

    Nonzero elements are ones. The last byte is filled up with zeros.

    Args:
        axis: the axis to pack; by default ``x`` is flattened first.
        bitorder: ``"big"`` puts the first element in the highest bit, ``"little"`` in the lowest.

    >>> packbits([True, False, True]).tolist()
    [160]
    """
    _check_order(bitorder)
    if axis is None:
        x, axis = manipulation.reshape(x, (-1,)), 0
    bits = manipulation.moveaxis(dtypes.cast(dtypes.cast(x, "bool"), "uint8"), axis, -1)
    *others, length = bits.shape
    bits = manipulation.pad(bits, [(0, 0)] * len(others) + [(0, -length % 8)])
    bits = manipulation.reshape(bits, (*others, (length + 7) // 8, 8))
    packed = stats.sum(bitwise_left_shift(bits, _places(bits, 8, bitorder)), axis=-1, dtype="uint8")
    return manipulation.moveaxis(packed, -1, axis)


@op(free, kinds="integral", differentiable=False)
def unpackbits(x: TensorLike, /, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Tensor:
    """Bits of ``x`` along an axis, each as a uint8 of 0 or 1.

    Each element gives as many bits as its dtype has.

    Args:
        axis: the axis to unpack; by default ``x`` is flattened first.
        count: how many bits to keep along ``axis``, padded with zeros if there are fewer. A negative count drops that
            many bits from the end. All are kept by default.
        bitorder: ``"big"`` gives the highest bit of an element first, ``"little"`` the lowest.

    >>> unpackbits(cast([160], "uint8"), count=3).tolist()
    [1, 0, 1]
    """
    _check_order(bitorder)
    if axis is None:
        x, axis = manipulation.reshape(x, (-1,)), 0
    width = dtypes.dtype(x).bits
    x = manipulation.moveaxis(x, axis, -1)
    *others, length = x.shape
    places = _places(x, width, bitorder)
    bits = dtypes.cast(bitwise_and(bitwise_right_shift(manipulation.expand_dims(x, axis=-1), places), 1), "uint8")
    bits = manipulation.reshape(bits, (*others, length * width))
    if count is not None:
        if count < -length * width:
            raise ValueError(f"count must not drop more than {length * width} bits, got {count}")
        size = count if count >= 0 else length * width + count
        bits = manipulation.pad(bits[..., :size], [(0, 0)] * len(others) + [(0, max(0, size - length * width))])
    return manipulation.moveaxis(bits, -1, axis)


def _check_order(bitorder: str) -> None:
    if bitorder not in ("big", "little"):
        raise ValueError(f"bitorder must be 'big' or 'little', got {bitorder!r}")


def _places(x: TensorLike, width: int, bitorder: str) -> Tensor:
    """Shift counts of ``width`` bits in that order, with the dtype and device of ``x``."""
    up = bitorder == "little"
    start, stop, step = (0, width, 1) if up else (width - 1, -1, -1)
    return dtypes.cast(creation.arange(start, stop, step, device=device.get_device(x)), dtypes.dtype(x))


_MODES = {"xor": bitwise_xor, "and": bitwise_and, "or": bitwise_or}


@op(promoted, kinds="bits", differentiable=False)
def binary_wave_interference(waves: Sequence[TensorLike], /, mode: str = "xor") -> Tensor:
    """Bit patterns of ``waves`` combined into one.

    ``waves`` is a sequence of tensors, or one tensor whose first axis is reduced.

    Args:
        mode: ``"xor"``, ``"and"`` or ``"or"``.

    >>> binary_wave_interference([[12, 1], [10, 1], [1, 1]]).tolist()
    [7, 1]
    >>> binary_wave_interference([[12, 1], [10, 1]], mode="and").tolist()
    [8, 1]
    """
    if mode not in _MODES:
        raise ValueError(f"mode must be one of {', '.join(map(repr, _MODES))}, got {mode!r}")
    if not waves:
        raise ValueError("waves must hold at least 1 wave, got none")
    return _reduce(_MODES[mode], waves)  # type: ignore[return-value]


@op(kept, kinds="integral", differentiable=False)
def binary_wave_propagate(wave: TensorLike, shift: Indices, /) -> Tensor:
    """``wave`` shifted left by ``shift`` bits where that is positive, and right where it is negative.

    >>> binary_wave_propagate([4, 4], [1, -1]).tolist()
    [8, 2]
    """
    bits = dtypes.dtype(wave).bits
    places = dtypes.cast(math.minimum(math.abs(math.maximum(shift, -bits)), bits), dtypes.dtype(wave))
    return comparison.where(
        comparison.greater_equal(shift, 0), bitwise_left_shift(wave, places), bitwise_right_shift(wave, places)
    )


@op(free, differentiable=False)
def create_duty_cycle(
    length: int, duty_cycle: float, /, *, dtype: DTypeLike = "uint8", device: DeviceLike | None = None
) -> Tensor:
    """Wave of ``length`` bits, of which the first ``round(length * duty_cycle)`` are ones.

    Args:
        dtype: the dtype of the result.
        device: the device of the result, by default the default device.

    >>> create_duty_cycle(8, 0.25).tolist()
    [1, 1, 0, 0, 0, 0, 0, 0]
    """
    if not 0 <= duty_cycle <= 1:
        raise ValueError(f"duty_cycle must be from 0 to 1, got {duty_cycle}")
    ones = round(_length(length) * duty_cycle)
    return dtypes.cast(comparison.less(creation.arange(length, device=device), ones), dtype)


@op(free, differentiable=False)
def generate_blocky_sin(
    length: int, half_period: int, /, *, dtype: DTypeLike = "uint8", device: DeviceLike | None = None
) -> Tensor:
    """Square wave of ``length`` bits: ``half_period`` ones, then ``half_period`` zeros, repeated.

    Args:
        dtype: the dtype of the result.
        device: the device of the result, by default the default device.

    >>> generate_blocky_sin(7, 2).tolist()
    [1, 1, 0, 0, 1, 1, 0]
    """
    if half_period < 1:
        raise ValueError(f"half_period must be >= 1, got {half_period}")
    place = math.remainder(creation.arange(_length(length), device=device), 2 * half_period)
    return dtypes.cast(comparison.less(place, half_period), dtype)


def _length(length: int) -> int:
    if length < 0:
        raise ValueError(f"length must be >= 0, got {length}")
    return length
