"""Fused optimizer steps: a few torch calls for all parameters.

A step writes to the state, which the optimizer owns, and to the tensors that ``allocate`` returns: the parameters
themselves if nothing else refers to them, otherwise copies. Parameters in half precision are updated in float32, the
dtype of their state. In compiled code, the call of Adam is one operation of the graph, which takes a third of the time
of the compiled formula.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from torch.compiler import is_compiling as is_traced

from ember_ml.backend.torch.core import kernels_for
from ember_ml.backend.torch.transform import is_differentiated, is_transformed

Tensors: TypeAlias = list[torch.Tensor]

_NARROW = (torch.float16, torch.bfloat16)

# Dtypes of all parameters and gradients of one step. On accelerators, torch's fused functions read the learning rate as
# float32, which is too coarse for parameters in float64.
_FUSED_DTYPES = {
    "cpu": ((torch.float32, *_NARROW), (torch.float64,)),
    "cuda": ((torch.float32, *_NARROW),),
    "mps": ((torch.float32, *_NARROW),),
}


def supports(rule: str, parameters: list[Any], gradients: list[Any]) -> bool:
    """Whether all are plain tensors of these dtypes on one device, outside of ``vmap`` and differentiation."""
    if is_transformed() or type(parameters[0]) is not torch.Tensor:
        return False
    device = parameters[0].device
    dtypes: tuple[tuple[torch.dtype, ...], ...] = _FUSED_DTYPES.get(device.type, ())
    if is_traced():
        # The compiler fuses the formulas of the other rules into one pass over memory.
        if rule not in ("Adam", "AdamW") or parameters[0].dtype in _NARROW:
            return False
        dtypes = ((parameters[0].dtype,),) if any(parameters[0].dtype in some for some in dtypes) else ()
    return any(
        all(
            type(x) is torch.Tensor and x.dtype in some and x.device == device and not x.requires_grad
            for x in (*parameters, *gradients)
        )
        for some in dtypes
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


Rule: TypeAlias = Callable[..., None]


def _in_float32(rule: Rule) -> Rule:
    """``rule`` for parameters of which some are in half precision: it gets them and their gradients in float32."""

    @functools.wraps(rule)
    def run(
        options: Any, new: Tensors, parameters: Tensors, gradients: Tensors, states: list[Any], counts: Tensors,
        places: list[int], rate: Any,
    ) -> None:  # fmt: skip
        if is_traced() or not any(x.dtype in _NARROW for x in (*parameters, *gradients)):
            rule(options, new, parameters, gradients, states, counts, places, rate)
            return
        # A parameter in float32 has its value in the new tensor already.
        wide = _widened([y if y.dtype is torch.float32 else x for x, y in zip(parameters, new, strict=True)])
        rule(options, wide, wide, _widened(gradients), states, counts, places, rate)
        narrow = [i for i, x in enumerate(new) if x.dtype in _NARROW]
        if narrow:
            torch._foreach_copy_([new[i] for i in narrow], [wide[i] for i in narrow])

    return run


def _widened(tensors: Tensors) -> Tensors:
    """Tensors in float32; those that are in float32 already are not copied."""
    wide = [torch.empty_like(x, dtype=torch.float32) if x.dtype in _NARROW else x for x in tensors]
    narrow = [i for i, x in enumerate(tensors) if x.dtype in _NARROW]
    if narrow:
        torch._foreach_copy_([wide[i] for i in narrow], [tensors[i] for i in narrow])
    return wide


@_in_float32
def SGD(  # noqa: N802 - named after the optimizers
    options: Any, new: Tensors, parameters: Tensors, gradients: Tensors, states: list[Any], counts: Tensors,
    places: list[int], rate: Any,
) -> None:  # fmt: skip
    velocities = _states(states, "velocity") if options.momentum else []
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


@_in_float32
def RMSprop(  # noqa: N802
    options: Any, new: Tensors, parameters: Tensors, gradients: Tensors, states: list[Any], counts: Tensors,
    places: list[int], rate: Any,
) -> None:  # fmt: skip
    gradients = _decayed(options, new, gradients)
    variances = _states(states, "variance")
    torch._foreach_mul_(variances, options.rho)
    torch._foreach_addcmul_(variances, gradients, gradients, value=1 - options.rho)
    if options.centered:
        means = _states(states, "mean")
        torch._foreach_mul_(means, options.rho)
        torch._foreach_add_(means, gradients, alpha=1 - options.rho)
        variances = list(torch._foreach_addcmul(variances, means, means, value=-1.0))
        # For a constant gradient, rounding may make the difference negative.
        torch._foreach_clamp_min_(variances, 0.0)
    changes = _normalized(gradients, variances, options.eps)
    if options.momentum:
        velocities = _states(states, "velocity")
        torch._foreach_mul_(velocities, options.momentum)
        torch._foreach_add_(velocities, changes)
        changes = velocities
    torch._foreach_sub_(new, torch._foreach_mul(changes, rate))


@_in_float32
def Adagrad(  # noqa: N802
    options: Any, new: Tensors, parameters: Tensors, gradients: Tensors, states: list[Any], counts: Tensors,
    places: list[int], rate: Any,
) -> None:  # fmt: skip
    gradients = _decayed(options, new, gradients)
    squares = _states(states, "squares")
    torch._foreach_addcmul_(squares, gradients, gradients, value=1.0)
    changes = _normalized(gradients, squares, options.eps)
    for place, count in enumerate(counts):
        chosen = [i for i, other in enumerate(places) if other == place]
        torch._foreach_mul_([changes[i] for i in chosen], options.common(count.to(changes[0].dtype), rate))
    torch._foreach_sub_(new, changes)


@_in_float32
def Lion(  # noqa: N802
    options: Any, new: Tensors, parameters: Tensors, gradients: Tensors, states: list[Any], counts: Tensors,
    places: list[int], rate: Any,
) -> None:  # fmt: skip
    momenta = _states(states, "momentum")
    changes = list(torch._foreach_mul(momenta, options.beta_1))
    torch._foreach_add_(changes, gradients, alpha=1 - options.beta_1)
    torch._foreach_sign_(changes)
    torch._foreach_mul_(changes, rate)
    if options.weight_decay:
        torch._foreach_mul_(new, 1 - rate * options.weight_decay)
    torch._foreach_sub_(new, changes)
    torch._foreach_mul_(momenta, options.beta_2)
    torch._foreach_add_(momenta, gradients, alpha=1 - options.beta_2)


def _states(states: list[Any], name: str) -> Tensors:
    return [state[name] for state in states]


def _decayed(options: Any, parameters: Tensors, gradients: Tensors) -> Tensors:
    """Gradients with the L2 penalty."""
    if not options.weight_decay:
        return gradients
    return list(torch._foreach_add(gradients, parameters, alpha=options.weight_decay))


def _normalized(gradients: Tensors, squares: Tensors, eps: float) -> Tensors:
    """Gradients divided by the roots of their mean squares."""
    sizes = list(torch._foreach_sqrt(squares))
    torch._foreach_add_(sizes, eps)
    return list(torch._foreach_div(gradients, sizes))


def Adam(  # noqa: N802
    options: Any, new: Tensors, parameters: Tensors, gradients: Tensors, states: list[Any], counts: Tensors,
    places: list[int], rate: Any,
) -> None:  # fmt: skip
    given = (options, new, parameters, gradients, states, counts, places, _tensor(rate, new[0]))
    if is_traced() or not _adam_in_one_kernel(*given):
        _adam_rule(*given)


@_in_float32
def _adam_rule(
    options: Any, new: Tensors, parameters: Tensors, gradients: Tensors, states: list[Any], counts: Tensors,
    places: list[int], rate: Any,
) -> None:  # fmt: skip
    run = torch.ops.ember_ml.adam_ if is_traced() else _adam
    run(
        new,
        gradients,
        _states(states, "momentum"),
        _states(states, "variance"),
        _states(states, "largest") if options.amsgrad else [],
        counts,
        places,
        rate,
        options.beta_1,
        options.beta_2,
        options.eps,
        options.weight_decay,
        options.decoupled,
    )


def _adam_in_one_kernel(
    options: Any, new: Tensors, parameters: Tensors, gradients: Tensors, states: list[Any], counts: Tensors,
    places: list[int], rate: Any,
) -> bool:  # fmt: skip
    """Update parameters in half precision without copies in float32, if there is a kernel for them; say whether."""
    dtype = new[0].dtype
    kernels = kernels_for(new[0].device) if dtype in _NARROW and not options.amsgrad else None
    momenta, variances = _states(states, "momentum"), _states(states, "variance")
    if kernels is None or not (
        all(x.dtype is dtype and x.is_contiguous() for x in (*new, *parameters, *gradients))
        and all(x.is_contiguous() for x in (*momenta, *variances))
    ):
        return False
    steps = torch.stack(counts).to(torch.float32)
    kernels.adam(
        new, parameters, gradients, momenta, variances, steps, places, rate, options.beta_1, options.beta_2,
        options.eps, options.weight_decay, options.decoupled,
    )  # fmt: skip
    return True


AdamW = Adam


def _tensor(rate: Any, like: torch.Tensor) -> torch.Tensor:
    """Learning rate as a tensor; a schedule may return a number."""
    dtype = torch.promote_types(like.dtype, torch.float32)
    return rate if isinstance(rate, torch.Tensor) else torch.full((), rate, dtype=dtype, device=like.device)


def allocate(parameters: Tensors, holders: int) -> Tensors:
    """Parameters, if only this list and that number of other objects refer to each of them; otherwise copies."""
    if is_traced():
        return [x.clone() for x in parameters]
    is_own = holders and _references(parameters) == [_OWN_REFERENCES + holders] * len(parameters)
    if is_own and all(map(owns_memory, parameters)):
        return parameters
    new = _spare_copies(parameters)
    if new is None:
        at_once = getattr(torch, "_foreach_clone", None)  # not before torch 2.12
        new = [x.clone() for x in parameters] if at_once is None else list(at_once(parameters))
    if parameters[0].is_cpu and sum([x.nbytes for x in parameters]) >= SPARE_BYTES:
        _spares[:] = [list(parameters)]
    return new


# Parameters before the last update that made copies. If nothing else refers to them by the next one, it writes to their
# memory: new memory costs a page fault for every 4 KiB, which takes longer than the update. Accelerators need no such
# list, since torch keeps their memory.
_spares: list[Tensors] = []

# Size from which memory is kept to be written to again.
SPARE_BYTES = 1 << 20


def _spare_copies(parameters: Tensors) -> Tensors | None:
    """Copies of parameters in the memory of earlier ones, if there are such of the same form that nothing refers to."""
    try:
        old = _spares.pop()
    except IndexError:
        return None
    if len(old) != len(parameters) or _references(old) != [_OWN_REFERENCES] * len(old):
        return None
    if not all(_is_spare(old[i], x) for i, x in enumerate(parameters)):
        return None
    torch._foreach_copy_(old, parameters)
    return old


def _is_spare(old: torch.Tensor, x: torch.Tensor) -> bool:
    """Whether a copy of ``x`` may be written to ``old``, to which one Python object refers."""
    is_alike = old.shape == x.shape and old.stride() == x.stride() and old.dtype is x.dtype and x.is_cpu
    # Graphs of autograd refer to tensors, too; older versions of torch do not tell.
    count = getattr(old, "_use_count", None)
    return is_alike and not old.requires_grad and count is not None and count() == 1 and owns_memory(old)


def _references(values: list[Any]) -> list[int]:
    """Number of references to each value."""
    return [sys.getrefcount(values[i]) for i in range(len(values))]


# References of a list that nothing else refers to, which depend on the version of Python.
_OWN_REFERENCES = _references([object()])[0]


def owns_memory(x: torch.Tensor) -> bool:
    """Whether no other tensor, and no array of another library, uses the memory of ``x``."""
    storage = x.untyped_storage()
    # The storage is referred to by the tensor and by the Python object made here. Memory of other libraries, such as
    # that of torch.from_numpy, cannot be resized.
    return torch._C._storage_Use_Count(storage._cdata) == 2 and storage.resizable() and x.is_contiguous()


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
