"""Fused optimizer steps: one torch call for all parameters.

A step writes to the state, which the optimizer owns, and to the tensors that ``allocate`` returns, because others may
hold the given parameters. In compiled code, the call of Adam is one operation of the graph, which takes a third of the
time of the compiled formula.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import torch
from torch.compiler import is_compiling as is_traced

from ember_ml.backend.torch.transform import is_differentiated

Tensors: TypeAlias = list[torch.Tensor]

# Dtypes that torch's fused functions support: on accelerators, a learning rate tensor must be float32.
_FUSED_DTYPES = {
    "cpu": (torch.float32, torch.float64),
    "cuda": (torch.float32,),
    "mps": (torch.float32,),
}


def supports(rule: str, parameters: list[Any], gradients: list[Any]) -> bool:
    """Whether all are plain tensors of one dtype on one device, outside of ``vmap`` and differentiation."""
    if is_traced() and rule == "SGD":
        # The compiler fuses this short formula into one pass over memory.
        return False
    if _is_transformed() or type(parameters[0]) is not torch.Tensor:
        return False
    dtype, device = parameters[0].dtype, parameters[0].device
    return dtype in _FUSED_DTYPES.get(device.type, ()) and all(
        type(x) is torch.Tensor and x.dtype is dtype and x.device == device and not x.requires_grad
        for x in (*parameters, *gradients)
    )


def recorded(parameters: dict[str, Any]) -> list[str]:
    """Paths of parameters on which torch records operations for ``backward``, outside of other differentiation."""
    # Parameters may still be NumPy arrays, which become tensors of the active engine.
    found = [path for path, x in parameters.items() if isinstance(x, torch.Tensor) and x.requires_grad]
    return [] if found and not is_traced() and is_differentiated() else found


def record(parameters: Tensors) -> None:
    """Make torch record operations on new parameters; in compiled code, they cannot be marked."""
    if not is_traced():
        for x in parameters:
            x.requires_grad_()


def _is_transformed() -> bool:
    """Whether a ``torch.func`` transform is active."""
    return torch._C._functorch.peek_interpreter_stack() is not None


# The result is constant while a graph is traced. torch.compiler.assume_constant_result sets the same attribute, but
# imports the compiler, which takes a second.
_is_transformed._dynamo_marked_constant = True


def SGD(  # noqa: N802 - named after the optimizers
    options: Any, new: Tensors, parameters: Tensors, gradients: Tensors, states: list[Any], counts: Tensors,
    places: list[int], rate: Any,
) -> None:  # fmt: skip
    velocities = [state["velocity"] for state in states] if options.momentum else []
    gradients, matched = _match_strides(new, gradients), _match_strides(new, velocities)
    firsts = [bool(options.momentum and options.dampening) and bool(count == 1) for count in counts]
    if all(is_first is firsts[0] for is_first in firsts):
        _sgd(options, new, gradients, matched, rate, firsts[0])
    else:
        # torch takes one is_first_step for all, so parameters with their first gradient are updated separately.
        for is_first in (True, False):
            chosen = [i for i, place in enumerate(places) if firsts[place] is is_first]
            some, theirs, velocity = ([tensors[i] for i in chosen] for tensors in (new, gradients, matched))
            _sgd(options, some, theirs, velocity, rate, is_first)
    _copy_back(velocities, matched)


def _sgd(options: Any, new: Tensors, gradients: Tensors, matched: Tensors, rate: Any, is_first: bool) -> None:
    torch._fused_sgd_(
        new,
        gradients,
        matched,
        weight_decay=options.weight_decay,
        momentum=options.momentum,
        lr=rate,
        dampening=options.dampening,
        nesterov=options.nesterov,
        maximize=False,
        is_first_step=is_first,
    )


def Adam(  # noqa: N802
    options: Any, new: Tensors, parameters: Tensors, gradients: Tensors, states: list[Any], counts: Tensors,
    places: list[int], rate: Any,
) -> None:  # fmt: skip
    run = torch.ops.ember_ml.adam_ if is_traced() else _adam
    run(
        new,
        gradients,
        [state["momentum"] for state in states],
        [state["variance"] for state in states],
        [state["largest"] for state in states] if options.amsgrad else [],
        counts,
        places,
        _tensor(rate, parameters[0]),
        options.beta_1,
        options.beta_2,
        options.eps,
        options.weight_decay,
        options.decoupled,
    )


AdamW = Adam


def _tensor(rate: Any, like: torch.Tensor) -> torch.Tensor:
    """Learning rate as a tensor; a schedule may return a number."""
    return rate if isinstance(rate, torch.Tensor) else torch.full((), rate, dtype=like.dtype, device=like.device)


def allocate(parameters: Tensors) -> Tensors:
    """Copies of the parameters, in one call if torch supports that."""
    at_once = getattr(torch, "_foreach_clone", None)  # not before torch 2.12
    if at_once is None or is_traced():
        return [x.clone() for x in parameters]
    return list(at_once(parameters))


def _adam(
    new: Tensors, gradients: Tensors, momenta: Tensors, variances: Tensors, largest: Tensors, counts: Tensors,
    places: list[int], rate: torch.Tensor, beta_1: float, beta_2: float, eps: float, weight_decay: float,
    decoupled: bool,
) -> None:  # fmt: skip
    steps = [count.to(torch.float32) for count in counts]
    matched = [_match_strides(new, some) for some in (momenta, variances, largest)]
    run: Any = torch._fused_adamw_ if decoupled else torch._fused_adam_
    run(
        new,
        _match_strides(new, gradients),
        *matched,
        [steps[place] for place in places],
        lr=rate,
        beta1=beta_1,
        beta2=beta_2,
        weight_decay=weight_decay,
        eps=eps,
        amsgrad=bool(largest),
        maximize=False,
    )
    for some, written in zip((momenta, variances, largest), matched, strict=True):
        _copy_back(some, written)


def _match_strides(new: Tensors, tensors: Tensors) -> Tensors:
    """Tensors with the strides of the parameters: torch's fused functions iterate over memory, not over axes."""
    return [
        x if x.stride() == like.stride() else torch.empty_like(like).copy_(x)
        for like, x in zip(new, tensors, strict=bool(tensors))
    ]


def _copy_back(tensors: Tensors, written: Tensors) -> None:
    """Copy results back to the tensors that had other strides."""
    for x, y in zip(tensors, written, strict=True):
        if x is not y:
            x.copy_(y)


if not hasattr(torch.ops.ember_ml, "adam_"):  # an earlier import of this module may have defined it
    # torch.library.custom_op adds 0.1 ms to every call.
    _library = torch.library.Library("ember_ml", "FRAGMENT")
    _library.define(
        "adam_(Tensor(a!)[] new, Tensor[] gradients, Tensor(b!)[] momenta, Tensor(c!)[] variances, "
        "Tensor(d!)[] largest, Tensor[] counts, int[] places, Tensor rate, float beta_1, float beta_2, float eps, "
        "float weight_decay, bool decoupled) -> ()"
    )
    _library.impl("adam_", _adam, "CompositeExplicitAutograd")
    torch.library.register_fake("ember_ml::adam_", lambda *_: None, lib=_library)
