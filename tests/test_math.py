"""What the contract cannot say of the element-wise operations: outside oracles, errors, exact bits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st

import ember_ml
from ember_ml import ops, transform
from ember_ml.backend import Backend
from ember_ml.dtypes import as_dtype
from ember_ml.errors import UnsupportedError
from ember_ml.testing.comparison import host

nan, inf = float("nan"), float("inf")

several = settings(max_examples=40, deadline=None)
whole = st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=8)
singles = st.floats(width=32, allow_subnormal=True)
divisors = st.floats(-1e3, 1e3).filter(lambda y: y == 0 or abs(y) > 1e-3)
every_engine = pytest.mark.parametrize("engine", ember_ml.get_available_backends())


def f64(*values: float) -> np.ndarray:
    return np.array(values, np.float64)


def close(result: Any, expected: Any, tolerance: float) -> None:
    np.testing.assert_allclose(host(result), expected, rtol=tolerance, atol=tolerance * 1e-3)


ALIASES = {
    "true_divide": "divide",
    "mod": "remainder",
    "pow": "power",
    "absolute": "abs",
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arctan2": "atan2",
    "arcsinh": "asinh",
    "arccosh": "acosh",
    "arctanh": "atanh",
    "conjugate": "conj",
}


@pytest.mark.parametrize(("alias", "name"), ALIASES.items())
def test_alias_is_the_same_function(alias: str, name: str) -> None:
    assert getattr(ops, alias) is getattr(ops, name)


POSITIVE = np.concatenate([np.linspace(1e-3, 12, 2001), np.geomspace(12, 1e4, 200)])
BOTH = np.linspace(-6, 6, 2001)
ORACLES = {
    "erf": (scipy.special.erf, BOTH),
    "erfc": (scipy.special.erfc, np.linspace(-6, 26.5, 2001)),
    "erfinv": (
        scipy.special.erfinv,
        np.concatenate([np.linspace(-0.9999, 0.9999, 2001), 1 - np.geomspace(1e-12, 1e-4, 50)]),
    ),
    "lgamma": (scipy.special.gammaln, np.concatenate([POSITIVE, np.linspace(-9.97, -0.03, 333)])),
    "digamma": (scipy.special.digamma, np.concatenate([POSITIVE, np.linspace(-9.97, -0.03, 333)])),
    "i0": (scipy.special.i0, np.concatenate([BOTH * 5, f64(100.0, -700.0)])),
    "cbrt": (scipy.special.cbrt, np.concatenate([BOTH, f64(1e-300, 1e300)])),
    "sinc": (np.sinc, BOTH + 1e-3),
    "exp": (np.exp, np.linspace(-708, 709, 2001)),
    "exp2": (np.exp2, np.linspace(-1000, 1000, 2001)),
    "sin": (np.sin, BOTH * 10 + 1e-3),
    "cos": (np.cos, BOTH * 10 + 1e-3),
}


@pytest.mark.parametrize("name", ORACLES)
def test_float64_is_computed_in_float64(name: str, backend: Backend) -> None:
    oracle, x = ORACLES[name]
    # Reflected values are differences of larger ones: lgamma and digamma have zeros there.
    # SciPy's own erfc is off by 6e-14 in the tail.
    tolerance = {"lgamma": 1e-12, "digamma": 1e-12, "erfc": 1e-13}.get(name, 4e-14)
    result = getattr(ops, name)(ops.asarray(x, dtype="float64"))
    np.testing.assert_allclose(host(result), oracle(x), rtol=tolerance, atol=4e-15 if name != "erfc" else 0)


RIGHT = np.pi * np.arange(-9, 10) / 2
# The first derivative, the second, and where they are compared.
DERIVATIVES = {
    "sin": (np.cos, lambda x: -np.sin(x), RIGHT),
    "cos": (lambda x: -np.sin(x), lambda x: -np.cos(x), RIGHT),
    "tan": (lambda x: 1 + np.tan(x) ** 2, lambda x: 2 * np.tan(x) * (1 + np.tan(x) ** 2), f64(0.7, -3.0, 1.57, 1e4)),
    "exp": (np.exp, np.exp, np.linspace(-740, 709, 201)),
    "log2": (lambda x: 1 / (x * np.log(2)), lambda x: -1 / (x * x * np.log(2)), POSITIVE),
    "log10": (lambda x: 1 / (x * np.log(10)), lambda x: -1 / (x * x * np.log(10)), POSITIVE),
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives_of_float64_are_computed_in_float64(name: str, backend: Backend) -> None:
    first, second, x = DERIVATIVES[name]
    once = transform.grad(lambda x: ops.sum(getattr(ops, name)(x)))
    twice = transform.grad(lambda x: ops.sum(once(x)))
    inside = ops.asarray(x, dtype="float64")
    np.testing.assert_allclose(host(once(inside)), first(x), rtol=1e-13, atol=1e-15 if x is RIGHT else 1e-322)
    np.testing.assert_allclose(host(twice(inside)), second(x), rtol=1e-13, atol=1e-15 if x is RIGHT else 1e-322)


@pytest.mark.parametrize("x", [1.0, -1.0, 3.0, 7.0, 0.25, 1e-3])
def test_the_derivative_of_sinc_is_accurate_at_its_zeros(x: float, backend: Backend) -> None:
    found = transform.grad(ops.sinc)(ops.asarray(x, dtype="float64"))
    np.testing.assert_allclose(float(found), (math.cos(math.pi * x) - np.sinc(x)) / x, rtol=1e-9)


@pytest.mark.parametrize("name", ["erf", "erfc", "erfinv", "lgamma", "digamma", "i0", "cbrt", "sinc"])
def test_float32_keeps_most_of_its_digits(name: str, backend: Backend) -> None:
    oracle, x = ORACLES[name]
    x = x[np.abs(x) < 8].astype(np.float32)
    x = x[np.abs(x) < 1] if name == "erfinv" else x
    expected = oracle(x.astype(np.float64))
    # Where the argument itself is rounded, the result near a zero or a pole can be no better.
    np.testing.assert_allclose(host(getattr(ops, name)(ops.asarray(x))), expected, rtol=2e-5, atol=4e-6)


def test_special_values_of_the_special_functions(backend: Backend) -> None:
    x = f64(nan, inf, -inf, 0.0, -1.0, 1.0)
    close(ops.erf(x), [nan, 1, -1, 0, math.erf(-1), math.erf(1)], 1e-14)
    close(ops.erfc(x), [nan, 0, 2, 1, math.erfc(-1), math.erfc(1)], 1e-14)
    close(ops.erfinv(x), [nan, nan, nan, 0, -inf, inf], 1e-14)
    close(ops.lgamma(x), [nan, inf, inf, inf, inf, 0], 1e-14)
    close(ops.digamma(x), [nan, inf, nan, -inf, nan, -np.euler_gamma], 1e-14)
    close(ops.i0(x[3:]), [1, scipy.special.i0(1), scipy.special.i0(1)], 1e-14)


def test_lgamma_is_relatively_accurate_at_its_zeros(backend: Backend) -> None:
    distance = f64(1e-3, -1e-3, 1e-6, -1e-6)
    first = f64(-np.euler_gamma, 1 - np.euler_gamma)[:, None]
    second = f64(math.pi**2 / 12, (math.pi**2 / 6 - 1) / 2)[:, None]
    third = f64(-1.2020569031595942, 1 - 1.2020569031595942)[:, None] / 3
    expected = distance * (first + distance * (second + distance * third))
    np.testing.assert_allclose(host(ops.lgamma(f64(1.0, 2.0)[:, None] + distance)), expected, rtol=2e-9)


@every_engine
@several
@given(whole, whole)
def test_integer_division_is_pythons(engine: str, x: list[int], y: list[int]) -> None:
    size = min(len(x), len(y))
    a, b = np.array(x[:size]), np.array(y[:size])
    with ember_ml.use_backend(engine):
        quotient, rest = ops.divmod(a, b)
        assert host(quotient).tolist() == [p // q if q else 0 for p, q in zip(x, y, strict=False)]
        assert host(rest).tolist() == [p % q if q else 0 for p, q in zip(x, y, strict=False)]
        expected = [int(math.fmod(p, q)) if q else 0 for p, q in zip(x, y, strict=False)]
        assert host(ops.fmod(a, b)).tolist() == expected


@every_engine
@several
@given(st.lists(st.tuples(st.floats(-1e6, 1e6), divisors), min_size=1, max_size=8))
def test_remainders_and_whole_quotients_of_floats_are_numpys(engine: str, pairs: list[tuple[float, float]]) -> None:
    x, y = np.array(pairs).T
    with np.errstate(all="ignore"):
        expected = np.floor(np.divide(x, y)), np.remainder(x, y), np.fmod(x, y), *np.divmod(x, y)
    with ember_ml.use_backend(engine):
        results = ops.floor_divide(x, y), ops.remainder(x, y), ops.fmod(x, y), *ops.divmod(x, y)
    for result, wanted in zip(results, expected, strict=True):
        np.testing.assert_array_equal(host(result), wanted)


SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 0.1, -0.1, 0.7, -3.5, 7.0, 3e4, 1e-7, np.inf, -np.inf, np.nan])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_floor_divide_is_the_floor_of_the_quotient(backend: Backend, dtype: str) -> None:
    x, y = (part.ravel() for part in np.meshgrid(SPECIAL.astype(dtype), SPECIAL.astype(dtype)))
    same_bits(ops.floor_divide(x, y), np.floor(np.divide(x, y)))
    for number in (2.0, 0.1, -0.1, 0.0, 3, 0):
        same_bits(ops.floor_divide(x, number), np.floor(np.divide(x, np.array(number, dtype))))
        same_bits(ops.remainder(x, number), np.remainder(x, np.array(number, dtype)))
    # A whole quotient and its rest belong together, as Python's do; a quotient rounded down may be one too many.
    tenth = np.array(0.1, dtype)
    quotient, rest = ops.divmod(np.ones((), dtype), tenth)
    assert (float(quotient), float(rest)) == tuple(map(float, np.divmod(np.ones((), dtype), tenth)))


def test_the_gradient_of_a_remainder_is_one_at_zeros_too(backend: Backend) -> None:
    x = ops.convert_to_tensor([-4.0, 0.0, -0.0, 4.0, 1.0, -1.0])
    for divisor, whole in ((4.0, [-1, 0, 0, 1, 0, -1]), (-4.0, [1, 0, 0, -1, -1, 0])):
        by_x, by_y = ember_ml.grad(lambda x, y: ops.sum(ops.remainder(x, y)), argnums=(0, 1))(x, ops.full(6, divisor))
        assert host(by_x).tolist() == [1.0] * 6
        assert host(by_y).tolist() == [-float(w) for w in whole]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_integers_by_numbers(backend: Backend, dtype: str) -> None:
    x = np.array([0, 1, 7, 100], dtype)
    for number in (0, 1, 2, 127):
        wanted = [int(v) // number if number else 0 for v in x], [int(v) % number if number else 0 for v in x]
        results = ops.floor_divide(x, number), ops.remainder(x, number)
        assert tuple(host(a).tolist() for a in results) == wanted
        assert all(host(a).dtype == dtype for a in results)
    assert host(ops.power(np.array([0, 1, 3], dtype), 2)).tolist() == [0, 1, 9]


def test_smallest_integer_by_minus_one_wraps(backend: Backend) -> None:
    for dtype in ("int8", "int16", "int32", "int64"):
        low = np.array([np.iinfo(dtype).min], dtype)
        one = np.array([-1], dtype)
        assert host(ops.floor_divide(low, one)).tolist() == low.tolist()
        assert host(ops.remainder(low, one)).tolist() == [0]


def test_negative_powers_of_integers(backend: Backend) -> None:
    assert host(ops.power([-2, -1, 0, 1, 2], -1)).tolist() == [0, -1, 0, 1, 0]
    assert host(ops.power([-2, -1, 0, 1, 2], [-2, -2, -2, -2, -2])).tolist() == [0, 1, 0, 1, 0]


@every_engine
@several
@given(st.lists(st.tuples(singles, singles), min_size=1, max_size=8))
def test_bits_are_exact(engine: str, pairs: list[tuple[float, float]]) -> None:
    x, y = np.array(pairs, np.float32).T
    with ember_ml.use_backend(engine):
        same_bits(ops.nextafter(x, y), np.nextafter(x, y))
        same_bits(ops.copysign(x, y), np.copysign(x, y))
        np.testing.assert_array_equal(host(ops.signbit(x)), np.signbit(x))
        mantissa, exponent = ops.frexp(x)
        finite = np.isfinite(x)
        expected = np.frexp(x)
        same_bits(mantissa, expected[0])
        np.testing.assert_array_equal(host(exponent)[finite], expected[1][finite])


def same_bits(result: Any, expected: np.ndarray) -> None:
    """Fail unless two arrays have the same bits; any NaN equals any other."""
    result, known = host(result), ~np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(result), ~known)
    kind = f"i{expected.dtype.itemsize}"
    np.testing.assert_array_equal(result[known].view(kind), expected[known].view(kind))


@every_engine
@several
@given(st.lists(st.tuples(st.floats(), st.integers(-2300, 2300)), min_size=1, max_size=8))
def test_ldexp_rounds_once(engine: str, pairs: list[tuple[float, int]]) -> None:
    x, n = np.array([p[0] for p in pairs]), np.array([p[1] for p in pairs])
    with np.errstate(all="ignore"):
        for dtype in (np.float64, np.float32):
            expected = np.ldexp(x.astype(dtype), n)
            with ember_ml.use_backend(engine):
                same_bits(ops.ldexp(x.astype(dtype), n), expected)


@every_engine
@several
@given(st.lists(st.tuples(st.integers(-(2**62), 2**62), st.integers(-(2**62), 2**62)), min_size=1, max_size=4))
def test_gcd_is_euclids(engine: str, pairs: list[tuple[int, int]]) -> None:
    x, y = np.array(pairs).T
    with ember_ml.use_backend(engine):
        assert host(ops.gcd(x, y)).tolist() == [math.gcd(a, b) for a, b in pairs]


@every_engine
@several
@given(st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=8), st.integers(1, 5))
def test_integers_round_half_to_even(engine: str, x: list[int], digits: int) -> None:
    with ember_ml.use_backend(engine):
        assert host(ops.round(np.array(x), -digits)).tolist() == [round(value, -digits) for value in x]


EXTREME = [2**31, -(2**31), 2**63, -(2**63), 10**30, -(10**30), 400, -400, 60, -60]


@pytest.mark.parametrize("decimals", EXTREME)
def test_any_number_of_decimals(backend: Backend, decimals: int) -> None:
    for dtype in map(as_dtype, backend.dtypes):
        if dtype.kind == "bool":
            continue
        numbers = [0, 1, 5, 100, 7] if "integer" in dtype.kind else [0.0, -1.5, 2.75, 65504.0, 1e-5]
        if dtype.kind == "complex floating":
            numbers = [complex(number, -number) for number in numbers]
        x = ops.asarray(numbers, dtype=dtype)
        # Numbers of 64 bits go up to 1e308, so that 60 decimals are few for them.
        expected = x if decimals > 0 else ops.zeros_like(x)
        assert host(ops.round(x, decimals)).tolist() == host(expected).tolist(), dtype.name


@pytest.mark.filterwarnings("error")
def test_decimals_at_the_ends_of_a_dtype(backend: Backend) -> None:
    largest = [3.4e38, -3.4e38, 1e30, 1.25]
    for decimals in (1, 8, 30, 38, 39, 45):
        x = ops.asarray(largest[:3], dtype="float32")
        assert ops.round(x, decimals).tolist() == x.tolist()
    x = ops.asarray(largest, dtype="float32")
    assert ops.round(x, -38).tolist() == ops.asarray([3e38, -3e38, 0.0, 0.0], dtype="float32").tolist()
    assert ops.round(x, -39).tolist() == [0.0] * 4
    x = ops.asarray([1.4e308, -1e300, 1e-300], dtype="float64")
    assert ops.round(x, 309).tolist() == x.tolist()
    close(ops.round(x, 300), [1.4e308, -1e300, 1e-300], 1e-15)
    assert ops.round(x, 299).tolist() == [1.4e308, -1e300, 0.0]
    assert ops.round(x, -308).tolist() == [1e308, 0.0, 0.0]
    assert ops.round(x, -309).tolist() == [0.0, 0.0, 0.0]
    special = ops.asarray([inf, -inf, nan])
    for decimals in (*EXTREME, 2, -2):
        assert str(ops.round(special, decimals).tolist()) == "[inf, -inf, nan]"
    part = ops.asarray([complex(inf, 1.26), complex(1.26, nan)])
    assert str(ops.round(part, 1).tolist()).replace("1.2999999523162842", "1.3") == "[(inf+1.3j), (1.3+nanj)]"


@pytest.mark.parametrize("decimals", [2, -2, 10**9, -(10**9)])
def test_rounding_has_the_gradient_zero(backend: Backend, decimals: int) -> None:
    x = ops.asarray([1.234, -567.8, 1e30])
    assert transform.grad(lambda x: ops.sum(ops.round(x, decimals)))(x).tolist() == [0.0, 0.0, 0.0]


def test_gradient_is_numpys(backend: Backend) -> None:
    f = np.random.default_rng(0).normal(size=(5, 6, 4))
    rows = np.cumsum(np.random.default_rng(1).uniform(0.5, 1.5, 6))
    for given_, options in [
        ((), {}),
        ((2.0,), {"edge_order": 2}),
        ((rows,), {"axis": 1}),
        ((rows,), {"axis": 1, "edge_order": 2}),
        ((0.5, rows, 3.0), {"edge_order": 2}),
        ((0.5, rows), {"axis": (2, 1)}),
    ]:
        expected, result = np.gradient(f, *given_, **options), ops.gradient(f, *given_, **options)
        pairs = zip(result, expected, strict=True) if isinstance(expected, tuple) else [(result, expected)]
        for mine, theirs in pairs:
            close(mine, theirs, 1e-11)


def test_diff_trapezoid_interp_and_polyval_are_numpys(backend: Backend) -> None:
    rng = np.random.default_rng(0)
    y, x = rng.normal(size=(3, 5, 4)), np.sort(rng.normal(size=5))
    close(ops.diff(y, n=2, axis=1, prepend=y[:, :2]), np.diff(y, n=2, axis=1, prepend=y[:, :2]), 1e-12)
    close(ops.trapezoid(y, x, axis=1), np.trapezoid(y, x, axis=1), 1e-12)
    close(ops.trapezoid(y, y + 1), np.trapezoid(y, y + 1), 1e-12)
    close(ops.interp(y, x, x**2), np.interp(y, x, x**2), 1e-12)
    close(ops.interp(y, x, x**2, period=0.75), np.interp(y, x, x**2, period=0.75), 1e-11)
    close(ops.polyval(x, y), np.polyval(x, y), 1e-12)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "complex64"])
def test_convolve_and_correlate_are_numpys(mode: str, dtype: str, backend: Backend) -> None:
    rng = np.random.default_rng(0)
    rows = [
        (rng.normal(size=n) * 4 + (1j * rng.normal(size=n) if dtype == "complex64" else 0)).astype(dtype)
        for n in range(1, 7)
    ]
    for a in rows:
        for v in rows:
            for mine, theirs in ((ops.convolve, np.convolve), (ops.correlate, np.correlate)):
                result = host(mine(a, v, mode))
                assert result.dtype == a.dtype
                np.testing.assert_allclose(result, theirs(a, v, mode), rtol=1e-4, atol=1e-4)


def test_logsumexp_of_large_numbers(backend: Backend) -> None:
    x = np.random.default_rng(0).normal(size=(4, 5)) * 300
    close(ops.logsumexp(x, axis=0), scipy.special.logsumexp(x, axis=0), 1e-13)
    close(ops.logsumexp(x), scipy.special.logsumexp(x), 1e-13)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_lerp_is_its_formula_in_every_step(dtype: str, backend: Backend) -> None:
    x = ops.asarray([1e4, 1.0, 1.0, -math.inf, math.nan, 0.3], dtype=dtype)
    y = ops.asarray([-1.75, math.inf, -math.inf, 2.0, 1.0, 0.7], dtype=dtype)
    a, b = host(x), host(y)
    for weight in (0.0, 0.3, 0.5, 0.7, 1.0, -2.0):
        with np.errstate(invalid="ignore"):
            expected = a + np.asarray(weight, a.dtype) * (b - a)
        np.testing.assert_array_equal(host(ops.lerp(x, y, weight)).astype(float), expected.astype(float))
    assert ops.lerp([1.0], math.inf, 1.0).tolist() == [math.inf]


def test_complex_infinities_keep_the_other_part(backend: Backend) -> None:
    z = complex(math.nan, math.inf)
    assert ops.nan_to_num([z], nan=2.0, posinf=math.inf).tolist() == [complex(2.0, math.inf)]
    assert ops.expm1([500 + 300j]).tolist() == [complex(-math.inf, -math.inf)]


@pytest.mark.parametrize(
    ("name", "z", "expected"),
    [
        ("exp", complex(inf, nan), complex(inf, nan)),
        ("exp", complex(-inf, nan), 0j),
        ("expm1", complex(inf, inf), complex(inf, nan)),
        ("log", complex(-inf, nan), complex(inf, nan)),
        ("log", complex(nan, inf), complex(inf, nan)),
        ("log1p", complex(inf, nan), complex(inf, nan)),
        ("sqrt", complex(-inf, nan), complex(nan, inf)),
        ("sqrt", complex(inf, nan), complex(inf, nan)),
        ("sinh", complex(0, inf), complex(0, nan)),
        ("sinh", complex(inf, nan), complex(inf, nan)),
        ("cosh", complex(0, nan), complex(nan, 0)),
        ("cosh", complex(inf, inf), complex(inf, nan)),
        ("tanh", complex(0, nan), complex(0, nan)),
        ("acos", complex(0, nan), complex(math.pi / 2, nan)),
        ("acosh", complex(0, nan), complex(nan, math.pi / 2)),
        ("asinh", complex(nan, 0), complex(nan, 0)),
        ("atanh", complex(0, nan), complex(0, nan)),
        ("atanh", complex(inf, nan), complex(0, nan)),
        ("atanh", complex(1, nan), complex(nan, nan)),
        ("atanh", complex(nan, inf), complex(0, math.pi / 2)),
    ],
)
def test_one_part_is_known_where_the_other_is_not(name: str, z: complex, expected: complex, backend: Backend) -> None:
    """Special cases of the array API standard. The sign of what is infinite or zero may be either one."""
    found = ops.asarray(getattr(ops, name)(ops.asarray([z]))).tolist()[0]
    for got, part in ((found.real, expected.real), (found.imag, expected.imag)):
        assert abs(got) == pytest.approx(part, nan_ok=True)


def test_the_sign_of_zero_is_zero(backend: Backend) -> None:
    signs = ops.to_numpy(ops.sign(ops.asarray([-0.0, 0.0])))
    assert not np.signbit(signs).any()


def test_complex_numbers_have_no_order(backend: Backend) -> None:
    for operation in (ops.maximum, ops.minimum, ops.fmax, ops.floor_divide, ops.remainder, ops.hypot, ops.atan2):
        with pytest.raises(TypeError):
            operation([1 + 2j], [1.0])
    for operation in (ops.floor, ops.clip, ops.signbit, ops.erf):
        with pytest.raises(TypeError):
            operation([1 + 2j])


def test_float_power_is_double(backend: Backend) -> None:
    result = ops.float_power(np.float32([2.0, 3.0]), 0.5)
    close(result, np.sqrt([2.0, 3.0]), 1e-15)
    if "complex128" in backend.dtypes:
        assert host(ops.float_power([1 + 2j], 2)).dtype == np.complex128
    else:
        with pytest.raises(UnsupportedError):
            ops.float_power([1 + 2j], 2)


def test_wrong_values_are_value_errors(backend: Backend) -> None:
    for wrong in (
        lambda: ops.convolve([1.0], [2.0], mode="whole"),
        lambda: ops.correlate([[1.0]], [2.0]),
        lambda: ops.convolve([1.0], []),
        lambda: ops.interp([1.0], [0.0, 1.0], [0.0]),
        lambda: ops.interp([1.0], [], []),
        lambda: ops.interp([1.0], [0.0], [0.0], period=0.0),
        lambda: ops.gradient([1.0]),
        lambda: ops.gradient([1.0, 2.0], edge_order=2),
        lambda: ops.gradient([1.0, 2.0, 3.0], edge_order=3),
        lambda: ops.gradient([1.0, 2.0, 3.0], [1.0, 2.0]),
        lambda: ops.gradient([[1.0, 2.0], [3.0, 4.0]], axis=(0, 0)),
        lambda: ops.diff([1.0, 2.0], n=-1),
        lambda: ops.diff([[1.0, 2.0]], prepend=[1.0]),
        lambda: ops.add([1.0, 2.0], [1.0, 2.0, 3.0]),
    ):
        with pytest.raises(ValueError):  # noqa: PT011 - the message is the engine's own
            wrong()
    with pytest.raises(TypeError):
        ops.gradient([[1.0, 2.0], [3.0, 4.0]], 1.0, 1.0, 1.0)


def test_integers_are_not_exponents_when_they_are_floats(backend: Backend) -> None:
    with pytest.raises(TypeError):
        ops.ldexp([1.0], [2.0])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_gradient_of_logsumexp_with_infinities(backend: Backend, dtype: str) -> None:
    """The gradient of a finite term is zero next to an infinite one; next to NaN it is no made-up number."""
    for row in ([np.inf, 0.5, 0.0], [np.nan, 0.0, 1.0], [-np.inf, 0.0, 0.0]):
        gradient = ops.to_numpy(transform.grad(lambda x: ops.logsumexp(x))(ops.asarray(row, dtype=dtype)))
        finite = gradient[np.isfinite(gradient)]
        assert ((finite >= 0) & (finite <= 1)).all()
        assert np.isfinite(gradient).all() == np.isfinite(np.logaddexp.reduce(row))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_expm1_keeps_the_sign_of_zero(backend: Backend, dtype: str) -> None:
    x = ops.asarray([-0.0, 0.0], dtype=dtype)
    assert math.copysign(1.0, ops.expm1(-0.0).item()) == -1.0
    for found in (ops.expm1(x), transform.vjp(ops.expm1, x)[0]):
        assert np.signbit(host(ops.cast(found, "float32"))).tolist() == [True, False]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_logsumexp_keeps_dimensions_in_any_precision(backend: Backend, dtype: str) -> None:
    x = ops.asarray([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]], dtype=dtype)
    for axis, shape in ((None, (1, 1)), (0, (1, 2)), (-1, (3, 1)), ((0, 1), (1, 1))):
        kept = ops.logsumexp(x, axis=axis, keepdims=True)
        assert tuple(kept.shape) == shape
        assert ops.dtype(kept).name == dtype
        assert ops.reshape(kept, (-1,)).tolist() == ops.reshape(ops.logsumexp(x, axis=axis), (-1,)).tolist()
