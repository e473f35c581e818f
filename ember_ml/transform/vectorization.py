"""Vectorization: ``vmap``."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from ember_ml import backend as _backends
from ember_ml import tree as _tree
from ember_ml.dtypes import describe, with_article
from ember_ml.ops import creation, manipulation
from ember_ml.transform.call import STATIC, Call, is_mark, named, unpacking
from ember_ml.transform.captures import is_number


def vmap(f: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    """Function that applies ``f`` to each slice of its arguments and stacks the results.

    ``torch.func.vmap`` and ``mx.vmap`` compute all slices at once. NumPy, and functions that those cannot vectorize,
    are computed slice by slice. Keyword arguments are sliced along their first axis. Pass models unsliced, with an axis
    of ``None``; it is an error if the function assigns to them.

    Args:
        f: the function of one slice.
        in_axes: axis to slice the arguments along; ``None`` passes them unsliced. One axis for all arguments, or a
            tuple or list with one entry per argument: an axis, ``None``, or a tree of these that matches the argument.
        out_axes: axis to stack along, or a tree of axes that matches the result. ``None`` for a result that is the same
            for each slice.

    >>> from ember_ml import ops
    >>> vmap(ops.sum)(ops.asarray([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [3.0, 7.0]
    >>> vmap(ops.multiply, in_axes=(0, None))(ops.asarray([1.0, 2.0]), ops.asarray([1.0, 3.0])).tolist()
    [[1.0, 3.0], [2.0, 6.0]]
    """
    if not (in_axes is None or isinstance(in_axes, (list, tuple)) or is_position(in_axes)):
        raise TypeError(f"vmap: in_axes must be an axis, None, or a tuple with one for each argument, got {in_axes!r}")

    def transformed(*args: Any, **kwargs: Any) -> Any:
        if isinstance(in_axes, (list, tuple)) and len(in_axes) != len(args):
            raise ValueError(
                f"vmap: in_axes must have one entry for each of {len(args)} positional arguments, got {len(in_axes)}"
            )
        axes = list(in_axes) if isinstance(in_axes, (list, tuple)) else [in_axes] * len(args)
        call = Call("vmap", unpacking(f), (args, kwargs), {}, (0, 1), strict=False, everything=True)
        spread = _broadcast(axes, list(args)) + _broadcast(0, list(kwargs.values()))
        mapped: list[int | None] = []
        for axis, place in zip(spread, call.places, strict=True):
            mapped += [axis] * (1 if is_mark(place) else 0 if place is STATIC else len(place[1]))
        size = _mapped_size(call.tensors, mapped)
        outputs, _ = _vectorized(call, mapped, size)
        call.check_unchanged()
        # Leaves that are not tensors have no axis.
        leaves = _tree.leaves(call.structure)
        stacked = [
            axis for axis, leaf in zip(_broadcast(out_axes, call.structure), leaves, strict=True) if is_mark(leaf)
        ]
        with _backends.active(call.home):
            outputs = [_move_axis(x, axis) for x, axis in zip(outputs, stacked, strict=True)]
        return call.result(outputs)

    return named(transformed, f, "vmap")


def _vectorized(call: Call, axes: list[int | None], size: int) -> tuple[Sequence[Any], Sequence[Any]]:
    vectorized = getattr(call.engine, "vectorized", None)
    if vectorized is not None and size:
        try:
            found = vectorized(call.joined, axes, call.tensors)
            return found[: call.count], found[call.count :]
        except (NotImplementedError, RuntimeError, ValueError):
            # Either the engine cannot vectorize f, or f has an error, which the loop below raises again.
            pass
    return _looped(call, axes, size)


def _looped(call: Call, axes: list[int | None], size: int) -> tuple[Sequence[Any], Sequence[Any]]:
    """Results of a loop over the slices."""
    with _backends.active(call.home):
        columns = [
            x if axis is None else manipulation.moveaxis(x, axis, 0) for x, axis in zip(call.tensors, axes, strict=True)
        ]
        if not size:
            # Without slices, one slice of zeros determines the shapes of the result.
            columns = [
                x if axis is None else creation.zeros((1, *x.shape[1:]), dtype=x.dtype)
                for x, axis in zip(columns, axes, strict=True)
            ]
    rows: list[Any] = []
    for i in range(size or 1):
        row = [x if axis is None else x[i] for x, axis in zip(columns, axes, strict=True)]
        rows.append(call.joined(*row))
    with _backends.active(call.home):
        found = [manipulation.stack(column)[:size] for column in zip(*rows, strict=True)]
    return found[: call.count], found[call.count :]


def _broadcast(axes: Any, tree: Any) -> list[Any]:
    """Axis of each leaf of ``tree``, from a tree of axes that is a prefix of it."""
    if axes is None or is_position(axes):
        return [axes if axes is None else operator.index(axes)] * len(_tree.leaves(tree))
    if isinstance(axes, dict) and isinstance(tree, dict) and axes.keys() == tree.keys():
        return [axis for key in tree for axis in _broadcast(axes[key], tree[key])]
    if isinstance(axes, (list, tuple)) and isinstance(tree, (list, tuple)) and len(axes) == len(tree):
        return [axis for one, child in zip(axes, tree, strict=True) for axis in _broadcast(one, child)]
    raise ValueError(
        f"vmap: a tree of axes must begin like the tree it is for, got {axes!r} for {with_article(type(tree).__name__)}"
    )


def is_position(value: Any) -> bool:
    """Whether ``value`` is a Python or NumPy integer; bools and tensors are not."""
    return type(value) is int or (is_number(value) and not isinstance(value, bool) and hasattr(value, "__index__"))


def _mapped_size(tensors: Sequence[Any], axes: Sequence[int | None]) -> int:
    """Length of the mapped axes, which must be the same for all."""
    sizes = set()
    for x, axis in zip(tensors, axes, strict=True):
        if axis is not None:
            if not -len(x.shape) <= axis < len(x.shape):
                raise ValueError(f"vmap: a mapped tensor must have an axis {axis}, got {describe(x)}")
            sizes.add(x.shape[axis])
    if len(sizes) != 1:
        raise ValueError(
            f"vmap: mapped axes must have one length, got {sorted(sizes)}"
            if sizes
            else "vmap: in_axes must map at least 1 argument, got none"
        )
    return int(sizes.pop())


def _move_axis(x: Any, axis: int | None) -> Any:
    if axis is None:
        return x[0]
    return x if axis == 0 else manipulation.moveaxis(x, 0, axis)
