"""Functions with a rule of their own for their gradient: one that is given, or to compute them again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ember_ml import dispatch
from ember_ml import tree as _tree
from ember_ml.dispatch import is_tensor
from ember_ml.dtypes import written
from ember_ml.ops import creation
from ember_ml.transform.call import Call, F, is_compiled, named, unpacking, watch
from ember_ml.transform.captures import captures_of, with_captures
from ember_ml.transform.leaves import home_of


def custom_gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    """The first part of ``f``'s answer, whose gradient is what the second part says.

    ``f`` answers a pair: anything, and a function that takes one cotangent for each tensor in it and answers one for
    each floating tensor among the arguments, in the order of their leaves; alone if there is one, ``None`` for zero. So
    what is to have a gradient is given as an argument: a model or a tensor that ``f`` closes over while it is being
    differentiated with respect to is an error.

    >>> from ember_ml import grad, ops
    >>> @custom_gradient
    ... def clipped(x):
    ...     return x, lambda cotangent: ops.clip(cotangent, -1.0, 1.0)
    >>> grad(lambda x: ops.sum(ops.multiply(clipped(x), 5.0)))(ops.asarray([1.0, 2.0])).tolist()
    [1.0, 1.0]
    """

    def transformed(*args: Any, **kwargs: Any) -> Any:
        call = Call("custom_gradient", unpacking(f), (args, kwargs), {}, (0, 1), strict=False, has_aux=True)
        if not is_compiled():
            _check_captures(f, (args, kwargs), call)

        def split(*tensors: Any) -> tuple[tuple[Any, ...], Callable[..., Any]]:
            outputs, _ = call.flat(*tensors)
            rule, call.aux = call.aux, None
            if not callable(rule):
                raise TypeError(
                    "custom_gradient: the function must return a value and the function from cotangents to "
                    f"gradients, got {written(rule)} for the second"
                )

            def pulled(cotangents: Sequence[Any]) -> list[Any]:
                found = rule(*cotangents)
                several = list(found) if isinstance(found, (list, tuple)) else [found]
                if len(several) != len(tensors):
                    raise ValueError(
                        f"custom_gradient: the gradient function of {getattr(f, '__name__', 'f')} must return "
                        f"{len(tensors)} gradients, one for each tensor, got {len(several)}"
                    )
                return [
                    creation.zeros_like(x) if one is None else call.fitted(x, one)
                    for x, one in zip(tensors, several, strict=True)
                ]

            return outputs, pulled

        return call.answer(call.engine.ruled(split, call.tensors))

    return named(transformed, f, "custom_gradient")


def _check_captures(f: Callable[..., Any], arguments: Any, call: Call) -> None:
    """Raise an error if ``f`` captures something that a gradient is being taken of: the rule has none for it."""
    models, cells, _ = captures_of(f, arguments, call.home)
    is_traced = getattr(call.engine, "is_traced", watch.sees)
    held = [(type(model).__name__, x) for model in models for x in model.tensors().values()]
    held += [("tensor", x) for cell in cells for x in _tree.leaves(cell.cell_contents)]
    for what, x in held:
        if is_tensor(x) and is_traced(dispatch.unwrap(x)):
            raise ValueError(
                f"custom_gradient: {getattr(f, '__name__', 'f')} must not close over a {what} that a gradient is "
                "being taken of, as its rule has none for it: give it as an argument, or stop_gradient of it"
            )


def checkpoint(f: F) -> F:
    """``f``, whose intermediate values are not kept for the gradient but computed again: less memory, more time.

    ``f`` may be a module, or close over modules and tensors. Random numbers are the same when they are drawn again.

    >>> from ember_ml import grad, ops
    >>> layer = checkpoint(lambda x: ops.sum(ops.exp(ops.sin(x))))
    >>> grad(layer)(ops.asarray([0.0])).tolist()
    [1.0]
    """

    def transformed(*args: Any, **kwargs: Any) -> Any:
        models, cells, _ = captures_of(f, (args, kwargs), home_of("checkpoint", (args, kwargs), ()))
        held = models, [cell.cell_contents for cell in cells]
        call = Call(
            "checkpoint",
            with_captures(unpacking(f), cells),
            (held, args, kwargs),
            {},
            (0, 1, 2),
            strict=False,
            everything=True,
        )
        found = call.engine.remembered(call.joined, call.tensors)
        call.close(found[call.count :])
        return call.answer(found[: call.count])

    return named(transformed, f, "checkpoint")  # type: ignore[return-value]
