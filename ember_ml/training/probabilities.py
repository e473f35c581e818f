"""Whether predictions can be the probabilities that a loss expects."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any, NamedTuple

from ember_ml import ops
from ember_ml.errors import warn
from ember_ml.extend import is_tensor

# Distance from a probability that rounding explains, at least, and in units of the dtype's precision.
_TOLERANCE, _ROUNDINGS = 1e-3, 16


class Probabilities(NamedTuple):
    """What a loss of ``ops`` without ``from_logits=True`` expects of predictions."""

    loss: str
    # Axis along which the probabilities have sum 1; ``None`` if each is separate.
    axis: int | None

    def check(self, prediction: Any) -> None:
        """Warn if ``prediction`` cannot be probabilities. This reads its values."""
        if not is_tensor(prediction) or 0 in prediction.shape or not ops.is_float(prediction):
            return
        tolerance = max(_TOLERANCE, _ROUNDINGS * ops.finfo(ops.dtype(prediction)).eps)
        values = ops.stop_gradient(prediction)
        wide = "float64" if ops.dtype(values) == "float64" else "float32"
        figures = [ops.min(values), ops.max(values)]
        if self.axis is not None and values.ndim:
            sums = ops.sum(values, axis=self.axis, dtype=wide)
            figures += [ops.min(sums), ops.max(sums)]
        stacked = ops.stack([ops.cast(x, wide) for x in figures])
        low, high, *sides = stacked.tolist()  # emberlint: ignore[EMB202] one read per run
        least, most = sides or (1.0, 1.0)
        # Comparisons with NaN are false, so NaN is not taken for a logit.
        if low < -tolerance or high > 1 + tolerance:
            found = f"values from {low:.4g} to {high:.4g}"
        elif least < 1 - tolerance or most > 1 + tolerance:
            found = f"sums from {least:.4g} to {most:.4g} along axis {self.axis}"
        else:
            return
        needed = "from 0 to 1" if self.axis is None else f"from 0 to 1 with sum 1 along axis {self.axis}"
        warn(
            f"Trainer: predictions must be probabilities for the loss {self.loss}, {needed}, got {found}; if the model "
            f"returns logits, write loss=functools.partial(ops.{self.loss}, from_logits=True)"
        )


def expected_by(loss: Any) -> Probabilities | None:
    """Probabilities that a loss expects; ``None`` if it takes logits, or is not a loss of ``ops`` that could.

    >>> expected_by(ops.binary_crossentropy)
    Probabilities(loss='binary_crossentropy', axis=None)
    >>> expected_by(partial(ops.binary_crossentropy, from_logits=True))
    """
    function, options = (loss.func, loss.keywords) if isinstance(loss, partial) else (loss, {})
    operation = getattr(function, "__operation__", None)
    if operation is None or operation.category != "losses":
        return None
    parameters = inspect.signature(function).parameters
    if "from_logits" not in parameters or options.get("from_logits"):
        return None
    axis = options.get("axis", parameters["axis"].default) if "axis" in parameters else None
    return Probabilities(operation.name, axis)
