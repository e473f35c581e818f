"""What the contract cannot say of the operations that make tensors: kinds of source, sharing, defaults, errors."""

from __future__ import annotations

import array as buffers
import math
import pickle
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.signal

import ember_ml
from ember_ml import ops
from ember_ml.backend import Backend
from ember_ml.dtypes import as_dtype, default_float, set_default_float
from ember_ml.nn.tensor import EmberTensor
from ember_ml.testing.comparison import assert_close, assert_same, host, is_on_cpu

OTHERS = [name for name in ember_ml.get_available_backends() if name != "numpy"]


def dtype_of(x: object) -> str:
    return as_dtype(x.dtype).name  # type: ignore[attr-defined]


def nested(levels: int, around: Callable[[Any], Any], inner: Any = 1.0) -> Any:
    """``inner`` within so many levels of a sequence."""
    for _ in range(levels):
        inner = around(inner)
    return inner


def _cycles() -> dict[str, Any]:
    plain: list[Any] = []
    plain.append(plain)
    wide: list[Any] = []
    wide.extend([wide] * 1_000)
    mixed: list[Any] = [1.0]
    mixed.append(mixed)
    inner: list[Any] = []
    around = (inner, inner)
    inner.append(around)
    table: dict[str, Any] = {}
    table["a"] = [table]
    long: list[Any] = []
    long.append(nested(500, lambda item: [item], long))
    return {"list": plain, "wide": wide, "mixed": mixed, "tuple": around, "dict": [table], "long": long}


CYCLES = _cycles()

USES: dict[str, Callable[[Any], Any]] = {
    "asarray": ops.asarray,
    "convert_to_tensor": ops.convert_to_tensor,
    "EmberTensor": EmberTensor,
    "operator": lambda value: EmberTensor([1.0]) + value,
    "with a portable tensor": lambda value: ops.asarray([EmberTensor([1.0]), value]),
    "first operand": lambda value: ops.add(value, 1.0),
    "second operand": lambda value: ops.add(ops.ones(2), value),
    "indices": lambda value: ops.take(ops.ones(2), value),
    "mask": lambda value: ops.where(value, 1.0, 2.0),
    "several": lambda value: ops.concat([ops.ones(2), value]),
    "reduction": ops.sum,
}


def test_constants_are_plain_values() -> None:
    assert (ops.pi, ops.e, ops.inf) == (math.pi, math.e, math.inf)
    assert ops.nan != ops.nan
    assert ops.newaxis is None


def test_names_of_one_function() -> None:
    assert ops.asarray is ops.array


class TestAsarray:
    @pytest.mark.parametrize("source", ember_ml.get_available_backends())
    @pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "bfloat16", "float64", "complex64", "uint16"])
    def test_takes_tensors_of_every_engine(self, backend: Backend, source: str, dtype: str) -> None:
        with ember_ml.use_backend(source):
            given = ops.asarray([[0, 1], [2, 3]], dtype=dtype)
        result = ops.asarray(given)
        assert isinstance(result, backend.tensors)
        assert dtype_of(result) == dtype
        np.testing.assert_array_equal(host(result), np.array([[0, 1], [2, 3]]).astype(host(given).dtype))

    @pytest.mark.parametrize("source", OTHERS)
    def test_takes_tensors_of_every_engine_inside_sequences(self, backend: Backend, source: str) -> None:
        with ember_ml.use_backend(source):
            one = ops.asarray(1.5)
        result = ops.asarray([[one, 2], [3.5, one]])
        assert isinstance(result, backend.tensors)
        assert dtype_of(result) == "float32"
        assert result.tolist() == [[1.5, 2.0], [3.5, 1.5]]

    def test_numbers_adapt_to_the_tensors_next_to_them(self, backend: Backend) -> None:
        half = ops.asarray(1.0, dtype="float16")
        whole = ops.asarray(1, dtype="int16")
        assert dtype_of(ops.asarray([half, 2.5])) == "float16"
        assert dtype_of(ops.asarray([2, whole])) == "int16"
        assert dtype_of(ops.asarray([whole, 2.5])) == "float32"
        assert dtype_of(ops.asarray([half, whole])) == "float16"
        assert dtype_of(ops.asarray([np.float64(1.0), 2])) == "float64"

    def test_takes_buffers(self, backend: Backend) -> None:
        assert ops.asarray(buffers.array("d", [1.0, 2.0])).tolist() == [1.0, 2.0]
        assert ops.asarray(b"ab").tolist() == [97, 98]
        assert dtype_of(ops.asarray(bytearray(b"ab"))) == "uint8"

    def test_takes_objects_with_array(self, backend: Backend) -> None:
        class Source:
            def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
                return np.array([1, 2], np.int16)

        result = ops.asarray(Source())
        assert dtype_of(result) == "int16"
        assert result.tolist() == [1, 2]

    def test_takes_host_arrays_of_any_layout(self, backend: Backend) -> None:
        grid = np.arange(12.0, dtype=np.float32).reshape(3, 4)
        for view in (grid.T, grid[::2, 1:], grid[::-1, ::-1], np.broadcast_to(grid, (2, 3, 4)), grid.astype(">f4")):
            np.testing.assert_array_equal(host(ops.asarray(view)), view)

    def test_a_copy_is_a_copy(self, backend: Backend) -> None:
        given = np.zeros(3, np.float32)
        result = ops.asarray(given, copy=True)
        given[0] = 1
        assert result.tolist() == [0.0, 0.0, 0.0]

    def test_no_copy_where_memory_can_be_shared(self, backend: Backend) -> None:
        own = ops.zeros(3)
        assert ops.asarray(own, copy=False) is own
        if backend.name != "mlx" and is_on_cpu(backend):
            given = np.zeros(3, np.float32)
            result = ops.asarray(given, copy=False)
            given[0] = 1
            assert result.tolist() == [1.0, 0.0, 0.0]

    def test_no_copy_where_memory_cannot_be_shared_is_an_error(self, backend: Backend) -> None:
        for given, dtype in (([1, 2], None), (3.0, None), (ops.zeros(2), "int32"), ([ops.zeros(2)], None)):
            with pytest.raises(ValueError, match="copy=False"):
                ops.asarray(given, dtype=dtype, copy=False)

    def test_python_numbers_have_the_default_dtypes(self, backend: Backend) -> None:
        found = [dtype_of(ops.asarray(x)) for x in (True, 1, 1.0, 1j, [1], [[1.0]], [1j], [False])]
        assert found == ["bool", "int64", "float32", "complex64", "int64", "float32", "complex64", "bool"]

    @pytest.mark.parametrize(
        "wrong", [None, "1", object(), {1: 2}, ["a"], [None]], ids=lambda value: type(value).__name__
    )
    def test_what_holds_no_numbers_is_a_type_error(self, backend: Backend, wrong: object) -> None:
        with pytest.raises(TypeError):
            ops.asarray(wrong)

    @pytest.mark.parametrize(
        ("number", "dtype"),
        [
            (300, "uint8"),
            (-1, "uint64"),
            (1 << 63, None),
            (math.inf, "int64"),
            (-math.inf, "uint8"),
            (math.nan, "int32"),
            (128.0, "int8"),
            (-1.0, "uint16"),
            (2.0**63, "int64"),
            (2.0**64, "uint64"),
        ],
    )
    def test_numbers_out_of_range_are_value_errors(self, backend: Backend, number: float, dtype: str | None) -> None:
        with pytest.raises(ValueError, match="values must fit into "):
            ops.asarray(number, dtype=dtype)
        with pytest.raises(ValueError, match="values must fit into "):
            ops.full(2, number, dtype=dtype)
        with pytest.raises(ValueError, match="must fit into"):
            ops.full_like([1, 2], number, dtype=dtype)

    def test_ragged_rows_are_a_value_error(self, backend: Backend) -> None:
        for ragged in ([[1], [2, 3]], [[1], 2], [[ops.asarray(1)], [2, 3]], [ops.zeros(2), 1]):
            with pytest.raises(ValueError):  # noqa: PT011 - the message is the engine's own
                ops.asarray(ragged)

    @pytest.mark.parametrize("kind", CYCLES)
    @pytest.mark.parametrize("use", USES)
    def test_what_contains_itself_is_a_value_error(self, backend: Backend, kind: str, use: str) -> None:
        message = (
            r"^\w+: a nested sequence must not contain itself, got a (list|tuple|dict) that does(\nin ember_ml\.ops|$)"
        )
        with pytest.raises(ValueError, match=message):
            USES[use](CYCLES[kind])

    @pytest.mark.parametrize("levels", [65, 100, 5_000])
    @pytest.mark.parametrize("use", [use for use in USES if use != "with a portable tensor"])
    def test_more_levels_than_a_tensor_has_axes(self, backend: Backend, levels: int, use: str) -> None:
        with pytest.raises(ValueError, match=f"must have at most 64 levels, got {levels}"):
            USES[use](nested(levels, lambda inner: [inner]))
        # Two references to one list at each level make a sequence of 2 ** levels numbers.
        with pytest.raises(ValueError, match=f"must have at most 64 levels, got {levels}"):
            USES[use](nested(levels, lambda inner: (inner, inner)))

    def test_as_many_levels_as_a_tensor_has_axes(self, backend: Backend) -> None:
        assert tuple(ops.asarray(nested(64, lambda inner: [inner])).shape) == (1,) * 64
        assert tuple(ops.add(nested(64, lambda inner: (inner,)), 1.0).shape) == (1,) * 64
        x = ops.ones((1, 1))
        assert tuple(ops.asarray(nested(62, lambda inner: [inner], x)).shape) == (1,) * 64
        with pytest.raises(ValueError, match="must have at most 64 levels, got 65"):
            ops.asarray(nested(63, lambda inner: [inner], x))

    def test_one_row_in_many_places(self, backend: Backend) -> None:
        row = [1.0] * 2_000
        x = ops.asarray([row] * 2_000)
        assert tuple(x.shape) == (2_000, 2_000)
        assert ops.sum(x).item() == 4e6

    def test_cycles_without_portable_tensors(self) -> None:
        code = """
        import sys
        from ember_ml import ops
        cycle = []
        cycle.append(cycle)
        for value in (cycle, [{"a": cycle}], ({"a": cycle},)):
            for use in (ops.asarray, ops.sin):
                try:
                    use(value)
                except (TypeError, ValueError) as error:
                    print(type(error).__name__)
        assert "ember_ml.nn.tensor" not in sys.modules
        """
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60, check=True
        )
        assert done.stdout.split() == ["ValueError"] * 6


class TestHost:
    def test_writing_to_the_array_changes_no_tensor(self, backend: Backend) -> None:
        x = ops.zeros(3)
        array = ops.to_numpy(x)
        array[0] = 1
        assert isinstance(array, np.ndarray)
        assert x.tolist() == [0.0, 0.0, 0.0]

    @pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "bfloat16", "float64", "complex64"])
    def test_there_and_back(self, backend: Backend, dtype: str) -> None:
        x = ops.asarray([[0, 1], [2, 3]], dtype=dtype)
        back = ops.from_numpy(ops.to_numpy(x))
        assert isinstance(back, backend.tensors)
        assert dtype_of(back) == dtype
        np.testing.assert_array_equal(host(back), host(x))

    @pytest.mark.parametrize("source", ember_ml.get_available_backends())
    def test_dlpack_from_every_engine(self, backend: Backend, source: str) -> None:
        with ember_ml.use_backend(source):
            given = ops.asarray([[1.0, 2.0], [3.0, 4.0]])
        result = ops.from_dlpack(given)
        assert isinstance(result, backend.tensors)
        assert result.tolist() == [[1.0, 2.0], [3.0, 4.0]]

    @pytest.mark.parametrize("source", ember_ml.get_available_backends())
    @pytest.mark.parametrize("dtype", ["bool", "uint8", "float32", "bfloat16"])
    def test_dlpack_of_one_number(self, backend: Backend, source: str, dtype: str) -> None:
        with ember_ml.use_backend(source):
            given = ops.max(ops.asarray([0, 1], dtype=dtype))
        for x in (given, EmberTensor(given)):
            assert ops.dtype(ops.from_dlpack(x)) == dtype
            assert float(ops.to_numpy(ops.from_dlpack(x))) == 1.0

    def test_what_speaks_no_dlpack_is_a_type_error(self, backend: Backend) -> None:
        with pytest.raises(TypeError, match="__dlpack__"):
            ops.from_dlpack([1, 2])


def test_tensors_that_record_gradients_move_to_the_host() -> None:
    torch = pytest.importorskip("torch")
    x = torch.ones(2, requires_grad=True)
    assert ops.to_numpy(x).tolist() == [1.0, 1.0]
    for name in ember_ml.get_available_backends():
        with ember_ml.use_backend(name):
            assert ops.asarray(x).tolist() == [1.0, 1.0]


def test_gradients_flow_through_a_sequence_of_tensors() -> None:
    torch = pytest.importorskip("torch")
    x = torch.ones((), requires_grad=True)
    with ember_ml.use_backend("torch"):
        ops.asarray([[x, 2.0], [3.0, x]]).sum().backward()
    assert float(x.grad) == 2.0


def test_reversed_tensors_move_between_engines() -> None:
    """torch ends the process on DLPack's negative strides."""
    pytest.importorskip("torch")
    for name in ember_ml.get_available_backends():
        with ember_ml.use_backend(name):
            x = ops.arange(4)[::-1] if name != "torch" else ops.flip(ops.arange(4))
        with ember_ml.use_backend("torch"):
            assert ops.asarray(x).tolist() == [3, 2, 1, 0]


def test_the_default_float_is_the_dtype_of_new_tensors(backend: Backend) -> None:
    before = default_float()
    set_default_float(as_dtype("float64"))
    try:
        made = [
            ops.zeros(2), ops.ones(2), ops.full(2, 0.5), ops.empty(2), ops.eye(2), ops.tri(2), ops.arange(0.0, 1.0),
            ops.linspace(0, 1, 3), ops.logspace(0, 1, 3), ops.geomspace(1, 2, 3), ops.hanning(4), ops.asarray([0.5]),
        ]  # fmt: skip
    finally:
        set_default_float(before)
    assert {dtype_of(x) for x in made} == {"float64"}


@pytest.mark.parametrize("make", [ops.zeros, ops.ones, ops.empty, lambda shape: ops.full(shape, 1)])
def test_bad_shapes(backend: Backend, make: object) -> None:
    for wrong in (-1, (2, -1)):
        with pytest.raises(ValueError):  # noqa: PT011 - the message is the engine's own
            make(wrong)  # type: ignore[operator]
    for wrong in ((2, 2.5), None):
        with pytest.raises(TypeError):
            make(wrong)  # type: ignore[operator]


def test_values_that_cannot_be(backend: Backend) -> None:
    calls = [
        lambda: ops.arange(0, 1, 0),
        lambda: ops.arange(0.0, 1.0, 0.0),
        lambda: ops.arange(math.nan),
        lambda: ops.linspace(0, 1, -1),
        lambda: ops.geomspace(0, 1, 3),
        lambda: ops.geomspace(-1, 1, 3),
        lambda: ops.eye(-1),
        lambda: ops.meshgrid([1], [2], indexing="yx"),
        lambda: ops.tril([1, 2]),
        lambda: ops.triu(1),
        lambda: ops.diag(1),
        lambda: ops.diag([[[1]]]),
        lambda: ops.vander([[1]]),
        lambda: ops.vander(1.0),
        lambda: ops.full((2,), [1, 2, 3]),
    ]
    for call in calls:
        with pytest.raises(ValueError):  # noqa: PT011 - the message is the engine's own
            call()
    with pytest.raises(TypeError):
        ops.full(2, 1j, dtype="float32")


@pytest.mark.parametrize("dtype", ["bool", "int64", "uint16", "bfloat16", "float64", "complex64"])
def test_data_that_another_thread_reads(dtype: str, backend: Backend) -> None:
    """MLX computes in the thread that has asked, and nowhere else."""
    data = [host(ops.asarray(values, dtype=dtype)) for values in ([0, 1], [], 1, [[1, 0], [0, 0]])]
    pickled = [pickle.dumps(EmberTensor(ops.asarray(array))) for array in data]
    made: list[Any] = []

    def read() -> None:
        made.extend(ops.asarray(array) for array in data)
        made.extend(pickle.loads(text) for text in pickled)

    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
    for x, expected in zip(made, [*data, *data], strict=True):
        assert_same(ops.to_numpy(x), expected)


def test_complex_numbers_with_a_default_of_float64(backend: Backend) -> None:
    ops.set_default_dtype("float64")
    try:
        x = ops.ones(2)
        for call in (
            lambda: ops.asarray(1j),
            lambda: ops.full(2, 1j),
            lambda: ops.multiply(1j, 2.0),
            lambda: ops.asarray([x[0], 1j]),
            lambda: ops.positive([1j, x[0]]),
        ):
            if "complex128" in backend.dtypes:
                assert ops.dtype(call()) == "complex128"
            else:
                with pytest.raises(ember_ml.UnsupportedError, match="complex128"):
                    call()
    finally:
        ops.set_default_dtype("float32")


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64"])
def test_an_imaginary_part_is_not_dropped(dtype: str, backend: Backend) -> None:
    x = ops.asarray([1 + 2j, 3j])
    for value in (x, ops.to_numpy(x), [x, x], list(ops.to_numpy(x)), EmberTensor(x)):
        with pytest.raises(TypeError, match=f"dtype must be complex for complex64 values, got {dtype}; take"):
            ops.asarray(value, dtype=dtype)
    with pytest.raises(TypeError, match="take the real part first"):
        ops.full(2, x[0], dtype=dtype)
    assert ops.asarray(x, dtype="bool").tolist() == [True, True]


def test_devices(backend: Backend) -> None:
    assert ops.zeros(2, device="cpu").tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match="zeros: device must be one of cpu"):
        ops.zeros(2, device="abacus")


def test_unknown_dtypes_are_type_errors(backend: Backend) -> None:
    with pytest.raises(TypeError):
        ops.zeros(2, dtype="float33")


def test_complex128_where_the_engine_has_none(backend: Backend) -> None:
    if "complex128" in backend.dtypes:
        assert dtype_of(ops.zeros(2, dtype="complex128")) == "complex128"
    else:
        with pytest.raises(ember_ml.errors.UnsupportedError):
            ops.zeros(2, dtype="complex128")


@pytest.mark.parametrize("count", [1, 2, 5, 50])
def test_windows_are_scipys(backend: Backend, count: int) -> None:
    windows = scipy.signal.windows
    expected = {
        ops.bartlett: windows.bartlett(count),
        ops.blackman: windows.blackman(count),
        ops.hamming: windows.hamming(count),
        ops.hanning: windows.hann(count),
        lambda n, dtype: ops.kaiser(n, 8.6, dtype=dtype): windows.kaiser(count, 8.6),
    }
    for make, oracle in expected.items():
        assert_close(host(make(count, dtype="float64")), oracle, 1e-12)


def test_evenly_spaced_numbers_end_where_they_should(backend: Backend) -> None:
    for start, stop, num in ((0.1, 0.7, 31), (-1e30, 1e30, 7), (1, 2, 1000)):
        x = host(ops.linspace(start, stop, num))
        assert x[0] == np.float32(start)
        assert x[-1] == np.float32(stop)
        np.testing.assert_array_equal(x, np.linspace(start, stop, num, dtype=np.float32))


def test_engines_agree_on_rounding_of_ranges() -> None:
    made = {}
    for name in ember_ml.get_available_backends():
        with ember_ml.use_backend(name):
            made[name] = host(ops.arange(0, 10, 0.1))
    for name, values in made.items():
        np.testing.assert_allclose(values, np.arange(0, 10, 0.1).astype(np.float32), rtol=1e-6, err_msg=name)
        assert values.shape == (100,)


def test_a_copy_is_independent(backend: Backend) -> None:
    if backend.name == "jax":
        pytest.skip("JAX arrays are immutable")
    x = ops.asarray(np.zeros(2, np.float32), copy=True)
    y = ops.copy(x)
    x[0] = 1.0
    assert y.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("kind", [np.float64, np.float32, lambda x: ops.asarray(x)], ids=["double", "single", "tensor"])
def test_ranges_between_numbers_that_were_computed(backend: Backend, kind: Any) -> None:
    """Ends of a range often are the smallest and largest of something."""
    assert_same(ops.linspace(kind(0.0), kind(1.0), 3), ops.linspace(0.0, 1.0, 3))
    assert_same(ops.logspace(kind(0.0), kind(2.0), 3), ops.logspace(0.0, 2.0, 3))
    assert_same(ops.geomspace(kind(1.0), kind(100.0), 3), ops.geomspace(1.0, 100.0, 3))
    assert_same(ops.arange(kind(0.0), kind(1.0), kind(0.25)), ops.arange(0.0, 1.0, 0.25))
    for whole in (np.int64, np.uint8, lambda x: ops.asarray(x)):
        assert_same(ops.arange(whole(3)), ops.arange(3))
        assert_same(ops.linspace(whole(0), whole(4), 3), ops.linspace(0, 4, 3))
    with pytest.raises(TypeError):
        ops.linspace("0", 2.0, 3)
    for wrong in (ops.ones(2), "0", [0.0, 1.0]):
        with pytest.raises(TypeError):
            ops.arange(wrong, 3)


@pytest.mark.parametrize("num", [2, 3, 5])
def test_the_last_of_evenly_spaced_numbers_is_exact(num: int, backend: Backend) -> None:
    """``start + (stop - start)`` is not ``stop`` here."""
    found = ops.linspace(-1e16, 1.0, num, dtype="float64")
    assert (found.tolist()[0], found.tolist()[-1]) == (-1e16, 1.0)
