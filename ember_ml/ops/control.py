"""Control flow: conditions, loops and scans over trees of tensors.

Where values are available, plain Python control flow runs. Under ``torch.compile``, conditions on traced data become
``torch.cond`` and torch's ``while_loop``. ``mx.compile`` and ``vmap`` cannot branch on data, so both branches are
computed and one is selected. Loops of known length are unrolled into the compiled graph.

A tree is a tensor, or nested dictionaries, lists and tuples of tensors. Numbers and NumPy arrays among its leaves are
converted to the engine of the other leaves; ``None`` is passed through.
"""

from __future__ import annotations

import builtins as _builtins
from collections.abc import Callable
from typing import Any

from ember_ml import backend as _backends
from ember_ml import dispatch as _dispatch
from ember_ml import tree as _tree
from ember_ml.dispatch import op
from ember_ml.dispatch.tensor_types import REAL_NUMBERS as _NUMBERS
from ember_ml.dtypes import describe as _describe
from ember_ml.dtypes import free, kept
from ember_ml.ops import comparison, dtypes, manipulation, math, stats
from ember_ml.tree import Tree
from ember_ml.types import Tensor, TensorLike


@op(free)
def cond(pred: object, true_fn: Callable[..., Any], false_fn: Callable[..., Any], *operands: Tree) -> Any:
    """``true_fn(*operands)`` if ``pred`` is true, else ``false_fn(*operands)``.

    ``pred`` is a bool, a number or a zero-dimensional tensor. Only one of the functions is called, except where
    ``mx.compile`` or ``vmap`` traces ``pred``. There, and under ``torch.compile``, both must return the same structure,
    shapes and dtypes.

    >>> cond(True, negative, square, 1.0).tolist()
    -1.0
    >>> cond(greater(asarray(3.0), 4.0), negative, square, asarray([1.0, 2.0])).tolist()
    [1.0, 4.0]
    """
    backend, given, (pred,) = _prepare("cond", operands, pred)
    _check_predicate("cond", pred)
    if type(pred) not in _NUMBERS and _is_traced(backend):
        return backend.control.branch(pred, lambda: true_fn(*given), lambda: false_fn(*given))
    truth = _truth(pred)
    if truth is None:
        return _select(pred, true_fn(*given), false_fn(*given))
    first = _first(backend, (pred, given))
    return _tree.map(lambda leaf: _tensor(backend, leaf, first), true_fn(*given) if truth else false_fn(*given))


@op(free)
def while_loop(
    cond: Callable[..., Any], body: Callable[..., Any], loop_vars: Tree, maximum_iterations: int | None = None
) -> Any:
    """``loop_vars`` after repeated ``loop_vars = body(*loop_vars)`` while ``cond(*loop_vars)`` is true.

    A list or tuple of variables is unpacked for both functions; anything else is passed as one argument. ``body`` must
    keep the structure and, in compiled code, the shapes and dtypes.

    Args:
        maximum_iterations: stop after this many steps; by default there is no limit. ``mx.compile`` requires it, since
            it cannot stop on data: it computes all steps and discards those after the end.

    >>> [x.tolist() for x in while_loop(lambda i, x: less(i, 3), lambda i, x: (add(i, 1), multiply(x, 2)), (0, 1.0))]
    [3, 8.0]
    """
    backend, state, _ = _prepare("while_loop", loop_vars)
    several = isinstance(state, (list, tuple))

    def test(now: Tree) -> Any:
        holds = cond(*now) if several else cond(now)
        _check_predicate("while_loop", holds)
        return holds

    def step(now: Tree) -> Tree:
        after = body(*now) if several else body(now)
        if several and isinstance(after, (list, tuple)):
            after = _like(now, after)
        return _match_structure(backend, now, after)

    if maximum_iterations is not None and maximum_iterations < 0:
        raise ValueError(f"maximum_iterations must be >= 0, got {maximum_iterations}")
    if _is_traced(backend):
        return _traced_loop(backend, test, step, state, maximum_iterations)
    count = 0
    while maximum_iterations is None or count < maximum_iterations:
        going = test(state)
        truth = _truth(going)
        if truth is None and maximum_iterations is None:
            raise ValueError("maximum_iterations must be given in compiled code, where cond cannot stop the loop")
        if truth is None:
            state = _select(going, step(state), state)
        elif truth:
            state = step(state)
        else:
            break
        count += 1
    return state


def _like(tree: Any, values: Any) -> Any:
    """``values`` in the list or tuple type of ``tree``."""
    if isinstance(tree, list):
        return list(values)
    return type(tree)(*values) if hasattr(tree, "_fields") and len(values) == len(tree) else tuple(values)


def _traced_loop(backend: _backends.Backend, test: Any, step: Any, state: Tree, maximum: int | None) -> Tree:
    """The loop in compiled code. The engine's loop carries only tensors: a count and the leaves of ``state``."""
    tensors = [leaf for leaf in _tree.leaves(state) if leaf is not None]
    count = _tensor(backend, 0, tensors[0] if tensors else None)

    def whole(now: tuple[Any, ...]) -> Tree:
        rest = iter(now)
        return _tree.map(lambda leaf: None if leaf is None else next(rest), state)

    def holds(count: Any, *now: Any) -> Any:
        going = test(whole(now))
        return going if maximum is None else comparison.logical_and(comparison.less(count, maximum), going)

    def after(count: Any, *now: Any) -> Any:
        return math.add(count, 1), *(leaf for leaf in _tree.leaves(step(whole(now))) if leaf is not None)

    return whole(backend.control.loop(holds, after, (count, *tensors))[1:])


@op(free)
def fori_loop(lower: object, upper: object, body: Callable[..., Any], init: Tree) -> Any:
    """Result of repeated ``value = body(i, value)`` for ``i`` from ``lower`` to ``upper - 1``, starting with ``init``.

    ``i`` is a Python integer, or a tensor where ``torch.compile`` traces one of the bounds.

    >>> fori_loop(1, 5, lambda i, x: multiply(x, i), 1).tolist()
    24
    """
    backend, state, (lower, upper) = _prepare("fori_loop", init, lower, upper)
    first, last = _integer(backend, lower), _integer(backend, upper)
    if first is None or last is None:
        end: Any = upper
        looped = while_loop(
            lambda i, _: comparison.less(i, end), lambda i, value: (math.add(i, 1), body(i, value)), (lower, state)
        )
        return looped[1]
    for i in range(first, last):
        state = _match_structure(backend, state, body(i, state))
    return state


def _integer(backend: _backends.Backend, bound: Any) -> int | None:
    """Value of a bound, or ``None`` where a compiler traces it."""
    if type(bound) is int:
        return bound
    if not _is_tensor_of(backend, bound) or backend.dtype_of(bound).kind not in ("signed integer", "unsigned integer"):
        raise TypeError(f"lower and upper must be integers, got {_describe(bound)}")
    if len(bound.shape):
        raise ValueError(f"lower and upper must be 0-d, got shape {list(bound.shape)}")
    if _is_traced(backend):
        return None
    try:
        return int(bound)
    except (RuntimeError, TypeError, ValueError):  # torch, JAX and MLX
        return None


@op(free)
def scan(
    f: Callable[..., Any],
    init: Tree,
    xs: Tree = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int = 1,
) -> tuple[Any, Any]:
    """Final carry and stacked ``y`` of ``carry, y = f(carry, x)`` for each ``x`` along the first axis of ``xs``.

    Args:
        f: function of the carry and a slice of ``xs``. The carry that it returns must have the structure of ``init``.
        init: the first carry.
        xs: tensors whose first axes have the same length. If ``None``, ``f`` is called with ``None``, ``length`` times.
        length: the number of steps, required if ``xs`` is ``None``.
        reverse: process slices from last to first; ``y`` keeps the order of ``xs``.
        unroll: accepted for compatibility with other libraries; it has no effect, as all steps are unrolled.

    >>> carry, ys = scan(lambda total, x: (add(total, x), square(x)), 0.0, asarray([1.0, 2.0, 3.0]))
    >>> carry.tolist(), ys.tolist()
    (6.0, [1.0, 4.0, 9.0])
    """
    if unroll < 1:
        raise ValueError(f"unroll must be >= 1, got {unroll}")
    backend, (carry, xs), _ = _prepare("scan", (init, xs))
    count = _length("scan", xs, length)
    if count == 0:
        return carry, _tree.map(_empty_stack, _call_with_zeros(backend, lambda x: _pair(f(carry, x))[1], xs))
    elements = _elements(xs, count)
    ys: list[Any] = [None] * count
    for i in reversed(range(count)) if reverse else range(count):
        after, ys[i] = _pair(f(carry, elements[i]))
        carry = _match_structure(backend, carry, after)
    return carry, _stack(backend, ys, _first(backend, (carry, xs)))


def _run_steps(
    step: Callable[..., tuple[Any, Any]], carry: Any, xs: tuple[Any, ...], axis: int = 0, reverse: bool = False
) -> tuple[Any, Any]:
    """Final carry and stacked outputs of ``step`` along an axis: ``scan`` for definitions, without checks.

    In compiled code, an engine whose loops have gradients traces ``step`` once. Otherwise, steps are unrolled.

    Args:
        step: function of the carry and a slice of each of ``xs`` to the next carry, of the same dtypes and shapes, and
            a tensor or ``None``.
    """
    backend = _backends.current()
    if _is_traced(backend) and hasattr(backend.control, "steps"):
        rows = tuple(manipulation.moveaxis(x, axis, 0) for x in xs)
        carry, ys = backend.control.steps(step, carry, rows, reverse)
        return carry, ys if ys is None else manipulation.moveaxis(ys, 0, axis)
    slices: list[Any] = list(zip(*(manipulation.unstack(x, axis=axis) for x in xs), strict=True))
    found: list[Any] = []
    for row in reversed(slices) if reverse else slices:
        carry, y = step(carry, *row)
        found.append(y)
    return carry, None if found[0] is None else manipulation.stack(found[::-1] if reverse else found, axis=axis)


def _pair(result: Any) -> Any:
    """The pair that a scanned function returned, checked."""
    if not isinstance(result, (list, tuple)) or len(result) != 2:
        several = (
            f"a {type(result).__name__} of {len(result)}" if isinstance(result, (list, tuple)) else _describe(result)
        )
        raise TypeError(f"f must return a pair, the next carry and a y, got {several}")
    return result


@op(free)
def associative_scan(f: Callable[[Any, Any], Any], elems: Tree, reverse: bool = False, axis: int = 0) -> Any:
    """Cumulative ``f`` along ``axis``, for an associative ``f``, in a logarithmic number of calls.

    Entry ``i`` is ``f(...f(f(x[0], x[1]), x[2])..., x[i])``. ``f`` is called with slices of many elements along the
    same axis and must return as many.

    Args:
        reverse: accumulate from the last element to the first.

    >>> associative_scan(add, asarray([1, 2, 3, 4])).tolist()
    [1, 3, 6, 10]
    """
    backend, elems, _ = _prepare("associative_scan", elems)
    tensors = _tree.leaves(elems)
    if not tensors:
        return elems
    for x in tensors:
        if not _is_tensor_of(backend, x) or not -len(x.shape) <= axis < len(x.shape):
            raise ValueError(f"elems must have an axis {axis}, got {_describe(x)}")
    counts = {x.shape[axis] for x in tensors}
    if len(counts) > 1:
        raise ValueError(f"elems must have one length along axis {axis}, got {sorted(counts)}")

    def combine(left: list[Any], right: list[Any]) -> list[Any]:
        result = f(_tree.unflatten(elems, left), _tree.unflatten(elems, right))
        return _tree.leaves(_match_structure(backend, elems, result))

    flipped = [manipulation.flip(x, axis=axis) for x in tensors] if reverse else tensors
    scanned = _scan_pairs(combine, flipped, axis)
    return _tree.unflatten(elems, [manipulation.flip(x, axis=axis) for x in scanned] if reverse else scanned)


def _scan_pairs(combine: Callable[[list[Any], list[Any]], list[Any]], xs: list[Any], axis: int) -> list[Any]:
    """The scan of pairs gives the odd entries; each even entry is ``f`` of the odd entry before it and one element."""
    count = xs[0].shape[axis]
    if count < 2:
        return xs
    pairs = combine([_part(x, axis, 0, count - 1, 2) for x in xs], [_part(x, axis, 1, count, 2) for x in xs])
    odd = _scan_pairs(combine, pairs, axis)
    before = [_part(x, axis, 0, (count - 1) // 2, 1) for x in odd]
    later = [_part(x, axis, 2, count, 2) for x in xs]
    between = combine(before, later) if count > 2 else later
    even = [manipulation.concat([_part(x, axis, 0, 1, 1), y], axis=axis) for x, y in zip(xs, between, strict=True)]
    return [_interleave(a, b, axis) for a, b in zip(even, odd, strict=True)]


def _part(x: Any, axis: int, start: int, stop: int, step: int) -> Any:
    place = axis % len(x.shape)
    return x[(_builtins.slice(None),) * place + (_builtins.slice(start, stop, step),)]


def _interleave(a: Any, b: Any, axis: int) -> Any:
    """Entries of ``a`` and ``b`` in alternation; ``a`` may have one more."""
    axis = axis % len(a.shape)
    count = b.shape[axis]
    both = manipulation.stack([_part(a, axis, 0, count, 1), b], axis=axis + 1)
    shape = tuple(b.shape)
    turns = manipulation.reshape(both, (*shape[:axis], 2 * count, *shape[axis + 1 :]))
    return (
        turns
        if a.shape[axis] == count
        else manipulation.concat([turns, _part(a, axis, count, count + 1, 1)], axis=axis)
    )


@op(free)
def map(f: Callable[..., Any], xs: Tree) -> Any:
    """Results of ``f`` for each slice of ``xs`` along the first axis, stacked; one call per slice.

    >>> map(lambda row: sum(row), asarray([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [3.0, 7.0]
    """
    backend, xs, _ = _prepare("map", xs)
    count = _length("map", xs, None)
    if count == 0:
        return _tree.map(_empty_stack, _call_with_zeros(backend, f, xs))
    return _stack(backend, [f(x) for x in _elements(xs, count)], _first(backend, xs))


@op(free)
def vectorized_map(f: Callable[..., Any], xs: Tree) -> Any:
    """Results of ``f`` for each slice of ``xs`` along the first axis, stacked; vectorized where the engine can.

    ``torch.vmap`` and ``mx.vmap`` compute it. NumPy, and functions that these cannot vectorize, are called once per
    slice.

    >>> vectorized_map(lambda row: multiply(row, sum(row)), asarray([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [[3.0, 6.0], [21.0, 28.0]]
    """
    backend, xs, _ = _prepare("vectorized_map", xs)
    vectorized = getattr(backend.control, "vectorized", None)
    if vectorized is not None and _length("vectorized_map", xs, None):
        first = _first(backend, xs)
        try:
            return vectorized(lambda x: _tree.map(lambda leaf: _tensor(backend, leaf, first), f(x)))(xs)
        except (NotImplementedError, RuntimeError, ValueError):
            # Either the engine cannot vectorize ``f``, or ``f`` fails; the loop then raises its own error.
            return map(f, xs)
    return map(f, xs)


@op(kept, differentiable=False)
def stop_gradient(x: TensorLike, /) -> Tensor:
    """``x``, with no gradient flowing through it.

    >>> stop_gradient([1.0, 2.0]).tolist()
    [1.0, 2.0]
    """
    ...


@op(free, lazy=False)
def eval(*trees: Tree) -> Any:
    """The argument, or the tuple of all arguments, after lazy engines have computed its tensors.

    >>> eval(add(asarray([1.0]), 2.0)).tolist()
    [3.0]
    """
    active = _backends.current()
    for leaf in _tree.leaves(trees):
        backend = _dispatch.classify(type(leaf))
        if isinstance(backend, _backends.Backend) and backend is not active and backend.name not in _backends.HIDDEN:
            _dispatch.operation_of(eval).runs[backend.name](leaf)
    return trees[0] if len(trees) == 1 else trees


@op(free, differentiable=False)
def is_tensor(x: object, /) -> bool:
    """Whether ``x`` is a tensor of any engine, including NumPy arrays and scalars.

    >>> is_tensor(asarray(1.0)), is_tensor(1.0), is_tensor([1.0])
    (True, False, False)
    """
    owner = _dispatch.classify(type(x))
    if isinstance(owner, _backends.Backend):
        return True
    numpy = _backends.load("numpy")
    return owner == _dispatch.HOST and _is_tensor_of(numpy, x)


def _prepare(name: str, tree: Tree, *controls: Any) -> tuple[_backends.Backend, Any, list[Any]]:
    """The engine that computes, and ``tree`` and ``controls`` with their leaves converted to its tensors.

    Python numbers among the controls are not converted: their value is available even while a compiler traces.
    """
    backend: _backends.Backend | None = None
    first = None
    for leaf in (*controls, *_tree.leaves(tree)):
        owner = _dispatch.classify(type(leaf))
        if isinstance(owner, _backends.Backend) and owner is not backend:
            if backend is not None:
                raise TypeError(
                    f"tensors must be of one engine, got {backend.chosen_as} and {owner.chosen_as}; "
                    "ember_ml.ops.convert_to_tensor(x) moves either to the active backend"
                )
            backend, first = owner, leaf
    if backend is None:
        backend = _backends.current()
    own = backend
    entered = _tree.map(lambda leaf: _tensor(own, leaf, first), tree)
    return own, entered, [x if type(x) in _NUMBERS else _tensor(own, x, first) for x in controls]


def _tensor(backend: _backends.Backend, value: Any, like: Any = None) -> Any:
    """A number or NumPy array as a tensor of ``backend``; tensors and other objects unchanged."""
    if _is_tensor_of(backend, value):
        return value
    if _dispatch.classify(type(value)) not in (_dispatch.NUMBER, _dispatch.HOST, _dispatch.SEQUENCE):
        return value
    return backend.convert(value, None, backend.device if like is None else backend.device_like(like))


def _is_tensor_of(backend: _backends.Backend, value: Any) -> bool:
    """Whether ``value`` is a tensor of ``backend``."""
    kinds: Any = backend.kinds
    return isinstance(value, kinds) and value.dtype in backend.names


def _match_structure(backend: _backends.Backend, before: Tree, after: Tree) -> Tree:
    """``after`` with its leaves converted to tensors, in the structure of ``before``."""
    if _is_tensor_of(backend, after) and _is_tensor_of(backend, before):
        return after
    first = _first(backend, before)
    return _tree.map(lambda _, leaf: _tensor(backend, leaf, first), before, after)


def _first(backend: _backends.Backend, tree: Tree) -> Any:
    """The first tensor in ``tree``, whose device new tensors are created on."""
    return next((leaf for leaf in _tree.leaves(tree) if _is_tensor_of(backend, leaf)), None)


def _is_traced(backend: _backends.Backend) -> bool:
    """Whether a compiler that supports control flow is tracing."""
    is_traced = getattr(backend.control, "is_traced", None)
    return is_traced is not None and is_traced()


def _check_predicate(name: str, pred: Any) -> None:
    """Raise unless ``pred`` is a number or a zero-dimensional tensor."""
    if type(pred) in _NUMBERS:
        return
    if not is_tensor(pred):
        raise TypeError(f"the predicate must be a bool or a 0-d tensor, got {_describe(pred)}")
    if len(pred.shape):
        raise ValueError(f"the predicate must be 0-d, got shape {list(pred.shape)}")


def _truth(pred: Any) -> bool | None:
    """Value of a predicate, or ``None`` where a compiler or ``vmap`` traces it."""
    try:
        return bool(pred)
    except (RuntimeError, TypeError, ValueError):  # torch, JAX and MLX
        return None


def _select(pred: Any, yes: Tree, no: Tree) -> Tree:
    """``yes`` where ``pred`` is true, else ``no``, leaf by leaf."""
    return _tree.map(lambda a, b: a if a is None else comparison.where(pred, a, b), yes, no)


def _length(name: str, xs: Tree, length: int | None) -> int:
    """Length of the first axis, which all leaves share."""
    counts = set() if length is None else {length}
    for leaf in _tree.leaves(xs):
        if leaf is not None:
            shape: Any = getattr(leaf, "shape", ())
            if not len(shape):
                raise ValueError(f"xs must have a first axis to go along, got {_describe(leaf)}")
            counts.add(shape[0])
    if len(counts) != 1:
        raise ValueError(
            f"xs must have one length, got {sorted(counts)}" if counts else "xs or length must be given, got neither"
        )
    (count,) = counts
    if count < 0:
        raise ValueError(f"length must be >= 0, got {count}")
    return count


def _elements(xs: Tree, count: int) -> list[Tree]:
    """Slices of ``xs`` along the first axis."""
    if is_tensor(xs):
        return list(manipulation.unstack(xs))
    columns = [(None,) * count if leaf is None else manipulation.unstack(leaf) for leaf in _tree.leaves(xs)]
    return [_tree.unflatten(xs, [column[i] for column in columns]) for i in range(count)]


def _stack(backend: _backends.Backend, ys: list[Tree], like: Any) -> Tree:
    """The trees as one tree, whose leaves have a new first axis."""
    return _tree.map(
        lambda *leaves: (
            None if leaves[0] is None else manipulation.stack([_tensor(backend, leaf, like) for leaf in leaves])
        ),
        *ys,
    )


def _call_with_zeros(backend: _backends.Backend, f: Callable[..., Any], xs: Tree) -> Tree:
    """Result of ``f`` for zeros, which gives shapes and dtypes where ``xs`` has no slice."""
    # The sum over an empty axis is a zero on the right engine and device.
    result = f(_tree.map(lambda x: None if x is None else dtypes.cast(stats.sum(x, axis=0), x.dtype), xs))
    return _tree.map(lambda leaf: _tensor(backend, leaf, _first(backend, xs)), result)


def _empty_stack(x: Any) -> Any:
    """Tensor of zero elements like ``x`` along a new first axis."""
    return None if x is None else manipulation.expand_dims(x, axis=0)[:0]
