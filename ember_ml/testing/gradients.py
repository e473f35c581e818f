"""Gradients of every differentiable operation on every engine, compared with central differences and with NumPy.

The operations come from the registry. The checks differentiate a random projection of the floating results, in float64,
with respect to every floating tensor of the sample calls.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

import ember_ml
from ember_ml import ops, transform
from ember_ml.backend import Backend, load, submodule
from ember_ml.dispatch import TENSOR, Operation
from ember_ml.errors import UnsupportedError
from ember_ml.testing.comparison import dtypes_of_device, expect, expect_error, host, leaves
from ember_ml.testing.pairing import REFERENCE, pairs
from ember_ml.testing.programs import Attempt, Job, attempts
from ember_ml.testing.samples import Call, calls, given
from ember_ml.testing.samples.gradients import MORE, SEEN, THROUGH, WITHOUT

# Limits: elements of an array that are varied, calls of an operation, elements of an array.
ENTRIES, CALLS, LARGEST = 6, 12, 500

SINGLE = {"float64": np.float32, "complex128": np.complex64}


def has_gradient(operation: Operation, backend: Backend) -> bool:
    """Whether the operation is differentiable, with the same result in every call, and the engine has gradients."""
    return operation.differentiable and not given(operation, "VARIES") and differentiates(backend)


def has_no_gradient(operation: Operation, backend: Backend) -> bool:
    """Whether the operation is not differentiable, and the engine has gradients."""
    return not operation.differentiable and differentiates(backend)


def differentiates(backend: Backend) -> bool:
    """Whether the engine has transforms."""
    return submodule(backend.module, "transform") is not None


class Case(NamedTuple):
    """Call with floats in double precision, and the positions of the arrays to differentiate with respect to."""

    call: Call
    places: tuple[int, ...]

    @property
    def arrays(self) -> list[np.ndarray]:
        return arrays_of(self.call)


def arrays_of(call: Call) -> list[np.ndarray]:
    """Arrays of a call, in order."""
    found: list[np.ndarray] = []
    call.map(found.append)
    return found


def replaced(call: Call, values: dict[int, Any], change: Any = None) -> Call:
    """Call with some arrays replaced by ``values`` and ``change`` applied to the others."""
    count = iter(range(1000))

    def one(array: np.ndarray) -> Any:
        i = next(count)
        return values[i] if i in values else change(array)

    return call.map(one)


@cache
def cases(operation: Operation) -> list[Case]:
    """Sample calls that have a gradient, with noise added, since many functions have kinks at round values."""
    found = []
    for number, call in enumerate([*MORE.get(operation.name, []), *calls(operation)]):
        if operation.name in WITHOUT and WITHOUT[operation.name](call):
            continue
        rng = np.random.default_rng([zlib.crc32(operation.name.encode()), number])
        candidates = tensor_places(operation, call)
        arrays = [with_noise(operation, a, rng, i in candidates) for i, a in enumerate(arrays_of(call))]
        places = tuple(i for i in candidates if arrays[i].dtype.kind in "fc" and arrays[i].size)
        finite = all(np.isfinite(a).all() and a.size <= LARGEST for a in arrays if a.dtype.kind in "fc")
        case = Case(replaced(call, dict(enumerate(arrays))), places)
        if places and finite and is_defined(operation, case):
            found.append(case)
    return found[:CALLS]


def tensor_places(operation: Operation, call: Call) -> list[int]:
    """Positions of the arrays given as tensors; all of them if the operation has no tensor parameter."""
    roles: list[str] = []
    parameters = operation.parameters
    named = {p.name: p for p in parameters}
    some = any(p.role == TENSOR for p in parameters)

    def note(value: Any, role: str) -> None:
        Call((value,), {}).map(lambda _: roles.append(role))

    for i, value in enumerate(call.args):
        variadic = next((p for p in parameters[: i + 1] if p.variadic), None)
        note(value, (variadic or parameters[i]).role)
    for name, value in call.kwargs.items():
        note(value, named[name].role)
    return [i for i, role in enumerate(roles) if role == TENSOR or not some]


def with_noise(operation: Operation, array: np.ndarray, rng: np.random.Generator, varies: bool) -> np.ndarray:
    """Array in double precision if it is floating, with noise added if it is real and ``varies``."""
    if array.dtype.kind not in "fcV":
        return array
    if array.dtype.kind == "c" or not varies:
        return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
    low, high = given(operation, "DOMAIN", (-np.inf, np.inf))
    inside = np.clip(array.astype(np.float64), low + 0.04, high - 0.04)
    return np.asarray(inside + rng.uniform(-0.03, 0.03, inside.shape))


def is_defined(operation: Operation, case: Case) -> bool:
    """Whether the call is still valid with the noise: a matrix positive definite, or probabilities that sum to one."""
    try:
        with ember_ml.use_backend(REFERENCE), np.errstate(all="ignore"):
            floating_results(operation, case.call)
    except ember_ml.LinAlgError:
        return False
    except ValueError:
        if operation.differentiable:
            raise
        return False
    return True


def floating_results(operation: Operation, call: Call) -> list[Any]:
    """Leaves of the result that have a gradient."""
    through = THROUGH.get(operation.name)
    if through is not None:
        call = Call((through(call.args[0]), *call.args[1:]), call.kwargs)
    result = operation.call(*call.args, **call.kwargs)
    if operation.name in SEEN:
        result = SEEN[operation.name](result)
    return [leaf for _, leaf in leaves(result) if is_floating(leaf)]


def is_floating(leaf: Any) -> bool:
    return hasattr(leaf, "dtype") and ops.isdtype(leaf.dtype, ("real floating", "complex floating"))


def weights(operation: Operation, shapes: list[tuple[int, ...]]) -> list[np.ndarray]:
    """Weights of the projection. Those of complex results apply to the real and to the imaginary part."""
    rng = np.random.default_rng(zlib.crc32(operation.name.encode()))
    return [rng.uniform(0.5, 1.5, shape) for shape in shapes]


class Differences(NamedTuple):
    """Central differences: the elements of an array for which they converge, their values and their tolerance."""

    entries: list[int]
    values: np.ndarray
    tolerance: float


@cache
def differences(operation: Operation, number: int) -> list[Differences]:
    """Central differences for each array of a case, computed on NumPy.

    Elements for which they do not converge are excluded: kinks, poles, and values so large that the step is lost.
    """
    case = cases(operation)[number]
    arrays = case.arrays
    coarse = False

    def value(place: int, entry: int, step: float) -> float:
        nonlocal coarse
        moved = arrays[place].copy()
        moved.reshape(-1)[entry] += step
        try:
            found = [host(x) for x in floating_results(operation, replaced(case.call, {place: moved}, lambda a: a))]
        except ember_ml.LinAlgError:
            return float("nan")
        coarse = coarse or any(x.dtype.name not in SINGLE for x in found)
        projection = weights(operation, [x.shape for x in found])
        return float(sum((w * x.real).sum() + (w * x.imag).sum() for w, x in zip(projection, found, strict=True)))

    expected = []
    with ember_ml.use_backend(REFERENCE), np.errstate(all="ignore"):
        for place in case.places:
            middle = value(place, 0, 0.0)
            step, tolerance, curvature = (2.0**-6, 5e-3, 0.05) if coarse else (2.0**-17, 2e-5, 0.01)
            converged: dict[int, float] = {}
            for i in some_of(arrays[place].size, place):
                h = step * max(1.0, abs(arrays[place].reshape(-1)[i]))
                after, before = value(place, i, h) - middle, middle - value(place, i, -h)
                nearer = (value(place, i, h / 2) - value(place, i, -h / 2)) / h
                scale = max(1.0, abs(nearer))
                noise = abs(middle) * (1e-6 if coarse else 1e-14) / h
                apart = max(abs((after + before) / (2 * h) - nearer), noise)
                if apart < tolerance * scale and abs(after - before) / h < curvature * scale:
                    converged[i] = nearer
            expected.append(Differences(list(converged), np.array(list(converged.values())), tolerance))
    return expected


def some_of(size: int, seed: int) -> list[int]:
    if size <= ENTRIES:
        return list(range(size))
    return sorted(np.random.default_rng(seed).choice(size, ENTRIES, replace=False).tolist())


def native_in(backend: Backend) -> Callable[[np.ndarray], Any]:
    """Function that converts an array to a tensor."""
    return lambda array: backend.convert(array, None, backend.device)


def projection(operation: Operation, backend: Backend, case: Case) -> Callable[[list[Any]], Any]:
    """Function to differentiate: the projection of the results for the tensors at ``case.places``."""
    native = native_in(backend)
    wide = "float64" if "float64" in dtypes_of_device(backend) else "float32"

    def projected(xs: list[Any]) -> Any:
        found = floating_results(operation, replaced(case.call, dict(zip(case.places, xs, strict=True)), native))
        total: Any = 0.0
        for w, x in zip(weights(operation, [tuple(x.shape) for x in found]), found, strict=True):
            if ops.is_complex(x):
                x = ops.add(ops.real(x), ops.imag(x))
            weight = native(w.astype(wide))
            x = ops.to_device(ops.cast(x, wide), backend.device_of(weight))
            total = ops.add(total, ops.sum(ops.multiply(x, weight)))
        # Without results, the total is a Python number.
        return ops.asarray(total)

    return projected


def gradient(operation: Operation, backend: Backend, case: Case) -> Job:
    """Gradients of a case on an engine, one for each of its places."""

    def compute(*tensors: Any) -> list[Any]:
        with np.errstate(all="ignore"):
            found: list[Any] = transform.grad(projection(operation, backend, case))(list(tensors))
        return found

    return compute, [native_in(backend)(case.arrays[i]) for i in case.places]


def by_engine(operation: Operation, backend: Backend, some: Sequence[Case]) -> list[Attempt]:
    """Gradients of cases; in single precision if the engine does not support double precision."""
    wide = [all(a.dtype.name in backend.dtypes for a in case.arrays) for case in some]
    given = [case if is_wide else in_single(case) for case, is_wide in zip(some, wide, strict=True)]
    found = attempts(backend, [gradient(operation, backend, case) for case in given])

    def compute(attempt: Attempt, case: Case) -> list[np.ndarray]:
        try:
            return list(map(host, attempt()))
        except UnsupportedError:
            if "complex128" in backend.dtypes:
                raise
            run, tensors = gradient(operation, backend, in_single(case))
            return list(map(host, run(*tensors)))

    return [partial(compute, attempt, case) for attempt, case in zip(found, some, strict=True)]


def in_single(case: Case) -> Case:
    """Case in single precision."""
    return Case(replaced(case.call, {}, lambda a: a.astype(SINGLE.get(a.dtype.name, a.dtype))), case.places)


@cache
def by_numpy(operation: Operation, number: int) -> list[np.ndarray]:
    """Gradients of a case on NumPy, by the rules of this library."""
    with ember_ml.use_backend(REFERENCE):
        found: list[np.ndarray] = by_engine(operation, load(REFERENCE), cases(operation)[number : number + 1])[0]()
    return found


@pairs(has_gradient, aspect="gradients")
def test_gradients_are_the_differences(operation: Operation, backend: Backend) -> None:
    expect(cases(operation), "an operation without floating tensors must be declared with differentiable=False")
    converged = 0
    computed = by_engine(operation, backend, cases(operation))
    for number, (case, attempt) in enumerate(zip(cases(operation), computed, strict=True)):
        found = attempt()
        for g, place, expected in zip(found, case.places, differences(operation, number), strict=True):
            x = case.arrays[place]
            expect(g.shape == x.shape)
            single = g.dtype != x.dtype
            expect(not single or (x.dtype.name not in backend.dtypes or "complex128" not in backend.dtypes))
            tolerance = max(expected.tolerance, 2e-3 if single else 0.0)
            scale = max(1.0, float(np.abs(expected.values).max(initial=0.0)))
            got, where = g.reshape(-1)[expected.entries], f"call {number}, array {place}: {case.call}"
            np.testing.assert_allclose(got.real, expected.values, tolerance, tolerance / 10 * scale, err_msg=where)
            if not single:
                same = by_numpy(operation, number)[case.places.index(place)].reshape(-1)[expected.entries]
                np.testing.assert_allclose(got, same, 1e-9, 1e-9 * scale, err_msg=f"as on NumPy, {where}")
            converged += len(expected.entries)
    expect(converged, "no entry of any sample has a derivative")


@pairs(has_gradient, aspect="gradients")
def test_tangents_are_the_gradients_transposed(operation: Operation, backend: Backend) -> None:
    double = "complex128" in backend.dtypes and operation.name != "cast"
    case = cases(operation)[0] if double else in_single(cases(operation)[0])
    rng = np.random.default_rng(0)
    along = [rng.normal(size=case.arrays[i].shape).astype(case.arrays[i].dtype) for i in case.places]
    tangents = list(map(native_in(backend), along))

    def push(*tensors: Any) -> Any:
        xs, dxs = list(tensors[: len(tangents)]), list(tensors[len(tangents) :])
        with np.errstate(all="ignore"):
            return transform.jvp(projection(operation, backend, case), (xs,), (dxs,))[1]

    pull, tensors = gradient(operation, backend, case)
    pulled, pushed = attempts(backend, [(pull, tensors), (push, [*tensors, *tangents])])
    found, moved = list(map(host, pulled())), pushed()
    parts = [np.conj(g) * t for g, t in zip(found, along, strict=True)]
    if all(np.isfinite(part).all() for part in parts):
        scale = sum(float(np.abs(part).sum()) for part in parts)
        expected = sum(float(part.sum().real) for part in parts)
        tolerance = (1e-9 if double else 1e-4) * max(1.0, scale)
        expect(abs(float(host(moved)) - expected) <= tolerance, str(case.call))


# Second derivatives that an engine does not support and reports with an error.
ONCE = {("mlx", "segment_prod")}


@pairs(has_gradient, aspect="gradients")
def test_second_derivatives_are_those_of_numpy(operation: Operation, backend: Backend) -> None:
    case = next((c for c in cases(operation) if all(a.dtype.kind != "c" for a in c.arrays)), None)
    if case is None:
        return

    def second_derivatives(backend: Backend) -> list[np.ndarray]:
        first, tensors = gradient(operation, backend, case)

        def size(xs: list[Any]) -> Any:
            squares = [ops.sum(ops.square(g)) for g in first(*xs)]
            return sum(squares[1:], squares[0])

        def second(*tensors: Any) -> Any:
            with ember_ml.use_backend(backend.name), np.errstate(all="ignore"):
                return transform.grad(size)(list(tensors))

        (attempt,) = attempts(backend, [(second, tensors)])
        return list(map(host, attempt()))

    if (backend.name, operation.name) in ONCE:
        with expect_error(RuntimeError):
            second_derivatives(backend)
        return
    try:
        found = second_derivatives(backend)
    except UnsupportedError:
        expect("complex128" not in backend.dtypes)
        return
    for got, expected in zip(found, second_derivatives(load(REFERENCE)), strict=True):
        scale = max(1.0, float(np.abs(expected[np.isfinite(expected)]).max(initial=0.0)))
        np.testing.assert_allclose(got, expected, 1e-6, 1e-6 * scale, err_msg=str(case.call))


@pairs(has_no_gradient, aspect="gradients")
def test_no_gradient_is_zero_or_an_error(operation: Operation, backend: Backend) -> None:
    """An operation without a gradient returns zero, raises an error, or returns the correct gradient of the engine."""
    if given(operation, "VARIES"):
        return
    for number, attempt in enumerate(by_engine(operation, backend, cases(operation)[:3])):
        try:
            found = attempt()
        except (TypeError, ValueError, RuntimeError, NotImplementedError):
            continue
        for g, expected in zip(found, differences(operation, number), strict=True):
            got = g.reshape(-1)[expected.entries].real
            expect(not got.any() or np.allclose(got, expected.values, 2e-3, 2e-3), f"{got} for {expected.values}")


__all__ = sorted(name for name in globals() if name.startswith("test_"))  # for test modules, which import *
