"""What becomes of the arguments of an operation, whoever computes it."""

from __future__ import annotations

import array
import traceback
from collections import UserList
from typing import Any

import numpy as np
import pytest
from agreement import dtype_name, host

import ember_ml
from ember_ml import ops
from ember_ml.backend import Backend, get_available_backends, load
from ember_ml.contract import REGISTRY, op, operation_of
from ember_ml.dtypes import compared, floating, free, kept, promoted
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
            answer = ops.add(ops.convert_to_tensor(x), ops.convert_to_tensor(y))
            assert isinstance(answer, load(active).tensors)
            assert host(answer).tolist() == [3.0]


@pytest.mark.parametrize("active", ENGINES)
@pytest.mark.parametrize("name", [name for name in ENGINES if name != "numpy"])
def test_a_tensor_computes_where_it_lives(name: str, active: str) -> None:
    x, home = tensor(name, [4.0, 9.0]), load(name)
    other = np.array([1.0, 2.0], np.float32)
    ember_ml.set_backend(active)
    try:
        answers = [
            ops.sqrt(x), ops.add(x, 1.0), ops.add(1.0, x), ops.add(x, [1.0, 2.0]), ops.add([1.0, 2.0], x),
            ops.add(x, other), ops.add(other, x), ops.square(x), ops.concatenate([x, [1.0]]), ops.zeros_like(x),
            ops.where([True, False], x, 0.0), ops.add([x, x], 1.0),
        ]  # fmt: skip
    finally:
        ember_ml.set_backend("numpy")
    assert all(isinstance(answer, home.tensors) for answer in answers)
    assert all(dtype_name(answer) == "float32" for answer in answers)


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
    for answer in (ops.multiply(x, number), ops.multiply(number, x), ops.multiply(x[0], number)):
        assert dtype_name(answer) == expected
        with np.errstate(over="ignore"):
            value = np.asarray(number).astype(host(answer).dtype)
        np.testing.assert_array_equal(host(answer), np.broadcast_to(value, host(answer).shape))


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


def test_a_number_beside_a_mask_is_a_number(backend: Backend) -> None:
    x, mask = ops.asarray([1.0, 2.0]), ops.asarray([True, False])
    assert host(ops.where(mask, 0.0, x)).tolist() == [0.0, 2.0]
    assert host(ops.where(mask, x, 0.0)).tolist() == [1.0, 0.0]
    assert host(ops.where(mask, 1, 0)).tolist() == [1, 0]
    assert host(ops.where([True, False], 0.0, x)).tolist() == [0.0, 2.0]


def test_arrays_in_the_other_byte_order_are_turned(backend: Backend) -> None:
    x = np.array([1.5, -2.0], np.dtype(">f4"))
    for answer in (ops.flip(x), ops.sqrt(np.abs(x)), ops.add(x, x), ops.reshape(x, (2, 1)), ops.asarray(x)):
        assert dtype_name(answer) == "float32"
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
        with pytest.raises(TypeError, match="cannot put"):
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
    with pytest.raises(TypeError, match="integers for at"):
        looked_at([1.0], [0.5], True)


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
    assert operation_of(decay).category == "test_door"
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


def test_a_traceback_names_the_operation(backend: Backend) -> None:
    x, y = ops.ones((2,)), ops.ones((3,))
    for call, name in ((lambda: ops.add(x, y), "add"), (lambda: ops.add([1.0, 2.0], [1.0, 2.0, 3.0]), "add")):
        try:
            call()
        except ValueError as error:
            text = "".join(traceback.format_exception(error))
            frames = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
        else:
            pytest.fail("no error")
        assert name in frames
        assert f"in {name}\n" in text
        assert f"in ember_ml.ops.{name}(" in text
        assert "ops/math.py" in text


def test_the_door_leaves_its_arguments_alone(backend: Backend) -> None:
    values = [1.0, [2.0]]
    with pytest.raises((TypeError, ValueError)):
        ops.add(values, 1.0)
    assert values == [1.0, [2.0]]
    parts = [[1.0], (2.0,)]
    ops.concatenate(parts)
    assert parts == [[1.0], (2.0,)]


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


def test_what_is_made_like_a_tensor_is_made_beside_it() -> None:
    torch = pytest.importorskip("torch")
    x = torch.empty(3, device="meta")
    with ember_ml.use_backend("torch"):
        ops.set_default_device("cpu")
        try:
            made = ops.zeros_like(x), ops.zeros_like(x, dtype="int32"), ops.cast(x, "int32"), ops.full_like(x, 2.0)
        finally:
            ops.set_default_device(None)
    assert [str(y.device) for y in made] == ["meta"] * 4
