"""Derivatives: gradients, products with Jacobians from either side, Jacobians and Hessians."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from ember_ml import backend as _backends
from ember_ml.dtypes import written
from ember_ml.ops import creation, device, manipulation
from ember_ml.transform.call import Call, named
from ember_ml.transform.vectorization import is_position, vmap


def value_and_grad(
    f: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that answers ``f``'s value and its gradient.

    The value must be a real floating tensor of no dimensions. The gradient has the structure of the argument, that of a
    stateful argument is a dictionary from path to tensor. With respect to complex tensors it is the direction of
    steepest ascent, ``du/dx + i du/dy``, as torch and MLX have it.

    Args:
        argnums: the position of the argument to differentiate with respect to; if several, the gradient is a tuple.
        has_aux: ``f`` answers a pair, the value and anything else, which is passed on: ``((value, aux), gradient)``.

    >>> from ember_ml import ops
    >>> value, gradient = value_and_grad(lambda x: ops.sum(ops.square(x)))(ops.asarray([1.0, 2.0]))
    >>> value.tolist(), gradient.tolist()
    (5.0, [2.0, 4.0])
    """
    return named(_value_and_grad("value_and_grad", f, argnums, has_aux), f, "value_and_grad")


def _value_and_grad(
    name: str, f: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool
) -> Callable[..., Any]:
    """The same for the transform of that name, which errors tell."""
    positions = _positions(name, argnums)

    def transformed(*args: Any, **kwargs: Any) -> Any:
        call = Call(name, f, args, kwargs, _chosen(name, positions, args), has_aux=has_aux)
        (value,), aux, gradients = call.engine.value_and_grad(call.scalar, call.tensors)
        call.close(aux)
        value = call.answer((value,))
        gradients = call.gradients(gradients)
        return (value, call.aux) if has_aux else value, gradients if isinstance(argnums, Sequence) else gradients[0]

    return transformed


def grad(f: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that answers the gradient of ``f``, whose value is a tensor of no dimensions; see ``value_and_grad``.

    Args:
        argnums: the position of the argument to differentiate with respect to; if several, the answer is a tuple.
        has_aux: ``f`` answers a pair, the value and anything else, which is passed on: ``(gradient, aux)``.

    >>> from ember_ml import ops
    >>> grad(lambda p: ops.sum(ops.multiply(p["w"], p["w"])))({"w": ops.asarray([1.0, 3.0])})["w"].tolist()
    [2.0, 6.0]
    """
    both = _value_and_grad("grad", f, argnums, has_aux)

    def transformed(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return named(transformed, f, "grad")


def vjp(f: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """``f(*primals)``, and the function from a cotangent of that answer to the tuple of cotangents of the primals.

    The cotangent of a leaf that is not floating is ``None``.

    Args:
        has_aux: ``f`` answers a pair, and the second part is passed on: ``(answer, function, aux)``.

    >>> from ember_ml import ops
    >>> answer, pull = vjp(ops.multiply, ops.asarray([1.0, 2.0]), ops.asarray(3.0))
    >>> [x.tolist() for x in pull(ops.asarray([1.0, 1.0]))]
    [[3.0, 3.0], 3.0]
    """
    call = Call("vjp", f, primals, {}, tuple(range(len(primals))), has_aux=has_aux, strict=False)
    outputs, aux, pull = call.engine.vjp(call.flat, call.tensors)
    call.close(aux)

    def pullback(cotangent: Any) -> Any:
        """The cotangents of the primals."""
        return call.gradients(pull(call.cotangents(outputs, cotangent)))

    answer = call.answer(outputs)
    return (answer, pullback, call.aux) if has_aux else (answer, pullback)


def jvp(
    f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> tuple[Any, ...]:
    """``f(*primals)``, and how it changes when the primals move along ``tangents``, which have the same structure.

    The tangent of a leaf that is not floating is ``None``; that of a stateful argument is a dictionary from path to
    tensor.

    Args:
        has_aux: ``f`` answers a pair, and the second part is passed on: ``(answer, tangent, aux)``.

    >>> from ember_ml import ops
    >>> answer, tangent = jvp(ops.square, (ops.asarray([1.0, 2.0]),), (ops.asarray([1.0, 0.5]),))
    >>> answer.tolist(), tangent.tolist()
    ([1.0, 4.0], [2.0, 2.0])
    """
    if not isinstance(primals, (list, tuple)) or not isinstance(tangents, (list, tuple)):
        raise TypeError(
            f"jvp: primals and tangents must be tuples or lists, got {written(primals)} and {written(tangents)}"
        )
    if len(primals) != len(tangents):
        raise ValueError(f"jvp: tangents must be as many as primals, got {len(tangents)} for {len(primals)}")
    call = Call("jvp", f, tuple(primals), {}, tuple(range(len(primals))), has_aux=has_aux, strict=False)
    outputs, moved, aux = call.engine.jvp(call.flat, call.tensors, call.tangents(tangents))
    call.close(aux)
    answer = call.answer(outputs), call.answer(moved)
    return (*answer, call.aux) if has_aux else answer


def jacobian(f: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """A function that answers the derivatives of all outputs of ``f`` with respect to all inputs.

    The answer has the structure of ``f``'s own, with that of the argument at each of its leaves; a block has the shape
    of the output followed by that of the input.

    Args:
        argnums: the position of the argument to differentiate with respect to; if several, there is a tuple of blocks.

    >>> from ember_ml import ops
    >>> jacobian(ops.square)(ops.asarray([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    return _jacobian("jacobian", f, argnums)


def _jacobian(name: str, f: Callable[..., Any], argnums: int | Sequence[int]) -> Callable[..., Any]:
    """The same for the transform of that name, which errors tell."""
    positions = _positions(name, argnums)

    def transformed(*args: Any, **kwargs: Any) -> Any:
        call = Call(name, f, args, kwargs, _chosen(name, positions, args))
        outputs, passing, pull = call.engine.vjp(call.flat, call.tensors)
        call.close(passing)
        # For each output and input, in this order.
        with _backends.active(call.home):
            blocks = [_rows(pull, outputs, i, call.tensors) for i in range(len(outputs))]
        found = [call.gradients(row) for row in blocks]
        return call.answer(found if isinstance(argnums, Sequence) else [gradients[0] for gradients in found])

    return named(transformed, f, name)


def _rows(pull: Callable[..., Any], outputs: Sequence[Any], place: int, inputs: Sequence[Any]) -> list[Any]:
    """The derivatives of one output with respect to each input."""
    x = outputs[place]
    shape = tuple(x.shape)
    size = math.prod(shape)
    if size == 0 or not inputs:
        return [creation.zeros_like(manipulation.broadcast_to(y, shape + tuple(y.shape))) for y in inputs]
    others = [creation.zeros_like(y) for y in outputs]
    unit = manipulation.reshape(creation.eye(size, dtype=x.dtype, device=device.get_device(x)), (size, *shape))

    def pulled(cotangent: Any) -> Any:
        return tuple(pull([cotangent if i == place else other for i, other in enumerate(others)]))

    rows = vmap(pulled)(unit)
    return [manipulation.reshape(row, shape + tuple(y.shape)) for row, y in zip(rows, inputs, strict=True)]


def hessian(f: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """A function that answers the second derivatives of ``f``: the Jacobian of its Jacobian.

    Args:
        argnums: the position of the argument to differentiate with respect to; if several, there is a tuple of tuples.

    >>> from ember_ml import ops
    >>> hessian(lambda x: ops.sum(ops.power(x, 3.0)))(ops.asarray([1.0, 2.0])).tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """
    return named(_jacobian("hessian", _jacobian("hessian", f, argnums), argnums), f, "hessian")


def _positions(name: str, argnums: Any) -> tuple[int, ...]:
    """The positions of the arguments to differentiate with respect to."""
    several = argnums if isinstance(argnums, (tuple, list)) else (argnums,)
    if not several or not all(is_position(i) for i in several):
        raise TypeError(f"{name}: argnums must be the position of an argument or a tuple of positions, got {argnums!r}")
    return tuple(operator.index(i) for i in several)


def _chosen(name: str, positions: tuple[int, ...], args: tuple[Any, ...]) -> tuple[int, ...]:
    """The same positions, counted from the front."""
    for i in positions:
        if not -len(args) <= i < len(args):
            raise TypeError(f"{name}: argnums must be places of positional arguments, got {i} for {len(args)} of them")
    chosen = tuple(i % len(args) for i in positions)
    if len(set(chosen)) < len(chosen):
        raise ValueError(f"{name}: argnums must name each argument once, got {positions}")
    return chosen
