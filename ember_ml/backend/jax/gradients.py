"""Gradients by the engine-independent rules, where JAX has none or others than ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from ember_ml.backend.jax.core import TENSORS, is_traced
from ember_ml.gradients.attachment import Attachment


def with_pullback(function: Callable[..., Any], pull: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, from arrays to a tuple of arrays, with gradients by ``pull``.

    Args:
        pull: from the arguments, the cotangents (``None`` for those of integers) and the results of ``function`` to a
            gradient for each argument.
    """
    custom = jax.custom_vjp(function)

    def forward(*tensors: jax.Array) -> Any:
        outputs = function(*tensors)
        return outputs, (tensors, outputs)

    def backward(saved: Any, cotangents: Any) -> Any:
        primals, outputs = saved
        # JAX represents the cotangents of integers by float0.
        return tuple(pull(primals, [None if g.dtype == jax.dtypes.float0 else g for g in cotangents], outputs))

    custom.defvjp(forward, backward)
    return lambda *tensors: (custom if any(map(is_traced, tensors)) else function)(*tensors)


_attachment = Attachment("jax", TENSORS, lambda x: jnp.issubdtype(x.dtype, jnp.inexact), with_pullback)
with_rule, run_on_host = _attachment.with_rule, _attachment.run_on_host
