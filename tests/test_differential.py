"""NumPy against the other engines, for every operation: the same results for drawn shapes, dtypes and values.

The contract looks at the samples as they are written, and at the first one in every dtype. Here all of them are drawn
anew: each array of each call in drawn dtypes and with drawn values, plain ones, of many magnitudes, and special ones;
calls that the signature alone made, in drawn shapes too. This file names no operation: the registry does.
"""

from __future__ import annotations

import functools
import inspect
import zlib
from typing import Any, NamedTuple

import hypothesis
import hypothesis.extra.numpy as extra
import ml_dtypes
import numpy as np
import pytest
import triples
from exceptions import DIFFERENCES
from hypothesis import strategies as st
from oracles import ELEMENTWISE

from ember_ml import backend as backends
from ember_ml.backend import Backend
from ember_ml.dispatch import TENSOR, Operation
from ember_ml.dtypes import as_dtype, int32, promote
from ember_ml.errors import UnsupportedError
from ember_ml.testing.comparison import TOLERANCE, assert_same, dtype_name, expect_error
from ember_ml.testing.contract import (
    add_note,
    dtypes_of,
    is_steady,
    reference,
    run,
    some_storable,
    storable,
    tolerance,
)
from ember_ml.testing.pairing import pairs, run_all
from ember_ml.testing.samples import Call, calls, made, values

pytestmark = pytest.mark.contract

EXAMPLES = 3
PHASES = (hypothesis.Phase.generate,)

HOST = backends.load("numpy").dtypes

# How the values of a draw depart from the plain samples.
PLAIN, WIDE, SPECIAL = "plain", "wide", "special"

# What a category can bear. Element by element, or only moving elements: the ends of every dtype. Where elements are
# added up, those would cancel and overflow at another place on each engine: infinities and NaN, but no ends. Elsewhere
# NaN is whatever the engine's library makes of it: one magnitude, a small one, for a whole array.
EXACT = {"creation", "math", "comparison", "bitwise", "manipulation", "indexing", "dtypes", "device"}
SUMMED = {"stats", "activations"}

# Matrices of samples are far from singular, which those drawn at random need not be: they keep their values.
MATRICES = {"linearalg"}

# Operations whose arrays mean something that values drawn anew would not: they keep the values of their samples.
MEANT = {
    "searchsorted": "the first array is sorted",
    "digitize": "the bins are sorted",
    "interp": "the places are sorted",
    "intersect1d": "the arrays are free of repetitions where the call says so",
    "convolve": "some engines multiply an infinity by the zeros beyond the ends",
    "correlate": "some engines multiply an infinity by the zeros beyond the ends",
    "lcm": "a multiple that the dtype cannot hold is anything",
    "cast": "what a float out of range becomes as an integer is the engine's affair",
    "trapezoid": "the ends of a dtype cancel at another place on each engine",
}


def is_elementwise(operation: Operation) -> bool:
    """Whether any shapes that broadcast will do."""
    return operation.name in ELEMENTWISE


# Operations whose special values are known to differ on some engine; test_oracles.py judges all that do not.
DIFFERENT = {operation for operation, _ in DIFFERENCES}


class Draw(NamedTuple):
    """One call, and what its arrays become: their dtypes in turn, the flavour of their values, and a seed."""

    call: Call
    dtypes: tuple[str, ...]
    flavour: str
    seed: int

    def __repr__(self) -> str:
        return f"{' '.join(self.dtypes)}, {self.flavour}: {self.call}"


def arrays(operation: Operation, call: Call) -> list[np.ndarray]:
    """The arrays of a call that take part in promotion, those in sequences too."""
    bound = inspect.signature(operation.call).bind(*call.args, **call.kwargs).arguments
    found: list[np.ndarray] = []
    for parameter in operation.parameters:
        if parameter.role == TENSOR and parameter.name in bound:
            value = bound[parameter.name]
            found += [v for v in (value if isinstance(value, (list, tuple)) else [value]) if isinstance(v, np.ndarray)]
    return found


def redrawn(operation: Operation, array: np.ndarray, dtype: str, flavour: str, seed: int) -> np.ndarray:
    """The array in another dtype and with other values, unless its values mean something."""
    if means_something(operation):
        return converted(operation, array, dtype)
    plain = values(operation, array.shape, dtype, seed)
    rng = np.random.default_rng(seed)
    if flavour == PLAIN or dtype == "bool":
        drawn = plain
    elif "int" in dtype:
        drawn = np.where(rng.random(plain.shape) < 0.5, rng.choice(integers(operation, dtype), plain.shape), plain)
    elif flavour == SPECIAL and operation.name in DIFFERENT:
        drawn = plain
    elif flavour == SPECIAL and operation.category in EXACT | SUMMED and "complex" not in dtype:
        drawn = np.where(rng.random(plain.shape) < 0.5, rng.choice(specials(operation, dtype), plain.shape), plain)
    else:
        top, each = (5, plain.shape) if operation.category in EXACT else (1, ())
        drawn = plain * np.exp2(rng.integers(-4, top, each)).astype(plain.real.dtype)
    return np.asarray(drawn, plain.dtype)


def means_something(operation: Operation) -> bool:
    """Whether the arrays of the operation's calls must keep their values."""
    return operation.name in MEANT or operation.category in MATRICES


def drawable(operation: Operation) -> list[str]:
    """The dtypes that its arrays are drawn in. Two values are too few where values mean something."""
    return [name for name in operation.dtypes if name != "bool" or not means_something(operation)]


def converted(operation: Operation, array: np.ndarray, dtype: str) -> np.ndarray:
    """The array's own values in another dtype, floats as integers eight times as large: most are multiples of 1/8."""
    real = array if "complex" in dtype else array.real
    if "int" in dtype:
        scale = 8 if array.dtype.kind in "fc" else 1
        real = np.rint(np.nan_to_num(real, nan=15, posinf=14, neginf=-14) * scale).clip(-120, 120)
        if "uint" in dtype:
            real = np.abs(real) if operation.category in MATRICES else np.maximum(real, 0)
    with np.errstate(all="ignore"):
        return real.astype(HOST[dtype])


def integers(operation: Operation, dtype: str) -> np.ndarray:
    """Integers that are no plain samples: the ends of the dtype, or small ones where they are added up."""
    info = np.iinfo(dtype)
    if operation.category in EXACT:
        return np.array([info.min, info.min + 1, 0, 1, info.max - 1, info.max], dtype)
    large = 100 if operation.category in SUMMED else 7
    return np.array([max(info.min, -large), 0, 1, 6, large], dtype)


def specials(operation: Operation, dtype: str) -> np.ndarray:
    """Floats that are no plain samples. Products and quotients of two of them are still finite."""
    info = ml_dtypes.finfo(HOST[dtype])
    large, small = float(info.max) ** 0.4, float(info.tiny) ** 0.4
    ends = [large, -large, small, -small] if operation.category in EXACT else []
    return np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, *ends]).astype(HOST[dtype])


def realised(operation: Operation, draw: Draw) -> Call:
    """The call with its arrays drawn."""
    found = arrays(operation, draw.call)
    # As for cast, what floats that do not fit become as integers is the engine's affair.
    flavour = PLAIN if "int" in str(draw.call.kwargs.get("dtype")) else draw.flavour
    new = {
        id(array): redrawn(operation, array, draw.dtypes[i % len(draw.dtypes)], flavour, draw.seed + i)
        for i, array in enumerate(found)
    }
    return draw.call.map(lambda array: new.get(id(array), array))


@st.composite
def draws(draw: st.DrawFn, operation: Operation, dtype: str) -> Draw:
    """A call of the operation whose first array is of that dtype."""
    if is_elementwise(operation):
        count = sum(1 for p in operation.tensors if not p.keyword)
        shapes = draw(extra.mutually_broadcastable_shapes(num_shapes=count, max_dims=3, min_side=0, max_side=4))
        call = made(operation, list(shapes.input_shapes))
    else:
        call = draw(st.sampled_from(calls(operation)))
    others = draw(st.lists(st.sampled_from([dtype, *drawable(operation)]), max_size=2))
    flavour = draw(st.sampled_from([PLAIN, WIDE, SPECIAL]))
    return Draw(call, (dtype, *others), flavour, draw(st.integers(0, 2**16)))


def computed_dtype(operation: Operation, call: Call) -> str:
    """The dtype in which the operation computes, as its dtype rule says."""
    names = [dtype_name(array) for array in arrays(operation, call)]
    if operation.rule.mode != "promote" or not names:
        return "bool"
    return operation.rule.compute(functools.reduce(promote, map(as_dtype, names))).name


def compare(operation: Operation, backend: Backend, some: list[Call]) -> list[Call]:
    """The calls that had results to compare, not errors of one class; fails where the engine differs from NumPy."""
    expected = [outcome(operation, backend, call) for call in some]
    accepted = [call for call, result in zip(some, expected, strict=True) if not isinstance(result, type)]
    computed = iter(run_all(operation, backend, accepted))
    for call, result in zip(some, expected, strict=True):
        with add_note(f"in {call}"):
            if isinstance(result, type):
                with expect_error(result):
                    run(operation, backend, call)
            else:
                assert_same(next(computed)(), result, allowed(operation, call))
    return accepted


def outcome(operation: Operation, backend: Backend, call: Call) -> Any:
    """What the engine must return for a call, or the class of the error that it must raise."""
    try:
        expected = reference(operation, call)
    except (TypeError, ValueError, IndexError) as error:
        return next(kind for kind in (TypeError, IndexError, ValueError) if isinstance(error, kind))
    names = [*dtypes_of(expected), computed_dtype(operation, call)]
    return expected if all(name in backend.dtypes for name in names) else UnsupportedError


def allowed(operation: Operation, call: Call) -> float | None:
    """The relative tolerance. Matrices of integers are larger than those of the samples, and so are their errors.

    Attention rounds its weights and its result.
    """
    if operation.name == "dot_product_attention" and any(dtype_name(x) == "float16" for x in arrays(operation, call)):
        return 2 * TOLERANCE["float16"]
    whole = any("int" in dtype_name(array) for array in arrays(operation, call))
    computed = operation.rule.compute(int32).kind == "real floating"
    return 1e-3 if whole and computed and operation.category in MATRICES else tolerance(operation)


@functools.cache
def drawn_calls(operation: Operation, dtype: str) -> list[Call]:
    """Calls of the operation whose first array is of that dtype, the same in each run."""
    found: list[Call] = []

    @hypothesis.seed(zlib.crc32(f"{operation.name} {dtype}".encode()))
    @hypothesis.settings(max_examples=EXAMPLES, deadline=None, database=None, derandomize=True, phases=PHASES)
    @hypothesis.given(draws(operation, dtype))
    def collect(draw: Draw) -> None:
        found.append(realised(operation, draw))

    collect()
    return found


def can_differ(operation: Operation, backend: Backend) -> bool:
    """Whether there is a call of the operation that the engine can be compared in."""
    return is_steady(operation) and some_storable(operation, backend)


@pairs(can_differ, reference=False)
def test_engines_agree(operation: Operation, backend: Backend, request: pytest.FixtureRequest) -> None:
    if is_elementwise(operation) or any(arrays(operation, call) for call in calls(operation)):
        by_dtype = {dtype: drawn_calls(operation, dtype) for dtype in drawable(operation) if dtype in backend.dtypes}
        some = [call for found in by_dtype.values() for call in found if storable(backend, call)]
        compared = set(map(id, compare(operation, backend, some)))
        names = [dtype for dtype, found in by_dtype.items() if compared & set(map(id, found))]
    else:
        # There is nothing in the calls to draw.
        some = compare(operation, backend, [call for call in calls(operation) if storable(backend, call)])
        names = sorted({name for call in some for name in dtypes_of(reference(operation, call))})
    triples.record(request, operation.name, names, backend.name)
