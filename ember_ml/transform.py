"""Transforms of functions: gradients, vectorisation, rematerialisation, compilation, with JAX's contract.

Arguments, answers and gradients are trees: tensors in nested dictionaries, lists and tuples. A *stateful* argument,
such as a model or an optimiser, holds tensors under fixed paths (``ember_ml.types.Stateful``): it is differentiated
with respect to its trainable parameters, its gradient is the flat dictionary from path to tensor, and what a function
assigns to it is there when the call is over.

The tensors are the engine's own. ``backend/<engine>/transform.py`` says how each engine differentiates, on flat lists
of tensors; the trees are flattened here, once for all of them.
"""

from __future__ import annotations

import copy
import math
import threading
import warnings
from collections.abc import Callable, Hashable, Sequence
from functools import update_wrapper
from typing import Any, TypeVar

from ember_ml import backend as _backends
from ember_ml import door as _door
from ember_ml import portable, threefry
from ember_ml import tree as _tree
from ember_ml.backend import Backend
from ember_ml.dtypes import KINDS, describe
from ember_ml.ops import creation, device, manipulation, random
from ember_ml.ops.control import stop_gradient
from ember_ml.reach import given, is_stateful, is_tensor, reached
from ember_ml.signature import Attributes, attributes, changed, signature

__all__ = [
    "checkpoint", "compile", "custom_gradient", "grad", "hessian", "jacobian", "jvp", "stop_gradient", "value_and_grad",
    "vjp", "vmap",
]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])
Arguments = tuple[tuple[Any, ...], dict[str, Any]]


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
    positions = _positions(argnums)

    def transformed(*args: Any, **kwargs: Any) -> Any:
        call = _Call("grad", f, args, kwargs, _chosen(positions, args), has_aux=has_aux)
        (value,), aux, gradients = call.engine.value_and_grad(call.scalar, call.tensors)
        call.close(aux)
        value = call.answer((value,))
        gradients = call.gradients(gradients)
        return (value, call.aux) if has_aux else value, gradients if isinstance(argnums, Sequence) else gradients[0]

    return _named(transformed, f, "value_and_grad")


def grad(f: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that answers the gradient of ``f``, whose value is a tensor of no dimensions; see ``value_and_grad``.

    Args:
        argnums: the position of the argument to differentiate with respect to; if several, the answer is a tuple.
        has_aux: ``f`` answers a pair, the value and anything else, which is passed on: ``(gradient, aux)``.

    >>> from ember_ml import ops
    >>> grad(lambda p: ops.sum(ops.multiply(p["w"], p["w"])))({"w": ops.asarray([1.0, 3.0])})["w"].tolist()
    [2.0, 6.0]
    """
    both = value_and_grad(f, argnums, has_aux)

    def transformed(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return _named(transformed, f, "grad")


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
    call = _Call("vjp", f, primals, {}, tuple(range(len(primals))), has_aux=has_aux, strict=False)
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
        raise TypeError("jvp takes its primals and its tangents as tuples or lists")
    if len(primals) != len(tangents):
        raise ValueError(f"jvp takes a tangent for each primal, not {len(tangents)} for {len(primals)}")
    call = _Call("jvp", f, tuple(primals), {}, tuple(range(len(primals))), has_aux=has_aux, strict=False)
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
    positions = _positions(argnums)

    def transformed(*args: Any, **kwargs: Any) -> Any:
        call = _Call("jacobian", f, args, kwargs, _chosen(positions, args))
        outputs, passing, pull = call.engine.vjp(call.flat, call.tensors)
        call.close(passing)
        # For each output and input, in this order.
        with _backends.active(call.home):
            blocks = [_rows(pull, outputs, i, call.tensors) for i in range(len(outputs))]
        found = [call.gradients(row) for row in blocks]
        return call.answer(found if isinstance(argnums, Sequence) else [gradients[0] for gradients in found])

    return _named(transformed, f, "jacobian")


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
    return _named(jacobian(jacobian(f, argnums), argnums), f, "hessian")


def vmap(f: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    """A function that answers ``f`` for each slice of its arguments, stacked.

    ``torch.func.vmap`` and ``mx.vmap`` compute it, all at once. NumPy, and what those cannot vectorise, goes one slice
    after the other. Keyword arguments are sliced along their first axis. A model is given whole with ``None``; what the
    function assigns to one would be another thing for each slice, and is an error.

    Args:
        in_axes: the axis to slice each argument along, ``None`` to give it whole to every call: one for all arguments,
            or a tuple or list with one for each, which may be a tree of axes for the leaves of that argument.
        out_axes: the axis to stack along, a tree of them for the leaves of the answer, or ``None`` for an answer that
            is the same for each slice.

    >>> from ember_ml import ops
    >>> vmap(ops.sum)(ops.asarray([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [3.0, 7.0]
    >>> vmap(ops.multiply, in_axes=(0, None))(ops.asarray([1.0, 2.0]), ops.asarray([1.0, 3.0])).tolist()
    [[1.0, 3.0], [2.0, 6.0]]
    """
    if not isinstance(in_axes, (int, list, tuple, type(None))):
        raise TypeError(f"in_axes is an axis, None, or a tuple with one for each argument, not {in_axes!r}")

    def transformed(*args: Any, **kwargs: Any) -> Any:
        if isinstance(in_axes, (list, tuple)) and len(in_axes) != len(args):
            raise ValueError(f"in_axes has {len(in_axes)} entries for {len(args)} positional arguments")
        axes = list(in_axes) if isinstance(in_axes, (list, tuple)) else [in_axes] * len(args)
        call = _Call("vmap", _spread(f), (args, kwargs), {}, (0, 1), strict=False, everything=True)
        spread = _broadcast(axes, list(args)) + _broadcast(0, list(kwargs.values()))
        mapped: list[int | None] = []
        for axis, place in zip(spread, call.places, strict=True):
            mapped += [axis] * (1 if _is_mark(place) else 0 if place is _STILL else len(place[1]))
        size = _mapped_size(call.tensors, mapped)
        outputs, _ = _vectorized(call, mapped, size)
        call.check_unchanged()
        stacked = _broadcast(out_axes, call.structure)
        with _backends.active(call.home):
            outputs = [_moved(x, axis) for x, axis in zip(outputs, stacked, strict=True)]
        return call.answer(outputs)

    return _named(transformed, f, "vmap")


def _vectorized(call: _Call, axes: list[int | None], size: int) -> tuple[Sequence[Any], Sequence[Any]]:
    vectorized = getattr(call.engine, "vectorized", None)
    if vectorized is not None and size:
        try:
            found = vectorized(call.joined, axes, call.tensors)
            return found[: call.count], found[call.count :]
        except (NotImplementedError, RuntimeError, ValueError):
            # What the engine cannot vectorise, or a mistake in f, which the loop shows in its own words.
            pass
    return _looped(call, axes, size)


def _looped(call: _Call, axes: list[int | None], size: int) -> tuple[Sequence[Any], Sequence[Any]]:
    """One slice after the other."""
    with _backends.active(call.home):
        columns = [
            x if axis is None else manipulation.moveaxis(x, axis, 0) for x, axis in zip(call.tensors, axes, strict=True)
        ]
        if not size:
            # There is no slice to show the shapes of the answer.
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


def _spread(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda args, kwargs: f(*args, **kwargs)


def _broadcast(axes: Any, tree: Any) -> list[Any]:
    """The axis for each leaf of ``tree``, from a tree of axes that is a beginning of it."""
    if axes is None or type(axes) is int:
        return [axes] * len(_tree.leaves(tree))
    if isinstance(axes, dict) and isinstance(tree, dict) and axes.keys() == tree.keys():
        return [axis for key in tree for axis in _broadcast(axes[key], tree[key])]
    if isinstance(axes, (list, tuple)) and isinstance(tree, (list, tuple)) and len(axes) == len(tree):
        return [axis for one, child in zip(axes, tree, strict=True) for axis in _broadcast(one, child)]
    raise ValueError(f"a tree of axes must begin like the tree it is for: {axes!r} does not fit {type(tree).__name__}")


def _mapped_size(tensors: Sequence[Any], axes: Sequence[int | None]) -> int:
    """The length of the axes to go along, which must be one."""
    sizes = set()
    for x, axis in zip(tensors, axes, strict=True):
        if axis is not None:
            if not -len(x.shape) <= axis < len(x.shape):
                raise ValueError(f"vmap along axis {axis} cannot take {describe(x)}")
            sizes.add(x.shape[axis])
    if len(sizes) != 1:
        raise ValueError(
            f"vmap takes axes of one length, not {sorted(sizes)}" if sizes else "vmap needs an axis to go along"
        )
    return int(sizes.pop())


def _moved(x: Any, axis: int | None) -> Any:
    if axis is None:
        return x[0]
    return x if axis == 0 else manipulation.moveaxis(x, 0, axis)


def custom_gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    """The first part of ``f``'s answer, whose gradient is what the second part says.

    ``f`` answers a pair: anything, and a function that takes one cotangent for each tensor in it and answers one for
    each floating tensor among the arguments, in the order of their leaves; alone if there is one, ``None`` for zero. So
    what is to have a gradient is given as an argument: a model or a tensor that ``f`` closes over while it is being
    differentiated with respect to is an error.

    >>> from ember_ml import ops
    >>> @custom_gradient
    ... def clipped(x):
    ...     return x, lambda cotangent: ops.clip(cotangent, -1.0, 1.0)
    >>> grad(lambda x: ops.sum(ops.multiply(clipped(x), 5.0)))(ops.asarray([1.0, 2.0])).tolist()
    [1.0, 1.0]
    """

    def transformed(*args: Any, **kwargs: Any) -> Any:
        call = _Call("custom_gradient", _spread(f), (args, kwargs), {}, (0, 1), strict=False, has_aux=True)
        if not _is_compiled():
            _check_reached(f, (args, kwargs), call)

        def split(*tensors: Any) -> tuple[tuple[Any, ...], Callable[..., Any]]:
            outputs, _ = call.flat(*tensors)
            rule, call.aux = call.aux, None

            def pulled(cotangents: Sequence[Any]) -> list[Any]:
                found = rule(*cotangents)
                several = list(found) if isinstance(found, (list, tuple)) else [found]
                if len(several) != len(tensors):
                    raise ValueError(
                        f"the gradient function of {getattr(f, '__name__', 'f')} answers {len(several)} "
                        f"gradients for {len(tensors)} tensors"
                    )
                return [
                    creation.zeros_like(x) if one is None else call.fitted(x, one)
                    for x, one in zip(tensors, several, strict=True)
                ]

            return outputs, pulled

        return call.answer(call.engine.ruled(split, call.tensors))

    return _named(transformed, f, "custom_gradient")


def _check_reached(f: Callable[..., Any], arguments: Any, call: _Call) -> None:
    """Raise an error if ``f`` reaches something that a gradient is being taken of: the rule has none for it."""
    models, cells, _ = reached(f, arguments, call.home)
    is_traced = getattr(call.engine, "is_traced", _watch.sees)
    held = [(type(model).__name__, x) for model in models for x in model.tensors().values()]
    for what, x in held + [("tensor", cell.cell_contents) for cell in cells]:
        if is_traced(x):
            raise ValueError(
                f"{getattr(f, '__name__', 'f')} closes over a {what} that a gradient is being taken of, and its rule "
                "has none for it: give it as an argument, or stop_gradient of it"
            )


class _Watch(threading.local):
    """The tensors that stand for those being differentiated with respect to, on engines that cannot tell."""

    def __init__(self) -> None:
        self.levels: list[Sequence[Any]] = []

    def sees(self, x: Any) -> bool:
        return any(x is other for level in self.levels for other in level)


_watch = _Watch()


def checkpoint(f: F) -> F:
    """``f``, whose intermediate values are not kept for the gradient but computed again: less memory, more time.

    ``f`` may be a module, or close over modules and tensors. Random numbers are the same when they are drawn again.

    >>> from ember_ml import ops
    >>> layer = checkpoint(lambda x: ops.sum(ops.exp(ops.sin(x))))
    >>> grad(layer)(ops.asarray([0.0])).tolist()
    [1.0]
    """

    def transformed(*args: Any, **kwargs: Any) -> Any:
        models, cells, _ = reached(f, (args, kwargs), _home("checkpoint", (args, kwargs), ()))
        held = models, [cell.cell_contents for cell in cells]
        call = _Call(
            "checkpoint",
            given(_spread(f), cells),
            (held, args, kwargs),
            {},
            (0, 1, 2),
            strict=False,
            everything=True,
        )
        found = call.engine.remembered(call.joined, call.tensors)
        call.close(found[call.count :])
        return call.answer(found[: call.count])

    return _named(transformed, f, "checkpoint")  # type: ignore[return-value]


def compile(f: F) -> F:
    """``f``, compiled by the engine of its tensors: ``torch.compile``, ``mx.compile``; NumPy runs ``f`` itself.

    Tensors are inputs; numbers, strings and the like are part of the program, so that other values compile it again.
    Models and optimisers go in and come out: what ``f`` assigns to them is there after the call. Random draws inside
    use a fresh key of the current stream on each call. A mistake is explained as without the compiler, with the names
    of the operation and of the layer.

    >>> from ember_ml import ops
    >>> compile(lambda x, n: ops.power(x, n))(ops.asarray([1.0, 2.0]), 2).tolist()
    [1.0, 4.0]
    """
    programs: dict[str, Callable[..., Any]] = {}

    def seeded(key: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with random.stream(key):
            return f(*args, **kwargs)

    def transformed(*args: Any, **kwargs: Any) -> Any:
        words = _next_words()
        if words is None:
            return f(*args, **kwargs)
        home = _home("compile", (args, kwargs), ())
        program = programs.get(home.name)
        if program is None:
            program = programs[home.name] = _program(seeded, _engine(home))
        return program(home.convert(words, home.dtypes["uint32"], home.device), args, kwargs)

    return _named(transformed, f, "compile")  # type: ignore[return-value]


def _next_words() -> list[int] | None:
    """The next key of the current stream; ``None`` in compiled code, where that is known to the engine alone.

    Every call takes one, whether it is used or not, so that streams go on alike on all engines.
    """
    block = threefry.here.block
    if block is None:
        return list(threefry.draw())
    if _is_compiled():
        return None
    block.count += 1
    return list(threefry.child(block.key, threefry.FOLDS, block.count - 1))


def _is_compiled() -> bool:
    """Whether this is compiled code, where the key of the stream is known to the engine alone."""
    block = threefry.here.block
    return block is not None and type(block.key[0]) is not int


def _program(f: Callable[..., Any], engine: Any) -> Callable[..., Any]:
    """``f`` compiled by an engine that traces Python, or that traces functions of tensors; else ``f`` itself."""
    if not hasattr(engine, "compiled"):
        return _Program(f, engine) if hasattr(engine, "compiled_flat") else f
    return _Traced(f, engine)


class _Traced:
    """A function for an engine that traces Python."""

    def __init__(self, f: Callable[..., Any], engine: Any) -> None:
        self.f, self.engine = f, engine
        self.run = engine.compiled(f)
        # Before the first call, and when it is known that there is something in it that cannot be compiled.
        self.is_new, self.is_plain = True, False

    def __call__(self, *args: Any) -> Any:
        if self.is_plain:
            return self.f(*args)
        before = _held(args) if self.is_new else []
        for leaf in _tree.leaves(args):
            if _is_writing(leaf):
                # Here, or the program would be traced twice: with the copies that this takes, and without.
                leaf.own()
        try:
            answer = self.run(*args)
        except Exception as error:
            if not self.engine.is_of_compiler(error):
                raise
            _put_back(before)
            count = self.engine.uncompilable()
            mistake = _mistake(self.f, args)
            if mistake is not None:
                # Without the compiler's own words, which are many.
                raise mistake from mistake.__cause__
            if self.engine.uncompilable() == count:
                raise
            self.is_plain = True
            return self.f(*args)
        self.is_new = False
        return answer


def _held(args: Any) -> list[tuple[Any, dict[str, Any]]]:
    """The stateful arguments with the tensors that they have."""
    return [(state, dict(state.tensors())) for state in _states(args)]


def _put_back(held: list[tuple[Any, dict[str, Any]]]) -> None:
    for state, old in held:
        state.assign(old)


def _mistake(f: Callable[..., Any], args: tuple[Any, ...]) -> Exception | None:
    """What ``f`` itself raises, which names the operation and the layer; nothing that it assigns is kept."""
    before = _held(args)
    try:
        f(*args)
    except Exception as error:
        return error
    finally:
        _put_back(before)
    return None


class _Program:
    """A function for an engine that compiles functions of tensors: one of these for each structure of arguments."""

    def __init__(self, f: Callable[..., Any], engine: Any) -> None:
        self.f = f
        self.engine = engine
        self.entries: dict[Hashable, _Entry] = {}
        self.is_told = False

    def __call__(self, *args: Any) -> Any:
        # The first argument is the key, which is at home.
        models, cells, names = reached(self.f, args, _home("compile", args[:1], ()))
        args = (models, [cell.cell_contents for cell in cells]), *args
        call = _Call("compile", given(self.f, cells), args, {}, tuple(range(len(args))), strict=False, everything=True)
        key = signature((args, names))
        entry = self.entries.get(key)
        if entry is None:
            self._make_room()
            entry = self.entries[key] = _Entry(call.emptied(), self.engine)
        return entry(call.tensors)

    def _make_room(self) -> None:
        """Let go of the oldest program if there are many, and say so the first time."""
        if len(self.entries) < _PROGRAMS:
            return
        self.entries.pop(next(iter(self.entries)))
        if not self.is_told:
            self.is_told = True
            warnings.warn(
                f"a function was compiled for the {_PROGRAMS + 1}th time, each for other numbers, options or models. A "
                "number that is another in every call is best given as a tensor, or held in a Buffer",
                stacklevel=4,
            )


# How many programs of one function are kept.
_PROGRAMS = 16


class _Entry:
    """A program, and what the function did to attributes while it was traced."""

    def __init__(self, call: _Call, engine: Any) -> None:
        self.call = call
        self.run = engine.compiled_flat(self.traced)
        self.is_traced = False
        self.changes: Attributes = []

    def traced(self, *tensors: Any) -> tuple[Any, ...]:
        before = attributes(self.call.states)
        found = self.call.joined(*tensors)
        self.changes = changed(before, attributes(self.call.states))
        self.is_traced = True
        return found

    def __call__(self, tensors: Sequence[Any]) -> Any:
        self.is_traced = False
        found = self.run(*tensors)
        if not self.is_traced:
            for part, values in self.changes:
                part.__dict__.update(values)
        self.call.close(found[self.call.count :])
        return self.call.answer(found[: self.call.count])


def _positions(argnums: Any) -> tuple[int, ...]:
    """The positions of the arguments to differentiate with respect to."""
    several = argnums if isinstance(argnums, (tuple, list)) else (argnums,)
    if not several or any(type(i) is not int for i in several):
        raise TypeError(f"argnums is the position of an argument, or a tuple of positions, not {argnums!r}")
    return tuple(several)


def _chosen(positions: tuple[int, ...], args: tuple[Any, ...]) -> tuple[int, ...]:
    """The same positions, counted from the front."""
    for i in positions:
        if not -len(args) <= i < len(args):
            raise TypeError(f"cannot differentiate with respect to argument {i}: {len(args)} positional were given")
    chosen = tuple(i % len(args) for i in positions)
    if len(set(chosen)) < len(chosen):
        raise ValueError(f"argnums names one argument twice: {positions}")
    return chosen


def _named(transformed: Callable[..., Any], f: Callable[..., Any], name: str) -> Callable[..., Any]:
    """``transformed`` with the signature and documentation of ``f``, and a name that says what was done to it."""
    update_wrapper(transformed, f, assigned=("__module__", "__doc__"), updated=())
    transformed.__name__ = transformed.__qualname__ = f"{name}({getattr(f, '__name__', type(f).__name__)})"
    return transformed


class _Call:
    """One call of a function under a transform: its chosen arguments as a flat list of tensors, and the way back.

    ``tensors`` are the leaves that the engine traces. ``flat`` runs the function on tensors in their place and answers
    two tuples of tensors: the leaves of its answer, and what passes by untraced (auxiliary tensors, and those assigned
    to stateful arguments). ``scalar`` is the same for a function whose answer must be a number.
    """

    def __init__(
        self,
        name: str,
        f: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        chosen: tuple[int, ...],
        *,
        has_aux: bool = False,
        strict: bool = True,
        everything: bool = False,
    ) -> None:
        self.name = name
        self.f = f
        self.args = args
        self.kwargs = kwargs
        self.chosen = chosen
        self.has_aux = has_aux
        self.everything = everything
        self.keeps_numbers = name in ("compile", "checkpoint")
        self.aux: Any = None
        self.count = 0
        # The containers of the chosen arguments, with a leaf or the paths of a stateful argument at each place.
        self.places: list[Any] = []
        self.tensors: list[Any] = []
        self.structure: Any = None
        self.states = _states((args, kwargs))
        if name in _REPEATED and not _is_compiled():
            self.states += reached(f, (args, kwargs), _home(name, [args[i] for i in chosen], (args, kwargs)))[0]
        self.assigned: list[tuple[Any, dict[str, Any]]] = []
        # Where in the random stream the first run began.
        self.draws: tuple[Any, int] | None = None
        self.home = _home(name, [args[i] for i in chosen], (args, kwargs))
        self.engine = _engine(self.home)
        for i in chosen:
            for leaf in _tree.leaves(args[i]):
                self._enter(leaf, i, strict)

    def _enter(self, leaf: Any, position: int, strict: bool) -> None:
        if is_stateful(leaf):
            values = leaf.tensors() if self.everything else _parameters(leaf, self.name)
            self.places.append((leaf, list(values)))
            self.tensors += values.values()
            return
        x = None if self.everything and type(leaf) in _NUMBERS else _tensor(self.home, leaf, self.tensors)
        if x is not None and (self.everything or self.home.dtype_of(x).kind in KINDS["floating"]):
            self.places.append(_PORTABLE if portable.holds((leaf,)) else _TRACED)
            self.tensors.append(x)
        elif strict and leaf is not None:
            raise TypeError(
                f"{self.name} takes floating tensors to differentiate with respect to, not {describe(leaf)} "
                f"in argument {position}"
            )
        else:
            self.places.append(_STILL)

    def _check_given(self, given: list[tuple[Any, dict[str, Any]]]) -> None:
        """Raise an error if two of the chosen models are one, or one part of the other: whose would a gradient be?"""
        for state, now in given:
            held = state.tensors()
            for path, x in now.items():
                if held[path] is not x:
                    raise ValueError(
                        f"{self.name} cannot differentiate with respect to {path!r} of a {type(state).__name__} twice: "
                        "another of the models that it is to differentiate with respect to has it as well"
                    )

    def flat(self, *tensors: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The tensors of the answer, and those that pass by, when the function is run on these tensors."""
        answer = self.run(tensors)
        if self.has_aux:
            if not isinstance(answer, tuple) or len(answer) != 2:
                raise TypeError(f"a function with has_aux answers a pair of value and aux, not {type(answer).__name__}")
            answer, self.aux = answer
        outputs: list[Any] = []

        def taken(leaf: Any) -> Any:
            if self.name in _DERIVATIVES:
                self._check_answer(leaf)
            x = leaf if self.keeps_numbers and type(leaf) in _NUMBERS else _tensor(self.home, leaf, tensors)
            if x is None and not self.everything:
                raise TypeError(f"{self.name} takes a function that answers tensors, not {describe(leaf)}")
            if x is None or type(x) in _NUMBERS:
                return leaf
            outputs.append(x)
            return _PORTABLE if portable.holds((leaf,)) else _TRACED

        self.structure = _tree.map(taken, answer)
        self.count = len(outputs)
        return tuple(outputs), self._passing()

    def _check_answer(self, leaf: Any) -> None:
        """Raise an error if ``leaf`` is no tensor of this engine: its derivative would be zero, whatever it is."""
        x = portable.opened(leaf)
        kind, kinds = type(x), self.home.kinds
        if not isinstance(x, kinds) and _door.species_of(kind) in (_door.NUMBER, _door.HOST):
            raise TypeError(
                f"{self.name} takes a function that answers tensors, not a {kind.__name__}, through which no gradient "
                "flows: float(x), x.item(), to_numpy(x) and the like take numbers out of the engine. ops.asarray makes "
                "a tensor of a constant, whose gradient is zero"
            )

    def joined(self, *tensors: Any) -> tuple[Any, ...]:
        """As ``flat``, in one tuple, of which the first ``count`` are the answer's."""
        outputs, passing = self.flat(*tensors)
        return (*outputs, *passing)

    def emptied(self) -> _Call:
        """This call without its tensors, which need not be kept once the function is compiled."""
        places = iter(self.places)
        empty = copy.copy(self)
        empty.args = tuple(_tree.map(lambda leaf: None if _is_mark(next(places)) else leaf, list(self.args)))
        empty.tensors = []
        return empty

    def scalar(self, *tensors: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """As ``flat``, for a value that can be differentiated."""
        outputs, passing = self.flat(*tensors)
        if not _is_mark(self.structure):
            raise TypeError(
                f"{self.name} takes a function that answers one number, not a {type(self.structure).__name__}"
                + (" (has_aux=True passes on what comes with it)" if isinstance(self.structure, tuple) else "")
            )
        (value,) = outputs
        if len(value.shape):
            raise TypeError(
                f"{self.name} takes a function that answers a number, not a tensor of shape "
                f"{tuple(value.shape)}; vjp takes any"
            )
        kind = self.home.dtype_of(value).kind
        if kind != "real floating":
            raise TypeError(f"{self.name} takes a function that answers a real floating number, not {describe(value)}")
        return outputs, passing

    def run(self, tensors: Sequence[Any]) -> Any:
        """The function's own answer, with these tensors in the place of the ones it was given."""
        rest, places = iter(tensors), iter(self.places)
        before = [dict(state.tensors()) for state in self.states]
        given: list[tuple[Any, dict[str, Any]]] = []

        def placed(leaf: Any) -> Any:
            place = next(places)
            if place is _STILL:
                return leaf
            if _is_mark(place):
                return self._wrapped(place, next(rest))
            state, paths = place
            now = {path: next(rest) for path in paths}
            given.append((state, now))
            state.assign(now)
            return state

        args = list(self.args)
        for i in self.chosen:
            args[i] = _tree.map(placed, args[i])
        is_watched = self.name in _DERIVATIVES and not hasattr(self.engine, "is_traced")
        if is_watched:
            _watch.levels.append(tensors)
        try:
            if len(given) > 1 and self.name in _DERIVATIVES:
                self._check_given(given)
            if self.name == "compile":
                return self.f(*args, **self.kwargs)
            if self.draws is None:
                self.draws = threefry.position()
                return self.f(*args, **self.kwargs)
            # An engine may run it again, for the gradient or for another slice: with the same random numbers.
            with threefry.repeated(*self.draws):
                return self.f(*args, **self.kwargs)
        finally:
            if is_watched:
                _watch.levels.pop()
            self.assigned = []
            for state, old in zip(self.states, before, strict=True):
                start = dict(old)
                for other, now in given:
                    if other is state:
                        start.update(now)
                after = state.tensors()
                self.assigned.append((state, {path: x for path, x in after.items() if x is not start.get(path)}))
                state.assign(old)

    def _wrapped(self, place: Any, x: Any) -> Any:
        """``x`` in the kind of tensor that is at a place."""
        return portable.closed(x, self.home) if place is _PORTABLE else x

    def _passing(self) -> tuple[Any, ...]:
        leaves = [portable.opened(leaf) for leaf in _tree.leaves(self.aux) if is_tensor(leaf)]
        return tuple(leaves + [x for _, new in self.assigned for x in new.values()])

    def close(self, passing: Sequence[Any]) -> None:
        """Put what passed by, now untraced, where it belongs."""
        rest = iter(passing)

        def settled(leaf: Any) -> Any:
            if not is_tensor(leaf):
                return leaf
            return self._wrapped(_PORTABLE if portable.holds((leaf,)) else _TRACED, next(rest))

        self.aux = _tree.map(settled, self.aux)
        for state, new in self.assigned:
            if new:
                state.assign({path: next(rest) for path in new})

    def check_unchanged(self) -> None:
        """Raise an error if the function assigned anything to a model: it would be another thing for each slice."""
        for state, new in self.assigned:
            if new:
                raise ValueError(
                    f"the function that {self.name} runs assigned {', '.join(new)} of a {type(state).__name__}, which "
                    "can have those of one slice alone; eval() keeps the statistics of a model as they are"
                )

    def answer(self, outputs: Sequence[Any]) -> Any:
        """These tensors in the structure of the function's answer."""
        rest = iter(outputs)
        return _tree.map(lambda leaf: self._wrapped(leaf, next(rest)) if _is_mark(leaf) else leaf, self.structure)

    def gradients(self, tensors: Sequence[Any]) -> tuple[Any, ...]:
        """These tensors in the structure of the chosen arguments."""
        rest, places = iter(tensors), iter(self.places)

        def placed(_: Any) -> Any:
            place = next(places)
            if place is _STILL:
                return None
            return self._wrapped(place, next(rest)) if _is_mark(place) else {path: next(rest) for path in place[1]}

        return tuple([_tree.map(placed, self.args[i]) for i in self.chosen])

    def cotangents(self, outputs: Sequence[Any], cotangent: Any) -> list[Any]:
        """The leaves of ``cotangent``, which must look like the outputs."""
        leaves: list[Any] = []
        _tree.map(lambda _, leaf: leaves.append(leaf), self.structure, cotangent)
        return [self._like(x, leaf, "cotangent") for x, leaf in zip(outputs, leaves, strict=True)]

    def tangents(self, tangents: Sequence[Any]) -> list[Any]:
        """The leaves of ``tangents``, which must look like the chosen arguments."""
        found: list[Any] = []
        places = iter(self.places)

        def taken(_: Any, tangent: Any) -> None:
            place = next(places)
            if _is_mark(place):
                found.append(tangent)
            elif place is not _STILL:
                found.extend(tangent.value[path] for path in place[1])

        for i in self.chosen:
            shielded = _shielded(self.args[i], tangents[i])
            _tree.map(taken, self.args[i], shielded)
        return [self._like(x, leaf, "tangent") for x, leaf in zip(self.tensors, found, strict=True)]

    def fitted(self, x: Any, gradient: Any) -> Any:
        """``gradient`` as a tensor of the shape of ``x``."""
        return self._like(x, gradient, "gradient")

    def _like(self, x: Any, leaf: Any, what: str) -> Any:
        """``leaf`` as a tensor of the shape and dtype of ``x``."""
        given = _tensor(self.home, leaf, [x])
        if given is None:
            raise TypeError(f"{self.name} takes a tensor for each {what}, not {describe(leaf)}")
        if tuple(given.shape) != tuple(x.shape):
            raise ValueError(f"the {what} has shape {tuple(given.shape)}, not {tuple(x.shape)} as what it belongs to")
        if type(leaf) in _NUMBERS:
            return self.home.cast(given, x.dtype)
        if self.home.dtype_of(given) is not self.home.dtype_of(x):
            raise TypeError(f"the {what} is {describe(given)}; what it belongs to is {describe(x)}")
        return given


class _TRACED:
    """The mark of a place where there is a tensor."""


class _PORTABLE:
    """The mark of a place where there is a tensor in an ``EmberTensor``."""


class _STILL:
    """The mark of a place among the chosen arguments where there is something else."""


_NUMBERS = (bool, int, float, complex)

# The transforms that answer derivatives.
_DERIVATIVES = frozenset({"grad", "vjp", "jvp", "jacobian"})

# Those that may run a function more than once. What it does to models that it reaches is to be done once.
_REPEATED = frozenset({"vjp", "jacobian", "vmap"})


def _is_mark(place: Any) -> bool:
    """Whether there is a tensor; by identity, which compilers can trace."""
    return place is _TRACED or place is _PORTABLE


class _Shield:
    """A dictionary that is one leaf of a tree."""

    def __init__(self, value: dict[str, Any]) -> None:
        self.value = value


def _shielded(tree: Any, other: Any) -> Any:
    """``other`` with the dictionaries that stand for stateful leaves of ``tree`` as leaves."""
    if is_stateful(tree):
        return _Shield(other)
    if isinstance(tree, dict) and isinstance(other, dict):
        return {key: _shielded(tree.get(key), child) for key, child in other.items()}
    if isinstance(tree, (list, tuple)) and isinstance(other, (list, tuple)) and len(tree) == len(other):
        return type(other)([_shielded(a, b) for a, b in zip(tree, other, strict=True)])
    return other


def _parameters(state: Any, name: str) -> dict[str, Any]:
    found = getattr(state, "parameters", None)
    if found is None:
        raise TypeError(f"{name} cannot differentiate with respect to a {type(state).__name__}: it has no parameters")
    return found()  # type: ignore[no-any-return]


def _states(tree: Any) -> list[Any]:
    """The stateful leaves, each once."""
    found: list[Any] = []
    for leaf in _tree.leaves(tree):
        if is_stateful(leaf) and not any(leaf is other for other in found):
            found.append(leaf)
    return found


def _home(name: str, first: Any, others: Any) -> Backend:
    """The engine that the tensors live on: those to differentiate with respect to, or else any; else the active one."""
    for tree, is_theirs in ((first, False), (first, True), (others, False), (others, True)):
        home: Backend | None = None
        for x in _samples(tree, is_theirs):
            species = x.home if portable.holds((x,)) else _door.species_of(type(x))
            if isinstance(species, Backend) and species is not home:
                if home is not None and tree is first:
                    raise TypeError(
                        f"{name} was given tensors of two engines, {home.name} and {species.name}; "
                        "ember_ml.ops.convert_to_tensor(x) moves either to the active backend"
                    )
                home = home or species
        if home is not None:
            return home
    return _backends.current()


def _samples(tree: Any, is_theirs: bool) -> list[Any]:
    """The leaves, with one tensor of each stateful one in its place.

    Args:
        is_theirs: those alone that write into tensors of their own, or those alone that do not. An optimiser that is
            asked for its tensors will copy them first, so that it is asked last.
    """
    leaves = [leaf for leaf in _tree.leaves(tree) if _is_writing(leaf) == is_theirs]
    return [next(iter(leaf.tensors().values()), None) if is_stateful(leaf) else leaf for leaf in leaves]


def _is_writing(leaf: Any) -> bool:
    """Whether ``leaf`` is stateful and may write into its tensors: those it knows to be its own."""
    return hasattr(type(leaf), "own") and is_stateful(leaf)


def _engine(home: Backend) -> Any:
    """How an engine transforms functions of flat lists of tensors."""
    found = _backends.submodule(home.module, "transform")
    if found is None:
        raise NotImplementedError(f"the {home.name} backend has no transforms")
    return found


def _tensor(home: Backend, value: Any, beside: Sequence[Any]) -> Any:
    """A tensor, host array or number as a tensor of ``home``; ``None`` if it is none of these."""
    kinds: Any = home.kinds
    value = portable.opened(value)
    if isinstance(value, kinds):
        return value
    species = _door.species_of(type(value))
    if species not in (_door.NUMBER, _door.HOST):
        return None
    return home.convert(value, None, home.beside(beside[0]) if beside else home.device)
