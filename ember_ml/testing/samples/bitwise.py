"""Integers with every interesting bit: the lowest, the highest, all, none, and counts beyond the width."""

from __future__ import annotations

import numpy as np

from ember_ml.testing.samples import call

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def edges(dtype: str) -> np.ndarray:
    """Small numbers, patterns, and the ends of the range."""
    limits = np.iinfo(dtype)
    pattern = int(limits.max) // 3
    return np.array([0, 1, 2, 3, 5, 100, pattern, limits.max - 1, limits.max, limits.min, limits.min + 1], dtype)


def counts(dtype: str) -> np.ndarray:
    """Counts of places below, at and beyond the width, as many as there are edges."""
    width = np.iinfo(dtype).bits
    low = -1 if dtype.startswith("int") else 0
    return np.array([0, 1, 2, width // 2, width - 2, width - 1, width, width + 1, 100, 127, low], dtype)


SMALL = np.array([[1, 2, 3], [4, 5, 5]], np.int32)
PAIRS = [call(edges(d)[:, None], edges(d)) for d in INTEGERS]
BOOLS = [call(np.array([[True], [False]]), np.array([True, False]))]
NUMBERS = [call(SMALL, 1), call(SMALL, 0), call(6, SMALL), call(edges("uint64"), (1 << 64) - 1)]
USUAL = [call(SMALL, np.array([1, 2, 3], np.int32)), call(np.int64(6).reshape(()), np.zeros((0, 3), np.int64))]
SHIFTS = [call(edges(d)[:, None], counts(d)) for d in INTEGERS]
PLACES = [call(edges(d)[:, None], np.arange(-2, 70)) for d in INTEGERS]
BITS = np.array([[1, 0, 1, 1, 0, 0, 1, 0, 1, 1], [0, 0, 2, 0, 0, 0, 0, 0, 0, 3]], np.uint8)

CALLS = {
    "bitwise_and": [*USUAL, *PAIRS, *BOOLS, *NUMBERS],
    "bitwise_or": [*USUAL, *PAIRS, *BOOLS, *NUMBERS],
    "bitwise_xor": [*USUAL, *PAIRS, *BOOLS, *NUMBERS],
    "bitwise_invert": [call(SMALL), *(call(edges(d)) for d in INTEGERS), call(np.array([True, False])), call(5)],
    "bitwise_left_shift": [*USUAL, *SHIFTS, call(SMALL, 31), call(SMALL, 200), call(1, SMALL)],
    "bitwise_right_shift": [*USUAL, *SHIFTS, call(-SMALL, 31), call(-SMALL, 200), call(-100, SMALL)],
    "rotate_left": [call(SMALL, 3), *PLACES, call(SMALL, np.array([1, 2, 3], np.uint8)), call(5, 1)],
    "rotate_right": [call(SMALL, 3), *PLACES, call(SMALL, np.array([1, 2, 3], np.uint8)), call(5, 1)],
    "count_ones": [call(SMALL), *(call(edges(d)) for d in INTEGERS), call(np.zeros((0, 2), np.int8))],
    "count_zeros": [call(SMALL), *(call(edges(d)) for d in INTEGERS), call(7), call(np.zeros((0, 2), np.int8))],
    "get_bit": [call(SMALL, 1), *PLACES, call(5, 2), call(SMALL, [0, 1, 2])],
    "set_bit": [
        call(SMALL, 1),
        *PLACES,
        call(SMALL, 1, False),
        call(SMALL, [0, 1, 2], np.array([[True], [False]])),
        *(call(edges(d)[:, None], np.arange(-2, 70), False) for d in INTEGERS),
    ],
    "toggle_bit": [call(SMALL, 1), *PLACES, call(5, 2)],
    "packbits": [
        call(BITS),
        call(BITS, bitorder="little"),
        call(BITS, axis=0),
        call(BITS, axis=1),
        call(BITS, axis=-1, bitorder="little"),
        call(np.array([True])),
        call(np.zeros((0,), bool)),
        call(np.zeros((3, 0), bool), axis=1),
        call(np.ones((2, 16, 3), np.int64), axis=1),
        call(np.array([1, 0, -1, 256], np.int32)),
    ],
    "unpackbits": [
        call(BITS),
        call(BITS, bitorder="little"),
        call(BITS, axis=0),
        call(BITS, axis=1),
        call(BITS, axis=-1, bitorder="little"),
        *(call(BITS, axis=1, count=n) for n in (0, 1, 79, 80, 90, -1, -80)),
        *(call(BITS, count=n) for n in (5, 200, -5)),
        call(np.zeros((0,), np.uint8)),
        call(np.zeros((2, 0), np.uint8), axis=1),
        *(call(edges(d), bitorder=order) for d in INTEGERS for order in ("big", "little")),
    ],
    "binary_wave_interference": [
        call([SMALL, SMALL[0]]),
        *(call([SMALL, SMALL[0], SMALL[1]], mode=mode) for mode in ("xor", "and", "or")),
        call(SMALL),
        call(SMALL, "or"),
        call([SMALL]),
        call([SMALL.astype(np.int8), SMALL.astype(np.uint8)]),
        call([SMALL, 1]),
        call(np.array([[True, False], [True, True]])),
    ],
    "binary_wave_propagate": [
        call(SMALL, 1),
        call(SMALL, -1),
        *(call(edges(d)[:, None], np.array([-200, -64, -9, -8, -1, 0, 1, 7, 8, 31, 63, 64, 200])) for d in INTEGERS),
    ],
    "create_duty_cycle": [
        *(call(8, duty) for duty in (0.25, 0, 0.0, 0.5, 1, 1.0, 0.3)),
        call(0, 0.5),
        call(5, 0.5, dtype="bool"),
        call(5, 0.9, dtype="int32"),
    ],
    "generate_blocky_sin": [
        *(call(length, half) for length in (0, 1, 7, 16) for half in (1, 2, 3, 20)),
        call(5, 2, dtype="bool"),
        call(5, 2, dtype="float32"),
    ],
}
