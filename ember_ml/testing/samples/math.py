"""Inputs for the operations of ``ops/math.py``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ember_ml.testing.samples import Call, call

nan, inf = float("nan"), float("inf")


def f32(*values: Any) -> np.ndarray:
    return np.array(values, np.float32)


def f64(*values: Any) -> np.ndarray:
    return np.array(values, np.float64)


def c64(*values: Any) -> np.ndarray:
    return np.array(values, np.complex64)


def ints(*values: Any) -> np.ndarray:
    return np.array(values, np.int64)


GRID = np.arange(24, dtype=np.float32).reshape(2, 3, 4) / 4 - 2
ROW = f32(0.5, -1.25, 2.0, 0.0, 3.0, -0.75)
SPECIAL = f32(nan, inf, -inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e-40, -1e-40, 3e38, 100.0, -100.0)
LEFT, RIGHT = (
    side.ravel()
    for side in np.meshgrid(f32(nan, inf, -inf, 0.0, -0.0, 1.0, -2.5), f32(nan, inf, -inf, 0.0, -0.0, 1.0, -2.5))
)
BELOW, ABOVE = (side.ravel() for side in np.meshgrid(ints(-7, -1, 0, 1, 5, 2**62), ints(-3, -1, 0, 1, 2, 7)))
Z = c64(0, 1, -1, 1j, -1j, 3 + 4j, -2 + 0.5j, -0.25 - 1.5j, 1e-4 + 1e-4j)
Z_TURNED = Z[::-1].copy()
ENDLESS = c64(*(complex(a, b) for a in (inf, -inf) for b in (0.0, 2.0, inf, nan)), complex(nan, 0.0))


def one(*more: np.ndarray, complex_: bool = False) -> list[Call]:
    """Calls of an operation on one tensor: several shapes, the special values, float64, and ``more``."""
    arrays = [GRID, GRID[0, 0, 0], GRID[:0], SPECIAL, SPECIAL.astype(np.float64), GRID.astype(np.float64), *more]
    return [call(np.asarray(array)) for array in (*arrays, *((Z,) if complex_ else ()))]


def two(*more: tuple[np.ndarray, np.ndarray], special: bool = True) -> list[Call]:
    """Calls of an operation on two tensors: broadcasting, no axes, nothing, special values in pairs, ``more``."""
    pairs = [(GRID, GRID[0, :1] + 0.125), (GRID[0, 0, 1], GRID[0, 0, 2]), (GRID[:0], GRID[:1, :1])]
    pairs += [(LEFT, RIGHT), (LEFT.astype(np.float64), RIGHT.astype(np.float64))] if special else []
    return [call(np.asarray(x), np.asarray(y)) for x, y in (*pairs, *more)]


def without_nan(*more: np.ndarray) -> list[Call]:
    """As ``one``, for inputs inside of -1 to 1."""
    inner = np.linspace(-0.9375, 0.9375, 16, dtype=np.float32)
    return [call(inner), *one(inner.astype(np.float64), *more)]


INTEGERS = (BELOW, ABOVE)
SMALLEST = (np.array([-128, -128, 127], np.int8), np.array([-1, 0, -1], np.int8))
UNSIGNED = (np.array([255, 255, 7, 200], np.uint8), np.array([255, 0, 2, 3], np.uint8))
FAR = f64(-30.0, -12.5, -3.25, -0.5, 0.25, 0.75, 1.5, 2.25, 2.5, 5.0, 9.5, 12.0, 26.0, 100.0)

CALLS: dict[str, list[Call]] = {
    "add": two(INTEGERS, (Z, Z_TURNED)),
    "subtract": two(INTEGERS, (Z, Z_TURNED)),
    "multiply": two(INTEGERS, (Z, Z_TURNED)),
    "divide": two(INTEGERS, (Z[1:], Z_TURNED[:-1])),
    "floor_divide": two(INTEGERS, SMALLEST, UNSIGNED),
    "remainder": two(INTEGERS, SMALLEST, UNSIGNED),
    "fmod": two(INTEGERS, SMALLEST, UNSIGNED),
    "divmod": two(INTEGERS, SMALLEST, UNSIGNED),
    "power": [
        call(np.abs(GRID) + 0.125, GRID[0, :1]),
        *two((Z[1:], Z_TURNED[:-1])),
        call(ints(-3, -1, 0, 1, 2, 3), ints(3, -3, 0, -1, -1, 2)),
        call(ints(-3, -2, -1, 0, 1, 2), -2),
        call(ints(2, 3), 3),
        call(f32(2.0, -3.0), -1),
        call(np.array([2, 3], np.int8), np.array([3, 4], np.int8)),
        call(np.array([2, 3], np.uint8), np.array([3, 4], np.uint8)),
    ],
    "float_power": [call(np.abs(GRID) + 0.125, GRID[0, :1]), call(ints(2, -3, 1), ints(-1, -2, 5))],
    "negative": one(ints(1, -2), Z),
    "positive": one(ints(1, -2), Z),
    "abs": one(ints(1, -2), Z),
    "fabs": one(),
    "sign": one(ints(3, 0, -2), Z),
    "signbit": one(ints(3, 0, -2), np.array([True, False]), np.array([200, 3], np.uint8)),
    "copysign": two(),
    "nextafter": two(
        (f32(0.0, -0.0, 1.0, 1.0, inf, -inf, 1e-45, -1e-45), f32(1.0, -1.0, inf, -inf, 0.0, 0.0, 0.0, 0.0)),
        (f64(0.0, 1.0, 1.0, inf, 5e-324), f64(-1.0, 2.0, 0.0, 0.0, -1.0)),
        (np.array([1.0, -1.0, 0.0], np.float16), np.array([2.0, 0.0, -1.0], np.float16)),
    ),
    "square": one(ints(3, -4), Z),
    "sqrt": one(Z),
    "rsqrt": one(Z[1:]),
    "cbrt": one(FAR, f32(1e-40, 1e38, -27.0), f64(1e-310, 1e308)),
    "reciprocal": one(Z[1:]),
    "exp": one(FAR, f64(-745.0, -720.0, 709.0, 710.0, -746.0), complex_=True),
    "exp2": one(FAR),
    "expm1": one(FAR, f64(1e-12), c64(500 + 300j, inf + 1j, -inf + 1j), ENDLESS, complex_=True),
    "log": one(Z[1:]),
    "log1p": one(f64(1e-12), ENDLESS, complex_=True),
    "log2": one(Z[1:]),
    "log10": one(Z[1:]),
    "logaddexp": two(),
    "logaddexp2": two(),
    "logsumexp": [
        call(GRID, axis=-1),
        call(GRID),
        call(GRID, axis=(0, 2), keepdims=True),
        call(GRID.astype(np.float64), axis=[0, -1]),
        call(np.array(2.5, np.float32)),
        call(np.array(2.5, np.float32), axis=0),
        call(GRID[:0]),
        call(GRID[:0], axis=0, keepdims=True),
        call(GRID, axis=()),
        call(f32([-inf, -inf], [inf, 1.0], [nan, 1.0], [1e4, 1e4], [-1e4, -inf]), axis=1),
        call(f64([-inf, -inf], [inf, 1.0], [nan, 1.0], [1e4, 1e4], [-1e4, -inf]), axis=1),
    ],
    "hypot": two((f32(3e38, 1e-30), f32(1e38, 1e-30))),
    "sin": one(FAR, complex_=True),
    "cos": one(FAR, complex_=True),
    "tan": one(FAR, complex_=True),
    "asin": without_nan(Z),
    "acos": without_nan(Z),
    "atan": one(Z[[0, 1, 2, 5, 6, 7, 8]]),
    "atan2": two(),
    "sinh": one(FAR, complex_=True),
    "cosh": one(FAR, complex_=True),
    "tanh": one(FAR, c64(inf + 2j, -inf - 2j), complex_=True),
    "asinh": one(FAR, complex_=True),
    "acosh": one(FAR, Z),
    "atanh": without_nan(Z[[0, 3, 4, 5, 6, 7, 8]]),
    "deg2rad": one(),
    "rad2deg": one(),
    "sinc": one(FAR, Z),
    "heaviside": two(),
    "floor": one(ints(3, -4)),
    "ceil": one(ints(3, -4)),
    "trunc": one(ints(3, -4)),
    "round": [
        *one(ints(3, -4), Z),
        call(f32(0.5, 1.5, 2.5, -0.5, -1.5)),
        call(f32(1.26, -3.14159, 0.05), 1),
        call(f64(1.26, -3.14159, 123.456), decimals=2),
        call(f64(15.0, 25.0, -1234.0), -1),
        call(c64(1.26 + 3.49j), 1),
        call(ints(15, 25, -15, -25, 14, 16, -1234, 2**60 + 5), -1),
        call(ints(1250, 1750, -51), -2),
        call(ints(5, -7), 3),
        call(np.array([127, -128, 50], np.int8), -1),
        call(np.array([127, -128, 50], np.int8), -3),
        call(np.array([250, 255, 4], np.uint8), -1),
    ],
    "rint": one(f32(0.5, 1.5, 2.5), Z),
    "clip": [
        call(GRID, np.array(-1.0, np.float32), np.array(1.5, np.float32)),
        call(GRID, GRID[0], GRID[0] + 1),
        call(GRID, -1, 1),
        call(GRID, min=0.5),
        call(GRID, max=GRID[0] + 1),
        call(GRID, GRID[0]),
        call(GRID),
        call(ints(1, 5, 9), 2, 7),
        call(ints(1, 5, 9), 2.5),
        call(GRID, 1.0, -1.0),
        call(SPECIAL, -1.0, 1.0),
        call(f32(1.0, nan, 3.0), f32(nan, 0.0, 0.0), f32(2.0, 2.0, nan)),
        call(GRID[:0], 0.0, 1.0),
    ],
    "maximum": two(INTEGERS),
    "minimum": two(INTEGERS),
    "fmax": two(INTEGERS),
    "fmin": two(INTEGERS),
    "nan_to_num": [
        call(SPECIAL),
        call(SPECIAL.astype(np.float64)),
        call(SPECIAL.astype(np.float16)),
        call(SPECIAL, nan=7.0, posinf=1.0, neginf=-1.0),
        call(SPECIAL, nan=inf, posinf=-inf, neginf=nan),
        call(SPECIAL, posinf=1.0),
        call(np.array([complex(nan, inf), complex(-inf, 2.0), 1 + 2j], np.complex64)),
        call(ints(1, 2)),
        call(GRID[:0]),
    ],
    "gcd": [
        call(ints([12, -18], [0, 7]), ints(8, 0)),
        call(ints(7540113804746346429, 2**62, 0), ints(4660046610375530309, 2**40, 0)),
        call(np.array([120, -128], np.int8), np.array([84, 48], np.int8)),
        call(np.array([[-128], [127]], np.int8), np.array([-128, -127, -1, 0, 1, 6, 127], np.int8)),
        call(ints([-(2**63)], [6]), ints(-(2**63), -1, 0, 6, 7)),
        call(np.array([89, 250], np.uint8), np.array([144, 100], np.uint8)),
        call(ints(), ints()),
    ],
    "lcm": [
        call(ints([12, -18], [0, 7]), ints(8, 5)),
        call(ints(0, 0, 3), ints(0, 5, -7)),
        call(np.array([12, 10], np.int8), np.array([8, 4], np.int8)),
        *(
            call(np.array([[np.iinfo(kind).min], [6]], kind), np.array([np.iinfo(kind).min, -1, 0, 1, 5, 7, 15], kind))
            for kind in (np.int8, np.int16, np.int32, np.int64)
        ),
        call(np.array([200, 7], np.uint8), np.array([8, 0], np.uint8)),
    ],
    "ldexp": [
        call(GRID, ints(3, -1, 0, 2)),
        call(SPECIAL, 5),
        call(f32(1.5, 1.5, 1e-40, 3e38, 1.9999, -1.3), ints(-149, -150, 200, -270, -140, 127)),
        call(f32(1.0, 1.0, 1e-45), ints(5000, -5000, 277)),
        call(f64(1.5, 1.5, 5e-324, 1e308, 1.2345678), ints(-1074, -1075, 2097, -2090, -1050)),
        call(np.array([1.0, 1.5], np.float16), ints(-24, 15)),
        call(ints(3, 4), ints(1, 2)),
    ],
    "frexp": [
        call(GRID),
        call(f32(0.0, -0.0, 1.0, 1e-40, -3e38, 1e-45, inf, -inf)),
        call(f64(0.0, 1.0, 1e-310, -1e308, 5e-324)),
        call(np.array([1.0, -0.3, 6e-8, 0.0], np.float16)),
        call(GRID[:0]),
        call(np.array(12.0, np.float32)),
    ],
    "real": one(ints(1, 2), Z),
    "imag": one(ints(1, 2), Z),
    "conj": one(ints(1, 2), Z),
    "angle": one(ints(1, -2), Z),
    "erf": one(FAR),
    "erfc": one(FAR),
    "erfinv": without_nan(f64(0.999999, -0.99999999, 1e-9)),
    "lgamma": one(FAR, f32(1.0, 2.0, 171.0, 1e10), f64(1e-12, 1.0, 2.0, 1e100, -1.5, -1000.25)),
    "digamma": one(FAR, f64(1e-8, 1e100, -1.5, -100.25)),
    "i0": [call(np.minimum(array, 60) if array.size else array) for array in (GRID, SPECIAL[3:11], FAR, FAR * 5)],
    "divide_no_nan": two((c64(1 + 2j, 1), c64(0, 2j)), (ints(1, 2), ints(0, 4))),
    "lerp": [
        call(GRID, GRID[0] + 1, GRID[0, :1]),
        call(GRID, 2.0, 0.25),
        call(f32(1.0, 2.0), f32(3.0, 5.0), 1.0),
        call(ints(1, 2), ints(3, 6), 0.5),
        call(Z, Z_TURNED, 0.5),
    ],
    "polyval": [
        call(f32(2.0, -1.0, 0.5), GRID),
        call(ints(1, 0, -2), ints(3, -4)),
        call(f64(3.0), f64(1.0, 2.0)),
        call(f32(), GRID),
        call(Z[:3], Z),
        call(f32(1.0, 2.0), np.array(3.0, np.float32)),
    ],
    "interp": [
        call(GRID, f32(0.5), f32(2.0)),
        call(GRID, f32(-1.5, 0.0, 1.0, 2.5), f32(3.0, -1.0, 0.5, 2.0)),
        call(GRID, f32(-1.5, 0.0, 1.0, 2.5), f32(3.0, -1.0, 0.5, 2.0), left=-7.0, right=9.0),
        call(f32(-3.0, 0.25, 7.5), f32(0.5, 1.5, 3.0), f32(3.0, -1.0, 0.5), period=4.0),
        call(f32(-3.0, 0.25, 7.5), f32(190.0, -190.0, 350.0, -350.0), f32(5.0, 10.0, 3.0, 4.0), period=360.0),
        call(f32(-1.0, 0.0, 1.0), f32(0.0), f32(5.0)),
        call(f32(nan, inf, -inf), f32(0.0, 1.0), f32(5.0, 6.0)),
        call(np.array(0.5, np.float32), f32(0.0, 1.0), f32(5.0, 6.0)),
        call(f64(0.1, 0.5), f64(0.0, 0.3, 1.0), f64(1.0, 2.0, 4.0)),
    ],
    "gradient": [
        call(GRID),
        call(GRID, axis=-1),
        call(GRID, axis=(0, 2)),
        call(GRID, 2.0),
        call(GRID, 2.0, 0.5, axis=(1, -1)),
        call(ROW, f32(0.0, 1.0, 1.5, 3.5, 4.0, 6.0)),
        call(ROW, f32(0.0, 1.0, 1.5, 3.5, 4.0, 6.0), edge_order=2),
        call(ROW, 0.5, edge_order=2),
        call(GRID, 2.0, f32(0.0, 1.0, 3.0), f32(0.0, 2.0, 2.5, 3.0)),
        call(ROW[:2]),
        call(ints(1, 4, 9)),
        call(Z, 0.5),
    ],
    "diff": [
        call(GRID),
        call(GRID, axis=0),
        call(GRID, axis=1, n=2),
        call(GRID, n=0),
        call(GRID, n=4),
        call(GRID, n=7),
        call(GRID, axis=1, prepend=0.0, append=GRID[:, :2]),
        call(GRID, prepend=GRID[..., :1]),
        call(ints(1, 4, 9), append=7),
        call(np.array([True, False, False, True])),
        call(np.array([3, 1], np.uint8)),
        call(Z),
    ],
    "trapezoid": [
        call(GRID),
        call(GRID, f32(0.0, 1.0, 1.5, 3.5)),
        call(GRID, f32(0.0, 1.0, 3.5), axis=1),
        call(GRID, GRID * 2),
        call(GRID, dx=0.5, axis=0),
        call(ints(1, 4, 9)),
        call(Z),
        call(ROW[:1]),
    ],
    "convolve": [
        call(ROW, f32(1.0, -0.5, 0.25)),
        *(
            call(ROW, kernel, mode=mode)
            for kernel in (f32(1.0, -0.5, 2.0), f32(1.0, -0.5))
            for mode in ("full", "same", "valid")
        ),
        *(call(f32(1.0, -0.5), ROW, mode) for mode in ("full", "same", "valid")),
        call(ints(1, 2, 3), ints(0, 1, 2, 5), "same"),
        call(np.array([100, 100], np.int8), np.array([2, 1], np.int8)),
        call(Z, Z[:2]),
        call(ROW.astype(np.float64), f64(0.1, 0.2)),
        call(ROW, f32(2.0)),
    ],
    "correlate": [
        call(ROW, f32(1.0, -0.5, 0.25)),
        *(
            call(ROW, kernel, mode=mode)
            for kernel in (f32(1.0, -0.5, 2.0), f32(1.0, -0.5))
            for mode in ("full", "same", "valid")
        ),
        *(
            call(kernel, ROW, mode)
            for kernel in (f32(1.0, -0.5, 2.0), f32(1.0, -0.5))
            for mode in ("full", "same", "valid")
        ),
        call(ints(1, 2, 3), ints(0, 1, 2, 5), "same"),
        call(Z, Z[:2] + 1j, "full"),
        call(Z[:2] + 1j, Z, "full"),
    ],
}

DOMAIN: dict[str, tuple[float, float]] = {
    "power": (0.25, 3.0),
    "float_power": (0.25, 3.0),
    "rsqrt": (0.25, 3.0),
    "sqrt": (0.25, 3.0),
    "log": (0.25, 3.0),
    "log2": (0.25, 3.0),
    "log10": (0.25, 3.0),
    "log1p": (-0.75, 3.0),
    "asin": (-0.875, 0.875),
    "acos": (-0.875, 0.875),
    "atanh": (-0.875, 0.875),
    "acosh": (1.125, 3.0),
    "erfinv": (-0.875, 0.875),
    "lgamma": (0.25, 3.0),
    "digamma": (0.25, 3.0),
}

TOLERANCE: dict[str, float] = {}
