"""What the contract cannot say of comparison and logic: other libraries agree, results stay lazy, errors are errors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import ember_ml
from ember_ml import ops
from ember_ml.backend import Backend
from ember_ml.testing.comparison import host

NAN, INF = math.nan, math.inf
RNG = np.random.default_rng(11)
NUMBERS = np.asarray([-INF, -1.5, -0.0, 0.0, 1e-9, 1.0, 1.00001, INF, NAN], np.float32)
LEFT, RIGHT = NUMBERS[:, None], NUMBERS[None, :]

PAIRS = ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"]
LOGIC = ["logical_and", "logical_or", "logical_xor"]
SINGLES = ["isnan", "isinf", "isfinite", "isposinf", "isneginf", "isreal", "logical_not"]


@pytest.mark.parametrize("name", PAIRS + LOGIC)
def test_every_pair_of_special_values_is_numpy(backend: Backend, name: str) -> None:
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(host(getattr(ops, name)(LEFT, RIGHT)), getattr(np, name)(LEFT, RIGHT))


@pytest.mark.parametrize("name", SINGLES)
def test_every_special_value_is_numpy(backend: Backend, name: str) -> None:
    np.testing.assert_array_equal(host(getattr(ops, name)(NUMBERS)), getattr(np, name)(NUMBERS))


@pytest.mark.parametrize("equal_nan", [False, True])
@pytest.mark.parametrize("tolerances", [(1e-5, 1e-8), (0.0, 0.0), (0.0, 1e-6), (0.5, 0.0)])
def test_closeness_is_numpy(backend: Backend, tolerances: tuple[float, float], equal_nan: bool) -> None:
    expected = np.isclose(LEFT, RIGHT, *tolerances, equal_nan=equal_nan)
    np.testing.assert_array_equal(host(ops.isclose(LEFT, RIGHT, *tolerances, equal_nan=equal_nan)), expected)
    assert bool(ops.allclose(LEFT, RIGHT, *tolerances, equal_nan)) == expected.all()


def test_closeness_is_relative_to_the_second(backend: Backend) -> None:
    assert bool(ops.isclose(100.0, 110.0, rtol=0.0953))
    assert not bool(ops.isclose(110.0, 100.0, rtol=0.0953))


def test_closeness_of_integers_is_exact(backend: Backend) -> None:
    assert not bool(ops.isclose([2**24], [2**24 + 1], rtol=0.0, atol=0.5))
    assert bool(ops.isclose(ops.asarray([0], dtype="uint8"), ops.asarray([1], dtype="uint8"), atol=1.0))


@pytest.mark.parametrize("name", ["allclose", "array_equal"])
def test_verdicts_are_tensors_without_axes(backend: Backend, name: str) -> None:
    for other in ([1.0, 2.0], [1.0, 3.0]):
        verdict = getattr(ops, name)([1.0, 2.0], other)
        assert isinstance(verdict, backend.tensors)
        assert tuple(verdict.shape) == ()
        assert ops.get_dtype(verdict) == "bool"
        assert bool(verdict) == (other == [1.0, 2.0])


def test_tensors_of_different_shapes_are_not_equal(backend: Backend) -> None:
    assert not bool(ops.array_equal([1.0], [1.0, 1.0]))
    assert not bool(ops.array_equal(1.0, [1.0]))
    assert not bool(ops.array_equal([NAN], [NAN]))
    assert bool(ops.array_equal([NAN], [NAN], equal_nan=True))


def test_shapes_that_do_not_broadcast_are_value_errors(backend: Backend) -> None:
    for name in (*PAIRS, *LOGIC, "isclose", "allclose"):
        with pytest.raises(ValueError):  # noqa: PT011 - the message is the engine's own
            getattr(ops, name)([1.0, 2.0], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError):  # noqa: PT011
        ops.where([True, False], [1.0, 2.0, 3.0], 0.0)


def test_complex_numbers_have_no_order(backend: Backend) -> None:
    for name in PAIRS[2:]:
        with pytest.raises(TypeError):
            getattr(ops, name)([1j], [2.0])


def test_choices_and_conditions_come_in_pairs(backend: Backend) -> None:
    for conditions, choices in ([], []), ([[True]], [[1], [2]]):
        with pytest.raises(ValueError, match="select: condlist and choicelist must have the same length, got"):
            ops.select(conditions, choices)


def test_selection_is_numpy(backend: Backend) -> None:
    x = np.arange(12).reshape(3, 4)
    conditions, choices = [x < 3, x > 5, x > 1], [x, x**2, x * 0 - 1]
    np.testing.assert_array_equal(host(ops.select(conditions, choices, 42)), np.select(conditions, choices, 42))


def test_a_choice_by_truth_keeps_the_other_branch_out(backend: Backend) -> None:
    chosen = host(ops.where([True, False], [1.0, NAN], [INF, 2.0]))
    assert chosen.tolist() == [1.0, 2.0]


def test_a_python_number_does_not_widen_a_choice(backend: Backend) -> None:
    for dtype in ("int8", "float16", "bfloat16", "float32"):
        assert ops.get_dtype(ops.where([True], ops.ones((1,), dtype=dtype), 0)) == dtype
        assert ops.get_dtype(ops.where([True], 0, ops.ones((1,), dtype=dtype))) == dtype


def test_membership_is_numpy(backend: Backend) -> None:
    for x, members in [
        (RNG.integers(0, 50, (6, 7)), RNG.integers(0, 50, 20)),
        (RNG.integers(0, 5, (6, 7)).astype(np.float32), RNG.integers(0, 9, 4).astype(np.float32)),
        (NUMBERS, NUMBERS),
        (NUMBERS, NUMBERS[:0]),
    ]:
        for invert in (False, True):
            result = host(ops.isin(x, members, invert=invert))
            np.testing.assert_array_equal(result, np.isin(x, members, invert=invert))


def test_members_may_be_a_turned_matrix(backend: Backend) -> None:
    members = ops.matrix_transpose(ops.asarray([[1, 2, 3], [4, 5, 6]]))
    for x in (members, ops.asarray([0, 2, 6, 7]), ops.asarray(4)):
        np.testing.assert_array_equal(host(ops.isin(x, members)), np.isin(host(x), host(members)))


@settings(max_examples=25, deadline=None)
@given(
    x=hnp.arrays(np.int32, hnp.array_shapes(max_dims=2, max_side=6), elements=st.integers(-3, 3)),
    members=hnp.arrays(np.int32, st.integers(0, 6), elements=st.integers(-3, 3)),
)
def test_engines_agree(x: np.ndarray, members: np.ndarray) -> None:
    for engine in ember_ml.get_available_backends():
        with ember_ml.use_backend(engine):
            np.testing.assert_array_equal(host(ops.isin(ops.asarray(x), ops.asarray(members))), np.isin(x, members))
            np.testing.assert_array_equal(host(ops.all(ops.asarray(x), axis=-1)), np.all(x, axis=-1))
            np.testing.assert_array_equal(host(ops.any(ops.asarray(x), axis=0)), np.any(x, axis=0))
