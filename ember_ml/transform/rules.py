"""Functions with a custom gradient, and rematerialization."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from ember_ml import dispatch
from ember_ml import tree as _tree
from ember_ml.dispatch import is_tensor
from ember_ml.dtypes import written
from ember_ml.ops import creation
from ember_ml.random import threefry
from ember_ml.transform.call import Call, F, is_compiled, named, unpacking, watch
from ember_ml.transform.captures import captures_of, with_captures
from ember_ml.transform.leaves import find_backend


def custom_gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    """Function with a custom gradient.

    ``f`` returns a pair: the value, which may be a tree, and a gradient function. The gradient function takes one
    cotangent for each tensor of the value. It returns one gradient for each floating tensor of the arguments, in the
    order of their leaves: a list or tuple, or the gradient itself if there is one. ``None`` is a zero gradient.
    Everything to differentiate with respect to must be an argument: it is an error if ``f`` closes over it.

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
            outputs, _ = call.run_flat(*tensors)
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
                    creation.zeros_like(x) if one is None else call.gradient_like(x, one)
                    for x, one in zip(tensors, several, strict=True)
                ]

            return outputs, pulled

        return call.result(call.engine.ruled(split, call.tensors))

    return named(transformed, f, "custom_gradient")


def _check_captures(f: Callable[..., Any], arguments: Any, call: Call) -> None:
    """Raise an error if ``f`` captures a tensor being differentiated with respect to, which the rule does not cover."""
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
    """``f`` with rematerialization: intermediate values are recomputed for the gradient, which saves memory.

    ``f`` may be a module, or close over modules and tensors. The recomputation draws the same random numbers. In
    ``random.native()``, NumPy and MLX cannot repeat what their generators drew, so ``f`` draws from the current stream.

    >>> from ember_ml import grad, ops
    >>> layer = checkpoint(lambda x: ops.sum(ops.exp(ops.sin(x))))
    >>> grad(layer)(ops.asarray([0.0])).tolist()
    [1.0]
    """

    def transformed(*args: Any, **kwargs: Any) -> Any:
        models, cells, _ = captures_of(f, (args, kwargs), find_backend("checkpoint", (args, kwargs), ()))
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
        with nullcontext() if getattr(call.engine, "REPEATS_DRAWS", False) else threefry.without_native():
            found = call.engine.remembered(call.joined, call.tensors)
        call.close(found[call.count :])
        return call.result(found[: call.count])

    return named(transformed, f, "checkpoint")  # type: ignore[return-value]
