"""Transforms of functions of flat lists of arrays, which are traced with boxes.

A function takes arrays and returns two tuples of arrays: its outputs, and auxiliary values without gradients.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
from autograd.core import sparse_add, sparse_object_types, vspace
from autograd.tracer import trace_stack
from autograd.util import toposort

from ember_ml import backend as backends
from ember_ml.backend.numpy.differentiation.core import _BOXES, Traced, _box_result, _node, _Parts, add_cotangents
from ember_ml.dispatch import within
from ember_ml.ops import creation, math  # emberlint: ignore[EMB113] after all of ops

Tensors: TypeAlias = tuple[Any, ...]
Flat: TypeAlias = Callable[..., tuple[Tensors, Tensors]]


def is_traced(x: Any) -> bool:
    """Whether operations on ``x`` are recorded."""
    return type(x) in _BOXES


def value_and_grad(f: Flat, tensors: Sequence[Any]) -> tuple[Tensors, Tensors, Sequence[Any]]:
    """Output of ``f``, auxiliary values, and the gradient with respect to each tensor."""
    outputs, aux, pull = vjp(f, tensors)
    return outputs, aux, pull([np.ones((), outputs[0].dtype)])


def vjp(f: Flat, tensors: Sequence[Any]) -> tuple[Tensors, Tensors, Callable[..., Sequence[Any]]]:
    """Outputs of ``f``, auxiliary values, and the function from cotangents to gradients."""
    backends.load_hidden(backends.DIFFERENTIATION)
    # The rules compute with NumPy arrays, which dispatch converts to the active backend if that is another one.
    root = _node((), lambda _: ())
    with _new_trace() as trace:
        leaves = [Traced(_array(x), trace, _leaf(root, i)) for i, x in enumerate(tensors)]
        outputs, aux = within("numpy", f)(*leaves)

    def bare(x: Any) -> Any:
        return x._value if type(x) in _BOXES and x._trace == trace else x

    nodes = [x._node if type(x) in _BOXES and x._trace == trace else None for x in outputs]

    def pulled(cotangents: Sequence[Any]) -> Sequence[Any]:
        pairs = [(node, _conjugate(g)) for node, g in zip(nodes, cotangents, strict=True) if node is not None]
        found = _backward(pairs, root)
        return [_like(x, found.get(i)) for i, x in enumerate(tensors)]

    return tuple([bare(x) for x in outputs]), tuple([bare(x) for x in aux]), within("numpy", pulled)


class _Depth(threading.local):
    """Number of the innermost trace in this thread."""

    value = -1


_depth = _Depth()


@contextmanager
def _new_trace() -> Iterator[int]:
    """Number of a new trace, larger than those of enclosing traces, including traces of HIPS autograd.

    HIPS autograd has one counter for all threads, and does not decrease it if the function raises an error.
    """
    before = _depth.value
    trace_stack.top += 1
    _depth.value = max(before + 1, trace_stack.top)
    try:
        yield _depth.value
    finally:
        _depth.value = before
        trace_stack.top -= 1


def _leaf(root: Any, place: int) -> Any:
    return _node((root,), lambda g: (_Parts({place: g}),))


def _array(x: Any) -> Any:
    return np.asarray(x) if isinstance(x, np.generic) else x


def _backward(pairs: list[tuple[Any, Any]], root: Any) -> dict[int, Any]:
    """Cotangents of the inputs of the trace, by position."""
    if not pairs:
        return {}
    end = _node(tuple(node for node, _ in pairs), lambda gs: gs)
    arrived: dict[Any, Any] = {end: [g for _, g in pairs]}
    for node in toposort(end):
        g = arrived.pop(node)
        if node is root:
            return g.found
        for parent, more in zip(node.parents, node.vjp(g), strict=True):
            if type(more) in sparse_object_types:
                # Indexing a box of HIPS autograd gives a sparse cotangent.
                more = sparse_add(vspace(more), None, more)
            so_far = arrived.get(parent)
            arrived[parent] = more if so_far is None else add_cotangents(so_far, more)
    return {}


def _like(x: Any, gradient: Any) -> Any:
    """Gradient with respect to ``x``: zeros if there is none, the direction of steepest ascent if complex."""
    if gradient is None:
        return creation.zeros_like(x)
    if type(gradient) is np.ndarray and not gradient.flags.writeable:
        # A broadcast view, which the caller could not write to.
        gradient = gradient.copy()
    return _conjugate(gradient)


def _conjugate(g: Any) -> Any:
    """Conjugate of ``g`` if it is complex: the rules compute cotangents without conjugation, as in HIPS autograd."""
    if g.dtype.kind != "c":
        return g
    return math.conj(g)


def jvp(f: Flat, tensors: Sequence[Any], tangents: Sequence[Any]) -> tuple[Tensors, Tensors, Tensors]:
    """Outputs of ``f``, their tangents, and auxiliary values.

    The VJP is linear in the cotangents, so its own VJP is the JVP, at any cotangents.
    """
    outputs, aux, pull = vjp(f, tensors)
    zeros = [np.zeros(x.shape, x.dtype) for x in outputs]
    _, _, push = vjp(lambda *cotangents: (tuple(pull(cotangents)), ()), zeros)
    return outputs, tuple(push(tangents)), aux


def remembered(f: Callable[..., Tensors], tensors: Sequence[Any]) -> Tensors:
    """Outputs of ``f``, whose intermediate values are recomputed for the gradient."""

    def split(*xs: Any) -> tuple[Tensors, Callable[..., Any]]:
        # Integers and bools have no gradient, and may be axes and flags, whose values must not be traced.
        places = [i for i, x in enumerate(xs) if x.dtype.kind not in "biu"]

        def again(*found: Any) -> tuple[Tensors, Tensors]:
            values = list(xs)
            for i, x in zip(places, found, strict=True):
                values[i] = x
            return f(*values), ()

        def pulled(cotangents: Sequence[Any]) -> Sequence[Any]:
            found = vjp(again, [xs[i] for i in places])[2](cotangents)
            gradients = dict(zip(places, found, strict=True))
            return [gradients[i] if i in gradients else creation.zeros_like(x) for i, x in enumerate(xs)]

        return f(*xs), pulled

    return ruled(split, tensors)


def ruled(f: Callable[..., tuple[Tensors, Any]], tensors: Sequence[Any]) -> Tensors:
    """Outputs of ``f``, which also returns the function from their cotangents to the gradients."""
    found = [(i, x) for i, x in enumerate(tensors) if type(x) in _BOXES]
    if not found:
        return f(*tensors)[0]
    trace = max(x._trace for _, x in found)
    found = [(i, x) for i, x in found if x._trace == trace]
    values = list(tensors)
    for i, x in found:
        values[i] = x._value
    outputs, pull = f(*values) if trace == 0 else (ruled(f, values), None)

    def rule(places: Sequence[int], g: Any, result: Any, args: Any, kwargs: Any) -> list[Any]:
        cotangents = [np.zeros(y.shape, y.dtype) if one is None else one for one, y in zip(g, result, strict=True)]
        gradients = (pull or f(*args)[1])([_conjugate(one) for one in cotangents])
        return [_conjugate(gradients[i]) for i in places]

    return _box_result(outputs, trace, [x._node for _, x in found], rule, [i for i, _ in found], values, {})
