"""Gradients by the engine-independent rules, where MLX has none or wrong ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mx

from ember_ml.backend.mlx import mapping
from ember_ml.gradients import conjugate
from ember_ml.gradients.attachment import Attachment


def _is_floating(x: mx.array) -> bool:
    return mx.issubdtype(x.dtype, mx.inexact)


def _custom(function: Callable[..., Any], pull: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` with that pullback, whose cotangents and gradients MLX conjugates."""

    def conjugated(primals: Any, cotangents: Any, outputs: Any) -> Any:
        found = pull(primals, [conjugate(g) if _is_floating(g) else None for g in cotangents], outputs)
        return tuple(conjugate(one) for one in found)

    return mapping.custom(function, conjugated)


_attachment = Attachment("mlx", mx.array, _is_floating, _custom)
with_rule, run_on_host = _attachment.with_rule, _attachment.run_on_host
