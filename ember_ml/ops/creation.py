"""Creation of tensors from numbers, shapes and other data; constants."""

from __future__ import annotations

import math as _math
from typing import Any

from ember_ml import backend as _backends
from ember_ml.dispatch import op, operation_of
from ember_ml.dtypes import as_dtype, free, kept
from ember_ml.errors import UnsupportedError
from ember_ml.ops import _forms, control, manipulation
from ember_ml.types import DeviceLike, DTypeLike, HostArray, Number, Shape, Tensor, TensorLike

pi: float = _math.pi
e: float = _math.e
inf: float = _math.inf
nan: float = _math.nan
newaxis: None = None


@op(free, engine="obj, *, dtype, device, copy", form=_forms.asarray)
def asarray(
    obj: object,
    /,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike | None = None,
    copy: bool | None = None,
    ndmin: int = 0,
    subok: bool = False,
) -> Tensor:
    """Tensor of the active backend with the values of ``obj``.

    ``obj`` is a number, a nested sequence of numbers and tensors, a NumPy array, an object with ``__array__``,
    ``__dlpack__`` or the buffer protocol, or a tensor of any engine. Memory is shared where the engines allow it. An
    ``EmberTensor`` stays on its engine; its method ``to_backend`` moves it.

    Args:
        dtype: the dtype of the result, by default that of ``obj``. Python integers become int64, floats the default
            float.
        device: the device to put the result on.
        copy: ``True`` always copies. ``False`` raises ``ValueError`` where memory cannot be shared. ``None`` copies
            only where necessary.
        ndmin: the least number of axes; axes of length 1 are added in front.
        subok: accepted for compatibility.

    >>> asarray([[1, 2], [3, 4]]).tolist()
    [[1, 2], [3, 4]]
    """
    ...


array = asarray


@op(free)
def convert_to_tensor(
    data: object,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    *,
    copy: bool | None = None,
) -> Tensor:
    """Tensor of the active backend with the values of ``data``, as ``asarray`` returns it.

    A native tensor of another engine is moved; an ``EmberTensor`` stays on its engine, and ``to_backend`` moves it.

    Args:
        dtype, device, copy: as in ``asarray``.
        requires_grad: record operations on the result for ``backward``, which torch can. If ``data`` is a tensor, it
            is not changed: the result shares its memory. ``ember_ml.grad`` works on every engine.

    >>> convert_to_tensor([1, 2], "float32").tolist()
    [1.0, 2.0]
    """
    backend = _backends.current()
    # The engine's own function: errors then name the call that was made, and arguments are prepared once.
    x: Tensor = operation_of(asarray).runs[backend.name](data, dtype=dtype, device=device, copy=copy)
    if not requires_grad or getattr(x, "requires_grad", False):
        return x
    if not hasattr(x, "requires_grad"):
        raise UnsupportedError(
            "requires_grad must be False except on the torch backend, got True on the "
            f"{backend.chosen_as} backend; ember_ml.grad works on every engine"
        )
    own = as_dtype(x.dtype)
    if own.kind not in ("real floating", "complex floating"):
        raise TypeError(f"requires_grad must be False for a tensor that is not floating, got True for {own.name}")
    leaf: Any = control.stop_gradient(x)
    return leaf.requires_grad_()  # type: ignore[no-any-return]


@op(free, differentiable=False)
def from_dlpack(x: object, /, *, device: DeviceLike | None = None, copy: bool | None = None) -> Tensor:
    """Tensor of the active backend with the values of an object that implements DLPack.

    Args:
        device: the device to put the result on.
        copy: as in ``asarray``.

    >>> from_dlpack(asarray([1, 2])).tolist()
    [1, 2]
    """
    ...


@op(free)
def from_numpy(array: object, /) -> Tensor:
    """Tensor of the active backend with the values and dtype of a NumPy array, sharing its memory where possible.

    >>> from_numpy(to_numpy([1.0, 2.0])).tolist()
    [1.0, 2.0]
    """
    return asarray(array)


@op(free, lazy=False, differentiable=False)
def to_numpy(x: TensorLike, /) -> HostArray:
    """NumPy array with the values of ``x``: always a copy, so writing to it never changes a tensor.

    >>> to_numpy([1, 2]).tolist()
    [1, 2]
    """
    ...


@op(free, differentiable=False, engine="shape, *, dtype, device", form=_forms.zeros)
def zeros(shape: Shape, dtype: DTypeLike | None = None, *, device: DeviceLike | None = None) -> Tensor:
    """Tensor of zeros.

    Args:
        dtype: the dtype of the result, by default the default float.
        device: the device of the result, by default the default device.
        shape: one length, or a sequence of them; the lengths may also be given one by one.

    >>> zeros((2, 2)).tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    """
    ...


@op(free, differentiable=False, engine="shape, *, dtype, device", form=_forms.ones)
def ones(shape: Shape, dtype: DTypeLike | None = None, *, device: DeviceLike | None = None) -> Tensor:
    """Tensor of ones.

    Args:
        dtype: the dtype of the result, by default the default float.
        device: the device of the result, by default the default device.
        shape: one length, or a sequence of them; the lengths may also be given one by one.

    >>> ones(3, dtype="int32").tolist()
    [1, 1, 1]
    """
    ...


@op(free, engine="shape, fill_value, *, dtype, device", form=_forms.full)
def full(
    shape: Shape, fill_value: Number | Tensor, dtype: DTypeLike | None = None, *, device: DeviceLike | None = None
) -> Tensor:
    """Tensor filled with ``fill_value``.

    Args:
        dtype: the dtype of the result, by default that of ``fill_value``.
        device: the device of the result, by default the default device.

    >>> full((2,), 7).tolist()
    [7, 7]
    """
    ...


@op(free, differentiable=False, engine="shape, *, dtype, device", form=_forms.empty)
def empty(shape: Shape, dtype: DTypeLike | None = None, *, device: DeviceLike | None = None) -> Tensor:
    """Uninitialized tensor.

    Args:
        dtype: the dtype of the result, by default the default float.
        device: the device of the result, by default the default device.
        shape: one length, or a sequence of them; the lengths may also be given one by one.

    >>> tuple(empty((2, 3)).shape)
    (2, 3)
    """
    ...


@op(kept, differentiable=False, engine="x, *, dtype, device", form=_forms.zeros_like)
def zeros_like(
    x: TensorLike, /, dtype: DTypeLike | None = None, *, device: DeviceLike | None = None, shape: Shape | None = None
) -> Tensor:
    """Tensor of zeros with the shape and dtype of ``x``.

    Args:
        dtype, device: those of the result, by default those of ``x``.
        shape: the shape of the result, by default that of ``x``.

    >>> zeros_like([1, 2]).tolist()
    [0, 0]
    """
    ...


@op(kept, differentiable=False, engine="x, *, dtype, device", form=_forms.ones_like)
def ones_like(
    x: TensorLike, /, dtype: DTypeLike | None = None, *, device: DeviceLike | None = None, shape: Shape | None = None
) -> Tensor:
    """Tensor of ones with the shape and dtype of ``x``.

    Args:
        dtype, device: those of the result, by default those of ``x``.
        shape: the shape of the result, by default that of ``x``.

    >>> ones_like([5, 6]).tolist()
    [1, 1]
    """
    ...


@op(kept, engine="x, fill_value, *, dtype, device", form=_forms.full_like)
def full_like(
    x: TensorLike,
    /,
    fill_value: Number | Tensor,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike | None = None,
    shape: Shape | None = None,
) -> Tensor:
    """Tensor filled with ``fill_value``, with the shape and dtype of ``x``.

    Args:
        dtype, device: those of the result, by default those of ``x``.
        shape: the shape of the result, by default that of ``x``.

    >>> full_like([1, 2], 7).tolist()
    [7, 7]
    """
    ...


@op(kept, differentiable=False, engine="x, *, dtype, device", form=_forms.zeros_like)
def empty_like(
    x: TensorLike, /, dtype: DTypeLike | None = None, *, device: DeviceLike | None = None, shape: Shape | None = None
) -> Tensor:
    """Uninitialized tensor with the shape and dtype of ``x``.

    Args:
        dtype, device: those of the result, by default those of ``x``.
        shape: the shape of the result, by default that of ``x``.

    >>> tuple(empty_like([1, 2]).shape)
    (2,)
    """
    ...


@op(free, differentiable=False, engine="n_rows, n_cols, *, k, dtype, device", form=_forms.eye)
def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    k: int = 0,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike | None = None,
) -> Tensor:
    """Matrix with ones on diagonal ``k`` and zeros elsewhere.

    Args:
        n_cols: the number of columns, by default ``n_rows``.
        k: the diagonal; positive is above the main diagonal, negative below it.
        dtype: the dtype of the result, by default the default float.
        device: the device of the result, by default the default device.

    >>> eye(2, 3, k=1).tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    ...


@op(free, differentiable=False)
def identity(n: int, /, dtype: DTypeLike | None = None, *, device: DeviceLike | None = None) -> Tensor:
    """Identity matrix with ``n`` rows.

    Args:
        dtype: the dtype of the result, by default the default float.
        device: the device of the result, by default the default device.

    >>> identity(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return eye(n, dtype=dtype, device=device)


@op(free, differentiable=False, engine="start, /, stop, step, *, dtype, device", form=_forms.arange)
def arange(
    start: float,
    stop: float | None = None,
    step: float = 1,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike | None = None,
) -> Tensor:
    """Numbers from ``start`` up to but excluding ``stop``; int64 if all three arguments are integers.

    With one argument, the numbers from 0 up to but excluding it.

    Args:
        step: the distance between two numbers; it may be negative.
        dtype: the dtype of the result, by default int64 or the default float.
        device: the device of the result, by default the default device.

    >>> arange(3).tolist()
    [0, 1, 2]
    >>> arange(5, 0, -2).tolist()
    [5, 3, 1]
    """
    ...


@op(free, differentiable=False, engine="start, stop, /, num, *, dtype, device, endpoint", form=_forms.linspace)
def linspace(
    start: complex,
    stop: complex,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike | None = None,
    axis: int = 0,
) -> Tensor:
    """``num`` evenly spaced numbers from ``start`` to ``stop``.

    Args:
        dtype: the dtype of the result, by default the default float, or its complex dtype for complex bounds.
        device: the device of the result, by default the default device.
        endpoint: whether ``stop`` is the last number. If not, the spacing is such that it would be the next.
        retstep: return a pair of the numbers and the distance between two of them.
        axis: where the points are in the result, if ``start`` or ``stop`` is a tensor.

    >>> linspace(0, 1, 5).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    ...


@op(free, differentiable=False, engine="start, stop, /, num, *, base, dtype, device, endpoint", form=_forms.logspace)
def logspace(
    start: complex,
    stop: complex,
    num: int = 50,
    endpoint: bool = True,
    base: float = 10.0,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike | None = None,
    axis: int = 0,
) -> Tensor:
    """``base`` to the power of ``num`` evenly spaced numbers from ``start`` to ``stop``.

    Args:
        dtype: the dtype of the result, by default the default float, or its complex dtype for complex bounds.
        device: the device of the result, by default the default device.
        endpoint: as in ``linspace``.
        axis: where the points are in the result, if ``start``, ``stop`` or ``base`` is a tensor.

    >>> logspace(0, 3, 4, base=2).tolist()
    [1.0, 2.0, 4.0, 8.0]
    """
    ...


@op(free, differentiable=False, engine="start, stop, /, num, *, dtype, device, endpoint", form=_forms.geomspace)
def geomspace(
    start: complex,
    stop: complex,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike | None = None,
    axis: int = 0,
) -> Tensor:
    """``num`` numbers from ``start`` to ``stop`` with a constant ratio between neighbors.

    In an integer dtype, numbers are truncated, after correction of rounding errors.

    Args:
        dtype: the dtype of the result, by default the default float, or its complex dtype for complex bounds.
        device: the device of the result, by default the default device.
        endpoint: as in ``linspace``.
        axis: where the points are in the result, if ``start`` or ``stop`` is a tensor.

    >>> [f"{x:.2f}" for x in geomspace(1, 8, 4).tolist()]
    ['1.00', '2.00', '4.00', '8.00']
    """
    ...


@op(free)
def meshgrid(*arrays: TensorLike, indexing: str = "xy", sparse: bool = False, copy: bool = True) -> list[Tensor]:
    """Coordinates of the points of a grid, one tensor per axis.

    Args:
        indexing: ``"xy"``: the first array varies along axis 1 and the second along axis 0; ``"ij"``: array ``i``
            varies along axis ``i``.
        sparse: return tensors with length 1 along the axes of the others, which broadcast to the grid.
        copy: accepted for compatibility.

    >>> x, y = meshgrid([1, 2], [3, 4])
    >>> x.tolist(), y.tolist()
    ([[1, 2], [1, 2]], [[3, 3], [4, 4]])
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"indexing must be 'xy' or 'ij', got {indexing!r}")
    count = len(arrays)
    places = [1, 0, *range(2, count)][:count] if indexing == "xy" and count > 1 else range(count)
    lines = [
        manipulation.reshape(x, (*[1] * place, -1, *[1] * (count - 1 - place)))
        for x, place in zip(arrays, places, strict=True)
    ]
    return lines if sparse else manipulation.broadcast_arrays(*lines)


@op(kept, engine="x, *, k")
def tril(x: TensorLike, /, k: int = 0) -> Tensor:
    """Lower triangles of a stack of matrices: elements above diagonal ``k`` are zero.

    >>> tril([[1, 2], [3, 4]]).tolist()
    [[1, 0], [3, 4]]
    """
    ...


@op(kept, engine="x, *, k")
def triu(x: TensorLike, /, k: int = 0) -> Tensor:
    """Upper triangles of a stack of matrices: elements below diagonal ``k`` are zero.

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
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike | None = None,
) -> Tensor:
    """Matrix with ones on and below diagonal ``k`` and zeros above it.

    Args:
        n_cols: the number of columns, by default ``n_rows``.
        k: the diagonal; positive is above the main diagonal, negative below it.
        dtype: the dtype of the result, by default the default float.
        device: the device of the result, by default the default device.

    >>> tri(2, 3).tolist()
    [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]]
    """
    return tril(ones((n_rows, n_rows if n_cols is None else n_cols), dtype=dtype, device=device), k=k)


@op(kept)
def diag(x: TensorLike, /, k: int = 0) -> Tensor:
    """Matrix with the vector ``x`` on diagonal ``k``; for a matrix ``x``, the vector on that diagonal.

    >>> diag([1, 2]).tolist()
    [[1, 0], [0, 2]]
    >>> diag([[1, 2], [3, 4]]).tolist()
    [1, 4]
    """
    ...


@op(kept)
def diagflat(x: TensorLike, /, k: int = 0) -> Tensor:
    """Matrix with the elements of ``x``, in row-major order, on diagonal ``k``.

    >>> diagflat([[1], [2]]).tolist()
    [[1, 0], [0, 2]]
    """
    return diag(manipulation.ravel(x), k)


@op(kept, kinds="numeric", engine="x, n, *, increasing", form=_forms.vander)
def vander(x: TensorLike, /, n: int | None = None, increasing: bool = False, *, N: int | None = None) -> Tensor:  # noqa: N803 - as in NumPy
    """Vandermonde matrix of a vector: its powers as columns.

    Args:
        n: the number of columns, by default the length of ``x``.
        increasing: whether the powers increase from left to right.
        N: NumPy's name of ``n``.

    >>> vander([2, 3], 3).tolist()
    [[4, 2, 1], [9, 3, 1]]
    """
    ...


@op(kept)
def copy(x: TensorLike, /) -> Tensor:
    """Copy of ``x``.

    >>> copy([1, 2]).tolist()
    [1, 2]
    """
    ...


@op(free, differentiable=False)
def bartlett(n: int, /, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """Bartlett window of ``n`` points: a triangle that is zero at both ends.

    Args:
        dtype: the dtype of the result, by default the default float.
        device: the device of the result, by default the default device.

    >>> bartlett(5).tolist()
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    ...


@op(free, differentiable=False)
def blackman(n: int, /, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """Blackman window of ``n`` points: ``0.42 - 0.5 cos(2 pi i / (n - 1)) + 0.08 cos(4 pi i / (n - 1))``.

    Args:
        dtype: the dtype of the result, by default the default float.
        device: the device of the result, by default the default device.

    >>> [f"{x:.2f}" for x in blackman(5).tolist()[1:4]]
    ['0.34', '1.00', '0.34']
    """
    ...


@op(free, differentiable=False)
def hamming(n: int, /, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """Hamming window of ``n`` points: ``0.54 - 0.46 cos(2 pi i / (n - 1))``.

    Args:
        dtype: the dtype of the result, by default the default float.
        device: the device of the result, by default the default device.

    >>> [f"{x:.2f}" for x in hamming(5).tolist()]
    ['0.08', '0.54', '1.00', '0.54', '0.08']
    """
    ...


@op(free, differentiable=False)
def hanning(n: int, /, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """Hann window of ``n`` points: ``0.5 - 0.5 cos(2 pi i / (n - 1))``.

    Args:
        dtype: the dtype of the result, by default the default float.
        device: the device of the result, by default the default device.

    >>> [f"{x:.2f}" for x in hanning(5).tolist()]
    ['0.00', '0.50', '1.00', '0.50', '0.00']
    """
    ...


@op(free, differentiable=False)
def kaiser(n: int, beta: float, /, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """Kaiser window of ``n`` points: ``i0(beta sqrt(1 - (2 i / (n - 1) - 1)²)) / i0(beta)``.

    Args:
        dtype: the dtype of the result, by default the default float.
        device: the device of the result, by default the default device.

    >>> [f"{x:.4f}" for x in kaiser(3, 2.0).tolist()]
    ['0.4387', '1.0000', '0.4387']
    """
    ...
