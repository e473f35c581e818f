"""Linear layers."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml.nn.initializers import Initializer, initialized
from ember_ml.nn.modules.checks import check_sizes
from ember_ml.nn.modules.module import Module
from ember_ml.nn.modules.slots import Parameter
from ember_ml.types import DTypeLike, Tensor


class Linear(Module):
    """``x @ weight + bias`` along the last axis of ``x``.

    The weight has the shape (in_features, out_features).

    Args:
        in_features: length of the last axis of ``x``.
        out_features: length of the last axis of the result.
        bias: whether to learn a bias.
        weight_init, bias_init: initializers, by name, as functions or as constant values.

    >>> layer = Linear(3, 2)
    >>> tuple(layer([[1.0, 2.0, 3.0]]).shape)
    (1, 2)
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        *,
        weight_init: str | float | Initializer = "glorot_uniform",
        bias_init: str | float | Initializer = "zeros",
        dtype: DTypeLike | None = None,
    ) -> None:
        check_sizes(self, in_features=in_features, out_features=out_features)
        self.in_features, self.out_features = in_features, out_features
        self.weight: Any = Parameter(
            initialized(weight_init, (in_features, out_features), dtype, f"{type(self).__name__}: weight_init")
        )
        self.bias: Any = (
            Parameter(initialized(bias_init, (out_features,), dtype, f"{type(self).__name__}: bias_init"))
            if bias
            else None
        )

    def _wrong_shape(self, x: Any) -> str:
        """The message for an input that does not fit, which the error of ``linear`` would name otherwise."""
        shape = tuple(getattr(x, "shape", ()))
        if not shape or shape[-1] == self.in_features:
            return ""
        is_flat = len(shape) == 1 and shape[0] and self.in_features and not shape[0] % self.in_features
        hint = "; nn.Flatten keeps the axis of the batch, ops.flatten does not" if is_flat else ""
        return f"x must have {self.in_features} features along its last axis, got shape {list(shape)}{hint}"

    def forward(self, x: Any) -> Tensor:
        return ops.linear(x, self.weight, self.bias)


Dense = Linear
