"""Picking, placing, searching, sorting and counting, against NumPy's own functions and plain loops."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import ember_ml
from ember_ml import nn, ops, transform, unchecked
from ember_ml.testing.comparison import host

quick = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

floats = st.floats(-4, 4, width=16) | st.just(float("nan")) | st.just(float("inf"))
arrays = hnp.arrays(np.float32, hnp.array_shapes(min_dims=1, max_dims=3, max_side=5), elements=floats)
lines = hnp.arrays(np.float32, st.integers(0, 12), elements=floats)
shapes = hnp.array_shapes(min_dims=1, max_dims=3, max_side=4)


def same(result: Any, expected: Any) -> None:
    """Fail unless the values are equal; NaN equals NaN."""
    np.testing.assert_array_equal(host(result), expected)


@quick
@given(x=arrays, data=st.data())
def test_sort_and_argsort(backend: object, x: np.ndarray, data: st.DataObject) -> None:
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    same(ops.sort(x, axis=axis), np.sort(x, axis=axis))
    same(ops.argsort(x, axis=axis), np.argsort(x, axis=axis, kind="stable"))
    falling = np.argsort(np.where(np.isnan(x), -np.inf, np.where(np.isposinf(x), -1e9, -x)), axis=axis, kind="stable")
    same(ops.argsort(x, axis=axis, descending=True), falling)
    same(ops.sort(x, axis=axis, descending=True), np.take_along_axis(x, falling, axis))


@quick
@given(x=arrays)
def test_extremes(backend: object, x: np.ndarray) -> None:
    for axis in (None, *range(x.ndim)):
        same(ops.argmax(x, axis=axis), np.argmax(x, axis=axis))
        same(ops.argmin(x, axis=axis), np.argmin(x, axis=axis))


@quick
@given(x1=lines, x2=lines)
def test_searches(backend: object, x1: np.ndarray, x2: np.ndarray) -> None:
    ordered = np.sort(x1)
    for side in ("left", "right"):
        same(ops.searchsorted(ordered, x2, side=side), np.searchsorted(ordered, x2, side=side))
        same(ops.searchsorted(x1, x2, side=side, sorter=np.argsort(x1)), np.searchsorted(ordered, x2, side=side))


@quick
@given(x=lines)
def test_unique(backend: object, x: np.ndarray) -> None:
    for found, expected in zip(ops.unique(x, True, True, True), np.unique(x, True, True, True), strict=True):
        same(found, expected)
    for found, expected in zip(ops.unique_all(x), np.unique_all(x), strict=True):
        same(found, expected)


@quick
@given(x1=lines, x2=lines)
def test_sets(backend: object, x1: np.ndarray, x2: np.ndarray) -> None:
    same(ops.union1d(x1, x2), np.union1d(x1, x2))
    same(ops.setdiff1d(x1, x2), np.setdiff1d(x1, x2))
    same(ops.intersect1d(x1, x2), np.intersect1d(x1[~np.isnan(x1)], x2[~np.isnan(x2)]))


@quick
@given(shape=shapes, data=st.data())
def test_index_update_is_assignment(backend: object, shape: tuple[int, ...], data: st.DataObject) -> None:
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    index = data.draw(
        hnp.basic_indices(shape, allow_newaxis=True)
        | hnp.integer_array_indices(shape)
        | hnp.arrays(bool, shape[: data.draw(st.integers(1, len(shape)))])
    )
    values = -1 - np.arange(x[index].size, dtype=np.float32).reshape(x[index].shape)
    assigned, added = x.copy(), x.copy()
    assigned[index] = values
    np.add.at(added, index, values)
    same(ops.index_update(x, index, values), assigned)
    same(ops.index_add(x, index, values), added)


@quick
@given(shape=shapes, data=st.data())
def test_mixed_indices(backend: object, shape: tuple[int, ...], data: st.DataObject) -> None:
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    parts = [data.draw(st.sampled_from(["all", "turned", "int", "array", "mask", "new"])) for _ in shape]
    axes = iter(shape)
    index: list[Any] = []
    for part in parts:
        size = 0 if part == "new" else next(axes)
        drawn = {
            "all": slice(None),
            "turned": slice(None, None, -1),
            "int": -1,
            "array": np.array([size - 1, 0, size - 1]),
            "mask": np.arange(size) % 2 == 0,
            "new": None,
        }
        index.append(drawn[part])
    key = tuple(index)
    assume(sum(isinstance(part, np.ndarray) and part.dtype == bool for part in key) < 2)
    try:
        x[key]
    except IndexError:  # a mask with another number of places than the other tensors
        assume(False)
    values = -1 - np.arange(x[key].size, dtype=np.float32).reshape(x[key].shape)
    assigned, added = x.copy(), x.copy()
    assigned[key] = values
    np.add.at(added, key, values)
    same(ops.index_update(x, key, values), assigned)
    same(ops.index_add(x, key, values), added)


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3), (0, 0)])
def test_an_empty_mask_selects_nothing(shape: tuple[int, ...], backend: object) -> None:
    """Where it has no length, it fits any, as in NumPy."""
    x, mask = np.arange(6, dtype=np.float32).reshape(2, 3), np.zeros(shape, bool)
    same(ops.index_get(x, mask), x[mask])
    same(ops.index_update(x, mask, 9.0), x)
    same(ops.index_add(x, mask, 9.0), x)
    for wrong in ((3, 0), (0, 2)):
        with pytest.raises(IndexError):
            ops.index_update(x, np.zeros(wrong, bool), 9.0)


def test_one_row_added_at_a_table_of_places(backend: object) -> None:
    """NumPy's ``add.at`` reads beyond a row of values that its table of places repeats."""
    places = np.array([[0, 2], [2, 2], [-3, 1]])
    for row in (np.array([1.0, 10.0], np.float32), np.array([5.0], np.float32)):
        expected = np.bincount(places.ravel() % 3, np.broadcast_to(row, places.shape).ravel(), minlength=3)
        for key in (places, (places,), (..., places), (None, places)):
            same(ops.index_add(np.zeros(3, np.float32), key, row), expected)
        same(nn.tensor.EmberTensor(ops.zeros(3)).at[places].add(row), expected)


@pytest.mark.parametrize("key", [np.s_[-6::-3], np.s_[-5::-1], np.s_[3:1], np.s_[9:], np.s_[[]], np.s_[None, -6::-3]])
def test_gradients_of_an_update_of_nothing(backend: object, key: Any) -> None:
    x, values = np.arange(4, dtype=np.float32), np.zeros((0,), np.float32)
    for update in (ops.index_update, ops.index_add):
        gradients = transform.grad(lambda x, v, update=update: ops.sum(update(x, key, v) * x), argnums=(0, 1))(
            ops.asarray(x), ops.asarray(values)
        )
        same(gradients[0], 2 * x)
        same(gradients[1], values)


SINGLE_BOOLS = (True, np.False_, np.array(True))
OTHERS = (True, None, ..., 1, slice(1, 2), slice(None, None, -1), np.array([1, 0]), np.array([True, False]))
KEYS = [
    *SINGLE_BOOLS, *((single,) for single in SINGLE_BOOLS),
    *(key for single in SINGLE_BOOLS for other in OTHERS for key in ((single, other), (other, single))),
    *itertools.permutations((False, ..., 0, None)), *itertools.permutations((True, slice(None), 1, np.array([1, 0]))),
    (1, ..., True, True), (True, 0, False, 0), (0, slice(None), np.True_, -1),
]  # fmt: skip


def outcome(call: Callable[[], Any]) -> Any:
    """What a call returns, as a host array, or the class of its error."""
    try:
        return host(call())
    except (IndexError, TypeError, ValueError) as error:
        return type(error)


@pytest.mark.parametrize("shape", [(2, 3, 2), (2, 0, 2), (2, 2), ()])
def test_single_bools_in_an_index(backend: Any, shape: tuple[int, ...]) -> None:
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    for key in KEYS:
        native = tuple(
            backend.convert(part, None, backend.device) if isinstance(part, np.ndarray) else part
            for part in (key if isinstance(key, tuple) else (key,))
        )
        expected = outcome(lambda key=key: x[key])
        values = -1.0 if isinstance(expected, type) else -1 - np.arange(expected.size).reshape(expected.shape)
        values = np.asarray(values, np.float32)

        def assigned(key: Any = key, values: Any = values) -> Any:
            result = x.copy()
            result[key] = values
            return result

        def added(key: Any = key, values: Any = values) -> Any:
            result = x.copy()
            np.add.at(result, key, values)
            return result

        for index in (key, native):
            for result, wanted in (
                (outcome(lambda index=index: ops.index_get(x, index)), expected),
                (outcome(lambda index=index, values=values: ops.index_update(x, index, values)), outcome(assigned)),
                (outcome(lambda index=index, values=values: ops.index_add(x, index, values)), outcome(added)),
            ):
                if isinstance(wanted, type):
                    assert result is wanted, key
                else:
                    assert result.shape == wanted.shape, key
                    same(result, wanted)


def test_single_bools_in_the_key_of_a_portable_tensor(backend: object) -> None:
    x = nn.tensor.asarray([[1.0, 2.0], [3.0, 4.0]])
    assert x[True, 0].tolist() == [[1.0, 2.0]]
    assert x[None, np.True_].shape == (1, 1, 2, 2)
    assert x[nn.tensor.asarray(False)].shape == (0, 2, 2)
    assert x[..., x.sum() > 0, 1:2].shape == (2, 1, 1)
    x[True, 0] = 9
    x[False] = 7
    x[x[1, 1] > 3, 1, 1] = 5
    assert x.tolist() == [[9.0, 9.0], [3.0, 5.0]]


def test_gradients_flow_through_single_bools(backend: object) -> None:
    def some(x: Any) -> Any:
        return ops.sum(ops.multiply(ops.index_get(x, (True, 0)), ops.index_get(x, (True, 1))))

    x = ops.asarray([[1.0, 2.0], [3.0, 4.0]])
    same(transform.grad(some)(x), [[3.0, 4.0], [1.0, 2.0]])


def test_indices_are_checked_where_there_are_no_elements(backend: object) -> None:
    x, far = ops.ones((2, 0)), [5]
    for wrong in (
        lambda: ops.index_get(x, far), lambda: ops.index_get(ops.ones((0, 3)), (slice(None), far)),
        lambda: ops.take(x, far, axis=0), lambda: ops.index_update(x, far, 1.0), lambda: ops.index_add(x, far, 1.0),
        lambda: ops.scatter_add(x, far, ops.ones((1, 0))), lambda: ops.scatter_max(x, far, ops.ones((1, 0))),
        lambda: ops.segment_sum(x, [0, 7], 2), lambda: ops.segment_max(x, [0, 7], 2), lambda: ops.gather_nd(x, [far]),
        lambda: ops.index_get(ops.ones((0, 3)), far), lambda: ops.segment_sum(ops.ones((2, 1)), [0, 1], 0),
    ):  # fmt: skip
        with pytest.raises(IndexError):
            wrong()


def test_coordinates_are_integers_and_their_places_int64(backend: Any) -> None:
    for dtype in ("int8", "uint8", "int32", "int64"):
        rows, columns = (ops.cast(ops.asarray(x), dtype) for x in ([100, 1], [100, 2]))
        found = ops.ravel_multi_index((rows, columns), (101, 120))
        assert ops.get_dtype(found) == "int64"
        same(found, [12100, 122])
    for dtype in ("bool", "float32"):
        with pytest.raises(TypeError, match="integers"):
            ops.ravel_multi_index((ops.ones(2, dtype=dtype), ops.ones(2, dtype=dtype)), (2, 3))


def test_where_a_block_begins(backend: object) -> None:
    x = np.arange(6).reshape(2, 3)
    same(ops.slice([1, 2, 3], 1, (2,)), [2, 3])
    for start in (range(2), [0, 1], np.array([0, 1]), (np.int64(0), 1)):
        same(ops.slice(x, start, (2, 2)), x[:, 1:])
        same(ops.slice_update(x, start, [[7], [8]]), [[0, 7, 2], [3, 8, 5]])


MODES = {
    "set": lambda old, new: new[-1],
    "add": lambda old, new: old + new.sum(0),
    "multiply": lambda old, new: old * new.prod(0),
    "max": lambda old, new: np.maximum(old, new.max(0)),
    "min": lambda old, new: np.minimum(old, new.min(0)),
    "mean": lambda old, new: new.mean(0),
}


@pytest.mark.parametrize("mode", MODES)
def test_scatter_is_its_formula(backend: object, mode: str) -> None:
    rng = np.random.default_rng(5)
    x = rng.integers(-4, 5, (7, 3)).astype(np.float32)
    indices = rng.integers(-7, 7, 40)
    updates = rng.choice([-1.0, 1.0, 2.0], (40, 3)).astype(np.float32)
    expected = x.copy()
    for i in range(7):
        hits = indices % 7 == i
        if hits.any():
            expected[i] = MODES[mode](x[i], updates[hits])
    np.testing.assert_allclose(host(ops.scatter(x, indices, updates, mode=mode)), expected, rtol=1e-6)
    np.testing.assert_allclose(host(ops.scatter(x.T, indices, updates.T, axis=1, mode=mode)), expected.T, rtol=1e-6)


def test_the_last_of_many_updates_stands(backend: object) -> None:
    count = 100_000
    places = np.random.default_rng(0).integers(0, 50, count)
    expected = np.zeros(50, np.int64)
    expected[places] = np.arange(count)
    zeros = np.zeros(50, np.int64)
    same(ops.scatter(zeros, places, np.arange(count)), expected)
    same(ops.index_update(zeros, places, np.arange(count)), expected)
    same(ops.put_along_axis(zeros, places, np.arange(count)), expected)
    same(ops.tensor_scatter_nd_update(zeros, places[:, None], np.arange(count)), expected)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "uint64", "float16", "float64"])
def test_segments_without_rows(backend: object, dtype: str) -> None:
    data = np.array([3, 2], dtype)
    lowest, highest = (-np.inf, np.inf) if "float" in dtype else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    same(ops.segment_sum(data, [1, 1], 3), np.array([0, 5, 0], dtype))
    same(ops.segment_prod(data, [1, 1], 3), np.array([1, 6, 1], dtype))
    same(ops.segment_max(data, [1, 1], 3), np.array([lowest, 3, lowest], dtype))
    same(ops.segment_min(data, [1, 1], 3), np.array([highest, 2, highest], dtype))
    same(ops.segment_mean(data, [1, 1], 3), np.array([0, 2.5, 0], np.float32 if "int" in dtype else dtype))


@pytest.mark.skipif("torch" not in ember_ml.get_available_backends(), reason="torch is not installed")
def test_updates_ignore_the_default_device_of_torch() -> None:
    import torch

    x, places, values = torch.zeros(4), torch.tensor([0, 0, 2]), torch.tensor([1.0, 2.0, 3.0])
    with torch.device("meta"):
        updated, added = ops.index_update(x, places, values), ops.index_add(x, places, values)
    assert updated.tolist() == [2.0, 0.0, 3.0, 0.0]
    assert added.tolist() == [3.0, 0.0, 3.0, 0.0]


@quick
@given(x=lines.filter(lambda a: np.isfinite(a).all()), count=st.integers(1, 7))
def test_histogram(backend: object, x: np.ndarray, count: int) -> None:
    counts, edges = ops.histogram(x, bins=count)
    expected = np.histogram(x, bins=host(edges))[0]
    same(counts, expected)
    np.testing.assert_allclose(host(edges), np.histogram(x, bins=count)[1], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(host(ops.histogram(x)[1]), np.histogram(x)[1], rtol=1e-5, atol=1e-6)
    bins = [-3.0, -1.0, 0.5, 2.0]
    same(ops.histogram(x, bins)[0], np.histogram(x, bins)[0])
    rising = np.array(bins, np.float32)
    for edge in (rising, rising[::-1].copy()):
        same(ops.digitize(x, edge), np.digitize(x, edge))
        same(ops.digitize(x, edge, right=True), np.digitize(x, edge, right=True))


def test_bfloat16_sorts_nan_last(backend: object) -> None:
    x = ops.cast([3.0, float("nan"), 1.0, -2.0], "bfloat16")
    same(ops.argsort(x), [3, 2, 0, 1])
    same(ops.cast(ops.sort(x), "float32"), [-2.0, 1.0, 3.0, np.nan])
    same(ops.cast(ops.unique(x), "float32"), [-2.0, 1.0, 3.0, np.nan])
    same(ops.searchsorted(ops.sort(x), ops.cast([2.0], "bfloat16")), [2])


X = np.arange(12, dtype=np.float32).reshape(3, 4)

OUT_OF_RANGE = {
    "index_update with values that do not fit": lambda: ops.index_update(X, [9], [1.0, 2.0, 3.0]),
    "index_add with values that do not fit": lambda: ops.index_add(X, [9], [1.0, 2.0, 3.0]),
    "take": lambda: ops.take(X, [3], axis=0),
    "take in the last axis": lambda: ops.take(X, [[0, 4]], axis=1),
    "take below": lambda: ops.take(X, [-4], axis=0),
    "take of the flattened": lambda: ops.take(X, 12),
    "take of nothing": lambda: ops.take(np.zeros((0, 2), np.float32), [0], axis=0),
    "take_along_axis": lambda: ops.take_along_axis(X, [[4], [0], [0]]),
    "put_along_axis": lambda: ops.put_along_axis(X, [[4], [0], [0]], 1.0),
    "gather": lambda: ops.gather(X, [-4]),
    "gather_nd": lambda: ops.gather_nd(X, [[0, 4]]),
    "gather_nd below": lambda: ops.gather_nd(X, [[0, -1]]),
    "scatter": lambda: ops.scatter(X, [3], X[:1]),
    "scatter below": lambda: ops.scatter(X, [-4], X[:1]),
    "scatter_add": lambda: ops.scatter_add(X, [0, 4], X[:, :2], axis=1),
    "scatter_max": lambda: ops.scatter_max(X, [-5], X[:, :1], axis=1),
    "scatter by mean": lambda: ops.scatter(X, [-4], X[:1], mode="mean"),
    "tensor_scatter_nd_update": lambda: ops.tensor_scatter_nd_update(X, [[3]], X[:1]),
    "index_update": lambda: ops.index_update(X, 3, 0.0),
    "index_update by a tensor": lambda: ops.index_update(X, (slice(None), np.array([0, 4])), 0.0),
    "index_update by two": lambda: ops.index_update(X, ([0, 3], [0, 0]), 0.0),
    "index_update, too many": lambda: ops.index_update(X, (0, 0, 0), 0.0),
    "index_update, wrong mask": lambda: ops.index_update(X, np.ones(4, bool), 0.0),
    "index_add": lambda: ops.index_add(X, [-4], 0.0),
    "slice": lambda: ops.slice(X, (2, 0), (2, 4)),
    "slice by a tensor": lambda: ops.slice(X, np.array([2, 0]), (2, 4)),
    "slice by a tensor below": lambda: ops.slice(X, np.array([-5, 0]), (1, 4)),
    "slice_update": lambda: ops.slice_update(X, (0, 3), X[:, :2]),
    "in_top_k": lambda: ops.in_top_k([4, 0, 0], X, 1),
    "unravel_index": lambda: ops.unravel_index([12], (3, 4)),
    "unravel_index below": lambda: ops.unravel_index([-1], (3, 4)),
    "ravel_multi_index": lambda: ops.ravel_multi_index(([0], [4]), (3, 4)),
    "segment_sum": lambda: ops.segment_sum(X, [0, 1, 3], 3),
    "segment_max below": lambda: ops.segment_max(X, [0, 1, -1], 3),
    "searchsorted": lambda: ops.searchsorted([1.0, 2.0], [1.0], sorter=[0, 2]),
}

WRONG_VALUES = {
    "take without axes": lambda: ops.take(np.float32(1), [0], axis=0),
    "take_along_axis axes": lambda: ops.take_along_axis(X[0], [[0, 9]]),
    "take_along_axis shape": lambda: ops.take_along_axis(X, [[0], [1]], axis=1),
    "take_along_axis without axes": lambda: ops.take_along_axis(np.float32(1), [0]),
    "scatter_add positions and shape": lambda: ops.scatter_add(X, [9, 9], X),
    "segment_sum count": lambda: ops.segment_sum([1, 2], [0, 1], -1),
    "segment_max count": lambda: ops.segment_max([1, 2], [0, 1], -1),
    "in_top_k shape": lambda: ops.in_top_k([1, 0], X, 2),
    "scatter mode": lambda: ops.scatter(X, [0], X[:1], mode="median"),
    "scatter shape": lambda: ops.scatter_add(X, [0], X[:2]),
    "scatter indices": lambda: ops.scatter_add(X, [[0]], X[:1]),
    "index_update shape": lambda: ops.index_update(X, 0, [1.0, 2.0]),
    "index_update mask count": lambda: ops.index_update(X, X > 8.0, [1.0, 2.0]),
    "index_update tensor shape": lambda: ops.index_update(X, [0, 1], np.ones((3, 4), np.float32)),
    "slice rank": lambda: ops.slice(X, (0,), (1,)),
    "slice size": lambda: ops.slice(X, (0, 0), (4, 1)),
    "gather_nd": lambda: ops.gather_nd(X, [[0, 0, 0]]),
    "tensor_scatter_nd_update": lambda: ops.tensor_scatter_nd_update(X, [[0]], X[:2]),
    "masked_fill": lambda: ops.masked_fill(X[0], np.ones((2, 4), bool), 0.0),
    "masked_select": lambda: ops.masked_select(X, [True, False]),
    "nonzero": lambda: ops.nonzero(1.0),
    "argmax": lambda: ops.argmax(np.zeros((0,), np.float32)),
    "argmin": lambda: ops.argmin(np.zeros((2, 0), np.float32), axis=1),
    "searchsorted side": lambda: ops.searchsorted([1.0], [1.0], side="middle"),
    "searchsorted rank": lambda: ops.searchsorted(X, [1.0]),
    "digitize": lambda: ops.digitize([1.0], X),
    "bincount": lambda: ops.bincount([-1]),
    "bincount with weights": lambda: ops.bincount([-1], [1.0]),
    "bincount rank": lambda: ops.bincount([[1]]),
    "bincount length": lambda: ops.bincount([1], minlength=-1),
    "histogram bins": lambda: ops.histogram(X, 0),
    "histogram range": lambda: ops.histogram(X, 2, range=(2.0, 1.0)),
    "histogram edges": lambda: ops.histogram(X, [2.0, 1.0]),
    "histogram of nan": lambda: ops.histogram([1.0, float("nan")]),
    "sort": lambda: ops.sort(1.0),
    "argsort": lambda: ops.argsort(1.0),
    "partition": lambda: ops.partition(X, 4),
    "top_k": lambda: ops.top_k(X, 5),
    "multi_hot": lambda: ops.multi_hot(1, 3),
    "segment ids": lambda: ops.segment_sum(X, [0, 1], 3),
    "ravel_multi_index": lambda: ops.ravel_multi_index(([0], [1]), (3,)),
}

WRONG_KINDS = {
    "take": lambda: ops.take(X, [0.5]),
    "index_update values": lambda: ops.index_update(np.array([1, 2]), 0, 0.5),
    "index_update index": lambda: ops.index_update(X, [0.5], 1.0),
    "scatter by mean": lambda: ops.scatter(np.array([1, 2]), [0], [1], mode="mean"),
    "scatter_max": lambda: ops.scatter_max(np.array([1j], np.complex64), [0], 1),
    "sort": lambda: ops.sort(np.array([1j, 2j], np.complex64)),
    "bincount": lambda: ops.bincount([0.5]),
}


@pytest.mark.parametrize("case", OUT_OF_RANGE)
def test_an_index_out_of_range_is_an_index_error(backend: object, case: str) -> None:
    with pytest.raises(IndexError):
        OUT_OF_RANGE[case]()


@pytest.mark.parametrize("case", WRONG_VALUES)
def test_a_wrong_value_is_a_value_error(backend: object, case: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the message is the engine's own
        WRONG_VALUES[case]()


@pytest.mark.parametrize("case", WRONG_KINDS)
def test_a_wrong_kind_is_a_type_error(backend: object, case: str) -> None:
    with pytest.raises(TypeError):
        WRONG_KINDS[case]()


def test_unchecked_gives_the_same_results(backend: object) -> None:
    expected = host(ops.take(X, [2, -1], axis=0))
    with unchecked():
        same(ops.take(X, [2, -1], axis=0), expected)
        same(ops.index_update(X, [0, 0], X[1:]), host(ops.slice_update(X, (0, 0), X[2:])))
    with pytest.raises(IndexError):
        ops.take(X, [9], axis=0)


def test_compiled_code_stays_within_a_tensor() -> None:
    """MLX reads wherever an index points, and writes there for the gradient; compiled code cannot raise an error."""
    if "mlx" not in ember_ml.get_available_backends():
        pytest.skip("MLX is not installed")
    with ember_ml.use_backend("mlx"):
        x, indices = ops.asarray([1.0, 2.0, 3.0]), ops.asarray([0, 5, -9, 10**9])
        assert transform.compile(lambda x, i: ops.take(x, i))(x, indices).tolist() == [1.0, 3.0, 1.0, 3.0]
        gradients = transform.compile(transform.grad(lambda x, i: ops.sum(ops.take(x, i))))(x, indices)
        assert gradients.tolist() == [2.0, 0.0, 2.0]


def test_the_least_place_of_a_partition_counts_from_the_end(backend: object) -> None:
    x = ops.asarray([3.0, 1.0, 2.0])
    assert ops.partition(x, -3).tolist()[0] == 1.0
    assert ops.argpartition(x, -3).tolist()[0] == 1
    with pytest.raises(ValueError, match="partition: kth must be from -3 to 2 for an axis of length 3, got -4"):
        ops.partition(x, -4)


@pytest.mark.parametrize("dtype", ["int32", "uint32"])
def test_large_integers_are_ranked_exactly(dtype: str, backend: object) -> None:
    """float32 does not tell these apart."""
    x = ops.asarray([2**24, 2**24 + 1, 2**24 - 1, 0], dtype=dtype)
    values, places = ops.top_k(x, 2)
    assert (values.tolist(), places.tolist()) == ([2**24 + 1, 2**24], [1, 0])


def test_a_histogram_needs_an_edge(backend: object) -> None:
    with pytest.raises(ValueError, match=r"^histogram: bins must have at least 1 edge, got none"):
        ops.histogram([1.0, 2.0], [])
