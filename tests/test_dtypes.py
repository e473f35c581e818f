"""The type system: names, one promotion table, limits and casts, the same for every engine."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ember_ml
from ember_ml import dtypes, ops
from ember_ml.backend import Backend
from ember_ml.dtypes import DTYPES, PROMOTION, EmberDType, as_dtype
from ember_ml.errors import UnsupportedError
from ember_ml.testing.comparison import dtype_name, host

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def oracle(name: str) -> np.dtype:
    """NumPy's dtype of that name."""
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


@pytest.fixture
def default_float() -> Iterator[None]:
    """Whatever a test makes the default, float32 is it again afterwards."""
    yield
    ops.set_default_dtype("float32")


def test_there_are_fifteen() -> None:
    assert len(DTYPES) == 15
    assert all(getattr(ops, name) is dtype and getattr(dtypes, name) is dtype for name, dtype in DTYPES.items())


@pytest.mark.parametrize("name", DTYPES)
def test_a_dtype_equals_its_name_and_every_engines_object(name: str, backend: Backend) -> None:
    dtype = DTYPES[name]
    assert dtype == name
    assert name == dtype
    assert hash(dtype) == hash(name)
    assert dtype != "something"
    assert dtype != 3
    assert dtype != []
    for other, own in backend.dtypes.items():
        assert (dtype == own) is (other == name)
        assert (own == dtype) in ((other == name), False)
        assert (dtype != own) is (other != name)
    assert {dtype: 1}[name] == 1


@pytest.mark.parametrize("name", DTYPES)
def test_a_dtype_is_a_singleton(name: str) -> None:
    dtype = DTYPES[name]
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    assert copy.deepcopy(dtype) is dtype
    assert as_dtype(name) is dtype
    assert as_dtype(dtype) is dtype
    assert repr(dtype) == f"ember_ml.{name}"
    assert dtype.itemsize == oracle(name).itemsize


@pytest.mark.parametrize("wrong", ["float", "f5", "float33", "torch.float32", "", None, 3, 1.5, object(), [], {}, str])
def test_what_names_no_dtype_is_a_type_error(wrong: object) -> None:
    with pytest.raises(TypeError, match="dtype"):
        as_dtype(wrong)


def test_python_types_are_the_defaults() -> None:
    assert [as_dtype(kind).name for kind in (bool, int, float, complex)] == ["bool", "int64", "float32", "complex64"]


@pytest.mark.parametrize(("a", "b"), list(itertools.product(DTYPES, repeat=2)))
def test_promotion_is_the_standards_within_a_kind_and_never_wider_across(a: str, b: str) -> None:
    common = PROMOTION[a, b]
    assert common is PROMOTION[b, a]
    kinds = {DTYPES[a].kind, DTYPES[b].kind}
    if {a, b} & {"uint64"} and "signed integer" in kinds:
        assert common is None
    elif "bfloat16" in (a, b) or (len(kinds) == 2 and kinds & {"real floating", "complex floating"}):
        assert common is not None
        assert common.bits <= max(DTYPES[a].bits, DTYPES[b].bits) * (2 if "floating" in "".join(kinds) else 1)
        if kinds & {"signed integer", "unsigned integer", "bool"}:
            assert common.name in (a, b)
    else:
        assert common == np.promote_types(oracle(a), oracle(b)).name


@pytest.mark.parametrize(
    ("a", "b", "common"),
    [
        ("float16", "bfloat16", "float32"),
        ("int64", "float16", "float16"),
        ("int32", "float32", "float32"),
        ("uint64", "bfloat16", "bfloat16"),
        ("int64", "complex64", "complex64"),
        ("float64", "complex64", "complex128"),
        ("bfloat16", "complex64", "complex64"),
        ("uint32", "int8", "int64"),
        ("bool", "uint8", "uint8"),
        ("bfloat16", "float32", "float32"),
    ],
)
def test_promotion_by_example(a: str, b: str, common: str) -> None:
    assert ops.result_type(a, b) == common


def test_promotion_is_associative_among_integers_and_among_floats() -> None:
    for group in (INTEGERS[:-1], ("float32", "float64", "complex64", "complex128"), ("bool", *FLOATS)):
        for a, b, c in itertools.product(group, repeat=3):
            assert ops.result_type(ops.result_type(a, b), c) == ops.result_type(a, ops.result_type(b, c))


def test_result_type_of_tensors_dtypes_and_numbers(backend: Backend) -> None:
    x = ops.asarray(np.ones((2,), np.int8))
    assert ops.result_type(x, "int16") == "int16"
    assert ops.result_type(x, 1000) == "int8"
    assert ops.result_type(x, 1.5) == "float32"
    assert ops.result_type(x, True) == "int8"
    assert ops.result_type(x, 1j) == "complex64"
    assert ops.result_type(ops.asarray(np.ones((), np.float64)), np.ones((2,), np.float32)) == "float64"
    assert ops.result_type("float16", 1.5, 3) == "float16"
    assert ops.result_type("bool", 1) == "int64"
    assert ops.result_type([1, 2], [1.5]) == "float32"
    assert isinstance(ops.result_type(1), EmberDType)
    with pytest.raises(TypeError, match="uint64"):
        ops.result_type("uint64", "int8")
    with pytest.raises(ValueError, match="result_type: arrays_and_dtypes must hold at least 1 tensor, dtype or nu"):
        ops.result_type()


def test_result_type_is_what_operations_return(backend: Backend) -> None:
    for a, b in itertools.product(backend.dtypes, repeat=2):
        if PROMOTION[a, b] is None or PROMOTION[a, b].name not in backend.dtypes:  # type: ignore[union-attr]
            continue
        x, y = ops.cast([1, 1], a), ops.cast([1, 1], b)
        assert dtype_name(ops.multiply(x, y)) == ops.result_type(x, y), (a, b)


def test_can_cast_follows_promotion() -> None:
    assert ops.can_cast("int8", "int16")
    assert not ops.can_cast("int16", "int8")
    assert not ops.can_cast("uint64", "int64")
    assert ops.can_cast("bool", "complex128")
    assert ops.can_cast("int64", "float32")
    assert not ops.can_cast("float16", "bfloat16")
    for a, b in itertools.product((*INTEGERS, "bool"), repeat=2):
        assert ops.can_cast(a, b) == np.can_cast(a, b), (a, b)


def test_can_cast_looks_at_the_dtype_of_a_tensor(backend: Backend) -> None:
    x = ops.asarray(np.ones((2,), np.float32))
    assert ops.can_cast(x, "float64")
    assert not ops.can_cast(x, "float16")


@pytest.mark.parametrize("name", FLOATS)
def test_float_limits_are_those_of_the_oracle(name: str, backend: Backend) -> None:
    expected = ml_dtypes.finfo(oracle(name))
    for what in (name, DTYPES[name], backend.dtypes[name], ops.cast([1.0], name)):
        limits = ops.finfo(what)
        assert limits.dtype is DTYPES[name]
        assert (limits.bits, limits.eps, limits.max) == (expected.bits, float(expected.eps), float(expected.max))
        assert (limits.min, limits.smallest_normal) == (float(expected.min), float(expected.smallest_normal))
        assert all(type(v) is float for v in (limits.eps, limits.max, limits.min, limits.smallest_normal))


def test_float_limits_of_complex_are_those_of_its_parts() -> None:
    assert ops.finfo("complex64") == ops.finfo("float32")
    assert ops.finfo("float32").tiny == ops.finfo("float32").smallest_normal
    assert ops.finfo("complex128") == ops.finfo("float64")


@pytest.mark.parametrize("name", INTEGERS)
def test_integer_limits_are_those_of_the_oracle(name: str, backend: Backend) -> None:
    expected = np.iinfo(name)
    for what in (name, DTYPES[name], backend.dtypes[name], ops.cast([1], name)):
        limits = ops.iinfo(what)
        assert limits == (expected.bits, int(expected.max), int(expected.min), DTYPES[name])
        assert type(limits.max) is int


def test_limits_of_the_wrong_kind_are_type_errors() -> None:
    with pytest.raises(TypeError, match="iinfo"):
        ops.finfo("int32")
    with pytest.raises(TypeError, match="finfo"):
        ops.iinfo("float32")
    with pytest.raises(TypeError):
        ops.iinfo("bool")


@pytest.mark.parametrize("name", [name for name in DTYPES if name != "bfloat16"])
@pytest.mark.parametrize(
    "kind", ["bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric"]
)
def test_kinds_are_the_standards(name: str, kind: str) -> None:
    assert ops.isdtype(name, kind) == np.isdtype(np.dtype(name), kind)
    assert ops.isdtype(name, (kind, "float32")) == np.isdtype(np.dtype(name), (kind, np.float32))


def test_bfloat16_is_a_real_float() -> None:
    assert ops.isdtype("bfloat16", "real floating")
    assert ops.isdtype("bfloat16", "numeric")
    assert not ops.isdtype("bfloat16", ("integral", "bool", "complex floating"))


def test_an_unknown_kind_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="kind"):
        ops.isdtype("float32", "floaty")
    with pytest.raises(ValueError, match="kind"):
        ops.isdtype("float32", ("real floating", "floaty"))
    with pytest.raises(TypeError):
        ops.isdtype("float32", 3)


@pytest.mark.parametrize("name", DTYPES)
def test_the_three_questions_divide_the_numbers(name: str) -> None:
    results = [ops.is_float(name), ops.is_integer(name), ops.is_complex(name)]
    assert sum(results) == (name != "bool")


def test_the_three_questions_of_values(backend: Backend) -> None:
    assert ops.is_float(ops.asarray([1.0]))
    assert ops.is_integer(ops.asarray([1]))
    assert not ops.is_integer(ops.asarray([True]))
    assert ops.is_complex(ops.asarray([1j]))
    assert ops.is_float(1.0)
    assert ops.is_integer(3)
    assert not ops.is_integer(True)
    assert ops.is_float(np.float16(1.0))
    assert ops.is_float(np.dtype("float64"))
    assert ops.is_integer(np.int8)
    with pytest.raises(TypeError):
        ops.is_float("a word")


def test_names_go_both_ways(backend: Backend) -> None:
    for name, own in backend.dtypes.items():
        assert ops.to_dtype_str(own) == name
        assert type(ops.to_dtype_str(own)) is str
        assert ops.from_dtype_str(name) is DTYPES[name]
        assert ops.get_dtype(ops.cast([1, 0], name)) is DTYPES[name]
        assert ops.dtype(ops.cast([1, 0], name)) == own
    with pytest.raises(TypeError):
        ops.from_dtype_str(own)


@pytest.mark.parametrize("name", DTYPES)
def test_numpy_dtypes_go_both_ways(name: str, backend: Backend) -> None:
    expected = oracle(name)
    assert ops.to_numpy_dtype(name) == expected
    assert isinstance(ops.to_numpy_dtype(name), np.dtype)
    assert ops.from_numpy_dtype(expected) is DTYPES[name]
    assert ops.from_numpy_dtype(expected.type) is DTYPES[name]
    if name != "bfloat16":
        assert ops.from_numpy_dtype(expected.newbyteorder()) is DTYPES[name]
    if name in backend.dtypes:
        assert ops.to_numpy_dtype(backend.dtypes[name]) == expected


@pytest.mark.parametrize("wrong", [np.dtype("U3"), np.dtype("datetime64[s]"), np.dtype(object), "nothing"])
def test_numpy_dtypes_without_a_counterpart_are_type_errors(wrong: Any) -> None:
    with pytest.raises(TypeError):
        ops.from_numpy_dtype(wrong)


def test_cast_between_all_dtypes(backend: Backend) -> None:
    values = np.array([[0, 1, 2], [3, 100, 5]])
    for a, b in itertools.product(backend.dtypes, repeat=2):
        x = ops.asarray(values.astype(oracle(a)))
        if a.startswith("complex") and not b.startswith(("complex", "bool")):
            with pytest.raises(TypeError, match="real"):
                ops.cast(x, b)
            continue
        np.testing.assert_array_equal(host(ops.cast(x, b)), values.astype(oracle(a)).astype(oracle(b)))


def test_cast_truncates_toward_zero(backend: Backend) -> None:
    for name in FLOATS:
        assert host(ops.cast(ops.cast([1.75, -1.75, 0.5, -0.5], name), "int32")).tolist() == [1, -1, 0, 0]


def test_cast_to_bool_is_whether_it_is_not_zero(backend: Backend) -> None:
    assert host(ops.cast([0.0, -0.0, 0.25, math.nan, math.inf], "bool")).tolist() == [False, False, True, True, True]
    assert host(ops.cast([0j, 1j], "bool")).tolist() == [False, True]


def test_cast_takes_a_dtype_in_every_spelling(backend: Backend) -> None:
    for spelling in ("float64", ops.float64, np.float64, np.dtype("float64"), backend.dtypes["float64"]):
        assert dtype_name(ops.cast([1, 2], spelling)) == "float64"
    assert dtype_name(ops.astype([1.5], int)) == "int64"
    with pytest.raises(TypeError):
        ops.cast([1, 2], "float33")
    with pytest.raises(TypeError):
        ops.cast([1, 2], None)


def test_cast_copies_if_it_is_asked_to(backend: Backend) -> None:
    x = ops.asarray(np.array([1.0, 2.0], np.float32))
    assert ops.cast(x, "float32", copy=False) is x
    if backend.name != "mlx":
        assert not np.shares_memory(host(ops.cast(x, "float32")), host(x))
        assert not np.shares_memory(host(ops.cast(x, "float32", copy=True)), host(x))


def test_cast_keeps_a_tensor_on_its_device(backend: Backend) -> None:
    x = ops.cast([1.0], "float16", device="cpu")
    assert ops.get_device(x) == "cpu"
    assert ops.get_device(ops.cast(x, "float32")) == "cpu"
    with pytest.raises(ValueError, match="abacus"):
        ops.cast(x, "float32", device="abacus")


def test_cast_ignores_another_default_device() -> None:
    torch = pytest.importorskip("torch")
    with ember_ml.use_backend("torch"):
        x = torch.empty(3, device="meta")
        ops.set_default_device("cpu")
        try:
            assert str(ops.cast(x, "int32").device) == "meta"
        finally:
            ops.set_default_device(None)


@pytest.mark.parametrize("target", INTEGERS)
@pytest.mark.parametrize("source", [*FLOATS, *INTEGERS])
def test_saturating_is_exact(source: str, target: str, backend: Backend) -> None:
    limits = np.iinfo(target)
    if source in FLOATS:
        far = [0.0, 0.75, -0.75, 7.0, 1e3, -1e3, 6e4, -6e4, math.inf, -math.inf]
        powers = [s * 2.0**e for e in (7, 8, 15, 16, 31, 32, 63, 64, 100) for s in (1, -1)]
        x = np.array([*far, *powers]).astype(oracle(source))
        below = np.nextafter(x, np.zeros((), x.dtype))
        x = np.concatenate([x, below])
    else:
        own = np.iinfo(source)
        x = np.array([own.min, own.min + 1, 0, 1, 100, own.max - 1, own.max], source)
    plain = (x.astype(np.float64) if source in FLOATS else x).tolist()
    expected = [limits.max if v > limits.max else limits.min if v < limits.min else int(v) for v in plain]
    result = host(ops.saturate_cast(ops.asarray(x), target))
    assert result.dtype == target
    assert result.tolist() == expected


def test_saturating_defines_nan_and_infinity(backend: Backend) -> None:
    x = [math.nan, math.inf, -math.inf]
    assert host(ops.saturate_cast(x, "int8")).tolist() == [0, 127, -128]
    narrow = host(ops.saturate_cast(np.array([math.nan, 1e39, -1e39, 1.0]), "float32")).tolist()
    assert math.isnan(narrow[0])
    assert narrow[1:] == [ops.finfo("float32").max, ops.finfo("float32").min, 1.0]
    assert host(ops.saturate_cast([70000, -70000, 3], "float16")).tolist() == [65504.0, -65504.0, 3.0]
    assert host(ops.saturate_cast([2, 0], "bool")).tolist() == [True, False]


@pytest.mark.usefixtures("default_float")
def test_the_default_float_is_that_of_python_floats(backend: Backend) -> None:
    half = ops.asarray(np.ones(2, np.float16))
    small = ops.asarray(np.ones(2, np.int8))
    assert ops.get_default_dtype() is ops.float32
    assert dtype_name(ops.sqrt(small)) == "float32"
    for name, complex_name in (("float64", "complex128"), ("bfloat16", "complex64"), ("float32", "complex64")):
        ops.set_default_dtype(name)
        assert ops.get_default_dtype() is DTYPES[name]
        assert dtype_name(ops.asarray([1.0, 2.0])) == name
        assert dtype_name(ops.add(1.0, 2.0)) == name
        assert dtype_name(ops.sqrt(small)) == name
        assert dtype_name(ops.multiply(small, 0.5)) == name
        assert dtype_name(ops.multiply(half, 0.5)) == "float16"
        assert dtype_name(ops.asarray([1, 2])) == "int64"
        assert ops.result_type("int8", 1.5) == name
        assert as_dtype(float) == name
        if complex_name in backend.dtypes:
            assert dtype_name(ops.asarray([1j])) == complex_name


@pytest.mark.parametrize("wrong", ["int32", "bool", "complex64", "float33"])
@pytest.mark.usefixtures("default_float")
def test_the_default_float_is_a_real_float(wrong: str) -> None:
    with pytest.raises(TypeError):
        ops.set_default_dtype(wrong)
    assert ops.get_default_dtype() is ops.float32


@pytest.mark.usefixtures("default_float")
def test_the_default_float_holds_for_every_engine() -> None:
    ops.set_default_dtype("float64")
    for name in ember_ml.get_available_backends():
        with ember_ml.use_backend(name):
            assert dtype_name(ops.asarray([0.5])) == "float64"


def test_complex128_on_an_engine_without_it_is_unsupported() -> None:
    pytest.importorskip("mlx.core")
    with (
        ember_ml.use_backend("mlx"),
        pytest.raises(UnsupportedError, match=r"mlx engine has .* got complex128"),
    ):
        ops.cast([1.0], "complex128")


def test_portable_dtypes_compare_with_those_of_native_tensors(backend: Backend) -> None:
    x: Any = ops.ones(2, dtype="float32")
    assert ops.dtype(x) == ops.float32
    assert ops.float32 == x.dtype
    assert ops.float32 != ops.ones(2, dtype="int32").dtype
    assert x.dtype in (ops.float64, ops.float32)
    # The engine's own object is asked here, and MLX's does not leave the question to the other: rule EMB316.
    assert (x.dtype == ops.float32) is (backend.name != "mlx")
