"""Transforms of functions of flat lists of tensors: plain autograd, or ``torch.func`` within its own transforms.

A function takes tensors and answers two tuples of them: its outputs, and what passes by untraced.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextvars import copy_context
from types import FunctionType
from typing import Any, TypeAlias

import torch
import torch.utils.checkpoint
from torch._C._functorch import peek_interpreter_stack

from ember_ml.backend.torch import mapping
from ember_ml.backend.torch.core import is_pushing
from ember_ml.errors import UnsupportedError

Tensors: TypeAlias = tuple[torch.Tensor, ...]
Flat: TypeAlias = Callable[..., tuple[Tensors, Tensors]]


class _Depth(threading.local):
    """How many gradients are being computed around the caller, in this thread."""

    value = 0
    # Whether the outermost is the only use that will be made of what it records.
    is_last = False


_depth = _Depth()


def _functional() -> bool:
    """Whether ``torch.func`` must differentiate: its transforms and ``torch.compile`` do not trace plain autograd."""
    return torch.compiler.is_compiling() or peek_interpreter_stack() is not None


def is_last() -> bool:
    """Whether there is one gradient around the caller, which nothing will differentiate or take again."""
    return _depth.value == 1 and _depth.is_last


def is_bent() -> bool:
    """Whether torch differentiates forward, or a gradient of a gradient is computed around the caller."""
    return _depth.value > 1 or is_pushing()


def is_traced(x: torch.Tensor) -> bool:
    """Whether what is done with ``x`` is recorded."""
    return x.requires_grad and torch.is_grad_enabled()


def value_and_grad(f: Flat, tensors: Sequence[torch.Tensor]) -> tuple[Tensors, Tensors, Sequence[torch.Tensor]]:
    """The one output of ``f``, what passes by, and the gradient for each tensor."""
    if _functional():
        (value,), pull, aux = torch.func.vjp(f, *tensors, has_aux=True)  # type: ignore[misc]
        return (value,), aux, pull((torch.ones_like(value),))
    nested = _depth.value > 0 or _any_needed(tensors)
    outputs, aux, leaves = _recorded(f, tensors, nested, is_last=not nested)
    gradients = _pulled(outputs, leaves, None, nested, nested)
    return (outputs, aux, gradients) if nested else (_detached(outputs), _detached(aux), gradients)


def vjp(f: Flat, tensors: Sequence[torch.Tensor]) -> tuple[Tensors, Tensors, Callable[..., Sequence[torch.Tensor]]]:
    """The outputs of ``f``, what passes by, and the function from cotangents to gradients."""
    if _functional():
        outputs, pull, aux = torch.func.vjp(f, *tensors, has_aux=True)  # type: ignore[misc]
        return outputs, aux, lambda cotangents: pull(tuple(cotangents))
    nested = _depth.value > 0 or _any_needed(tensors)
    outputs, aux, leaves = _recorded(f, tensors, nested)

    def pulled(cotangents: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
        again = nested or _depth.value > 0 or _any_needed(cotangents)
        return _pulled(outputs, leaves, cotangents, again, True)

    return (outputs, aux, pulled) if nested else (_detached(outputs), _detached(aux), pulled)


def jvp(f: Flat, tensors: Sequence[torch.Tensor], tangents: Sequence[torch.Tensor]) -> tuple[Tensors, Tensors, Tensors]:
    """The outputs of ``f``, how they move, and what passes by."""
    if not tensors:
        outputs, aux = f()
        return outputs, tuple(torch.zeros_like(x) for x in outputs), aux
    try:
        outputs, moved, aux = torch.func.jvp(f, tuple(tensors), tuple(tangents), has_aux=True)  # type: ignore[misc]
    except (RuntimeError, UnsupportedError, ValueError) as error:
        if torch.compiler.is_compiling() or not isinstance(error.__cause__ or error, (RuntimeError, UnsupportedError)):
            raise
        # Some of torch's functions only know the way back: then it is the pullback of the pullback.
        outputs, pull, aux = torch.func.vjp(f, *tensors, has_aux=True)  # type: ignore[misc]
        _, push = torch.func.vjp(lambda *xs: pull(xs), *map(torch.zeros_like, outputs))  # type: ignore[misc]
        moved = push(tuple(tangents))
    return outputs, moved, aux


def _any_needed(tensors: Sequence[torch.Tensor]) -> bool:
    return torch.is_grad_enabled() and any(x.requires_grad for x in tensors)


def _recorded(
    f: Flat, tensors: Sequence[torch.Tensor], nested: bool, is_last: bool = False
) -> tuple[Tensors, Tensors, list[torch.Tensor]]:
    """The outputs, what passes by, and the tensors that stand for the given ones in the graph."""
    # A view belongs to the graph around this one as well; a detached tensor does not.
    leaves = [x.view_as(x) if nested and x.requires_grad else x.detach().requires_grad_() for x in tensors]
    with torch.enable_grad():
        outputs, aux = _at_depth(_depth.value + 1, is_last, f, *leaves)
    return outputs, aux, leaves


def _at_depth(value: int, is_last: bool, f: Callable[..., Any], *tensors: torch.Tensor) -> Any:
    """Result of ``f`` at a depth. No context manager: Ctrl-C could come before it restored the depth."""
    before = _depth.value, _depth.is_last
    try:
        _depth.value, _depth.is_last = value, is_last
        return f(*tensors)
    finally:
        _depth.value, _depth.is_last = before


def _pulled(
    outputs: Tensors, leaves: list[torch.Tensor], cotangents: Sequence[torch.Tensor] | None, again: bool, keep: bool
) -> Sequence[torch.Tensor]:
    """The gradients for the leaves; zeros where the outputs do not depend on them."""
    places = [i for i, x in enumerate(outputs) if x.requires_grad]
    if not places or not leaves:
        return [torch.zeros_like(x) for x in leaves]
    given = None if cotangents is None else [cotangents[i] for i in places]
    found = torch.autograd.grad(
        [outputs[i] for i in places], leaves, given, retain_graph=keep, create_graph=again, allow_unused=True,
        materialize_grads=True,
    )  # fmt: skip
    # Of the slope of a sign, torch makes a zero that is nowhere in memory, and that others cannot read.
    return [torch.zeros_like(x) if x._is_zerotensor() else x for x in found]


def _detached(tensors: Tensors) -> Tensors:
    return tuple([x.detach() if x.requires_grad else x for x in tensors])


def vectorized(f: Callable[..., Tensors], axes: Sequence[int | None], tensors: Sequence[torch.Tensor]) -> Tensors:
    """The outputs of ``f`` for each slice of the tensors along their axes, stacked along the first."""
    return mapping.vectorized(f, tuple(axes), randomness="same")(*tensors)


def remembered(f: Callable[..., Tensors], tensors: Sequence[torch.Tensor]) -> Tensors:
    """The outputs of ``f``, whose intermediate values are computed again when the gradient asks for them."""
    if peek_interpreter_stack() is not None:
        return f(*tensors)
    if torch.compiler.is_compiling():
        return torch.utils.checkpoint.checkpoint(f, *tensors, use_reentrant=False)
    depth = _depth.value, _depth.is_last

    def again(*tensors: torch.Tensor) -> Tensors:
        # Later too, when the gradient is computed, as if it were around.
        return _at_depth(*depth, f, *tensors)

    return torch.utils.checkpoint.checkpoint(_from_here(again), *tensors, use_reentrant=False)


def _from_here(f: Callable[..., Any]) -> Callable[..., Any]:
    """``f``, which sees the backend that is chosen here wherever it is run.

    On CUDA torch computes gradients in a thread of its own.
    """
    context = copy_context()
    return lambda *args: context.copy().run(f, *args)


class _Ruled(torch.autograd.Function):
    """A function that answers its outputs and the function from their cotangents to the gradients."""

    generate_vmap_rule = True

    @staticmethod
    def forward(f: Any, *tensors: torch.Tensor) -> Any:
        # torch takes no input for an output.
        return tuple([y.view_as(y) if any(y is x for x in tensors) else y for y in f(*tensors)[0]])

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        f, *tensors = inputs
        # Run again, so that the rule speaks of these tensors: gradients of gradients then see them.
        ctx.pulled = _from_here(lambda tensors, cotangents: f(*tensors)[1](cotangents))
        ctx.save_for_backward(*tensors)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        return None, *ctx.pulled(ctx.saved_tensors, cotangents)


def ruled(f: Callable[..., tuple[Tensors, Any]], tensors: Sequence[torch.Tensor]) -> Tensors:
    """The outputs of ``f``, which also answers the function from their cotangents to the gradients."""
    if torch.compiler.is_compiling():
        # The compiler would differentiate what is in there, whatever the rule says.
        raise NotImplementedError("a function with custom_gradient must not be compiled on the torch backend")
    _rules.count += 1
    return _Ruled.apply(f, *tensors)


class _Rules(threading.local):
    """How many times a function with a rule of its own was run in this thread."""

    count = 0


_rules = _Rules()


def uncompilable() -> int:
    """A number that grows with every call of what cannot be compiled."""
    return _rules.count


def compiled(f: FunctionType) -> Callable[..., Any]:
    """``f``, compiled: the tracer sees through models and optimisers, and assigns to them what ``f`` does."""
    # Code of its own: torch counts the programs that it makes of one piece of code, and makes eight at most.
    own = FunctionType(f.__code__.replace(), f.__globals__, f.__name__, f.__defaults__, f.__closure__)
    return torch.compile(own)


def aliased(x: torch.Tensor) -> torch.Tensor:
    """The same values in the same memory, in another object."""
    return x.view_as(x) if x.requires_grad else x.detach()


def is_of_compiler(error: Exception) -> bool:
    """Whether the compiler raised it: what went wrong in the traced function is in its words."""
    return isinstance(error, torch._dynamo.exc.TorchDynamoException)
