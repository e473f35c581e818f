"""Tensors made from numbers, shapes and other data; constants."""

from __future__ import annotations

import math as _math

from ember_ml.dispatch import op
from ember_ml.dtypes import free, kept
from ember_ml.ops import manipulation
from ember_ml.types import DeviceLike, DTypeLike, HostArray, Number, Shape, Tensor, TensorLike

pi: float = _math.pi
e: float = _math.e
inf: float = _math.inf
nan: float = _math.nan
newaxis: None = None


@op(free)
def asarray(
    obj: object,
    /,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    copy: bool | None = None,
) -> Tensor:
    """A tensor of the active backend that holds the values of ``obj``.

    ``obj`` is a number, a nested sequence of numbers and tensors, a host array, an object with ``__array__``,
    ``__dlpack__`` or a buffer, or a tensor of any engine. Memory is shared where the engines allow it.

    Args:
        copy: ``True`` always copies; ``False`` raises ``ValueError`` where the values cannot be shared; ``None``
            copies only where it must.

    >>> asarray([[1, 2], [3, 4]]).tolist()
    [[1, 2], [3, 4]]
    """
    ...


convert_to_tensor = asarray
array = asarray


@op(free, differentiable=False)
def from_dlpack(x: object, /, *, device: DeviceLike | None = None, copy: bool | None = None) -> Tensor:
    """A tensor of the active backend with the values of an object that speaks DLPack.

    Args:
        copy: as in ``asarray``.

    >>> from_dlpack(asarray([1, 2])).tolist()
    [1, 2]
    """
    ...


@op(free)
def from_numpy(array: object, /) -> Tensor:
    """A tensor of the active backend with the values and dtype of a host array, sharing its memory where it can.

    >>> from_numpy(to_numpy([1.0, 2.0])).tolist()
    [1.0, 2.0]
    """
    return asarray(array)


@op(free, lazy=False, differentiable=False)
def to_numpy(x: TensorLike, /) -> HostArray:
    """A host array with the values of ``x``: a copy, so that writing to it never changes a tensor.

    >>> to_numpy([1, 2]).tolist()
    [1, 2]
    """
    ...


@op(free, differentiable=False)
def zeros(shape: Shape, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """A tensor of zeros.

    >>> zeros((2, 2)).tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    """
    ...


@op(free, differentiable=False)
def ones(shape: Shape, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """A tensor of ones.

    >>> ones(3, dtype="int32").tolist()
    [1, 1, 1]
    """
    ...


@op(free)
def full(
    shape: Shape,
    fill_value: Number | Tensor,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """A tensor that holds ``fill_value`` everywhere, in the dtype that the value has on its own.

    >>> full((2,), 7).tolist()
    [7, 7]
    """
    ...


@op(free, differentiable=False)
def empty(shape: Shape, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """A tensor whose values are whatever the memory held.

    >>> tuple(empty((2, 3)).shape)
    (2, 3)
    """
    ...


@op(kept, differentiable=False)
def zeros_like(x: TensorLike, /, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """A tensor of zeros with the shape and dtype of ``x``.

    >>> zeros_like([1, 2]).tolist()
    [0, 0]
    """
    ...


@op(kept, differentiable=False)
def ones_like(x: TensorLike, /, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """A tensor of ones with the shape and dtype of ``x``.

    >>> ones_like([5, 6]).tolist()
    [1, 1]
    """
    ...


@op(kept)
def full_like(
    x: TensorLike,
    /,
    fill_value: Number | Tensor,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """A tensor that holds ``fill_value`` everywhere, with the shape and dtype of ``x``.

    >>> full_like([1, 2], 7).tolist()
    [7, 7]
    """
    ...


@op(kept, differentiable=False)
def empty_like(x: TensorLike, /, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """A tensor with the shape and dtype of ``x`` whose values are whatever the memory held.

    >>> tuple(empty_like([1, 2]).shape)
    (2,)
    """
    ...


@op(free, differentiable=False)
def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """A matrix with ones on its ``k``-th diagonal and zeros elsewhere.

    >>> eye(2, 3, k=1).tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    ...


@op(free, differentiable=False)
def identity(n: int, /, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """The square matrix with ones on its diagonal and zeros elsewhere.

    >>> identity(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return eye(n, dtype=dtype, device=device)


@op(free, differentiable=False)
def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """The numbers from ``start`` up to, not including, ``stop``; int64 if all three are integers.

    With one argument, the numbers from 0 up to it.

    >>> arange(3).tolist()
    [0, 1, 2]
    >>> arange(5, 0, -2).tolist()
    [5, 3, 1]
    """
    ...


@op(free, differentiable=False)
def linspace(
    start: complex,
    stop: complex,
    /,
    num: int = 50,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    endpoint: bool = True,
) -> Tensor:
    """``num`` evenly spaced numbers from ``start`` to ``stop``.

    Args:
        endpoint: whether ``stop`` is the last of them; if not, it would be the next one.

    >>> linspace(0, 1, 5).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    ...


@op(free, differentiable=False)
def logspace(
    start: complex,
    stop: complex,
    /,
    num: int = 50,
    *,
    base: float = 10.0,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    endpoint: bool = True,
) -> Tensor:
    """``base`` to the powers of ``num`` evenly spaced numbers from ``start`` to ``stop``.

    >>> logspace(0, 3, 4, base=2).tolist()
    [1.0, 2.0, 4.0, 8.0]
    """
    ...


@op(free, differentiable=False)
def geomspace(
    start: complex,
    stop: complex,
    /,
    num: int = 50,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    endpoint: bool = True,
) -> Tensor:
    """``num`` numbers from ``start`` to ``stop``, each a constant multiple of the one before.

    An integer dtype cuts off what is after the point, but for errors of rounding.

    >>> [f"{x:.2f}" for x in geomspace(1, 8, 4).tolist()]
    ['1.00', '2.00', '4.00', '8.00']
    """
    ...


@op(free)
def meshgrid(*arrays: TensorLike, indexing: str = "xy") -> list[Tensor]:
    """The coordinates of the points of a grid, one tensor per axis.

    Args:
        indexing: ``"xy"`` (rows are the second array) or ``"ij"`` (rows are the first).

    >>> x, y = meshgrid([1, 2], [3, 4])
    >>> x.tolist(), y.tolist()
    ([[1, 2], [1, 2]], [[3, 3], [4, 4]])
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"indexing must be 'xy' or 'ij', got {indexing!r}")
    count = len(arrays)
    places = [1, 0, *range(2, count)][:count] if indexing == "xy" and count > 1 else range(count)
    lines = [manipulation.reshape(x, (-1, *[1] * (count - 1 - place))) for x, place in zip(arrays, places, strict=True)]
    return manipulation.broadcast_arrays(*lines)


@op(kept)
def tril(x: TensorLike, /, *, k: int = 0) -> Tensor:
    """The lower triangles of a stack of matrices: elements above the ``k``-th diagonal are zero.

    >>> tril([[1, 2], [3, 4]]).tolist()
    [[1, 0], [3, 4]]
    """
    ...


@op(kept)
def triu(x: TensorLike, /, *, k: int = 0) -> Tensor:
    """The upper triangles of a stack of matrices: elements below the ``k``-th diagonal are zero.

    >>> triu([[1, 2], [3, 4]]).tolist()
    [[1, 2], [0, 4]]
    """
    ...


@op(free, differentiable=False)
def tri(
    n_rows: int,
    n_cols: int | None = None,
    /,
    k: int = 0,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """A matrix with ones at and below its ``k``-th diagonal and zeros above.

    >>> tri(2, 3).tolist()
    [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]]
    """
    return tril(ones((n_rows, n_rows if n_cols is None else n_cols), dtype=dtype, device=device), k=k)


@op(kept)
def diag(x: TensorLike, /, k: int = 0) -> Tensor:
    """The matrix with the vector ``x`` on its ``k``-th diagonal; of a matrix ``x``, that diagonal.

    >>> diag([1, 2]).tolist()
    [[1, 0], [0, 2]]
    >>> diag([[1, 2], [3, 4]]).tolist()
    [1, 4]
    """
    ...


@op(kept)
def diagflat(x: TensorLike, /, k: int = 0) -> Tensor:
    """The matrix with the elements of ``x``, in row-major order, on its ``k``-th diagonal.

    >>> diagflat([[1], [2]]).tolist()
    [[1, 0], [0, 2]]
    """
    return diag(manipulation.ravel(x), k)


@op(kept, kinds="numeric")
def vander(x: TensorLike, /, n: int | None = None, *, increasing: bool = False) -> Tensor:
    """The Vandermonde matrix of a vector: ``n`` columns (by default its length) of its powers.

    Args:
        increasing: whether the powers grow from left to right.

    >>> vander([2, 3], 3).tolist()
    [[4, 2, 1], [9, 3, 1]]
    """
    ...


@op(kept)
def copy(x: TensorLike, /) -> Tensor:
    """A copy of ``x``.

    >>> copy([1, 2]).tolist()
    [1, 2]
    """
    ...


@op(free, differentiable=False)
def bartlett(n: int, /, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """The triangular window of ``n`` points, zero at both ends.

    >>> bartlett(5).tolist()
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    ...


@op(free, differentiable=False)
def blackman(n: int, /, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """The window ``0.42 - 0.5 cos(2 pi i / (n - 1)) + 0.08 cos(4 pi i / (n - 1))`` of ``n`` points.

    >>> [f"{x:.2f}" for x in blackman(5).tolist()[1:4]]
    ['0.34', '1.00', '0.34']
    """
    ...


@op(free, differentiable=False)
def hamming(n: int, /, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """The window ``0.54 - 0.46 cos(2 pi i / (n - 1))`` of ``n`` points.

    >>> [f"{x:.2f}" for x in hamming(5).tolist()]
    ['0.08', '0.54', '1.00', '0.54', '0.08']
    """
    ...


@op(free, differentiable=False)
def hanning(n: int, /, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """The window ``0.5 - 0.5 cos(2 pi i / (n - 1))`` of ``n`` points.

    >>> [f"{x:.2f}" for x in hanning(5).tolist()]
    ['0.00', '0.50', '1.00', '0.50', '0.00']
    """
    ...


@op(free, differentiable=False)
def kaiser(n: int, beta: float, /, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """The window ``i0(beta sqrt(1 - (2 i / (n - 1) - 1)²)) / i0(beta)`` of ``n`` points.

    >>> [f"{x:.4f}" for x in kaiser(3, 2.0).tolist()]
    ['0.4387', '1.0000', '0.4387']
    """
    ...
