"""Bits against Python's own integers, which have no width and so no accidents."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ember_ml import ops
from ember_ml.backend import Backend
from ember_ml.testing.comparison import host

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")

few = settings(
    max_examples=15, deadline=None, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@st.composite
def integers(draw: st.DrawFn, least: int = 1) -> np.ndarray:
    """A vector of any integer dtype, with values from all of its range."""
    dtype = draw(st.sampled_from(INTEGERS))
    limits = np.iinfo(dtype)
    values = draw(st.lists(st.integers(int(limits.min), int(limits.max)), min_size=least, max_size=9))
    return np.array(values, dtype)


def width(x: np.ndarray) -> int:
    return x.dtype.itemsize * 8


def wrapped(value: int, x: np.ndarray) -> int:
    """A Python integer as it is in the dtype of ``x``."""
    value &= (1 << width(x)) - 1
    return value - (1 << width(x)) if x.dtype.kind == "i" and value >> (width(x) - 1) else value


def pattern(value: int, x: np.ndarray) -> str:
    """The bits of a value, the highest first."""
    return format(value & ((1 << width(x)) - 1), f"0{width(x)}b")


def check(result: Any, expected: list[int], like: np.ndarray) -> None:
    assert host(result).dtype == like.dtype
    assert host(result).tolist() == expected


@few
@given(integers(), st.data())
def test_logic_is_that_of_python(backend: Backend, x: np.ndarray, data: st.DataObject) -> None:
    limits = np.iinfo(x.dtype)
    y = np.array([data.draw(st.integers(int(limits.min), int(limits.max))) for _ in x], x.dtype)
    pairs = list(zip(x.tolist(), y.tolist(), strict=True))
    a, b = ops.asarray(x), ops.asarray(y)
    check(ops.bitwise_and(a, b), [p & q for p, q in pairs], x)
    check(ops.bitwise_or(a, b), [p | q for p, q in pairs], x)
    check(ops.bitwise_xor(a, b), [p ^ q for p, q in pairs], x)
    check(ops.bitwise_invert(a), [wrapped(~p, x) for p in x.tolist()], x)


@few
@given(integers(), st.integers(0, 127))
def test_shifts_are_those_of_unbounded_integers(backend: Backend, x: np.ndarray, count: int) -> None:
    for shift in (count, np.array(count, x.dtype), np.full(x.shape, count, x.dtype)):
        y = shift if isinstance(shift, int) else ops.asarray(shift)
        check(ops.bitwise_left_shift(ops.asarray(x), y), [wrapped(v << count, x) for v in x.tolist()], x)
        check(ops.bitwise_right_shift(ops.asarray(x), y), [v >> count for v in x.tolist()], x)


@few
@given(integers(), st.integers(-200, 200))
def test_rotation_turns_the_pattern(backend: Backend, x: np.ndarray, count: int) -> None:
    turn = count % width(x)
    patterns = [pattern(v, x) for v in x.tolist()]
    expected = [wrapped(int(p[turn:] + p[:turn], 2), x) for p in patterns]
    check(ops.rotate_left(ops.asarray(x), count), expected, x)
    check(ops.rotate_right(ops.asarray(x), -count), expected, x)
    check(ops.rotate_right(ops.rotate_left(ops.asarray(x), count), count), x.tolist(), x)


@few
@given(integers())
def test_counts_are_those_of_the_pattern(backend: Backend, x: np.ndarray) -> None:
    patterns = [pattern(v, x) for v in x.tolist()]
    check(ops.count_ones(ops.asarray(x)), [p.count("1") for p in patterns], x)
    check(ops.popcount(ops.asarray(x)), [p.count("1") for p in patterns], x)
    check(ops.count_zeros(ops.asarray(x)), [p.count("0") for p in patterns], x)


@few
@given(integers(), st.integers(-3, 70))
def test_single_bits_are_those_of_the_pattern(backend: Backend, x: np.ndarray, position: int) -> None:
    bit = 1 << position if 0 <= position < width(x) else 0
    a, values = ops.asarray(x), x.tolist()
    check(ops.get_bit(a, position), [int(bool(v & bit)) for v in values], x)
    check(ops.set_bit(a, position), [wrapped(v | bit, x) for v in values], x)
    check(ops.set_bit(a, position, 0), [wrapped(v & ~bit, x) for v in values], x)
    check(ops.toggle_bit(a, position), [wrapped(v ^ bit, x) for v in values], x)
    check(ops.toggle_bit(ops.toggle_bit(a, position), position), values, x)


@few
@given(integers(least=0), st.sampled_from(["big", "little"]))
def test_packing_undoes_unpacking(backend: Backend, x: np.ndarray, order: str) -> None:
    bits = host(ops.unpackbits(ops.asarray(x), bitorder=order))
    expected = "".join(pattern(v, x)[:: 1 if order == "big" else -1] for v in x.tolist())
    assert bits.dtype == np.uint8
    assert bits.tolist() == [int(c) for c in expected]
    octets = host(ops.packbits(ops.asarray(bits), bitorder=order))
    assert octets.tobytes() == x.astype(x.dtype.newbyteorder("<" if order == "little" else ">")).tobytes()


@pytest.mark.parametrize("axis", [None, 0, 1, 2, -1, -3])
@pytest.mark.parametrize("order", ["big", "little"])
def test_packing_is_that_of_numpy(backend: Backend, axis: int | None, order: Any) -> None:
    x = np.random.default_rng(0).integers(0, 2, (3, 10, 17)).astype(bool)
    packed = ops.packbits(ops.asarray(x), axis=axis, bitorder=order)
    expected = np.packbits(x, axis=axis, bitorder=order)
    np.testing.assert_array_equal(host(packed), expected)
    for count in (None, 3, 24, 30, -2):
        np.testing.assert_array_equal(
            host(ops.unpackbits(packed, axis, count, order)),
            np.unpackbits(expected, axis=axis, count=count, bitorder=order),
        )


def test_nothing_is_filled_up_with_zeros(backend: Backend) -> None:
    """NumPy's ``unpackbits`` leaves what was in memory there."""
    for shape, axis in (((0,), None), ((0, 3), None), ((2, 0), 1), ((0, 3), 0)):
        for _ in range(10):
            filled = host(ops.unpackbits(ops.zeros(shape, dtype="uint8"), axis, 64))
            assert filled.shape[axis or 0] == 64
            assert not filled.any()
            np.full(filled.shape, 255, np.uint8)  # what the next result may find in its memory


@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"])
def test_floats_have_no_bits(backend: Backend, name: str) -> None:
    for x, y in ([1.0], [2]), ([1], 2.0), ([1], [2j]):
        with pytest.raises(TypeError, match="the dtype must be "):
            getattr(ops, name)(x, y)


@pytest.mark.parametrize("name", ["left_shift", "right_shift", "count_ones", "rotate_left", "get_bit"])
def test_bool_has_no_places(backend: Backend, name: str) -> None:
    with pytest.raises(TypeError, match="the dtype must be integer, got bool"):
        getattr(ops, name)(
            [True], *([] if name == "count_ones" else [[1] if "_b" in name or "rot" in name else [True]])
        )


def test_counts_that_the_dtype_cannot_hold_are_value_errors(backend: Backend) -> None:
    x = ops.asarray(np.array([1, 2], np.uint8))
    for wrong in (-1, 256):
        with pytest.raises(ValueError, match="left_shift: numbers must fit into uint8, got"):
            ops.left_shift(x, wrong)


def test_positions_are_integers(backend: Backend) -> None:
    with pytest.raises(TypeError, match="integers"):
        ops.get_bit([1, 2], 0.5)


def test_the_promoted_width_decides_what_is_shifted_out(backend: Backend) -> None:
    narrow, wide = ops.asarray(np.array([128], np.uint8)), ops.asarray(np.array([1], np.uint16))
    assert host(ops.left_shift(narrow, ops.cast(wide, "uint8"))).tolist() == [0]
    assert host(ops.left_shift(narrow, wide)).tolist() == [256]


@pytest.mark.parametrize("order", ["medium", "", None])
def test_an_unknown_order_of_bits_is_a_value_error(backend: Backend, order: Any) -> None:
    with pytest.raises(ValueError, match=r"order"):
        ops.packbits([True], bitorder=order)
    with pytest.raises(ValueError, match=r"order"):
        ops.unpackbits(ops.asarray(np.array([1], np.uint8)), bitorder=order)


def test_dropping_more_bits_than_there_are_is_a_value_error(backend: Backend) -> None:
    with pytest.raises(ValueError, match=r"count|drop"):
        ops.unpackbits(ops.asarray(np.array([1], np.uint8)), count=-9)


def test_waves_interfere_as_the_reduction_says(backend: Backend) -> None:
    x = np.random.default_rng(1).integers(0, 256, (5, 7)).astype(np.uint8)
    for mode, ufunc in {"xor": np.bitwise_xor, "and": np.bitwise_and, "or": np.bitwise_or}.items():
        expected = ufunc.reduce(x, axis=0)
        for waves in (ops.asarray(x), list(x), tuple(ops.asarray(row) for row in x)):
            result = host(ops.binary_wave_interference(waves, mode=mode))
            assert result.dtype == np.uint8
            np.testing.assert_array_equal(result, expected)


def test_waves_that_do_not_interfere(backend: Backend) -> None:
    with pytest.raises(ValueError, match="mode"):
        ops.binary_wave_interference([[1], [2]], mode="nand")
    with pytest.raises(ValueError, match="binary_wave_interference: waves must hold at least 1 wave, got none"):
        ops.binary_wave_interference([])
    with pytest.raises(TypeError):
        ops.binary_wave_interference([[1.0], [2.0]])


def test_propagation_goes_both_ways(backend: Backend) -> None:
    wave = np.array([0b1011, 0b0110], np.uint8)
    assert host(ops.binary_wave_propagate(wave, 2)).tolist() == [0b101100, 0b011000]
    assert host(ops.binary_wave_propagate(wave, -2)).tolist() == [0b10, 0b01]
    assert host(ops.binary_wave_propagate(wave, [-300, 300])).tolist() == [0, 0]


@pytest.mark.parametrize("duty", [-0.1, 1.1, float("nan")])
def test_a_duty_cycle_is_a_fraction(backend: Backend, duty: float) -> None:
    with pytest.raises(ValueError, match="duty_cycle must be from 0 to 1, got "):
        ops.create_duty_cycle(8, duty)


def test_waves_have_a_length_and_a_period(backend: Backend) -> None:
    with pytest.raises(ValueError, match="length"):
        ops.create_duty_cycle(-1, 0.5)
    with pytest.raises(ValueError, match="length"):
        ops.generate_blocky_sin(-1, 2)
    with pytest.raises(ValueError, match="generate_blocky_sin: half_period must be >= 1, got 0"):
        ops.generate_blocky_sin(8, 0)


def test_waves_are_bytes_of_bits(backend: Backend) -> None:
    wave = ops.generate_blocky_sin(1000, 7)
    assert ops.get_dtype(wave) == "uint8"
    assert host(wave).tolist() == [1 - i // 7 % 2 for i in range(1000)]
    assert int(host(ops.create_duty_cycle(1000, 0.123)).sum()) == 123
