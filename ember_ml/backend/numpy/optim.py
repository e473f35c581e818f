"""Fused optimizer steps: few passes over memory, and no allocation except the result and one array for weight decay.

A step writes to the state, which the optimizer owns, and to the arrays that ``allocate`` returns, because others may
hold the given parameters. It cannot fail halfway: memory is allocated first, and overflow does not raise.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

_DTYPES = (np.dtype("float32"), np.dtype("float64"))


def supports(rule: str, parameters: list[Any], gradients: list[Any]) -> bool:
    """Whether all are plain arrays in one supported dtype and nothing is traced."""
    dtype = parameters[0].dtype
    return dtype in _DTYPES and all(type(x) is np.ndarray and x.dtype is dtype for x in (*parameters, *gradients))


def is_traced() -> bool:
    """Whether a compiler traces the caller."""
    return False


def allocate(parameters: list[Any], holders: int) -> list[Any]:
    """Memory for new parameters, however many objects hold the old ones."""
    return [np.empty_like(parameter) for parameter in parameters]


def SGD(  # noqa: N802 - named after the optimizers
    options: Any, results: list[Any], parameters: list[Any], gradients: list[Any], states: list[Any],
    counts: list[Any], places: list[int], rate: Any,
) -> None:  # fmt: skip
    rate, momentum, decay = float(rate), options.momentum, options.weight_decay
    shares = [1 if count == 1 else 1 - options.dampening for count in counts]
    works = _work_arrays(parameters) if decay else {}
    with np.errstate(all="ignore"):
        for new, parameter, gradient, state, place in zip(results, parameters, gradients, states, places, strict=True):
            share = shares[place]
            if decay:
                work = works[parameter.shape]
                gradient = np.add(gradient, np.multiply(parameter, decay, out=work), out=work)
            if momentum:
                velocity = state["velocity"]
                velocity *= momentum
                velocity += gradient if share == 1 else np.multiply(gradient, share, out=new)
                if options.nesterov:
                    np.multiply(velocity, momentum, out=new)
                    gradient = np.add(gradient, new, out=new)
                else:
                    gradient = velocity
            np.multiply(gradient, rate, out=new)
            np.subtract(parameter, new, out=new)


def Adam(  # noqa: N802
    options: Any, results: list[Any], parameters: list[Any], gradients: list[Any], states: list[Any],
    counts: list[Any], places: list[int], rate: Any,
) -> None:  # fmt: skip
    rate, decay = float(rate), options.weight_decay
    beta_1, beta_2, eps = options.beta_1, options.beta_2, options.eps
    sizes = [rate / (1 - beta_1 ** int(count)) for count in counts]
    roots = [math.sqrt(1 - beta_2 ** int(count)) for count in counts]
    works = _work_arrays(parameters) if decay else {}
    with np.errstate(all="ignore"):
        for new, parameter, gradient, state, place in zip(results, parameters, gradients, states, places, strict=True):
            size, root = sizes[place], roots[place]
            momentum, variance = state["momentum"], state["variance"]
            if decay:
                work = works[parameter.shape]
                if not options.decoupled:
                    gradient = np.add(gradient, np.multiply(parameter, decay, out=work), out=work)
            momentum *= beta_1
            momentum += np.multiply(gradient, 1 - beta_1, out=new)
            variance *= beta_2
            np.multiply(gradient, 1 - beta_2, out=new)
            variance += np.multiply(new, gradient, out=new)
            if options.amsgrad:
                variance = np.maximum(state["largest"], variance, out=state["largest"])
            # rate * m / (sqrt(v) / root + eps), with root factored into rate and eps to save a pass.
            np.sqrt(variance, out=new)
            new += eps * root
            np.divide(momentum, new, out=new)
            new *= size * root
            if decay and options.decoupled:
                parameter = np.multiply(parameter, 1 - rate * decay, out=work)
            np.subtract(parameter, new, out=new)


AdamW = Adam


def _work_arrays(parameters: list[Any]) -> dict[tuple[int, ...], Any]:
    """Work array for each shape. All share memory, because they are used one at a time."""
    sizes = {parameter.shape: parameter.size for parameter in parameters}
    memory = np.empty(max(sizes.values()), parameters[0].dtype)
    return {shape: memory[:size].reshape(shape) for shape, size in sizes.items()}
