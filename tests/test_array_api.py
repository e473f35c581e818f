"""The array API standard: names, signatures and results, with array-api-strict as the oracle.

What is asked is derived from the oracle's own namespaces: a function that it has and this file does not know how to
call is a failure.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import pytest

import ember_ml
from ember_ml.backend import Backend
from ember_ml.nn import tensor
from ember_ml.nn.tensor import EmberTensor
from ember_ml.testing.comparison import host, is_on_cpu

strict = pytest.importorskip("array_api_strict", reason="its namespaces and results are what is expected")

strict.set_array_api_strict_flags(api_version="2024.12")

NAMESPACES: dict[str, tuple[ModuleType, ModuleType]] = {
    "": (strict, tensor),
    "linalg": (strict.linalg, tensor.linalg),
    "fft": (strict.fft, tensor.fft),
}

# Names of array-api-strict that are not part of the standard.
OWN = ("ArrayAPIStrictFlags", "Device", "_", "get_array_api", "set_array_api", "reset_array_api")


def names(oracle: ModuleType) -> list[str]:
    return [name for name in oracle.__all__ if not name.startswith(OWN) or name.startswith("__array")]


FUNCTIONS = {
    f"{prefix}.{name}".lstrip("."): (getattr(oracle, name), getattr(ours, name, None))
    for prefix, (oracle, ours) in NAMESPACES.items()
    for name in names(oracle)
    if isinstance(getattr(oracle, name), FunctionType)
}

every_function = pytest.mark.parametrize("name", FUNCTIONS)


@pytest.mark.parametrize("prefix", NAMESPACES)
def test_names(prefix: str) -> None:
    oracle, ours = NAMESPACES[prefix]
    assert [name for name in names(oracle) if not hasattr(ours, name)] == []
    assert [name for name in names(oracle) if name not in ours.__all__] == []


@every_function
def test_signature(name: str) -> None:
    """Every call that fits the standard's signature fits ours, which accepts more by position and by keyword."""
    oracle, ours = map(inspect.signature, FUNCTIONS[name])
    mine = list(ours.parameters.values())
    positional = [p for p in mine if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    for i, wanted in enumerate(oracle.parameters.values()):
        if wanted.kind == wanted.POSITIONAL_ONLY:
            assert i < len(positional)
            continue
        if wanted.kind == wanted.VAR_POSITIONAL:
            assert mine[i].kind == wanted.VAR_POSITIONAL
            continue
        found = ours.parameters[wanted.name]
        if wanted.kind == wanted.KEYWORD_ONLY:
            assert found.kind in (found.KEYWORD_ONLY, found.POSITIONAL_OR_KEYWORD)
        else:
            assert found is positional[i]
        undefined = "UNDEF" in repr(wanted.default)
        if wanted.default is not wanted.empty and not undefined:
            assert found.default == wanted.default
        elif undefined:
            assert found.default is None


def test_object_has_what_the_oracles_has(backend: Backend) -> None:
    oracle, x = strict.ones((1, 1)), tensor.ones((1, 1))
    wanted = {n for n in dir(oracle) if not n.startswith("_") or n in vars(type(oracle))}
    ignored = {n for n in wanted if n.startswith("_") and not n.endswith("__")} | {"__buffer__", "__setattr__"}
    assert {n for n in wanted - ignored if not hasattr(x, n)} == set()


@pytest.mark.parametrize("name", ["e", "inf", "nan", "newaxis", "pi"])
def test_constants(name: str) -> None:
    ours, theirs = getattr(tensor, name), getattr(strict, name)
    assert ours is theirs or ours == theirs or (ours != ours and theirs != theirs)


DTYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float32", "float64", "complex64", "complex128",
]  # fmt: skip


@pytest.mark.parametrize("a", DTYPES)
def test_result_type(a: str) -> None:
    for b in DTYPES:
        try:
            wanted = str(strict.result_type(getattr(strict, a), getattr(strict, b)))
        except TypeError:
            continue  # the standard leaves it open
        assert tensor.result_type(getattr(tensor, a), getattr(tensor, b)) == wanted.rpartition(".")[2]


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtype_functions(dtype: str) -> None:
    ours, theirs = getattr(tensor, dtype), getattr(strict, dtype)
    assert not isinstance(ours, str)
    for kind in ("bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating"):
        assert tensor.isdtype(ours, kind) == strict.isdtype(theirs, kind)
    assert tensor.isdtype(ours, (ours, "bool"))
    for other in DTYPES:
        try:
            wanted = strict.can_cast(theirs, getattr(strict, other))
        except TypeError:
            continue
        if wanted:
            assert tensor.can_cast(ours, getattr(tensor, other))
    limits = {"f": ("finfo", "eps"), "c": ("finfo", "smallest_normal"), "i": ("iinfo", "bits"), "u": ("iinfo", "max")}
    if dtype == "bool":
        return
    function, _ = limits[dtype[0]]
    mine, wanted = getattr(tensor, function)(ours), getattr(strict, function)(theirs)
    for field in ("bits", "max", "min", *(("eps", "smallest_normal") if function == "finfo" else ())):
        assert getattr(mine, field) == getattr(wanted, field)
        assert type(getattr(mine, field)) in (int, float)
    assert mine.dtype == str(wanted.dtype).rpartition(".")[2]


def test_info(backend: Backend) -> None:
    info = tensor.__array_namespace_info__()
    lacking = set(DTYPES) - set(backend.dtypes)
    assert set(info.dtypes()) == set(DTYPES) - lacking
    assert lacking <= {"complex128"}
    assert set(info.dtypes(kind="complex floating")) == {"complex64", "complex128"} - lacking
    assert set(info.dtypes(kind=("bool", "signed integer"))) == {"bool", "int8", "int16", "int32", "int64"}
    assert all(dtype is getattr(tensor, name) for name, dtype in info.dtypes().items())
    assert set(info.default_dtypes()) == {"real floating", "complex floating", "integral", "indexing"}
    assert tensor.zeros(1).dtype is info.default_dtypes()["real floating"]
    assert tensor.arange(1).dtype is info.default_dtypes()["integral"]
    assert tensor.argmax(tensor.zeros(1)).dtype is info.default_dtypes()["indexing"]
    assert info.default_device() in info.devices()
    assert tensor.zeros(1).device == info.default_device()
    assert info.capabilities()["boolean indexing"] is True
    assert info.capabilities()["data-dependent shapes"] is True
    deep = tensor.ones((1,) * info.capabilities()["max dimensions"])
    assert (deep + deep).ndim == info.capabilities()["max dimensions"]
    with pytest.raises(ValueError, match="kind"):
        info.dtypes(kind="imaginary")
    with pytest.raises(ValueError, match="abacus"):
        info.dtypes(device="abacus")


SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.75, 2.0, 30.0, np.inf, -np.inf, np.nan]
PLAIN = [0.25, -0.75, 2.0, 1.0, 30.0]


def sample(dtype: str, count: int) -> list[np.ndarray]:
    """Arrays of a dtype for the tensors of a call: pairs of all values where there are two."""
    if dtype == "bool":
        values = np.array([True, False])
    elif "int" in dtype:
        values = np.array([0, 1, 2, 3, 7, 100] + ([] if dtype[0] == "u" else [-1, -3]))
    elif "complex" in dtype:
        values = np.array([complex(a, b) for a in PLAIN for b in PLAIN])
    else:
        values = np.array(SPECIAL)
    values = values.astype(dtype)
    return [side.ravel() for side in np.meshgrid(*[values] * count)] if count > 1 else [values]


def elementwise() -> Iterator[str]:
    """The functions of tensors alone, element by element."""
    for name, (oracle, _) in FUNCTIONS.items():
        parameters = inspect.signature(oracle).parameters.values()
        plain = all(p.kind == p.POSITIONAL_ONLY for p in parameters) and len(parameters) < 3
        samples = ([1.0, 1.0, 0.5], [1, 1], [True, True], [1j, 1j])
        if plain and "." not in name and any(keeps_shape(oracle, len(parameters), value) for value in samples):
            yield name


def keeps_shape(oracle: Callable[..., Any], count: int, value: list[Any]) -> bool:
    x = strict.asarray(value)
    try:
        return bool(oracle(*[x] * count).shape == x.shape)
    except (TypeError, ValueError, AttributeError):
        return False


ELEMENTWISE = sorted(elementwise())

# Where NumPy, on which the oracle is built, is known to differ from the standard's text; tested below.
DEVIATIONS = {"floor_divide": "a quotient with infinities", "pow": "a complex zero to a power"}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise(backend: Backend, name: str) -> None:
    oracle, ours = FUNCTIONS[name]
    count = len(inspect.signature(oracle).parameters)
    asked = 0
    for dtype in tensor.__array_namespace_info__().dtypes():
        arrays = sample(dtype, count)
        if name in ("bitwise_left_shift", "bitwise_right_shift"):
            if "int" not in dtype:
                continue
            arrays[1] = abs(arrays[1]) % 7
        if name == "pow" and "int" in dtype:
            arrays[1] = abs(arrays[1]) % 4
        if name in DEVIATIONS and "int" not in dtype:
            keep = np.isfinite(arrays[0]) & np.isfinite(arrays[1]) & (arrays[0] != 0) & (arrays[1] != 0)
            arrays = [array[keep] for array in arrays]
        if name in ("floor_divide", "remainder") and "int" in dtype:
            arrays = [array[arrays[1] != 0] for array in arrays]
        if name in ("maximum", "minimum") and "float" in dtype and not is_on_cpu(backend):
            # The standard leaves it open which of two zeros is the larger one.
            arrays = [np.where(array == 0, np.zeros_like(array), array) for array in arrays]
        try:
            wanted = oracle(*map(strict.asarray, arrays))
        except TypeError:
            continue
        result = ours(*map(tensor.asarray, arrays))
        agree(result, wanted, f"{name} of {dtype}")
        asked += 1
    assert asked


def agree(result: Any, wanted: Any, what: str, loose: bool = False) -> None:
    """Assert that a result equals the oracle's in structure, shapes, dtypes and values."""
    if isinstance(wanted, tuple | list):
        assert len(result) == len(wanted), what
        assert getattr(result, "_fields", None) == getattr(wanted, "_fields", None), what
        for a, b in zip(result, wanted, strict=True):
            agree(a, b, what, loose)
        return
    if not hasattr(wanted, "dtype"):
        assert result == wanted, what
        return
    theirs = np.asarray(wanted)
    assert isinstance(result, EmberTensor), what
    assert result.backend == ember_ml.get_backend(), what
    assert result.dtype == str(theirs.dtype), what
    assert result.shape == theirs.shape, what
    mine = host(result.native)
    if theirs.dtype.kind not in "fc":
        np.testing.assert_array_equal(mine, theirs, err_msg=what)
        return
    if loose:
        mine, theirs = abs(mine), abs(theirs)
    rounding = 2e-5 if theirs.dtype.itemsize // (1 + (theirs.dtype.kind == "c")) == 4 else 1e-9
    np.testing.assert_allclose(mine, theirs, rtol=rounding, atol=rounding, err_msg=what)
    if theirs.dtype.kind == "f" and not loose and theirs.size:
        zeros = theirs == 0
        np.testing.assert_array_equal(np.signbit(mine[zeros]), np.signbit(theirs[zeros]), err_msg=f"{what}: zeros")


X = np.array([[4.0, 1.0, -2.0], [1.0, 3.0, 0.5], [-2.0, 0.5, 5.0]], np.float32)
BATCH = np.stack([X, X + np.eye(3, dtype=np.float32)])
LINE = np.array([3.0, 1.0, 2.0, 3.0, -1.0], np.float32)
INDICES = np.array([2, 0], np.int64)

# A value for each parameter of the standard, by name; those of single functions below.
ARGUMENTS: dict[str, Any] = {
    "x": X,
    "x1": X,
    "x2": X.T + 1,
    "arrays": [X, X + 1],
    "axis": 1,
    "axes": (1, 0),
    "shape": (3, 3),
    "keepdims": True,
    "correction": 1.0,
    "dtype": "float64",
    "descending": True,
    "stable": False,
    "fill_value": 7.0,
    "k": 1,
    "offset": 1,
    "copy": True,
    "device": "cpu",
    "indices": INDICES,
    "repeats": 2,
    "repetitions": (2, 1),
    "shift": 1,
    "source": 0,
    "destination": 1,
    "n": 2,
    "n_rows": 3,
    "n_cols": 2,
    "num": 4,
    "start": 1,
    "stop": 5,
    "step": 2,
    "endpoint": False,
    "indexing": "ij",
    "include_initial": True,
    "condition": X > 0,
    "min": -1.0,
    "max": 2.0,
    "side": "right",
    "sorter": np.arange(5),
    "invert": True,
    "upper": True,
    "full_matrices": False,
    "mode": "complete",
    "ord": 1,
    "rtol": 0.5,
    "s": (2, 3),
    "d": 0.5,
    "norm": "ortho",
    "prepend": X[:, :1],
    "append": X[:, :1],
    "obj": [[1.0, 2.0]],
}

SPECIFIC: dict[str, dict[str, Any]] = {
    "all": {"x": X > 0},
    "any": {"x": X > 9},
    "expand_dims": {"axis": -1},
    "squeeze": {"x": X[:, None], "axis": 1},
    "unstack": {"axis": 1},
    "meshgrid": {"arrays": [LINE, LINE[:2]]},
    "take_along_axis": {"indices": np.array([[0], [2], [1]])},
    "searchsorted": {"x1": np.sort(LINE), "x2": X},
    "isin": {"x1": X, "x2": LINE},
    "tensordot": {"axes": 1},
    "linalg.tensordot": {"axes": ((0,), (1,))},
    "vecdot": {"axis": -1},
    "linalg.vecdot": {"axis": -1},
    "linalg.outer": {"x1": LINE, "x2": LINE[:2]},
    "linalg.cross": {"axis": -2},
    "linalg.matrix_norm": {"ord": "nuc"},
    "linalg.matrix_power": {"n": 3},
    "linalg.trace": {"x": BATCH},
    "linalg.diagonal": {"x": BATCH},
    "linalg.solve": {"x2": LINE[:3]},
    "roll": {"axis": 0},
    "repeat": {"axis": 0},
    "fft.irfft": {"x": X.astype(np.complex64), "n": 4},
    "fft.hfft": {"x": X.astype(np.complex64), "n": 4},
    "fft.irfftn": {"x": X.astype(np.complex64)},
    "fft.fft": {"x": X.astype(np.complex64), "axis": 0},
    "fft.ifft": {"x": X.astype(np.complex64)},
    "fft.fftn": {"x": X.astype(np.complex64)},
    "fft.ifftn": {"x": X.astype(np.complex64)},
    "fft.fftfreq": {"n": 5, "dtype": "float32"},
    "fft.rfftfreq": {"n": 5, "dtype": "float32"},
    "fft.fftshift": {"axes": (0,)},
    "fft.ifftshift": {"axes": (0,)},
    "nonzero": {"x": X > 0},
    "astype": {"dtype": "int32"},
    "unique_all": {"x": LINE},
    "unique_counts": {"x": LINE},
    "unique_inverse": {"x": LINE},
    "unique_values": {"x": LINE},
    "bitwise_invert": {"x": X.astype(np.int32)},
}

# Those that return no tensors, whose values are unset, or that have a separate test.
ELSEWHERE = {
    "empty", "empty_like", "from_dlpack", "can_cast", "finfo", "iinfo", "isdtype", "result_type",
    "broadcast_shapes", "asarray", "__array_namespace_info__",
    "isin",  # of the version after this one
}  # fmt: skip

# Vectors that are unique but for their sign.
SIGNLESS = ("linalg.svd", "linalg.eigh", "linalg.qr")

# Dtypes by default are the namespace's own affair.
DEFAULTS = ("zeros", "ones", "full", "eye", "linspace", "arange", "fft.fftfreq", "fft.rfftfreq")

# Options that tensors of two dimensions, or another option, need.
NEEDED = {name: {"axis": 0} for name in ("cumulative_sum", "cumulative_prod", "take")} | {
    f"fft.{name}": {"axes": (0, 1)} for name in ("fftn", "ifftn", "rfftn", "irfftn")
}


def calls(name: str, oracle: Callable[..., Any]) -> Iterator[dict[str, Any]]:
    """The call with what it must be given, and one more for each option."""
    parameters = inspect.signature(oracle).parameters
    given = ARGUMENTS | SPECIFIC.get(name, {})
    must = {p.name: given[p.name] for p in parameters.values() if p.default is p.empty and p.kind != p.VAR_POSITIONAL}
    if name in DEFAULTS:
        must["dtype"] = "float32"
    must |= NEEDED.get(name, {})
    yield must
    for p in parameters.values():
        if p.default is not p.empty:
            yield must | {p.name: given[p.name]}


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n not in ELSEWHERE and n not in ELEMENTWISE])
def test_function(backend: Backend, name: str) -> None:
    oracle, ours = FUNCTIONS[name]
    for call in calls(name, oracle):
        agree(
            called(ours, oracle, call, tensor),
            called(oracle, oracle, call, strict),
            f"{name}({call})",
            name in SIGNLESS,
        )


def called(function: Callable[..., Any], oracle: Callable[..., Any], call: dict[str, Any], xp: ModuleType) -> Any:
    """The result of one of the two namespaces."""

    def there(name: str, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return xp.asarray(value)
        if name == "dtype":
            return getattr(xp, value)
        if name == "device":
            return value if xp is tensor else strict.Device("CPU_DEVICE")
        return [there(name, item) for item in value] if name == "arrays" else value

    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for parameter in inspect.signature(oracle).parameters.values():
        if parameter.kind == parameter.VAR_POSITIONAL:
            args += there("arrays", SPECIFIC.get(oracle.__name__, ARGUMENTS).get("arrays", ARGUMENTS["arrays"]))
        elif parameter.name in call:
            value = there(parameter.name, call[parameter.name])
            if parameter.kind == parameter.POSITIONAL_ONLY:
                args.append(value)
            else:
                kwargs[parameter.name] = value
    return function(*args, **kwargs)


def test_asarray_and_dlpack(backend: Backend) -> None:
    for value in (True, 3, 2.5, [[1, 2], [3, 4]], [1.5, 2], np.float32(2), LINE):
        result, wanted = tensor.asarray(value), strict.asarray(value)
        assert result.shape == wanted.shape
        assert tensor.isdtype(result.dtype, "real floating") == strict.isdtype(wanted.dtype, "real floating")
    x = tensor.asarray(LINE)
    assert tensor.asarray(x, copy=False) is x
    for copied in (tensor.asarray(x, copy=True), tensor.from_dlpack(x), tensor.from_dlpack(strict.asarray(LINE))):
        agree(copied, strict.asarray(LINE), "from_dlpack")
    assert tensor.empty((2, 3), dtype=tensor.int8).shape == (2, 3)
    assert tensor.empty_like(x).dtype == "float32"
    with pytest.raises(ValueError, match="copy"):
        tensor.asarray([1, 2], copy=False)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_special_values_that_numpy_has_otherwise(backend: Backend) -> None:
    """The special cases in the standard's text that array-api-strict, standing on NumPy, does not follow."""
    inf, nan = np.inf, np.nan

    def quotient(a: float, b: float) -> float:
        return float(tensor.floor_divide(tensor.asarray(a), tensor.asarray(b)))

    assert (quotient(inf, 2.0), quotient(inf, -2.0), quotient(-inf, 2.0), quotient(-inf, -2.0)) == (
        inf,
        -inf,
        -inf,
        inf,
    )
    for a, b in ((3.0, -inf), (-3.0, inf)):
        assert np.signbit(quotient(a, b))
        assert quotient(a, b) == 0
    assert np.isnan(quotient(inf, inf))

    def of(function: Callable[..., Any], z: complex) -> complex:
        return complex(function(tensor.asarray([z]))[0])

    for z, wanted in {
        complex(inf, 0.0): complex(inf, 0.0),
        complex(-inf, inf): complex(-1.0, 0.0),
        complex(inf, inf): complex(inf, nan),
        complex(-inf, nan): complex(-1.0, 0.0),
        complex(nan, 0.0): complex(nan, 0.0),
        complex(-0.0, 0.0): complex(0.0, 0.0),
    }.items():
        found = of(tensor.expm1, z)
        sign = abs if wanted.real == inf else float
        np.testing.assert_equal(sign(found.real), wanted.real, err_msg=str(z))
        np.testing.assert_equal(abs(found.imag), wanted.imag, err_msg=str(z))
    limit = of(tensor.tanh, complex(inf, 2.0))
    assert (limit, np.signbit(limit.imag)) == (1 + 0j, np.False_)


def test_axis_errors_are_of_both_classes(backend: Backend) -> None:
    x = tensor.asarray(X)
    for wrong in (
        lambda: tensor.expand_dims(x, axis=5),
        lambda: tensor.sum(x, axis=2),
        lambda: tensor.flip(x, axis=-3),
    ):
        with pytest.raises(ValueError, match=r"axis|[Dd]imension"):
            wrong()
    with pytest.raises(IndexError):
        tensor.expand_dims(x, axis=5)


def test_operators_with_numbers_are_the_oracles(backend: Backend) -> None:
    import operator as o

    for dtype, function in itertools.product(("int8", "uint16", "float32", "complex64"), (o.add, o.sub, o.mul)):
        array = np.array([1, 2, 3]).astype(dtype)
        agree(function(tensor.asarray(array), 2), function(strict.asarray(array), 2), f"{function} of {dtype}")
        agree(function(5, tensor.asarray(array)), function(5, strict.asarray(array)), f"{function} of {dtype}")
