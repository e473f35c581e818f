"""Fused rules of optimisers: one call of torch's for all parameters.

A rule writes into the state, which is the optimiser's own, and answers new parameters: those it was given may be in
other hands.
"""

from __future__ import annotations

from typing import Any

import torch

_DTYPES = (torch.float32, torch.float64)
_DEVICES = ("cpu", "cuda", "mps")


def serves(parameters: list[Any], gradients: list[Any]) -> bool:
    """Whether all are plain tensors of one dtype on one device, and nothing traces, maps or differentiates here."""
    if torch.compiler.is_compiling() or torch._C._functorch.peek_interpreter_stack() is not None:
        return False
    if type(parameters[0]) is not torch.Tensor:
        return False
    dtype, device = parameters[0].dtype, parameters[0].device
    is_known = dtype in _DTYPES and device.type in _DEVICES
    return is_known and all(
        type(x) is torch.Tensor and x.dtype is dtype and x.device == device and not x.requires_grad
        for x in (*parameters, *gradients)
    )


def _copies(parameters: list[Any]) -> list[Any]:
    """New tensors with the same values, all at once where torch can."""
    at_once = getattr(torch, "_foreach_clone", None)  # not before torch 2.12
    return [x.clone() for x in parameters] if at_once is None else list(at_once(parameters))


def SGD(  # noqa: N802 - rules have the names of their optimisers
    options: Any, parameters: list[Any], gradients: list[Any], states: list[Any], step: Any, rate: Any
) -> list[torch.Tensor]:
    new = _copies(parameters)
    torch._fused_sgd_(
        new,
        _alike(new, gradients),
        _memory(new, states, "velocity") if options.momentum else [],
        weight_decay=options.weight_decay,
        momentum=options.momentum,
        lr=rate,
        dampening=options.dampening,
        nesterov=options.nesterov,
        maximize=False,
        is_first_step=bool(options.dampening) and bool(step == 1),
    )
    return new


def Adam(  # noqa: N802
    options: Any, parameters: list[Any], gradients: list[Any], states: list[Any], step: Any, rate: Any
) -> list[torch.Tensor]:
    new = _copies(parameters)
    fused = torch._fused_adamw_ if options.decoupled else torch._fused_adam_
    fused(
        new,
        _alike(new, gradients),
        _memory(new, states, "momentum"),
        _memory(new, states, "variance"),
        _memory(new, states, "largest") if options.amsgrad else [],
        [step.to(torch.float32)] * len(new),
        lr=rate,
        beta1=options.beta_1,
        beta2=options.beta_2,
        weight_decay=options.weight_decay,
        eps=options.eps,
        amsgrad=options.amsgrad,
        maximize=False,
    )
    return new


AdamW = Adam


def _memory(new: list[torch.Tensor], states: list[dict[str, torch.Tensor]], name: str) -> list[torch.Tensor]:
    """What the states hold under a name, with the strides of the parameters from now on."""
    held = _alike(new, [state[name] for state in states])
    for state, tensor in zip(states, held, strict=True):
        state[name] = tensor
    return held


def _alike(new: list[torch.Tensor], tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    """The tensors with the strides of the parameters: torch's fused functions go through memory, not through axes."""
    return [
        x if x.stride() == like.stride() else torch.empty_like(like).copy_(x)
        for like, x in zip(new, tensors, strict=True)
    ]
