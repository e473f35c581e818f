"""Manipulation of shapes and axes: reshaping, joining, splitting, repeating, padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ember_ml.dispatch import op
from ember_ml.dtypes import free, kept, promoted
from ember_ml.ops import _forms
from ember_ml.shapes.axes import axes_of as _axes
from ember_ml.shapes.axes import axis_of as _axis
from ember_ml.types import Axis, Shape, Tensor, TensorLike


@op(free, differentiable=False)
def shape(x: TensorLike, /) -> tuple[int, ...]:
    """Shape of ``x``.

    >>> shape([[1, 2, 3], [4, 5, 6]])
    (2, 3)
    """
    ...


@op(free, differentiable=False)
def ndim(x: TensorLike, /) -> int:
    """Number of axes of ``x``.

    >>> ndim([[1, 2, 3], [4, 5, 6]])
    2
    """
    ...


@op(free, differentiable=False, engine="x", form=_forms.size)
def size(x: TensorLike, /, axis: Axis = None) -> int:
    """Number of elements of ``x``.

    Args:
        axis: count along this axis alone, or along several.

    >>> size([[1, 2, 3], [4, 5, 6]])
    6
    """
    ...


@op(kept, engine="x, shape, *, copy", form=_forms.reshape)
def reshape(x: TensorLike, /, shape: Shape, *lengths: int, copy: bool | None = None) -> Tensor:
    """``x`` in another shape, with its elements in row-major order.

    Args:
        shape: the new shape. One length may be -1; it is inferred from the others.
        copy: ``True`` always copies. ``False`` raises ``ValueError`` where memory cannot be shared. ``None`` copies
            only where necessary.
        lengths: the lengths after the first, where ``shape`` is that: ``reshape(x, 2, -1)``.

    >>> reshape([1, 2, 3, 4], (2, -1)).tolist()
    [[1, 2], [3, 4]]
    """
    ...


@op(kept)
def ravel(x: TensorLike, /) -> Tensor:
    """Elements of ``x`` in row-major order, as a vector.

    >>> ravel([[1, 2], [3, 4]]).tolist()
    [1, 2, 3, 4]
    """
    ...


flatten = ravel


@op(kept, engine="x, axes", form=_forms.transpose)
def transpose(x: TensorLike, /, axes: int | Sequence[int] | None = None, *others: int) -> Tensor:
    """``x`` with its axes in the order of ``axes``, by default reversed.

    Args:
        others: the axes after the first, where ``axes`` is that: ``transpose(x, 1, 0)``.

    >>> transpose([[1, 2], [3, 4]]).tolist()
    [[1, 3], [2, 4]]
    """
    ...


@op(kept)
def permute_dims(x: TensorLike, /, axes: Sequence[int]) -> Tensor:
    """``x`` with its axes in the order of ``axes``.

    >>> permute_dims([[1, 2], [3, 4]], (1, 0)).tolist()
    [[1, 3], [2, 4]]
    """
    ...


@op(kept)
def matrix_transpose(x: TensorLike, /) -> Tensor:
    """``x`` with its last two axes swapped.

    >>> matrix_transpose([[1, 2], [3, 4]]).tolist()
    [[1, 3], [2, 4]]
    """
    ...


@op(kept)
def swapaxes(x: TensorLike, /, axis1: int, axis2: int) -> Tensor:
    """``x`` with two axes swapped.

    >>> swapaxes([[1, 2], [3, 4]], 0, 1).tolist()
    [[1, 3], [2, 4]]
    """
    ...


@op(kept, engine="x, source, destination, /")
def moveaxis(x: TensorLike, /, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """``x`` with the axes ``source`` moved to the positions ``destination``; the other axes keep their order.

    >>> moveaxis([[1, 2], [3, 4]], 0, 1).tolist()
    [[1, 3], [2, 4]]
    """
    ...


@op(kept)
def rollaxis(x: TensorLike, /, axis: int, start: int = 0) -> Tensor:
    """``x`` with one axis moved before the axis ``start``.

    >>> rollaxis([[1, 2], [3, 4]], 1).tolist()
    [[1, 3], [2, 4]]
    """
    rank = ndim(x)
    axis, start = _axis(axis, rank), _axis(start, rank if start < 0 else rank + 1)
    return moveaxis(x, axis, start - (axis < start))


@op(kept)
def expand_dims(x: TensorLike, /, axis: int | Sequence[int] = 0) -> Tensor:
    """``x`` with axes of length 1 inserted at the positions ``axis`` of the result.

    >>> expand_dims([1, 2], axis=1).tolist()
    [[1], [2]]
    """
    ...


@op(kept)
def squeeze(x: TensorLike, /, axis: Axis = None) -> Tensor:
    """``x`` without the given axes, which must have length 1; by default, without all axes of length 1.

    Args:
        axis: the axes to remove.

    >>> squeeze([[1], [2]], 1).tolist()
    [1, 2]
    """
    ...


@op(kept)
def broadcast_to(x: TensorLike, /, shape: Shape) -> Tensor:
    """``x`` broadcast to ``shape``.

    >>> broadcast_to([1, 2], (2, 2)).tolist()
    [[1, 2], [1, 2]]
    """
    ...


@op(free)
def broadcast_arrays(*arrays: TensorLike) -> list[Tensor]:
    """Tensors broadcast to their common shape.

    >>> [x.tolist() for x in broadcast_arrays([1, 2], [[3], [4]])]
    [[[1, 2], [1, 2]], [[3, 3], [4, 4]]]
    """
    common = broadcast_shapes(*(shape(x) for x in arrays))
    return [broadcast_to(x, common) for x in arrays]


@op(free, differentiable=False)
def broadcast_shapes(*shapes: Shape) -> tuple[int, ...]:
    """Shape that results from broadcasting these shapes together.

    >>> broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    lengths = [(s,) if isinstance(s, int) else tuple(s) for s in shapes]
    rank = max([0, *map(len, lengths)])
    common = [1] * rank
    for each in lengths:
        for i, length in enumerate(each, rank - len(each)):
            if length < 0 or (length != 1 and common[i] not in (1, length)):
                raise ValueError(f"shapes must broadcast, got {', '.join(map(str, lengths))}")
            if length != 1:
                common[i] = length
    return tuple(common)


@op(promoted, engine="arrays, *, axis")
def concat(arrays: Sequence[TensorLike], /, axis: int | None = 0) -> Tensor:
    """Tensors joined along ``axis``.

    Args:
        axis: an existing axis, or ``None`` to join the flattened tensors.

    >>> concat([[1, 2], [3]]).tolist()
    [1, 2, 3]
    """
    ...


concatenate = concat


@op(promoted, engine="arrays, *, axis")
def stack(arrays: Sequence[TensorLike], /, axis: int = 0) -> Tensor:
    """Tensors of the same shape joined along a new axis.

    >>> stack([[1, 2], [3, 4]], axis=1).tolist()
    [[1, 3], [2, 4]]
    """
    ...


@op(kept, engine="x, *, axis")
def unstack(x: TensorLike, /, axis: int = 0) -> tuple[Tensor, ...]:
    """Slices of ``x`` along ``axis``.

    >>> [part.tolist() for part in unstack([[1, 2], [3, 4]])]
    [[1, 2], [3, 4]]
    """
    ...


@op(promoted)
def vstack(arrays: Sequence[TensorLike], /) -> Tensor:
    """Tensors joined along the first axis; vectors become rows.

    >>> vstack([[1, 2], [3, 4]]).tolist()
    [[1, 2], [3, 4]]
    """
    return concat([atleast_2d(x) for x in arrays])


@op(promoted)
def hstack(arrays: Sequence[TensorLike], /) -> Tensor:
    """Tensors joined along the second axis; vectors are joined along the first.

    >>> hstack([[1, 2], [3, 4]]).tolist()
    [1, 2, 3, 4]
    """
    parts = [atleast_1d(x) for x in arrays]
    return concat(parts, axis=1 if parts and ndim(parts[0]) > 1 else 0)


@op(promoted)
def dstack(arrays: Sequence[TensorLike], /) -> Tensor:
    """Tensors joined along the third axis.

    >>> dstack([[1, 2], [3, 4]]).tolist()
    [[[1, 3], [2, 4]]]
    """
    return concat([atleast_3d(x) for x in arrays], axis=2)


@op(promoted)
def column_stack(arrays: Sequence[TensorLike], /) -> Tensor:
    """Tensors joined along the second axis; vectors become columns.

    >>> column_stack([[1, 2], [3, 4]]).tolist()
    [[1, 3], [2, 4]]
    """
    return concat([reshape(x, (-1, 1)) if ndim(x) < 2 else x for x in arrays], axis=1)


@op(promoted)
def append(x: TensorLike, values: TensorLike, /, axis: int | None = None) -> Tensor:
    """``x`` followed by ``values`` along ``axis``.

    Args:
        axis: an existing axis, or ``None`` to join the flattened tensors.

    >>> append([1, 2], [3]).tolist()
    [1, 2, 3]
    """
    return concat([x, values], axis=axis)


@op(kept)
def split(x: TensorLike, /, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Tensor]:
    """Parts of ``x`` along ``axis``.

    Args:
        indices_or_sections: the number of equal parts, or the indices at which to split.

    >>> [part.tolist() for part in split([1, 2, 3, 4], 2)]
    [[1, 2], [3, 4]]
    >>> [part.tolist() for part in split([1, 2, 3, 4], [1, 3])]
    [[1], [2, 3], [4]]
    """
    _axis(axis, ndim(x))
    length, sections = shape(x)[axis], indices_or_sections
    if isinstance(sections, int) and (sections < 1 or length % sections):
        raise ValueError(f"indices_or_sections must divide the length of the axis, {length}, got {sections}")
    return array_split(x, sections, axis)


@op(kept)
def array_split(x: TensorLike, /, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Tensor]:
    """Parts of ``x`` along ``axis``, as with ``split``; if they cannot be equal, the first ones are longer by one.

    >>> [part.tolist() for part in array_split([1, 2, 3], 2)]
    [[1, 2], [3]]
    """
    ...


@op(kept)
def chunk(x: TensorLike, /, chunks: int, axis: int = 0) -> list[Tensor]:
    """At most ``chunks`` parts of ``x`` along ``axis``, of one length except that the last may be shorter.

    There are fewer parts if so many of that length already cover the axis; ``array_split`` always returns ``chunks``.

    >>> [part.tolist() for part in chunk([1, 2, 3, 4, 5, 6], 4)]
    [[1, 2], [3, 4], [5, 6]]
    """
    _axis(axis, ndim(x))
    if chunks < 1:
        raise ValueError(f"chunks must be >= 1, got {chunks}")
    length = shape(x)[axis]
    each = -(-length // chunks)
    return array_split(x, list(range(each, length, each)) if each else chunks, axis)


@op(kept)
def vsplit(x: TensorLike, /, indices_or_sections: int | Sequence[int]) -> list[Tensor]:
    """Parts of ``x`` along the first axis, as with ``split``.

    >>> [part.tolist() for part in vsplit([[1, 2], [3, 4]], 2)]
    [[[1, 2]], [[3, 4]]]
    """
    _check_rank(x, 2)
    return split(x, indices_or_sections, 0)


@op(kept)
def hsplit(x: TensorLike, /, indices_or_sections: int | Sequence[int]) -> list[Tensor]:
    """Parts of ``x`` along the second axis, as with ``split``; vectors are split along the first.

    >>> [part.tolist() for part in hsplit([[1, 2], [3, 4]], 2)]
    [[[1], [3]], [[2], [4]]]
    """
    _check_rank(x, 1)
    return split(x, indices_or_sections, 1 if ndim(x) > 1 else 0)


@op(kept)
def dsplit(x: TensorLike, /, indices_or_sections: int | Sequence[int]) -> list[Tensor]:
    """Parts of ``x`` along the third axis, as with ``split``.

    >>> [part.tolist() for part in dsplit([[[1, 2]], [[3, 4]]], 2)]
    [[[[1]], [[3]]], [[[2]], [[4]]]]
    """
    _check_rank(x, 3)
    return split(x, indices_or_sections, 2)


def _check_rank(x: TensorLike, least: int) -> None:
    if ndim(x) < least:
        raise ValueError(f"x must have at least {least} axes, got {ndim(x)}")


@op(kept)
def tile(x: TensorLike, repetitions: Shape, /) -> Tensor:
    """``x`` repeated ``repetitions[i]`` times along each axis ``i``.

    >>> tile([1, 2], (2, 2)).tolist()
    [[1, 2, 1, 2], [1, 2, 1, 2]]
    """
    ...


@op(kept, engine="x, repeats, /, *, axis")
def repeat(x: TensorLike, /, repeats: int | Sequence[int] | Tensor, axis: int | None = None) -> Tensor:
    """``x`` with each element repeated along ``axis``.

    Args:
        repeats: one count for all elements, or one for each. Counts in a tensor are read at once, so a compiler cannot
            trace them.
        axis: an axis, or ``None`` to repeat the elements of the flattened tensor.

    >>> repeat([1, 2], 2).tolist()
    [1, 1, 2, 2]
    >>> repeat([1, 2], [1, 2]).tolist()
    [1, 2, 2]
    """
    ...


@op(kept, engine="x, *, axis")
def flip(x: TensorLike, /, axis: Axis = None) -> Tensor:
    """``x`` with its elements in reverse order along ``axis``.

    Args:
        axis: one axis, several, or ``None`` for all.

    >>> flip([1, 2, 3]).tolist()
    [3, 2, 1]
    """
    ...


@op(kept)
def fliplr(x: TensorLike, /) -> Tensor:
    """``x`` with its second axis reversed.

    >>> fliplr([[1, 2], [3, 4]]).tolist()
    [[2, 1], [4, 3]]
    """
    _check_rank(x, 2)
    return flip(x, axis=1)


@op(kept)
def flipud(x: TensorLike, /) -> Tensor:
    """``x`` with its first axis reversed.

    >>> flipud([[1, 2], [3, 4]]).tolist()
    [[3, 4], [1, 2]]
    """
    _check_rank(x, 1)
    return flip(x, axis=0)


@op(kept, engine="x, shift, *, axis")
def roll(x: TensorLike, /, shift: int | Sequence[int], axis: Axis = None) -> Tensor:
    """``x`` with its elements shifted along ``axis``; elements shifted off one end enter at the other.

    Args:
        shift: how far to shift, one number or one per axis.
        axis: one axis, several, or ``None`` to shift the flattened tensor.

    >>> roll([1, 2, 3], 1).tolist()
    [3, 1, 2]
    """
    ...


@op(kept)
def rot90(x: TensorLike, /, k: int = 1, axes: Sequence[int] = (0, 1)) -> Tensor:
    """``x`` rotated ``k`` times by 90 degrees, from the first of two axes towards the second.

    >>> rot90([[1, 2], [3, 4]]).tolist()
    [[2, 4], [1, 3]]
    """
    rank = ndim(x)
    if len(axes) != 2:
        raise ValueError(f"axes must be 2, got {len(axes)}")
    first, second = _axes(axes, rank)
    quarter = k % 4
    if quarter == 1:
        return swapaxes(flip(x, axis=second), first, second)
    if quarter == 3:
        return flip(swapaxes(x, first, second), axis=second)
    return flip(x, axis=(first, second)) if quarter else flip(x, axis=())


@op(kept, engine="x, pad_width, mode, *, constant_values", form=_forms.pad)
def pad(
    x: TensorLike,
    /,
    pad_width: Any,
    mode: str = "constant",
    *,
    constant_values: Any = 0,
    end_values: Any = 0,
    stat_length: Any = None,
    reflect_type: str = "even",
) -> Tensor:
    """``x`` with elements added at both ends of each axis.

    Args:
        pad_width: how many elements: one number, ``(before, after)`` for all axes, one such pair per axis, or a
            dictionary of axes.
        mode: ``"constant"``, ``"edge"`` (the nearest element), ``"reflect"`` (mirrored, without the edge element),
            ``"symmetric"`` (mirrored, with the edge element) or ``"wrap"`` (from the other end).
        constant_values: the constant: one number, or numbers in the forms of ``pad_width``.
        end_values: where ``"linear_ramp"`` ends, in the forms of ``constant_values``.
        stat_length: how many elements, counted from the edge, a statistic is taken of; by default all.
        reflect_type: ``"odd"`` for ``"reflect"`` and ``"symmetric"`` to mirror the values at the edge element, too.

    >>> pad([1, 2, 3], 1).tolist()
    [0, 1, 2, 3, 0]
    >>> pad([1, 2, 3], (2, 0), "reflect").tolist()
    [3, 2, 1, 2, 3]
    """
    ...


@op(free)
def atleast_1d(*arrays: TensorLike) -> Any:
    """Tensor, or tuple of tensors, with at least one axis.

    >>> atleast_1d(5).tolist()
    [5]
    """
    return _each(arrays, lambda x: reshape(x, (1,)) if ndim(x) == 0 else x)


@op(free)
def atleast_2d(*arrays: TensorLike) -> Any:
    """Tensor, or tuple of tensors, with axes added in front until it has two.

    >>> atleast_2d([1, 2]).tolist()
    [[1, 2]]
    """
    return _each(arrays, lambda x: x if ndim(x) >= 2 else reshape(x, (1, -1)))


@op(free)
def atleast_3d(*arrays: TensorLike) -> Any:
    """Tensor, or tuple of tensors, with axes added until it has three; a matrix occupies the first two.

    >>> atleast_3d([1, 2]).tolist()
    [[[1], [2]]]
    """
    return _each(arrays, _cube)


def _cube(x: TensorLike) -> TensorLike:
    rank = ndim(x)
    return x if rank >= 3 else expand_dims(x, axis=2) if rank == 2 else reshape(x, (1, -1, 1))


def _each(arrays: tuple[TensorLike, ...], change: Any) -> Any:
    changed = tuple(map(change, arrays))
    return changed[0] if len(changed) == 1 else changed


@op(free, kinds="complex floating")
def view_as_real(x: TensorLike, /) -> Tensor:
    """Real and imaginary parts of ``x``, along a new last axis.

    >>> view_as_real([1 + 2j]).tolist()
    [[1.0, 2.0]]
    """
    ...


@op(free, kinds="real floating")
def view_as_complex(x: TensorLike, /) -> Tensor:
    """Complex numbers from their real and imaginary parts along the last axis of ``x``, which has length 2.

    >>> view_as_complex([[1.0, 2.0]]).tolist()
    [(1+2j)]
    """
    ...


@op(kept)
def sliding_window(x: TensorLike, /, window_shape: Shape, axis: Axis = None) -> Tensor:
    """All windows of shape ``window_shape`` in ``x``; the axes of the window come last.

    Args:
        axis: the axes that the window extends along, by default all.

    >>> sliding_window([1, 2, 3, 4], 3).tolist()
    [[1, 2, 3], [2, 3, 4]]
    """
    ...


@op(kept)
def space_to_depth(x: TensorLike, /, block_size: int, *, data_format: str = "channels_last") -> Tensor:
    """Images with each block of ``block_size`` by ``block_size`` pixels moved into the channels of one pixel.

    The channels of the result are ordered by row in the block, then column, then channel.

    Args:
        data_format: ``"channels_last"`` (batch, rows, columns, channels) or ``"channels_first"`` (batch, channels,
            rows, columns).

    >>> space_to_depth([[[[1], [2]], [[3], [4]]]], 2).tolist()
    [[[[1, 2, 3, 4]]]]
    """
    batch, rows, columns, channels = _image_shape(x, data_format)
    b = block_size
    if b < 1 or rows % b or columns % b:
        raise ValueError(f"block_size must be >= 1 and divide height and width, {rows} and {columns}, got {b}")
    if data_format == "channels_first":
        cut = reshape(x, (batch, channels, rows // b, b, columns // b, b))
        return reshape(permute_dims(cut, (0, 3, 5, 1, 2, 4)), (batch, b * b * channels, rows // b, columns // b))
    cut = reshape(x, (batch, rows // b, b, columns // b, b, channels))
    return reshape(permute_dims(cut, (0, 1, 3, 2, 4, 5)), (batch, rows // b, columns // b, b * b * channels))


@op(kept)
def depth_to_space(x: TensorLike, /, block_size: int, *, data_format: str = "channels_last") -> Tensor:
    """Inverse of ``space_to_depth``: channels rearranged into blocks of ``block_size`` by ``block_size`` pixels.

    Args:
        data_format: as in ``space_to_depth``.

    >>> depth_to_space([[[[1, 2, 3, 4]]]], 2).tolist()
    [[[[1], [2]], [[3], [4]]]]
    """
    batch, rows, columns, channels = _image_shape(x, data_format)
    b = block_size
    if b < 1 or channels % (b * b):
        raise ValueError(f"block_size must be >= 1, and its square divide the channels, {channels}, got {b}")
    depth = channels // (b * b)
    if data_format == "channels_first":
        cut = reshape(x, (batch, b, b, depth, rows, columns))
        return reshape(permute_dims(cut, (0, 3, 4, 1, 5, 2)), (batch, depth, rows * b, columns * b))
    cut = reshape(x, (batch, rows, columns, b, b, depth))
    return reshape(permute_dims(cut, (0, 1, 3, 2, 4, 5)), (batch, rows * b, columns * b, depth))


def _image_shape(x: TensorLike, data_format: str) -> tuple[int, int, int, int]:
    """Batch, rows, columns and channels of a batch of images."""
    if ndim(x) != 4:
        raise ValueError(f"x must have 4 axes, got {ndim(x)}")
    _check_format(data_format)
    batch, *lengths = shape(x)
    rows, columns, channels = lengths if data_format == "channels_last" else (*lengths[1:], lengths[0])
    return batch, rows, columns, channels


def _check_format(data_format: str) -> None:
    if data_format not in ("channels_last", "channels_first"):
        raise ValueError(f"data_format must be 'channels_last' or 'channels_first', got {data_format!r}")


@op(kept)
def extract_patches(
    images: TensorLike,
    /,
    size: int | Sequence[int],
    strides: int | Sequence[int] | None = None,
    dilation_rate: int | Sequence[int] = 1,
    padding: str = "valid",
    data_format: str = "channels_last",
) -> Tensor:
    """Patches of one image or a batch of images, each flattened into the channels of one pixel.

    The channels of the result are ordered by row in the patch, then column, then channel.

    Args:
        size: rows and columns of a patch.
        strides: the distance between patches, by default ``size``.
        dilation_rate: the distance between the pixels of a patch.
        padding: ``"valid"`` (only patches inside the image) or ``"same"`` (zeros are added so that every stride has a
            patch).
        data_format: ``"channels_last"`` or ``"channels_first"``.

    >>> image = reshape([1, 2, 3, 4, 5, 6, 7, 8], (2, 4, 1))
    >>> extract_patches(image, 2).tolist()
    [[[1, 2, 5, 6], [3, 4, 7, 8]]]
    """
    _check_format(data_format)
    if padding not in ("valid", "same"):
        raise ValueError(f"padding must be 'valid' or 'same', got {padding!r}")
    if ndim(images) == 3:
        patches = extract_patches(expand_dims(images), size, strides, dilation_rate, padding, data_format)
        return squeeze(patches, 0)
    if data_format == "channels_first":
        last = permute_dims(images, (0, 2, 3, 1))
        patches = extract_patches(last, size, strides, dilation_rate, padding, "channels_last")
        return permute_dims(patches, (0, 3, 1, 2))
    batch, *lengths, channels = _image_shape(images, data_format)
    extent = _pair(size)
    stride = extent if strides is None else _pair(strides)
    dilation = _pair(dilation_rate)
    reach = [(n - 1) * d + 1 for n, d in zip(extent, dilation, strict=True)]
    if padding == "same":
        images = pad(images, [(0, 0), *map(_same_padding, lengths, reach, stride), (0, 0)])
    windows = sliding_window(images, reach, (1, 2))
    chosen = windows[:, :: stride[0], :: stride[1], :, :: dilation[0], :: dilation[1]]
    return reshape(
        permute_dims(chosen, (0, 1, 2, 4, 5, 3)), (batch, *shape(chosen)[1:3], extent[0] * extent[1] * channels)
    )


def _pair(value: int | Sequence[int]) -> tuple[int, int]:
    first, second = (value, value) if isinstance(value, int) else value
    if first < 1 or second < 1:
        raise ValueError(f"size, strides and dilation_rate must be > 0, got {value}")
    return first, second


def _same_padding(length: int, reach: int, stride: int) -> tuple[int, int]:
    missing = (-(-length // stride) - 1) * stride + reach - length
    return (missing // 2, missing - missing // 2) if missing > 0 else (0, 0)
