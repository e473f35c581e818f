"""Every operation with an oracle, on every engine: special values, any shapes, every dtype.

NumPy is an engine like the others here: what is expected comes from ``oracles.py``, which uses none.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from typing import Any

import hypothesis
import hypothesis.extra.numpy as extra
import ml_dtypes
import numpy as np
import pytest
from exceptions import DIFFERENCES, FLUSHES, is_subnormal
from hypothesis import strategies as st
from oracles import ELEMENTWISE, JUDGED_ELSEWHERE, PRODUCTS, UNDEFINED, WHOLE, Nested, Oracle, Whole, broadcast

import ember_ml
from ember_ml import backend as backends
from ember_ml.backend import Backend
from ember_ml.dispatch import INDEX, MASK, REGISTRY, TENSOR, Operation
from ember_ml.dtypes import as_dtype
from ember_ml.testing.comparison import dtype_name, dtypes_of_device, expect, host
from ember_ml.testing.pairing import pairs, run_all
from ember_ml.testing.samples import Call, values

pytestmark = pytest.mark.contract

HOST = backends.load("numpy").dtypes

# How far a result may be from the true one, relative to it: a few units in the last place.
PRECISION = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 4e-6, "float64": 4e-14}


def floats(dtype: str, few: bool) -> np.ndarray:
    """Floats at which functions go wrong: zeros, ends of the range and of usual domains, and what is around them."""
    info = ml_dtypes.finfo(HOST[dtype])
    eps, tiny, top = float(info.eps), float(info.smallest_normal), float(info.max)
    found = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, float(info.smallest_subnormal), top]
    if not few:
        found += [-float(info.smallest_subnormal), tiny, -tiny, -top, eps, -eps, 1 + eps, 1 - eps / 2, -1 + eps / 2]
        found += [-0.5, 1.5, -1.5, 2.0, -2.0, 2.5, -3.0, 6.0, 7.25, -7.25, 10.0, 20.0, 21.0, -21.0, 1 / 3, 0.125]
        found += [88.0, -87.0, 100.5, -104.0, 700.0, -700.0, 1e4, -1e4, math.pi, math.pi / 2, top**0.5, tiny**0.5]
    with np.errstate(over="ignore"):
        return np.array(found).astype(HOST[dtype])


def integers(dtype: str, few: bool) -> np.ndarray:
    """Integers at which functions go wrong: both ends of the range, and small ones."""
    info = np.iinfo(dtype)
    found = {info.min, -2, -1, 0, 1, 3, info.max}
    if not few:
        found |= {info.min + 1, -7, 2, 7, 8, 31, 100, info.max - 1}
    return np.array(sorted(v for v in found if info.min <= v <= info.max), dtype)


def complexes(dtype: str, few: bool) -> np.ndarray:
    """Complex numbers on the axes, on both sides of branch cuts, and with infinite or missing parts."""
    parts = [0.0, -0.0, 1.0, -2.5, math.inf, math.nan] if few else [0.0, -0.0, 0.5, 1.0, -1.0, 2.0, -2.5, 8.0]
    parts += [] if few else [math.inf, -math.inf, math.nan]
    return np.array([complex(a, b) for a in parts for b in parts], dtype)


def specials(dtype: str, few: bool) -> np.ndarray:
    """Values of a dtype that are worth trying; few of them where they are combined."""
    kind = as_dtype(dtype).kind
    if kind == "bool":
        return np.array([False, True])
    return {"real floating": floats, "complex floating": complexes}.get(kind, integers)(dtype, few)


def allowed(oracle: Oracle, array: np.ndarray) -> np.ndarray:
    """The values whose result the oracle defines."""
    if array.dtype.kind == "b":
        return array
    kind = complex if array.dtype.kind == "c" else float
    with np.errstate(invalid="ignore"):
        fits = np.abs(array.astype(np.float64 if kind is float else np.complex128)) <= oracle.largest
        finite = array.dtype.kind in "iu" or kind in oracle.nonfinite
        return array[(fits | ~np.isfinite(array)) if finite else (fits & np.isfinite(array))]


def arguments(operation: Operation, oracle: Oracle, dtype: str) -> Call:
    """Every combination of special values, one tensor for each parameter."""
    parameters = [p for p in operation.tensors if not p.keyword]
    own = {TENSOR: dtype, INDEX: "int64", MASK: "bool"}
    columns = [allowed(oracle, specials(own[p.role], len(parameters) > 1)) for p in parameters]
    grids = np.meshgrid(*columns, indexing="ij")
    return Call(tuple(np.ascontiguousarray(grid.ravel()) for grid in grids), {})


def entered(operation: Operation, call: Call) -> list[Nested]:
    """The tensors of a call as Python numbers, in the dtype in which the operation computes."""
    found = []
    for parameter, array in zip(operation.tensors, call.args, strict=False):
        if parameter.role == TENSOR:
            array = array.astype(HOST[operation.rule.compute(as_dtype(dtype_name(array))).name])
        wide = array.astype(np.float64) if dtype_name(array) == "bfloat16" else array
        found.append(Nested(array.shape, wide.ravel().tolist()))
    return found


def expected(operation: Operation, call: Call) -> tuple[Nested, ...]:
    """What the oracle says of a call: one tensor, or several."""
    if operation.name in WHOLE:
        found = WHOLE[operation.name].function(entered(operation, call)[0])
        return found if isinstance(found, tuple) and not isinstance(found, Nested) else (found,)
    oracle = ELEMENTWISE[operation.name]
    function = oracle.function
    if oracle.typed:
        computed = operation.rule.compute(as_dtype(dtype_name(call.args[0])))
        function = functools.partial(function, dtype=computed.name)
    found = broadcast(function, *entered(operation, call))
    if oracle.results == 1:
        return (found,)
    return tuple(Nested(found.shape, [each[i] for each in found.elements]) for i in range(oracle.results))


def rounded(elements: list[Any], dtype: str) -> np.ndarray:
    """Python numbers in a dtype: integers modulo its range, floats rounded."""
    kind, bits = as_dtype(dtype).kind, as_dtype(dtype).bits
    if kind == "bool":
        return np.array([bool(v) for v in elements], bool)
    if "integer" in kind:
        signed = kind == "signed integer"
        wrapped = [(int(v) + signed * 2 ** (bits - 1)) % 2**bits - signed * 2 ** (bits - 1) for v in elements]
        return np.array(wrapped, dtype)
    elements = [0.0 if v is UNDEFINED else v for v in elements]
    with np.errstate(over="ignore"):
        wide = np.array([complex(v) for v in elements]) if "complex" in kind else np.array([float(v) for v in elements])
        return wide.astype(HOST[dtype])


def wrong_places(got: np.ndarray, wanted: np.ndarray, oracle: Oracle | Whole) -> np.ndarray:
    """A mask of the results that are not the wanted ones; both parts of a complex number count relative to its size."""
    if got.dtype.kind in "biu":
        return got != wanted
    if got.dtype.kind == "c":
        size = np.abs(wanted)
        wrong = _wrong_floats(got.real, wanted.real, oracle, size) | _wrong_floats(got.imag, wanted.imag, oracle, size)
        return wrong & (np.isfinite(wanted) | (complex in oracle.nonfinite))
    return _wrong_floats(got, wanted, oracle, np.abs(wanted.astype(np.float64)))


def _wrong_floats(got: np.ndarray, wanted: np.ndarray, oracle: Oracle | Whole, size: np.ndarray) -> np.ndarray:
    name = dtype_name(got)
    info = ml_dtypes.finfo(HOST[name])
    a, b = got.astype(np.float64), wanted.astype(np.float64)
    slack = oracle.loss * PRECISION[name] * size + oracle.absolute * float(info.eps) + 2 * float(info.smallest_normal)
    slack = np.where(oracle.exact, 0.0, slack)
    with np.errstate(invalid="ignore"):
        near = np.isfinite(a) & np.isfinite(b) & (np.abs(a - b) <= slack)
    return ~((a == b) | (np.isnan(a) & np.isnan(b)) | near)


def wrong_zeros(got: np.ndarray, elements: list[Any], oracle: Oracle | Whole) -> np.ndarray:
    """A mask of the zeros whose sign is wrong, among those that are exact and not underflows."""
    if got.dtype.kind in "biuc" or not oracle.zeros:
        return np.zeros(got.shape, bool)
    true = np.array([math.nan if v is UNDEFINED else float(v) for v in elements])
    flat = got.astype(np.float64)
    return (flat == 0) & (true == 0) & (np.signbit(flat) != np.signbit(true))


def mismatches(operation: Operation, backend: Backend, calls: list[Call]) -> Iterator[str]:
    """The differences of an engine from the oracle for each call, in words, those that are known left out."""
    for call, attempt in zip(calls, run_all(operation, backend, calls), strict=True):
        yield "; ".join(_mismatches(operation, backend, call, attempt()))


def _mismatches(operation: Operation, backend: Backend, call: Call, result: Any) -> list[str]:
    oracle: Oracle | Whole = ELEMENTWISE.get(operation.name) or WHOLE[operation.name]
    if any(array.dtype.kind == "c" for array in call.args) and complex not in oracle.nonfinite:
        oracle = oracle._replace(exact=False)
    results = result if isinstance(result, (tuple, list)) else (result,)
    wanted = expected(operation, call)
    if len(results) != len(wanted):
        return [f"{operation.name} has {len(results)} results, not {len(wanted)}"]
    return [
        f"result {number} of {line}"
        for number, (got, want) in enumerate(zip(map(host, results), wanted, strict=True))
        for line in _differences(operation, backend, oracle, call, np.asarray(got), want)
    ]


def _differences(
    operation: Operation, backend: Backend, oracle: Oracle | Whole, call: Call, got: np.ndarray, want: Nested
) -> Iterator[str]:
    if got.shape != want.shape:
        yield f"{operation.name} has shape {got.shape}, not {want.shape}"
        return
    flat, right = got.ravel(), rounded(want.elements, dtype_name(got))
    wrong = wrong_places(flat, right, oracle) | wrong_zeros(flat, want.elements, oracle)
    wrong &= np.array([v is not UNDEFINED for v in want.elements], bool)
    columns = [np.broadcast_to(x, got.shape).ravel() for x in call.args] if operation.name in ELEMENTWISE else []
    known = DIFFERENCES.get((operation.name, backend.name))
    if known is not None and wrong.any():
        wrong &= ~np.array([known.where(*values) for values in zip(*columns, strict=True)], bool)
    if backend.name in FLUSHES and wrong.any():
        for place in np.flatnonzero(wrong):
            wrong[place] = not is_subnormal(right[place], *(column[place] for column in columns))
    for place in np.flatnonzero(wrong)[:6]:
        shown = ", ".join(str(column[place]) for column in columns) or f"{dtype_name(call.args[0])}{got.shape}"
        yield f"{operation.name}({shown}) is {flat[place]}, not {right[place]}"


def has_oracle(operation: Operation, backend: Backend) -> bool:
    """Whether the operation can be judged on the engine by an oracle."""
    return (operation.name in ELEMENTWISE or operation.name in WHOLE) and bool(computable(operation, backend))


def computable(operation: Operation, backend: Backend) -> list[str]:
    """The dtypes of arguments that the operation takes on the engine, in which the engine can compute it."""
    available = dtypes_of_device(backend)
    entered = {name: operation.rule.compute(dtype).name for name, dtype in operation.dtypes.items()}
    return [name for name in operation.dtypes if {name, entered[name]} <= available]


@pairs(has_oracle)
def test_special_values(operation: Operation, backend: Backend) -> None:
    """Signed zeros, infinities, NaN, subnormals, ends of ranges and domains, in every dtype."""
    calls = special_calls(operation, backend)
    for call, found in zip(calls, mismatches(operation, backend, calls), strict=True):
        expect(not found, f"in {dtype_name(call.args[0])}: {found}")


def special_calls(operation: Operation, backend: Backend) -> list[Call]:
    """Calls with special values in every dtype."""
    if operation.name in ELEMENTWISE:
        oracle = ELEMENTWISE[operation.name]
        return [arguments(operation, oracle, dtype) for dtype in computable(operation, backend)]
    return [call for dtype in computable(operation, backend) for call in special_rows(operation, backend, dtype)]


def special_rows(operation: Operation, backend: Backend, dtype: str) -> list[Call]:
    """Rows of special values of several sizes, for an operation on the whole."""
    oracle = WHOLE[operation.name]
    found = allowed(oracle, specials(dtype, True))
    if backend.name in FLUSHES:
        found = found[[not is_subnormal(value) for value in found]]
    rows = [found, found[::-1].copy(), found[: len(found) // 2 * 2].reshape(-1, 2)]
    rows += [*found[:, None], *(np.asarray(value) for value in found)]
    return [Call((row,), {}) for row in rows if row.ndim >= oracle.least_ndim]


@pairs(has_oracle)
def test_any_shapes(operation: Operation, backend: Backend) -> None:
    """Shapes that broadcast, none and empty ones included, in drawn dtypes."""
    calls = drawn_calls(operation, tuple(computable(operation, backend)))
    for call, found in zip(calls, mismatches(operation, backend, calls), strict=True):
        expect(not found, f"{call}: {found}")


@functools.cache
def drawn_calls(operation: Operation, dtypes: tuple[str, ...]) -> list[Call]:
    """Calls with tensors of drawn shapes in drawn dtypes, the same in each run."""
    found: list[Call] = []

    @hypothesis.settings(max_examples=10, deadline=None, database=None, derandomize=True)
    @hypothesis.given(shapes_of(operation), st.sampled_from(dtypes), st.integers(0, 99))
    def collect(shapes: list[tuple[int, ...]], dtype: str, seed: int) -> None:
        found.append(drawn(operation, shapes, dtype, seed))

    collect()
    return found


def shapes_of(operation: Operation) -> st.SearchStrategy[list[tuple[int, ...]]]:
    """Shapes for the tensors of an operation."""
    if operation.name in WHOLE:
        oracle = WHOLE[operation.name]
        dims = {"min_dims": oracle.least_ndim, "max_dims": 3, "min_side": 0 if oracle.empty else 1, "max_side": 4}
        return extra.array_shapes(**dims).map(lambda shape: [shape])
    count = sum(1 for p in operation.tensors if not p.keyword)
    broadcastable = extra.mutually_broadcastable_shapes(num_shapes=count, max_dims=3, min_side=0, max_side=3)
    return broadcastable.map(lambda found: list(found.input_shapes))


def drawn(operation: Operation, shapes: list[tuple[int, ...]], dtype: str, seed: int) -> Call:
    """A call with plain values in tensors of these shapes."""
    parameters = [p for p in operation.tensors if not p.keyword]
    own = {TENSOR: dtype, INDEX: "int64", MASK: "bool"}
    columns = zip(parameters, shapes, strict=False)
    return Call(tuple(values(operation, shape, own[p.role], seed + i) for i, (p, shape) in enumerate(columns)), {})


@pairs(lambda operation, backend: operation.name in PRODUCTS)
def test_products(operation: Operation, backend: Backend) -> None:
    """Vectors, matrices, stacks of them, 0-d and empty tensors, in every dtype."""
    function, shapes = PRODUCTS[operation.name]
    oracle = Oracle(function, absolute=8)
    cases = itertools.product(computable(operation, backend), shapes)
    calls = [drawn(operation, [first, second], dtype, seed=0) for dtype, (first, second) in cases]
    for call, attempt in zip(calls, run_all(operation, backend, calls), strict=True):
        want = function(*entered(operation, call))
        found = list(_differences(operation, backend, oracle, call, np.asarray(host(attempt())), want))
        expect(not found, f"{call.text(operation.name)}: {'; '.join(found)}")


def takes_only_tensors(operation: Operation) -> bool:
    return bool(operation.tensors) and all(p.role == TENSOR and not p.many for p in operation.parameters)


def test_every_operation_on_tensors_alone_has_an_oracle() -> None:
    """One that has none is judged elsewhere, and says where."""
    alone = {name for name, operation in REGISTRY.items() if takes_only_tensors(operation)}
    assert not alone - set(ELEMENTWISE) - set(WHOLE) - set(PRODUCTS) - set(JUDGED_ELSEWHERE)
    assert not set(JUDGED_ELSEWHERE) & {*ELEMENTWISE, *WHOLE, *PRODUCTS}


def test_known_differences_are_still_there() -> None:
    for (name, engine), known in list(DIFFERENCES.items()):
        if engine not in backends.get_available_backends():
            continue
        operation, backend = REGISTRY[name], backends.load(engine)
        DIFFERENCES.pop((name, engine))
        try:
            # The kernels of other devices need not have the differences of those for the CPU.
            with ember_ml.use_backend(engine, device="cpu"):
                differs = any(mismatches(operation, backend, special_calls(operation, backend)))
            assert differs, f"{name} on {engine}: {known.reason}"
        finally:
            DIFFERENCES[name, engine] = known
