"""Transforms of functions of flat lists of tensors: plain autograd, or ``torch.func`` within its own transforms.

A function takes tensors and returns two tuples of them: its outputs, and auxiliary outputs without gradient.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextvars import copy_context
from itertools import count
from types import FunctionType
from typing import Any, TypeAlias

import torch
import torch.utils.checkpoint
from torch._C._functorch import peek_interpreter_stack

from ember_ml.backend.torch import mapping
from ember_ml.backend.torch.compiler import mark_constant
from ember_ml.backend.torch.core import is_forward_mode
from ember_ml.errors import UnsupportedError

Tensors: TypeAlias = tuple[torch.Tensor, ...]
Flat: TypeAlias = Callable[..., tuple[Tensors, Tensors]]

REPEATS_DRAWS = True


class _Depth(threading.local):
    """Nesting depth of gradients in this thread."""

    value = 0
    # Whether the graph of the outermost gradient is used only once.
    is_last = False


_depth = _Depth()


def _functional() -> bool:
    """Whether ``torch.func`` must differentiate: its transforms and ``torch.compile`` do not trace plain autograd."""
    return torch.compiler.is_compiling() or peek_interpreter_stack() is not None


def is_last() -> bool:
    """Whether the caller is inside exactly one gradient, whose graph is used only once, and is not compiled."""
    return _depth.value == 1 and _depth.is_last and not torch.compiler.is_compiling()


def is_differentiated() -> bool:
    """Whether the caller is inside any gradient or transform of ``torch.func``."""
    return _depth.value > 0 or peek_interpreter_stack() is not None


def needs_more_than_backward() -> bool:
    """Whether the caller is inside forward-mode differentiation or a gradient of a gradient."""
    return _depth.value > 1 or is_forward_mode()


def is_traced(x: torch.Tensor) -> bool:
    """Whether operations on ``x`` are recorded."""
    return x.requires_grad and torch.is_grad_enabled()


class _Whole:
    """Block that the compiler either traces to its end or leaves to Python, since it cannot stop and go on inside.

    PyTorch 2.11: where the compiler runs ``torch.func.vjp`` in Python and traces the pullback, the gradients are zero.
    """

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


def value_and_grad(f: Flat, tensors: Sequence[torch.Tensor]) -> tuple[Tensors, Tensors, Sequence[torch.Tensor]]:
    """Single output of ``f``, its auxiliary outputs, and the gradient for each tensor."""
    if _functional():
        with _Whole():
            (value,), pull, aux = torch.func.vjp(f, *tensors, has_aux=True)  # type: ignore[misc]
            return (value,), aux, pull((torch.ones_like(value),))
    nested = _depth.value > 0 or _any_needed(tensors)
    outputs, aux, leaves = _record(f, tensors, nested, is_last=not nested)
    gradients = _backward(outputs, leaves, None, nested, nested)
    return (outputs, aux, gradients) if nested else (_detached(outputs), _detached(aux), gradients)


def vjp(f: Flat, tensors: Sequence[torch.Tensor]) -> tuple[Tensors, Tensors, Callable[..., Sequence[torch.Tensor]]]:
    """Outputs of ``f``, its auxiliary outputs, and the function from cotangents to gradients."""
    if _functional():
        with _Whole():
            outputs, pull, aux = torch.func.vjp(f, *tensors, has_aux=True)  # type: ignore[misc]
        is_part_of_graph = torch.compiler.is_compiling()

        def pulled_back(cotangents: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
            if torch.compiler.is_compiling() and not is_part_of_graph:
                with _Whole():
                    torch._dynamo.graph_break()
            return pull(tuple(cotangents))

        return outputs, aux, pulled_back
    nested = _depth.value > 0 or _any_needed(tensors)
    outputs, aux, leaves = _record(f, tensors, nested)

    def pulled(cotangents: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
        again = nested or _depth.value > 0 or _any_needed(cotangents)
        return _backward(outputs, leaves, cotangents, again, True)

    return (outputs, aux, pulled) if nested else (_detached(outputs), _detached(aux), pulled)


def jvp(f: Flat, tensors: Sequence[torch.Tensor], tangents: Sequence[torch.Tensor]) -> tuple[Tensors, Tensors, Tensors]:
    """Outputs of ``f``, their tangents, and its auxiliary outputs."""
    if not tensors:
        outputs, aux = f()
        return outputs, tuple(torch.zeros_like(x) for x in outputs), aux
    try:
        outputs, pushed, aux = torch.func.jvp(f, tuple(tensors), tuple(tangents), has_aux=True)  # type: ignore[misc]
    except (RuntimeError, UnsupportedError, ValueError) as error:
        if torch.compiler.is_compiling() or not isinstance(error.__cause__ or error, (RuntimeError, UnsupportedError)):
            raise
        # torch 2.13: some functions support reverse mode only, so compute the vjp of the vjp.
        outputs, pull, aux = torch.func.vjp(f, *tensors, has_aux=True)  # type: ignore[misc]
        _, push = torch.func.vjp(lambda *xs: pull(xs), *map(torch.zeros_like, outputs))  # type: ignore[misc]
        pushed = push(tuple(tangents))
    return outputs, pushed, aux


def _any_needed(tensors: Sequence[torch.Tensor]) -> bool:
    return torch.is_grad_enabled() and any(x.requires_grad for x in tensors)


def _record(
    f: Flat, tensors: Sequence[torch.Tensor], nested: bool, is_last: bool = False
) -> tuple[Tensors, Tensors, list[torch.Tensor]]:
    """Outputs, auxiliary outputs, and the graph's leaves that represent the given tensors."""
    # A view is also part of the enclosing graph; a detached tensor is not.
    leaves = [x.view_as(x) if nested and x.requires_grad else x.detach().requires_grad_() for x in tensors]
    with torch.enable_grad():
        outputs, aux = _at_depth(_depth.value + 1, is_last, f, *leaves)
    return outputs, aux, leaves


def _at_depth(value: int, is_last: bool, f: Callable[..., Any], *tensors: torch.Tensor) -> Any:
    """Result of ``f`` at a depth. Not a context manager, because Ctrl-C could prevent it from restoring the depth."""
    before = _depth.value, _depth.is_last
    try:
        _depth.value, _depth.is_last = value, is_last
        return f(*tensors)
    finally:
        _depth.value, _depth.is_last = before


def _backward(
    outputs: Tensors, leaves: list[torch.Tensor], cotangents: Sequence[torch.Tensor] | None, again: bool, keep: bool
) -> Sequence[torch.Tensor]:
    """Gradients for the leaves; zeros where the outputs do not depend on them."""
    places = [i for i, x in enumerate(outputs) if x.requires_grad]
    if not places or not leaves:
        return [torch.zeros_like(x) for x in leaves]
    given = None if cotangents is None else [cotangents[i] for i in places]
    found = torch.autograd.grad(
        [outputs[i] for i in places], leaves, given, retain_graph=keep, create_graph=again, allow_unused=True,
        materialize_grads=True,
    )  # fmt: skip
    # torch 2.13: the gradient of sign is a zero tensor without storage, which other libraries cannot read.
    return [torch.zeros_like(x) if x._is_zerotensor() else x for x in found]


def _detached(tensors: Tensors) -> Tensors:
    return tuple([x.detach() if x.requires_grad else x for x in tensors])


def vectorized(f: Callable[..., Tensors], axes: Sequence[int | None], tensors: Sequence[torch.Tensor]) -> Tensors:
    """Outputs of ``f`` for each slice of the tensors along their axes, stacked along the first axis."""
    return mapping.vectorized(f, tuple(axes), randomness="same")(*tensors)


def remembered(f: Callable[..., Tensors], tensors: Sequence[torch.Tensor]) -> Tensors:
    """Outputs of ``f``, whose intermediate values are recomputed for the gradient."""
    if peek_interpreter_stack() is not None:
        return f(*tensors)
    if torch.compiler.is_compiling():
        return torch.utils.checkpoint.checkpoint(f, *tensors, use_reentrant=False)
    depth = _depth.value, _depth.is_last
    is_first, errors = True, []

    def again(*tensors: torch.Tensor) -> Tensors:
        try:
            # The recomputation for the gradient runs later, but at the same depth.
            return _at_depth(*depth, f, *tensors)
        except BaseException as error:
            if not is_first:
                raise
            errors.append(error)
            return ()

    outputs = torch.utils.checkpoint.checkpoint(_from_here(again), *tensors, use_reentrant=False)
    is_first = False
    if errors:
        # torch < 2.13: an exception inside checkpoint leaves its hooks active until the traceback is freed.
        raise errors.pop()
    return outputs


def _from_here(f: Callable[..., Any]) -> Callable[..., Any]:
    """``f``, bound to the current context, such as the chosen backend.

    torch computes gradients on CUDA in another thread.
    """
    context = copy_context()
    return lambda *args: context.copy().run(f, *args)


class _Ruled(torch.autograd.Function):
    """Function that returns its outputs and the function from their cotangents to the gradients."""

    generate_vmap_rule = True

    @staticmethod
    def forward(f: Any, *tensors: torch.Tensor) -> Any:
        # torch does not allow an input to be returned as an output.
        return tuple([y.view_as(y) if any(y is x for x in tensors) else y for y in f(*tensors)[0]])

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        f, *tensors = inputs
        # Run f again on these tensors, so that higher-order gradients see them.
        ctx.pulled = _from_here(lambda tensors, cotangents: f(*tensors)[1](cotangents))
        ctx.save_for_backward(*tensors)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        return None, *ctx.pulled(ctx.saved_tensors, cotangents)


def ruled(f: Callable[..., tuple[Tensors, Any]], tensors: Sequence[torch.Tensor]) -> Tensors:
    """Outputs of ``f``, which also returns the function from their cotangents to the gradients."""
    if torch.compiler.is_compiling():
        # torch.compile would differentiate the body instead of using the rule.
        raise NotImplementedError("a function with custom_gradient must not be compiled on the torch backend")
    _rules.count += 1
    return _Ruled.apply(f, *tensors)


class _Rules(threading.local):
    """Number of calls of functions with a custom gradient in this thread."""

    count = 0


_rules = _Rules()


def uncompilable() -> int:
    """Counter that grows with every call of a function that cannot be compiled."""
    return _rules.count


# Numbers of the functions that are compiled.
_numbers = count()


def compiled(f: FunctionType) -> Callable[..., Any]:
    """``f``, compiled. The tracer looks into models and optimizers, and applies the assignments that ``f`` makes."""
    # A separate code object, because torch compiles at most eight programs for one. It has a name of its own, because
    # torch 2.13 keeps the sizes and numbers of earlier calls by file, line and name, and takes others for symbols.
    code = f.__code__.replace(co_name=f"{f.__name__}_{next(_numbers)}")
    return torch.compile(FunctionType(code, f.__globals__, f.__name__, f.__defaults__, f.__closure__))


def is_tracing() -> bool:
    """Whether the compiler traces the caller, outside of transforms of ``torch.func``."""
    return torch.compiler.is_compiling() and not is_transformed()


def is_transformed() -> bool:
    """Whether a transform of ``torch.func`` is active."""
    return peek_interpreter_stack() is not None


# The result is constant while a graph is traced.
mark_constant(is_transformed)


def is_better_in_parts(tensors: Sequence[torch.Tensor]) -> bool:
    """Whether a compiled function of these tensors that differentiates needs less memory and time in parts.

    On the CPU, one program with the gradient and the update in it is faster.
    """
    return any(x.device.type != "cpu" for x in tensors)


class _Recorded:
    """Function of tensors to tensors of the same shapes and dtypes, repeated on CUDA by launching its kernels at once.

    ``tensors`` holds the arguments, and after ``launch`` the results, in the same memory.
    """

    def __init__(self, f: Callable[..., Sequence[torch.Tensor]], tensors: Sequence[torch.Tensor]) -> None:
        self.tensors = [x.clone() for x in tensors]
        # Compilers and libraries allocate memory in the first calls, which cannot be recorded.
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.no_grad(), torch.cuda.stream(stream):
            for _ in range(2):
                f(*self.tensors)
        torch.cuda.current_stream().wait_stream(stream)
        self._graph = torch.cuda.CUDAGraph()
        with torch.no_grad(), torch.cuda.graph(self._graph):
            self.set(f(*self.tensors))

    def set(self, tensors: Sequence[torch.Tensor]) -> None:
        """Write the values of ``tensors`` to ``self.tensors``."""
        torch._foreach_copy_(self.tensors, list(tensors))

    def launch(self) -> None:
        """Replace the arguments by the results of the function."""
        self._graph.replay()


def recorded(f: Callable[..., Sequence[torch.Tensor]], tensors: Sequence[torch.Tensor]) -> _Recorded | None:
    """Recorded kernels of ``f``; ``None`` where they cannot be recorded."""
    if _functional() or _any_needed(tensors) or not all(x.is_cuda for x in tensors):
        return None
    return _Recorded(f, tensors)


class _StoppedError(Exception):
    """The compiler was stopped."""


def stop_compiler() -> None:
    """Make the compiler, which traces the caller, raise an error for which ``was_stopped`` is true."""
    raise _StoppedError


# The compiler calls the function while it traces, because its result is constant.
mark_constant(stop_compiler)


def was_stopped(error: Exception) -> bool:
    """Whether ``stop_compiler`` caused the error, of the compiler or in a function that it left to Python."""
    return isinstance(error, _StoppedError) or (is_of_compiler(error) and str(error).startswith(_StoppedError.__name__))


def aliased(x: torch.Tensor) -> torch.Tensor:
    """Another tensor object with the same memory."""
    return x.view_as(x) if x.requires_grad else x.detach()


def is_of_compiler(error: Exception) -> bool:
    """Whether the compiler raised the error; errors of the traced function are quoted in its message."""
    return isinstance(error, torch._dynamo.exc.TorchDynamoException)


def whole(f: Callable[..., Any]) -> Callable[..., Any]:
    """``f`` as one graph that nothing optimizes; an error where torch's compiler cannot trace all of it."""
    torch._dynamo.reset()
    return torch.compile(f, fullgraph=True, backend="eager", dynamic=False)
