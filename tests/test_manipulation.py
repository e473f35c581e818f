"""What the contract cannot say of the operations that rearrange elements: oracles, inverses, errors."""

from __future__ import annotations

from typing import Any

import hypothesis
import hypothesis.extra.numpy as extra
import hypothesis.strategies as st
import numpy as np
import pytest

from ember_ml import ops
from ember_ml.backend import Backend
from ember_ml.testing.comparison import host

few = hypothesis.settings(
    max_examples=25,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)
arrays = extra.arrays(
    np.int32, extra.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4), elements=st.integers(-9, 9)
)


def test_names_of_one_function() -> None:
    assert ops.concatenate is ops.concat
    assert ops.flatten is ops.ravel


def test_shapes_are_plain(backend: Backend) -> None:
    x = ops.zeros((2, 3))
    assert type(ops.shape(x)) is tuple
    assert [type(n) for n in ops.shape(x)] == [int, int]
    assert type(ops.ndim(x)) is type(ops.size(x)) is int


@few
@hypothesis.given(arrays, st.data())
def test_padding_is_numpys(backend: Backend, x: np.ndarray, data: st.DataObject) -> None:
    widths = data.draw(st.lists(st.tuples(*[st.integers(0, 9)] * 2), min_size=x.ndim, max_size=x.ndim))
    mode = data.draw(st.sampled_from(["constant", "edge", "reflect", "symmetric", "wrap"]))
    np.testing.assert_array_equal(host(ops.pad(ops.asarray(x), widths, mode)), np.pad(x, widths, mode))


@few
@hypothesis.given(arrays, st.data())
def test_rolling_back_gives_the_original(backend: Backend, x: np.ndarray, data: st.DataObject) -> None:
    axes = data.draw(st.lists(st.integers(-x.ndim, x.ndim - 1), min_size=1, max_size=3))
    shifts = data.draw(st.lists(st.integers(-9, 9), min_size=len(axes), max_size=len(axes)))
    there = ops.roll(ops.asarray(x), shifts, axis=axes)
    np.testing.assert_array_equal(host(there), np.roll(x, shifts, tuple(axes)))
    np.testing.assert_array_equal(host(ops.roll(there, [-s for s in shifts], axis=axes)), x)


@few
@hypothesis.given(arrays, st.integers(1, 6), st.data())
def test_parts_join_to_the_whole(backend: Backend, x: np.ndarray, count: int, data: st.DataObject) -> None:
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    parts = ops.array_split(ops.asarray(x), count, axis)
    assert len(parts) == count
    np.testing.assert_array_equal(host(ops.concat(parts, axis=axis)), x)
    np.testing.assert_array_equal(host(ops.stack(ops.unstack(ops.asarray(x), axis=axis), axis=axis)), x)


@few
@hypothesis.given(arrays, st.data())
def test_moving_axes_is_numpys(backend: Backend, x: np.ndarray, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, x.ndim))
    source = data.draw(st.permutations(range(x.ndim)))[:count]
    destination = data.draw(st.permutations(range(-x.ndim, 0)))[:count]
    np.testing.assert_array_equal(
        host(ops.moveaxis(ops.asarray(x), source, destination)), np.moveaxis(x, source, destination)
    )


def test_rolled_axes_are_numpys(backend: Backend) -> None:
    x = np.arange(24).reshape(2, 3, 4)
    for axis in range(-3, 3):
        np.testing.assert_array_equal(host(ops.rollaxis(ops.asarray(x), axis)), np.rollaxis(x, axis))
        for start in range(-3, 4):
            np.testing.assert_array_equal(host(ops.rollaxis(ops.asarray(x), axis, start)), np.rollaxis(x, axis, start))


@pytest.mark.parametrize("axes", [(0, 1), (1, 0), (2, 0), (-1, -2)])
def test_quarter_turns_are_numpys(backend: Backend, axes: tuple[int, int]) -> None:
    x = np.arange(24).reshape(2, 3, 4)
    for k in range(-5, 6):
        np.testing.assert_array_equal(host(ops.rot90(ops.asarray(x), k, axes)), np.rot90(x, k, axes))


@few
@hypothesis.given(arrays, st.data())
def test_windows_are_numpys(backend: Backend, x: np.ndarray, data: st.DataObject) -> None:
    window = tuple(data.draw(st.integers(1, n)) for n in x.shape)
    expected = np.lib.stride_tricks.sliding_window_view(x, window)
    np.testing.assert_array_equal(host(ops.sliding_window(ops.asarray(x), window)), expected)


@few
@hypothesis.given(extra.mutually_broadcastable_shapes(num_shapes=3, max_dims=4, min_side=0, max_side=4))
def test_broadcast_shapes_are_numpys(backend: Backend, shapes: extra.BroadcastableShapes) -> None:
    assert ops.broadcast_shapes(*shapes.input_shapes) == shapes.result_shape


def images(rows: int = 6, columns: int = 4, channels: int = 3) -> np.ndarray:
    return np.arange(2 * rows * columns * channels, dtype=np.float32).reshape(2, rows, columns, channels)


@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
def test_depth_and_space_are_inverse(backend: Backend, data_format: str) -> None:
    x = ops.asarray(images())
    x = ops.permute_dims(x, (0, 3, 1, 2)) if data_format == "channels_first" else x
    deep = ops.space_to_depth(x, 2, data_format=data_format)
    np.testing.assert_array_equal(host(ops.depth_to_space(deep, 2, data_format=data_format)), host(x))


def test_blocks_are_ordered_by_row_column_channel(backend: Backend) -> None:
    x = images()
    deep = host(ops.space_to_depth(ops.asarray(x), 2))
    np.testing.assert_array_equal(deep[1, 2, 1], x[1, 4:6, 2:4].ravel())


def patches(x: np.ndarray, size: tuple[int, int], strides: tuple[int, int], rate: tuple[int, int]) -> np.ndarray:
    """Patches cut one by one."""
    extent = [(n - 1) * d + 1 for n, d in zip(size, rate, strict=True)]
    rows = range(0, x.shape[1] - extent[0] + 1, strides[0])
    columns = range(0, x.shape[2] - extent[1] + 1, strides[1])
    cut = [
        [x[:, i : i + extent[0] : rate[0], j : j + extent[1] : rate[1]].reshape(len(x), -1) for j in columns]
        for i in rows
    ]
    return np.array(cut).transpose(2, 0, 1, 3)


@pytest.mark.parametrize(
    ("size", "strides", "rate"), [((2, 2), (2, 2), (1, 1)), ((3, 2), (1, 2), (1, 1)), ((2, 2), (1, 1), (2, 3))]
)
def test_patches(backend: Backend, size: Any, strides: Any, rate: Any) -> None:
    x = images()
    np.testing.assert_array_equal(
        host(ops.extract_patches(ops.asarray(x), size, strides, rate)), patches(x, size, strides, rate)
    )


@pytest.mark.parametrize(
    ("length", "size", "stride", "before"), [(5, 3, 1, 1), (5, 3, 2, 1), (6, 3, 2, 0), (5, 4, 3, 1)]
)
def test_same_padding_puts_the_smaller_half_first(
    backend: Backend, length: int, size: int, stride: int, before: int
) -> None:
    x = np.ones((1, length, length, 1), np.float32)
    result = host(ops.extract_patches(ops.asarray(x), size, stride, 1, "same"))
    assert result.shape[1:3] == (-(-length // stride),) * 2
    first = result[0, 0, 0].reshape(size, size)
    assert int((first.sum(1) == 0).sum()) == before


def test_patches_of_one_image_and_of_channels_first(backend: Backend) -> None:
    x = ops.asarray(images())
    whole = host(ops.extract_patches(x, 2))
    np.testing.assert_array_equal(host(ops.extract_patches(x[0], 2)), whole[0])
    first = ops.extract_patches(ops.permute_dims(x, (0, 3, 1, 2)), 2, data_format="channels_first")
    np.testing.assert_array_equal(host(first), whole.transpose(0, 3, 1, 2))


def test_complex_parts_survive_infinities(backend: Backend) -> None:
    parts = [[float("inf"), 1.0], [0.0, float("-inf")]]
    assert host(ops.view_as_real(ops.view_as_complex(parts))).tolist() == parts


def test_half_parts_make_the_smallest_complex(backend: Backend) -> None:
    x = ops.asarray([[1.0, 2.0]], dtype="bfloat16")
    assert ops.view_as_complex(x).tolist() == [1 + 2j]


def test_counts_of_repetition_in_any_form(backend: Backend) -> None:
    for counts in ([1, 0, 2], (1, 0, 2), np.array([1, 0, 2], np.uint8), ops.asarray([1, 0, 2], dtype="int16")):
        assert ops.repeat([5, 6, 7], counts).tolist() == [5, 7, 7]
    for wrong in (1.5, [1.5, 1, 1], ops.asarray([1.0, 2.0, 3.0])):
        with pytest.raises(TypeError):
            ops.repeat([5, 6, 7], wrong)


def test_shapes_and_axes_may_be_numpy_integers(backend: Backend) -> None:
    three = np.int64(3)
    assert ops.shape(ops.reshape(ops.zeros(6), (2, three))) == (2, 3)
    assert ops.shape(ops.broadcast_to(1.0, three)) == (3,)
    assert ops.shape(ops.flip(ops.zeros((2, 3)), axis=np.int64(1))) == (2, 3)


BAD_VALUES = [
    lambda: ops.pad([1], 1, constant_values=float("inf")),
    lambda: ops.pad(ops.asarray([1], dtype="uint8"), 1, constant_values=(0, 256)),
    lambda: ops.reshape([1, 2, 3], (2, 2)),
    lambda: ops.reshape([1, 2, 3, 4], (-1, -1)),
    lambda: ops.reshape([1, 2, 3, 4], (-2, -2)),
    lambda: ops.broadcast_to([1, 2], (3,)),
    lambda: ops.broadcast_to([1, 2], (2, -1)),
    lambda: ops.broadcast_arrays([1, 2], [1, 2, 3]),
    lambda: ops.broadcast_shapes((2,), (3,)),
    lambda: ops.transpose([[1]], (0, 0)),
    lambda: ops.transpose([[1]], (0, 2)),
    lambda: ops.permute_dims([[1]], (0,)),
    lambda: ops.matrix_transpose([1]),
    lambda: ops.swapaxes([[1]], 0, 5),
    lambda: ops.moveaxis([[1]], (0, 1), (0,)),
    lambda: ops.moveaxis([[1]], (0, 0), (0, 1)),
    lambda: ops.rollaxis([[1]], 0, 4),
    lambda: ops.expand_dims([1], axis=(0, 0)),
    lambda: ops.expand_dims([1], axis=3),
    lambda: ops.squeeze([1, 2], 0),
    lambda: ops.squeeze([[1]], (0, 0)),
    lambda: ops.concat([]),
    lambda: ops.concat([1, 2]),
    lambda: ops.concat([[1], [[2]]]),
    lambda: ops.concat([ops.zeros(0), ops.zeros((2, 2))]),
    lambda: ops.concat([[[1]]], axis=2),
    lambda: ops.stack([]),
    lambda: ops.stack([[1], [2, 3]]),
    lambda: ops.stack([[1], [2]], axis=3),
    lambda: ops.unstack(1),
    lambda: ops.append([1], [[1]], axis=0),
    lambda: ops.split([1, 2, 3], 2),
    lambda: ops.split([1, 2, 3], 0),
    lambda: ops.array_split([1, 2, 3], 0),
    lambda: ops.vsplit([1], 1),
    lambda: ops.hsplit(1, 1),
    lambda: ops.dsplit([[1]], 1),
    lambda: ops.tile([1], -1),
    lambda: ops.repeat([1, 2], -1),
    lambda: ops.repeat([1, 2], [1, -1]),
    lambda: ops.repeat([1, 2], [1, 2, 3]),
    lambda: ops.repeat(1, 2, axis=0),
    lambda: ops.flip([[1]], axis=(0, 0)),
    lambda: ops.fliplr([1]),
    lambda: ops.flipud(1),
    lambda: ops.roll([1, 2], (1, 2), axis=(0, 0, 0)),
    lambda: ops.roll(ops.zeros((2, 0)), 1, axis=2),
    lambda: ops.roll(ops.zeros((2, 0)), (1, 1), axis=(0, -3)),
    lambda: ops.rot90([1]),
    lambda: ops.rot90([[1]], 1, (0, 0)),
    lambda: ops.pad([1], -1),
    lambda: ops.pad([1], 1, "mode"),
    lambda: ops.pad([1], ((1, 1), (1, 1))),
    lambda: ops.pad([1], (1, 1, 1)),
    lambda: ops.pad(ops.zeros(0), 1, "edge"),
    lambda: ops.view_as_complex([1.0, 2.0, 3.0]),
    lambda: ops.sliding_window([1, 2], 3),
    lambda: ops.sliding_window([1, 2], -1),
    lambda: ops.sliding_window([[1, 2]], 1),
    lambda: ops.space_to_depth([1], 2),
    lambda: ops.space_to_depth(ops.zeros((1, 3, 3, 1)), 2),
    lambda: ops.depth_to_space(ops.zeros((1, 3, 3, 3)), 2),
    lambda: ops.extract_patches(ops.zeros((4, 4)), 2),
    lambda: ops.extract_patches(ops.zeros((4, 4, 1)), 5),
    lambda: ops.extract_patches(ops.zeros((4, 4, 1)), 2, padding="full"),
    lambda: ops.extract_patches(ops.zeros((4, 4, 1)), 2, data_format="rows"),
    lambda: ops.extract_patches(ops.zeros((4, 4, 1)), 2, 0),
]


@pytest.mark.parametrize("place", range(len(BAD_VALUES)))
def test_impossible_values(backend: Backend, place: int) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the message is the engine's own
        BAD_VALUES[place]()


def test_impossible_kinds(backend: Backend) -> None:
    for call in (
        lambda: ops.pad([1], 1.5),
        lambda: ops.pad([1.0], 1, constant_values=1j),
        lambda: ops.pad([1], 1, constant_values=(2, 1j)),
        lambda: ops.pad([True], 1, constant_values=1j),
        lambda: ops.roll([1, 2], 1.5),
        lambda: ops.reshape([1], None),
        lambda: ops.view_as_real([1.0]),
        lambda: ops.view_as_complex([1, 2]),
        lambda: ops.concat(5),
    ):
        with pytest.raises(TypeError):
            call()
