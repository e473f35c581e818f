"""Calls as NumPy's functions accept them, beyond the parameters that engines receive.

Each function here is the ``form`` of an operation (``@op(..., form=...)``): dispatch calls it with the arguments as
they were given, if these do not fit the parameters that engines receive. It is composed of operations, so that it
computes the same on every engine, and its gradients follow from theirs.

By ``claim``, a form also takes calls that do fit, but whose values the engines refuse, such as ``axis=None``.
"""

from __future__ import annotations

import builtins
import math as _math
import operator
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from ember_ml.dtypes import as_dtype, default_float
from ember_ml.shapes.axes import axes_of, axis_of

# The modules of operations import this one, so it is not complete yet; type checkers need not follow the cycle.
ops: Any = import_module("ember_ml.ops")


def claim(form: Callable[..., Any], test: Callable[..., bool]) -> None:
    """Let ``form`` also take the calls for whose values, those that engines receive, ``test`` is true."""
    form.claims = test  # type: ignore[attr-defined]


def sum(
    x: Any, /, axis: Any = None, dtype: Any = None, *, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Any:
    result = ops.sum(_masked(x, where, 0), axis=axis, dtype=dtype, keepdims=keepdims)
    return result if initial is None else ops.add(result, initial)


def prod(
    x: Any, /, axis: Any = None, dtype: Any = None, *, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Any:
    result = ops.prod(_masked(x, where, 1), axis=axis, dtype=dtype, keepdims=keepdims)
    return result if initial is None else ops.multiply(result, initial)


def nansum(
    x: Any, /, axis: Any = None, dtype: Any = None, *, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Any:
    result = ops.nansum(_masked(x, where, 0), axis=axis, dtype=dtype, keepdims=keepdims)
    return result if initial is None else ops.add(result, initial)


def nanprod(
    x: Any, /, axis: Any = None, dtype: Any = None, *, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Any:
    result = ops.nanprod(_masked(x, where, 1), axis=axis, dtype=dtype, keepdims=keepdims)
    return result if initial is None else ops.multiply(result, initial)


def _masked(x: Any, where: Any, value: Any) -> Any:
    """``x``, or ``value`` where the mask is false."""
    return x if where is None else ops.where(where, x, value)


def _without_nan(x: Any, value: float) -> Any:
    x = ops.asarray(x) if isinstance(x, (int, float, complex, list, tuple)) else x
    return ops.where(ops.isnan(x), value, x) if ops.isdtype(x.dtype, ("real floating", "complex floating")) else x


def mean(x: Any, /, axis: Any = None, dtype: Any = None, *, keepdims: bool = False, where: Any = None) -> Any:
    x = x if dtype is None else ops.cast(x, dtype)
    if where is None:
        return ops.mean(x, axis=axis, keepdims=keepdims)
    total = ops.sum(_masked(_floats(x), where, 0), axis=axis, keepdims=keepdims)
    return ops.divide(total, _number(x, where, axis, keepdims, total))


def nanmean(x: Any, /, axis: Any = None, dtype: Any = None, *, keepdims: bool = False, where: Any = None) -> Any:
    x = x if dtype is None else ops.cast(x, dtype)
    return ops.nanmean(_masked(_floats(x), where, _math.nan), axis=axis, keepdims=keepdims)


def _floats(x: Any) -> Any:
    """``x`` as a tensor of a floating dtype."""
    return ops.divide(x, 1)


def _number(x: Any, where: Any, axis: Any, keepdims: bool, like: Any) -> Any:
    """How many elements of ``x`` the mask leaves along ``axis``, in the dtype of ``like``."""
    mask = ops.logical_or(where, ops.zeros_like(x, dtype="bool"))
    return ops.cast(ops.sum(mask, axis=axis, keepdims=keepdims), _real(like))


def _real(x: Any) -> Any:
    dtype = as_dtype(x.dtype)
    return ops.real(x).dtype if dtype.kind == "complex floating" else dtype


def var(
    x: Any,
    /,
    axis: Any = None,
    dtype: Any = None,
    *,
    correction: Any = None,
    keepdims: bool = False,
    ddof: Any = None,
    where: Any = None,
    mean: Any = None,
) -> Any:
    return _variance("var", x, axis, dtype, _correction("var", correction, ddof), keepdims, where, mean)


def std(
    x: Any,
    /,
    axis: Any = None,
    dtype: Any = None,
    *,
    correction: Any = None,
    keepdims: bool = False,
    ddof: Any = None,
    where: Any = None,
    mean: Any = None,
) -> Any:
    return _variance("std", x, axis, dtype, _correction("std", correction, ddof), keepdims, where, mean)


def nanvar(
    x: Any,
    /,
    axis: Any = None,
    dtype: Any = None,
    *,
    correction: Any = None,
    keepdims: bool = False,
    ddof: Any = None,
    where: Any = None,
) -> Any:
    x = _masked(_floats(x if dtype is None else ops.cast(x, dtype)), where, _math.nan)
    return ops.nanvar(x, axis=axis, correction=_correction("nanvar", correction, ddof), keepdims=keepdims)


def nanstd(
    x: Any,
    /,
    axis: Any = None,
    dtype: Any = None,
    *,
    correction: Any = None,
    keepdims: bool = False,
    ddof: Any = None,
    where: Any = None,
) -> Any:
    x = _masked(_floats(x if dtype is None else ops.cast(x, dtype)), where, _math.nan)
    return ops.nanstd(x, axis=axis, correction=_correction("nanstd", correction, ddof), keepdims=keepdims)


def _correction(name: str, correction: Any, ddof: Any) -> Any:
    """The number that is subtracted from that of the elements, which NumPy also calls ``ddof``."""
    if correction is not None and ddof is not None:
        raise ValueError(f"{name}: correction and ddof must not both be given, got {correction} and {ddof}")
    return correction if correction is not None else 0 if ddof is None else ddof


def _variance(
    name: str, x: Any, axis: Any, dtype: Any, correction: Any, keepdims: bool, where: Any, middle: Any
) -> Any:
    x = x if dtype is None else ops.cast(x, dtype)
    if where is None and middle is None:
        return getattr(ops, name)(x, axis=axis, correction=correction, keepdims=keepdims)
    x = _floats(x)
    where = True if where is None else where
    middle = mean(x, axis, keepdims=True, where=where) if middle is None else middle
    squares = _masked(ops.square(ops.abs(ops.subtract(x, middle))), where, 0)
    total = ops.sum(squares, axis=axis, keepdims=keepdims)
    freedom = ops.maximum(ops.subtract(_number(x, where, axis, keepdims, total), correction), 0)
    result = ops.divide(total, freedom)
    return ops.sqrt(result) if name == "std" else result


def max(x: Any, /, axis: Any = None, *, keepdims: bool = False, initial: Any = None, where: Any = None) -> Any:
    return _extreme("max", x, axis, keepdims, initial, where)


def min(x: Any, /, axis: Any = None, *, keepdims: bool = False, initial: Any = None, where: Any = None) -> Any:
    return _extreme("min", x, axis, keepdims, initial, where)


def nanmax(x: Any, /, axis: Any = None, *, keepdims: bool = False, initial: Any = None, where: Any = None) -> Any:
    return _extreme("nanmax", x, axis, keepdims, initial, where)


def nanmin(x: Any, /, axis: Any = None, *, keepdims: bool = False, initial: Any = None, where: Any = None) -> Any:
    return _extreme("nanmin", x, axis, keepdims, initial, where)


def _extreme(name: str, x: Any, axis: Any, keepdims: bool, initial: Any, where: Any) -> Any:
    if initial is None:
        if where is not None:
            raise ValueError(f"{name}: initial must be given with where, since no element may be left, got None")
        return getattr(ops, name)(x, axis=axis, keepdims=keepdims)
    x = _masked(x, where, initial)
    if _math.prod(ops.shape(x)) == 0:
        zeros = ops.sum(x, axis=axis, keepdims=keepdims)
        return (
            ops.full_like(zeros, initial, dtype=as_dtype(x.dtype)) if hasattr(x, "dtype") else ops.add(zeros, initial)
        )
    found = getattr(ops, name)(x, axis=axis, keepdims=keepdims)
    if name.startswith("nan"):
        found = _without_nan(found, initial)
    return ops.maximum(found, initial) if name.endswith("max") else ops.minimum(found, initial)


def all(x: Any, /, axis: Any = None, *, keepdims: bool = False, where: Any = None) -> Any:
    return ops.all(x if where is None else ops.logical_or(x, ops.logical_not(where)), axis=axis, keepdims=keepdims)


def any(x: Any, /, axis: Any = None, *, keepdims: bool = False, where: Any = None) -> Any:
    return ops.any(x if where is None else ops.logical_and(x, where), axis=axis, keepdims=keepdims)


def median(x: Any, /, axis: Any = None, *, keepdims: bool = False, overwrite_input: bool = False) -> Any:
    return ops.median(x, axis=axis, keepdims=keepdims)


def nanmedian(x: Any, /, axis: Any = None, *, keepdims: bool = False, overwrite_input: bool = False) -> Any:
    return ops.nanmedian(x, axis=axis, keepdims=keepdims)


def quantile(
    x: Any,
    q: Any,
    /,
    axis: Any = None,
    *,
    keepdims: bool = False,
    method: str = "linear",
    weights: Any = None,
    overwrite_input: bool = False,
) -> Any:
    return _quantile("quantile", x, q, axis, 1, keepdims, method, weights)


def percentile(
    x: Any,
    q: Any,
    /,
    axis: Any = None,
    *,
    keepdims: bool = False,
    method: str = "linear",
    weights: Any = None,
    overwrite_input: bool = False,
) -> Any:
    return _quantile("percentile", x, q, axis, 100, keepdims, method, weights)


def nanquantile(
    x: Any,
    q: Any,
    /,
    axis: Any = None,
    *,
    keepdims: bool = False,
    method: str = "linear",
    weights: Any = None,
    overwrite_input: bool = False,
) -> Any:
    return _quantile("nanquantile", x, q, axis, 1, keepdims, method, weights)


def nanpercentile(
    x: Any,
    q: Any,
    /,
    axis: Any = None,
    *,
    keepdims: bool = False,
    method: str = "linear",
    weights: Any = None,
    overwrite_input: bool = False,
) -> Any:
    return _quantile("nanpercentile", x, q, axis, 100, keepdims, method, weights)


def _quantile(name: str, x: Any, q: Any, axis: Any, scale: int, keepdims: bool, method: str, weights: Any) -> Any:
    if weights is None:
        return getattr(ops, name)(x, q, axis=axis, keepdims=keepdims, method=method)
    if method != "inverted_cdf":
        raise ValueError(f"{name}: method must be 'inverted_cdf' with weights, got {method!r}")
    x = _floats(x)
    shape = tuple(ops.shape(x))
    axes = axes_of(axis, len(shape))
    weights = _spread_weights(name, ops.cast(weights, as_dtype(x.dtype)), shape, axes)
    if name.startswith("nan"):
        missing = ops.isnan(x)
        x, weights = ops.where(missing, _math.inf, x), ops.where(missing, 0, weights)
    kept = [i for i in range(len(shape)) if i not in axes]
    outer = [shape[i] for i in kept]
    flat, share = (ops.reshape(ops.permute_dims(part, (*kept, *axes)), (*outer, -1)) for part in (x, weights))
    order = ops.argsort(flat, axis=-1)
    flat, share = ops.take_along_axis(flat, order, axis=-1), ops.take_along_axis(share, order, axis=-1)
    running = ops.cumsum(share, axis=-1)
    part = ops.divide(running, running[..., -1:])
    # Elements without weight at the front are never chosen, not even for q = 0.
    part = ops.where(ops.equal(part, 0), -1, part)
    levels = ops.divide(ops.cast(q, as_dtype(x.dtype)), scale)
    lower = ops.less(part[..., None], ops.reshape(levels, (-1,)))
    index = ops.minimum(ops.sum(lower, axis=-2), flat.shape[-1] - 1)
    found = ops.take_along_axis(flat, index, axis=-1)
    if not name.startswith("nan"):
        found = ops.where(ops.isnan(flat[..., -1:]), _math.nan, found)
    inner = [1 if i in axes else n for i, n in enumerate(shape)] if keepdims else outer
    return ops.reshape(ops.moveaxis(found, -1, 0), (*ops.shape(levels), *inner))


def _spread_weights(name: str, weights: Any, shape: tuple[int, ...], axes: Sequence[int]) -> Any:
    """Weights in the shape of the elements, from such or from one weight for each element along the one axis."""
    own = tuple(ops.shape(weights))
    if own == shape:
        return weights
    if len(axes) != 1 or own != (shape[axes[0]],):
        raise ValueError(f"{name}: weights must have the shape of x, {list(shape)}, or that of axis, got {list(own)}")
    return ops.broadcast_to(ops.reshape(weights, (-1,) + (1,) * (len(shape) - 1 - axes[0])), shape)


def where(condition: Any, /) -> Any:
    return ops.nonzero(condition)


def sort(x: Any, /, axis: Any = -1, *, descending: bool = False, stable: bool = True, kind: str | None = None) -> Any:
    x, axis = (ops.ravel(x), 0) if axis is None else (x, axis)
    return ops.sort(x, axis=axis, descending=descending, stable=stable)


claim(sort, lambda x, axis, descending, stable: axis is None)


def argsort(
    x: Any, /, axis: Any = -1, *, descending: bool = False, stable: bool = True, kind: str | None = None
) -> Any:
    x, axis = (ops.ravel(x), 0) if axis is None else (x, axis)
    return ops.argsort(x, axis=axis, descending=descending, stable=stable)


claim(argsort, lambda x, axis, descending, stable: axis is None)


def take(x: Any, indices: Any, /, axis: Any = None, *, mode: str = "raise") -> Any:
    x = ops.ravel(x) if axis is None else x
    axis = 0 if axis is None else axis
    length = ops.shape(x)[axis_of(axis, len(ops.shape(x)))]
    return ops.take(x, _within("take", indices, length, mode), axis=axis)


def _within(name: str, indices: Any, length: int, mode: str) -> Any:
    """Indices into an axis, with those out of range treated as ``mode`` says."""
    if mode == "wrap":
        return ops.remainder(indices, length)
    if mode == "clip":
        return ops.clip(indices, 0, length - 1)
    if mode != "raise":
        raise ValueError(f"{name}: mode must be 'raise', 'wrap' or 'clip', got {mode!r}")
    return indices


def take_along_axis(x: Any, indices: Any, /, axis: Any = -1) -> Any:
    return ops.take_along_axis(ops.ravel(x), indices, axis=0)


claim(take_along_axis, lambda x, indices, axis: axis is None)


def ravel_multi_index(multi_index: Any, shape: Any, *, mode: Any = "raise") -> Any:
    if mode == "raise":
        return ops.ravel_multi_index(multi_index, shape)
    lengths = (shape,) if isinstance(shape, int) else tuple(shape)
    modes = (mode,) * len(lengths) if isinstance(mode, str) else mode
    if not len(multi_index) == len(lengths) == len(modes):
        raise ValueError(
            f"ravel_multi_index: multi_index, shape and mode must have one entry per axis, got {len(multi_index)}, "
            f"{len(lengths)} and {len(modes)}"
        )
    places = [_within("ravel_multi_index", i, n, m) for i, n, m in zip(multi_index, lengths, modes, strict=True)]
    return ops.ravel_multi_index(places, shape)


def size(x: Any, /, axis: Any = None) -> Any:
    shape = ops.shape(x)
    return _math.prod(shape[i] for i in axes_of(axis, len(shape)))


def reshape(x: Any, /, shape: Any, *lengths: Any, copy: bool | None = None) -> Any:
    return ops.reshape(x, _integers("reshape", "shape", (shape, *lengths)), copy=copy)


def transpose(x: Any, /, *axes: Any) -> Any:
    order, rank = _integers("transpose", "axes", axes), len(ops.shape(x))
    # torch swaps two axes by such a call, which NumPy takes for the order of all.
    if len(order) == 2 and (rank != 2 or order[0] % 2 == 0):
        raise TypeError(
            f"transpose: two axes must be 1, 0 for a matrix, got {order[0]}, {order[1]} for {rank} axes; write "
            f"swapaxes(x, {order[0]}, {order[1]}) to swap them, or transpose(x, {order}) for the order of all axes"
        )
    if len(order) != rank:
        raise ValueError(f"transpose: axes must name each of the {rank} axes once, got {len(order)} axes")
    return ops.transpose(x, order)


claim(transpose, lambda x, axes: isinstance(axes, int))


def _integers(name: str, parameter: str, values: tuple[Any, ...]) -> tuple[int, ...]:
    """Integers that were given one by one."""
    try:
        return tuple(map(operator.index, values))
    except TypeError:
        raise TypeError(f"{name}: {parameter} must be integers, or one sequence of them, got {values}") from None


def asarray(
    obj: Any,
    /,
    dtype: Any = None,
    *,
    device: Any = None,
    copy: bool | None = None,
    ndmin: int = 0,
    subok: bool = False,
) -> Any:
    x: Any = ops.asarray(obj, dtype=dtype, device=device, copy=copy)
    rank = len(ops.shape(x))
    return x if rank >= ndmin else ops.reshape(x, (1,) * (ndmin - rank) + tuple(ops.shape(x)))


def zeros(shape: Any, *others: Any, dtype: Any = None, device: Any = None) -> Any:
    shape, dtype = _shape_and_dtype("zeros", (shape, *others), dtype)
    return ops.zeros(shape, dtype=dtype, device=device)


def ones(shape: Any, *others: Any, dtype: Any = None, device: Any = None) -> Any:
    shape, dtype = _shape_and_dtype("ones", (shape, *others), dtype)
    return ops.ones(shape, dtype=dtype, device=device)


def empty(shape: Any, *others: Any, dtype: Any = None, device: Any = None) -> Any:
    shape, dtype = _shape_and_dtype("empty", (shape, *others), dtype)
    return ops.empty(shape, dtype=dtype, device=device)


def _shape_and_dtype(name: str, args: tuple[Any, ...], dtype: Any) -> tuple[Any, Any]:
    """Shape and dtype of ``ones(2, 3)``, whose lengths were given one by one, or of ``ones((2, 3), "float32")``."""
    shape, *rest = args
    if _are_integers(args):
        return args, dtype
    if len(rest) != 1 or dtype is not None or isinstance(rest[0], (int, tuple, list)):
        raise TypeError(f"{name}: the arguments must be a shape and a dtype, or lengths, got {args}")
    return shape, rest[0]


def _are_integers(values: tuple[Any, ...]) -> bool:
    """Whether all values are integers."""
    # Types such as ``int``, which are dtypes, have the attributes of their instances.
    return builtins.all(hasattr(type(value), "__index__") for value in values)


def full(shape: Any, fill_value: Any, dtype: Any = None, *, device: Any = None) -> Any:
    return ops.full(shape, fill_value, dtype=dtype, device=device)


def zeros_like(x: Any, /, dtype: Any = None, *, device: Any = None, shape: Any = None) -> Any:
    return full_like(x, 0, dtype, device=device, shape=shape)


def ones_like(x: Any, /, dtype: Any = None, *, device: Any = None, shape: Any = None) -> Any:
    return full_like(x, 1, dtype, device=device, shape=shape)


def full_like(x: Any, /, fill_value: Any, dtype: Any = None, *, device: Any = None, shape: Any = None) -> Any:
    if shape is not None:
        # One element of the dtype of ``x``, which may have none, and on its device.
        x = ops.broadcast_to(ops.pad(ops.ravel(x)[:0], (0, 1))[0], shape)
    return ops.full_like(x, fill_value, dtype=dtype, device=device)


def eye(n_rows: int, n_cols: int | None = None, k: int = 0, dtype: Any = None, *, device: Any = None) -> Any:
    return ops.eye(n_rows, n_cols, k=k, dtype=dtype, device=device)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None, *, device: Any = None) -> Any:
    return ops.arange(start, stop, step, dtype=dtype, device=device)


def _is_array(value: Any) -> bool:
    return isinstance(value, (list, tuple)) or len(getattr(value, "shape", ())) > 0


def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    *,
    device: Any = None,
    axis: int = 0,
) -> Any:
    if _is_array(start) or _is_array(stop):
        start, stop = _floats(start), _floats(stop)
        result = _rounded_down(_between(start, stop, num, endpoint, axis), dtype)
    else:
        result = ops.linspace(start, stop, num, dtype=dtype, device=device, endpoint=endpoint)
    gaps = num - 1 if endpoint else num
    if not retstep:
        return result
    if gaps <= 0:
        return result, ops.full_like(ops.subtract(stop, start), _math.nan, dtype=default_float())
    return result, ops.divide(ops.subtract(stop, start), gaps)


claim(linspace, lambda start, stop, *rest: _is_array(start) or _is_array(stop))


def _between(start: Any, stop: Any, num: int, endpoint: bool, axis: int) -> Any:
    """Evenly spaced points between tensors, along a new axis; the ends are exact."""
    like = ops.subtract(stop, start)
    gaps = builtins.max(num - 1 if endpoint else num, 1)
    part = ops.divide(ops.arange(num, dtype=_real(like), device=ops.get_device(like)), gaps)
    part = ops.reshape(part, (-1,) + (1,) * len(ops.shape(like)))
    points = ops.add(ops.multiply(start, ops.subtract(1, part)), ops.multiply(stop, part))
    return ops.moveaxis(points, 0, axis)


def _rounded_down(x: Any, dtype: Any) -> Any:
    if dtype is None:
        return x
    return ops.cast(ops.floor(x) if ops.isdtype(as_dtype(dtype), "integral") else x, dtype)


def logspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    *,
    device: Any = None,
    axis: int = 0,
) -> Any:
    if not (_is_array(start) or _is_array(stop) or _is_array(base)):
        return ops.logspace(start, stop, num, base=base, dtype=dtype, device=device, endpoint=endpoint)
    start, stop, base = ops.broadcast_arrays(_floats(start), _floats(stop), _floats(base))
    points = ops.power(ops.expand_dims(base, axis=axis), _between(start, stop, num, endpoint, axis))
    return points if dtype is None else ops.cast(points, dtype)


claim(logspace, lambda start, stop, num, base, *rest: _is_array(start) or _is_array(stop) or _is_array(base))


def geomspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    dtype: Any = None,
    *,
    device: Any = None,
    axis: int = 0,
) -> Any:
    if not (_is_array(start) or _is_array(stop)):
        return ops.geomspace(start, stop, num, dtype=dtype, device=device, endpoint=endpoint)
    start, stop = ops.broadcast_arrays(_floats(start), _floats(stop))
    ratio = ops.divide(stop, start)
    exponents = _between(ops.zeros_like(ratio), ops.ones_like(ratio), num, endpoint, axis)
    points = ops.multiply(ops.expand_dims(start, axis=axis), ops.power(ops.expand_dims(ratio, axis=axis), exponents))
    return points if dtype is None else ops.cast(points, dtype)


claim(geomspace, lambda start, stop, *rest: _is_array(start) or _is_array(stop))


def vander(x: Any, /, n: int | None = None, increasing: bool = False, *, N: int | None = None) -> Any:  # noqa: N803 - as in NumPy
    if n is not None and N is not None:
        raise ValueError(f"vander: n and N must not both be given, got {n} and {N}")
    return ops.vander(x, n if N is None else N, increasing=increasing)


def nan_to_num(
    x: Any, /, *, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None, copy: bool = True
) -> Any:
    return ops.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)


def angle(x: Any, /, deg: bool = False) -> Any:
    return ops.rad2deg(ops.angle(x)) if deg else ops.angle(x)


def diagonal(x: Any, /, offset: int = 0, axis1: int = -2, axis2: int = -1) -> Any:
    return ops.diagonal(ops.moveaxis(x, (axis1, axis2), (-2, -1)), offset=offset)


def einsum(equation: Any, /, *operands: Any, optimize: Any = None) -> Any:
    if not isinstance(equation, str):
        equation, operands = _equation((equation, *operands))
    return ops.einsum(equation, *operands)


claim(einsum, lambda equation, operands: not isinstance(equation, str))


def _equation(given: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """The equation and the operands of NumPy's other notation: operands, each followed by the numbers of its axes."""
    output = given[-1] if len(given) % 2 else None
    operands, lists = given[: len(given) // 2 * 2 : 2], given[1::2]
    try:
        named = {one for each in (lists if output is None else (*lists, output)) for one in each if one is not Ellipsis}
        letters = dict(zip(sorted(named), _LETTERS, strict=False)) | {Ellipsis: "..."}
        terms = ["".join(letters[one] for one in each) for each in lists]
        arrow = "" if output is None else "->" + "".join(letters[one] for one in output)
    except (TypeError, KeyError):
        raise TypeError(
            "einsum: equation must be a string like 'ij,jk->ik', or tensors must each be followed by a list of axes"
        ) from None
    return ",".join(terms) + arrow, operands


_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def svd(x: Any, /, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    return ops.svd(x, full_matrices=full_matrices) if compute_uv else ops.svdvals(x)


def qr(x: Any, /, mode: str = "reduced") -> Any:
    return ops.qr(x, mode="reduced").R if mode == "r" else ops.qr(x, mode=mode)


claim(qr, lambda x, mode: mode == "r")


_PADDINGS = ("linear_ramp", "maximum", "minimum", "mean", "median", "empty")


def pad(
    x: Any,
    /,
    pad_width: Any,
    mode: str = "constant",
    *,
    constant_values: Any = 0,
    end_values: Any = 0,
    stat_length: Any = None,
    reflect_type: str = "even",
) -> Any:
    rank = len(ops.shape(x))
    if isinstance(pad_width, dict):
        by_axis = {axis_of(axis, rank): pair for axis, pair in pad_width.items()}
        pad_width = [_pair(by_axis.get(i, 0)) for i in range(rank)]
    if reflect_type not in ("even", "odd"):
        raise ValueError(f"pad: reflect_type must be 'even' or 'odd', got {reflect_type!r}")
    if mode not in _PADDINGS and not (reflect_type == "odd" and mode in ("reflect", "symmetric")):
        return ops.pad(x, pad_width, mode, constant_values=constant_values)
    widths, ends, lengths = (_pairs(each, rank) for each in (pad_width, end_values, stat_length))
    for axis in range(rank):
        # Both sides are made from the same tensor, which the axes before have already made larger.
        sides = []
        for side in (0, 1):
            line = ops.flip(x, axis=axis) if side else x
            width = operator.index(widths[axis][side])
            if width < 0:
                raise ValueError(f"pad: pad_width must be >= 0, got {width}")
            if mode == "empty":
                added = _repeated(line, axis, width)
            elif mode == "linear_ramp":
                added = _ramp(line, axis, width, ends[axis][side])
            elif mode in ("reflect", "symmetric"):
                added = _odd(line, axis, width, 1 if mode == "reflect" else 0)
            else:
                added = _repeated(_statistic(mode, line, axis, lengths[axis][side]), axis, width)
            sides.append(ops.flip(added, axis=axis) if side else added)
        x = ops.concat([sides[0], x, sides[1]], axis=axis)
    return x


claim(pad, lambda x, pad_width, mode, constant_values: isinstance(pad_width, dict) or mode in _PADDINGS)


def _pair(value: Any) -> tuple[Any, Any]:
    return (value, value) if not isinstance(value, (list, tuple)) else tuple(value) * (2 if len(value) == 1 else 1)


def _pairs(value: Any, rank: int) -> list[tuple[Any, Any]]:
    """One pair per axis, from one value, one pair for all axes, or one pair or value per axis."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, (list, tuple)) and builtins.any(isinstance(each, (list, tuple)) for each in value):
        pairs = [_pair(each) for each in value]
        return pairs * rank if len(pairs) == 1 else pairs
    return [_pair(value)] * rank


def _slice(x: Any, axis: int, start: int, stop: int) -> Any:
    return ops.take(x, range(start, stop), axis=axis)


def _repeated(x: Any, axis: int, count: int) -> Any:
    """The first element along ``axis``, ``count`` times."""
    return ops.repeat(_slice(x, axis, 0, 1), count, axis=axis)


def _statistic(mode: str, x: Any, axis: int, length: Any) -> Any:
    """Statistic of the first elements along ``axis``, in the dtype of ``x``."""
    x = ops.asarray(x)
    first = x if length is None else _slice(x, axis, 0, builtins.min(operator.index(length), ops.shape(x)[axis]))
    function: Any = {"maximum": ops.max, "minimum": ops.min, "mean": ops.mean, "median": ops.median}[mode]
    found = function(first, axis=axis, keepdims=True)
    dtype = as_dtype(x.dtype)
    return ops.cast(ops.round(found) if dtype.kind in ("signed integer", "unsigned integer") else found, dtype)


def _ramp(x: Any, axis: int, width: int, end: Any) -> Any:
    """Values from ``end`` to the first element along ``axis``, without it."""
    x = ops.asarray(x)
    edge = ops.squeeze(_slice(x, axis, 0, 1), axis)
    points = _between(ops.full_like(_floats(edge), end), _floats(edge), width, False, axis)
    return _rounded_down(points, as_dtype(x.dtype))


def _odd(x: Any, axis: int, width: int, skip: int) -> Any:
    """``width`` values before the first element along ``axis``, mirrored at it in position and value."""
    period = ops.shape(x)[axis] - skip
    if period < 1:
        return _repeated(x, axis, width)
    rest, line = width, x
    while rest > 0:
        count = builtins.min(rest, period)
        mirrored = ops.flip(_slice(line, axis, skip, skip + count), axis=axis)
        chunk = ops.subtract(ops.multiply(_slice(line, axis, 0, 1), 2), mirrored)
        line = ops.concat([chunk, line], axis=axis)
        rest -= count
    return _slice(line, axis, 0, width)
