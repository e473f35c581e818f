"""What becomes of the arguments of an operation, whoever computes it."""

from __future__ import annotations

import array
import inspect
import math
import traceback
from collections import UserList, deque
from typing import Any

import numpy as np
import pytest
from exceptions import HIDDEN_WARNING

import ember_ml
from ember_ml import nn, ops, transform, tree
from ember_ml.backend import Backend, get_available_backends, load
from ember_ml.dispatch import FLAG, REGISTRY, TENSOR, Operation, op, operation_of
from ember_ml.dtypes import adapt, as_dtype, compared, floating, free, kept, promoted
from ember_ml.errors import UnsupportedError
from ember_ml.testing.comparison import assert_same, dtype_name, host
from ember_ml.testing.samples import calls, given, values
from ember_ml.types import DTypeLike, Indices, Mask, Tensor, TensorLike

ENGINES = get_available_backends()
PAIRS = [(a, b) for a in ENGINES for b in ENGINES if a != b and "numpy" not in (a, b)]


def tensor(name: str, values: Any, dtype: str | None = None) -> Any:
    """A tensor of an engine."""
    with ember_ml.use_backend(name):
        return ops.asarray(values) if dtype is None else ops.cast(ops.asarray(values), dtype)


@pytest.mark.parametrize(("a", "b"), PAIRS)
@pytest.mark.parametrize("active", ENGINES)
def test_tensors_of_two_engines_do_not_meet(a: str, b: str, active: str) -> None:
    x, y = tensor(a, [1.0]), tensor(b, [2.0])
    with ember_ml.use_backend(active):
        for call in (lambda: ops.add(x, y), lambda: ops.where([True], x, y), lambda: ops.concatenate([x, y])):
            with pytest.raises(TypeError, match=rf"{a} and {b}.*convert_to_tensor") as caught:
                call()
            assert f"({active})" in str(caught.value)


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_the_advice_works(a: str, b: str) -> None:
    x, y = tensor(a, [1.0]), tensor(b, [2.0])
    for active in ENGINES:
        with ember_ml.use_backend(active):
            result = ops.add(ops.convert_to_tensor(x), ops.convert_to_tensor(y))
            assert isinstance(result, load(active).tensors)
            assert host(result).tolist() == [3.0]


@pytest.mark.parametrize("active", ENGINES)
@pytest.mark.parametrize("name", [name for name in ENGINES if name != "numpy"])
def test_a_tensor_computes_where_it_lives(name: str, active: str) -> None:
    x, home = tensor(name, [4.0, 9.0]), load(name)
    other = np.array([1.0, 2.0], np.float32)
    ember_ml.set_backend(active)
    try:
        results = [
            ops.sqrt(x), ops.add(x, 1.0), ops.add(1.0, x), ops.add(x, [1.0, 2.0]), ops.add([1.0, 2.0], x),
            ops.add(x, other), ops.add(other, x), ops.square(x), ops.concatenate([x, [1.0]]), ops.zeros_like(x),
            ops.where([True, False], x, 0.0), ops.add([x, x], 1.0),
        ]  # fmt: skip
    finally:
        ember_ml.set_backend("numpy")
    assert all(isinstance(result, home.tensors) for result in results)
    assert all(dtype_name(result) == "float32" for result in results)


def test_everything_else_goes_to_the_active_backend(backend: Backend) -> None:
    for value in (
        1.5, [1.5], (1.5, 2.5), range(3), [[1, 2], [3, 4]], np.ones(3), np.float32(1.5), array.array("f", [1.0, 2.0]),
        UserList([1.0, 2.0]), [np.ones(2), np.ones(2)], True, 2 + 1j,
    ):  # fmt: skip
        assert isinstance(ops.add(value, 0), backend.tensors), type(value)
        assert isinstance(ops.add(0, value), backend.tensors), type(value)


def test_defaults_of_python_values(backend: Backend) -> None:
    for value, expected in [
        (1.5, "float32"), (1, "int64"), (True, "bool"), (1j, "complex64"), ([1.5], "float32"), ([1, 2], "int64"),
        ([[1, 2.5]], "float32"), ([True, False], "bool"), ([1j, 2], "complex64"), (range(3), "int64"), ([], "float32"),
        ([[1], [2]], "int64"), ((1.0, 2), "float32"), ([True, 2], "int64"),
    ]:  # fmt: skip
        assert dtype_name(ops.asarray(value)) == expected, value


def test_host_arrays_keep_their_dtype(backend: Backend) -> None:
    for name in backend.dtypes:
        if name != "bfloat16":
            assert dtype_name(ops.multiply(np.ones(2, name), np.ones(2, name))) == name
    assert dtype_name(ops.multiply(np.float64(2.0), np.ones(2, np.float32))) == "float64"
    assert dtype_name(ops.asarray([np.float64(1.0), np.float64(2.0)])) == "float64"


NUMBERS = [
    ("int8", 1, "int8"), ("int8", 127, "int8"), ("int8", -128, "int8"), ("uint8", 255, "uint8"),
    ("int8", 1.5, "float32"), ("int64", 1.5, "float32"), ("bool", 1, "int64"), ("bool", 1.5, "float32"),
    ("bool", True, "bool"), ("int16", True, "int16"), ("float16", 1, "float16"), ("float16", 1.5, "float16"),
    ("bfloat16", 1.5, "bfloat16"), ("bfloat16", 1, "bfloat16"), ("float32", 1e300, "float32"),
    ("float64", 1, "float64"), ("float64", 1.5, "float64"), ("float32", 1j, "complex64"), ("int8", 1j, "complex64"),
    ("float16", 1j, "complex64"), ("complex64", 1.5, "complex64"), ("uint64", 1, "uint64"),
    ("uint64", (1 << 64) - 1, "uint64"), ("int64", -(1 << 63), "int64"), ("float32", 1 << 40, "float32"),
    ("float64", 1j, "complex128"),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "number", "expected"), NUMBERS)
def test_a_number_may_raise_the_kind_and_never_the_width(
    dtype: str, number: Any, expected: str, backend: Backend
) -> None:
    x = ops.cast([1, 1], dtype)
    if expected not in backend.dtypes:
        with pytest.raises(TypeError, match=expected):
            ops.multiply(x, number)
        return
    for result in (ops.multiply(x, number), ops.multiply(number, x), ops.multiply(x[0], number)):
        assert dtype_name(result) == expected
        with np.errstate(over="ignore"):
            value = np.asarray(number).astype(host(result).dtype)
        np.testing.assert_array_equal(host(result), np.broadcast_to(value, host(result).shape))


@pytest.mark.parametrize(
    ("dtype", "number"),
    [
        ("int8", 128), ("int8", -129), ("uint8", -1), ("uint8", 256), ("int64", 1 << 63), ("uint64", 1 << 64),
        ("uint64", -1), ("uint16", 65536), ("bool", 1 << 63),
    ],
)  # fmt: skip
def test_a_number_that_the_dtype_cannot_hold_is_a_value_error(dtype: str, number: int, backend: Backend) -> None:
    x = ops.cast([1, 1], dtype)
    for args in ((x, number), (number, x)):
        with pytest.raises(ValueError, match=f"{number}"):
            ops.multiply(*args)


def result_or_error(operation: Operation, arguments: inspect.BoundArguments) -> Any:
    """What a call with these arguments returns, from the same random state, or the class of its error."""
    ops.set_seed(0)
    try:
        return operation.call(*arguments.args, **arguments.kwargs)
    except Exception as error:
        return type(error)


def joined(operation: Operation) -> list[str]:
    """The tensor parameters of the operation's first sample that may be a number which adapts to another tensor."""
    call = calls(operation)[0]
    arguments = inspect.signature(operation.call).bind(*call.args, **call.kwargs).arguments
    tensors = [p.name for p in operation.parameters if p.role == TENSOR and not p.many]
    found = [name for name in tensors if isinstance(arguments.get(name), np.ndarray)]
    return [] if len(found) < 2 else found[1:] if operation.rule.mode == "first" else found


JOINED = [o for o in REGISTRY.values() if o.rule.mode != "separate" and joined(o)]
HUGE = 10**400


@pytest.mark.parametrize("portable", [False, True], ids=["native", "portable"])
@pytest.mark.parametrize("operation", JOINED, ids=lambda o: o.name)
def test_large_integers_next_to_tensors(operation: Operation, portable: bool, backend: Backend) -> None:
    call = calls(operation)[0]
    arguments = inspect.signature(operation.call).bind(*call.args, **call.kwargs)
    before = dict(arguments.arguments)

    def result_with(name: str, number: float, dtype: str) -> Any:
        for parameter in operation.tensors:
            value = before.get(parameter.name)
            if isinstance(value, np.ndarray):
                value = values(operation, value.shape, dtype) if parameter.role == TENSOR else value
                native = backend.convert(value, None, backend.device)
                arguments.arguments[parameter.name] = nn.tensor.EmberTensor(native) if portable else native
        arguments.arguments[name] = number
        found = result_or_error(operation, arguments)
        return tree.map(lambda x: x.native if isinstance(x, nn.tensor.EmberTensor) else x, found)

    for name in joined(operation):
        for dtype in {"bool", "uint8", "int64", "uint64"} & operation.dtypes.keys():
            if dtype == "bool" and operation.rule.mode == "first":
                continue
            held = adapt(as_dtype(dtype), int)
            for number in {"uint8": (300, -1, HUGE), "uint64": (-1, 1 << 64)}.get(dtype, (1 << 63, -1 << 70, HUGE)):
                if held.name in operation.dtypes:
                    assert result_with(name, number, dtype) is ValueError, f"{dtype} for {name}"
        for dtype in {"float16", "bfloat16", "float32", "complex64"} & operation.dtypes.keys():
            assert issubclass(result_with(name, HUGE, dtype), (ValueError, UnsupportedError)), f"{dtype} for {name}"
            for number in (1 << 70, -1 << 63, -1 << 70):
                expected, found = result_with(name, float(number), dtype), result_with(name, number, dtype)
                assert_same(found, expected)


def test_integers_that_no_tensor_holds(backend: Backend) -> None:
    for number in (1 << 63, -1 << 70, HUGE):
        for wrong in (lambda n: ops.add(n, 1), lambda n: ops.asarray(n), lambda n: ops.full((2,), n)):
            with pytest.raises(ValueError, match="must fit into"):
                wrong(number)
    for dtype in ("bfloat16", "float32"):
        assert host(ops.asarray(1 << 70, dtype=dtype)).item() == host(ops.full((), -1 << 70, dtype=dtype)).item() * -1
        for make in (lambda d: ops.asarray(HUGE, dtype=d), lambda d: ops.full((2,), HUGE, dtype=d)):
            with pytest.raises(ValueError, match="must fit into"):
                make(dtype)
    assert host(ops.add(1 << 70, 1.0)).item() == 2.0**70


def test_operators_with_large_integers(backend: Backend) -> None:
    half, byte = nn.tensor.asarray([1.0], dtype="bfloat16"), nn.tensor.asarray([1], dtype="uint8")
    assert (half + (1 << 70)).tolist() == ((1 << 70) + half).tolist() == [2.0**70]
    assert (half < 1 << 70).tolist() == [True]
    for wrong in (lambda: byte + 300, lambda: 300 - byte, lambda: byte == -1, lambda: half * HUGE, lambda: HUGE / half):
        with pytest.raises(ValueError, match="numbers must fit into"):
            wrong()


@pytest.mark.parametrize(
    ("numbers", "dtype", "error"),
    [
        ([1 << 70], None, ValueError), ([1, 1 << 63], None, ValueError), ([[1 << 63, -1]], None, ValueError),
        (range(1 << 63, (1 << 63) + 2), None, ValueError), ([HUGE], None, ValueError), ([1.0, HUGE], None, ValueError),
        ([300], "uint8", ValueError), ([-1, 5], "uint64", ValueError), ([1 << 63, 1], "int64", ValueError),
        ([float("nan")], "int32", ValueError), ([1e300], "int64", ValueError), ([128.5], "int8", ValueError),
        ([1j], "float32", TypeError), ([2, 1j], "int8", TypeError),
    ],
)  # fmt: skip
def test_sequences_of_numbers_that_a_dtype_cannot_hold(
    numbers: Any, dtype: str | None, error: type[Exception], backend: Backend
) -> None:
    with pytest.raises(error, match=r"must fit into|too large|must be complex"):
        ops.asarray(numbers, dtype=dtype)
    if dtype is None:
        with pytest.raises(error, match=r"must fit into|too large"):
            ops.add(ops.ones(2), numbers)


def test_sequences_with_integers_of_many_digits(backend: Backend) -> None:
    for numbers, dtype, expected in (
        ([1 << 70, 1], "float32", [2.0**70, 1.0]), ([1 << 70, 1.5], None, [2.0**70, 1.5]),
        ([(1 << 64) - 1, 1], "uint64", [(1 << 64) - 1, 1]), ([1 << 63, 1.5], "uint64", [1 << 63, 1]),
        ([-1 << 63, 127.5], "int64", [-1 << 63, 127]), ([127.5, -128.5], "int8", [127, -128]),
    ):  # fmt: skip
        found = ops.asarray(numbers, dtype=dtype)
        assert dtype_name(found) == (dtype or "float32")
        assert host(found).tolist() == expected


def test_both_integers_of_64_bits_that_numpy_has(backend: Backend) -> None:
    for kind, name in ((np.longlong, "int64"), (np.ulonglong, "uint64")):
        x = np.arange(3).astype(kind)
        for result in (ops.asarray(x), ops.multiply(x, x), ops.flip(x), ops.asarray([kind(2)]), ops.abs(kind(2))):
            assert dtype_name(result) == name


def test_numbers_among_themselves_promote_by_their_defaults(backend: Backend) -> None:
    assert dtype_name(ops.multiply(1, 2)) == "int64"
    assert dtype_name(ops.multiply(1, 2.0)) == "float32"
    assert dtype_name(ops.multiply(True, 2)) == "int64"
    assert dtype_name(ops.multiply(1.0, 2j)) == "complex64"
    assert dtype_name(ops.multiply(True, True)) == "bool"


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("float32", "float64", "float64"), ("int8", "int64", "int64"), ("float32", "int64", "float32"),
        ("uint8", "int8", "int16"), ("float16", "bfloat16", "float32"), ("float16", "float32", "float32"),
        ("int32", "float16", "float16"), ("bool", "uint8", "uint8"), ("complex64", "float32", "complex64"),
    ],
)  # fmt: skip
def test_a_0d_tensor_promotes_like_any_other(a: str, b: str, expected: str, backend: Backend) -> None:
    whole, point = ops.cast([1, 1, 1], a), ops.cast(ops.asarray(1), b)
    assert tuple(point.shape) == ()
    assert dtype_name(ops.multiply(whole, point)) == expected
    assert dtype_name(ops.multiply(point, whole)) == expected
    assert dtype_name(ops.multiply(ops.cast(ops.asarray(1), a), point)) == expected
    assert dtype_name(ops.multiply(ops.cast([1, 1, 1], a), ops.cast([1], b))) == expected


def test_nested_sequences_become_tensors(backend: Backend) -> None:
    assert host(ops.add([[1, 2], [3, 4]], [[10], [20]])).tolist() == [[11, 12], [23, 24]]
    assert host(ops.add(([1, 2], (3, 4)), 1)).tolist() == [[2, 3], [4, 5]]
    assert host(ops.add([range(2), range(2, 4)], 0)).tolist() == [[0, 1], [2, 3]]
    assert host(ops.add([], 1.0)).tolist() == []
    assert host(ops.add([[], []], 1.0)).shape == (2, 0)


def test_sequences_of_tensors_are_stacked(backend: Backend) -> None:
    x = ops.asarray([1.0, 2.0])
    assert host(ops.add([x, x], 1.0)).tolist() == [[2.0, 3.0], [2.0, 3.0]]
    assert host(ops.add([x[0], x[1]], 1.0)).tolist() == [2.0, 3.0]
    assert dtype_name(ops.add([ops.cast(x, "float16"), ops.cast(x, "float16")], 1.0)) == "float16"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int8"])
def test_a_tensor_anywhere_in_a_sequence_decides(dtype: str, backend: Backend) -> None:
    x, row = ops.cast(3, dtype), ops.cast([3, 4], dtype)
    for sequence, expected in (
        ([x, 1], [3, 1]),
        ([1, x], [1, 3]),
        ((1, x), [1, 3]),
        (deque([1, x]), [1, 3]),
        ([[1, 2], [x, 1]], [[1, 2], [3, 1]]),
        ([row, [1, 2]], [[3, 4], [1, 2]]),
        ([[1, 2], row], [[1, 2], [3, 4]]),
        ([[row], [[x, 1]]], [[[3, 4]], [[3, 1]]]),
    ):
        for result in (ops.asarray(sequence), ops.positive(sequence), ops.stack([sequence, sequence])[1]):
            assert ops.dtype(result) == dtype, sequence
            assert ops.to_numpy(result).tolist() == expected
    raised = "float32" if dtype == "int8" else dtype
    for sequence in ([x, 1.5], [1.5, x], [row, [1.5, 2.0]], [[1.5, 2.0], row]):
        assert ops.dtype(ops.asarray(sequence)) == ops.dtype(ops.positive(sequence)) == raised, sequence


@pytest.mark.usefixtures("traced_only")
@pytest.mark.filterwarnings(HIDDEN_WARNING)
def test_gradients_flow_through_a_tensor_anywhere_in_a_sequence(backend: Backend) -> None:
    def turned(angle: Any) -> Any:
        return ops.sum(ops.matmul([[1.0, ops.negative(ops.sin(angle))], [ops.sin(angle), 1.0]], [1.0, 2.0]))

    functions = {
        turned: -math.cos(0.5),
        lambda w: ops.sum([2.0, w * 1]): 1.0,
        lambda w: ops.sum([[1.0], [w * 1]]): 1.0,
        lambda w: ops.sum(ops.multiply([1.0, w], deque([w, 3.0]))): 4.0,
        lambda w: ops.sum([[1.0, 2.0], ops.stack([w, w])]): 2.0,
    }
    for function, expected in functions.items():
        for call in (transform.grad(function), transform.compile(transform.grad(function))):
            assert float(call(ops.asarray(0.5))) == pytest.approx(expected)


@pytest.mark.parametrize("name", ember_ml.get_available_backends()[1:])
def test_a_sequence_computes_where_its_tensors_live(name: str) -> None:
    with ember_ml.use_backend(name):
        x = ops.asarray(2.0)
    with ember_ml.use_backend("numpy"):
        assert isinstance(ops.positive([1.0, x]), type(x))
        assert isinstance(ops.asarray([1.0, x]), np.ndarray)


@pytest.mark.parametrize("sequence", [deque([1.5, 2.0]), [deque([1.5, 2.0])], UserList([1.5, 2.0])])
def test_any_sequence_of_numbers_is_read_as_a_list(sequence: Any, backend: Backend) -> None:
    for result in (ops.asarray(sequence), ops.positive(sequence), nn.tensor.EmberTensor(sequence)):
        assert ops.dtype(result) == "float32"
    with pytest.raises(ValueError, match="asarray: values must fit into uint8, got 300"):
        ops.asarray(deque([300]), dtype="uint8")


def test_a_number_next_to_a_mask_is_a_number(backend: Backend) -> None:
    x, mask = ops.asarray([1.0, 2.0]), ops.asarray([True, False])
    assert host(ops.where(mask, 0.0, x)).tolist() == [0.0, 2.0]
    assert host(ops.where(mask, x, 0.0)).tolist() == [1.0, 0.0]
    assert host(ops.where(mask, 1, 0)).tolist() == [1, 0]
    assert host(ops.where([True, False], 0.0, x)).tolist() == [0.0, 2.0]


def test_arrays_in_the_other_byte_order_are_turned(backend: Backend) -> None:
    x = np.array([1.5, -2.0], np.dtype(">f4"))
    for result in (ops.flip(x), ops.sqrt(np.abs(x)), ops.add(x, x), ops.reshape(x, (2, 1)), ops.asarray(x)):
        assert dtype_name(result) == "float32"
    assert ops.get_dtype(x) == "float32"


def test_kept_operations_take_what_fits(backend: Backend) -> None:
    @op(kept)
    def poured(x: TensorLike, y: TensorLike, /) -> Tensor:
        """``y`` in the dtype of ``x``."""
        return y

    half = ops.cast([1.0], "float16")
    assert dtype_name(poured(half, np.ones(2))) == "float16"
    assert dtype_name(poured(half, 3)) == "float16"
    assert dtype_name(poured(ops.cast([1], "int8"), ops.asarray([1]))) == "int8"
    for lower, higher in (([1], [1.5]), ([1.0], [1j]), ([True], [2]), ([1], 1.5)):
        with pytest.raises(TypeError, match=r"tensor must be of its kind or a lower one .*, got "):
            poured(lower, higher)


def test_indices_masks_and_dtypes_arrive_as_what_they_are(backend: Backend) -> None:
    seen: list[Any] = []

    @op(free)
    def looked_at(x: TensorLike, at: Indices, keep: Mask, /, *, dtype: DTypeLike | None = None) -> Tensor:
        """``x``, after a look at the other arguments."""
        seen[:] = [at, keep, dtype]
        return x

    looked_at([1.0], [1, 2], [1, 0], dtype="float16")
    assert all(isinstance(value, backend.tensors) for value in seen[:2])
    assert [dtype_name(value) for value in seen[:2]] == ["int64", "bool"]
    assert seen[2] == backend.dtypes["float16"]
    looked_at([1.0], [], True)
    assert dtype_name(seen[0]) == "int64"
    assert seen[2] is None
    looked_at([1.0], np.array([3], np.uint8), np.array([0.0, 2.0]))
    assert [dtype_name(value) for value in seen[:2]] == ["int64", "bool"]
    with pytest.raises(TypeError, match="looked_at: at must be integers, got float32"):
        looked_at([1.0], [0.5], True)


FLAGS = [(o, p.name) for o in REGISTRY.values() for p in o.parameters if p.role == FLAG]


@pytest.mark.parametrize(("operation", "name"), FLAGS, ids=lambda x: x if isinstance(x, str) else x.name)
def test_flags_are_whatever_is_true_or_false(operation: Operation, name: str, backend: Backend) -> None:
    call = calls(operation)[0].map(lambda array: backend.convert(array, None, backend.device))
    arguments = inspect.signature(operation.call).bind(*call.args, **call.kwargs)
    for flag in (True, False):
        arguments.arguments[name] = flag
        expected = result_or_error(operation, arguments)
        for value in (int(flag), np.bool_(flag), np.int8(flag), backend.convert(flag, None, backend.device)):
            arguments.arguments[name] = value
            result = result_or_error(operation, arguments)
            if given(operation, "VARIES") or isinstance(expected, type):
                assert type(result) is type(expected), f"{value!r} for {flag}"
            else:
                assert_same(result, expected)


def test_flags_are_no_words_and_no_masks(backend: Backend) -> None:
    x = ops.ones((2, 3))
    for flag in ("yes", [True], ops.asarray([True, False]), 0.5):
        with pytest.raises((TypeError, ValueError)):
            ops.sum(x, axis=0, keepdims=flag)


@op(floating)
def decay(x: TensorLike, rate: TensorLike = 1.0, /) -> Tensor:
    """``x`` after it has decayed."""
    return ops.multiply(x, ops.exp(ops.negative(rate)))


@op(compared)
def is_nothing(x: TensorLike, /) -> Tensor:
    """Whether ``x`` is zero."""
    return ops.equal(x, 0)


def test_users_declare_operations_of_their_own(backend: Backend) -> None:
    assert isinstance(decay([1, 2]), backend.tensors)
    assert dtype_name(decay([1, 2])) == "float32"
    assert dtype_name(decay(ops.cast([1.0], "float16"), 0.0)) == "float16"
    assert host(decay([1.0, 2.0], 0.0)).tolist() == [1.0, 2.0]
    assert host(is_nothing([0.0, 2.0])).tolist() == [True, False]
    assert decay.__name__ == "decay"
    assert (decay.__doc__ or "").startswith("``x`` after")
    assert operation_of(decay).category == "test_dispatch"
    with pytest.raises(TypeError, match="str"):
        decay("one")


def test_operations_of_users_are_not_in_the_registry() -> None:
    assert "decay" not in REGISTRY
    assert not hasattr(ops, "decay")


def test_a_definition_runs_where_its_tensors_live() -> None:
    @op(promoted)
    def shifted(x: TensorLike, /) -> Tensor:
        """``x`` plus a tensor that is made on the way."""
        return ops.add(x, ops.asarray([1.0]))

    for name in ENGINES:
        x = tensor(name, [1.0])
        for active in ENGINES:
            if "numpy" == name != active:
                continue
            with ember_ml.use_backend(active):
                assert isinstance(shifted(x), load(name).tensors)


def test_what_is_no_complaint_is_not_tried_again(backend: Backend) -> None:
    class Stop(Exception):  # noqa: N818 - as torch ends a recomputation
        pass

    seen: list[Any] = []

    @op(promoted)
    def stopped(x: TensorLike, y: TensorLike, /, *, axis: int = 0, whole: bool = False) -> Tensor:
        """Nothing."""
        seen.append(axis)
        raise Stop

    for y in (2.0, ops.ones(2)):
        with pytest.raises(Stop):
            stopped(ops.ones(2), y, axis=np.int64(1), whole=1)
    assert len(seen) == 2


def test_a_traceback_shows_the_call_and_little_of_dispatch(backend: Backend) -> None:
    x, y = ops.ones((2,)), ops.ones((3,))

    def fail() -> None:
        raise ValueError("no")

    @op(promoted)
    def failing(x: TensorLike, /, *, axis: int = 0) -> Tensor:
        """Nothing."""
        fail()
        return x

    for call, name in (
        (lambda: ops.add(x, y), "add(float32[2], float32[3])"),
        (lambda: ops.add([1.0, 2.0], [1.0, 2.0, 3.0]), "add(float32[2], float32[3])"),
        (lambda: ops.add(x, ops.cast(y, "int8")), "add(float32[2], float32[3])"),
        (lambda: ops.sum(x, axis=5, keepdims=True), "sum(float32[2], axis=5, keepdims=True)"),
        (lambda: ops.sum(x, axis=np.int64(5)), "sum(float32[2], axis=5)"),
        (lambda: failing(x), "failing(float32[2])"),
        (lambda: ops.add(x, "y"), "add(float32[2], str)"),
    ):
        try:
            call()
        except (ValueError, TypeError) as error:
            text = "".join(traceback.format_exception(error))
            frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
        else:
            pytest.fail("no error")
        assert f"in ember_ml.ops.{name} on the {backend.name} backend" in text
        packages = [frame.f_globals.get("__package__") for frame in frames]
        assert frames[1].f_code.co_filename == __file__
        assert packages.count("ember_ml.dispatch") <= 2 + (name.startswith("failing")), text
        if name.startswith("failing"):
            assert frames[-1].f_code.co_name == "fail"


def test_arguments_are_left_alone(backend: Backend) -> None:
    values = [1.0, [2.0]]
    with pytest.raises((TypeError, ValueError)):
        ops.add(values, 1.0)
    assert values == [1.0, [2.0]]
    parts = [[1.0], (2.0,)]
    ops.concatenate(parts)
    assert parts == [[1.0], (2.0,)]


def test_views_of_host_arrays_in_any_order_are_read(backend: Backend) -> None:
    x = np.arange(12.0, dtype=np.float32).reshape(1, 3, 4)
    for view in (x[::-1], x[:, ::-1], x[..., ::-2], x.T, x[:, :1][:, ::-1], np.broadcast_to(x, (2, 3, 4)), x[::-1, 1]):
        assert host(ops.asarray(view)).tolist() == view.tolist()
        assert host(ops.negative(view)).tolist() == (-view).tolist()
        assert host(ops.concat([view, view])).shape[0] == 2 * len(view)


def test_views_that_torch_negates_or_conjugates_later_are_read() -> None:
    torch = pytest.importorskip("torch")
    turned = torch.tensor([complex(0.0, -0.25), complex(0.0, -0.75)], requires_grad=True).conj()
    for x, expected in ((turned.imag.detach(), [0.25, 0.75]), (turned.detach(), [0.25j, 0.75j])):
        assert x.is_neg() or x.is_conj()
        assert ops.to_numpy(x).tolist() == expected
        assert ops.multiply(x, 2).tolist() == [2 * value for value in expected]
        assert ops.unique(ops.abs(x)).tolist() == [0.25, 0.75]
    assert tuple(ops.random_poisson((3, 2), turned.imag.detach()).shape) == (3, 2)
    assert ops.nan_to_num(turned).requires_grad


def test_subclasses_of_tensors_and_numbers_are_taken(backend: Backend) -> None:
    class Mine(np.ndarray):
        pass

    class Count(int):
        pass

    assert isinstance(ops.add(np.ones(2).view(Mine), 1.0), backend.tensors)
    assert host(ops.add([1, 2], Count(3))).tolist() == [4, 5]
    assert host(ops.multiply(ops.asarray([1, 2]), np.int64(3))).tolist() == [3, 6]
    torch = pytest.importorskip("torch")
    parameter = torch.nn.Parameter(torch.ones(2))
    assert ops.add(parameter, 1.0).requires_grad
    assert ops.sqrt(parameter).requires_grad
    assert ops.add([1.0, 1.0], parameter).requires_grad


def test_what_is_made_like_a_tensor_is_on_its_device() -> None:
    torch = pytest.importorskip("torch")
    x = torch.empty(3, device="meta")
    with ember_ml.use_backend("torch"):
        ops.set_default_device("cpu")
        try:
            made = ops.zeros_like(x), ops.zeros_like(x, dtype="int32"), ops.cast(x, "int32"), ops.full_like(x, 2.0)
        finally:
            ops.set_default_device(None)
    assert [str(y.device) for y in made] == ["meta"] * 4
