"""Fused rules of optimisers: few passes over memory, and no array made but the answer and one for work.

A rule writes into the state, which is the optimiser's own, and answers new parameters: those it was given may be in
other hands.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

_DTYPES = (np.dtype("float32"), np.dtype("float64"))


def serves(rule: str, parameters: list[Any], gradients: list[Any]) -> bool:
    """Whether all are plain arrays in one of the dtypes that a rule computes in, and nothing traces here."""
    dtype = parameters[0].dtype
    return dtype in _DTYPES and all(type(x) is np.ndarray and x.dtype is dtype for x in (*parameters, *gradients))


def SGD(  # noqa: N802 - rules have the names of their optimisers
    options: Any, parameters: list[Any], gradients: list[Any], states: list[Any], step: Any, rate: Any
) -> list[Any]:
    rate, momentum, decay = float(rate), options.momentum, options.weight_decay
    share = 1 if step == 1 else 1 - options.dampening
    answers = []
    for parameter, gradient, state in zip(parameters, gradients, states, strict=True):
        new = np.empty_like(parameter)
        if decay:
            gradient = np.add(gradient, np.multiply(parameter, decay, out=new))
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
        answers.append(np.subtract(parameter, new, out=new))
    return answers


def Adam(  # noqa: N802
    options: Any, parameters: list[Any], gradients: list[Any], states: list[Any], step: Any, rate: Any
) -> list[Any]:
    rate, number, decay = float(rate), int(step), options.weight_decay
    beta_1, beta_2, eps = options.beta_1, options.beta_2, options.eps
    size = rate / (1 - beta_1**number)
    root = math.sqrt(1 - beta_2**number)
    answers = []
    for parameter, gradient, state in zip(parameters, gradients, states, strict=True):
        new, work = np.empty_like(parameter), np.empty_like(parameter)
        momentum, variance = state["momentum"], state["variance"]
        if decay and not options.decoupled:
            gradient = np.add(gradient, np.multiply(parameter, decay, out=work))
        momentum *= beta_1
        momentum += np.multiply(gradient, 1 - beta_1, out=work)
        variance *= beta_2
        np.multiply(gradient, 1 - beta_2, out=work)
        variance += np.multiply(work, gradient, out=work)
        if options.amsgrad:
            variance = np.maximum(state["largest"], variance, out=state["largest"])
        # rate * m / (sqrt(v) / root + eps), the root put into the rate and eps to save a pass.
        np.sqrt(variance, out=work)
        work += eps * root
        np.divide(momentum, work, out=work)
        work *= size * root
        if decay and options.decoupled:
            np.multiply(parameter, 1 - rate * decay, out=new)
            answers.append(np.subtract(new, work, out=new))
        else:
            answers.append(np.subtract(parameter, work, out=new))
    return answers


AdamW = Adam
