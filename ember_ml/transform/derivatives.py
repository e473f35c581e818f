"""Derivatives: gradients, vector-Jacobian and Jacobian-vector products, Jacobians and Hessians."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from ember_ml import backend as _backends
from ember_ml.dtypes import written
from ember_ml.ops import creation, device, manipulation
from ember_ml.transform import parts
from ember_ml.transform.call import Call, named
from ember_ml.transform.vectorization import is_position, vmap


def value_and_grad(
    f: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Function that returns the value of ``f`` and its gradient.

    The value must be a real floating scalar. The gradient has the structure of the argument; that of a stateful
    argument is a dictionary from path to tensor. The gradient with respect to complex tensors is the direction of
    steepest ascent, ``du/dx + i du/dy``, as in torch and MLX.

    Args:
        f: the function to differentiate.
        argnums: position of the argument to differentiate with respect to. For a sequence of positions, the gradient
            is a tuple.
        has_aux: ``f`` returns a pair of the value and an auxiliary tree. The result is ``((value, aux), gradient)``.

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
        call = Call(name, f, args, kwargs, _from_front(name, positions, args), has_aux=has_aux)
        call.f = parts.differentiated(f, call.engine, call.tensors)
        (value,), aux, gradients = call.engine.value_and_grad(call.scalar, call.tensors)
        call.close(aux)
        value = call.result((value,))
        gradients = call.gradients(gradients)
        return (value, call.aux) if has_aux else value, gradients if isinstance(argnums, Sequence) else gradients[0]

    return transformed


def grad(f: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Function that returns the gradient of ``f``, which must return a scalar; see ``value_and_grad``.

    Args:
        f: the function to differentiate.
        argnums: position of the argument to differentiate with respect to. For a sequence of positions, the result is
            a tuple.
        has_aux: ``f`` returns a pair of the value and an auxiliary tree. The result is ``(gradient, aux)``.

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
    """``f(*primals)``, and the function that maps a cotangent of it to the tuple of cotangents of the primals.

    The cotangent of a leaf that is not floating is ``None``.

    Args:
        f: the function to differentiate.
        *primals: its arguments.
        has_aux: ``f`` returns a pair of the value and an auxiliary tree. The result is ``(value, function, aux)``.

    >>> from ember_ml import ops
    >>> value, pullback = vjp(ops.multiply, ops.asarray([1.0, 2.0]), ops.asarray(3.0))
    >>> [x.tolist() for x in pullback(ops.asarray([1.0, 1.0]))]
    [[3.0, 3.0], 3.0]
    """
    call = Call("vjp", f, primals, {}, tuple(range(len(primals))), has_aux=has_aux, strict=False)
    outputs, aux, pull = call.engine.vjp(call.run_flat, call.tensors)
    call.close(aux)

    def pullback(cotangent: Any) -> Any:
        """Cotangents of the primals."""
        return call.gradients(pull(call.cotangents(outputs, cotangent)))

    result = call.result(outputs)
    return (result, pullback, call.aux) if has_aux else (result, pullback)


def jvp(
    f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> tuple[Any, ...]:
    """``f(*primals)``, and its directional derivative along ``tangents``.

    Args:
        f: the function to differentiate.
        primals: its arguments.
        tangents: one tangent per argument, of the same structure. The tangent of a leaf that is not floating is
            ``None``; that of a stateful argument is a dictionary from path to tensor.
        has_aux: ``f`` returns a pair of the value and an auxiliary tree. The result is ``(value, tangent, aux)``.

    >>> from ember_ml import ops
    >>> value, tangent = jvp(ops.square, (ops.asarray([1.0, 2.0]),), (ops.asarray([1.0, 0.5]),))
    >>> value.tolist(), tangent.tolist()
    ([1.0, 4.0], [2.0, 2.0])
    """
    if not isinstance(primals, (list, tuple)) or not isinstance(tangents, (list, tuple)):
        raise TypeError(
            f"jvp: primals and tangents must be tuples or lists, got {written(primals)} and {written(tangents)}"
        )
    if len(primals) != len(tangents):
        raise ValueError(f"jvp: tangents must be as many as primals, got {len(tangents)} for {len(primals)}")
    call = Call("jvp", f, tuple(primals), {}, tuple(range(len(primals))), has_aux=has_aux, strict=False)
    outputs, moved, aux = call.engine.jvp(call.run_flat, call.tensors, call.tangents(tangents))
    call.close(aux)
    result = call.result(outputs), call.result(moved)
    return (*result, call.aux) if has_aux else result


def jacobian(f: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """Function that returns the Jacobian of ``f``: the derivatives of all outputs with respect to all inputs.

    The result has the structure of the result of ``f``, with the structure of the argument at each leaf. The shape of
    each block is that of the output followed by that of the input.

    Args:
        f: the function to differentiate.
        argnums: position of the argument to differentiate with respect to. For a sequence of positions, each leaf of
            the result is a tuple of blocks.

    >>> from ember_ml import ops
    >>> jacobian(ops.square)(ops.asarray([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    return _jacobian("jacobian", f, argnums)


def _jacobian(name: str, f: Callable[..., Any], argnums: int | Sequence[int]) -> Callable[..., Any]:
    """As ``jacobian``, with the name of the transform for errors."""
    positions = _positions(name, argnums)

    def transformed(*args: Any, **kwargs: Any) -> Any:
        call = Call(name, f, args, kwargs, _from_front(name, positions, args))
        outputs, passing, pull = call.engine.vjp(call.run_flat, call.tensors)
        call.close(passing)
        # One row of blocks per output, one block per input.
        with _backends.active(call.home):
            blocks = [_rows(pull, outputs, i, call.tensors) for i in range(len(outputs))]
        found = [call.gradients(row) for row in blocks]
        return call.result(found if isinstance(argnums, Sequence) else [gradients[0] for gradients in found])

    return named(transformed, f, name)


def _rows(pull: Callable[..., Any], outputs: Sequence[Any], place: int, inputs: Sequence[Any]) -> list[Any]:
    """Derivatives of one output with respect to each input."""
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
    """Function that returns the second derivatives of ``f``: the Jacobian of its Jacobian.

    Args:
        f: the function to differentiate.
        argnums: position of the argument to differentiate with respect to. For a sequence of positions, the result is
            a tuple of tuples.

    >>> from ember_ml import ops
    >>> hessian(lambda x: ops.sum(ops.power(x, 3.0)))(ops.asarray([1.0, 2.0])).tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """
    return named(_jacobian("hessian", _jacobian("hessian", f, argnums), argnums), f, "hessian")


def _positions(name: str, argnums: Any) -> tuple[int, ...]:
    """Positions of the arguments to differentiate with respect to, as a tuple."""
    several = argnums if isinstance(argnums, (tuple, list)) else (argnums,)
    if not several or not all(is_position(i) for i in several):
        raise TypeError(f"{name}: argnums must be the position of an argument or a tuple of positions, got {argnums!r}")
    return tuple(operator.index(i) for i in several)


def _from_front(name: str, positions: tuple[int, ...], args: tuple[Any, ...]) -> tuple[int, ...]:
    """Positions, counted from the front."""
    for i in positions:
        if not -len(args) <= i < len(args):
            raise TypeError(f"{name}: argnums must be places of positional arguments, got {i} for {len(args)} of them")
    chosen = tuple(i % len(args) for i in positions)
    if len(set(chosen)) < len(chosen):
        raise ValueError(f"{name}: argnums must name each argument once, got {positions}")
    return chosen
