"""Casts between all dtypes of values that both can hold, casts beyond the range, and questions about dtypes."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np

from ember_ml.testing.samples import call

SMALL = np.array([[0.5, 1.0, -2.5], [3.0, -1.5, 0.0]], np.float32)
WHOLE = np.array([[0, 1, 2], [3, 100, 5]], np.int32)
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
NAMES = ("bool", *INTEGERS, *FLOATS, "complex64", "complex128")
EXTREMES = np.array([0.0, -0.0, 0.9, -0.9, 1.5, -1.5, 127.5, 128.0, -129.0, 3e4, -3e4, math.inf, -math.inf, math.nan])
FAR = np.array([65504.0, 65520.0, -1e6, 2.0**31, -(2.0**31), 2.0**32, 2.0**63, -(2.0**63), 2.0**64, 1e30, -3e38])
FURTHER = np.array([1e39, -1e300, 3.5e38, 5e-324])


def host(name: str) -> np.dtype:
    """NumPy's dtype of that name."""
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def ends(dtype: str) -> np.ndarray:
    """Bounds of an integer dtype, and the values next to them."""
    limits = np.iinfo(dtype)
    return np.array([limits.min, limits.min + 1, 0, 1, limits.max - 1, limits.max], dtype)


CALLS = {
    "cast": [
        call(SMALL, "complex64"),
        *(call(WHOLE, name) for name in NAMES if name != "complex128"),
        *(call(WHOLE.astype(host(name)), "int64") for name in NAMES[:-2]),
        *(call(WHOLE.astype(name), "bool") for name in ("complex64", "float16", "uint64")),
        *(call(ends(name), "int64") for name in INTEGERS if name != "uint64"),
        *(call(EXTREMES.astype(host(a)), b) for a in FLOATS for b in (*FLOATS, "bool", "complex64")),
        call(np.array([1.5, -1.5, 0.9, -0.9]), "int8"),
        call(SMALL, "float32", copy=False),
        call(SMALL, "float32", copy=True),
        call(SMALL, "int32", device="cpu"),
        call(np.float32(2.5).reshape(()), "int64"),
        call(np.zeros((0, 3), np.float32), "int64"),
        call(3, "float16"),
        call([[1, 2], [3, 4]], "float64"),
    ],
    "dtype": [call(SMALL), *(call(WHOLE.astype(host(name))) for name in NAMES), call(1.0), call(1), call([True])],
    "to_dtype_str": [*(call(name) for name in NAMES), call(float), call(int), call(bool), call(np.float32)],
    "from_dtype_str": [call(name) for name in NAMES],
    "to_numpy_dtype": [call(name) for name in NAMES],
    "from_numpy_dtype": [*(call(host(name)) for name in NAMES), call(np.float16), call(np.dtype(">i4"))],
    "result_type": [
        call(SMALL, WHOLE),
        *(call(a, b) for a in NAMES for b in NAMES if {a[:3], b[:3]} != {"uin", "int"}),
        call("int8", 1000),
        call("int8", 1.5),
        call("bool", 1),
        call("bool", True),
        call("float16", 1.5, 2j),
        call("float64", 2j),
        call(1),
        call(1, 2.0),
        call(True, 1),
        call(1j, 2.0),
        call("uint8", "int8", "uint16", 7),
    ],
    "can_cast": [*(call(a, b) for a in NAMES for b in NAMES), call(WHOLE, "int64"), call(SMALL, "float16")],
    "finfo": [*(call(name) for name in (*FLOATS, "complex64", "complex128")), call(SMALL), call(float)],
    "iinfo": [*(call(name) for name in INTEGERS), call(WHOLE), call(int)],
    "isdtype": [
        *(
            call(name, kind)
            for name in NAMES
            for kind in (
                "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating",
                "numeric", "float32", ("bool", "uint8"), ("integral", "float32"), (),
            )
        )
    ],
    "is_float": [call(SMALL), call(WHOLE), *(call(name) for name in NAMES), call(1.0), call(1), call([1.0])],
    "is_integer": [call(SMALL), call(WHOLE), *(call(name) for name in NAMES), call(1.0), call(1), call(True)],
    "is_complex": [call(SMALL), call(WHOLE), *(call(name) for name in NAMES), call(1.0), call(1j)],
    "set_default_dtype": [call("float32")],
    "get_default_dtype": [call()],
    "saturate_cast": [
        call(SMALL, "int32"),
        *(call(EXTREMES.astype(host(a)), b) for a in FLOATS for b in (*INTEGERS, *FLOATS, "bool", "complex64")),
        *(call(FAR.astype(host(a)), b) for a in ("float32", "float64") for b in (*INTEGERS, *FLOATS, "complex64")),
        *(call(FURTHER, b) for b in ("int64", "float16", "bfloat16", "float32", "complex64")),
        *(call(ends(a), b) for a in INTEGERS for b in (*INTEGERS, *FLOATS)),
        call(np.array([True, False]), "int8"),
        call(300, "int8"),
        call(np.zeros((0, 2), np.float32), "uint8"),
    ],
}  # fmt: skip
