"""The portable tensor: the same object on every engine, whichever engine is active."""

from __future__ import annotations

import copy
import operator
import pickle
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import ember_ml
from ember_ml import backend as backends
from ember_ml import dispatch, ops, transform
from ember_ml.backend import Backend
from ember_ml.dispatch import REGISTRY, Operation
from ember_ml.dtypes import floating
from ember_ml.nn import tensor
from ember_ml.nn.tensor import EmberTensor, unwrap, wrap
from ember_ml.testing.comparison import assert_same, host, is_on_cpu
from ember_ml.testing.samples import Call, calls, given
from ember_ml.testing.samples.indexing import UPDATES
from ember_ml.types import Tensor, TensorLike

ENGINES = ember_ml.get_available_backends()


@pytest.fixture(params=ENGINES)
def home(request: pytest.FixtureRequest) -> Iterator[Backend]:
    """An engine that tensors live on while another is active."""
    other = next((name for name in reversed(ENGINES) if name != request.param), request.param)
    ember_ml.set_backend(other)
    yield backends.load(request.param)
    ember_ml.set_backend("numpy")


def on(home: Backend, array: Any) -> EmberTensor:
    """An array as a portable tensor of an engine."""
    x: EmberTensor = wrap(home.convert(np.asarray(array), None, home.device))
    return x


def same(x: Any, expected: Any, tolerance: float | None = None) -> None:
    """``x`` is a portable tensor with the values, shape and dtype of an array."""
    assert isinstance(x, EmberTensor)
    assert_same(x.native, np.asarray(expected), tolerance)


X = np.array([[1.5, -2.0, 3.25], [0.5, 4.0, -1.0]], np.float32)
Y = np.array([[2.0], [0.5]], np.float32)
N = np.array([[1, 2, 3], [4, 5, 6]], np.int32)


def portable(home: Backend, call: Call) -> Call:
    return call.map(lambda array: on(home, array))


def unlike(result: Any, expected: Any, home: Backend) -> str:
    """How a result in EmberTensors differs from the one in native tensors; empty, if it does not."""
    if isinstance(expected, home.tensors):
        if not isinstance(result, EmberTensor) or result.home is not home:
            return f"{result!r} is no tensor of {home.name}"
        a, b = host(result.native), host(expected)
        alike = a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == np.ascontiguousarray(b).tobytes()
        return "" if alike or np.array_equal(a, b, equal_nan=a.dtype.kind in "fc") else f"{a} is not {b}"
    if isinstance(expected, dict):
        expected, result = list(expected.values()), list(result.values())
    if isinstance(expected, (list, tuple)):
        if type(result) is not type(expected) or len(result) != len(expected):
            return f"{type(result)} of {len(result)}"
        return "; ".join(filter(None, (unlike(a, b, home) for a, b in zip(result, expected, strict=True))))
    return "" if result == expected or result != result else f"{result!r} is not {expected!r}"


def test_every_operation_returns_ember_tensors_for_ember_tensors(home: Backend) -> None:
    found = {}
    for name, operation in REGISTRY.items():
        if given(operation, "VARIES") is None:
            try:
                wrong = unlike_native(operation, home)
            except Exception as error:
                wrong = repr(error)
            if wrong:
                found[name] = wrong
    assert found == {}


def unlike_native(operation: Operation, home: Backend) -> str:
    call = next((call for call in calls(operation) if holds_arrays(call)), None)
    if call is None:
        return ""
    natives = call.map(lambda array: home.convert(array, None, home.device))
    with ember_ml.use_backend(home.name):
        expected = operation.call(*natives.args, **natives.kwargs)
    arguments = portable(home, call)
    result = operation.call(*arguments.args, **arguments.kwargs)
    if operation.returns_numpy:
        return "" if isinstance(result, np.ndarray) else f"{result!r} is no host array"
    return unlike(result, expected, home)


def holds_arrays(call: Call) -> bool:
    found: list[Any] = []
    call.map(found.append)
    return bool(found)


def test_methods_are_operations(home: Backend) -> None:
    x = on(home, X)
    assert EmberTensor.softplus is ops.softplus
    methods = [n for n in dir(x) if hasattr(getattr(ops, n, None), "__operation__")]
    assert len(methods) > 200
    same(x.mean(0), X.mean(0))
    same(x.sum(axis=1, keepdims=True), X.sum(1, keepdims=True))
    same(x.std(1, 1), X.std(1, ddof=1))
    same(x.reshape(3, 2), X.reshape(3, 2))
    same(x.reshape((3, -1)), X.reshape(3, 2))
    same(x.reshape(-1), X.ravel())
    same(x.reshape(np.array([3, 2])), X.reshape(3, 2))
    same(x.reshape(on(home, [3, 2])), X.reshape(3, 2))
    same(x.reshape(np.int64(6)), X.ravel())
    same(x.transpose(1, 0), X.T)
    same(x.transpose(), X.T)
    same(x.permute_dims((1, 0)), X.T)
    same(x.clip(-1, 2), X.clip(-1, 2))
    same(x.astype("float64"), X.astype(np.float64))
    same(x.take([2, 0], 1), X.take([2, 0], 1))
    same(x.argmax(1), X.argmax(1))
    same(x.flatten(), X.ravel())
    with pytest.raises(TypeError, match="mean"):
        x.mean(0, False, 1)
    with pytest.raises(TypeError, match=r"mean\(\) got multiple values for argument 'axis'"):
        x.mean(0, axis=0)


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(operator, name)
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "eq", "ne", "lt", "le", "gt", "ge")
}
BITS = {name: getattr(operator, name) for name in ("and_", "or_", "xor", "lshift", "rshift", "pow")}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(home: Backend, name: str) -> None:
    function = OPERATORS[name]
    x, y = on(home, X), on(home, Y)
    same(function(x, y), function(X, Y), 1e-6)
    same(function(x, 2.5), function(X, np.float32(2.5)), 1e-6)
    same(function(2.5, x), function(np.float32(2.5), X), 1e-6)
    same(function(x, 2), function(X, np.float32(2)), 1e-6)
    same(function(x, Y), function(X, Y), 1e-6)
    same(function(X, y), function(X, Y), 1e-6)
    same(function(x, y.native), function(X, Y), 1e-6)


@pytest.mark.parametrize("name", BITS)
def test_operators_of_integers(home: Backend, name: str) -> None:
    function = BITS[name]
    x, y = on(home, N), on(home, N % 3)
    same(function(x, y), function(N, N % 3))
    same(function(x, 2), function(N, np.int32(2)))
    same(function(2, x), function(np.int32(2), N))


def test_other_operators(home: Backend) -> None:
    x, n = on(home, X), on(home, N)
    same(-x, -X)
    same(+x, X)
    same(abs(x), abs(X))
    same(~n, ~N)
    same(x @ x.T, X @ X.T, 1e-6)
    same(x @ X.T, X @ X.T, 1e-6)
    same(X @ x.T, X @ X.T, 1e-6)
    same(round(on(home, X) / 3, 2), np.round(X / 3, 2), 1e-6)
    quotient, rest = divmod(x, 2)
    same(quotient, X // 2)
    same(rest, X % 2)
    same(divmod(7.0, abs(x))[0], 7 // abs(X))


IN_PLACE = {
    name: getattr(operator, "i" + name)
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift")
    if hasattr(operator, "i" + name)
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_operators_that_assign(home: Backend, name: str) -> None:
    array = abs(X) if name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow") else N
    x = on(home, array)
    before, other = x, x[:]
    native = x.native
    x = IN_PLACE[name](x, 2)
    assert x is before
    same(x, IN_PLACE[name](array.copy(), array.dtype.type(2)), 1e-6)
    same(other, array)
    same(wrap(native), array)


def test_assigning_operators_keep_dtype_and_shape(home: Backend) -> None:
    n = on(home, N)
    n += on(home, N.astype(np.int64))
    same(n, N * 2)
    with pytest.raises(TypeError, match="add: a result that is assigned to an int32 tensor must be of its kind"):
        n += 0.5
    with pytest.raises(TypeError, match="astype"):
        n /= 2
    row = on(home, X[:1])
    for other in (on(home, X), X.tolist()):
        with pytest.raises(ValueError, match="add: the result must have the shape of the tensor that it is assign"):
            row += other
    square = on(home, np.eye(2, dtype=np.float32) * 2)
    square @= square
    same(square, np.eye(2, dtype=np.float32) * 4)


def test_promotion_is_that_of_operations(home: Backend) -> None:
    n, x = on(home, N), on(home, X)
    assert (n + x).dtype == "float32"
    assert (n / n).dtype == "float32"
    assert (n + 1.5).dtype == "float32"
    assert (2 / n).dtype == "float32"
    assert (n == x).dtype == "bool"
    assert (on(home, N.astype(np.uint8)) + n).dtype == "int32"
    with pytest.raises(TypeError, match="uint64"):
        on(home, N.astype(np.uint64)) + n
    with pytest.raises(ValueError, match="300"):
        on(home, N.astype(np.uint8)) + 300
    with pytest.raises(TypeError):
        1.5 & n


def test_objects_that_are_no_operands(home: Backend) -> None:
    class Other:
        def __radd__(self, other: Any) -> str:
            return "theirs"

        def __add__(self, other: Any) -> Any:
            return NotImplemented

    x = on(home, X)
    assert x + Other() == "theirs"
    assert (x == None) is False  # noqa: E711
    assert (x != "a") is True
    for wrong in (lambda: x + None, lambda: "a" * x, lambda: Other() + x, lambda: x < {}):
        with pytest.raises(TypeError):
            wrong()


def test_tensors_of_two_engines(home: Backend) -> None:
    others = [backends.load(name) for name in ENGINES if name != home.name]
    x = on(home, X)
    for other in others:
        y = on(other, Y)
        for mixed in (lambda y=y: x + y, lambda y=y: ops.concat([x, y]), lambda y=y: tensor.where(x > 0, x, y)):
            with pytest.raises(TypeError, match=f"{home.name} and {other.name}.*to_backend"):
                mixed()
        with pytest.raises(TypeError, match="indexing: tensors must be of one engine"):
            x[on(other, [0])]
        if other.name != "numpy":
            with pytest.raises(TypeError, match="add: tensors must be of one engine"):
                x + y.native
        same(x + y.to_backend(home.name), X + Y)


def test_an_engine_that_takes_the_tensors_of_another_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine that records what NumPy computes for ``grad`` takes arrays, whether or not NumPy takes its tensors."""
    numpy, found = backends.load("numpy"), []

    def run(x: Any) -> Any:
        y = on(numpy, Y)
        with monkeypatch.context() as patch:
            patch.setattr(numpy, "kinds", numpy.tensors)
            found.extend(dispatch.backend_of_wrapped("add", pair).name for pair in ((x, y), (y, x)))
        return ops.sum(x)

    transform.grad(run)(on(numpy, X))
    assert found == [backends.DIFFERENTIATION] * 2


def test_numpy_gives_way(home: Backend) -> None:
    x = on(home, X)
    same(np.sin(x), np.sin(X), 1e-6)
    same(np.float32(2) + x, X + 2)
    same(np.arctan2(X, x), np.arctan2(X, X), 1e-6)
    same(np.degrees(x), np.degrees(X), 1e-6)
    same(np.radians(x), np.radians(X), 1e-6)
    same(np.invert(on(home, N)), ~N)
    same(Y.astype(np.float64) * x, Y.astype(np.float64) * X)
    with pytest.raises(TypeError, match=r"numpy\.add\.reduce: arguments must not be EmberTensors, got one; x\.num"):
        np.add.reduce(x)
    array = X.copy()
    array += x
    assert type(array) is np.ndarray
    np.testing.assert_array_equal(array, X + X)
    with pytest.raises(TypeError, match="out"):
        np.add(X, X, out=x)
    with pytest.raises(TypeError, match="spacing"):
        np.spacing(x)


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "std", "var", "max", "min", "any", "all", "argmax", "cumsum"])
def test_numpys_functions_call_the_methods(home: Backend, name: str) -> None:
    x, function = on(home, X), getattr(np, name)
    same(function(x, axis=1), function(X, axis=1), 1e-6)
    if name in ("std", "var"):
        same(function(x, ddof=1), function(X, ddof=1), 1e-6)
        same(getattr(x, name)(ddof=1), function(X, ddof=1), 1e-6)
    with pytest.raises(TypeError, match="out"):
        getattr(x, name)(out=np.zeros(2))


KEYS = [
    *(update.args[1] for update in UPDATES if update.args[0].shape == (3, 4)),
    (slice(None, None, -2), [0, 1]),
    (np.array([[0, 1], [2, 0]]), None, slice(None, None, -1)),
    ([0, 1], slice(None), None),
    (Ellipsis, None),
    np.zeros((0, 0), bool),
    np.zeros((3, 0), bool),
    (slice(None), np.zeros(0, bool)),
    True,
    (np.array(1), slice(1, None)),
]


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_reading_and_assigning_are_numpys(home: Backend, key: Any) -> None:
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    x = on(home, array)
    keys = tuple(key) if isinstance(key, tuple) else key
    held = wrap_arrays(home, keys)
    expected = array[keys]
    same(x[keys], expected)
    same(x[held], expected)
    if key is True:
        return
    other, native = x[:], x.native
    assigned = array.copy()
    assigned[keys] = -expected - 1
    x[held] = -on(home, expected) - 1
    same(x, assigned)
    same(other, array)
    same(wrap(native), array)


def wrap_arrays(home: Backend, key: Any) -> Any:
    if isinstance(key, tuple):
        return tuple(wrap_arrays(home, part) for part in key)
    return on(home, key) if isinstance(key, np.ndarray) else key


FAR = [slice(None, 2**31), slice(-(2**40), 2**70), slice(2**63, None), slice(None, None, 2**31), slice(1, 5, 2**63)]
FAR += [slice(None, None, -(2**70)), slice(np.int64(1), np.int8(4), np.uint8(2))]


@pytest.mark.parametrize("key", FAR, ids=repr)
def test_slices_may_go_far_beyond_the_end(home: Backend, key: slice) -> None:
    array = np.arange(5, dtype=np.float32)
    x = on(home, array)
    for keys in (key, (key,), (..., key), (None, key)):
        same(x[keys], array[keys])
    assigned = array.copy()
    assigned[key] = 9
    x[key] = 9
    same(x, assigned)


def test_a_step_of_nothing(home: Backend) -> None:
    x = on(home, X)
    for key in (slice(None, None, 0), (0, slice(1, 2, 0)), (slice(None, None, 0), [0, 1])):
        with pytest.raises(ValueError, match="zero"):
            x[key]
        with pytest.raises(ValueError, match="zero"):
            x[key] = 1.0


def test_indices_that_do_not_fit_each_other(home: Backend) -> None:
    x = on(home, X)
    for key in (([0, 1], [0, 1, 2]), (np.array([True, True]), [0, 1, 2])):
        with pytest.raises(IndexError):
            x[key]
        with pytest.raises(IndexError):
            x[key] = 1.0


@pytest.mark.parametrize("value", [False, True])
@pytest.mark.parametrize("shape", [(1,), (1, 1), (3,), (2, 1)])
def test_a_mask_of_another_shape_is_no_number(home: Backend, shape: tuple[int, ...], value: bool) -> None:
    x, mask = on(home, X[:, 0]), on(home, np.full(shape, value))
    for key in (mask, mask.native):
        with pytest.raises(IndexError):
            x[key]


def test_assigning_to_nothing(home: Backend) -> None:
    empty = on(home, np.zeros((0, 3), np.float32))
    for key in ([], (slice(None), [0, 1]), ([], []), np.zeros(0, bool), slice(None)):
        empty[key] = 7
        assert empty.at[key].add(1).shape == (0, 3)
    assert empty.shape == (0, 3)


def test_reading_beyond_the_end(home: Backend) -> None:
    x = on(home, X)
    for key in (2, -3, (0, 3), (..., 3), (slice(None), -4), [2], (0, 0, 0), np.ones(3, bool), (..., ...)):
        with pytest.raises(IndexError):
            x[key]
        with pytest.raises(IndexError):
            x[key] = 1.0
    for key in ("a", 0.5, [0.5]):
        with pytest.raises((TypeError, IndexError)):
            x[key]
    with pytest.raises(IndexError):
        x.sum()[0]


def test_assigning_values_of_other_kinds(home: Backend) -> None:
    n = on(home, N)
    n[0] = True
    n[1, :2] = [7, 8]
    same(n, np.int32([[1, 1, 1], [7, 8, 6]]))
    with pytest.raises(TypeError, match="float32"):
        n[0] = 0.5
    with pytest.raises(ValueError, match=r"shape|broadcast|expand|fit"):
        n[0] = [1, 2]
    point = on(home, np.float32(1))
    point[()] = 5
    same(point, np.float32(5))
    mask = on(home, X > 0)
    x = on(home, X)
    x[mask] = 0
    same(x, np.where(X > 0, 0, X).astype(np.float32))


def test_updates_that_return(home: Backend) -> None:
    array = np.array([4.0, 2.0, 8.0], np.float32)
    x = on(home, array)
    same(x.at[1:].get(), array[1:])
    same(x.at[1:].set(0), np.float32([4, 0, 0]))
    same(x.at[[0, 0]].add(1), np.float32([6, 2, 8]))
    same(x.at[[0, 0]].subtract(1), np.float32([2, 2, 8]))
    same(x.at[0].multiply(3), np.float32([12, 2, 8]))
    same(x.at[0].divide(4), np.float32([1, 2, 8]))
    same(x.at[1].power(3), np.float32([4, 8, 8]))
    same(x.at[x > 3].min(5), np.float32([4, 2, 5]))
    same(x.at[:].max(3), np.float32([4, 3, 8]))
    same(x.at[-1].apply(lambda part: -part), np.float32([4, 2, -8]))
    same(x, array)


def test_attributes(home: Backend) -> None:
    x = on(home, X)
    assert (x.shape, x.ndim, x.size, x.itemsize, x.nbytes) == ((2, 3), 2, 6, 4, 24)
    assert type(x.shape) is tuple
    assert x.dtype is ember_ml.float32
    assert x.backend == home.name
    assert x.device == home.device_of(x.native)
    same(x.T, X.T)
    same(x.mT, X.T)
    z = on(home, (X + 1j).astype(np.complex64))
    same(z.mH, (X - 1j).astype(np.complex64).T)
    same(z.real, X)
    same(z.imag, np.ones_like(X))
    assert hash(x) == object.__hash__(x)
    assert len({x, on(home, X), x}) == 2
    assert {on(home, X)[0, 1]: "found"}[on(home, X)[0, 1]] == "found"
    assert hash(x[0, 1]) == hash(float(X[0, 1]))
    assert weakref.ref(x)() is x


def test_containers(home: Backend) -> None:
    x = on(home, X)
    assert len(x) == 2
    for row, expected in zip(x, X, strict=True):
        same(row, expected)
    assert 3.25 in x
    for other in (7, None, "a", {}, object()):
        assert other not in x
    for wrong in (lambda: len(x.sum()), lambda: iter(x.sum())):
        with pytest.raises(TypeError, match="the tensor must have at least 1 axis, got a 0-d tensor"):
            wrong()


def test_numbers(home: Backend) -> None:
    x, n, z = on(home, np.float32(2.5)), on(home, np.int8(3)), on(home, np.complex64(1 + 2j))
    assert (float(x), int(x), complex(x), bool(x)) == (2.5, 2, 2.5 + 0j, True)
    assert (operator.index(n), [10, 20, 30, 40][n], complex(z)) == (3, 40, 1 + 2j)
    assert (x.item(), type(n.item()), on(home, [[7]]).item()) == (2.5, int, 7)
    assert (x.tolist(), on(home, N).tolist()) == (2.5, N.tolist())
    assert f"{x:.2f} {n}" == f"2.50 {n!r}"
    assert f"{on(home, N):>200}" == f"{on(home, N)!r:>200}"
    with pytest.raises(TypeError, match=r"format: the tensor must be 0-d for '\.2f', got shape \[2, 3\]"):
        f"{on(home, X):.2f}"
    with pytest.raises(TypeError, match=r"EmberTensor\.__pow__\(\) takes 2"):
        pow(n, 2, 3)
    for wrong in (lambda: float(on(home, X)), lambda: int(on(home, [1])), lambda: operator.index(x), lambda: float(z)):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(TypeError, match="index: the tensor must be of integers, got bool"):
        operator.index(on(home, True))
    with pytest.raises(ValueError, match="any"):
        bool(on(home, [True, False]))
    with pytest.raises(ValueError, match="item: the tensor must have 1 element"):
        on(home, X).item()
    assert [on(home, X).item(*place) for place in ((1,), (-1,), (1, 0), ((0, 2),), (np.int64(3),))] == [
        X.item(1), X.item(-1), X.item(1, 0), X.item(0, 2), X.item(3)
    ]  # fmt: skip
    for place in ((6,), (0, 3), ((2, 0),)):
        with pytest.raises(IndexError):
            on(home, X).item(*place)
    with pytest.raises(OverflowError):
        int(on(home, np.float32(np.inf)))


def test_host_arrays(home: Backend) -> None:
    x = on(home, X)
    array = x.numpy()
    array[...] = 0
    same(x, X)
    assert np.asarray(x).dtype == np.float32
    assert np.array(x, dtype=np.float64).dtype == np.float64
    np.testing.assert_array_equal(np.asarray([x[0], x[1]]), X)
    half = on(home, X).astype("bfloat16")
    assert str(np.asarray(half).dtype) == "bfloat16"
    with pytest.raises(ValueError, match="copy"):
        np.array(x, dtype=np.float64, copy=False)


def test_dlpack(home: Backend) -> None:
    x = on(home, X)
    if is_on_cpu(home):
        assert x.__dlpack_device__() == (1, 0)
        np.testing.assert_array_equal(np.from_dlpack(x), X)
    else:
        assert x.__dlpack_device__() == x.native.__dlpack_device__() != (1, 0)
    same(tensor.from_dlpack(x), X)
    assert tensor.from_dlpack(x).backend == home.name
    with pytest.raises(BufferError):
        x.__dlpack__(dl_device=(7, 0))  # Vulkan, which no engine has


def test_dlpack_of_a_reversed_tensor(home: Backend) -> None:
    """torch ends the process where it is handed negative strides."""
    for x, expected in ((on(home, X)[::-1], X[::-1]), (on(home, X)[:, ::-2], X[:, ::-2])):
        if is_on_cpu(home):  # NumPy reads no other memory
            np.testing.assert_array_equal(np.from_dlpack(x), expected)
            assert min((0, *np.from_dlpack(x).strides)) == 0
        for name in ember_ml.get_available_backends():
            with ember_ml.use_backend(name):
                same(tensor.from_dlpack(x), expected)
    torch = pytest.importorskip("torch")
    for read in (torch.from_dlpack, torch.as_tensor, torch.tensor):
        np.testing.assert_array_equal(read(on(home, X)[::-1]).cpu().numpy(), X[::-1])


def test_repr(home: Backend) -> None:
    x = on(home, X)
    assert repr(x) == (
        "EmberTensor([[ 1.5 , -2.  ,  3.25],\n"
        "             [ 0.5 ,  4.  , -1.  ]], shape=(2, 3), dtype=float32, "
        f"device='{x.device}', backend='{home.name}')"
    )
    assert str(on(home, np.int64(3))).startswith("EmberTensor(3, shape=(), dtype=int64")
    assert len(repr(on(home, np.zeros(100_000)))) < 200
    wide = repr(on(home, np.arange(60) / 7)).splitlines()
    assert wide[-1].startswith("             shape=(60,), dtype=float64, device=")
    assert max(map(len, wide)) < 100


def test_pickle_and_copies(home: Backend) -> None:
    for array in (X, N, X > 0, np.float32(1), np.zeros((0, 2), np.uint8), (X + 1j).astype(np.complex64)):
        x = on(home, array)
        again = pickle.loads(pickle.dumps(x))
        same(again, array)
        assert (again.backend, again.device) == (x.backend, x.device)
        deep, shallow = copy.deepcopy({"x": x})["x"], copy.copy(x)
        same(deep, array)
        assert shallow.native is x.native
        assert deep.native is not x.native
        x[...] = 1
        same(deep, array)
        same(shallow, array)
    half = on(home, X).astype("bfloat16")
    assert pickle.loads(pickle.dumps(half)).dtype == "bfloat16"


def test_making(home: Backend) -> None:
    native = home.convert(X, None, None)
    with ember_ml.use_backend(home.name):
        x = EmberTensor(native)
    assert x.native is native
    assert EmberTensor(x).native is native
    assert x.backend == home.name
    same(EmberTensor(x, dtype="float64"), X.astype(np.float64))
    made = EmberTensor([1, 2])
    assert made.backend == ember_ml.get_backend()
    assert made.dtype == "int64"
    assert EmberTensor([1, 2], dtype="int8", device="cpu").dtype == "int8"
    assert EmberTensor(np.float32(3)).shape == ()
    assert EmberTensor(X.astype(">f4")).dtype == "float32"
    for data in ([x, x], (x, x), [list(x), list(x)]):
        held = EmberTensor(data)
        assert isinstance(held.native, home.tensors)
        same(held, np.stack([X, X]))
    same(EmberTensor([x[0, 0], 2]), np.float32([1.5, 2]))
    with pytest.raises(TypeError):
        EmberTensor(np.array(["a"]))
    with pytest.raises(TypeError):
        EmberTensor("abc")


class Marked(EmberTensor):
    """A user's own kind of tensor, with something more to hold."""

    def __init__(self, data: Any) -> None:
        super().__init__(data)
        self.mark = "mine"


def test_operations_on_subclasses_return_ember_tensors(home: Backend) -> None:
    x = Marked(on(home, X))
    results = [x + 1, 1 + x, 2.0 / x, x + x, -x, x[0], x.sum(), x @ x.T, x == x, x + on(home, X), copy.deepcopy(x)]
    assert {type(result) for result in results} == {EmberTensor}
    x += 1
    assert (type(x), x.mark) == (Marked, "mine")
    same(x, X + 1)


def test_moving(home: Backend) -> None:
    x = on(home, X)
    for name in ENGINES:
        moved = x.to_backend(name)
        same(moved, X)
        assert moved.backend == name
    assert x.to_backend(home.name) is x
    same(x.to("cpu"), X)
    same(x.to_device("cpu"), X)
    for wrong in (lambda: x.to("abacus"), lambda: x.to_device("cpu", stream=1), lambda: x.to_backend("abacus")):
        with pytest.raises(ValueError, match=r"abacus|stream"):
            wrong()


def test_trees(home: Backend) -> None:
    tree = {"a": [on(home, X), 3], "b": (None, "c")}
    natives = unwrap(tree)
    assert isinstance(natives["a"][0], home.tensors)
    again = wrap(natives)
    same(again["a"][0], X)
    assert again["b"] == (None, "c")


def test_control_flow_hands_over_portable_tensors(home: Backend) -> None:
    x = on(home, X)
    same(ops.cond(x.sum() > 0, lambda v: v.sum(axis=0), lambda v: v, x), X.sum(0))
    same(ops.while_loop(lambda v: v.sum() < 100, lambda v: v * 2, abs(x)), abs(X) * 16)
    total, squares = ops.scan(lambda c, row: (c + row.sum(), row**2), x.sum() * 0, x)
    same(total, X.sum(), 1e-6)
    same(squares, X**2)
    same(ops.vectorized_map(lambda row: row.max() - row, x), X.max(1, keepdims=True) - X)
    same(ops.fori_loop(0, 3, lambda i, v: v + i, x), X + 3)


def test_transforms_where_another_engine_is_active(home: Backend) -> None:
    x, rows = on(home, X[0]), on(home, X)
    same(ember_ml.transform.jacobian(lambda v: v * v)(x), np.diag(2 * X[0]))
    same(ember_ml.transform.hessian(lambda v: (v**3).sum())(x), np.diag(6 * X[0]), 1e-6)
    same(ember_ml.vmap(lambda v: (v * 2).sum())(rows), (X * 2).sum(1))
    same(ember_ml.vmap(lambda v: v * 2, in_axes=1, out_axes=1)(rows), X * 2)
    same(ember_ml.vmap(lambda v: v * 2)(rows[:0]), X[:0])
    if home.name != "numpy":
        found = ember_ml.transform.jacobian(lambda v: v * v)(x.native)
        assert isinstance(found, home.tensors)


def test_numbers_keep_their_digits(home: Backend) -> None:
    x = on(home, np.array([1.0, 2.0]))
    same(x.pad((1, 1), constant_values=0.1), np.array([0.1, 1, 2, 0.1]))
    same(x.pad((1, 1), constant_values=(0.1, 0.2)), np.array([0.1, 1, 2, 0.2]))
    same(x + 2**200, np.array([1, 2]) + 2.0**200)
    same(x.astype("float32") * 2**70, np.float32([2.0**70, 2.0**71]))
    with ember_ml.use_backend(home.name):
        same(tensor.arange(0.1, 0.7, 0.2, dtype="float64"), np.arange(0.1, 0.7, 0.2))
        same(tensor.full((2,), 2**70, dtype="float32"), np.float32([2.0**70, 2.0**70]))


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_arrays_with_a_mind_of_their_own_are_arrays(backend: Backend) -> None:
    """A matrix and a masked array of NumPy compute alike on every engine."""
    matrix, masked = np.matrix([[1.0, 4.0], [9.0, 16.0]]), np.ma.array([1.0, 4.0, 9.0], mask=[0, 1, 0])
    x = tensor.asarray([1.0, 2.0], dtype="float64")
    assert_same(ops.sum(matrix, axis=0), np.array([10.0, 20.0]))
    assert_same(ops.sqrt(masked), np.array([1.0, 2.0, 3.0]))
    assert_same(ops.index_get(matrix, 0), np.array([1.0, 4.0]))
    same(matrix @ x, np.array([9.0, 41.0]))
    same(x + masked[1:], np.array([5.0, 11.0]))


def test_integers_may_be_numpys_or_tensors(home: Backend) -> None:
    """Axes and lengths are often computed."""
    x = on(home, X)
    for one in (np.int64(1), np.array(1), on(home, np.int64(1)), on(home, np.int64(1)).native):
        for name in ("sum", "mean", "std", "max", "argmax", "logsumexp", "count_nonzero", "nanmean"):
            same(getattr(x, name)(axis=one), getattr(x, name)(axis=1).numpy(), 1e-6)
        same(x.sum(axis=(0, one)), X.sum())
        same(x.partition(one), x.partition(1).numpy())
        with pytest.raises(ValueError, match=r"axis|dim|axes"):
            x.sum(axis=(one, one))
    with ember_ml.use_backend(home.name):
        same(tensor.arange(np.int64(3)), np.arange(3))
        same(tensor.full(np.int64(2), 7), np.full(2, 7))
        same(tensor.one_hot(tensor.asarray([0, 1]), np.int64(2)), np.eye(2, dtype=np.float32))


def test_files(home: Backend, tmp_path: Any) -> None:
    path = tmp_path / "x.safetensors"
    ops.save(path, {"x": on(home, X), "step": 3})
    found = tensor.load(path)
    same(found["x"], X)
    assert (found["x"].backend, found["step"]) == (ember_ml.get_backend(), 3)


def test_creation(backend: Backend) -> None:
    for x in (
        tensor.zeros((2, 3)),
        tensor.full(2, 7),
        tensor.arange(3),
        tensor.asarray([1.0]),
        tensor.eye(2),
        tensor.linspace(0, 1, 3),
        tensor.convert_to_tensor(X),
        tensor.linalg.orthogonal((2, 2)),
        tensor.fft.fftfreq(4),
        tensor.random.normal((2,), key=7),
        tensor.random_uniform((2,), key=tensor.asarray([1, 2], dtype="uint32")),
        tensor.bitwise.create_duty_cycle(8, 0.5),
        tensor.stats.mean(tensor.ones(2)),
        tensor.full((2,), tensor.asarray(1.5)),
    ):
        assert isinstance(x, EmberTensor)
        assert x.backend == backend.name
    assert tensor.array is tensor.asarray
    assert tensor.add.__operation__ is ops.add.__operation__  # type: ignore[attr-defined]
    assert tensor.finfo is ops.finfo
    assert tensor.zeros.__doc__ == ops.zeros.__doc__
    x = tensor.asarray([1.0, 2.0])
    assert tensor.asarray(x) is x
    assert tensor.asarray(x, copy=True) is not x
    same(tensor.cond(True, lambda v: v.sum(), lambda v: v, 3.0), np.float32(3))


def test_namespace_creates_on_the_engine_of_the_tensor(home: Backend) -> None:
    x = on(home, X)
    xp = x.__array_namespace__()
    assert xp is not tensor
    same(x + xp.ones((2, 3), dtype=xp.float32), X + 1)
    same(xp.fft.fftfreq(4) + xp.sum(x), np.float32([0, 0.25, -0.5, -0.25]) + X.sum(), 1e-6)
    assert xp.__array_namespace_info__().dtypes().keys() == namespace_dtypes(home)
    same(xp.add([1.0, 2.0], 3), np.float32([4, 5]))
    assert xp.add is xp.add
    assert xp.__array_api_version__ == "2024.12"
    assert dir(xp) == dir(tensor)
    assert pickle.loads(pickle.dumps(xp)) is xp
    assert x.__array_namespace__(api_version="2023.12") is xp
    with pytest.raises(ValueError, match=r"2024\.12"):
        x.__array_namespace__(api_version="1999.12")
    with ember_ml.use_backend(home.name):
        assert x.__array_namespace__() is tensor


def namespace_dtypes(home: Backend) -> Any:
    with ember_ml.use_backend(home.name):
        return tensor.__array_namespace_info__().dtypes().keys()


def test_an_engine_is_not_switched_by_a_failure(home: Backend) -> None:
    active = ember_ml.get_backend()
    with pytest.raises(ValueError, match=r"shape|size"):
        on(home, X).reshape(5)
    assert ember_ml.get_backend() == active


@pytest.mark.skipif("torch" not in ENGINES, reason="the torch engine is not installed")
class TestTorch:
    """What only torch's tensors have comes through."""

    def test_gradients_flow(self) -> None:
        import torch

        native = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
        x = EmberTensor(native)
        assert x.requires_grad
        y = x * 1.0
        y[0] = 5.0
        y *= x
        (y[1:] ** 2).sum().backward()
        torch.testing.assert_close(native.grad, torch.tensor([0.0, 32.0, 108.0]))
        same(x.grad, np.float32([0, 32, 108]))
        assert not x.detach().requires_grad
        assert pickle.loads(pickle.dumps(x)).requires_grad
        assert copy.deepcopy(x).native.is_leaf
        for middle in (copy.deepcopy(x * 2), pickle.loads(pickle.dumps(x * 2))):
            same(middle, np.float32([2, 4, 6]))
            assert middle.native.is_leaf
            assert middle.requires_grad
        assert EmberTensor(torch.ones(2)).requires_grad_().requires_grad

    def test_operators_of_native_tensors(self) -> None:
        import torch

        x, native = EmberTensor(torch.tensor(X)), torch.tensor(Y)
        same(native + x, X + Y)
        same(native.T @ x, Y.T @ X)
        same(native <= x, Y <= X)

    def test_compiles(self) -> None:
        import torch

        def inside(a: Any, b: Any) -> Any:
            x, y = EmberTensor(a), EmberTensor(b)
            z = (x + y) * 2.0 - x.mean(axis=0)
            z[0] = 1.0 / z[1]
            return (tensor.concat([z, y]).sum(0) + tensor.ones(3)).native

        ember_ml.set_backend("torch")
        try:
            a, b = (torch.tensor(x, device=ops.get_device()) for x in (X, X + 1))
            compiled = torch.compile(inside, fullgraph=True, backend="eager")
            torch.testing.assert_close(compiled(a, b), inside(a, b))
            across = torch.compile(lambda x: (x * 2 + 1).sum(), fullgraph=True, backend="eager")
            same(across(EmberTensor(a)), (X * 2 + 1).sum())
        finally:
            ember_ml.set_backend("numpy")
            torch._dynamo.reset()


@pytest.mark.skipif("mlx" not in ENGINES, reason="the MLX engine is not installed")
def test_mlx_does_not_give_way() -> None:
    """MLX's operators take whatever supports DLPack as their right operand, and return an MLX array."""
    import mlx.core as mx

    assert_same(mx.array(Y) + EmberTensor(mx.array(X)), X + Y)
    same(EmberTensor(mx.array(X)) + mx.array(Y), X + Y)


@pytest.mark.skipif("mlx" not in ENGINES, reason="the MLX engine is not installed")
def test_compiles_with_mlx() -> None:
    import mlx.core as mx

    def inside(a: Any, b: Any) -> Any:
        x, y = EmberTensor(a), EmberTensor(b)
        z = (x + y) * 2.0 - x.mean(axis=0)
        z[0] = 1.0 / z[1]
        return (tensor.concat([z, y]).sum(0)).native

    a, b = mx.array(X), mx.array(X + 1)
    np.testing.assert_allclose(np.array(mx.compile(inside)(a, b)), np.array(inside(a, b)), rtol=1e-6)


def test_gradients_are_torchs_alone(backend: Backend) -> None:
    x = tensor.asarray([1.0])
    assert x.requires_grad is False
    if backend.name != "torch":
        with pytest.raises(AttributeError, match=r"ember_ml\.transform\.grad"):
            x.requires_grad = True
        with pytest.raises(AttributeError, match=backend.name):
            x.backward()


def test_operations_of_users(home: Backend) -> None:
    @ember_ml.op(floating)
    def halved(x: TensorLike, /) -> Tensor:
        return ops.divide(x, 2)

    same(halved(on(home, X)), X / 2)


def test_importing_loads_no_engine() -> None:
    import subprocess

    code = "import sys, ember_ml.nn.tensor; print([m for m in ('numpy', 'torch', 'mlx') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


def test_checkers_see_every_category() -> None:
    import ast
    import inspect

    def stars(module: Any) -> set[str | None]:
        nodes = ast.walk(ast.parse(inspect.getsource(module)))
        return {n.module for n in nodes if isinstance(n, ast.ImportFrom) and n.names[0].name == "*"}

    assert stars(tensor) - {"ember_ml.ops"} == stars(ops)


class _Reflecting:
    """Something that is no operand, but defines the reflected operator."""

    def __radd__(self, other: object) -> str:
        return "reflected"


def test_assignment_leaves_the_operator_to_another_type(backend: Backend) -> None:
    x: Any = EmberTensor([1.0, 2.0])
    x += _Reflecting()
    assert x == "reflected"
    y: Any = EmberTensor([1.0, 2.0])
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \+=: 'EmberTensor' and 'object'"):
        y += object()


class _Index:
    """An integer to `operator.index` only: it has no order."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value


@pytest.mark.parametrize(
    "key",
    [slice(_Index(1), None), slice(_Index(3)), slice(None, None, _Index(2))],
    ids=["start", "stop", "step"],
)
def test_a_slice_takes_anything_that_is_an_index(key: slice, backend: Backend) -> None:
    plain = slice(*(part and part.value for part in (key.start, key.stop, key.step)))
    numbers = [0.0, 1.0, 2.0, 3.0]
    assert EmberTensor(numbers)[key].tolist() == numbers[plain]
    assert EmberTensor([numbers])[0, key].tolist() == numbers[plain]
